/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for libnvidia-ml.so.1 for clients that refuse to begin without it.
 * It knows a driver of the 575 branch and as many devices as are asked for;
 * everything that NVML would measure is answered with NOT_SUPPORTED.
 */
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3 };

EXPORT int nvmlInit(void) { return SUCCESS; }
EXPORT int nvmlInit_v2(void) { return SUCCESS; }
EXPORT int nvmlShutdown(void) { return SUCCESS; }
EXPORT const char* nvmlErrorString(int result) { return result == SUCCESS ? "no error" : "not supported"; }
EXPORT int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  snprintf(version, length, "575.57.08");
  return SUCCESS;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char devices[16];
  if (index >= sizeof devices) return INVALID_ARGUMENT;
  *device = &devices[index];
  return SUCCESS;
}

#define NOTHING(name) \
  EXPORT int name(void) { return NOT_SUPPORTED; }
NOTHING(nvmlDeviceGetClockInfo)
NOTHING(nvmlDeviceGetInforomVersion)
NOTHING(nvmlDeviceGetEccMode)
NOTHING(nvmlDeviceGetDetailedEccErrors)
NOTHING(nvmlDeviceGetTotalEccErrors)
NOTHING(nvmlDeviceGetFanSpeed_v2)
NOTHING(nvmlDeviceGetClock)
NOTHING(nvmlDeviceGetMemoryInfo)
NOTHING(nvmlDeviceGetPerformanceState)
NOTHING(nvmlDeviceGetPowerUsage)
NOTHING(nvmlDeviceGetTemperature)
NOTHING(nvmlDeviceGetPowerManagementLimit)
NOTHING(nvmlDeviceGetPowerManagementLimitConstraints)
NOTHING(nvmlDeviceGetUtilizationRates)
NOTHING(nvmlDeviceGetTotalEnergyConsumption)
