// SPDX-License-Identifier: Apache-2.0
#include "softgpu/runtime/state.h"

#include <atomic>
#include <map>
#include <mutex>

#include "softgpu/runtime/registry.h"

namespace sonde::cudart {
namespace {

struct Primaries {
  std::mutex mutex;
  std::map<int, CUcontext> retained;  // by device; one reference each, for the life of the process
  std::atomic<unsigned> resets{0};
};

Primaries& primaries() {
  static Primaries& instance = *new Primaries;
  return instance;
}

}  // namespace

ThreadState& threadState() {
  thread_local ThreadState state;
  return state;
}

cudaError_t deviceCount(int* count) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuDeviceGetCount, count);
}

cudaError_t checkDevice(int device) {
  int count = 0;
  SONDE_TRY(deviceCount(&count));
  return device >= 0 && device < count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t primaryContext(int device, CUcontext* context) {
  SONDE_TRY(checkDevice(device));
  Primaries& all = primaries();
  std::lock_guard lock(all.mutex);
  if (auto found = all.retained.find(device); found != all.retained.end()) {
    *context = found->second;
    return cudaSuccess;
  }
  CUdevice handle = 0;
  SONDE_TRY(SONDE_CU(cuDeviceGet, &handle, device));
  CUcontext made = nullptr;
  SONDE_TRY(SONDE_CU(cuDevicePrimaryCtxRetain, &made, handle));
  all.retained[device] = made;
  *context = made;
  return cudaSuccess;
}

cudaError_t usePrimaryContext(int device) {
  CUcontext context = nullptr;
  SONDE_TRY(primaryContext(device, &context));
  SONDE_TRY(SONDE_CU(cuCtxSetCurrent, context));
  ThreadState& thread = threadState();
  thread.device = device;
  thread.resetsSeen = primaries().resets.load(std::memory_order_acquire);
  return registry().initialiseManaged();
}

cudaError_t ensureContext() {
  SONDE_TRY(initDriver());
  ThreadState& thread = threadState();
  CUcontext current = nullptr;
  SONDE_TRY(SONDE_CU(cuCtxGetCurrent, &current));
  unsigned resets = primaries().resets.load(std::memory_order_acquire);
  if (current && thread.resetsSeen == resets) return registry().initialiseManaged();
  if (current) {
    // Some device was reset since: the context may be a primary one that is gone.
    thread.resetsSeen = resets;
    unsigned flags = 0;
    if (SONDE_CU(cuCtxGetFlags, &flags) == cudaSuccess) return registry().initialiseManaged();
  }
  return usePrimaryContext(thread.device);
}

cudaError_t currentDevice(int* device) {
  SONDE_TRY(initDriver());
  CUcontext current = nullptr;
  CUdevice found = 0;
  if (SONDE_CU(cuCtxGetCurrent, &current) == cudaSuccess && current && SONDE_CU(cuCtxGetDevice, &found) == cudaSuccess)
    *device = found;
  else
    *device = threadState().device;
  return cudaSuccess;
}

cudaError_t resetCurrentDevice() {
  int device = 0;
  SONDE_TRY(currentDevice(&device));
  Primaries& all = primaries();
  CUdevice handle = 0;
  SONDE_TRY(SONDE_CU(cuDeviceGet, &handle, device));
  cudaError_t status;
  {
    std::lock_guard lock(all.mutex);
    status = SONDE_CU(cuDevicePrimaryCtxReset, handle);
    if (all.retained.erase(device)) SONDE_CU(cuDevicePrimaryCtxRelease, handle);
    all.resets.fetch_add(1, std::memory_order_release);
  }
  SONDE_CU(cuCtxSetCurrent, nullptr);
  threadState().device = device;
  registry().forgetManaged();
  return status;
}

}  // namespace sonde::cudart

using namespace sonde::cudart;

// For static_runtime, which puts a number before each call that a runtime inside an object would have got.
extern "C" __attribute__((visibility("default"))) void sonde_cudart_marks(unsigned* (*ofThread)()) {
  runtimeMark.store(ofThread, std::memory_order_relaxed);
}
