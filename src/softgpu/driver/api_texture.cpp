// SPDX-License-Identifier: Apache-2.0
//
// Texture and surface objects. A handle is what kernels are given: the engine
// finds the description by it; what the program asked for is kept here.
#include <map>

#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/message.h"
#include "softgpu/exec/texture.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

namespace {

using exec::TexelFormat;
using exec::TextureDescriptor;

struct Record {
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  CUDA_RESOURCE_VIEW_DESC view{};
  bool surface = false, hasView = false;
  uint32_t device = 0;
};

struct Records {
  std::mutex mutex;
  std::map<uint64_t, Record> all;
};
Records& records() {
  static auto* r = new Records;
  return *r;
}

bool toFormat(CUarray_format from, TexelFormat& to, uint32_t& bytes) {
  switch (static_cast<int>(from)) {
    case CU_AD_FORMAT_UNSIGNED_INT8: to = TexelFormat::u8, bytes = 1; return true;
    case CU_AD_FORMAT_SIGNED_INT8: to = TexelFormat::s8, bytes = 1; return true;
    case CU_AD_FORMAT_UNSIGNED_INT16: to = TexelFormat::u16, bytes = 2; return true;
    case CU_AD_FORMAT_SIGNED_INT16: to = TexelFormat::s16, bytes = 2; return true;
    case CU_AD_FORMAT_UNSIGNED_INT32: to = TexelFormat::u32, bytes = 4; return true;
    case CU_AD_FORMAT_SIGNED_INT32: to = TexelFormat::s32, bytes = 4; return true;
    case CU_AD_FORMAT_HALF: to = TexelFormat::f16, bytes = 2; return true;
    case CU_AD_FORMAT_FLOAT: to = TexelFormat::f32, bytes = 4; return true;
    default: return false;
  }
}

exec::TextureLevel levelOf(const Array& array) {
  exec::TextureLevel l;
  l.address = array.address;
  l.pitch = array.pitch;
  l.slicePitch = array.pitch * array.rows();
  l.width = static_cast<uint32_t>(array.descriptor.Width);
  l.height = static_cast<uint32_t>(array.rows());
  l.slices = static_cast<uint32_t>(array.slices());
  return l;
}

CUresult describeArray(const Array& array, TextureDescriptor& d) {
  uint32_t bytes;
  if (!toFormat(array.descriptor.Format, d.format, bytes)) return CUDA_ERROR_NOT_SUPPORTED;
  d.channels = static_cast<uint8_t>(array.descriptor.NumChannels);
  d.levels[0] = levelOf(array);
  return CUDA_SUCCESS;
}

CUresult describeMemory(uint64_t address, CUarray_format format, unsigned channels, TextureDescriptor& d,
                        uint32_t& element) {
  if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!toFormat(format, d.format, element)) return CUDA_ERROR_NOT_SUPPORTED;
  element *= channels;
  d.channels = static_cast<uint8_t>(channels);
  d.levels[0].address = address;
  return CUDA_SUCCESS;
}

CUresult describeResource(const CUDA_RESOURCE_DESC& r, TextureDescriptor& d) {
  exec::TextureLevel& l = d.levels[0];
  uint32_t element;
  switch (r.resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
      const Ref<Array> array = HandleTable::find<Array>(r.res.array.hArray);
      return array ? describeArray(*array, d) : CUDA_ERROR_INVALID_HANDLE;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const Ref<MipmappedArray> mipmap = HandleTable::find<MipmappedArray>(r.res.mipmap.hMipmappedArray);
      if (!mipmap) return CUDA_ERROR_INVALID_HANDLE;
      if (const CUresult e = describeArray(*mipmap->levels[0], d)) return e;
      d.levelCount = static_cast<uint32_t>(mipmap->levels.size());
      for (uint32_t i = 0; i < d.levelCount; ++i) d.levels[i] = levelOf(*mipmap->levels[i]);
      return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR:
      if (const CUresult e =
              describeMemory(r.res.linear.devPtr, r.res.linear.format, r.res.linear.numChannels, d, element))
        return e;
      if (r.res.linear.sizeInBytes / element > UINT32_MAX) return CUDA_ERROR_INVALID_VALUE;
      l.width = static_cast<uint32_t>(r.res.linear.sizeInBytes / element);
      l.pitch = l.slicePitch = r.res.linear.sizeInBytes;
      d.linearMemory = true;
      return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
      if (const CUresult e =
              describeMemory(r.res.pitch2D.devPtr, r.res.pitch2D.format, r.res.pitch2D.numChannels, d, element))
        return e;
      if (r.res.pitch2D.width == 0 || r.res.pitch2D.height == 0 || r.res.pitch2D.width > UINT32_MAX / element ||
          r.res.pitch2D.height > UINT32_MAX || r.res.pitch2D.pitchInBytes < r.res.pitch2D.width * element)
        return CUDA_ERROR_INVALID_VALUE;
      l.width = static_cast<uint32_t>(r.res.pitch2D.width);
      l.height = static_cast<uint32_t>(r.res.pitch2D.height);
      l.pitch = r.res.pitch2D.pitchInBytes;
      l.slicePitch = l.pitch * l.height;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult describeSampling(const CUDA_TEXTURE_DESC& t, TextureDescriptor& d) {
  constexpr unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                             CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
  if (t.flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < 3; ++i) {
    if (static_cast<unsigned>(t.addressMode[i]) > CU_TR_ADDRESS_MODE_BORDER) return CUDA_ERROR_INVALID_VALUE;
    d.address[i] = static_cast<exec::TextureAddress>(t.addressMode[i]);
  }
  const bool narrow = d.format < TexelFormat::u32, wide = d.format == TexelFormat::u32 || d.format == TexelFormat::s32;
  d.normalizedRead = narrow && !(t.flags & CU_TRSF_READ_AS_INTEGER);
  d.filter = t.filterMode == CU_TR_FILTER_MODE_LINEAR;
  if (d.filter && !d.linearMemory && (wide || (narrow && !d.normalizedRead))) {
    say("cuTexObjectCreate: linear filtering needs floating-point elements, or integers that are read as such");
    return CUDA_ERROR_INVALID_VALUE;
  }
  d.levelFilter = t.mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
  d.normalizedCoordinates = t.flags & CU_TRSF_NORMALIZED_COORDINATES;
  d.srgb = t.flags & CU_TRSF_SRGB;
  for (unsigned i = 0; i < 4; ++i) d.border[i] = t.borderColor[i];
  d.levelBias = t.mipmapLevelBias;
  d.minLevel = t.minMipmapLevelClamp;
  d.maxLevel = t.maxMipmapLevelClamp;
  return CUDA_SUCCESS;
}

CUresult publish(const TextureDescriptor& d, Record&& record, unsigned long long* out) {
  const uint64_t handle = exec::publishTexture(d);
  if (!handle) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    std::lock_guard lock(records().mutex);
    records().all.emplace(handle, std::move(record));
  }
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult destroy(uint64_t handle, bool surface) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  uint32_t device;
  {
    std::lock_guard lock(records().mutex);
    const auto it = records().all.find(handle);
    if (it == records().all.end() || it->second.surface != surface) return CUDA_ERROR_INVALID_VALUE;
    device = it->second.device;
    records().all.erase(it);
  }
  settleDevice(device);
  exec::retireTexture(handle);
  return CUDA_SUCCESS;
}

// Calls use(record) for a texture or surface that exists.
template <typename Use>
CUresult withRecord(uint64_t handle, bool surface, const void* out, Use use) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(records().mutex);
  const auto it = records().all.find(handle);
  if (it == records().all.end() || it->second.surface != surface) return CUDA_ERROR_INVALID_VALUE;
  return use(it->second);
}

}  // namespace

DRIVER_API(cuTexObjectCreate)(CUtexObject* pTexObject, const CUDA_RESOURCE_DESC* pResDesc,
                              const CUDA_TEXTURE_DESC* pTexDesc, const CUDA_RESOURCE_VIEW_DESC* pResViewDesc) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pTexObject || !pResDesc || !pTexDesc) return CUDA_ERROR_INVALID_VALUE;
  TextureDescriptor d;
  if (const CUresult e = describeResource(*pResDesc, d)) return e;
  if (const CUresult e = describeSampling(*pTexDesc, d)) return e;
  if (pResViewDesc && pResViewDesc->format != CU_RES_VIEW_FORMAT_NONE) {
    say("cuTexObjectCreate: resource views with a format of their own are not supported");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  Record record;
  record.resource = *pResDesc;
  record.texture = *pTexDesc;
  record.hasView = pResViewDesc != nullptr;
  if (pResViewDesc) record.view = *pResViewDesc;
  record.device = context->device()->ordinal;
  return publish(d, std::move(record), pTexObject);
}

DRIVER_API(cuTexObjectDestroy)(CUtexObject texObject) { return destroy(texObject, false); }

DRIVER_API(cuTexObjectGetResourceDesc)(CUDA_RESOURCE_DESC* pResDesc, CUtexObject texObject) {
  return withRecord(texObject, false, pResDesc, [&](const Record& r) { return *pResDesc = r.resource, CUDA_SUCCESS; });
}

DRIVER_API(cuTexObjectGetTextureDesc)(CUDA_TEXTURE_DESC* pTexDesc, CUtexObject texObject) {
  return withRecord(texObject, false, pTexDesc, [&](const Record& r) { return *pTexDesc = r.texture, CUDA_SUCCESS; });
}

DRIVER_API(cuTexObjectGetResourceViewDesc)(CUDA_RESOURCE_VIEW_DESC* pResViewDesc, CUtexObject texObject) {
  return withRecord(texObject, false, pResViewDesc, [&](const Record& r) {
    if (!r.hasView) return CUDA_ERROR_INVALID_VALUE;
    *pResViewDesc = r.view;
    return CUDA_SUCCESS;
  });
}

DRIVER_API(cuSurfObjectCreate)(CUsurfObject* pSurfObject, const CUDA_RESOURCE_DESC* pResDesc) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
  const Ref<Array> array = HandleTable::find<Array>(pResDesc->res.array.hArray);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (!(array->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST)) {
    say("cuSurfObjectCreate: the array was made without CUDA_ARRAY3D_SURFACE_LDST (cudaArraySurfaceLoadStore)");
    return CUDA_ERROR_INVALID_VALUE;
  }
  TextureDescriptor d;
  if (const CUresult e = describeArray(*array, d)) return e;
  d.surface = true;
  Record record;
  record.resource = *pResDesc;
  record.surface = true;
  record.device = context->device()->ordinal;
  return publish(d, std::move(record), pSurfObject);
}

DRIVER_API(cuSurfObjectDestroy)(CUsurfObject surfObject) { return destroy(surfObject, true); }

DRIVER_API(cuSurfObjectGetResourceDesc)(CUDA_RESOURCE_DESC* pResDesc, CUsurfObject surfObject) {
  return withRecord(surfObject, true, pResDesc, [&](const Record& r) { return *pResDesc = r.resource, CUDA_SUCCESS; });
}

}  // namespace sonde::softgpu::driver
