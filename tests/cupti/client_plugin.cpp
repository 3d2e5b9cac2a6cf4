// SPDX-License-Identifier: Apache-2.0
// A second client: a shared object that traces on its own. Loaded by tests,
// several times under several names.
#include <cupti.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#define PLUGIN extern "C" __attribute__((visibility("default")))

namespace {

std::atomic<uint32_t> records[CUPTI_ACTIVITY_KIND_COUNT];
std::atomic<uint32_t> bytes{0}, callbacks{0}, buffers{0};
std::atomic<bool> refuse{false};
CUpti_SubscriberHandle subscriber;

std::atomic<uint32_t> untouched{0};  // bytes behind the records that came back as they were given

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxRecords) {
  *size = refuse ? 0 : 8192;
  *buffer = refuse ? nullptr : static_cast<uint8_t*>(std::malloc(8192));
  if (*buffer != nullptr) std::memset(*buffer, 0xee, 8192);
  *maxRecords = 0;
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid) {
  for (size_t i = valid; i < size; ++i) untouched += buffer[i] == 0xee;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) records[record->kind].fetch_add(1);
  bytes.fetch_add(static_cast<uint32_t>(valid));
  buffers.fetch_add(1);
  std::free(buffer);
}

void CUPTIAPI called(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) { callbacks.fetch_add(1); }

}  // namespace

// Results are kept in a volatile so that no call becomes a jump: the caller's
// address is this object's.
PLUGIN int pluginStart(uint32_t kind) {
  volatile int result = cuptiActivityRegisterCallbacks(requested, completed);
  if (result == CUPTI_SUCCESS) result = cuptiActivityEnable(static_cast<CUpti_ActivityKind>(kind));
  return result;
}
PLUGIN int pluginDisable(uint32_t kind) {
  volatile int result = cuptiActivityDisable(static_cast<CUpti_ActivityKind>(kind));
  return result;
}
PLUGIN int pluginSubscribe(uint32_t domain, uint32_t cbid) {
  volatile int result = cuptiSubscribe(&subscriber, called, nullptr);
  if (result == CUPTI_SUCCESS) {
    result = cuptiEnableCallback(1, subscriber, static_cast<CUpti_CallbackDomain>(domain), cbid);
  }
  return result;
}
PLUGIN int pluginUnsubscribe() {
  volatile int result = cuptiUnsubscribe(subscriber);
  return result;
}
PLUGIN int pluginFlush() {
  volatile int result = cuptiActivityFlushAll(0);
  return result;
}
PLUGIN int pluginFlushOne() {
  volatile int result = cuptiActivityFlush(nullptr, 0, 0);
  return result;
}
PLUGIN int pluginEnable(uint32_t kind) {
  volatile int result = cuptiActivityEnable(static_cast<CUpti_ActivityKind>(kind));
  return result;
}
// Ends with a jump, not a call, when it is optimised.
PLUGIN int pluginFlushByJump() { return cuptiActivityFlushAll(0); }
PLUGIN int pluginEnableByJump(uint32_t kind) { return cuptiActivityEnable(static_cast<CUpti_ActivityKind>(kind)); }
PLUGIN int pluginFinalize() {
  volatile int result = cuptiFinalize();
  return result;
}
PLUGIN uint32_t pluginDropped() {
  size_t dropped = 0;
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  return static_cast<uint32_t>(dropped);
}
PLUGIN uint32_t pluginRecords(uint32_t kind) { return records[kind].load(); }
PLUGIN uint32_t pluginAttribute(uint32_t attribute) {
  uint64_t value = 0;
  size_t size = sizeof value;
  volatile int result = cuptiActivityGetAttribute(static_cast<CUpti_ActivityAttribute>(attribute), &size, &value);
  return result == CUPTI_SUCCESS ? static_cast<uint32_t>(value) : UINT32_MAX;
}
PLUGIN uint32_t pluginUntouched() { return untouched.load(); }
PLUGIN uint32_t pluginBuffers() { return buffers.load(); }
PLUGIN uint32_t pluginBytes() { return bytes.load(); }
PLUGIN uint32_t pluginCallbacks() { return callbacks.load(); }
PLUGIN void pluginRefuse(int on) { refuse = on != 0; }
