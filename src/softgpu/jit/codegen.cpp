// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/codegen.h"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::StateSpace;

namespace {

// More loads and stores than this in a kernel are not repeated in place.
constexpr size_t kMostInlineAccesses = 48;

uint64_t alignUp(uint64_t v, uint64_t a) { return a ? (v + a - 1) / a * a : v; }
bool isShared(StateSpace s) {
  return s == StateSpace::shared || s == StateSpace::sharedCta || s == StateSpace::sharedCluster;
}

void forEachOperand(const Operand& o, const std::function<void(const Operand&)>& visit) {
  visit(o);
  for (const Operand& e : o.elements) forEachOperand(e, visit);
}
void forEachOperand(const Instruction& in, const std::function<void(const Operand&)>& visit) {
  for (const Operand& o : in.operands) forEachOperand(o, visit);
  for (const Operand& o : in.callArgs) forEachOperand(o, visit);
  for (const Operand& o : in.callReturns) forEachOperand(o, visit);
}

// Returns only when kernels that the block launched have run.
bool waitsForLaunches(std::string_view function) {
  return function == "cudaDeviceSynchronize" || function == "__cudaCDP2DeviceSynchronize" ||
         function == "__cudaDeviceSynchronizeDeprecationAvoidance";
}

// Functions whose address is taken anywhere: what an indirect call may reach.
std::set<uint32_t> addressTaken(const ptx::Module& module) {
  std::set<uint32_t> result;
  for (const auto& f : module.functions)
    for (const auto& in : f.body)
      if (in.op != Opcode::call)
        forEachOperand(in, [&](const Operand& o) {
          if (o.ref == Operand::Ref::function) result.insert(o.refId);
        });
  for (const auto& v : module.variables)
    for (const auto& init : v.init)
      if (!init.symbol.empty())
        for (uint32_t f = 0; f < module.functions.size(); ++f)
          if (module.functions[f].name == init.symbol) result.insert(f);
  return result;
}

}  // namespace

uint32_t localFrame(const ptx::Function& function, std::vector<uint32_t>* offsets) {
  uint64_t at = 0;
  if (offsets) offsets->assign(function.variables.size(), 0);
  for (size_t v = 0; v < function.variables.size(); ++v) {
    const ptx::Variable& var = function.variables[v];
    if (var.space != StateSpace::local) continue;
    at = alignUp(at, std::max(1u, var.align));
    if (offsets) (*offsets)[v] = static_cast<uint32_t>(at);
    at += var.sizeBytes;
  }
  return static_cast<uint32_t>(alignUp(at, 16));
}

KernelLayout layoutOf(const ptx::Module& module, uint32_t kernel) {
  KernelLayout layout;
  std::set<uint32_t> seen{kernel};
  layout.functions.push_back(kernel);
  for (size_t i = 0; i < layout.functions.size(); ++i) {
    const ptx::Function& f = module.functions[layout.functions[i]];
    layout.waitsForChildren = layout.waitsForChildren || (!f.hasBody && waitsForLaunches(f.name));
    for (const Instruction& in : f.body) {
      if (i > 0 && in.op == Opcode::exit) layout.calleesExit = true;
      // The local stack grows as it does in recursion.
      layout.recursive |= in.op == Opcode::alloca;
      layout.clusterBarrier |= in.op == Opcode::barrier && in.has(Mod::cluster);
      if (in.op != Opcode::call) continue;
      const bool direct = !in.operands.empty() && in.operands[0].ref == Operand::Ref::function;
      if (direct) {
        if (seen.insert(in.operands[0].refId).second) layout.functions.push_back(in.operands[0].refId);
      } else if (!layout.indirectCalls) {
        layout.indirectCalls = layout.recursive = true;
        for (uint32_t t : addressTaken(module))
          if (seen.insert(t).second) layout.functions.push_back(t);
      }
    }
  }
  // Shared variables in order of declaration: the module's, then the functions'.
  std::set<uint32_t> usedModule;
  bool dynamic = false;
  uint32_t dynamicAlign = 16;
  for (uint32_t fi : layout.functions)
    for (const Instruction& in : module.functions[fi].body)
      forEachOperand(in, [&](const Operand& o) {
        if (o.ref == Operand::Ref::moduleVar && isShared(module.variables[o.refId].space)) usedModule.insert(o.refId);
      });
  uint64_t at = 0;
  for (uint32_t id : usedModule) {
    const ptx::Variable& v = module.variables[id];
    if (v.sizeBytes == 0) {
      dynamic = true;
      dynamicAlign = std::max(dynamicAlign, v.align);
      continue;
    }
    at = alignUp(at, std::max(1u, v.align));
    layout.sharedModule[id] = static_cast<uint32_t>(at);
    at += v.sizeBytes;
  }
  for (uint32_t fi : layout.functions) {
    const ptx::Function& f = module.functions[fi];
    for (uint32_t v = 0; v < f.variables.size(); ++v) {
      const ptx::Variable& var = f.variables[v];
      if (!isShared(var.space)) continue;
      if (var.sizeBytes == 0) {
        dynamic = true;
        dynamicAlign = std::max(dynamicAlign, var.align);
        continue;
      }
      at = alignUp(at, std::max(1u, var.align));
      layout.sharedLocal[{fi, v}] = static_cast<uint32_t>(at);
      at += var.sizeBytes;
    }
  }
  if (dynamic) at = alignUp(at, dynamicAlign);
  layout.staticSharedBytes = static_cast<uint32_t>(at);
  for (uint32_t id : usedModule)
    if (module.variables[id].sizeBytes == 0) layout.sharedModule[id] = layout.staticSharedBytes;
  for (uint32_t fi : layout.functions)
    for (uint32_t v = 0; v < module.functions[fi].variables.size(); ++v) {
      const ptx::Variable& var = module.functions[fi].variables[v];
      if (isShared(var.space) && var.sizeBytes == 0) layout.sharedLocal[{fi, v}] = layout.staticSharedBytes;
    }

  // Deepest path of frames; a cycle means recursion.
  std::map<uint32_t, uint32_t> depth;
  std::set<uint32_t> open;
  std::function<uint32_t(uint32_t)> walk = [&](uint32_t fi) -> uint32_t {
    if (auto it = depth.find(fi); it != depth.end()) return it->second;
    if (!open.insert(fi).second) {
      layout.recursive = true;
      return 0;
    }
    uint32_t deepest = 0;
    for (const Instruction& in : module.functions[fi].body)
      if (in.op == Opcode::call && !in.operands.empty() && in.operands[0].ref == Operand::Ref::function)
        deepest = std::max(deepest, walk(in.operands[0].refId));
    open.erase(fi);
    return depth[fi] = deepest + localFrame(module.functions[fi]);
  };
  layout.localBytes = walk(kernel);
  const std::set<uint32_t> taken = layout.indirectCalls ? addressTaken(module) : std::set<uint32_t>{};
  layout.callees = calleeTraits(module, layout.functions, {taken.begin(), taken.end()});
  if (layout.indirectCalls) {
    uint32_t sum = 0;
    for (uint32_t fi : layout.functions) sum += localFrame(module.functions[fi]);
    layout.localBytes = std::max(layout.localBytes, sum);
  }
  return layout;
}

KernelCodegen::KernelCodegen(llvm::LLVMContext& context, const ptx::Module& m, uint32_t kernelIndex,
                             exec::CountLevel countLevel, bool countSites, TargetFeatures targetFeatures)
    : module(m),
      kernel(kernelIndex),
      level(countLevel),
      sourceLevel(countSites),
      features(targetFeatures),
      layout(layoutOf(m, kernelIndex)) {
  llvm_ = std::make_unique<llvm::Module>("ptx", context);
  size_t accesses = 0;
  for (uint32_t f : layout.functions)
    for (const Instruction& in : module.functions[f].body)
      accesses += (in.op == Opcode::ld || in.op == Opcode::ldu || in.op == Opcode::st) && in.space != StateSpace::param;
  outlineAccesses = accesses > kMostInlineAccesses;
}

llvm::FunctionType* KernelCodegen::warpFunctionType() {
  auto& c = llvm_->getContext();
  auto* i32 = llvm::Type::getInt32Ty(c);
  auto* ptr = llvm::PointerType::getUnqual(c);
  return llvm::FunctionType::get(i32, {ptr, i32, ptr, ptr}, false);
}

llvm::FunctionCallee KernelCodegen::helper(const char* name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args) {
  llvm::FunctionCallee f = llvm_->getOrInsertFunction(name, llvm::FunctionType::get(result, args, false));
  llvm::cast<llvm::Function>(f.getCallee())->setDoesNotThrow();
  return f;
}

llvm::Function* KernelCodegen::declare(uint32_t index) {
  if (auto it = declared_.find(index); it != declared_.end()) return it->second;
  const ptx::Function& f = module.functions[index];
  std::string name = "kernel";
  auto linkage = llvm::GlobalValue::ExternalLinkage;
  if (index != kernel) {
    if (f.hasBody) {
      name = "f" + std::to_string(index);
      linkage = llvm::GlobalValue::InternalLinkage;
    } else {
      name = "sonde_fn_" + f.name;  // a function of the device run time
    }
  }
  llvm::Function* fn = llvm::Function::Create(warpFunctionType(), linkage, name, *llvm_);
  fn->setDoesNotThrow();
  for (unsigned a : {2u, 3u}) fn->addParamAttr(a, llvm::Attribute::NoAlias);
  if (features.avx512) {
    fn->addFnAttr("min-legal-vector-width", "512");
    fn->addFnAttr("prefer-vector-width", "512");
  }
  fn->addFnAttr("no-builtins");
  declared_[index] = fn;
  return fn;
}

std::unique_ptr<llvm::Module> KernelCodegen::generate() {
  llvm::IRBuilder<> b(llvm_->getContext());
  if (layout.indirectCalls) {
    // Tokens to functions.
    auto* type = llvm::FunctionType::get(b.getPtrTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty()}, false);
    auto* fn = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "indirect_target", *llvm_);
    b.SetInsertPoint(llvm::BasicBlock::Create(b.getContext(), "entry", fn));
    auto* bad = llvm::BasicBlock::Create(b.getContext(), "bad", fn);
    auto* sw = b.CreateSwitch(fn->getArg(1), bad);
    for (uint32_t i : layout.functions) {
      if (i == kernel) continue;
      auto* block = llvm::BasicBlock::Create(b.getContext(), "f", fn);
      sw->addCase(b.getInt64(functionToken(i)), block);
      b.SetInsertPoint(block);
      b.CreateRet(declare(i));
    }
    b.SetInsertPoint(bad);
    b.CreateCall(helper("sonde_bad_call", b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt32Ty()}),
                 {fn->getArg(0), fn->getArg(1), fn->getArg(2)});
    b.CreateUnreachable();
  }
  for (uint32_t i : layout.functions) {
    llvm::Function* fn = declare(i);
    if (!module.functions[i].hasBody) continue;
    FunctionCodegen f(*this, b, i, fn);
    f.run();
  }
  return std::move(llvm_);
}

std::string CounterPlan::serialize() const {
  std::ostringstream out;
  out << slots << ' ' << terms.size();
  for (const CounterTerm& t : terms) out << ' ' << t.slot << ' ' << static_cast<uint32_t>(t.counter) << ' ' << t.weight;
  out << ' ' << sites.size();
  for (const CounterSite& s : sites)
    for (uint32_t field :
         {s.function, s.instruction, s.warps, s.threads, s.onWarps, s.onThreads, s.diverged, s.access, s.what})
      out << ' ' << field;
  return out.str();
}

bool CounterPlan::parse(const std::string& text, CounterPlan& plan) {
  std::istringstream in(text);
  size_t n = 0;
  if (!(in >> plan.slots >> n) || n > 10'000'000) return false;
  plan.terms.resize(n);
  for (CounterTerm& t : plan.terms) {
    uint32_t counter = 0;
    if (!(in >> t.slot >> counter >> t.weight) || counter >= exec::kRawCounterCount || t.slot >= plan.slots)
      return false;
    t.counter = static_cast<exec::RawCounter>(counter);
  }
  if (!(in >> n) || n > 10'000'000) return false;
  plan.sites.resize(n);
  for (CounterSite& s : plan.sites) {
    for (uint32_t* field :
         {&s.function, &s.instruction, &s.warps, &s.threads, &s.onWarps, &s.onThreads, &s.diverged, &s.access, &s.what})
      if (!(in >> *field)) return false;
    for (uint32_t slot : {s.warps, s.threads, s.onWarps, s.onThreads, s.diverged, s.access})
      if (slot >= plan.slots) return false;
  }
  return true;
}

}  // namespace sonde::softgpu::jit
