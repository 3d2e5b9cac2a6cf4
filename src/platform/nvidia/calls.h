// SPDX-License-Identifier: Apache-2.0
//
// The driver functions that the platform calls itself, without their hooks.
// An entry is nullptr when the driver has no such function.
#pragma once

#include <cuda.h>

namespace sonde::platform::nvidia {

// One name a line: clang-format never comes to rest on several.
#define SONDE_OWN_CALLS(X)              \
  X(cuDriverGetVersion)                 \
  X(cuDeviceGet)                        \
  X(cuDeviceGetCount)                   \
  X(cuDeviceGetAttribute)               \
  X(cuDeviceGetName)                    \
  X(cuDeviceGetUuid)                    \
  X(cuDeviceTotalMem)                   \
  X(cuDeviceGetPCIBusId)                \
  X(cuDevicePrimaryCtxGetState)         \
  X(cuDevicePrimaryCtxRetain)           \
  X(cuDevicePrimaryCtxRelease)          \
  X(cuCtxGetCurrent)                    \
  X(cuCtxSetCurrent)                    \
  X(cuCtxPushCurrent)                   \
  X(cuCtxPopCurrent)                    \
  X(cuCtxGetDevice)                     \
  X(cuCtxGetStreamPriorityRange)        \
  X(cuModuleLoadData)                   \
  X(cuModuleUnload)                     \
  X(cuModuleGetFunction)                \
  X(cuFuncGetAttribute)                 \
  X(cuFuncGetName)                      \
  X(cuFuncGetModule)                    \
  X(cuFuncLoad)                         \
  X(cuKernelGetName)                    \
  X(cuKernelGetFunction)                \
  X(cuLaunchKernel)                     \
  X(cuStreamCreateWithPriority)         \
  X(cuStreamDestroy)                    \
  X(cuStreamGetFlags)                   \
  X(cuStreamGetPriority)                \
  X(cuStreamIsCapturing)                \
  X(cuStreamGetAttribute)               \
  X(cuOccupancyMaxPotentialClusterSize) \
  X(cuOccupancyMaxActiveClusters)       \
  X(cuStreamSynchronize)                \
  X(cuThreadExchangeStreamCaptureMode)  \
  X(cuEventCreate)                      \
  X(cuEventDestroy)                     \
  X(cuEventRecord)                      \
  X(cuEventQuery)                       \
  X(cuEventElapsedTime)                 \
  X(cuMemHostAlloc)                     \
  X(cuMemFreeHost)                      \
  X(cuMemAlloc)                         \
  X(cuMemFree)                          \
  X(cuMemcpyDtoHAsync)                  \
  X(cuMemsetD8Async)                    \
  X(cuPointerGetAttribute)              \
  X(cuMemGetAddressRange)               \
  X(cuPointerGetAttributes)             \
  X(cuDeviceGetMemPool)                 \
  X(cuMemPoolGetAttribute)              \
  X(cuGraphClone)                       \
  X(cuGraphDestroy)                     \
  X(cuGraphGetNodes)                    \
  X(cuGraphGetEdges)                    \
  X(cuGraphNodeGetType)                 \
  X(cuGraphNodeFindInClone)             \
  X(cuGraphKernelNodeGetParams)         \
  X(cuGraphKernelNodeGetAttribute)      \
  X(cuGraphMemcpyNodeGetParams)         \
  X(cuGraphMemsetNodeGetParams)         \
  X(cuGraphChildGraphNodeGetGraph)      \
  X(cuGraphMemAllocNodeGetParams)       \
  X(cuGraphAddEventRecordNode)          \
  X(cuGraphAddKernelNode)               \
  X(cuGraphDestroyNode)                 \
  X(cuGraphCreate)                      \
  X(cuGraphInstantiateWithFlags)        \
  X(cuGraphLaunch)                      \
  X(cuGraphExecDestroy)                 \
  X(cuGraphAddDependencies)             \
  X(cuGraphRemoveDependencies)          \
  X(cuGraphExecEventRecordNodeSetEvent)

struct OwnCalls {
  // The names are macros for the newest versions: members and uses follow.
#define X(name) decltype(&::name) name;
  SONDE_OWN_CALLS(X)
#undef X
};

extern OwnCalls own;

// Resolves `own` from the originals of the hooks, and where there is none from
// the library. False: a function is missing without which nothing works; `why`
// names it.
bool resolveOwnCalls(void* library, const char** why);

// Whatever the thread was in, a stream capture of the application does not
// forbid or notice what we do meanwhile.
class OutsideCapture {
 public:
  OutsideCapture() {
    if (own.cuThreadExchangeStreamCaptureMode) own.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ~OutsideCapture() {
    if (own.cuThreadExchangeStreamCaptureMode) own.cuThreadExchangeStreamCaptureMode(&mode_);
  }

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// Makes a context current for the scope.
class WithContext {
 public:
  explicit WithContext(CUcontext context) : pushed_(own.cuCtxPushCurrent(context) == CUDA_SUCCESS) {}
  ~WithContext() {
    CUcontext gone;
    if (pushed_) own.cuCtxPopCurrent(&gone);
  }
  explicit operator bool() const { return pushed_; }

 private:
  bool pushed_;
};

}  // namespace sonde::platform::nvidia
