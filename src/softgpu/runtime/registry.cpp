// SPDX-License-Identifier: Apache-2.0
#include "softgpu/runtime/registry.h"

#include <algorithm>

#include "softgpu/runtime/state.h"

namespace sonde::cudart {

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

FatBinary* Registry::add(const void* wrapper) {
  std::unique_lock lock(mutex_);
  auto& binary = binaries_.emplace_back(std::make_unique<FatBinary>());
  binary->wrapper = wrapper;
  return binary.get();
}

void Registry::remove(FatBinary* binary) {
  CUlibrary library = nullptr;
  {
    std::unique_lock lock(mutex_);
    auto found = std::find_if(binaries_.begin(), binaries_.end(), [&](auto& each) { return each.get() == binary; });
    if (found == binaries_.end()) return;
    std::erase_if(kernels_, [&](auto& entry) {
      if (entry.second->binary != binary) return false;
      handles_.erase(entry.second->kernel.load());
      return true;
    });
    std::erase_if(variables_, [&](auto& entry) { return entry.second.binary == binary; });
    library = binary->library.load();
    binaries_.erase(found);
  }
  if (library) SONDE_CU(cuLibraryUnload, library);
}

void Registry::addKernel(FatBinary* binary, const void* stub, const char* name) {
  auto entry = std::make_unique<KernelEntry>();
  entry->binary = binary;
  entry->name = name;
  std::unique_lock lock(mutex_);
  kernels_[stub] = std::move(entry);
}

void Registry::addVariable(FatBinary* binary, const void* shadow, const char* name, size_t size) {
  std::unique_lock lock(mutex_);
  VariableEntry& entry = variables_[shadow];
  entry.binary = binary;
  entry.name = name;
  entry.size = size;
}

void Registry::addManaged(FatBinary* binary, void** hostPointer, const char* name, size_t size) {
  addVariable(binary, hostPointer, name, size);
  std::unique_lock lock(mutex_);
  binary->managed.push_back({hostPointer, name});
  managedPending_.store(true, std::memory_order_release);
}

cudaError_t Registry::load(FatBinary* binary, CUlibrary* library) {
  if (CUlibrary known = binary->library.load(std::memory_order_acquire)) {
    *library = known;
    return cudaSuccess;
  }
  std::lock_guard lock(binary->mutex);
  if (CUlibrary known = binary->library.load(std::memory_order_acquire)) {
    *library = known;
    return cudaSuccess;
  }
  // The registered image stays where it is: the driver need not copy it.
  CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
  void* value = reinterpret_cast<void*>(1);
  CUlibrary made = nullptr;
  SONDE_TRY(SONDE_CU(cuLibraryLoadData, &made, binary->wrapper, nullptr, nullptr, 0, &option, &value, 1));
  binary->library.store(made, std::memory_order_release);
  *library = made;
  return cudaSuccess;
}

cudaError_t Registry::kernel(const void* stub, CUkernel* kernel) {
  KernelEntry* entry = nullptr;
  {
    std::shared_lock lock(mutex_);
    if (auto found = kernels_.find(stub); found != kernels_.end()) {
      entry = found->second.get();
    } else {
      auto handle = static_cast<CUkernel>(const_cast<void*>(stub));
      if (!handles_.contains(handle)) return cudaErrorInvalidDeviceFunction;
      *kernel = handle;
      return cudaSuccess;
    }
  }
  if (CUkernel known = entry->kernel.load(std::memory_order_acquire)) {
    *kernel = known;
    return cudaSuccess;
  }
  CUlibrary library = nullptr;
  SONDE_TRY(load(entry->binary, &library));
  CUkernel found = nullptr;
  cudaError_t status = SONDE_CU(cuLibraryGetKernel, &found, library, entry->name.c_str());
  if (status == cudaErrorSymbolNotFound) return cudaErrorInvalidDeviceFunction;
  SONDE_TRY(status);
  remember(found);
  entry->kernel.store(found, std::memory_order_release);
  *kernel = found;
  return cudaSuccess;
}

void Registry::remember(CUkernel kernel) {
  std::unique_lock lock(mutex_);
  handles_.insert(kernel);
}

const char* Registry::kernelName(const void* stub) {
  CUkernel handle = nullptr;
  {
    std::shared_lock lock(mutex_);
    if (auto found = kernels_.find(stub); found != kernels_.end()) return found->second->name.c_str();
    handle = static_cast<CUkernel>(const_cast<void*>(stub));
    if (!handles_.contains(handle)) return nullptr;
  }
  const char* name = nullptr;
  return SONDE_CU(cuKernelGetName, &name, handle) == cudaSuccess ? name : nullptr;
}

cudaError_t Registry::variable(const void* shadow, CUdeviceptr* address, size_t* size) {
  VariableEntry entry;
  {
    std::shared_lock lock(mutex_);
    auto found = variables_.find(shadow);
    // The host knows a managed variable by where it is.
    for (auto& binary : binaries_) {
      if (found != variables_.end()) break;
      for (const ManagedVariable& managed : binary->managed)
        if (*managed.hostPointer == shadow) found = variables_.find(managed.hostPointer);
    }
    if (found == variables_.end()) return cudaErrorInvalidSymbol;
    entry = found->second;
  }
  CUlibrary library = nullptr;
  SONDE_TRY(load(entry.binary, &library));
  cudaError_t status = SONDE_CU(cuLibraryGetGlobal, address, size, library, entry.name.c_str());
  return status == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol : status;
}

cudaError_t Registry::publishManaged(FatBinary* binary) {
  CUlibrary library = nullptr;
  SONDE_TRY(load(binary, &library));
  for (const ManagedVariable& variable : binary->managed) {
    CUdeviceptr address = 0;
    size_t size = 0;
    SONDE_TRY(SONDE_CU(cuLibraryGetManaged, &address, &size, library, variable.name.c_str()));
    *variable.hostPointer = reinterpret_cast<void*>(address);
  }
  return cudaSuccess;
}

cudaError_t Registry::initialiseManagedSlow() {
  std::vector<FatBinary*> todo;
  {
    std::unique_lock lock(mutex_);
    if (!managedPending_.load(std::memory_order_acquire)) return cudaSuccess;
    for (auto& binary : binaries_)
      if (!binary->managed.empty()) todo.push_back(binary.get());
  }
  for (FatBinary* binary : todo) SONDE_TRY(publishManaged(binary));
  managedPending_.store(false, std::memory_order_release);
  return cudaSuccess;
}

cudaError_t Registry::initialiseManaged(FatBinary* binary) {
  if (binary) {  // null: whichever has some
    std::shared_lock lock(mutex_);
    if (binary->managed.empty()) return cudaSuccess;
  }
  return ensureContext();
}

void Registry::forgetManaged() {
  std::unique_lock lock(mutex_);
  for (auto& binary : binaries_)
    if (!binary->managed.empty()) managedPending_.store(true, std::memory_order_release);
}

void* Registry::nameOf(CUfunction function, CUkernel kernel) {
  std::vector<std::pair<const void*, CUkernel>> known;
  {
    std::shared_lock lock(mutex_);
    for (const auto& [stub, entry] : kernels_)
      if (CUkernel k = entry->kernel.load()) known.emplace_back(stub, k);
    for (CUkernel k : handles_) known.emplace_back(k, k);
  }
  for (const auto& [name, k] : known) {
    CUfunction f = nullptr;
    if (k == kernel || (function && SONDE_CU(cuKernelGetFunction, &f, k) == cudaSuccess && f == function))
      return const_cast<void*>(name);
  }
  return kernel ? static_cast<void*>(kernel) : function;
}

}  // namespace sonde::cudart
