// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libnvidia-ml.so.1: a card that exists in environment variables.
#include <cstdio>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default"))) int

enum { kSuccess = 0, kNotSupported = 3, kNoPermission = 4 };

static int give(unsigned* to, unsigned value) {
  *to = value;
  return kSuccess;
}

EXPORT nvmlInit_v2() { return kSuccess; }
EXPORT nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static int card;
  *device = &card;
  return kSuccess;
}
EXPORT nvmlDeviceGetClockInfo(void*, unsigned type, unsigned* mhz) { return give(mhz, type == 1 ? 1200 : 2600); }
EXPORT nvmlDeviceGetMaxClockInfo(void*, unsigned type, unsigned* mhz) { return give(mhz, type == 1 ? 1980 : 2600); }
EXPORT nvmlDeviceGetDefaultApplicationsClock(void*, unsigned, unsigned* mhz) { return give(mhz, 1100); }
EXPORT nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* c) {
  return sensor == 0 ? give(c, 41) : kNotSupported;
}
EXPORT nvmlDeviceGetPowerUsage(void*, unsigned* mw) { return give(mw, 123456); }
EXPORT nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* mw) { return give(mw, 700000); }
EXPORT nvmlDeviceGetFanSpeed(void*, unsigned*) { return kNotSupported; }
EXPORT nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* v) { return give(v, 5); }
EXPORT nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* v) { return give(v, 16); }
EXPORT nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* v) {
  const char* text = std::getenv("NVML_REASONS");
  *v = text ? std::strtoull(text, nullptr, 10) : 0;
  return kSuccess;
}
EXPORT nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* later) {
  *later = 0;
  return give(now, std::getenv("NVML_MIG") ? 1 : 0);
}
EXPORT nvmlDeviceSetGpuLockedClocks(void*, unsigned least, unsigned most) {
  if (std::getenv("NVML_DENY")) return kNoPermission;
  char text[32];
  std::snprintf(text, sizeof text, "%u-%u", least, most);
  setenv("NVML_LOCKED", text, 1);
  return kSuccess;
}
EXPORT nvmlDeviceResetGpuLockedClocks(void*) {
  if (std::getenv("NVML_DENY")) return kNoPermission;
  setenv("NVML_LOCKED", "", 1);
  return kSuccess;
}
