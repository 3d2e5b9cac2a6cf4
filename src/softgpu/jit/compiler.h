// SPDX-License-Identifier: Apache-2.0
//
// LLVM IR to code in memory: target, passes, object cache, ORC. Nothing of LLVM
// shows here, so that the engine does not see its headers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ptx/ast.h"
#include "softgpu/exec/counters.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/counter_plan.h"

namespace sonde::softgpu::jit {

// A helper that compiled code may call.
struct RuntimeSymbol {
  const char* name;
  void* address;
};

// Unloads its code when destroyed; nobody may be running it then.
struct CompiledKernel {
  exec::WarpFunction entry = nullptr;
  CounterPlan counters;
  bool mayYield = false;          // barriers or spin loops: several warps need stacks of their own
  bool spins = false;             // may wait for other blocks
  bool waitsForChildren = false;  // may wait for kernels that it launched
  bool lanesWait = false;         // lanes of a warp may wait in a call for others: each warp needs a stack of its own
  uint32_t paramCopyBytes = 0;    // parameters that must lie in device memory
  bool recursive = false;         // needs room on the local stacks beyond localBytes
  uint32_t staticSharedBytes = 0, localBytes = 0;
  uint32_t stackBytes = 0;  // host stack for one warp
  bool fromCache = false;
  std::string cacheFile;  // on disk; empty: none
  uint64_t cacheBytes = 0;
  std::shared_ptr<void> code;
};

struct CompileRequest {
  const ptx::Module* module = nullptr;
  uint32_t function = 0;  // index of the kernel
  exec::CountLevel level = exec::CountLevel::off;
  bool sourceLevel = false;  // count each instruction; level: requests or deeper
  std::string sourceHash;    // of the PTX texts; empty: no cache
};

struct CompileResult {
  std::shared_ptr<CompiledKernel> kernel;  // null on error
  std::string error;                       // names function and line
};

// Hex digest of some bytes.
std::string digest(std::span<const std::string_view> parts);

// Thread-safe. `helpers` must be the same at each call and outlive the process.
CompileResult compileKernel(const CompileRequest& request, std::span<const RuntimeSymbol> helpers);

// What a kernel needs, without compiling it.
struct KernelNeeds {
  uint32_t registers = 0, staticSharedBytes = 0, localBytes = 0;
  bool mayYield = false, usesBarrier = false;
};
KernelNeeds kernelNeeds(const ptx::Module& module, uint32_t function);

}  // namespace sonde::softgpu::jit
