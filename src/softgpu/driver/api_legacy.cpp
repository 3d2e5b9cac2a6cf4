// SPDX-License-Identifier: Apache-2.0
//
// First versions of functions, for programs that look them up by name: where
// only the version number changed they do what their successors do. Those with
// 32-bit device pointers cannot work in a 64-bit process and say so. And the
// launch of the first days: the block's shape, the parameters and the shared
// memory are set on the function, one call each.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/legacy.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"

#undef cuCtxCreate
#undef cuCtxDestroy
#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuDeviceTotalMem
#undef cuEventDestroy
#undef cuLinkAddData
#undef cuLinkAddFile
#undef cuLinkCreate
#undef cuMemAlloc
#undef cuMemAllocHost
#undef cuMemAllocPitch
#undef cuMemcpyDtoD
#undef cuMemcpyDtoDAsync
#undef cuMemcpyDtoH
#undef cuMemcpyDtoHAsync
#undef cuMemcpyHtoD
#undef cuMemcpyHtoDAsync
#undef cuMemFree
#undef cuMemGetAddressRange
#undef cuMemGetInfo
#undef cuMemHostGetDevicePointer
#undef cuMemHostRegister
#undef cuMemsetD16
#undef cuMemsetD32
#undef cuMemsetD8
#undef cuModuleGetGlobal
#undef cuStreamDestroy

namespace sonde::softgpu::driver {

CUresult cuCtxCreate_v2_impl(CUcontext* pctx, unsigned int flags, CUdevice dev);
CUresult cuCtxDestroy_v2_impl(CUcontext ctx);
CUresult cuCtxPopCurrent_v2_impl(CUcontext* pctx);
CUresult cuCtxPushCurrent_v2_impl(CUcontext ctx);
CUresult cuDevicePrimaryCtxRelease_v2_impl(CUdevice dev);
CUresult cuDevicePrimaryCtxReset_v2_impl(CUdevice dev);
CUresult cuDevicePrimaryCtxSetFlags_v2_impl(CUdevice dev, unsigned int flags);
CUresult cuDeviceTotalMem_v2_impl(size_t* bytes, CUdevice dev);
CUresult cuEventDestroy_v2_impl(CUevent hEvent);
CUresult cuLinkAddData_v2_impl(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                               unsigned int numOptions, CUjit_option* options, void** optionValues);
CUresult cuLinkAddFile_v2_impl(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions,
                               CUjit_option* options, void** optionValues);
CUresult cuLinkCreate_v2_impl(unsigned int numOptions, CUjit_option* options, void** optionValues,
                              CUlinkState* stateOut);
CUresult cuMemAllocHost_v2_impl(void** pp, size_t bytesize);
CUresult cuMemGetInfo_v2_impl(size_t* free, size_t* total);
CUresult cuMemHostRegister_v2_impl(void* p, size_t bytesize, unsigned int Flags);
CUresult cuStreamDestroy_v2_impl(CUstream hStream);

DRIVER_API(cuCtxCreate)(CUcontext* pctx, unsigned int flags, CUdevice dev) {
  return cuCtxCreate_v2_impl(pctx, flags, dev);
}
DRIVER_API(cuCtxDestroy)(CUcontext ctx) { return cuCtxDestroy_v2_impl(ctx); }
DRIVER_API(cuCtxPopCurrent)(CUcontext* pctx) { return cuCtxPopCurrent_v2_impl(pctx); }
DRIVER_API(cuCtxPushCurrent)(CUcontext ctx) { return cuCtxPushCurrent_v2_impl(ctx); }
DRIVER_API(cuDevicePrimaryCtxRelease)(CUdevice dev) { return cuDevicePrimaryCtxRelease_v2_impl(dev); }
DRIVER_API(cuDevicePrimaryCtxReset)(CUdevice dev) { return cuDevicePrimaryCtxReset_v2_impl(dev); }
DRIVER_API(cuDevicePrimaryCtxSetFlags)(CUdevice dev, unsigned int flags) {
  return cuDevicePrimaryCtxSetFlags_v2_impl(dev, flags);
}
DRIVER_API(cuEventDestroy)(CUevent hEvent) { return cuEventDestroy_v2_impl(hEvent); }
DRIVER_API(cuStreamDestroy)(CUstream hStream) { return cuStreamDestroy_v2_impl(hStream); }
DRIVER_API(cuMemAllocHost)(void** pp, unsigned int bytesize) { return cuMemAllocHost_v2_impl(pp, bytesize); }
DRIVER_API(cuMemHostRegister)(void* p, size_t bytesize, unsigned int Flags) {
  return cuMemHostRegister_v2_impl(p, bytesize, Flags);
}
DRIVER_API(cuLinkCreate)
(unsigned int numOptions, CUjit_option* options, void** optionValues, CUlinkState* stateOut) {
  return cuLinkCreate_v2_impl(numOptions, options, optionValues, stateOut);
}
DRIVER_API(cuLinkAddData)
(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name, unsigned int numOptions,
 CUjit_option* options, void** optionValues) {
  return cuLinkAddData_v2_impl(state, type, data, size, name, numOptions, options, optionValues);
}
DRIVER_API(cuLinkAddFile)
(CUlinkState state, CUjitInputType type, const char* path, unsigned int numOptions, CUjit_option* options,
 void** optionValues) {
  return cuLinkAddFile_v2_impl(state, type, path, numOptions, options, optionValues);
}

namespace {

// A size as 32 bits can tell it.
unsigned int clamped(size_t bytes) {
  return static_cast<unsigned int>(std::min<size_t>(bytes, std::numeric_limits<unsigned int>::max()));
}

}  // namespace

CUresult needs64Bits(const char* name) {
  say(std::string(name) + " has 32-bit device pointers, which this process cannot use; call " + name + "_v2");
  return CUDA_ERROR_NOT_SUPPORTED;
}

DRIVER_API(cuDeviceTotalMem)(unsigned int* bytes, CUdevice dev) {
  size_t all = 0;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = cuDeviceTotalMem_v2_impl(&all, dev)) return e;
  *bytes = clamped(all);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemGetInfo)(unsigned int* free, unsigned int* total) {
  size_t f = 0, t = 0;
  if (!free || !total) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = cuMemGetInfo_v2_impl(&f, &t)) return e;
  *free = clamped(f);
  *total = clamped(t);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemAlloc)(CUdeviceptr_v1* dptr, unsigned int bytesize) { return needs64Bits("cuMemAlloc"); }
DRIVER_API(cuMemFree)(CUdeviceptr_v1 dptr) { return needs64Bits("cuMemFree"); }
DRIVER_API(cuMemAllocPitch)
(CUdeviceptr_v1* dptr, unsigned int* pPitch, unsigned int WidthInBytes, unsigned int Height,
 unsigned int ElementSizeBytes) {
  return needs64Bits("cuMemAllocPitch");
}
DRIVER_API(cuMemGetAddressRange)(CUdeviceptr_v1* pbase, unsigned int* psize, CUdeviceptr_v1 dptr) {
  return needs64Bits("cuMemGetAddressRange");
}
DRIVER_API(cuMemHostGetDevicePointer)(CUdeviceptr_v1* pdptr, void* p, unsigned int Flags) {
  return needs64Bits("cuMemHostGetDevicePointer");
}
DRIVER_API(cuModuleGetGlobal)(CUdeviceptr_v1* dptr, unsigned int* bytes, CUmodule hmod, const char* name) {
  return needs64Bits("cuModuleGetGlobal");
}
DRIVER_API(cuMemcpyHtoD)(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned int ByteCount) {
  return needs64Bits("cuMemcpyHtoD");
}
DRIVER_API(cuMemcpyDtoH)(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
  return needs64Bits("cuMemcpyDtoH");
}
DRIVER_API(cuMemcpyDtoD)(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount) {
  return needs64Bits("cuMemcpyDtoD");
}
DRIVER_API(cuMemcpyHtoDAsync)
(CUdeviceptr_v1 dstDevice, const void* srcHost, unsigned int ByteCount, CUstream hStream) {
  return needs64Bits("cuMemcpyHtoDAsync");
}
DRIVER_API(cuMemcpyDtoHAsync)(void* dstHost, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream) {
  return needs64Bits("cuMemcpyDtoHAsync");
}
DRIVER_API(cuMemcpyDtoDAsync)
(CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice, unsigned int ByteCount, CUstream hStream) {
  return needs64Bits("cuMemcpyDtoDAsync");
}
DRIVER_API(cuMemsetD8)(CUdeviceptr_v1 dstDevice, unsigned char uc, unsigned int N) { return needs64Bits("cuMemsetD8"); }
DRIVER_API(cuMemsetD16)(CUdeviceptr_v1 dstDevice, unsigned short us, unsigned int N) {
  return needs64Bits("cuMemsetD16");
}
DRIVER_API(cuMemsetD32)(CUdeviceptr_v1 dstDevice, unsigned int ui, unsigned int N) {
  return needs64Bits("cuMemsetD32");
}

DRIVER_API(cuTexRefSetAddress)
(unsigned int* ByteOffset, CUtexref hTexRef, CUdeviceptr_v1 dptr, unsigned int bytes) {
  return needs64Bits("cuTexRefSetAddress");
}
DRIVER_API(cuTexRefGetAddress)(CUdeviceptr_v1* pdptr, CUtexref hTexRef) { return needs64Bits("cuTexRefGetAddress"); }

// Contexts have one user, who destroys them: attaching counts another.
namespace {
std::mutex attachMutex;
std::map<CUcontext, unsigned> attached;
}  // namespace

DRIVER_API(cuCtxAttach)(CUcontext* pctx, unsigned int flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pctx || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *pctx = static_cast<CUcontext>(context->handle());
  std::lock_guard lock(attachMutex);
  ++attached[*pctx];
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxDetach)(CUcontext ctx) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!HandleTable::find<Context>(ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  {
    std::lock_guard lock(attachMutex);
    if (const auto it = attached.find(ctx); it != attached.end()) {
      if (--it->second == 0) attached.erase(it);
      return CUDA_SUCCESS;
    }
  }
  return cuCtxDestroy_v2_impl(ctx);
}

// ------------------------------------------------------- the first launch --

DRIVER_API(cuFuncSetBlockShape)(CUfunction hfunc, int x, int y, int z) {
  Ref<Function> f;
  if (const CUresult e = findFunction(hfunc, f)) return e;
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(f->oldLaunch.mutex);
  f->oldLaunch.block = {static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z)};
  return CUDA_SUCCESS;
}

DRIVER_API(cuFuncSetSharedSize)(CUfunction hfunc, unsigned int bytes) {
  Ref<Function> f;
  if (const CUresult e = findFunction(hfunc, f)) return e;
  std::lock_guard lock(f->oldLaunch.mutex);
  f->oldLaunch.dynamicShared = bytes;
  return CUDA_SUCCESS;
}

DRIVER_API(cuParamSetSize)(CUfunction hfunc, unsigned int numbytes) {
  Ref<Function> f;
  if (const CUresult e = findFunction(hfunc, f)) return e;
  if (numbytes > f->info().paramBytes) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(f->oldLaunch.mutex);
  f->oldLaunch.params.resize(numbytes);
  return CUDA_SUCCESS;
}

namespace {

CUresult setParam(CUfunction hfunc, int offset, const void* from, unsigned int bytes) {
  Ref<Function> f;
  if (const CUresult e = findFunction(hfunc, f)) return e;
  if (!from || offset < 0 || uint64_t{static_cast<unsigned>(offset)} + bytes > f->info().paramBytes)
    return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(f->oldLaunch.mutex);
  auto& params = f->oldLaunch.params;
  if (params.size() < static_cast<size_t>(offset) + bytes) params.resize(static_cast<size_t>(offset) + bytes);
  std::memcpy(params.data() + offset, from, bytes);
  return CUDA_SUCCESS;
}

CUresult oldLaunch(CUfunction hfunc, int width, int height, CUstream stream) {
  Ref<Function> f;
  if (const CUresult e = findFunction(hfunc, f)) return e;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape;
  std::vector<std::byte> params;
  {
    std::lock_guard lock(f->oldLaunch.mutex);
    if (f->oldLaunch.block.x == 0) return CUDA_ERROR_INVALID_VALUE;  // cuFuncSetBlockShape was not called
    shape.block = f->oldLaunch.block;
    shape.dynamicShared = f->oldLaunch.dynamicShared;
    params = f->oldLaunch.params;
  }
  shape.grid = {static_cast<uint32_t>(width), static_cast<uint32_t>(height), 1};
  params.resize(std::max<size_t>(params.size(), f->info().paramBytes));
  size_t bytes = params.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, params.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  return launch(hfunc, shape, stream, nullptr, extra);
}

}  // namespace

DRIVER_API(cuParamSeti)(CUfunction hfunc, int offset, unsigned int value) {
  return setParam(hfunc, offset, &value, sizeof value);
}
DRIVER_API(cuParamSetf)(CUfunction hfunc, int offset, float value) {
  return setParam(hfunc, offset, &value, sizeof value);
}
DRIVER_API(cuParamSetv)(CUfunction hfunc, int offset, void* ptr, unsigned int numbytes) {
  return setParam(hfunc, offset, ptr, numbytes);
}
DRIVER_API(cuLaunch)(CUfunction f) { return oldLaunch(f, 1, 1, nullptr); }
DRIVER_API(cuLaunchGrid)(CUfunction f, int grid_width, int grid_height) {
  return oldLaunch(f, grid_width, grid_height, nullptr);
}
DRIVER_API(cuLaunchGridAsync)(CUfunction f, int grid_width, int grid_height, CUstream hStream) {
  return oldLaunch(f, grid_width, grid_height, hStream);
}

}  // namespace sonde::softgpu::driver
