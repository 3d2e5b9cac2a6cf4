// SPDX-License-Identifier: Apache-2.0
//
// CUDA arrays.
#include <algorithm>
#include <bit>
#include <string>

#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/message.h"
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

// An array that nobody has a handle of yet.
CUresult allocateArray(Context* context, const CUDA_ARRAY3D_DESCRIPTOR* d, Ref<Array>& array) {
  if (!d || d->Width == 0 || (d->NumChannels != 1 && d->NumChannels != 2 && d->NumChannels != 4))
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
  array = make<Array>(context, *d, element, request.address, pitch);
  return CUDA_SUCCESS;
}

// Gives the array a handle; it lives until it is destroyed, or its context is.
CUresult publishArray(const Ref<Context>& context, const Ref<Array>& array, CUarray* out) {
  if (!HandleTable::publish(array.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    std::lock_guard lock(context->objects);
    context->owned.insert(array.get());
  }
  *out = static_cast<CUarray>(array->handle());
  reportArray(*array, false);
  return CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  Ref<Array> array;
  if (const CUresult e = allocateArray(context.get(), d, array)) return e;
  return publishArray(context, array, out);
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
  if (!HandleTable::retire(array.get())) return CUDA_ERROR_INVALID_HANDLE;
  reportArray(*array, true);
  return CUDA_SUCCESS;
}

DRIVER_API(cuMipmappedArrayCreate)(CUmipmappedArray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* d,
                                   unsigned int numMipmapLevels) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pHandle || !d || numMipmapLevels == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool layered = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
  size_t longest = std::max(d->Width, d->Height);
  if (!layered) longest = std::max(longest, d->Depth);
  // No more levels than down to one element.
  const unsigned most = longest ? static_cast<unsigned>(std::bit_width(longest)) : 1;
  std::vector<Ref<Array>> levels;
  for (unsigned i = 0; i < std::min(numMipmapLevels, most); ++i) {
    auto smaller = [i](size_t n) { return n ? std::max<size_t>(n >> i, 1) : 0; };
    CUDA_ARRAY3D_DESCRIPTOR level = *d;
    level.Width = smaller(d->Width);
    level.Height = smaller(d->Height);
    if (!layered) level.Depth = smaller(d->Depth);
    Ref<Array> array;
    CUarray handle;
    if (const CUresult e = allocateArray(context.get(), &level, array)) return e;
    if (const CUresult e = publishArray(context, array, &handle)) return e;
    levels.push_back(std::move(array));
  }
  auto mipmap = make<MipmappedArray>(context.get(), std::move(levels));
  if (!HandleTable::publish(mipmap.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    std::lock_guard lock(context->objects);
    context->owned.insert(mipmap.get());
  }
  *pHandle = static_cast<CUmipmappedArray>(mipmap->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMipmappedArrayGetLevel)(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<MipmappedArray> mipmap = HandleTable::find<MipmappedArray>(hMipmappedArray);
  if (!mipmap) return CUDA_ERROR_INVALID_HANDLE;
  if (!pLevelArray || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *pLevelArray = static_cast<CUarray>(mipmap->levels[level]->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMipmappedArrayDestroy)(CUmipmappedArray hMipmappedArray) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<MipmappedArray> mipmap = HandleTable::find<MipmappedArray>(hMipmappedArray);
  if (!mipmap) return CUDA_ERROR_INVALID_HANDLE;
  settleDevice(mipmap->context()->device()->ordinal);
  {
    std::lock_guard lock(mipmap->context()->objects);
    mipmap->context()->owned.erase(mipmap.get());
    for (const Ref<Array>& a : mipmap->levels) mipmap->context()->owned.erase(a.get());
  }
  if (!HandleTable::retire(mipmap.get())) return CUDA_ERROR_INVALID_HANDLE;
  for (const Ref<Array>& a : mipmap->levels)
    if (HandleTable::retire(a.get())) reportArray(*a, true);
  return CUDA_SUCCESS;
}

// -------------------------------------------------- arrays of special kinds --
// None is made here (flags for sparse arrays and deferred mapping, and formats
// of several planes are refused), and these functions have an error for others.

namespace {

CUresult findMipmap(CUmipmappedArray handle) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  return HandleTable::find<MipmappedArray>(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult noRequirements(const void* out, CUdevice device) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!Driver::get().device(device)) return CUDA_ERROR_INVALID_DEVICE;
  say("the memory requirements of an array exist only with CUDA_ARRAY3D_DEFERRED_MAPPING");
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult notSparse() {
  say("sparse properties exist only of an array made with CUDA_ARRAY3D_SPARSE");
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

DRIVER_API(cuArrayGetPlane)(CUarray* pPlaneArray, CUarray hArray, unsigned int planeIdx) {
  Ref<Array> array;
  if (const CUresult e = findArray(hArray, array)) return e;
  if (pPlaneArray) say("plane " + std::to_string(planeIdx) + " of an array whose format has no planes");
  return CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuArrayGetMemoryRequirements)(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray hArray, CUdevice device) {
  Ref<Array> array;
  if (const CUresult e = findArray(hArray, array)) return e;
  return noRequirements(out, device);
}

DRIVER_API(cuMipmappedArrayGetMemoryRequirements)
(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray mipmap, CUdevice device) {
  if (const CUresult e = findMipmap(mipmap)) return e;
  return noRequirements(out, device);
}

DRIVER_API(cuArrayGetSparseProperties)(CUDA_ARRAY_SPARSE_PROPERTIES*, CUarray hArray) {
  Ref<Array> array;
  if (const CUresult e = findArray(hArray, array)) return e;
  return notSparse();
}

DRIVER_API(cuMipmappedArrayGetSparseProperties)(CUDA_ARRAY_SPARSE_PROPERTIES*, CUmipmappedArray mipmap) {
  if (const CUresult e = findMipmap(mipmap)) return e;
  return notSparse();
}

}  // namespace sonde::softgpu::driver
