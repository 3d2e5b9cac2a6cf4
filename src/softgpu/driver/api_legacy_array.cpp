// SPDX-License-Identifier: Apache-2.0
//
// First versions of what concerns arrays, copies of boxes, and sets of planes:
// sizes have 32 bits. Where no device pointer is involved they do what their
// successors do.
#include <algorithm>
#include <limits>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/legacy.h"

#undef cuArray3DCreate
#undef cuArray3DGetDescriptor
#undef cuArrayCreate
#undef cuArrayGetDescriptor
#undef cuMemcpy2D
#undef cuMemcpy2DAsync
#undef cuMemcpy2DUnaligned
#undef cuMemcpy3D
#undef cuMemcpy3DAsync
#undef cuMemcpyAtoA
#undef cuMemcpyAtoD
#undef cuMemcpyAtoH
#undef cuMemcpyAtoHAsync
#undef cuMemcpyDtoA
#undef cuMemcpyHtoA
#undef cuMemcpyHtoAAsync
#undef cuMemsetD2D16
#undef cuMemsetD2D32
#undef cuMemsetD2D8

namespace sonde::softgpu::driver {

CUresult cuArray3DCreate_v2_impl(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* d);
CUresult cuArray3DGetDescriptor_v2_impl(CUDA_ARRAY3D_DESCRIPTOR* d, CUarray hArray);
CUresult cuArrayCreate_v2_impl(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* d);
CUresult cuArrayGetDescriptor_v2_impl(CUDA_ARRAY_DESCRIPTOR* d, CUarray hArray);
CUresult cuMemcpy3D_v2_impl(const CUDA_MEMCPY3D* pCopy);
CUresult cuMemcpy3DAsync_v2_impl(const CUDA_MEMCPY3D* pCopy, CUstream hStream);
CUresult cuMemcpyAtoA_v2_impl(CUarray dst, size_t dstOffset, CUarray src, size_t srcOffset, size_t bytes);
CUresult cuMemcpyAtoH_v2_impl(void* dst, CUarray src, size_t srcOffset, size_t bytes);
CUresult cuMemcpyAtoHAsync_v2_impl(void* dst, CUarray src, size_t srcOffset, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoA_v2_impl(CUarray dst, size_t dstOffset, const void* src, size_t bytes);
CUresult cuMemcpyHtoAAsync_v2_impl(CUarray dst, size_t dstOffset, const void* src, size_t bytes, CUstream stream);

namespace {

unsigned clamped(size_t n) { return static_cast<unsigned>(std::min<size_t>(n, std::numeric_limits<unsigned>::max())); }

bool pointsAtDevice(CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED; }

// The ends of a copy, which both structures name alike.
template <class Old>
CUresult widen(const Old* old, const char* name, CUDA_MEMCPY3D& c) {
  if (!old) return CUDA_ERROR_INVALID_VALUE;
  if (pointsAtDevice(old->srcMemoryType) || pointsAtDevice(old->dstMemoryType)) return needs64Bits(name);
  c.srcXInBytes = old->srcXInBytes;
  c.srcY = old->srcY;
  c.srcMemoryType = old->srcMemoryType;
  c.srcHost = old->srcHost;
  c.srcArray = old->srcArray;
  c.srcPitch = old->srcPitch;
  c.dstXInBytes = old->dstXInBytes;
  c.dstY = old->dstY;
  c.dstMemoryType = old->dstMemoryType;
  c.dstHost = old->dstHost;
  c.dstArray = old->dstArray;
  c.dstPitch = old->dstPitch;
  c.WidthInBytes = old->WidthInBytes;
  c.Height = old->Height;
  c.Depth = 1;
  return CUDA_SUCCESS;
}

CUresult plane(const CUDA_MEMCPY2D_v1* old, const char* name) {
  CUDA_MEMCPY3D c{};
  if (const CUresult e = widen(old, name, c)) return e;
  return cuMemcpy3D_v2_impl(&c);
}

CUresult widenBox(const CUDA_MEMCPY3D_v1* old, const char* name, CUDA_MEMCPY3D& c) {
  if (const CUresult e = widen(old, name, c)) return e;
  c.srcZ = old->srcZ;
  c.srcLOD = old->srcLOD;
  c.srcHeight = old->srcHeight;
  c.dstZ = old->dstZ;
  c.dstLOD = old->dstLOD;
  c.dstHeight = old->dstHeight;
  c.Depth = old->Depth;
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuArrayCreate)(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR_v1* d) {
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide{d->Width, d->Height, d->Format, d->NumChannels};
  return cuArrayCreate_v2_impl(pHandle, &wide);
}
DRIVER_API(cuArrayGetDescriptor)(CUDA_ARRAY_DESCRIPTOR_v1* d, CUarray hArray) {
  CUDA_ARRAY_DESCRIPTOR wide;
  if (const CUresult e = cuArrayGetDescriptor_v2_impl(d ? &wide : nullptr, hArray)) return e;
  *d = {clamped(wide.Width), clamped(wide.Height), wide.Format, wide.NumChannels};
  return CUDA_SUCCESS;
}
DRIVER_API(cuArray3DCreate)(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1* d) {
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide{d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags};
  return cuArray3DCreate_v2_impl(pHandle, &wide);
}
DRIVER_API(cuArray3DGetDescriptor)(CUDA_ARRAY3D_DESCRIPTOR_v1* d, CUarray hArray) {
  CUDA_ARRAY3D_DESCRIPTOR wide;
  if (const CUresult e = cuArray3DGetDescriptor_v2_impl(d ? &wide : nullptr, hArray)) return e;
  *d = {clamped(wide.Width), clamped(wide.Height), clamped(wide.Depth), wide.Format, wide.NumChannels, wide.Flags};
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemcpy2D)(const CUDA_MEMCPY2D_v1* pCopy) { return plane(pCopy, "cuMemcpy2D"); }
DRIVER_API(cuMemcpy2DUnaligned)(const CUDA_MEMCPY2D_v1* pCopy) { return plane(pCopy, "cuMemcpy2DUnaligned"); }
DRIVER_API(cuMemcpy2DAsync)(const CUDA_MEMCPY2D_v1* pCopy, CUstream hStream) {
  CUDA_MEMCPY3D c{};
  if (const CUresult e = widen(pCopy, "cuMemcpy2DAsync", c)) return e;
  return cuMemcpy3DAsync_v2_impl(&c, hStream);
}
DRIVER_API(cuMemcpy3D)(const CUDA_MEMCPY3D_v1* pCopy) {
  CUDA_MEMCPY3D c{};
  if (const CUresult e = widenBox(pCopy, "cuMemcpy3D", c)) return e;
  return cuMemcpy3D_v2_impl(&c);
}
DRIVER_API(cuMemcpy3DAsync)(const CUDA_MEMCPY3D_v1* pCopy, CUstream hStream) {
  CUDA_MEMCPY3D c{};
  if (const CUresult e = widenBox(pCopy, "cuMemcpy3DAsync", c)) return e;
  return cuMemcpy3DAsync_v2_impl(&c, hStream);
}

DRIVER_API(cuMemcpyHtoA)(CUarray dstArray, unsigned int dstOffset, const void* srcHost, unsigned int ByteCount) {
  return cuMemcpyHtoA_v2_impl(dstArray, dstOffset, srcHost, ByteCount);
}
DRIVER_API(cuMemcpyAtoH)(void* dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount) {
  return cuMemcpyAtoH_v2_impl(dstHost, srcArray, srcOffset, ByteCount);
}
DRIVER_API(cuMemcpyAtoA)
(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount) {
  return cuMemcpyAtoA_v2_impl(dstArray, dstOffset, srcArray, srcOffset, ByteCount);
}
DRIVER_API(cuMemcpyHtoAAsync)
(CUarray dstArray, unsigned int dstOffset, const void* srcHost, unsigned int ByteCount, CUstream hStream) {
  return cuMemcpyHtoAAsync_v2_impl(dstArray, dstOffset, srcHost, ByteCount, hStream);
}
DRIVER_API(cuMemcpyAtoHAsync)
(void* dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount, CUstream hStream) {
  return cuMemcpyAtoHAsync_v2_impl(dstHost, srcArray, srcOffset, ByteCount, hStream);
}
DRIVER_API(cuMemcpyDtoA)(CUarray, unsigned int, CUdeviceptr_v1, unsigned int) { return needs64Bits("cuMemcpyDtoA"); }
DRIVER_API(cuMemcpyAtoD)(CUdeviceptr_v1, CUarray, unsigned int, unsigned int) { return needs64Bits("cuMemcpyAtoD"); }

DRIVER_API(cuMemsetD2D8)(CUdeviceptr_v1, unsigned int, unsigned char, unsigned int, unsigned int) {
  return needs64Bits("cuMemsetD2D8");
}
DRIVER_API(cuMemsetD2D16)(CUdeviceptr_v1, unsigned int, unsigned short, unsigned int, unsigned int) {
  return needs64Bits("cuMemsetD2D16");
}
DRIVER_API(cuMemsetD2D32)(CUdeviceptr_v1, unsigned int, unsigned int, unsigned int, unsigned int) {
  return needs64Bits("cuMemsetD2D32");
}

}  // namespace sonde::softgpu::driver
