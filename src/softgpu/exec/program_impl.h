// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "ptx/ast.h"
#include "softgpu/exec/engine.h"
#include "softgpu/exec/grid.h"
#include "softgpu/jit/compiler.h"

namespace sonde::softgpu::exec {

class ProgramImpl final : public Program {
 public:
  ProgramImpl(ptx::Module module, std::string hash, uint64_t bytes);

  std::span<const KernelInfo> kernels() const override { return kernels_; }
  std::span<const GlobalInfo> globals() const override { return globals_; }
  void bind(std::span<const uint64_t> addresses) override;

  const ptx::Module& module() const { return module_; }
  uint32_t functionOf(uint32_t kernel) const { return kernelFunctions_[kernel]; }
  uint64_t ptxBytes() const { return ptxBytes_; }
  // Address of each of the module's variables, by its id.
  const uint64_t* addressTable() const { return addresses_.data(); }
  // Line of the PTX, and of the source when the PTX has a .loc.
  void locate(uint64_t position, Fault& fault) const;
  // The PTX line, and that of the source where there is one.
  std::string place(uint64_t position) const;

  // Null and `info.error` on failure.
  std::shared_ptr<const jit::CompiledKernel> compiled(uint32_t kernel, CountLevel level, bool sourceLevel,
                                                      CompileInfo* info) const;
  std::string_view functionName(uint32_t function) const override;
  uint32_t kernelOf(uint32_t function) const override;
  bool launchesOnDevice() const override { return launches_; }
  // Adds what the slots of a source-level run mean.
  void describe(const jit::CounterPlan& plan, const std::vector<uint64_t>& slots,
                std::vector<InstructionCount>& out) const;

 private:
  void writeInitialValues(const ptx::Variable& v, uint64_t address) const;
  uint64_t symbolAddress(const std::string& name) const;

  ptx::Module module_;
  std::string hash_;
  uint64_t ptxBytes_ = 0;
  bool launches_ = false;
  std::vector<KernelInfo> kernels_;
  std::vector<uint32_t> kernelFunctions_;
  std::vector<GlobalInfo> globals_;
  std::vector<uint32_t> globalVariables_;  // id of each global
  std::vector<uint64_t> addresses_;
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const jit::CompiledKernel> code;
    std::string error;
  };
  mutable std::mutex mutex_;
  mutable std::map<std::tuple<uint32_t, CountLevel, bool>, std::shared_ptr<Slot>> code_;
};

// The first fault of a grid (of the lowest block that had one) becomes its
// outcome. lanes: who did it; 0: not known.
void recordFault(GridRun& grid, const WarpState& warp, int32_t error, uint32_t lanes, uint64_t address,
                 const char* what);

}  // namespace sonde::softgpu::exec
