/* SPDX-License-Identifier: Apache-2.0
 *
 * The runtime API inside kernels, for clang: sondecc includes it with
 * -rdc=true. The driver has the functions; nothing is linked.
 *
 * sondecc writes k<<<grid, block, shared, stream>>>(arguments) in device code
 * as T(grid, block, shared, stream)(arguments), since clang 18 to 21 refuse it
 * there. T is sonde::DeviceLaunch of the kernel that overload resolution means.
 */
#ifndef SONDE_SOFTGPU_DEVICE_RUNTIME_H_
#define SONDE_SOFTGPU_DEVICE_RUNTIME_H_

#if defined(__CUDA__) && defined(__clang__)

#include "cuda_runtime.h"

#define SONDE_DEVICE_API extern "C" __device__ cudaError_t
SONDE_DEVICE_API cudaLaunchDeviceV2(void* parameters, cudaStream_t stream);
extern "C" __device__ void* cudaGetParameterBufferV2(void* function, dim3 grid, dim3 block, unsigned int sharedBytes);
SONDE_DEVICE_API cudaLaunchDevice(void* function, void* parameters, dim3 grid, dim3 block, unsigned int sharedBytes,
                                  cudaStream_t stream);
extern "C" __device__ void* cudaGetParameterBuffer(size_t alignment, size_t size);
/* Toolkits have it up to CUDA 11. */
SONDE_DEVICE_API cudaDeviceSynchronize(void);
SONDE_DEVICE_API cudaGetLastError(void);
SONDE_DEVICE_API cudaPeekAtLastError(void);
extern "C" __device__ const char* cudaGetErrorString(cudaError_t error);
extern "C" __device__ const char* cudaGetErrorName(cudaError_t error);
SONDE_DEVICE_API cudaGetDevice(int* device);
SONDE_DEVICE_API cudaGetDeviceCount(int* count);
SONDE_DEVICE_API cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device);
SONDE_DEVICE_API cudaDeviceGetLimit(size_t* value, enum cudaLimit limit);
SONDE_DEVICE_API cudaRuntimeGetVersion(int* version);
SONDE_DEVICE_API cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
SONDE_DEVICE_API cudaStreamDestroy(cudaStream_t stream);
SONDE_DEVICE_API cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
SONDE_DEVICE_API cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
SONDE_DEVICE_API cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
SONDE_DEVICE_API cudaEventDestroy(cudaEvent_t event);
SONDE_DEVICE_API cudaMalloc(void** address, size_t bytes);
SONDE_DEVICE_API cudaFree(void* address);
SONDE_DEVICE_API cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                                 cudaStream_t stream);
SONDE_DEVICE_API cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream);
#undef SONDE_DEVICE_API

#define SONDE_LAUNCH_INLINE __device__ __attribute__((always_inline, nodebug))

namespace sonde {

/* Outside of any function, so that clang takes the kernel's address. */
template <class Function, Function kernel>
struct KernelAddress {
  static __device__ void* const value;
};
template <class Function, Function kernel>
__device__ void* const KernelAddress<Function, kernel>::value = (void*)kernel;

template <class Function, Function kernel>
class DeviceLaunch;
template <class... Parameters, void (*kernel)(Parameters...)>
class DeviceLaunch<void (*)(Parameters...), kernel> {
 public:
  SONDE_LAUNCH_INLINE DeviceLaunch(dim3 grid, dim3 block, size_t sharedBytes = 0, cudaStream_t stream = 0)
      : grid_(grid), block_(block), sharedBytes_(sharedBytes), stream_(stream) {}
  /* Errors are kept for cudaGetLastError, as everywhere. */
  SONDE_LAUNCH_INLINE void operator()(Parameters... parameters) const {
    void* buffer = cudaGetParameterBufferV2(KernelAddress<void (*)(Parameters...), kernel>::value, grid_, block_,
                                            (unsigned int)sharedBytes_);
    if (!buffer) return;
    size_t at = 0;
    const int inOrder[] = {(int)at, (put(buffer, at, parameters), 0)...};
    (void)inOrder;
    cudaLaunchDeviceV2(buffer, stream_);
  }

 private:
  template <class T>
  static SONDE_LAUNCH_INLINE void put(void* buffer, size_t& at, const T& value) {
    at = (at + alignof(T) - 1) / alignof(T) * alignof(T);
    memcpy((char*)buffer + at, &value, sizeof(T));
    at += sizeof(T);
  }
  dim3 grid_, block_;
  size_t sharedBytes_;
  cudaStream_t stream_;
};

/* The same for a call that leaves arguments out: Defaults::add gives them. */
template <class Launch, class Defaults>
class DeviceLaunchWith : private Launch {
 public:
  using Launch::Launch;
  template <class... Given>
  SONDE_LAUNCH_INLINE void operator()(Given... given) const {
    Defaults::add(static_cast<const Launch&>(*this), given...);
  }
};

} /* namespace sonde */

#undef SONDE_LAUNCH_INLINE

#endif /* clang compiling CUDA */
#endif /* SONDE_SOFTGPU_DEVICE_RUNTIME_H_ */
