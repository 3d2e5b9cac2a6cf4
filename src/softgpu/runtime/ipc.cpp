// SPDX-License-Identifier: Apache-2.0
// Memory, events and pools that several processes share.
#include <cstring>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle));
static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle));
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* devPtr) {
  if (!handle) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuIpcGetMemHandle, reinterpret_cast<CUipcMemHandle*>(handle), devicePointer(devPtr));
}

cudaError_t cudaIpcOpenMemHandle(void** devPtr, cudaIpcMemHandle_t handle, unsigned int flags) {
  if (!devPtr) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUipcMemHandle given;
  std::memcpy(&given, &handle, sizeof given);
  CUdeviceptr made = 0;
  SONDE_TRY(SONDE_CU(cuIpcOpenMemHandle, &made, given, flags));
  *devPtr = reinterpret_cast<void*>(made);
  return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* devPtr) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuIpcCloseMemHandle, devicePointer(devPtr));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if (!handle) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuIpcGetEventHandle, reinterpret_cast<CUipcEventHandle*>(handle), event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  if (!event) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUipcEventHandle given;
  std::memcpy(&given, &handle, sizeof given);
  return SONDE_CU(cuIpcOpenEventHandle, event, given);
}

cudaError_t cudaMemPoolExportToShareableHandle(void* shareableHandle, cudaMemPool_t memPool,
                                               enum cudaMemAllocationHandleType handleType, unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolExportToShareableHandle, shareableHandle, memPool,
                  static_cast<CUmemAllocationHandleType>(handleType), flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* memPool, void* shareableHandle,
                                                 enum cudaMemAllocationHandleType handleType, unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolImportFromShareableHandle, memPool, shareableHandle,
                  static_cast<CUmemAllocationHandleType>(handleType), flags);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData* exportData, void* ptr) {
  if (!exportData) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuMemPoolExportPointer, reinterpret_cast<CUmemPoolPtrExportData*>(exportData), devicePointer(ptr));
}

cudaError_t cudaMemPoolImportPointer(void** ptr, cudaMemPool_t memPool, struct cudaMemPoolPtrExportData* exportData) {
  if (!ptr || !exportData) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUdeviceptr made = 0;
  SONDE_TRY(SONDE_CU(cuMemPoolImportPointer, &made, memPool, reinterpret_cast<CUmemPoolPtrExportData*>(exportData)));
  *ptr = reinterpret_cast<void*>(made);
  return cudaSuccess;
}

}  // namespace sonde::cudart::impl
