// SPDX-License-Identifier: Apache-2.0
#include "cli/collector/collector.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cli/collector/helper_thread.h"
#include "cli/spool/record_layout.h"

namespace sonde::collector {
namespace {

const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] != 0 ? value : nullptr;
}

unsigned long number(const char* name, unsigned long otherwise) {
  const char* text = environment(name);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  return end != text && *end == 0 ? value : otherwise;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u >= 0x7f) {  // byte by byte: arguments need not be UTF-8
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\u%04x", u);
      out += hex;
    } else {
      out += c;
    }
  }
  return out + '"';
}

void CUPTIAPI requestBuffer(uint8_t** buffer, size_t* size, size_t* maxRecords) {
  Collector::instance().requestBuffer(buffer, size, maxRecords);
}

void CUPTIAPI completeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t validSize) {
  Collector::instance().completeBuffer(buffer, validSize);
}

void CUPTIAPI onCallback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const auto* resource = static_cast<const CUpti_ResourceData*>(data);
    if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED && resource->resourceDescriptor != nullptr)
      Collector::instance().moduleLoaded(*static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor));
    return;
  }
  const auto* info = static_cast<const CUpti_CallbackData*>(data);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && Counting::isLaunch(cbid)) {
    Collector::instance().driverLaunch(cbid, *info);
    return;
  }
  const bool isStart = domain == CUPTI_CB_DOMAIN_DRIVER_API ? cbid == CUPTI_DRIVER_TRACE_CBID_cuProfilerStart
                                                            : cbid == CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000;
  // The calls themselves stay outside of the profile.
  if (isStart && info->callbackSite == CUPTI_API_EXIT) Collector::instance().profilerSwitched(true);
  if (!isStart && info->callbackSite == CUPTI_API_ENTER) Collector::instance().profilerSwitched(false);
}

void atExit() { Collector::instance().finish(spool::EndReason::Exit, -1); }
void atQuickExit() { Collector::instance().finish(spool::EndReason::QuickExit, -1); }
void afterForkInChild() { Collector::instance().abandon(); }

}  // namespace

void message(const std::string& text) {
  const std::string line = "==" + std::to_string(::getpid()) + "== sonde: " + text + "\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
}

Collector& Collector::instance() {
  static Collector* const collector = new Collector;
  return *collector;
}

bool Collector::ownProcess() const { return pid_ == ::getpid(); }

bool Collector::start() {
  std::lock_guard lock(startMutex_);
  if (started_.exchange(true)) return active();
  return startLocked();
}

bool Collector::startLocked() {
  const char* folder = environment("SONDE_SPOOL_DIR");
  const char* cuptiPath = environment("SONDE_CUPTI");
  if (folder == nullptr || cuptiPath == nullptr) return false;
  pid_ = ::getpid();
  std::string error;
  if (!cupti_.load(cuptiPath, &error)) {
    message("nothing is profiled: " + error);
    return false;
  }
  if (!openSpool(folder)) {
    message(std::string("nothing is profiled: cannot create a spool in ") + folder + ": " + std::strerror(errno));
    return false;
  }
  bufferBytes_ = std::clamp<unsigned long>(number("SONDE_BUFFER_KB", 1024), 4, 1024 * 1024) * 1024;
  if (const char* kinds = environment("SONDE_KINDS")) {
    for (const char* p = kinds; *p != 0;) {
      char* end = nullptr;
      const unsigned long kind = std::strtoul(p, &end, 10);
      if (end == p) break;
      kinds_.push_back(static_cast<uint32_t>(kind));
      p = *end == ',' ? end + 1 : end;
    }
  }
  writeProcess(cuptiPath);
  if (cupti_.setThreadIdType != nullptr) cupti_.setThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  if (const CUptiResult r = cupti_.registerCallbacks(collector::requestBuffer, collector::completeBuffer);
      r != CUPTI_SUCCESS) {
    const char* why = nullptr;
    cupti_.getResultString(r, &why);
    message(std::string("nothing is profiled: ") + cuptiPath +
            ": cuptiActivityRegisterCallbacks: " + (why != nullptr ? why : "?") +
            " (a libcupti works with the driver that it is made for: NVIDIA's with --device real)");
    // An empty spool would look like a process that was killed.
    writer_.abandon();
    ::unlink(spoolPath_.c_str());
    return false;
  }
  active_.store(true, std::memory_order_release);

  enableKinds(true, /*things=*/true);
  if (number("SONDE_PROFILE_FROM_START", 1) != 0) profilerSwitched(true);
  subscribe();

  const auto period = static_cast<uint32_t>(number("SONDE_FLUSH_MS", 500));
  // Where the library cannot flush by itself, the helper thread does.
  const bool byLibrary = period != 0 && cupti_.flushPeriod != nullptr && cupti_.flushPeriod(period) == CUPTI_SUCCESS;
  startHelperThread(byLibrary ? 0 : period);
  ::pthread_atfork(nullptr, nullptr, afterForkInChild);
  std::atexit(atExit);
  std::at_quick_exit(atQuickExit);
  return true;
}

// One subscription for three purposes: cudaProfilerStart and Stop, counting, and
// the texts of modules.
void Collector::subscribe() {
  const bool bounded = number("SONDE_PROFILE_FROM_START", 1) == 0;
  std::string error;
  counting_.note = [](const std::string& text) { Collector::instance().note(text); };
  const bool counts = counting_.configure(&error);
  if (!error.empty()) note(error);
  const bool modules = std::find(kinds_.begin(), kinds_.end(), CUPTI_ACTIVITY_KIND_MODULE) != kinds_.end();
  if (!bounded && !counts && !modules) return;
  CUpti_SubscriberHandle subscriber = nullptr;
  CUptiResult r = cupti_.subscribe == nullptr || cupti_.enableCallback == nullptr
                      ? CUPTI_ERROR_NOT_SUPPORTED
                      : cupti_.subscribe(&subscriber, onCallback, nullptr);
  const auto failed = [&](const char* what) {
    const char* why = nullptr;
    cupti_.getResultString(r, &why);
    note(std::string(what) + " (" + (why != nullptr ? why : "?") + ")");
  };
  if (bounded) {
    const struct {
      CUpti_CallbackDomain domain;
      uint32_t cbid;
    } calls[] = {{CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart},
                 {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop},
                 {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStart_v4000},
                 {CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaProfilerStop_v4000}};
    for (const auto& call : calls)
      if (r == CUPTI_SUCCESS) r = cupti_.enableCallback(1, subscriber, call.domain, call.cbid);
    if (r != CUPTI_SUCCESS) failed("cudaProfilerStart cannot be watched; nothing was recorded");
  }
  if (modules) {
    if (r == CUPTI_SUCCESS)
      r = cupti_.enableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    if (r != CUPTI_SUCCESS) failed("modules cannot be watched; instructions without source lines have no text");
  }
  if (!counts) return;
  if (r == CUPTI_SUCCESS) r = counting_.watchLaunches(subscriber);
  if (r != CUPTI_SUCCESS) failed("launches cannot be watched; nothing was counted");
}

void Collector::moduleLoaded(const CUpti_ModuleResourceData& module) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  if (!active() || !ownProcess() || module.pCubin == nullptr || module.cubinSize > kMostBytes) return;
  // PTX is text; an ELF image is of no use to a reader.
  std::string text(module.pCubin, ::strnlen(module.pCubin, module.cubinSize));
  if (text.find(".version") == std::string::npos) return;
  const uint32_t entry[2] = {module.moduleId, writer_.stringId(text.c_str())};
  writer_.flushStrings();
  writer_.block(spool::BlockType::ModuleText, entry, sizeof entry);
}

void Collector::driverLaunch(uint32_t cbid, const CUpti_CallbackData& info) {
  if (active() && ownProcess()) counting_.onDriverCall(cbid, info, enabled_.load());
}

bool Collector::openSpool(const std::string& folder) {
  // An exec keeps the process id: the next image takes the next number.
  for (int n = 0; n < 10000; n++) {
    spoolPath_ = folder + "/" + std::to_string(pid_) + "." + std::to_string(n) + ".spool";
    if (writer_.open(spoolPath_, CUPTI_API_VERSION)) return true;
    if (errno != EEXIST) return false;
  }
  return false;
}

void Collector::writeProcess(const char* cuptiPath) {
  std::string json = "{\"pid\":" + std::to_string(pid_) + ",\"ppid\":" + std::to_string(::getppid());
  char text[4096];
  if (const ssize_t n = ::readlink("/proc/self/exe", text, sizeof text - 1); n > 0)
    json += ",\"executable\":" + quoted(std::string(text, static_cast<size_t>(n)));
  if (::getcwd(text, sizeof text) != nullptr) json += ",\"cwd\":" + quoted(text);
  if (::gethostname(text, sizeof text - 1) == 0) json += ",\"host\":" + quoted(text);
  json += ",\"arguments\":[";
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  const std::string line{std::istreambuf_iterator<char>(in), {}};
  bool first = true;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find('\0', at), line.size());
    if (!first) json += ',';
    json += quoted(line.substr(at, end - at));
    first = false;
    at = end + 1;
  }
  uint32_t version = 0;
  uint64_t now = 0;
  cupti_.getVersion(&version);
  cupti_.getTimestamp(&now);
  json += "],\"cupti\":" + quoted(cuptiPath) + ",\"cupti_version\":" + std::to_string(version) +
          ",\"start\":" + std::to_string(now) + "}";
  writer_.block(spool::BlockType::Process, json.data(), json.size());
}

void Collector::note(const std::string& text) {
  const std::string json = "{\"note\":" + quoted(text) + "}";
  writer_.block(spool::BlockType::Process, json.data(), json.size());
}

// Devices, contexts and names are told once, when they come to be: those kinds
// are on whatever the profile's bounds are.
void Collector::enableKinds(bool on, bool things) {
  for (const uint32_t kind : kinds_) {
    // Of modules only the texts are kept, by callback.
    if (kind == CUPTI_ACTIVITY_KIND_MODULE) continue;
    const bool isThing = kind == CUPTI_ACTIVITY_KIND_DEVICE || kind == CUPTI_ACTIVITY_KIND_CONTEXT ||
                         kind == CUPTI_ACTIVITY_KIND_NAME || kind == CUPTI_ACTIVITY_KIND_FUNCTION ||
                         kind == CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR;
    if (isThing != things) continue;
    const auto k = static_cast<CUpti_ActivityKind>(kind);
    CUptiResult r = CUPTI_SUCCESS;
    if (on && kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) r = chooseUnifiedMemoryCounters();
    if (r == CUPTI_SUCCESS) r = on ? cupti_.enable(k) : cupti_.disable(k);
    if (r == CUPTI_SUCCESS || !on) continue;
    const char* why = nullptr;
    cupti_.getResultString(r, &why);
    note("activity kind " + std::to_string(kind) + " is not recorded: " + (why != nullptr ? why : "?"));
  }
}

// Every counter that the library has, on all devices.
CUptiResult Collector::chooseUnifiedMemoryCounters() {
  if (cupti_.configureUnifiedMemory == nullptr) return CUPTI_ERROR_NOT_SUPPORTED;
  CUptiResult first = CUPTI_SUCCESS;
  bool any = false;
  for (uint32_t kind = 1; kind < CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_COUNT; kind++) {
    CUpti_ActivityUnifiedMemoryCounterConfig config{};
    config.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
    config.kind = static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(kind);
    config.enable = 1;
    const CUptiResult r = cupti_.configureUnifiedMemory(&config, 1);
    any = any || r == CUPTI_SUCCESS;
    if (first == CUPTI_SUCCESS) first = r;
  }
  return any ? CUPTI_SUCCESS : first;
}

// Files and their symbols are looked up by `sonde run`, which has time for it;
// what is loaded where is known only here.
void Collector::location(uint64_t pc) {
  if (pc == 0) return;
  {
    std::lock_guard lock(locationsMutex_);
    if (!locationsSeen_.insert(pc).second) return;
  }
  Dl_info info{};
  struct link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(pc), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr)
    return;
  char path[4096];
  const char* module = ::realpath(map->l_name[0] != 0 ? map->l_name : "/proc/self/exe", path);
  if (module == nullptr) module = info.dli_fname;
  const spool::LocationEntry entry{pc, pc - map->l_addr, writer_.stringId(module), writer_.stringId(info.dli_sname)};
  writer_.flushStrings();
  writer_.block(spool::BlockType::Locations, &entry, sizeof entry);
}

void Collector::profilerSwitched(bool on) {
  if (active() && ownProcess() && enabled_.exchange(on) != on) enableKinds(on, /*things=*/false);
}

void Collector::requestBuffer(uint8_t** buffer, size_t* size, size_t* maxRecords) {
  *maxRecords = 0;
  *size = bufferBytes_;
  {
    std::lock_guard lock(poolMutex_);
    if (!pool_.empty()) {
      *buffer = pool_.back();
      pool_.pop_back();
      return;
    }
  }
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, bufferBytes_));
  if (*buffer == nullptr) *size = 0;
}

void Collector::apiName(uint32_t kind, uint32_t cbid) {
  const bool runtime = kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  if (cbid >= namesSeen_[0].size() || namesSeen_[runtime][cbid].load(std::memory_order_relaxed) ||
      namesSeen_[runtime][cbid].exchange(true)) {
    return;
  }
  const char* name = nullptr;
  const auto domain = runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  if (cupti_.getCallbackName(domain, cbid, &name) != CUPTI_SUCCESS || name == nullptr) return;
  const uint32_t entry[4] = {static_cast<uint32_t>(domain), cbid, writer_.stringId(name), 0};
  writer_.flushStrings();
  writer_.block(spool::BlockType::Names, entry, sizeof entry);
}

void Collector::completeBuffer(uint8_t* buffer, size_t validSize) {
  if (buffer == nullptr) return;
  std::vector<unsigned char> payload;
  payload.reserve(validSize + validSize / 8 + 64);
  std::map<uint32_t, uint64_t> skipped;
  uint64_t count = 0;
  spool::RecordLayout layout;
  uint32_t layoutKind = UINT32_MAX;
  CUpti_Activity* record = nullptr;
  CUptiResult more = validSize == 0 ? CUPTI_ERROR_MAX_LIMIT_REACHED : cupti_.getNextRecord(buffer, validSize, &record);
  while (more == CUPTI_SUCCESS) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(record);
    more = cupti_.getNextRecord(buffer, validSize, &record);
    const uint8_t* next = more == CUPTI_SUCCESS ? reinterpret_cast<const uint8_t*>(record) : buffer + validSize;
    uint32_t kind = 0;
    std::memcpy(&kind, bytes, sizeof kind);
    if (kind != layoutKind) layout = spool::recordLayout(layoutKind = kind);
    if (layout.size == 0 || next <= bytes) {
      skipped[kind]++;
      continue;
    }
    // A library of another age has shorter or longer records; the beginning is the same.
    const size_t size = std::min<size_t>(layout.size, static_cast<size_t>(next - bytes));
    const spool::RecordHeader header{static_cast<uint32_t>(size), 0};
    const size_t at = payload.size();
    payload.resize(at + sizeof header + spool::padded(size));
    std::memcpy(&payload[at], &header, sizeof header);
    unsigned char* copy = &payload[at + sizeof header];
    std::memcpy(copy, bytes, size);
    for (const uint16_t offset : layout.strings) {
      if (offset == 0 || offset + sizeof(void*) > size) continue;
      const char* text = nullptr;
      std::memcpy(&text, bytes + offset, sizeof text);
      const uint64_t id = writer_.stringId(text);
      std::memcpy(copy + offset, &id, sizeof id);
    }
    if (kind == CUPTI_ACTIVITY_KIND_OVERHEAD && size >= sizeof(CUpti_ActivityOverhead3)) {
      CUpti_ActivityOverhead3 overhead;
      std::memcpy(&overhead, bytes, sizeof overhead);
      if (overhead.overheadKind == CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL) std::free(overhead.overheadData);
    }
    for (const uint16_t offset : layout.pointers)
      if (offset != 0 && offset + sizeof(void*) <= size) std::memset(copy + offset, 0, sizeof(void*));
    if (kind == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER &&
        size >= offsetof(CUpti_ActivityUnifiedMemoryCounter3, pad)) {
      CUpti_ActivityUnifiedMemoryCounter3 r{};
      std::memcpy(&r, bytes, size);
      if (r.counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT) location(r.value);
    }
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME || kind == CUPTI_ACTIVITY_KIND_DRIVER)
      apiName(kind, reinterpret_cast<const CUpti_ActivityAPI*>(bytes)->cbid);
    count++;
  }
  writer_.flushStrings();
  if (!payload.empty()) {
    if (writer_.block(spool::BlockType::Records, payload.data(), payload.size())) {
      records_ += count;
    } else if (active()) {
      if (dropped_.fetch_add(count) == 0)
        message(std::string("records are lost: cannot write the spool: ") + std::strerror(errno));
      writer_.block(spool::BlockType::Dropped, &count, sizeof count);
    }
  }
  for (const auto& [kind, n] : skipped) {
    const struct {
      uint32_t kind, zero;
      uint64_t n;
    } entry{kind, 0, n};
    writer_.block(spool::BlockType::Skipped, &entry, sizeof entry);
  }
  takeDropped();
  std::lock_guard lock(poolMutex_);
  if (pool_.size() < 64) {
    pool_.push_back(buffer);
  } else {
    std::free(buffer);
  }
}

void Collector::takeDropped() {
  size_t lost = 0;
  if (cupti_.getNumDroppedRecords(nullptr, 0, &lost) != CUPTI_SUCCESS || lost == 0) return;
  dropped_ += lost;
  const uint64_t value = lost;
  writer_.block(spool::BlockType::Dropped, &value, sizeof value);
}

void Collector::flush() {
  if (active() && ownProcess()) cupti_.flushAll(0);
}

void Collector::finish(spool::EndReason reason, int32_t value) {
  if (!active() || !ownProcess()) return;
  std::lock_guard lock(finishMutex_);
  cupti_.flushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  takeDropped();
  spool::EndBlock end{};
  end.reason = static_cast<uint32_t>(reason);
  end.value = value;
  cupti_.getTimestamp(&end.time);
  end.records = records_;
  end.dropped = dropped_;
  writer_.block(spool::BlockType::End, &end, sizeof end);
}

void Collector::abandon() {
  active_.store(false, std::memory_order_release);
  writer_.abandon();
}

}  // namespace sonde::collector
