// SPDX-License-Identifier: Apache-2.0
// What the runtime remembers: per thread its last error and device, per device
// the primary context.
#ifndef SONDE_SOFTGPU_RUNTIME_STATE_H_
#define SONDE_SOFTGPU_RUNTIME_STATE_H_

#include <atomic>
#include <utility>

#include "softgpu/runtime/driver.h"

namespace sonde::cudart {

// A runtime that is linked into an object of the process has a last error of its own, although this library stands in
// for each of them (static_runtime/). The others, number 0, share one. So do objects beyond this many.
inline constexpr unsigned kMostRuntimes = 32;

struct ThreadState {
  cudaError_t lastErrors[kMostRuntimes] = {};
  int device = 0;           // chosen by cudaSetDevice; counts while no context is current
  unsigned resetsSeen = 0;  // compared with the process's count of cudaDeviceReset calls
};
ThreadState& threadState();

// Where a thread's call says which runtime it means; null: there is one only. See sonde_cudart_marks.
using RuntimeMark = unsigned* (*)();
inline std::atomic<RuntimeMark> runtimeMark{nullptr};

// The runtime that an entry was called as. To be asked once, before anything that may call another entry.
inline unsigned takeRuntime() {
  const RuntimeMark mark = runtimeMark.load(std::memory_order_relaxed);
  if (!mark) [[likely]]
    return 0;
  const unsigned runtime = std::exchange(*mark(), 0);
  return runtime < kMostRuntimes ? runtime : 0;
}

// Keeps an error for cudaGetLastError and hands it back.
inline cudaError_t recordError(cudaError_t error, unsigned runtime) {
  if (error != cudaSuccess) [[unlikely]]
    threadState().lastErrors[runtime] = error;
  return error;
}

// Makes sure that the driver is up and the thread has a context: the current
// one, or the primary context of its device. Loads modules with managed
// variables the first time.
cudaError_t ensureContext();

// Makes the primary context of `device` current (creating it).
cudaError_t usePrimaryContext(int device);

// The device of the current context, else the thread's choice.
cudaError_t currentDevice(int* device);
cudaError_t deviceCount(int* count);
// cudaErrorInvalidDevice unless 0 <= device < count.
cudaError_t checkDevice(int device);
// The primary context of a device, without making it current.
cudaError_t primaryContext(int device, CUcontext* context);
// Destroys the primary context of the current device.
cudaError_t resetCurrentDevice();

}  // namespace sonde::cudart

#endif  // SONDE_SOFTGPU_RUNTIME_STATE_H_
