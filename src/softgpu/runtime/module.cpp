// SPDX-License-Identifier: Apache-2.0
// Libraries loaded by hand, and the way to the driver's own functions.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, enum cudaJitOption* jitOptions,
                                void** jitOptionsValues, unsigned int numJitOptions,
                                enum cudaLibraryOption* libraryOptions, void** libraryOptionValues,
                                unsigned int numLibraryOptions) {
  if (!library || !code) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLibraryLoadData, reinterpret_cast<CUlibrary*>(library), code,
                  reinterpret_cast<CUjit_option*>(jitOptions), jitOptionsValues, numJitOptions,
                  reinterpret_cast<CUlibraryOption*>(libraryOptions), libraryOptionValues, numLibraryOptions);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* fileName, enum cudaJitOption* jitOptions,
                                    void** jitOptionsValues, unsigned int numJitOptions,
                                    enum cudaLibraryOption* libraryOptions, void** libraryOptionValues,
                                    unsigned int numLibraryOptions) {
  if (!library || !fileName) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLibraryLoadFromFile, reinterpret_cast<CUlibrary*>(library), fileName,
                  reinterpret_cast<CUjit_option*>(jitOptions), jitOptionsValues, numJitOptions,
                  reinterpret_cast<CUlibraryOption*>(libraryOptions), libraryOptionValues, numLibraryOptions);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLibraryUnload, reinterpret_cast<CUlibrary>(library));
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* pKernel, cudaLibrary_t library, const char* name) {
  if (!pKernel || !name) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  CUkernel found = nullptr;
  SONDE_TRY(SONDE_CU(cuLibraryGetKernel, &found, reinterpret_cast<CUlibrary>(library), name));
  registry().remember(found);
  *pKernel = reinterpret_cast<cudaKernel_t>(found);
  return cudaSuccess;
}

cudaError_t cudaLibraryGetGlobal(void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) {
  if (!name) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuLibraryGetGlobal, reinterpret_cast<CUdeviceptr*>(dptr), bytes, reinterpret_cast<CUlibrary>(library),
                  name);
}

cudaError_t cudaLibraryGetManaged(void** dptr, size_t* bytes, cudaLibrary_t library, const char* name) {
  if (!name) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuLibraryGetManaged, reinterpret_cast<CUdeviceptr*>(dptr), bytes,
                  reinterpret_cast<CUlibrary>(library), name);
}

cudaError_t cudaLibraryGetUnifiedFunction(void** fptr, cudaLibrary_t library, const char* symbol) {
  if (!fptr || !symbol) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuLibraryGetUnifiedFunction, fptr, reinterpret_cast<CUlibrary>(library), symbol);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t lib) {
  if (!count) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  return SONDE_CU(cuLibraryGetKernelCount, count, reinterpret_cast<CUlibrary>(lib));
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int numKernels, cudaLibrary_t lib) {
  if (!kernels) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  unsigned present = 0;
  SONDE_TRY(SONDE_CU(cuLibraryGetKernelCount, &present, reinterpret_cast<CUlibrary>(lib)));
  SONDE_TRY(SONDE_CU(cuLibraryEnumerateKernels, reinterpret_cast<CUkernel*>(kernels), numKernels,
                     reinterpret_cast<CUlibrary>(lib)));
  for (unsigned i = 0; i < numKernels && i < present; ++i) registry().remember(reinterpret_cast<CUkernel>(kernels[i]));
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** funcPtr, unsigned int cudaVersion,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* driverStatus) {
  if (!symbol || !funcPtr) return cudaErrorInvalidValue;
  if (flags > cudaEnablePerThreadDefaultStream) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  if (flags == cudaEnableDefault && PerThreadDefaultStream::active()) flags = cudaEnablePerThreadDefaultStream;
  CUdriverProcAddressQueryResult status{};
  CUresult result = CUDA_SUCCESS;
  void* found = driverEntryPoint(symbol, static_cast<int>(cudaVersion), flags, &status, &result);
  // A name that is not there is no error here: the status tells.
  if (result == CUDA_ERROR_NOT_FOUND) result = CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return fromDriver(result);
  *funcPtr = found;
  if (driverStatus)
    *driverStatus = static_cast<cudaDriverEntryPointQueryResult>(status);
  else if (!found)
    return cudaErrorSymbolNotFound;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult* driverStatus) {
  return impl::cudaGetDriverEntryPointByVersion(symbol, funcPtr, CUDART_VERSION, flags, driverStatus);
}

}  // namespace sonde::cudart::impl
