// SPDX-License-Identifier: Apache-2.0
//
// The driver's side of the tools interface (platform/tools_api.h): who
// listens, and the calls that report to it.
#pragma once

#include <atomic>
#include <cstdint>

#include "platform/tools_api.h"
#include "softgpu/driver/cuda_api.h"

namespace sonde::softgpu::driver::tools {

inline constexpr uint32_t kCallbackBytes = 1024;
extern volatile uint8_t driverEnabled[kCallbackBytes];
extern volatile uint8_t runtimeEnabled[kCallbackBytes];
extern std::atomic<uint64_t> interest;

// Does anybody listen to this driver call? The listener writes the bytes at
// any time.
inline bool listening(uint32_t cbid) { return __atomic_load_n(&driverEnabled[cbid], __ATOMIC_RELAXED) != 0; }

inline bool wants(uint64_t bits) { return (interest.load(std::memory_order_relaxed) & bits) != 0; }

// Each reports when somebody listens, and does nothing otherwise. Callers
// hold no locks.
void reportWork(const SondeWork& work);
void reportWorkEnqueued(SondeWork& work);
void reportResource(const SondeResource& event);
void reportSync(const SondeSync& event);
void reportOverhead(const SondeOverhead& event);
void reportPreemption(const SondePreemption& event);
void reportUnifiedMemory(const SondeUnifiedMemory& event);
void reportContextFailed(void* context, uint32_t uid, int32_t error, const char* message);

// One API call that somebody listens to, from enter to exit. Made only when
// the call's enabled byte is set.
class ApiScope {
 public:
  ApiScope(uint32_t cbid, const char* name, const void* params, const char* symbol = nullptr);
  ~ApiScope();
  // Reports the exit; gives the result the listener left.
  CUresult exit(CUresult result);
  SondeApiCall call{};

 private:
  bool outermost_;
};

// Gives all that a call reports one correlation id, also when nobody listens to
// the call itself.
class CallCorrelation {
 public:
  CallCorrelation();
  ~CallCorrelation();
  CallCorrelation(const CallCorrelation&) = delete;

 private:
  bool alone_;
};

// The mangled name of a kernel handle (CUfunction or CUkernel); NULL for
// anything else. Valid as long as the module is.
const char* kernelName(const void* function);

const SondePlatform* platform();

}  // namespace sonde::softgpu::driver::tools
