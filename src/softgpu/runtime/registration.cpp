// SPDX-License-Identifier: Apache-2.0
// The functions that compiled code calls by itself: registration of fat
// binaries and the two halves of a <<<>>> launch.

#include "softgpu/runtime/impl.h"

namespace sonde::cudart {
namespace {

struct CallConfiguration {
  dim3 grid, block;
  size_t sharedMemory;
  void* stream;
};

// A launch argument may itself launch, hence a stack.
std::vector<CallConfiguration>& callConfigurations() {
  thread_local std::vector<CallConfiguration> stack;
  return stack;
}

}  // namespace
}  // namespace sonde::cudart

using namespace sonde::cudart;

SONDE_CUDART_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(registry().add(wrapper));
}

SONDE_CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

SONDE_CUDART_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  registry().remove(reinterpret_cast<FatBinary*>(handle));
}

SONDE_CUDART_EXPORT void __cudaRegisterFunction(void** handle, const char* stub, char*, const char* name, int, uint3*,
                                                uint3*, dim3*, dim3*, int*) {
  registry().addKernel(reinterpret_cast<FatBinary*>(handle), stub, name);
}

SONDE_CUDART_EXPORT void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int, size_t size, int,
                                           int) {
  registry().addVariable(reinterpret_cast<FatBinary*>(handle), shadow, name, size);
}

SONDE_CUDART_EXPORT void __cudaRegisterHostVar(void** handle, const char* name, char* shadow, size_t size) {
  registry().addVariable(reinterpret_cast<FatBinary*>(handle), shadow, name, size);
}

SONDE_CUDART_EXPORT void __cudaRegisterManagedVar(void** handle, void** hostPointer, char*, const char* name, int,
                                                  size_t size, int, int) {
  registry().addManaged(reinterpret_cast<FatBinary*>(handle), hostPointer, name, size);
}

SONDE_CUDART_EXPORT char __cudaInitModule(void** handle) {
  const unsigned runtime = takeRuntime();
  cudaError_t status = registry().initialiseManaged(reinterpret_cast<FatBinary*>(handle));
  recordError(status, runtime);
  return status == cudaSuccess;
}

// Unified function tables need a driver that shares code between host and device.
SONDE_CUDART_EXPORT void __cudaRegisterUnifiedTable(void**, void*) {}

SONDE_CUDART_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t sharedMemory, void* stream) {
  callConfigurations().push_back({grid, block, sharedMemory, stream});
  return 0;
}

SONDE_CUDART_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* sharedMemory,
                                                           void* stream) {
  auto& stack = callConfigurations();
  const unsigned runtime = takeRuntime();
  if (stack.empty()) return recordError(cudaErrorMissingConfiguration, runtime);
  CallConfiguration configuration = stack.back();
  stack.pop_back();
  *grid = configuration.grid;
  *block = configuration.block;
  *sharedMemory = configuration.sharedMemory;
  *static_cast<void**>(stream) = configuration.stream;
  return cudaSuccess;
}

SONDE_CUDART_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  // The stub itself is the handle until the launch: compiled code asks once,
  // keeps the answer, and must see the error of a failed load at each launch.
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

SONDE_CUDART_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                   size_t sharedMemory, cudaStream_t stream) {
  return ::cudaLaunchKernel(kernel, grid, block, arguments, sharedMemory, stream);
}

extern "C" cudaError_t cudaLaunchKernel_ptsz(const void*, dim3, dim3, void**, size_t, cudaStream_t);
SONDE_CUDART_EXPORT cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                                        size_t sharedMemory, cudaStream_t stream) {
  return cudaLaunchKernel_ptsz(kernel, grid, block, arguments, sharedMemory, stream);
}
