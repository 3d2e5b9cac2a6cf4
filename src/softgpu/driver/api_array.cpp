// SPDX-License-Identifier: Apache-2.0
//
// CUDA arrays.
#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/sync.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

Array::~Array() { memory::Allocator::get().release(address); }

namespace {

// 0: no such format here.
uint32_t formatBytes(CUarray_format format) {
  switch (static_cast<int>(format)) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
  }
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!out || !d || d->Width == 0 || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
    return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuseWhileCapturing(*context)) return e;
  const uint32_t element = formatBytes(d->Format) * d->NumChannels;
  constexpr unsigned known =
      CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
  if (element == 0 || (d->Flags & ~known)) return CUDA_ERROR_NOT_SUPPORTED;
  if ((d->Flags & CUDA_ARRAY3D_CUBEMAP) && (d->Width != d->Height || d->Depth % 6)) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t pitch = (d->Width * element + 31) & ~uint64_t{31};
  uint64_t bytes;
  if (__builtin_mul_overflow(pitch, d->Height ? d->Height : 1, &bytes) ||
      __builtin_mul_overflow(bytes, d->Depth ? d->Depth : 1, &bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  memory::Allocation request;
  request.bytes = bytes;
  request.device = context->device()->ordinal;
  if (const auto e = memory::Allocator::get().allocate(request); e != memory::AllocError::none) return toResult(e);
  auto array = make<Array>(context.get(), *d, element, request.address, pitch);
  if (!HandleTable::publish(array.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    std::lock_guard lock(context->objects);
    context->owned.insert(array.get());
  }
  *out = static_cast<CUarray>(array->handle());
  return CUDA_SUCCESS;
}

CUresult findArray(CUarray handle, Ref<Array>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Array>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

DRIVER_API(cuArrayCreate_v2)(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  if (!pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = pAllocateArray->Width;
  d.Height = pAllocateArray->Height;
  d.Format = pAllocateArray->Format;
  d.NumChannels = pAllocateArray->NumChannels;
  return create(pHandle, &d);
}

DRIVER_API(cuArray3DCreate_v2)(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  return create(pHandle, pAllocateArray);
}

DRIVER_API(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR* d, CUarray hArray) {
  Ref<Array> array;
  if (const CUresult e = findArray(hArray, array)) return e;
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  d->Width = array->descriptor.Width;
  d->Height = array->descriptor.Height;
  d->Format = array->descriptor.Format;
  d->NumChannels = array->descriptor.NumChannels;
  return CUDA_SUCCESS;
}

DRIVER_API(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR* d, CUarray hArray) {
  Ref<Array> array;
  if (const CUresult e = findArray(hArray, array)) return e;
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  *d = array->descriptor;
  return CUDA_SUCCESS;
}

DRIVER_API(cuArrayDestroy)(CUarray hArray) {
  Ref<Array> array;
  if (const CUresult e = findArray(hArray, array)) return e;
  settleDevice(array->context()->device()->ordinal);
  {
    std::lock_guard lock(array->context()->objects);
    array->context()->owned.erase(array.get());
  }
  return HandleTable::retire(array.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace sonde::softgpu::driver
