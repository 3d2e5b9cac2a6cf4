// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <gtest/gtest.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>

#include "softgpu/jit/emit_context.h"

namespace sonde::test {

using namespace sonde::softgpu::jit;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;

namespace {

template <class Enum>
using Names = std::map<std::string, Enum, std::less<>>;

const Names<Opcode>& opcodes() {
  static const Names<Opcode> names{
#define SONDE_X(id, text) {text, Opcode::id},
      SONDE_PTX_OPCODES(SONDE_X)
#undef SONDE_X
  };
  return names;
}

const Names<Mod>& mods() {
  static const Names<Mod> names{
#define SONDE_X(id, text) {text, Mod::id},
      SONDE_PTX_MODS(SONDE_X)
#undef SONDE_X
  };
  return names;
}

const Names<ScalarType>& types() {
  using enum ScalarType;
  static const Names<ScalarType> names{
      {"b8", b8},         {"b16", b16},        {"b32", b32},     {"b64", b64},       {"b128", b128},
      {"u8", u8},         {"u16", u16},        {"u32", u32},     {"u64", u64},       {"s8", s8},
      {"s16", s16},       {"s32", s32},        {"s64", s64},     {"f16", f16},       {"f16x2", f16x2},
      {"bf16", bf16},     {"bf16x2", bf16x2},  {"tf32", tf32},   {"e4m3x2", e4m3x2}, {"e5m2x2", e5m2x2},
      {"f32", f32},       {"f64", f64},        {"u16x2", u16x2}, {"s16x2", s16x2},   {"s4", s4},
      {"u4", u4},         {"pred", pred},      {"f32x2", f32x2}, {"e2m1x2", e2m1x2}, {"e2m3x2", e2m3x2},
      {"e3m2x2", e3m2x2}, {"ue8m0x2", ue8m0x2}};
  return names;
}

Operand parseOperand(std::string text) {
  Operand o;
  if (text == "_") {
    o.kind = Operand::Kind::sink;
    return o;
  }
  if (const size_t bar = text.find('|'); bar != std::string::npos) {
    o.kind = Operand::Kind::predPair;
    o.elements = {parseOperand(text.substr(0, bar)), parseOperand(text.substr(bar + 1))};
    return o;
  }
  if (text[0] == '{') {
    o.kind = Operand::Kind::vector;
    std::stringstream parts(text.substr(1, text.size() - 2));
    for (std::string part; std::getline(parts, part, ',');) o.elements.push_back(parseOperand(part));
    return o;
  }
  if (text.starts_with("#0f")) {
    o.kind = Operand::Kind::floating;
    o.is32 = true;
    o.imm = std::stoul(text.substr(3), nullptr, 16);
    return o;
  }
  if (text[0] == '#') {
    o.kind = Operand::Kind::integer;
    o.imm =
        text[1] == '-' ? static_cast<uint64_t>(std::stoll(text.substr(1))) : std::stoull(text.substr(1), nullptr, 0);
    return o;
  }
  o.kind = Operand::Kind::reg;
  if (text[0] == '!' || text[0] == '-') {
    o.negated = true;
    text.erase(0, 1);
  }
  if (const size_t dot = text.find('.'); dot != std::string::npos) {
    o.selector = text.substr(dot + 1);
    text.resize(dot);
  }
  if (text.size() != 1) throw std::runtime_error("operand " + text);
  // Inputs have numbers below 100, outputs from 100 on.
  o.reg = text[0] >= 'a' ? static_cast<uint32_t>(text[0] - 'a') : static_cast<uint32_t>(text[0] - 'D') + 100;
  return o;
}

ptx::Instruction parse(const Form& form) {
  ptx::Instruction in;
  std::stringstream words(form.mnemonic);
  std::string word;
  std::getline(words, word, '.');
  in.op = opcodes().at(word);
  while (std::getline(words, word, '.')) {
    if (auto t = types().find(word); t != types().end())
      in.types.push_back(t->second);
    else if (auto m = mods().find(word); m != mods().end())
      in.mods.push_back(m->second);
    else
      throw std::runtime_error("modifier " + word);
  }
  std::stringstream parts(form.operands);
  while (parts >> word) in.operands.push_back(parseOperand(word));
  return in;
}

class TestContext : public EmitContext {
 public:
  TestContext(llvm::IRBuilder<>& builder, llvm::Module& m, unsigned laneCount, bool hasAvx512, llvm::Function* f)
      : EmitContext(builder, m, noModule(), noFunction()), in_(f->getArg(0)), out_(f->getArg(1)) {
    lanes = laneCount;
    avx512 = hasAvx512;
  }

  llvm::Value* source(const Operand& o, ScalarType t) override {
    llvm::Type* wanted = type(t);
    const unsigned bits = ptx::bitsOf(t);
    if (o.kind == Operand::Kind::integer) {
      if (wanted->isFPOrFPVectorTy()) throw std::runtime_error("integer immediate as a float");
      return llvm::ConstantInt::get(wanted, o.imm);
    }
    if (o.kind == Operand::Kind::floating) return b.CreateBitCast(constantInt(bits, o.imm), wanted);
    llvm::Value* v = load(in_, o.reg);
    if (bits > 64)
      v = b.CreateZExt(v, form(b.getIntNTy(bits)));
    else
      v = b.CreateTrunc(v, form(b.getIntNTy(bits)));
    if (t == ScalarType::pred) return o.negated ? b.CreateNot(v) : v;
    return b.CreateBitCast(v, wanted);
  }

  void store(const Operand& o, llvm::Value* value, ScalarType t) override {
    if (o.kind == Operand::Kind::sink) return;
    if (o.kind != Operand::Kind::reg || o.reg < 100) throw std::runtime_error("destination is no output");
    if (value->getType() != type(t)) throw std::runtime_error("stored value has another type than its instruction");
    value = b.CreateBitCast(value, form(b.getIntNTy(ptx::bitsOf(t))));
    if (ptx::bitsOf(t) > 64) value = b.CreateTrunc(value, form(b.getInt64Ty()));
    b.CreateStore(b.CreateZExt(value, form(b.getInt64Ty())), slot(out_, o.reg - 100));
  }
  llvm::Value* activeMask() override { return llvm::ConstantInt::getTrue(form(b.getInt1Ty())); }
  llvm::Value* carry() override { return b.CreateTrunc(load(in_, 6), form(b.getInt1Ty())); }
  void setCarry(llvm::Value* v) override { b.CreateStore(b.CreateZExt(v, form(b.getInt64Ty())), slot(out_, 6)); }

 private:
  llvm::Value *in_, *out_;
  static const ptx::Module& noModule() {
    static const ptx::Module m;
    return m;
  }
  static const ptx::Function& noFunction() {
    static const ptx::Function f;
    return f;
  }
  llvm::Value* slot(llvm::Value* base, uint32_t i) { return b.CreateConstGEP1_64(b.getInt64Ty(), base, i * 32); }
  llvm::Value* load(llvm::Value* base, uint32_t i) {
    return b.CreateAlignedLoad(form(b.getInt64Ty()), slot(base, i), llvm::Align(8));
  }
};

void check(llvm::Error e) {
  if (e) throw std::runtime_error(llvm::toString(std::move(e)));
}
template <class T>
T check(llvm::Expected<T> e) {
  if (!e) throw std::runtime_error(llvm::toString(e.takeError()));
  return std::move(*e);
}

struct Jit {
  bool avx512 = false;
  std::unique_ptr<llvm::orc::LLJIT> lljit;
  std::unique_ptr<llvm::TargetMachine> machine;

  explicit Jit(bool host) {
    static const bool initialized = !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
    if (!initialized) throw std::runtime_error("no native target");
    auto target = check(llvm::orc::JITTargetMachineBuilder::detectHost());
    if (host) {
      const auto features = llvm::sys::getHostCPUFeatures();
      avx512 = true;
      for (const char* f : {"avx512f", "avx512vl", "avx512bw", "avx512dq"}) avx512 &= features.lookup(f);
    } else {
      target = llvm::orc::JITTargetMachineBuilder(target.getTargetTriple());
      target.setCPU("haswell");
    }
    machine = check(target.createTargetMachine());
    lljit = check(llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(target).create());
  }
};

// The cheap part of what a real pipeline does, so that wrong assumptions about
// undefined results show.
void optimize(llvm::Module& module, llvm::TargetMachine* machine) {
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder builder(machine);
  builder.registerModuleAnalyses(mam);
  builder.registerCGSCCAnalyses(cgam);
  builder.registerFunctionAnalyses(fam);
  builder.registerLoopAnalyses(lam);
  builder.crossRegisterProxies(lam, fam, cgam, mam);
  llvm::ModulePassManager passes;
  check(builder.parsePassPipeline(passes, "function(sroa,early-cse,instcombine<no-verify-fixpoint>,gvn,dce)"));
  passes.run(module, mam);
}

}  // namespace

const char* name(Machine m) {
  switch (m) {
    case Machine::hostVector: return "host, 32 lanes";
    case Machine::hostScalar: return "host, scalar";
    case Machine::avx2Vector: return "AVX2, 32 lanes";
    case Machine::avx2Scalar: return "AVX2, scalar";
  }
  return "";
}

Code compile(const Form& form, Machine machine) {
  static Jit host(true), avx2(false);
  static unsigned counter = 0;
  Jit& jit = machine == Machine::hostVector || machine == Machine::hostScalar ? host : avx2;
  const unsigned lanes = machine == Machine::hostVector || machine == Machine::avx2Vector ? 32 : 1;

  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>("t", *context);
  module->setDataLayout(jit.lljit->getDataLayout());
  llvm::IRBuilder<> b(*context);
  llvm::Type* pointer = b.getPtrTy();
  const std::string symbol = "f" + std::to_string(counter++);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), {pointer, pointer}, false),
                                   llvm::GlobalValue::ExternalLinkage, symbol, *module);
  b.SetInsertPoint(llvm::BasicBlock::Create(*context, "entry", f));
  TestContext emit(b, *module, lanes, jit.avx512, f);
  const ptx::Instruction instruction = parse(form);
  if (!emitArithmetic(emit, instruction)) throw std::runtime_error(form.mnemonic + " is not lowered");
  b.CreateRetVoid();
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream)) throw std::runtime_error(form.mnemonic + ": " + problems);
  optimize(*module, jit.machine.get());
  if (std::getenv("SONDE_TEST_PRINT_IR")) module->print(llvm::errs(), nullptr);
  if (std::getenv("SONDE_TEST_PRINT_ASM")) {
    llvm::SmallString<4096> text;
    llvm::raw_svector_ostream out(text);
    llvm::legacy::PassManager emitPasses;
    if (!jit.machine->addPassesToEmitFile(emitPasses, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
      emitPasses.run(*module);
      llvm::errs() << name(machine) << "\n" << text;
    }
  }
  check(jit.lljit->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  return check(jit.lljit->lookup(symbol)).toPtr<Code>();
}

std::vector<Slots> run(const Form& form, Machine machine, const std::vector<Slots>& inputs) {
  const Code code = compile(form, machine);
  const bool vector = machine == Machine::hostVector || machine == Machine::avx2Vector;
  std::vector<Slots> results(inputs.size());
  alignas(64) uint64_t in[kSlots * 32], out[kSlots * 32];
  for (size_t base = 0; base < inputs.size(); base += 32) {
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned s = 0; s < kSlots; ++s) {
        in[s * 32 + lane] = inputs[std::min(base + lane, inputs.size() - 1)][s];
        out[s * 32 + lane] = 0;
      }
    if (vector)
      code(in, out);
    else
      for (unsigned lane = 0; lane < 32; ++lane) code(in + lane, out + lane);
    for (unsigned lane = 0; lane < 32 && base + lane < inputs.size(); ++lane)
      for (unsigned s = 0; s < kSlots; ++s) results[base + lane][s] = out[s * 32 + lane];
  }
  return results;
}

void check(const Form& form, const std::vector<Slots>& inputs, const Reference& reference, const Equal& equal) {
  std::vector<Slots> wanted;
  wanted.reserve(inputs.size());
  for (const Slots& s : inputs) wanted.push_back(reference(s));
  for (Machine machine : kMachines) {
    std::vector<Slots> got;
    try {
      got = run(form, machine, inputs);
    } catch (const std::exception& e) {
      ADD_FAILURE() << form.mnemonic << " (" << name(machine) << "): " << e.what();
      continue;
    }
    unsigned failures = 0;
    size_t total = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      for (unsigned s = 0; s < kSlots; ++s) {
        const bool same = equal ? equal(got[i][s], wanted[i][s]) : got[i][s] == wanted[i][s];
        if (same) continue;
        ++total;
        if (++failures > 4) continue;
        std::stringstream text;
        text << std::hex << "a=" << inputs[i][0] << " b=" << inputs[i][1] << " c=" << inputs[i][2]
             << " d=" << inputs[i][3] << " carry=" << inputs[i][6] << ": slot " << s << " got " << got[i][s]
             << ", want " << wanted[i][s];
        ADD_FAILURE() << form.mnemonic << " " << form.operands << " (" << name(machine) << "): " << text.str();
      }
    if (total > 4) ADD_FAILURE() << form.mnemonic << " (" << name(machine) << "): " << total << " differences";
  }
}

}  // namespace sonde::test
