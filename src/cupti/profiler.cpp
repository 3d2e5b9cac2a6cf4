// SPDX-License-Identifier: Apache-2.0
// The few functions of the profiler interface that need no hardware counters.
// Tools call them whatever interface they use afterwards: to load the library,
// to name a chip, and to ask whether a device can be profiled in this way at
// all, which is answered with no.
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

template <class Params>
CUptiResult checkParams(const Params* params, size_t size) {
  if (params == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "pParams is NULL");
  if (params->structSize < size) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER,
                "pParams->structSize is %zu; set it to the structure's …_STRUCT_SIZE, %zu", params->structSize, size);
  }
  if (params->pPriv != nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "pParams->pPriv is not NULL");
  return CUPTI_SUCCESS;
}

CUptiResult checkDevice(const SondePlatform& platform, uint64_t device) {
  uint32_t count = 0;
  if (platform.deviceCount(&count) != 0) return fail(CUPTI_ERROR_NOT_INITIALIZED, "call cuInit first");
  if (device < count) return CUPTI_SUCCESS;
  return fail(CUPTI_ERROR_INVALID_DEVICE, "there is no device %llu (devices: %u)",
              static_cast<unsigned long long>(device), count);
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* pParams) {
  if (const CUptiResult r = checkParams(pParams, CUpti_Profiler_Initialize_Params_STRUCT_SIZE)) return r;
  return requirePlatform() != nullptr ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

CUptiResult CUPTIAPI cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params* pParams) {
  return checkParams(pParams, CUpti_Profiler_DeInitialize_Params_STRUCT_SIZE);
}

CUptiResult CUPTIAPI cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* pParams) {
  // Programs of older releases have no `api`, programs of still older ones no `wsl`: they fill in less.
  constexpr size_t kFirst = CUPTI_PROFILER_STRUCT_SIZE(CUpti_Profiler_DeviceSupported_Params, cmp);
  if (const CUptiResult r = checkParams(pParams, kFirst)) return r;
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  if (const CUptiResult r = checkDevice(*platform, static_cast<uint64_t>(pParams->cuDevice))) return r;
  pParams->isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  pParams->architecture = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  pParams->sli = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  pParams->vGpu = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  pParams->confidentialCompute = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  pParams->cmp = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  if (pParams->structSize >= CUPTI_PROFILER_STRUCT_SIZE(CUpti_Profiler_DeviceSupported_Params, wsl))
    pParams->wsl = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* pParams) {
  if (const CUptiResult r = checkParams(pParams, CUpti_Device_GetChipName_Params_STRUCT_SIZE)) return r;
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  if (const CUptiResult r = checkDevice(*platform, pParams->deviceIndex)) return r;
  const char* chip = nullptr;
  if (platform->deviceString(static_cast<uint32_t>(pParams->deviceIndex), "chip", &chip) != 0 || chip == nullptr) {
    return fail(CUPTI_ERROR_NOT_SUPPORTED, "the platform %s does not name the chip of device %zu", platform->name,
                pParams->deviceIndex);
  }
  pParams->pChipName = chip;
  return CUPTI_SUCCESS;
}

}  // extern "C"
