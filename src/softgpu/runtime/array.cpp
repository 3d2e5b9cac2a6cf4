// SPDX-License-Identifier: Apache-2.0
// Arrays, three-dimensional copies, texture and surface objects.
#include <cstring>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart {

cudaError_t toArrayFormat(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels) {
  const int bits[4] = {desc.x, desc.y, desc.z, desc.w};
  unsigned count = 0;
  while (count < 4 && bits[count] != 0) ++count;
  for (unsigned i = 0; i < 4; ++i)
    if (bits[i] != (i < count ? bits[0] : 0)) return cudaErrorInvalidChannelDescriptor;
  if (count == 0 || count == 3) return cudaErrorInvalidChannelDescriptor;
  auto pick = [&](CUarray_format eight, CUarray_format sixteen, CUarray_format thirtyTwo) {
    *format = bits[0] == 8 ? eight : bits[0] == 16 ? sixteen : thirtyTwo;
    return bits[0] == 8 || bits[0] == 16 || bits[0] == 32;
  };
  bool known = false;
  switch (desc.f) {
    case cudaChannelFormatKindSigned:
      known = pick(CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32);
      break;
    case cudaChannelFormatKindUnsigned:
      known = pick(CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32);
      break;
    case cudaChannelFormatKindFloat:
      known = pick(CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT) && bits[0] != 8;
      break;
    default: break;
  }
  if (!known) return cudaErrorInvalidChannelDescriptor;
  *channels = count;
  return cudaSuccess;
}

cudaError_t fromArrayFormat(CUarray_format format, unsigned channels, cudaChannelFormatDesc* desc) {
  int bits = 0;
  cudaChannelFormatKind kind = cudaChannelFormatKindNone;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8: bits = 8, kind = cudaChannelFormatKindUnsigned; break;
    case CU_AD_FORMAT_UNSIGNED_INT16: bits = 16, kind = cudaChannelFormatKindUnsigned; break;
    case CU_AD_FORMAT_UNSIGNED_INT32: bits = 32, kind = cudaChannelFormatKindUnsigned; break;
    case CU_AD_FORMAT_SIGNED_INT8: bits = 8, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_SIGNED_INT16: bits = 16, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_SIGNED_INT32: bits = 32, kind = cudaChannelFormatKindSigned; break;
    case CU_AD_FORMAT_HALF: bits = 16, kind = cudaChannelFormatKindFloat; break;
    case CU_AD_FORMAT_FLOAT: bits = 32, kind = cudaChannelFormatKindFloat; break;
    default: return cudaErrorInvalidChannelDescriptor;
  }
  *desc = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
  return cudaSuccess;
}

cudaError_t arrayElementSize(CUarray array, size_t* size) {
  CUDA_ARRAY3D_DESCRIPTOR description{};
  SONDE_TRY(SONDE_CU(cuArray3DGetDescriptor, &description, array));
  cudaChannelFormatDesc desc{};
  SONDE_TRY(fromArrayFormat(description.Format, description.NumChannels, &desc));
  *size = static_cast<size_t>(desc.x + desc.y + desc.z + desc.w) / 8;
  return cudaSuccess;
}

namespace {

CUmemorytype memoryType(cudaMemcpyKind kind, bool source) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  bool host = source ? kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice
                     : kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// The parts that the plain and the peer structure share. With an array the
// extent's width and the array's x position count elements, otherwise bytes.
template <typename From, typename To>
cudaError_t planCopy(const From& from, cudaMemcpyKind kind, To* to) {
  if ((from.srcArray && from.srcPtr.ptr) || (from.dstArray && from.dstPtr.ptr)) return cudaErrorInvalidValue;
  if ((!from.srcArray && !from.srcPtr.ptr) || (!from.dstArray && !from.dstPtr.ptr)) return cudaErrorInvalidValue;
  size_t sourceElement = 1, targetElement = 1;
  if (from.srcArray) SONDE_TRY(arrayElementSize(driverArray(from.srcArray), &sourceElement));
  if (from.dstArray) SONDE_TRY(arrayElementSize(driverArray(from.dstArray), &targetElement));
  if (from.srcArray && from.dstArray && sourceElement != targetElement) return cudaErrorInvalidValue;
  to->srcXInBytes = from.srcPos.x * sourceElement;
  to->srcY = from.srcPos.y;
  to->srcZ = from.srcPos.z;
  if (from.srcArray) {
    to->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    to->srcArray = driverArray(from.srcArray);
  } else {
    to->srcMemoryType = memoryType(kind, true);
    if (to->srcMemoryType == CU_MEMORYTYPE_HOST)
      to->srcHost = from.srcPtr.ptr;
    else
      to->srcDevice = devicePointer(from.srcPtr.ptr);
    to->srcPitch = from.srcPtr.pitch;
    to->srcHeight = from.srcPtr.ysize;
  }
  to->dstXInBytes = from.dstPos.x * targetElement;
  to->dstY = from.dstPos.y;
  to->dstZ = from.dstPos.z;
  if (from.dstArray) {
    to->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    to->dstArray = driverArray(from.dstArray);
  } else {
    to->dstMemoryType = memoryType(kind, false);
    if (to->dstMemoryType == CU_MEMORYTYPE_HOST)
      to->dstHost = from.dstPtr.ptr;
    else
      to->dstDevice = devicePointer(from.dstPtr.ptr);
    to->dstPitch = from.dstPtr.pitch;
    to->dstHeight = from.dstPtr.ysize;
  }
  to->WidthInBytes = from.extent.width * (from.srcArray ? sourceElement : targetElement);
  to->Height = from.extent.height;
  to->Depth = from.extent.depth;
  return cudaSuccess;
}

bool empty(const cudaExtent& extent) { return extent.width == 0 || extent.height == 0 || extent.depth == 0; }

cudaError_t toDriverPeerCopy(const cudaMemcpy3DPeerParms& from, CUDA_MEMCPY3D_PEER* to) {
  SONDE_TRY(planCopy(from, cudaMemcpyDeviceToDevice, to));
  SONDE_TRY(primaryContext(from.srcDevice, &to->srcContext));
  return primaryContext(from.dstDevice, &to->dstContext);
}

}  // namespace

cudaError_t toDriverCopy(const cudaMemcpy3DParms& from, CUDA_MEMCPY3D* to) {
  if (from.kind < cudaMemcpyHostToHost || from.kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  return planCopy(from, from.kind, to);
}

namespace impl {

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms* p) {
  if (!p) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEMCPY3D plan{};
  SONDE_TRY(toDriverCopy(*p, &plan));
  return empty(p->extent) ? cudaSuccess : SONDE_CU(cuMemcpy3D, &plan);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* p, cudaStream_t stream) {
  if (!p) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEMCPY3D plan{};
  SONDE_TRY(toDriverCopy(*p, &plan));
  return empty(p->extent) ? cudaSuccess : SONDE_CU(cuMemcpy3DAsync, &plan, stream);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms* p) {
  if (!p) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEMCPY3D_PEER plan{};
  SONDE_TRY(toDriverPeerCopy(*p, &plan));
  return empty(p->extent) ? cudaSuccess : SONDE_CU(cuMemcpy3DPeer, &plan);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms* p, cudaStream_t stream) {
  if (!p) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_MEMCPY3D_PEER plan{};
  SONDE_TRY(toDriverPeerCopy(*p, &plan));
  return empty(p->extent) ? cudaSuccess : SONDE_CU(cuMemcpy3DPeerAsync, &plan, stream);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const struct cudaChannelFormatDesc* desc, struct cudaExtent extent,
                              unsigned int flags) {
  if (!array || !desc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_ARRAY3D_DESCRIPTOR description{};
  SONDE_TRY(toArrayFormat(*desc, &description.Format, &description.NumChannels));
  description.Width = extent.width;
  description.Height = extent.height;
  description.Depth = extent.depth;
  description.Flags = flags;
  CUarray made = nullptr;
  SONDE_TRY(SONDE_CU(cuArray3DCreate, &made, &description));
  *array = reinterpret_cast<cudaArray_t>(made);
  return cudaSuccess;
}

cudaError_t cudaMallocArray(cudaArray_t* array, const struct cudaChannelFormatDesc* desc, size_t width, size_t height,
                            unsigned int flags) {
  return impl::cudaMalloc3DArray(array, desc, {width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  SONDE_TRY(ensureContext());
  return array ? SONDE_CU(cuArrayDestroy, driverArray(array)) : cudaSuccess;
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* mipmappedArray, const struct cudaChannelFormatDesc* desc,
                                     struct cudaExtent extent, unsigned int numLevels, unsigned int flags) {
  if (!mipmappedArray || !desc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_ARRAY3D_DESCRIPTOR description{};
  SONDE_TRY(toArrayFormat(*desc, &description.Format, &description.NumChannels));
  description.Width = extent.width;
  description.Height = extent.height;
  description.Depth = extent.depth;
  description.Flags = flags;
  CUmipmappedArray made = nullptr;
  SONDE_TRY(SONDE_CU(cuMipmappedArrayCreate, &made, &description, numLevels));
  *mipmappedArray = reinterpret_cast<cudaMipmappedArray_t>(made);
  return cudaSuccess;
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmappedArray) {
  SONDE_TRY(ensureContext());
  return mipmappedArray ? SONDE_CU(cuMipmappedArrayDestroy, driverArray(mipmappedArray)) : cudaSuccess;
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* levelArray, cudaMipmappedArray_const_t mipmappedArray,
                                       unsigned int level) {
  if (!levelArray) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUarray found = nullptr;
  SONDE_TRY(SONDE_CU(cuMipmappedArrayGetLevel, &found, driverArray(mipmappedArray), level));
  *levelArray = reinterpret_cast<cudaArray_t>(found);
  return cudaSuccess;
}

cudaError_t cudaArrayGetPlane(cudaArray_t* pPlaneArray, cudaArray_t hArray, unsigned int planeIdx) {
  if (!pPlaneArray) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUarray found = nullptr;
  SONDE_TRY(SONDE_CU(cuArrayGetPlane, &found, driverArray(hArray), planeIdx));
  *pPlaneArray = reinterpret_cast<cudaArray_t>(found);
  return cudaSuccess;
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc* desc, struct cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
  if (!array) return cudaErrorInvalidResourceHandle;
  SONDE_TRY(ensureContext());
  CUDA_ARRAY3D_DESCRIPTOR description{};
  SONDE_TRY(SONDE_CU(cuArray3DGetDescriptor, &description, driverArray(array)));
  cudaChannelFormatDesc format{};
  SONDE_TRY(fromArrayFormat(description.Format, description.NumChannels, &format));
  if (desc) *desc = format;
  if (extent) *extent = {description.Width, description.Height, description.Depth};
  if (flags) *flags = description.Flags;
  return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  if (!desc) return cudaErrorInvalidValue;
  return impl::cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

namespace {

cudaError_t toDriverResource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* to) {
  switch (from.resType) {
    case cudaResourceTypeArray:
      to->resType = CU_RESOURCE_TYPE_ARRAY;
      to->res.array.hArray = driverArray(from.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      to->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      to->res.mipmap.hMipmappedArray = driverArray(from.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear:
      to->resType = CU_RESOURCE_TYPE_LINEAR;
      to->res.linear.devPtr = devicePointer(from.res.linear.devPtr);
      to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      return toArrayFormat(from.res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
    case cudaResourceTypePitch2D:
      to->resType = CU_RESOURCE_TYPE_PITCH2D;
      to->res.pitch2D.devPtr = devicePointer(from.res.pitch2D.devPtr);
      to->res.pitch2D.width = from.res.pitch2D.width;
      to->res.pitch2D.height = from.res.pitch2D.height;
      to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      return toArrayFormat(from.res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
  }
  return cudaErrorInvalidValue;
}

CUDA_TEXTURE_DESC toDriverTexture(const cudaTextureDesc& from, const CUDA_RESOURCE_DESC& resource) {
  CUDA_TEXTURE_DESC to{};
  for (int i = 0; i < 3; ++i) to.addressMode[i] = static_cast<CUaddress_mode>(from.addressMode[i]);
  to.filterMode = static_cast<CUfilter_mode>(from.filterMode);
  // The runtime's default is to read elements as they are; the driver's is to
  // turn integers into [0, 1] floats.
  if (from.readMode == cudaReadModeElementType) to.flags |= CU_TRSF_READ_AS_INTEGER;
  if (from.normalizedCoords) to.flags |= CU_TRSF_NORMALIZED_COORDINATES;
  if (from.sRGB) to.flags |= CU_TRSF_SRGB;
  if (from.disableTrilinearOptimization) to.flags |= CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
  if (from.seamlessCubemap) to.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<CUfilter_mode>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::memcpy(to.borderColor, from.borderColor, sizeof to.borderColor);
  return to;
}

}  // namespace

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* pTexObject, const struct cudaResourceDesc* pResDesc,
                                    const struct cudaTextureDesc* pTexDesc,
                                    const struct cudaResourceViewDesc* pResViewDesc) {
  if (!pTexObject || !pResDesc || !pTexDesc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_RESOURCE_DESC resource{};
  SONDE_TRY(toDriverResource(*pResDesc, &resource));
  CUDA_TEXTURE_DESC texture = toDriverTexture(*pTexDesc, resource);
  static_assert(sizeof(cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC));
  CUtexObject made = 0;
  SONDE_TRY(SONDE_CU(cuTexObjectCreate, &made, &resource, &texture,
                     reinterpret_cast<const CUDA_RESOURCE_VIEW_DESC*>(pResViewDesc)));
  *pTexObject = made;
  return cudaSuccess;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuTexObjectDestroy, texObject);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* pSurfObject, const struct cudaResourceDesc* pResDesc) {
  if (!pSurfObject || !pResDesc) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUDA_RESOURCE_DESC resource{};
  SONDE_TRY(toDriverResource(*pResDesc, &resource));
  CUsurfObject made = 0;
  SONDE_TRY(SONDE_CU(cuSurfObjectCreate, &made, &resource));
  *pSurfObject = made;
  return cudaSuccess;
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuSurfObjectDestroy, surfObject);
}

}  // namespace impl
}  // namespace sonde::cudart

SONDE_CUDART_EXPORT struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                                 enum cudaChannelFormatKind f) {
  return {x, y, z, w, f};
}
