// SPDX-License-Identifier: Apache-2.0
//
// Texture and surface references: variables of a module that kernels read by
// name. Such a variable holds the handle of a texture object here, which is
// made anew whenever the program changes what the reference stands for.
#include <algorithm>
#include <cstring>
#include <map>

#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

CUresult cuTexObjectCreate_impl(CUtexObject* object, const CUDA_RESOURCE_DESC* resource,
                                const CUDA_TEXTURE_DESC* texture, const CUDA_RESOURCE_VIEW_DESC* view);
CUresult cuTexObjectDestroy_impl(CUtexObject object);
CUresult cuSurfObjectCreate_impl(CUsurfObject* object, const CUDA_RESOURCE_DESC* resource);
CUresult cuSurfObjectDestroy_impl(CUsurfObject object);

namespace {

class Reference final : public Object {
 public:
  static constexpr Type kType = Type::textureReference;
  Reference(uint64_t variable, bool isSurface) : Object(kType), variable_(variable), isSurface_(isSurface) {
    texture.maxAnisotropy = 1;
    format = CU_AD_FORMAT_FLOAT;
    channels = 1;
  }

  // After a change; on failure the reference keeps what kernels see.
  CUresult apply() {
    if (!bound || variable_ == 0) return CUDA_SUCCESS;
    CUtexObject made = 0;
    if (const CUresult e = isSurface_ ? cuSurfObjectCreate_impl(&made, &resource)
                                      : cuTexObjectCreate_impl(&made, &resource, &texture, nullptr))
      return e;
    Ref<Context> context;
    if (const CUresult e = currentContext(context)) return e;
    settleDevice(context->device()->ordinal);  // kernels in flight read the old one
    std::memcpy(memory::Allocator::hostAccess(variable_), &made, sizeof made);
    if (object_) isSurface_ ? cuSurfObjectDestroy_impl(object_) : cuTexObjectDestroy_impl(object_);
    object_ = made;
    return CUDA_SUCCESS;
  }
  bool isSurface() const { return isSurface_; }

  std::mutex mutex;  // guards what follows
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  CUarray_format format;
  unsigned channels;
  bool bound = false;

 private:
  const uint64_t variable_;
  const bool isSurface_;
  CUtexObject object_ = 0;
};

struct References {
  std::mutex mutex;
  std::map<uint64_t, Ref<Reference>> byVariable;  // its address
};
References& references() {
  static auto* all = new References;
  return *all;
}

CUresult find(const void* handle, bool surface, Ref<Reference>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Reference>(handle);
  return out && out->isSurface() == surface ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ofModule(void** out, CUmodule handle, const char* name, bool surface) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  const Ref<Module> module = HandleTable::find<Module>(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t address = 0, bytes = 0;
  if (!module->global(name, address, bytes) || bytes != sizeof(CUtexObject)) return CUDA_ERROR_NOT_FOUND;
  References& all = references();
  std::lock_guard lock(all.mutex);
  Ref<Reference>& found = all.byVariable[address];
  // Another module's variable may have been at this address.
  if (!found || found->isSurface() != surface || HandleTable::typeOf(found->handle()) != Reference::kType) {
    found = make<Reference>(address, surface);
    if (!HandleTable::publish(found.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = found->handle();
  return CUDA_SUCCESS;
}

// Calls change(reference) with its lock held and makes the change seen.
template <class Change>
CUresult changeTexture(CUtexref handle, Change change) {
  Ref<Reference> reference;
  if (const CUresult e = find(handle, false, reference)) return e;
  std::lock_guard lock(reference->mutex);
  if (const CUresult e = change(*reference)) return e;
  return reference->apply();
}
template <class Read>
CUresult readTexture(CUtexref handle, const void* out, Read read) {
  Ref<Reference> reference;
  if (const CUresult e = find(handle, false, reference)) return e;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(reference->mutex);
  return read(*reference);
}

CUresult setAddress(Reference& r, const CUDA_ARRAY_DESCRIPTOR* plane, CUdeviceptr address, size_t bytesOrPitch) {
  CUDA_RESOURCE_DESC resource{};
  if (plane) {
    resource.resType = CU_RESOURCE_TYPE_PITCH2D;
    resource.res.pitch2D = {address, plane->Format, plane->NumChannels, plane->Width, plane->Height, bytesOrPitch};
    r.format = plane->Format;
    r.channels = plane->NumChannels;
  } else {
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear = {address, r.format, r.channels, bytesOrPitch};
  }
  r.resource = resource;
  r.bound = address != 0;
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuModuleGetTexRef)(CUtexref* pTexRef, CUmodule hmod, const char* name) {
  return ofModule(reinterpret_cast<void**>(pTexRef), hmod, name, false);
}
DRIVER_API(cuModuleGetSurfRef)(CUsurfref* pSurfRef, CUmodule hmod, const char* name) {
  return ofModule(reinterpret_cast<void**>(pSurfRef), hmod, name, true);
}

// A reference of no module: nothing reads it.
DRIVER_API(cuTexRefCreate)(CUtexref* pTexRef) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!pTexRef) return CUDA_ERROR_INVALID_VALUE;
  auto made = make<Reference>(uint64_t{0}, false);
  if (!HandleTable::publish(made.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *pTexRef = static_cast<CUtexref>(made->handle());
  return CUDA_SUCCESS;
}
DRIVER_API(cuTexRefDestroy)(CUtexref hTexRef) {
  Ref<Reference> reference;
  if (const CUresult e = find(hTexRef, false, reference)) return e;
  return HandleTable::retire(reference.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuTexRefSetArray)(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
  const Ref<Array> array = driverReady() ? HandleTable::find<Array>(hArray) : Ref<Array>();
  if (driverReady() && (!array || Flags != CU_TRSA_OVERRIDE_FORMAT)) return CUDA_ERROR_INVALID_VALUE;
  return changeTexture(hTexRef, [&](Reference& r) {
    r.resource = {};
    r.resource.resType = CU_RESOURCE_TYPE_ARRAY;
    r.resource.res.array.hArray = hArray;
    r.format = array->descriptor.Format;
    r.channels = array->descriptor.NumChannels;
    r.bound = true;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefSetMipmappedArray)(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags) {
  if (Flags != CU_TRSA_OVERRIDE_FORMAT) return CUDA_ERROR_INVALID_VALUE;
  return changeTexture(hTexRef, [&](Reference& r) {
    r.resource = {};
    r.resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    r.resource.res.mipmap.hMipmappedArray = hMipmappedArray;
    r.bound = true;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefSetAddress_v2)(size_t* ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes) {
  if (ByteOffset) *ByteOffset = 0;  // any element's address will do
  return changeTexture(hTexRef, [&](Reference& r) { return setAddress(r, nullptr, dptr, bytes); });
}
DRIVER_API(cuTexRefSetAddress2D_v3)
(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc, CUdeviceptr dptr, size_t Pitch) {
  if (!desc) return CUDA_ERROR_INVALID_VALUE;
  return changeTexture(hTexRef, [&](Reference& r) { return setAddress(r, desc, dptr, Pitch); });
}
DRIVER_API(cuTexRefSetAddress2D_v2)
(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR* desc, CUdeviceptr dptr, size_t Pitch) {
  return cuTexRefSetAddress2D_v3_impl(hTexRef, desc, dptr, Pitch);
}
DRIVER_API(cuTexRefSetFormat)(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
  if (NumPackedComponents != 1 && NumPackedComponents != 2 && NumPackedComponents != 4) return CUDA_ERROR_INVALID_VALUE;
  return changeTexture(hTexRef, [&](Reference& r) {
    r.format = fmt;
    r.channels = static_cast<unsigned>(NumPackedComponents);
    if (r.resource.resType == CU_RESOURCE_TYPE_LINEAR) {
      r.resource.res.linear.format = fmt;
      r.resource.res.linear.numChannels = r.channels;
    }
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefSetAddressMode)(CUtexref hTexRef, int dim, CUaddress_mode am) {
  if (dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
  return changeTexture(hTexRef, [&](Reference& r) { return r.texture.addressMode[dim] = am, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefSetFilterMode)(CUtexref hTexRef, CUfilter_mode fm) {
  return changeTexture(hTexRef, [&](Reference& r) { return r.texture.filterMode = fm, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefSetMipmapFilterMode)(CUtexref hTexRef, CUfilter_mode fm) {
  return changeTexture(hTexRef, [&](Reference& r) { return r.texture.mipmapFilterMode = fm, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefSetMipmapLevelBias)(CUtexref hTexRef, float bias) {
  return changeTexture(hTexRef, [&](Reference& r) { return r.texture.mipmapLevelBias = bias, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefSetMipmapLevelClamp)(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp) {
  return changeTexture(hTexRef, [&](Reference& r) {
    r.texture.minMipmapLevelClamp = minMipmapLevelClamp;
    r.texture.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefSetMaxAnisotropy)(CUtexref hTexRef, unsigned int maxAniso) {
  return changeTexture(hTexRef, [&](Reference& r) { return r.texture.maxAnisotropy = maxAniso, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefSetBorderColor)(CUtexref hTexRef, float* pBorderColor) {
  if (!pBorderColor) return CUDA_ERROR_INVALID_VALUE;
  return changeTexture(hTexRef, [&](Reference& r) {
    std::copy_n(pBorderColor, 4, r.texture.borderColor);
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefSetFlags)(CUtexref hTexRef, unsigned int Flags) {
  return changeTexture(hTexRef, [&](Reference& r) { return r.texture.flags = Flags, CUDA_SUCCESS; });
}

DRIVER_API(cuTexRefGetAddress_v2)(CUdeviceptr* pdptr, CUtexref hTexRef) {
  return readTexture(hTexRef, pdptr, [&](Reference& r) {
    if (!r.bound) return CUDA_ERROR_INVALID_VALUE;
    if (r.resource.resType == CU_RESOURCE_TYPE_LINEAR)
      *pdptr = r.resource.res.linear.devPtr;
    else if (r.resource.resType == CU_RESOURCE_TYPE_PITCH2D)
      *pdptr = r.resource.res.pitch2D.devPtr;
    else
      return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetArray)(CUarray* phArray, CUtexref hTexRef) {
  return readTexture(hTexRef, phArray, [&](Reference& r) {
    if (!r.bound || r.resource.resType != CU_RESOURCE_TYPE_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    *phArray = r.resource.res.array.hArray;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetMipmappedArray)(CUmipmappedArray* phMipmappedArray, CUtexref hTexRef) {
  return readTexture(hTexRef, phMipmappedArray, [&](Reference& r) {
    if (!r.bound || r.resource.resType != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY) return CUDA_ERROR_INVALID_VALUE;
    *phMipmappedArray = r.resource.res.mipmap.hMipmappedArray;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetAddressMode)(CUaddress_mode* pam, CUtexref hTexRef, int dim) {
  if (dim < 0 || dim > 2) return CUDA_ERROR_INVALID_VALUE;
  return readTexture(hTexRef, pam, [&](Reference& r) { return *pam = r.texture.addressMode[dim], CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefGetFilterMode)(CUfilter_mode* pfm, CUtexref hTexRef) {
  return readTexture(hTexRef, pfm, [&](Reference& r) { return *pfm = r.texture.filterMode, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefGetFormat)(CUarray_format* pFormat, int* pNumChannels, CUtexref hTexRef) {
  return readTexture(hTexRef, pFormat, [&](Reference& r) {
    *pFormat = r.format;
    if (pNumChannels) *pNumChannels = static_cast<int>(r.channels);
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetMipmapFilterMode)(CUfilter_mode* pfm, CUtexref hTexRef) {
  return readTexture(hTexRef, pfm, [&](Reference& r) { return *pfm = r.texture.mipmapFilterMode, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefGetMipmapLevelBias)(float* pbias, CUtexref hTexRef) {
  return readTexture(hTexRef, pbias, [&](Reference& r) { return *pbias = r.texture.mipmapLevelBias, CUDA_SUCCESS; });
}
DRIVER_API(cuTexRefGetMipmapLevelClamp)
(float* pminMipmapLevelClamp, float* pmaxMipmapLevelClamp, CUtexref hTexRef) {
  return readTexture(hTexRef, pminMipmapLevelClamp, [&](Reference& r) {
    *pminMipmapLevelClamp = r.texture.minMipmapLevelClamp;
    if (pmaxMipmapLevelClamp) *pmaxMipmapLevelClamp = r.texture.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetMaxAnisotropy)(int* pmaxAniso, CUtexref hTexRef) {
  return readTexture(hTexRef, pmaxAniso, [&](Reference& r) {
    *pmaxAniso = static_cast<int>(r.texture.maxAnisotropy);
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetBorderColor)(float* pBorderColor, CUtexref hTexRef) {
  return readTexture(hTexRef, pBorderColor, [&](Reference& r) {
    std::copy_n(r.texture.borderColor, 4, pBorderColor);
    return CUDA_SUCCESS;
  });
}
DRIVER_API(cuTexRefGetFlags)(unsigned int* pFlags, CUtexref hTexRef) {
  return readTexture(hTexRef, pFlags, [&](Reference& r) { return *pFlags = r.texture.flags, CUDA_SUCCESS; });
}

// A module's references are the kernel's without being named at a launch.
DRIVER_API(cuParamSetTexRef)(CUfunction hfunc, int texunit, CUtexref hTexRef) {
  Ref<Reference> reference;
  if (const CUresult e = find(hTexRef, false, reference)) return e;
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  return texunit == CU_PARAM_TR_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuSurfRefSetArray)(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
  Ref<Reference> reference;
  if (const CUresult e = find(hSurfRef, true, reference)) return e;
  if (Flags || !HandleTable::find<Array>(hArray)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(reference->mutex);
  reference->resource = {};
  reference->resource.resType = CU_RESOURCE_TYPE_ARRAY;
  reference->resource.res.array.hArray = hArray;
  reference->bound = true;
  return reference->apply();
}
DRIVER_API(cuSurfRefGetArray)(CUarray* phArray, CUsurfref hSurfRef) {
  Ref<Reference> reference;
  if (const CUresult e = find(hSurfRef, true, reference)) return e;
  std::lock_guard lock(reference->mutex);
  if (!phArray || !reference->bound) return CUDA_ERROR_INVALID_VALUE;
  *phArray = reference->resource.res.array.hArray;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
