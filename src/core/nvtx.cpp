// SPDX-License-Identifier: Apache-2.0
#include "core/nvtx.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/core.h"
#include "core/strings.h"

namespace sonde::core::nvtx {
namespace {

std::atomic<uint32_t> nextMarker{1};

struct State {
  std::mutex mutex;
  std::map<std::string, Domain*> domains;
  std::unordered_map<uint64_t, OpenRange> ranges;  // of rangeStart
};
State& state() {
  static State& instance = *new State;
  return instance;
}

void setPayload(const EventAttributes& a, CUpti_ActivityMarkerData2* record) {
  switch (a.payloadType) {
    case kUint64: record->payload.metricValueUint64 = a.payload.u64; break;
    case kUint32: record->payload.metricValueUint64 = a.payload.u32; break;
    case kInt64:
    case kInt32:
      record->payloadKind = CUPTI_METRIC_VALUE_KIND_INT64;
      record->payload.metricValueInt64 = a.payloadType == kInt64 ? a.payload.i64 : a.payload.i32;
      return;
    case kDouble:
    case kFloat:
      record->payloadKind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
      record->payload.metricValueDouble = a.payloadType == kDouble ? a.payload.f64 : static_cast<double>(a.payload.f32);
      return;
    default: return;
  }
  record->payloadKind = CUPTI_METRIC_VALUE_KIND_UINT64;
}

// The MARKER_DATA record of a marker; with several extended payloads one for
// each of them.
void appendData(ThreadState& thread, Client& client, uint32_t id, const Domain* domain, const Event& event) {
  CUpti_ActivityMarkerData2 data{};
  data.kind = CUPTI_ACTIVITY_KIND_MARKER_DATA;
  data.flags = CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE;
  data.id = id;
  data.cuptiDomainId = domain != nullptr ? domain->id : 0;
  if (const EventAttributes* a = event.attributes) {
    if (a->colorType == kColorArgb) {
      data.flags = CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB;
      data.color = a->color;
    }
    data.category = a->category;
    setPayload(*a, &data);
  }
  // Clients of 6.5 do not know that such a payload is theirs to free.
  if (event.payloadCount == 0 || client.manual6050) {
    client.append(thread, data);
    return;
  }
  for (size_t i = 0; i < event.payloadCount; ++i) {
    PayloadData* copy = copyPayload(domain, event.payloads[i]);
    data.payloadKind = CUPTI_METRIC_VALUE_KIND_NVTX_EXTENDED_PAYLOAD;
    data.payload.metricValueNvtxExtendedPayload = reinterpret_cast<uint64_t>(copy);
    if (!client.append(thread, data)) releasePayload(data);
  }
}

// MARKER and MARKER_DATA records for the clients in `mask`; returns who got one.
uint32_t record(uint32_t mask, CUpti_ActivityFlag flags, uint32_t id, const Domain* domain, const Event& event) {
  if (mask == 0) return 0;
  ThreadState& thread = threadState();
  const uint64_t time = now();
  const uint32_t wantData = wantedKinds[CUPTI_ACTIVITY_KIND_MARKER_DATA].load(std::memory_order_relaxed);
  forEachClient(mask, [&](Client& client) {
    CUpti_ActivityMarker2 marker{};
    marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
    marker.flags = flags;
    ClientClock* clock = client.clock.load(std::memory_order_acquire);
    marker.timestamp = clock != nullptr ? clock->read() : time;
    marker.id = id;
    marker.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    marker.objectId.pt.processId = processId();
    marker.objectId.pt.threadId = threadIdFor(client, thread);
    marker.name = event.text;
    marker.domain = domain != nullptr ? domain->name : nullptr;
    client.append(thread, marker);
    if ((wantData >> client.index & 1) == 0) return;
    if (event.attributes != nullptr || event.payloadCount != 0) appendData(thread, client, id, domain, event);
  });
  return mask;
}

uint32_t wanting() { return wantedKinds[CUPTI_ACTIVITY_KIND_MARKER].load(std::memory_order_relaxed); }

}  // namespace

const char* internWide(const wchar_t* text) {
  if (text == nullptr) return nullptr;
  std::string utf8;
  for (; *text != 0; ++text) {
    const auto c = static_cast<uint32_t>(*text);
    auto tail = [&](int shift) { utf8 += static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
    if (c < 0x80) {
      utf8 += static_cast<char>(c);
    } else if (c < 0x800) {
      utf8 += static_cast<char>(0xc0 | c >> 6);
      tail(0);
    } else if (c < 0x10000) {
      utf8 += static_cast<char>(0xe0 | c >> 12);
      tail(6), tail(0);
    } else {
      utf8 += static_cast<char>(0xf0 | ((c >> 18) & 7));
      tail(12), tail(6), tail(0);
    }
  }
  return intern(std::string_view(utf8));
}

Event eventOf(const EventAttributes* attributes) {
  Event event;
  event.attributes = attributes;
  if (attributes == nullptr) return event;
  if (attributes->payloadType == kExtendedPayload && attributes->payload.u64 != 0 && attributes->reserved > 0) {
    event.payloads = reinterpret_cast<const PayloadData*>(attributes->payload.u64);
    event.payloadCount = static_cast<size_t>(attributes->reserved);
  }
  switch (attributes->messageType) {
    case kAscii: event.text = intern(attributes->message.ascii); break;
    case kWide: event.text = internWide(attributes->message.wide); break;
    case kRegistered: event.text = static_cast<const char*>(attributes->message.registered); break;
    default: break;
  }
  return event;
}

void mark(const Domain* domain, const Event& event) {
  record(wanting(), CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, nextMarker.fetch_add(1), domain, event);
}

uint64_t rangeStart(const Domain* domain, const Event& event) {
  const uint32_t id = nextMarker.fetch_add(1);
  const uint32_t clients = record(wanting(), CUPTI_ACTIVITY_FLAG_MARKER_START, id, domain, event);
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.ranges[id] = {id, clients};
  return id;
}

void rangeEnd(const Domain* domain, uint64_t id, const Event& event) {
  State& s = state();
  OpenRange range;
  {
    std::lock_guard lock(s.mutex);
    auto found = s.ranges.find(id);
    if (found == s.ranges.end()) return;
    range = found->second;
    s.ranges.erase(found);
  }
  record(wanting() & range.clients, CUPTI_ACTIVITY_FLAG_MARKER_END, range.id, domain, event);
}

int rangePush(const Domain* domain, const Event& event) {
  const uint32_t id = nextMarker.fetch_add(1);
  const uint32_t clients = record(wanting(), CUPTI_ACTIVITY_FLAG_MARKER_START, id, domain, event);
  auto& stack = threadState().pushedRanges[domain];
  stack.push_back({id, clients});
  return static_cast<int>(stack.size()) - 1;
}

int rangePop(const Domain* domain, const Event& event) {
  auto& stack = threadState().pushedRanges[domain];
  if (stack.empty()) return -1;
  const OpenRange range = stack.back();
  stack.pop_back();
  record(wanting() & range.clients, CUPTI_ACTIVITY_FLAG_MARKER_END, range.id, domain, event);
  return static_cast<int>(stack.size());
}

const Domain* createDomain(const char* name) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  Domain*& domain = s.domains[name != nullptr ? name : ""];
  if (domain == nullptr) domain = new Domain{intern(name), static_cast<uint32_t>(s.domains.size())};
  return domain;
}

void name(Named what, void* handle, uint32_t number, const char* text) {
  const uint32_t mask = wantedKinds[CUPTI_ACTIVITY_KIND_NAME].load(std::memory_order_relaxed);
  const SondePlatform* platform = attachedPlatform();
  if (mask == 0 || platform == nullptr) return;
  CUpti_ActivityName record{};
  record.kind = CUPTI_ACTIVITY_KIND_NAME;
  record.name = intern(text);
  uint32_t device = 0, contextId = 0, streamId = 0;
  switch (what) {
    case Named::kThread:
      record.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
      record.objectId.pt.processId = processId();
      record.objectId.pt.threadId = number;
      break;
    case Named::kDevice:
      record.objectKind = CUPTI_ACTIVITY_OBJECT_DEVICE;
      record.objectId.dcs.deviceId = number;
      break;
    case Named::kContext:
    case Named::kStream: {
      SondeHandle context = what == Named::kContext ? handle : nullptr;
      if (context == nullptr) platform->currentContext(&context);
      if (context == nullptr || platform->contextId(context, &contextId) != 0) return;
      platform->contextDevice(context, &device);
      if (what == Named::kStream && platform->streamId(context, handle, 0, &streamId) != 0) return;
      record.objectKind = what == Named::kContext ? CUPTI_ACTIVITY_OBJECT_CONTEXT : CUPTI_ACTIVITY_OBJECT_STREAM;
      record.objectId.dcs.deviceId = device;
      record.objectId.dcs.contextId = contextId;
      record.objectId.dcs.streamId = streamId;
      break;
    }
  }
  ThreadState& thread = threadState();
  forEachClient(mask, [&](Client& client) { client.append(thread, record); });
}

}  // namespace sonde::core::nvtx
