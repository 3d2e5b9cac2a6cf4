// SPDX-License-Identifier: Apache-2.0
// What the compiler registers before main: fat binaries, and for each the host
// stubs of its kernels and the host shadows of its variables. Code is loaded
// at first use.
#ifndef SONDE_SOFTGPU_RUNTIME_REGISTRY_H_
#define SONDE_SOFTGPU_RUNTIME_REGISTRY_H_

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "softgpu/runtime/driver.h"

namespace sonde::cudart {

struct ManagedVariable {
  void** hostPointer;  // filled with the variable's address when the module is loaded
  std::string name;
};

// One fat binary. Addresses are stable: the compiler's code holds them.
struct FatBinary {
  const void* wrapper = nullptr;
  std::mutex mutex;  // guards loading
  std::atomic<CUlibrary> library{nullptr};
  std::vector<ManagedVariable> managed;
};

struct KernelEntry {
  FatBinary* binary = nullptr;
  std::string name;
  std::atomic<CUkernel> kernel{nullptr};
};

struct VariableEntry {
  FatBinary* binary = nullptr;
  std::string name;
  size_t size = 0;
};

class Registry {
 public:
  FatBinary* add(const void* wrapper);
  void remove(FatBinary* binary);
  void addKernel(FatBinary* binary, const void* stub, const char* name);
  void addVariable(FatBinary* binary, const void* shadow, const char* name, size_t size);
  void addManaged(FatBinary* binary, void** hostPointer, const char* name, size_t size);

  // The kernel behind a stub (or behind a kernel handle given out earlier),
  // loading its module. cudaErrorInvalidDeviceFunction: nobody registered it.
  cudaError_t kernel(const void* stub, CUkernel* kernel);
  // Mangled name for reports, without loading anything; NULL: unknown.
  const char* kernelName(const void* stub);
  // What a program names this kernel by: its stub, else a handle that may stand in its place.
  void* nameOf(CUfunction function, CUkernel kernel);
  // Lets `kernel` be passed wherever a stub may stand.
  void remember(CUkernel kernel);
  // Address and size of a __device__ or __constant__ variable in the current
  // context. cudaErrorInvalidSymbol: nobody registered it.
  cudaError_t variable(const void* shadow, CUdeviceptr* address, size_t* size);

  // Loads the modules that hold managed variables and publishes the addresses.
  cudaError_t initialiseManaged() {
    return managedPending_.load(std::memory_order_acquire) ? initialiseManagedSlow() : cudaSuccess;
  }
  cudaError_t initialiseManaged(FatBinary* binary);
  // The device was reset: addresses have to be asked for again.
  void forgetManaged();

 private:
  cudaError_t load(FatBinary* binary, CUlibrary* library);
  cudaError_t initialiseManagedSlow();
  cudaError_t publishManaged(FatBinary* binary);

  std::shared_mutex mutex_;  // guards everything below
  std::deque<std::unique_ptr<FatBinary>> binaries_;
  std::unordered_map<const void*, std::unique_ptr<KernelEntry>> kernels_;
  std::unordered_map<const void*, VariableEntry> variables_;
  std::unordered_set<CUkernel> handles_;
  std::atomic<bool> managedPending_{false};
};

// Lives until the process ends.
Registry& registry();

}  // namespace sonde::cudart

#endif  // SONDE_SOFTGPU_RUNTIME_REGISTRY_H_
