// SPDX-License-Identifier: Apache-2.0
//
// __managed__ variables for clang: a plugin that sondecc loads. clang knows
// them as __device__ variables with a note (include/softgpu/crt/host_defines.h).
// For the device the variable becomes one with the attribute .managed. For the
// host every use of it goes through a pointer, which the run time fills in when
// it loads the module, and asks the run time for it where it is still null.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/ReplaceConstant.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/TargetParser/Triple.h>

namespace {

constexpr const char* kNote = "sonde_managed";

using namespace llvm;

// The variables that were declared __managed__.
SmallVector<GlobalVariable*, 4> managedVariables(Module& module) {
  SmallVector<GlobalVariable*, 4> found;
  const GlobalVariable* notes = module.getNamedGlobal("llvm.global.annotations");
  const auto* list = notes && notes->hasInitializer() ? dyn_cast<ConstantArray>(notes->getInitializer()) : nullptr;
  for (unsigned i = 0; list && i < list->getNumOperands(); ++i) {
    const auto* entry = dyn_cast<ConstantStruct>(list->getOperand(i));
    if (!entry || entry->getNumOperands() < 2) continue;
    auto* variable = dyn_cast<GlobalVariable>(entry->getOperand(0)->stripPointerCasts());
    const auto* text = dyn_cast<GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
    const auto* data =
        text && text->hasInitializer() ? dyn_cast<ConstantDataSequential>(text->getInitializer()) : nullptr;
    if (variable && data && data->isCString() && data->getAsCString() == kNote) found.push_back(variable);
  }
  // Declarations have no note.
  for (GlobalVariable& v : module.globals())
    if (v.isDeclaration() && v.hasProtectedVisibility()) found.push_back(&v);
  return found;
}

void markForDevice(Module& module, ArrayRef<GlobalVariable*> variables) {
  LLVMContext& context = module.getContext();
  NamedMDNode* annotations = module.getOrInsertNamedMetadata("nvvm.annotations");
  for (GlobalVariable* v : variables)
    annotations->addOperand(
        MDNode::get(context, {ConstantAsMetadata::get(v), MDString::get(context, "managed"),
                              ConstantAsMetadata::get(ConstantInt::get(Type::getInt32Ty(context), 1))}));
}

// ptr f(ptr slot): what the slot holds, after the run time has filled it in.
Function* pointerOf(Module& module) {
  LLVMContext& context = module.getContext();
  Type* pointer = PointerType::getUnqual(context);
  auto* f = Function::Create(FunctionType::get(pointer, {pointer}, false), GlobalValue::InternalLinkage,
                             "sonde.managed", module);
  auto* entry = BasicBlock::Create(context, "", f);
  auto* ask = BasicBlock::Create(context, "", f);
  auto* done = BasicBlock::Create(context, "", f);
  IRBuilder<> b(entry);
  Value* now = b.CreateLoad(pointer, f->getArg(0));
  b.CreateCondBr(b.CreateIsNull(now), ask, done);
  b.SetInsertPoint(ask);
  // Relocatable code has no handle of its own; null stands for all that is registered.
  Value* handle = ConstantPointerNull::get(PointerType::getUnqual(context));
  if (GlobalVariable* own = module.getGlobalVariable("__cuda_gpubin_handle", true)) handle = b.CreateLoad(pointer, own);
  b.CreateCall(module.getOrInsertFunction("__cudaInitModule", b.getInt8Ty(), pointer), {handle});
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRet(b.CreateLoad(pointer, f->getArg(0)));
  return f;
}

void replaceOnHost(Module& module, GlobalVariable* variable, Function* pointer) {
  LLVMContext& context = module.getContext();
  auto* type = PointerType::getUnqual(context);
  // Another file's variable has its pointer there.
  const bool isElsewhere = variable->isDeclaration(), isLocal = variable->hasLocalLinkage();
  auto* slot =
      new GlobalVariable(module, type, false, isLocal ? GlobalValue::InternalLinkage : GlobalValue::ExternalLinkage,
                         isElsewhere ? nullptr : ConstantPointerNull::get(type), variable->getName() + ".managed");
  convertUsersOfConstantsToInstructions({variable});
  SmallVector<Use*, 16> uses;
  for (Use& use : variable->uses())
    if (isa<Instruction>(use.getUser())) uses.push_back(&use);
  for (Use* use : uses) {
    auto* user = cast<Instruction>(use->getUser());
    if (auto* call = dyn_cast<CallInst>(user); call && call->getCalledFunction()) {
      const StringRef name = call->getCalledFunction()->getName();
      if (name == "__cudaRegisterVar") {
        // The same parameters, but for the second.
        call->setCalledFunction(module.getOrInsertFunction("__cudaRegisterManagedVar", call->getFunctionType()));
        call->setArgOperand(1, slot);
        continue;
      }
    }
    Instruction* before = user;
    if (auto* phi = dyn_cast<PHINode>(user)) before = phi->getIncomingBlock(*use)->getTerminator();
    IRBuilder<> b(before);
    use->set(b.CreateCall(pointer, {slot}));
  }
}

struct ManagedVariables : PassInfoMixin<ManagedVariables> {
  static bool isRequired() { return true; }
  PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
    const auto variables = managedVariables(module);
    if (variables.empty()) return PreservedAnalyses::all();
    if (Triple(module.getTargetTriple()).isNVPTX()) {
      markForDevice(module, variables);
    } else {
      Function* pointer = pointerOf(module);
      for (GlobalVariable* v : variables) replaceOnHost(module, v, pointer);
    }
    return PreservedAnalyses::none();
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "sonde-managed", "1", [](PassBuilder& builder) {
            builder.registerPipelineStartEPCallback(
                [](ModulePassManager& passes, OptimizationLevel) { passes.addPass(ManagedVariables()); });
          }};
}
