// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/nvml.h"

#include <cuda.h>
#include <dlfcn.h>

#include <mutex>
#include <set>
#include <string>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {
namespace {

// Facts of NVML's interface.
using Device = void*;
enum : int { kSuccess = 0, kNotSupported = 3, kNoPermission = 4 };
enum : unsigned { kClockSm = 1, kClockMemory = 2 };

struct Nvml {
  int (*init)() = nullptr;
  int (*byBusId)(const char*, Device*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*maxClock)(Device, unsigned, unsigned*) = nullptr;
  int (*defaultClock)(Device, unsigned, unsigned*) = nullptr;
  int (*temperature)(Device, unsigned, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  int (*powerLimit)(Device, unsigned*) = nullptr;
  int (*fan)(Device, unsigned*) = nullptr;
  int (*linkGeneration)(Device, unsigned*) = nullptr;
  int (*linkWidth)(Device, unsigned*) = nullptr;
  int (*reasons)(Device, unsigned long long*) = nullptr;
  int (*lock)(Device, unsigned, unsigned) = nullptr;
  int (*unlock)(Device) = nullptr;
  int (*migMode)(Device, unsigned*, unsigned*) = nullptr;
  int (*autoBoost)(Device, unsigned*, unsigned*) = nullptr;
  bool ready = false;
};

std::mutex& mutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}
Nvml nvml;                         // guarded by mutex
bool loaded = false;               // …
std::set<std::string>& locked() {  // … devices that this process locked
  static auto& set = *new std::set<std::string>;
  return set;
}

void load() {
  if (loaded) return;
  loaded = true;
  nvml = {};
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    debug("libnvidia-ml.so.1 cannot be loaded: no clocks, power or temperature");
    return;
  }
  auto get = [library](auto& to, std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (void* f = dlsym(library, name)) {
        to = reinterpret_cast<std::remove_reference_t<decltype(to)>>(f);
        return;
      }
  };
  get(nvml.init, {"nvmlInit_v2", "nvmlInit"});
  get(nvml.byBusId, {"nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId"});
  get(nvml.clock, {"nvmlDeviceGetClockInfo"});
  get(nvml.maxClock, {"nvmlDeviceGetMaxClockInfo"});
  get(nvml.defaultClock, {"nvmlDeviceGetDefaultApplicationsClock"});
  get(nvml.temperature, {"nvmlDeviceGetTemperature"});
  get(nvml.power, {"nvmlDeviceGetPowerUsage"});
  get(nvml.powerLimit, {"nvmlDeviceGetEnforcedPowerLimit"});
  get(nvml.fan, {"nvmlDeviceGetFanSpeed"});
  get(nvml.linkGeneration, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  get(nvml.linkWidth, {"nvmlDeviceGetCurrPcieLinkWidth"});
  get(nvml.reasons, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  get(nvml.lock, {"nvmlDeviceSetGpuLockedClocks"});
  get(nvml.unlock, {"nvmlDeviceResetGpuLockedClocks"});
  get(nvml.migMode, {"nvmlDeviceGetMigMode"});
  get(nvml.autoBoost, {"nvmlDeviceGetAutoBoostedClocksEnabled"});
  nvml.ready = nvml.init != nullptr && nvml.byBusId != nullptr && nvml.init() == kSuccess;
}

int32_t toResult(int error) {
  switch (error) {
    case kSuccess: return CUDA_SUCCESS;
    case kNotSupported: return CUDA_ERROR_NOT_SUPPORTED;
    case kNoPermission: return CUDA_ERROR_NOT_PERMITTED;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

int32_t find(const char* busId, Device* device) {
  load();
  if (!nvml.ready) return CUDA_ERROR_NOT_SUPPORTED;
  return toResult(nvml.byBusId(busId, device));
}

// A value that the card may not have (a fan, say) is 0.
template <class Function, class... A>
unsigned ask(Function function, Device device, A... a) {
  unsigned value = 0;
  if (function == nullptr || function(device, a..., &value) != kSuccess) return 0;
  return value;
}

}  // namespace

int32_t nvmlClockInfo(const char* busId, SondeClockInfo* info) {
  std::lock_guard guard(mutex());
  Device device = nullptr;
  if (const int32_t e = find(busId, &device)) return e;
  info->smClockMHz = ask(nvml.clock, device, kClockSm);
  info->memoryClockMHz = ask(nvml.clock, device, kClockMemory);
  info->baseClockMHz = ask(nvml.defaultClock, device, kClockSm);
  info->boostClockMHz = ask(nvml.maxClock, device, kClockSm);
  info->pcieLinkGen = ask(nvml.linkGeneration, device);
  info->pcieLinkWidth = ask(nvml.linkWidth, device);
  info->temperatureC = ask(nvml.temperature, device, 0u);
  info->fanSpeedPercent = ask(nvml.fan, device);
  info->powerMilliwatts = ask(nvml.power, device);
  info->powerLimitMilliwatts = ask(nvml.powerLimit, device);
  unsigned long long reasons = 0;
  if (nvml.reasons == nullptr || nvml.reasons(device, &reasons) != kSuccess) {
    info->throttleReasons = 0x40000000;  // not told
  } else {
    // Idle, set clocks, power cap and slowdown have the same bits; anything
    // newer has no name of its own there.
    info->throttleReasons = static_cast<uint32_t>(reasons & 0xf) | ((reasons & ~0xfull) != 0 ? 0x80000000u : 0u);
  }
  return CUDA_SUCCESS;
}

int32_t nvmlClockLock(const char* busId, uint32_t mode) {
  if (mode != 1 && mode != 2) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard guard(mutex());
  Device device = nullptr;
  if (const int32_t e = find(busId, &device)) return e;
  if (nvml.lock == nullptr || nvml.unlock == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  unsigned now = 0, later = 0;
  if (nvml.migMode != nullptr && nvml.migMode(device, &now, &later) == kSuccess && now != 0)
    return CUDA_ERROR_NOT_SUPPORTED;  // the clock is also that of the other parts
  const unsigned clock = mode == 1 ? ask(nvml.defaultClock, device, kClockSm) : ask(nvml.maxClock, device, kClockSm);
  if (clock == 0) return CUDA_ERROR_NOT_SUPPORTED;
  const int32_t result = toResult(nvml.lock(device, clock, clock));
  if (result == CUDA_SUCCESS) locked().insert(busId);
  return result;
}

int32_t nvmlClockUnlock(const char* busId) {
  std::lock_guard guard(mutex());
  Device device = nullptr;
  if (const int32_t e = find(busId, &device)) return e;
  if (nvml.unlock == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const int32_t result = toResult(nvml.unlock(device));
  if (result == CUDA_SUCCESS) locked().erase(busId);
  return result;
}

int32_t nvmlClockStatus(const char* busId, uint32_t* status, int* ours) {
  std::lock_guard guard(mutex());
  Device device = nullptr;
  if (const int32_t e = find(busId, &device)) return e;
  *ours = locked().count(busId) != 0;
  unsigned long long reasons = 0;
  const bool set = nvml.reasons != nullptr && nvml.reasons(device, &reasons) == kSuccess && (reasons & 2) != 0;
  *status = *ours || set ? 2 : 1;
  return CUDA_SUCCESS;
}

int32_t nvmlAutoBoost(const char* busId, uint32_t* enabled, uint32_t* pid) {
  std::lock_guard guard(mutex());
  Device device = nullptr;
  if (const int32_t e = find(busId, &device)) return e;
  unsigned now = 0, normally = 0;
  if (nvml.autoBoost == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const int32_t e = toResult(nvml.autoBoost(device, &now, &normally))) return e;
  *enabled = now;
  *pid = 0;
  return CUDA_SUCCESS;
}

void nvmlForget() {
  std::lock_guard guard(mutex());
  loaded = false;
  locked().clear();
}

}  // namespace sonde::platform::nvidia
