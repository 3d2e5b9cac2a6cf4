// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/nvml.h"

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {
namespace {

// Facts of NVML's interface.
using Device = void*;
enum : int { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4 };
enum : unsigned { kClockSm = 1, kClockMemory = 2 };
constexpr unsigned kClockLimitTdp = 0xffffff01;  // in the place of a number of MHz
constexpr unsigned long long kReasonSetClocks = 2;
// CUpti_ClockControl_Status.
enum : uint32_t { kStatusUnlocked = 1, kStatusLocked = 2, kStatusBoostOn = 4, kStatusBoostOff = 5 };

struct Nvml {
  int (*init)() = nullptr;
  int (*byBusId)(const char*, Device*) = nullptr;
  int (*clock)(Device, unsigned, unsigned*) = nullptr;
  int (*maxClock)(Device, unsigned, unsigned*) = nullptr;
  int (*defaultClock)(Device, unsigned, unsigned*) = nullptr;
  int (*maxBoost)(Device, unsigned, unsigned*) = nullptr;
  int (*supportedMemory)(Device, unsigned*, unsigned*) = nullptr;
  int (*supportedSm)(Device, unsigned, unsigned*, unsigned*) = nullptr;
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
  get(nvml.maxBoost, {"nvmlDeviceGetMaxCustomerBoostClock"});
  get(nvml.supportedMemory, {"nvmlDeviceGetSupportedMemoryClocks"});
  get(nvml.supportedSm, {"nvmlDeviceGetSupportedGraphicsClocks"});
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

// A value that the card may not have is `none`.
template <class Function, class... A>
unsigned askOr(unsigned none, Function function, Device device, A... a) {
  unsigned value = 0;
  if (function == nullptr || function(device, a..., &value) != kSuccess) return none;
  return value;
}
template <class Function, class... A>
unsigned ask(Function function, Device device, A... a) {
  return askOr(0, function, device, a...);
}

// The highest clock that the card supports and that is not above `limit`;
// `limit` itself where the card does not tell.
unsigned supported(Device device, unsigned limit) {
  unsigned memory[64], sm[512];
  unsigned memories = 64, count = 512;
  if (nvml.supportedMemory == nullptr || nvml.supportedSm == nullptr ||
      nvml.supportedMemory(device, &memories, memory) != kSuccess || memories == 0)
    return limit;
  const unsigned fastest = *std::max_element(memory, memory + std::min(memories, 64u));
  if (nvml.supportedSm(device, fastest, &count, sm) != kSuccess) return limit;
  unsigned best = 0;
  for (unsigned i = 0; i < std::min(count, 512u); ++i)
    if (sm[i] <= limit) best = std::max(best, sm[i]);
  return best != 0 ? best : limit;
}

int lockAt(Device device, uint32_t mode) {
  if (mode == 1) {
    // Drivers that know no such limit take it for a number that is no clock.
    const int error = nvml.lock(device, kClockLimitTdp, kClockLimitTdp);
    if (error != kInvalidArgument && error != kNotSupported) return error;
  }
  unsigned clock = mode == 1 ? ask(nvml.defaultClock, device, kClockSm) : ask(nvml.maxBoost, device, kClockSm);
  if (clock == 0 && mode == 2) clock = ask(nvml.maxClock, device, kClockSm);
  if (clock == 0) return kNotSupported;
  clock = supported(device, clock);
  return nvml.lock(device, clock, clock);
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
  info->fanSpeedPercent = askOr(~0u, nvml.fan, device);
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
  const int32_t result = toResult(lockAt(device, mode));
  if (result == CUDA_SUCCESS) locked().insert(busId);
  return result;
}

int32_t nvmlClockUnlock(const char* busId) {
  std::lock_guard guard(mutex());
  if (locked().count(busId) == 0) return CUDA_SUCCESS;
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
  if (locked().count(busId) != 0) {
    *status = kStatusLocked;
    *ours = 1;
    return CUDA_SUCCESS;
  }
  unsigned long long reasons = 0;
  if (nvml.reasons == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const int32_t e = toResult(nvml.reasons(device, &reasons))) return e;
  unsigned now = 0, normally = 0;
  *ours = 0;
  if ((reasons & kReasonSetClocks) != 0) {
    *status = kStatusLocked;
  } else if (nvml.autoBoost != nullptr && nvml.autoBoost(device, &now, &normally) == kSuccess && now != normally) {
    *status = now != 0 ? kStatusBoostOn : kStatusBoostOff;
  } else {
    *status = kStatusUnlocked;
  }
  return CUDA_SUCCESS;
}

int32_t nvmlAutoBoost(const char* busId, uint32_t* enabled, uint32_t* pid) {
  std::lock_guard guard(mutex());
  Device device = nullptr;
  if (const int32_t e = find(busId, &device)) return e;
  unsigned now = 0, normally = 0;
  if (nvml.autoBoost == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (const int32_t e = toResult(nvml.autoBoost(device, &now, &normally))) return e;
  const char* asked = std::getenv("CUDA_AUTO_BOOST");
  const bool byUs = asked != nullptr && *asked != 0 && (std::strcmp(asked, "0") != 0) == (now != 0);
  *enabled = now;
  *pid = byUs ? static_cast<uint32_t>(getpid()) : 0;
  return CUDA_SUCCESS;
}

void nvmlForget() {
  std::lock_guard guard(mutex());
  loaded = false;
  locked().clear();
}

}  // namespace sonde::platform::nvidia
