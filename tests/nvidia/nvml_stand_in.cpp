// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libnvidia-ml.so.1: one card. What would be kept by the driver
// is kept in the file that NVML_STAND_IN names, so that processes share it; the
// rest comes from environment variables:
//
//   NVML_DENY=1           no permission to lock, unlock
//   NVML_DENY_QUERIES=1   nor to ask why the clocks are what they are
//   NVML_MIG=1            the card is divided
//   NVML_NO_LIMITS=1      clock limits have no names, only numbers
//   NVML_REASONS=n        why the clocks are what they are, next to a lock
//   NVML_AUTO_BOOST=now,normally
//
// OLD_DRIVER: without the functions of newer drivers, and with older names.
#include <cstdio>
#include <cstdlib>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

enum { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNoPermission = 4, kInsufficientSize = 7 };
constexpr unsigned kTdp = 0xffffff01, kTdpMHz = 1095;

int give(unsigned* to, unsigned value) {
  *to = value;
  return kSuccess;
}

// An array whose room is in *count, as NVML takes it.
int giveAll(unsigned* count, unsigned* to, std::initializer_list<unsigned> values) {
  const unsigned room = *count;
  *count = static_cast<unsigned>(values.size());
  if (room < values.size()) return kInsufficientSize;
  for (const unsigned v : values) *to++ = v;
  return kSuccess;
}

std::string stateFile() {
  const char* path = std::getenv("NVML_STAND_IN");
  return path ? path : "";
}

// The clocks of a lock; 0 without one.
void lockedTo(unsigned* least, unsigned* most) {
  *least = *most = 0;
  if (std::FILE* f = std::fopen(stateFile().c_str(), "r")) {
    if (std::fscanf(f, "%u-%u", least, most) != 2) *least = *most = 0;
    std::fclose(f);
  }
}

}  // namespace

// Tests look for it before they lock anything.
EXPORT nvmlStandIn() { return 1; }

#ifdef OLD_DRIVER
EXPORT nvmlInit() { return kSuccess; }
EXPORT nvmlDeviceGetHandleByPciBusId(const char*, void** device) {
#else
EXPORT nvmlInit_v2() { return kSuccess; }
EXPORT nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
#endif
  static int card;
  *device = &card;
  return kSuccess;
}
EXPORT nvmlDeviceGetClockInfo(void*, unsigned type, unsigned* mhz) {
  unsigned least, most;
  lockedTo(&least, &most);
  if (type == 1 && most != 0) return give(mhz, most == kTdp ? kTdpMHz : most);
  return give(mhz, type == 1 ? 1200 : 2600);
}
EXPORT nvmlDeviceGetMaxClockInfo(void*, unsigned type, unsigned* mhz) { return give(mhz, type == 1 ? 1980 : 2600); }
EXPORT nvmlDeviceGetDefaultApplicationsClock(void*, unsigned, unsigned* mhz) { return give(mhz, 1105); }
EXPORT nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* c) {
  return sensor == 0 ? give(c, 41) : kNotSupported;
}
EXPORT nvmlDeviceGetPowerUsage(void*, unsigned* mw) { return give(mw, 123456); }
EXPORT nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* mw) { return give(mw, 700000); }
EXPORT nvmlDeviceGetFanSpeed(void*, unsigned*) { return kNotSupported; }
EXPORT nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* v) { return give(v, 5); }
EXPORT nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* v) { return give(v, 16); }
#ifndef OLD_DRIVER
EXPORT nvmlDeviceGetMaxCustomerBoostClock(void*, unsigned, unsigned* mhz) { return give(mhz, 1970); }
EXPORT nvmlDeviceGetSupportedMemoryClocks(void*, unsigned* count, unsigned* mhz) {
  return giveAll(count, mhz, {2600, 1600});
}
EXPORT nvmlDeviceGetSupportedGraphicsClocks(void*, unsigned memory, unsigned* count, unsigned* mhz) {
  if (memory == 1600) return giveAll(count, mhz, {1200, 345});
  return memory == 2600 ? giveAll(count, mhz, {1980, 1965, 1110, 1095, 345}) : kInvalidArgument;
}
EXPORT nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* v) {
  if (std::getenv("NVML_DENY_QUERIES")) return kNoPermission;
  const char* text = std::getenv("NVML_REASONS");
  unsigned least, most;
  lockedTo(&least, &most);
  *v = (text ? std::strtoull(text, nullptr, 10) : 0) | (most != 0 && least == most ? 2 : 0);
  return kSuccess;
}
EXPORT nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* later) {
  *later = 0;
  return give(now, std::getenv("NVML_MIG") ? 1 : 0);
}
EXPORT nvmlDeviceGetAutoBoostedClocksEnabled(void*, unsigned* now, unsigned* normally) {
  const char* text = std::getenv("NVML_AUTO_BOOST");
  return text && std::sscanf(text, "%u,%u", now, normally) == 2 ? kSuccess : kNotSupported;
}
EXPORT nvmlDeviceSetGpuLockedClocks(void*, unsigned least, unsigned most) {
  if (std::getenv("NVML_DENY")) return kNoPermission;
  if (least > most || (least >= 0xffffff00 && std::getenv("NVML_NO_LIMITS"))) return kInvalidArgument;
  std::FILE* f = std::fopen(stateFile().c_str(), "w");
  if (!f) return 999;
  std::fprintf(f, "%u-%u", least, most);
  std::fclose(f);
  return kSuccess;
}
EXPORT nvmlDeviceResetGpuLockedClocks(void*) {
  if (std::getenv("NVML_DENY")) return kNoPermission;
  std::remove(stateFile().c_str());
  return kSuccess;
}
#endif
