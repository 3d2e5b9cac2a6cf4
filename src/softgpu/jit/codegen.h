// SPDX-License-Identifier: Apache-2.0
//
// PTX functions to LLVM IR. KernelCodegen makes one LLVM module of a kernel and
// all functions that it can reach; FunctionCodegen does one of them.
#pragma once

#include <llvm/IR/LLVMContext.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ptx/ast.h"
#include "softgpu/exec/counters.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/codegen_tokens.h"
#include "softgpu/jit/counter_plan.h"
#include "softgpu/jit/emit_context.h"
#include "softgpu/jit/flow.h"

namespace sonde::softgpu::jit {

struct TargetFeatures {
  bool avx512 = false;
  bool canonicalNan = true;
};

// What a kernel is made of; found before anything is compiled.
struct KernelLayout {
  std::vector<uint32_t> functions;                                // reachable, the kernel first
  std::map<uint32_t, uint32_t> sharedModule;                      // Module::variables id -> offset
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> sharedLocal;  // (function, variable) -> offset
  uint32_t staticSharedBytes = 0;                                 // dynamic shared memory begins here
  uint32_t localBytes = 0;                                        // deepest static path of local frames
  bool recursive = false, indirectCalls = false;
  bool calleesExit = false;       // a called function holds an exit
  bool mayYield = false;          // barriers or spin loops
  bool spins = false;             // may wait for other blocks
  bool waitsForChildren = false;  // calls cudaDeviceSynchronize
  uint32_t paramCopyBytes = 0;    // the parameters' address is taken
  bool usesGridSync = false;
  bool lanesWait = false;  // lanes of a warp may wait in a call for others of it
  CalleeTraits callees;
  bool clusterBarrier = false;  // barrier.cluster waits for lanes, which may leave one by one
};
KernelLayout layoutOf(const ptx::Module& module, uint32_t kernel);
// Bytes and offsets of a function's local variables.
uint32_t localFrame(const ptx::Function& function, std::vector<uint32_t>* offsets = nullptr);

class KernelCodegen {
 public:
  // sourceLevel: instruction by instruction too; the level is then `requests` or deeper.
  KernelCodegen(llvm::LLVMContext& context, const ptx::Module& module, uint32_t kernel, exec::CountLevel level,
                bool sourceLevel, TargetFeatures features);

  // The entry's symbol is "kernel". Throws Unsupported.
  std::unique_ptr<llvm::Module> generate();

  llvm::Module& llvmModule() { return *llvm_; }
  llvm::Function* declare(uint32_t function);
  llvm::FunctionCallee helper(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args);
  llvm::FunctionType* warpFunctionType();

  const ptx::Module& module;
  const uint32_t kernel;
  const exec::CountLevel level;
  const bool sourceLevel;
  const TargetFeatures features;
  KernelLayout layout;
  CounterPlan counters;
  bool outlineAccesses = false;  // many loads and stores: call instead of repeating their code

 private:
  std::unique_ptr<llvm::Module> llvm_;
  std::map<uint32_t, llvm::Function*> declared_;
};

}  // namespace sonde::softgpu::jit
