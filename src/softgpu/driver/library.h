// SPDX-License-Identifier: Apache-2.0
//
// Libraries (cuLibrary…): code that belongs to no context. Each context that
// uses one gets a module of its own, made at first use.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "softgpu/driver/module.h"

namespace sonde::softgpu::driver {

class Library;

class Kernel final : public Object {
 public:
  static constexpr Type kType = Type::kernel;
  Kernel(Library* library, uint32_t index) : Object(kType), library_(library), index_(index) {}
  ~Kernel() override;
  Library* library() const { return library_.get(); }
  uint32_t index() const { return index_; }
  const exec::KernelInfo& info() const;

 private:
  friend class Library;
  Ref<Library> library_;
  const uint32_t index_;
};

class Library final : public Object {
 public:
  static constexpr Type kType = Type::library;
  Library(std::vector<std::string> texts, std::shared_ptr<exec::Program> program);
  ~Library() override;

  const exec::Program& program() const { return *program_; }
  Ref<Kernel> kernel(uint32_t index);
  // The library's module in this context, loaded when it is not yet there.
  CUresult module(Context& context, Ref<Module>& out);
  void unload();

 private:
  const std::vector<std::string> texts_;
  const std::shared_ptr<exec::Program> program_;  // tells names and sizes; never run
  std::mutex mutex_;
  std::vector<Ref<Kernel>> kernels_;
  std::map<uint32_t, Ref<Module>> modules_;  // by context uid
};

// The function of a CUkernel in the current context.
CUresult kernelFunction(CUkernel handle, Ref<Function>& out);

// JIT options as the API passes them; fills the caller's buffers at the end.
class JitOptions {
 public:
  CUresult parse(unsigned count, const CUjit_option* options, void* const* values);
  void deliver(const JitLogs& logs);

 private:
  void* const* values_ = nullptr;
  char *info_ = nullptr, *error_ = nullptr;
  size_t infoBytes_ = 0, errorBytes_ = 0;
  void **infoSize_ = nullptr, **errorSize_ = nullptr, **wallTime_ = nullptr;
  uint64_t startNs_ = 0;
};

}  // namespace sonde::softgpu::driver
