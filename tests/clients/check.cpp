// SPDX-License-Identifier: Apache-2.0
// What the client was told against what the program did.
#include <cupti.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "player.h"
#include "structures.h"

namespace clients {
namespace {

uint32_t kindOfRecord(const void* record) {
  uint32_t kind;
  std::memcpy(&kind, record, 4);
  return kind;
}

// Every record of such a kind must be one of the program's, in the order of its calls.
bool isExact(const std::string& kind) {
  static const std::set<std::string> exact = {"KERNEL",  "CONCURRENT_KERNEL", "MEMCPY",  "MEMCPY2", "MEMSET",
                                              "RUNTIME", "CUDA_EVENT",        "MEMORY2", "MARKER",  "GRAPH_TRACE"};
  return exact.count(kind) != 0;
}

std::string truthOf(const std::string& kind) { return kind == "CONCURRENT_KERNEL" ? "KERNEL" : kind; }

}  // namespace

uint32_t Player::writtenVersion(const std::string& kind) const {
  auto chosen = layout_.find(kind);
  return chosen != layout_.end() ? chosen->second : newestVersion(kind);
}

std::vector<const void*> Player::recordsOf(const std::string& kind) const {
  std::vector<const void*> out;
  for (const auto& r : records_) {
    if (kindOfRecord(r.data()) == kindNumber(kind)) out.push_back(r.data());
  }
  return out;
}

bool Player::matches(const std::string& kind, uint32_t version, const void* record, const Expected& expected,
                     std::string* why) {
  const Structure& s = *structureOf(kind, version);
  for (const auto& [field, value] : expected.fields) {
    if (!s.has(field)) continue;  // a later one
    const uint64_t found = s.read(record, field);
    if (found == value) continue;
    *why = field + " is " + std::to_string(found) + ", not " + std::to_string(value);
    return false;
  }
  if (expected.name.empty()) return true;
  const char* name = nullptr;
  if (kind == "RUNTIME" || kind == "DRIVER") {
    cuptiGetCallbackName(kind == "RUNTIME" ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API,
                         static_cast<uint32_t>(s.read(record, "cbid")), &name);
    const std::string text = name != nullptr ? name : "";
    const bool same = text == expected.name || text.rfind(expected.name + "_v", 0) == 0;
    if (!same) *why = "it is " + text + ", not " + expected.name;
    return same;
  }
  name = reinterpret_cast<const char*>(s.read(record, "name"));
  if (name != nullptr && expected.name == name) return true;
  *why = std::string("its name is ") + (name != nullptr ? name : "missing") + ", not " + expected.name;
  return false;
}

void Player::verifyExact(const std::string& kind, uint32_t version, const std::vector<const void*>& all,
                         const std::vector<Expected>& expected) {
  const Structure& s = *structureOf(kind, version);
  std::vector<const void*> records = all;
  const char* time = s.has("start") ? "start" : s.has("timestamp") ? "timestamp" : nullptr;
  std::stable_sort(records.begin(), records.end(), [&](const void* a, const void* b) {
    if (s.has("correlationId") && s.read(a, "correlationId") != s.read(b, "correlationId")) {
      return s.read(a, "correlationId") < s.read(b, "correlationId");
    }
    return time != nullptr && s.read(a, time) < s.read(b, time);
  });
  const std::string as = kind + " read as " + s.name;
  // The call that was under way when the kind was switched on may be there or not.
  if (kind == "RUNTIME" && records.size() == expected.size() + 1) records.erase(records.begin());
  if (records.size() != expected.size()) {
    return wrong(as + ": " + std::to_string(records.size()) + " records, not " + std::to_string(expected.size()));
  }
  for (size_t i = 0; i < records.size(); ++i) {
    std::string why;
    if (!matches(kind, version, records[i], expected[i], &why))
      wrong(as + ", record " + std::to_string(i) + ": " + why);
  }
}

void Player::verifyContains(const std::string& kind, uint32_t version, const std::vector<const void*>& records,
                            const std::vector<Expected>& expected) {
  const std::string as = kind + " read as " + structureOf(kind, version)->name;
  for (const Expected& e : expected) {
    std::string why = "no record";
    const bool found =
        std::any_of(records.begin(), records.end(), [&](const void* r) { return matches(kind, version, r, e, &why); });
    if (!found) wrong(as + ": none is as expected; of the last one " + why);
  }
  // What always comes, and is no work of the program's.
  static const std::set<std::string> always = {"OVERHEAD",
                                               "ENVIRONMENT",
                                               "DEVICE",
                                               "CONTEXT",
                                               "GLOBAL_ACCESS",
                                               "BRANCH",
                                               "FUNCTION",
                                               "SHARED_ACCESS",
                                               "INSTRUCTION_EXECUTION",
                                               "EXTERNAL_CORRELATION"};
  const bool lines = kind == "SOURCE_LOCATOR" && (kinds_.count("GLOBAL_ACCESS") != 0 || kinds_.count("BRANCH") != 0 ||
                                                  kinds_.count("INSTRUCTION_EXECUTION") != 0);
  if ((lines || always.count(kind) != 0) && records.empty()) wrong(as + ": no records");
}

void Player::verifySums(const std::string& kind, const Kind& state, const std::vector<const void*>& records) {
  for (uint32_t version : client_.kinds.at(kind)) {
    const Structure& s = *structureOf(kind, version);
    for (const auto& [name, total] : truth_.sums) {
      if (name.rfind(kind + ".", 0) != 0) continue;
      const std::string field = name.substr(kind.size() + 1);
      auto before = state.sumsFrom.find(name);
      const uint64_t expected = total - (before != state.sumsFrom.end() ? before->second : 0);
      uint64_t sum = 0;
      for (const void* r : records) sum += s.read(r, field);
      if (sum != expected) {
        wrong(name + " read as " + s.name + " sums to " + std::to_string(sum) + ", not " + std::to_string(expected));
      }
    }
  }
}

void Player::verifyKind(const std::string& kind, const Kind& state) {
  const std::vector<const void*> records = recordsOf(kind);
  auto reads = client_.kinds.find(kind);
  if (reads == client_.kinds.end()) return wrong("the table does not say how it reads " + kind);
  const auto& truth = truth_.records[truthOf(kind)];
  std::vector<Expected> expected;
  for (size_t i = state.from; i < state.until && i < truth.size(); ++i) {
    const bool whole = truth[i].ofGraph && kinds_.count("GRAPH_TRACE") != 0;
    if (!whole && silenced_.count(truth[i].name) == 0) expected.push_back(truth[i]);
  }
  for (uint32_t version : reads->second) {
    const Structure* s = structureOf(kind, version);
    if (s == nullptr || !readableAs(kind, writtenVersion(kind), version)) {
      wrong(kind + ": version " + std::to_string(version) + " cannot be read from " +
            std::to_string(writtenVersion(kind)) + "; a line `layout` is missing");
      continue;
    }
    if (isExact(kind))
      verifyExact(kind, version, records, expected);
    else
      verifyContains(kind, version, records, expected);
    for (const void* r : records) {
      if (s->has("start") && s->has("end") && kind != "UNIFIED_MEMORY_COUNTER" &&
          s->read(r, "start") > s->read(r, "end")) {
        wrong(kind + ": a record ends before it starts");
      }
    }
  }
  verifySums(kind, state, records);
  if (client_.everyKind && records.empty()) wrong(kind + ": no records");
}

// Times are in the client's clock, threads have the ids that it asked for.
void Player::verifyTimes() {
  const uint32_t thread =
      systemThreads_ ? static_cast<uint32_t>(syscall(SYS_gettid)) : static_cast<uint32_t>(pthread_self());
  for (const char* kind : {"RUNTIME", "DRIVER", "CONCURRENT_KERNEL", "KERNEL", "MEMCPY", "MEMSET"}) {
    if (client_.kinds.count(kind) == 0) continue;
    const Structure& s = *structureOf(kind, client_.kinds.at(kind).front());
    for (const void* r : recordsOf(kind)) {
      const uint64_t start = s.read(r, "start"), end = s.read(r, "end");
      if (start == 0) wrong(std::string(kind) + ": a record without a time");
      // A time stamp counter; half a million of its ticks are less than a millisecond: what converting may miss.
      if (ownClock_ && (start + 500000 < clockStart_ || end > clockEnd_ + 500000)) {
        wrong(std::string(kind) + ": a time outside the client's clock");
      }
      if (s.has("threadId") && s.read(r, "threadId") != thread) wrong(std::string(kind) + ": another thread id");
    }
  }
}

void Player::verifyExternal() {
  if (kinds_.count("EXTERNAL_CORRELATION") == 0 || !kinds_.at("EXTERNAL_CORRELATION").ever) return;
  const Structure& s = *structureOf("EXTERNAL_CORRELATION", 1);
  std::set<uint64_t> joined, calls;
  for (const void* r : recordsOf("EXTERNAL_CORRELATION")) {
    if (pushed_.count(s.read(r, "externalId")) == 0) wrong("an external id that was not pushed");
    joined.insert(s.read(r, "correlationId"));
  }
  for (const char* api : {"RUNTIME", "DRIVER"}) {
    for (const void* r : recordsOf(api)) calls.insert(structureOf(api, 1)->read(r, "correlationId"));
  }
  size_t kernels = 0;
  for (const char* kind : {"CONCURRENT_KERNEL", "KERNEL"}) {
    if (client_.kinds.count(kind) == 0) continue;
    const Structure& k = *structureOf(kind, client_.kinds.at(kind).front());
    for (const void* r : recordsOf(kind)) {
      const uint64_t id = k.read(r, "correlationId");
      if (calls.count(id) == 0) continue;
      ++kernels;
      if (joined.count(id) == 0) wrong(std::string(kind) + ": a kernel without an external id");
    }
    if (kernels < 3) wrong("only " + std::to_string(kernels) + " kernels of recorded calls");
  }
}

void Player::verifyCallbacks() {
  for (const auto& [name, watch] : watches_) {
    const auto& until = watch.on ? truth_.calls : watch.until;
    for (const auto& [function, count] : until) {
      const bool covered = watch.wholeDomain ? function.rfind(name + ".", 0) == 0 : function == name;
      if (!covered) continue;
      auto before = watch.from.find(function);
      const uint32_t expected = count - (before != watch.from.end() ? before->second : 0);
      const auto found = called_[function];
      const bool api = function.rfind("NVTX.", 0) != 0;
      // The runtime calls driver functions too.
      const bool atLeast = function.rfind("DRIVER_API.", 0) == 0;
      // A domain that was switched on or off within a call has one half of it.
      const bool entries = atLeast ? found.first >= expected
                                   : found.first == expected || found.first + 1 == expected ||
                                         (function == watch.underWay && found.first == expected + 1);
      if (!entries) {
        wrong(function + ": " + std::to_string(found.first) + " entries, not " + std::to_string(expected));
      }
      if (api && (found.second > found.first + 1 || found.first > found.second + 1)) {
        wrong(function + ": " + std::to_string(found.first) + " entries and " + std::to_string(found.second) +
              " exits");
      }
    }
    // What happened without a function of the program's.
    const size_t dot = name.find('.');
    if (dot == std::string::npos || name.rfind("RESOURCE", 0) != 0) continue;
    static const std::set<std::string> happens = {
        "CONTEXT_CREATED",   "CONTEXT_DESTROY_STARTING", "MODULE_LOADED",     "MODULE_UNLOAD_STARTING",
        "STREAM_CREATED",    "STREAM_DESTROY_STARTING",  "GRAPHEXEC_CREATED", "GRAPHEXEC_DESTROY_STARTING",
        "GRAPHNODE_CREATED", "GRAPH_DESTROY_STARTING"};
    if (watch.on && happens.count(name.substr(dot + 1)) != 0 && called_[name].first == 0) wrong(name + " did not come");
  }
}

void Player::verify() {
  std::vector<std::string> names;
  for (const auto& [name, state] : kinds_) names.push_back(name);
  for (const std::string& name : names) {
    if (kinds_.at(name).ever) verifyKind(name, kinds_.at(name));
  }
  verifyTimes();
  verifyExternal();
  verifyCallbacks();
}

}  // namespace clients
