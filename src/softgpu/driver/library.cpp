// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/library.h"

#include <algorithm>
#include <cstring>

#include "platform/clock.h"

namespace sonde::softgpu::driver {

Kernel::~Kernel() = default;
const exec::KernelInfo& Kernel::info() const { return library_->program().kernels()[index_]; }

Library::Library(std::vector<std::string> texts, std::shared_ptr<exec::Program> program)
    : Object(kType), texts_(std::move(texts)), program_(std::move(program)) {
  kernels_.resize(program_->kernels().size());
}
Library::~Library() = default;

Ref<Kernel> Library::kernel(uint32_t index) {
  std::lock_guard lock(mutex_);
  Ref<Kernel>& k = kernels_[index];
  if (!k) {
    k = make<Kernel>(this, index);
    HandleTable::publish(k.get());
  }
  return k;
}

CUresult Library::module(Context& context, Ref<Module>& out) {
  {
    std::lock_guard lock(mutex_);
    auto it = modules_.find(context.uid());
    if (it != modules_.end()) {
      out = it->second;
      return CUDA_SUCCESS;
    }
  }
  // Loading reports to the listener, so no lock is held. Of two threads that
  // come here at once, one module is kept.
  Ref<Module> loaded;
  JitLogs logs;
  if (const CUresult e = loadModuleTexts(context, texts_, logs, loaded)) return e;
  bool kept;
  {
    std::lock_guard lock(mutex_);
    auto [it, inserted] = modules_.emplace(context.uid(), loaded);
    out = it->second;
    kept = inserted;
  }
  if (!kept) unloadModule(*loaded);
  return CUDA_SUCCESS;
}

void Library::unload() {
  std::map<uint32_t, Ref<Module>> modules;
  std::vector<Ref<Kernel>> kernels;
  {
    std::lock_guard lock(mutex_);
    modules.swap(modules_);
    kernels.swap(kernels_);
    kernels_.resize(kernels.size());
  }
  for (auto& [uid, module] : modules)
    if (module && !module->context()->destroyed.load()) unloadModule(*module);
  for (auto& kernel : kernels)
    if (kernel) HandleTable::retire(kernel.get());
}

CUresult kernelFunction(CUkernel handle, Ref<Function>& out) {
  const Ref<Kernel> kernel = HandleTable::find<Kernel>(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  Ref<Module> module;
  if (const CUresult e = kernel->library()->module(*context, module)) return e;
  out = module->function(kernel->index());
  return CUDA_SUCCESS;
}

CUresult JitOptions::parse(unsigned count, const CUjit_option* options, void* const* values) {
  if (count && (!options || !values)) return CUDA_ERROR_INVALID_VALUE;
  startNs_ = platform::nowNs();
  auto** out = const_cast<void**>(values);
  for (unsigned i = 0; i < count; i++) {
    const auto number = reinterpret_cast<uintptr_t>(values[i]);
    switch (static_cast<int>(options[i])) {
      case CU_JIT_INFO_LOG_BUFFER: info_ = static_cast<char*>(values[i]); break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: infoBytes_ = static_cast<unsigned>(number), infoSize_ = &out[i]; break;
      case CU_JIT_ERROR_LOG_BUFFER: error_ = static_cast<char*>(values[i]); break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: errorBytes_ = static_cast<unsigned>(number), errorSize_ = &out[i]; break;
      case CU_JIT_WALL_TIME: wallTime_ = &out[i]; break;
      default:
        if (static_cast<int>(options[i]) < 0 || options[i] >= CU_JIT_NUM_OPTIONS) return CUDA_ERROR_INVALID_VALUE;
        break;  // what is left tunes a compiler that this driver does not have
    }
  }
  return CUDA_SUCCESS;
}

void JitOptions::deliver(const JitLogs& logs) {
  auto put = [](const std::string& text, char* buffer, size_t bytes, void** size) {
    if (!buffer || bytes == 0) return;
    const size_t n = std::min(text.size(), bytes - 1);
    std::memcpy(buffer, text.data(), n);
    buffer[n] = 0;
    if (size) *size = reinterpret_cast<void*>(static_cast<uintptr_t>(n ? n + 1 : 0));
  };
  put(logs.info, info_, infoBytes_, infoSize_);
  put(logs.error, error_, errorBytes_, errorSize_);
  if (wallTime_) {
    const float ms = static_cast<float>(static_cast<double>(platform::nowNs() - startNs_) * 1e-6);
    std::memcpy(wallTime_, &ms, sizeof ms);
  }
}

}  // namespace sonde::softgpu::driver
