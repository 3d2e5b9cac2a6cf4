// SPDX-License-Identifier: Apache-2.0
//
// Modules, libraries and the functions in them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platform/tools_api.h"
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
  // kernel that cannot be compiled comes back each time. correlation 0: that of
  // the running API call.
  CUresult load(exec::CountLevel level, bool sourceLevel = false, uint32_t correlation = 0);
  SondeResource describe() const;
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
  // clusterFacts's last answer. 0, of no threads: none yet.
  mutable std::atomic<uint64_t> lastClusters{0};

 private:
  Ref<Module> module_;
  const uint32_t index_, id_;
  std::atomic<uint8_t> loaded_{0};  // bit per CountLevel; 4 higher with source-level counting
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
  // Functions that were reported as loaded, or would have been.
  std::vector<SondeResource> describeFunctions();
  // The id of any function, by its number in the program (InstructionCount). One
  // that is not a kernel is reported as loaded when it is first asked for.
  uint32_t functionIdOf(uint32_t function);
  // For records of instructions without a source line: the PTX text's name.
  const char* ptxName() const { return ptxName_.c_str(); }
  // The variable's address; false when there is none of that name.
  bool global(const std::string& name, uint64_t& address, uint64_t& bytes, bool* managed = nullptr) const;
  // Gives the variables their places.
  CUresult placeGlobals();
  void release();

 private:
  std::vector<Ref<Function>> loadedFunctions();
  SondeResource describeDeviceFunction(uint32_t number, uint32_t id) const;
  Ref<Context> context_;
  std::shared_ptr<exec::Program> program_;
  const std::string image_;
  const uint32_t id_;
  const std::string ptxName_;
  std::mutex mutex_;
  std::vector<Ref<Function>> functions_;
  std::map<uint32_t, uint32_t> deviceFunctionIds_;
  std::map<std::string, uint32_t> kernelsByName_, globalsByName_;
  std::vector<uint64_t> addresses_;
  std::vector<uint64_t> allocations_;
};

// The text that JIT options ask for.
struct JitLogs {
  std::vector<std::string> names;  // of the texts, in their order, where the caller gave some: they begin the messages
  std::string info, error;
  std::string quoted;  // the line of PTX that the first error is about, with a mark below it
  // For the user on stderr: the first error, and the quoted line.
  std::string shown() const;
  std::string prefix(size_t text) const;  // "ptx", or "ptx 'NAME'"; a text beyond the last is none of them
  void fail(const std::string& message) { error += (names.empty() ? "" : prefix(0) + "; error: ") + message + "\n"; }
};

// The bytes of an image's file, which then names what `logs` tells. On failure `logs.error` says why.
CUresult readImageFile(const char* path, std::string& bytes, JitLogs& logs);

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
