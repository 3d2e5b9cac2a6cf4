// SPDX-License-Identifier: Apache-2.0
// Linear memory: device, pinned, registered, managed; what a pointer is.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  if (!devPtr) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  if (size == 0) {
    *devPtr = nullptr;
    return cudaSuccess;
  }
  CUdeviceptr made = 0;
  SONDE_TRY(SONDE_CU(cuMemAlloc, &made, size));
  *devPtr = reinterpret_cast<void*>(made);
  return cudaSuccess;
}

cudaError_t cudaFree(void* devPtr) {
  SONDE_TRY(ensureContext());  // also for NULL: cudaFree(0) is the customary way to create the context
  return devPtr ? SONDE_CU(cuMemFree, devicePointer(devPtr)) : cudaSuccess;
}

cudaError_t cudaMallocPitch(void** devPtr, size_t* pitch, size_t width, size_t height) {
  if (!devPtr || !pitch) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  if (width == 0 || height == 0) {
    *devPtr = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  CUdeviceptr made = 0;
  size_t madePitch = 0;
  SONDE_TRY(SONDE_CU(cuMemAllocPitch, &made, &madePitch, width, height, 4));
  *devPtr = reinterpret_cast<void*>(made);
  *pitch = madePitch;
  return cudaSuccess;
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr* pitchedDevPtr, struct cudaExtent extent) {
  if (!pitchedDevPtr) return cudaErrorInvalidValue;
  if (extent.depth != 0 && extent.height > SIZE_MAX / extent.depth) return cudaErrorInvalidValue;
  void* made = nullptr;
  size_t pitch = 0;
  SONDE_TRY(impl::cudaMallocPitch(&made, &pitch, extent.width, extent.height * extent.depth));
  pitchedDevPtr->ptr = made;
  pitchedDevPtr->pitch = pitch;
  pitchedDevPtr->xsize = extent.width;
  pitchedDevPtr->ysize = extent.height;
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void** devPtr, size_t size, unsigned int flags) {
  if (!devPtr || size == 0) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUdeviceptr made = 0;
  SONDE_TRY(SONDE_CU(cuMemAllocManaged, &made, size, flags));
  *devPtr = reinterpret_cast<void*>(made);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int flags) {
  if (!pHost) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  if (size == 0) {
    *pHost = nullptr;
    return cudaSuccess;
  }
  void* made = nullptr;
  SONDE_TRY(SONDE_CU(cuMemHostAlloc, &made, size, flags));
  *pHost = made;
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** ptr, size_t size) { return impl::cudaHostAlloc(ptr, size, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* ptr) {
  SONDE_TRY(ensureContext());
  return ptr ? SONDE_CU(cuMemFreeHost, ptr) : cudaSuccess;
}

cudaError_t cudaHostRegister(void* ptr, size_t size, unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemHostRegister, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void* ptr) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemHostUnregister, ptr);
}

cudaError_t cudaHostGetDevicePointer(void** pDevice, void* pHost, unsigned int flags) {
  if (!pDevice) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUdeviceptr found = 0;
  SONDE_TRY(SONDE_CU(cuMemHostGetDevicePointer, &found, pHost, flags));
  *pDevice = reinterpret_cast<void*>(found);
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned int* pFlags, void* pHost) {
  if (!pFlags) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemHostGetFlags, pFlags, pHost);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (!free || !total) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemGetInfo, free, total);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* ptr) {
  if (!attributes) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  cudaPointerAttributes found{};
  CUdeviceptr address = devicePointer(ptr);
  CUmemorytype type{};
  cudaError_t status = SONDE_CU(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (status == cudaErrorInvalidValue) {  // memory that the driver does not know
    found.type = cudaMemoryTypeUnregistered;
    found.device = cudaInvalidDeviceId;
    found.hostPointer = const_cast<void*>(ptr);
    *attributes = found;
    return cudaSuccess;
  }
  SONDE_TRY(status);
  unsigned managed = 0;
  SONDE_CU(cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  found.type = managed ? cudaMemoryTypeManaged : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  SONDE_TRY(SONDE_CU(cuPointerGetAttribute, &found.device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
  // A pointer that one side cannot use stays NULL.
  void* host = nullptr;
  CUdeviceptr device = 0;
  if (SONDE_CU(cuPointerGetAttribute, &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) == cudaSuccess)
    found.hostPointer = host;
  if (SONDE_CU(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address) == cudaSuccess)
    found.devicePointer = reinterpret_cast<void*>(device);
  *attributes = found;
  return cudaSuccess;
}

// --------------------------------------------------------------- managed

namespace {

CUmemLocation driverLocation(const cudaMemLocation& location) {
  CUmemLocation to{};
  to.type = static_cast<CUmemLocationType>(location.type);
  to.id = location.id;
  return to;
}

}  // namespace

cudaError_t cudaMemPrefetchAsync(const void* devPtr, size_t count, struct cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPrefetchAsync, devicePointer(devPtr), count, driverLocation(location), flags, stream);
}

cudaError_t cudaMemAdvise(const void* devPtr, size_t count, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemAdvise, devicePointer(devPtr), count, static_cast<CUmem_advise>(advice),
                  driverLocation(location));
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t dataSize, enum cudaMemRangeAttribute attribute,
                                     const void* devPtr, size_t count) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemRangeGetAttribute, data, dataSize, static_cast<CUmem_range_attribute>(attribute),
                  devicePointer(devPtr), count);
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* dataSizes, enum cudaMemRangeAttribute* attributes,
                                      size_t numAttributes, const void* devPtr, size_t count) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemRangeGetAttributes, data, dataSizes, reinterpret_cast<CUmem_range_attribute*>(attributes),
                  numAttributes, devicePointer(devPtr), count);
}

// ----------------------------------------------------- stream-ordered pools

cudaError_t cudaMallocAsync(void** devPtr, size_t size, cudaStream_t hStream) {
  if (!devPtr) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  if (size == 0) {
    *devPtr = nullptr;
    return cudaSuccess;
  }
  CUdeviceptr made = 0;
  SONDE_TRY(SONDE_CU(cuMemAllocAsync, &made, size, hStream));
  *devPtr = reinterpret_cast<void*>(made);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void* devPtr, cudaStream_t hStream) {
  SONDE_TRY(ensureContext());
  return devPtr ? SONDE_CU(cuMemFreeAsync, devicePointer(devPtr), hStream) : cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream) {
  if (!ptr) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUdeviceptr made = 0;
  SONDE_TRY(SONDE_CU(cuMemAllocFromPoolAsync, &made, size, memPool, stream));
  *ptr = reinterpret_cast<void*>(made);
  return cudaSuccess;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* memPool, const struct cudaMemPoolProps* poolProps) {
  if (!memPool || !poolProps) return cudaErrorInvalidValue;
  static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolCreate, memPool, reinterpret_cast<const CUmemPoolProps*>(poolProps));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolDestroy, memPool);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolTrimTo, memPool, minBytesToKeep);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolSetAttribute, memPool, static_cast<CUmemPool_attribute>(attr), value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void* value) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolGetAttribute, memPool, static_cast<CUmemPool_attribute>(attr), value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool, const struct cudaMemAccessDesc* descList, size_t count) {
  static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolSetAccess, memPool, reinterpret_cast<const CUmemAccessDesc*>(descList), count);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags* flags, cudaMemPool_t memPool,
                                 struct cudaMemLocation* location) {
  if (!flags || !location) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUmemLocation where = driverLocation(*location);
  CUmemAccess_flags found{};
  SONDE_TRY(SONDE_CU(cuMemPoolGetAccess, &found, memPool, &where));
  *flags = static_cast<cudaMemAccessFlags>(found);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* memPool, int device) {
  if (!memPool) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceGetDefaultMemPool, memPool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* memPool, int device) {
  if (!memPool) return cudaErrorInvalidValue;
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceGetMemPool, memPool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  SONDE_TRY(checkDevice(device));
  return SONDE_CU(cuDeviceSetMemPool, device, memPool);
}

}  // namespace sonde::cudart::impl
