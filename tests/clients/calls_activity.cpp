// SPDX-License-Identifier: Apache-2.0
// The functions of the Activity API, as the tables name them.
#include <x86intrin.h>

#include <cstdlib>
#include <cstring>

#include "player.h"
#include "structures.h"

namespace clients {

namespace {

Player* active = nullptr;
uint64_t timeStampCounter() { return __rdtsc(); }

CUpti_ActivityKind kindOf(const Step& s) { return static_cast<CUpti_ActivityKind>(kindNumber(s.arguments.at(0))); }
CUcontext currentContext() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context;
}

struct Attribute {
  const char* name;
  CUpti_ActivityAttribute number;
  size_t size;
};
const Attribute kAttributes[] = {
    {"DEVICE_BUFFER_SIZE", CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, 8},
    {"DEVICE_BUFFER_SIZE_CDP", CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, 8},
    {"DEVICE_BUFFER_POOL_LIMIT", CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, 8},
    {"PROFILING_SEMAPHORE_POOL_SIZE", CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, 8},
    {"PROFILING_SEMAPHORE_POOL_LIMIT", CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, 8},
    {"PER_THREAD_ACTIVITY_BUFFER", CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, 1},
};
const Attribute& attributeOf(const Step& s) {
  for (const Attribute& a : kAttributes) {
    if (s.arguments.at(0) == a.name) return a;
  }
  throw std::out_of_range("no attribute " + s.arguments[0]);
}

}  // namespace

CUptiResult Player::registerCallbacks(const Step& s) {
  active = this;
  if (s.function == "ActivityRegisterCallbacks_v6050") {
    return cuptiActivityRegisterCallbacks_v6050(requested, completed);
  }
  return cuptiActivityRegisterCallbacks(requested, completed);
}

CUptiResult Player::enable(const Step& s) {
  const std::string& name = s.arguments.at(0);
  Kind& k = kinds_[name];
  if (!k.ever) k.from = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
  if (!k.ever) k.sumsFrom = truth_.sums;
  const CUptiResult result = cuptiActivityEnable(kindOf(s));
  k.on = k.ever = result == CUPTI_SUCCESS;
  return result;
}

CUptiResult Player::disable(const Step& s) {
  const std::string& name = s.arguments.at(0);
  Kind& k = kinds_[name];
  if (k.on) k.until = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
  k.on = false;
  return cuptiActivityDisable(kindOf(s));
}

CUptiResult Player::enableContext(const Step& s) {
  const std::string& name = s.arguments.at(0);
  Kind& k = kinds_[name];
  if (!k.ever) k.from = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
  const CUptiResult result = cuptiActivityEnableContext(currentContext(), kindOf(s));
  k.on = k.ever = result == CUPTI_SUCCESS;
  return result;
}

CUptiResult Player::disableContext(const Step& s) {
  const std::string& name = s.arguments.at(0);
  Kind& k = kinds_[name];
  if (k.on) k.until = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
  k.on = false;
  return cuptiActivityDisableContext(currentContext(), kindOf(s));
}

CUptiResult Player::flushAll(const Step& s) {
  for (auto& [name, k] : kinds_) {
    if (k.on) k.until = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
  }
  return cuptiActivityFlushAll(static_cast<uint32_t>(std::stoul(s.arguments.at(0))));
}

CUptiResult Player::flushPeriod(const Step& s) {
  return cuptiActivityFlushPeriod(static_cast<uint32_t>(std::stoul(s.arguments.at(0))));
}

// Clients call it for each record of a buffer, which walk() does; here once more, where it must fail.
CUptiResult Player::nextRecord(const Step&) {
  CUpti_Activity* record = nullptr;
  uint8_t none[8] = {};
  return cuptiActivityGetNextRecord(none, 0, &record);
}

CUptiResult Player::dropped(const Step&) {
  size_t count = 1;
  const CUptiResult result = cuptiActivityGetNumDroppedRecords(nullptr, 0, &count);
  if (result == CUPTI_SUCCESS && count != 0) wrong(std::to_string(count) + " records dropped");
  return result;
}

CUptiResult Player::configureUnifiedMemory(const Step& s) {
  std::vector<CUpti_ActivityUnifiedMemoryCounterConfig> configs;
  for (const std::string& kind : s.arguments) {
    CUpti_ActivityUnifiedMemoryCounterConfig c{};
    c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
    c.kind = kind == "HTOD"        ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD
             : kind == "DTOH"      ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH
             : kind == "CPU_FAULT" ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT
             : kind == "GPU_FAULT" ? CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT
                                   : throw std::out_of_range(kind);
    c.enable = 1;
    configs.push_back(c);
  }
  return cuptiActivityConfigureUnifiedMemoryCounter(configs.data(), static_cast<uint32_t>(configs.size()));
}

static CUpti_ExternalCorrelationKind externalKind(const std::string& name) {
  const std::map<std::string, CUpti_ExternalCorrelationKind> kinds = {
      {"UNKNOWN", CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN},
      {"OPENACC", CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC},
      {"CUSTOM0", CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0},
      {"CUSTOM1", CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1},
      {"CUSTOM2", CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2}};
  return kinds.at(name);
}

CUptiResult Player::push(const Step& s) {
  const uint64_t id = std::stoull(s.arguments.at(1));
  pushed_.insert(id);
  return cuptiActivityPushExternalCorrelationId(externalKind(s.arguments[0]), id);
}

CUptiResult Player::pop(const Step& s) {
  uint64_t id = 0;
  const CUptiResult result = cuptiActivityPopExternalCorrelationId(externalKind(s.arguments.at(0)), &id);
  if (result == CUPTI_SUCCESS && pushed_.count(id) == 0) wrong("popped an id that was not pushed");
  return result;
}

CUptiResult Player::setAttribute(const Step& s) {
  const Attribute& a = attributeOf(s);
  uint64_t value = std::stoull(s.arguments.at(1));
  size_t size = a.size;
  return cuptiActivitySetAttribute(a.number, &size, &value);
}

CUptiResult Player::getAttribute(const Step& s) {
  const Attribute& a = attributeOf(s);
  uint64_t value = 0;
  size_t size = a.size;
  const CUptiResult result = cuptiActivityGetAttribute(a.number, &size, &value);
  if (s.arguments.size() > 1 && value != std::stoull(s.arguments[1]))
    wrong(s.arguments[0] + " is " + std::to_string(value));
  return result;
}

CUptiResult Player::timestampCallback(const Step&) {
  ownClock_ = true;
  return cuptiActivityRegisterTimestampCallback(timeStampCounter);
}

CUptiResult Player::option(const Step& s) {
  const auto on = static_cast<uint8_t>(std::stoul(s.arguments.at(0)));
  if (s.function == "ActivityEnableLatencyTimestamps") return cuptiActivityEnableLatencyTimestamps(on);
  if (s.function == "ActivityEnableCudaEventDeviceTimestamps") return cuptiActivityEnableCudaEventDeviceTimestamps(on);
  if (s.function == "ActivityEnableAllSyncRecords") return cuptiActivityEnableAllSyncRecords(on);
  if (s.function == "ActivityEnableLaunchAttributes") return cuptiActivityEnableLaunchAttributes(on);
  return cuptiActivityEnableHWTrace(on);
}

CUptiResult Player::singleApi(const Step& s) {
  const bool driver = s.function == "ActivityEnableDriverApi";
  const uint32_t cbid =
      callbackNumber(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, s.arguments.at(0));
  const auto on = static_cast<uint8_t>(std::stoul(s.arguments.at(1)));
  if (on == 0) silenced_.insert(s.arguments[0].substr(0, s.arguments[0].rfind("_v")));
  return driver ? cuptiActivityEnableDriverApi(cbid, on) : cuptiActivityEnableRuntimeApi(cbid, on);
}

CUptiResult Player::pcSampling(const Step&) {
  CUpti_ActivityPCSamplingConfig config{};
  config.samplingPeriod = CUPTI_ACTIVITY_PC_SAMPLING_PERIOD_MID;
  return cuptiActivityConfigurePCSampling(currentContext(), &config);
}

// -- The calls of before CUDA 6.0.
CUptiResult Player::enqueueBuffer(const Step& s) {
  const size_t size = std::stoul(s.arguments.at(0));
  auto* buffer = static_cast<uint8_t*>(std::aligned_alloc(8, size));
  const CUptiResult result = cuptiActivityEnqueueBuffer(nullptr, 0, buffer, size);
  if (result == CUPTI_SUCCESS)
    out_[buffer] = size;
  else
    std::free(buffer);
  return result;
}

CUptiResult Player::queryBuffer(const Step&) {
  size_t valid = 0;
  const CUptiResult result = cuptiActivityQueryBuffer(nullptr, 0, &valid);
  if (result == CUPTI_SUCCESS && valid == 0) wrong("the enqueued buffer is empty");
  return result;
}

CUptiResult Player::dequeueBuffer(const Step& s) {
  uint8_t* buffer = nullptr;
  size_t valid = 0;
  for (auto& [name, k] : kinds_) {
    if (k.on) k.until = truth_.records[name == "CONCURRENT_KERNEL" ? "KERNEL" : name].size();
  }
  const CUptiResult result = cuptiActivityDequeueBuffer(nullptr, 0, &buffer, &valid);
  (void)s;
  if (result == CUPTI_SUCCESS) complete(buffer, out_[buffer], valid);
  return result;
}

// -- Buffers.
void CUPTIAPI Player::requested(uint8_t** buffer, size_t* size, size_t* maxRecords) {
  *maxRecords = 0;
  active->request(buffer, size);
}

void CUPTIAPI Player::completed(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid) {
  active->complete(buffer, size, valid);
}

void Player::request(uint8_t** buffer, size_t* size) {
  runSteps("requested");
  *size = 32 * 1024;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  std::lock_guard lock(mutex_);
  out_[*buffer] = *size;
}

void Player::complete(uint8_t* buffer, size_t size, size_t valid) {
  {
    std::lock_guard lock(mutex_);
    auto found = out_.find(buffer);
    if (found == out_.end() || found->second != size) {
      errors_ += "a buffer came back that was not handed out\n";
      return;
    }
    out_.erase(found);
  }
  walk(buffer, valid);
  runSteps("completed");
  std::free(buffer);
}

void Player::walk(uint8_t* buffer, size_t valid) {
  std::vector<uint8_t*> starts;
  CUpti_Activity* record = nullptr;
  CUptiResult result;
  while ((result = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
    starts.push_back(reinterpret_cast<uint8_t*>(record));
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) wrong("a buffer ends with " + std::to_string(result));
  starts.push_back(buffer + valid);
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i + 1 < starts.size(); ++i) {
    records_.emplace_back(static_cast<size_t>(starts[i + 1] - starts[i]) / 8);
    std::memcpy(records_.back().data(), starts[i], records_.back().size() * 8);
  }
}

}  // namespace clients
