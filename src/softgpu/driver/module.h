// SPDX-License-Identifier: Apache-2.0
//
// Modules, libraries and the functions in them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/driver/driver.h"
#include "softgpu/exec/engine.h"

namespace sonde::softgpu::driver {

class Module;

// A kernel of a module. Lives as long as the module, and while work that uses
// it is queued.
class Function final : public Object {
 public:
  static constexpr Type kType = Type::function;
  Function(Module* module, uint32_t index, uint32_t id);
  ~Function() override;

  Module* module() const { return module_.get(); }
  uint32_t index() const { return index_; }
  uint32_t id() const { return id_; }
  const exec::KernelInfo& info() const;
  // Makes the code for this level; reports what that cost. The error of a
  // kernel that cannot be compiled comes back each time.
  CUresult load(exec::CountLevel level);
  bool loaded() const { return loaded_.load(std::memory_order_acquire) != 0; }

  std::atomic<uint32_t> maxDynamicShared{0};
  std::atomic<int> carveout{-1}, cacheConfig{0};
  // What cuFuncSetBlockShape, cuFuncSetSharedSize and cuParamSet* have set, for cuLaunch*.
  struct OldLaunch {
    std::mutex mutex;
    exec::Dim3 block{0, 0, 0};
    uint32_t dynamicShared = 0;
    std::vector<std::byte> params;
  } oldLaunch;
  std::atomic<int> clusterX{0}, clusterY{0}, clusterZ{0}, nonPortableCluster{0}, clusterPolicy{0};

 private:
  Ref<Module> module_;
  const uint32_t index_, id_;
  std::atomic<uint8_t> loaded_{0};  // bit per CountLevel
};

class Module final : public Object {
 public:
  static constexpr Type kType = Type::module;
  Module(Context* context, std::shared_ptr<exec::Program> program, std::string image);
  ~Module() override;

  Context* context() const { return context_.get(); }
  uint32_t id() const { return id_; }
  const exec::Program& program() const { return *program_; }
  const std::string& image() const { return image_; }
  Ref<Function> function(const std::string& name);
  Ref<Function> function(uint32_t index);
  // The variable's address; false when there is none of that name.
  bool global(const std::string& name, uint64_t& address, uint64_t& bytes, bool* managed = nullptr) const;
  // Gives the variables their places.
  CUresult placeGlobals();
  void release();

 private:
  Ref<Context> context_;
  std::shared_ptr<exec::Program> program_;
  const std::string image_;
  const uint32_t id_;
  std::mutex mutex_;
  std::vector<Ref<Function>> functions_;
  std::map<std::string, uint32_t> kernelsByName_, globalsByName_;
  std::vector<uint64_t> addresses_;
  std::vector<uint64_t> allocations_;
};

// The text that JIT options ask for.
struct JitLogs {
  std::string info, error;
};

// Loads an image into a context. On failure `logs.error` says why.
CUresult loadModule(Context& context, const void* image, size_t bytes, JitLogs& logs, Ref<Module>& out);
CUresult loadModuleTexts(Context& context, std::vector<std::string> texts, JitLogs& logs, Ref<Module>& out);
void unloadModule(Module& module);

// Parses the texts for a device: the error of the driver, and the log.
CUresult makeProgram(const std::vector<std::string>& texts, const model::DeviceModel& device, JitLogs& logs,
                     std::shared_ptr<exec::Program>& out);

// A CUfunction or a CUkernel, as a function of the current context.
CUresult findFunction(CUfunction handle, Ref<Function>& out);

}  // namespace sonde::softgpu::driver
