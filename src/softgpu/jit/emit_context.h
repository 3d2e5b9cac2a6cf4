// SPDX-License-Identifier: Apache-2.0
//
// What the code generator offers to the lowering of single instructions.
//
// A value is either uniform (one LLVM scalar) or varying (a vector of 32
// lanes); `lanes` says which form the instruction at hand has, and source()
// returns every operand in that form (splat where needed). Lowering therefore
// is written once, on "T or <32 x T>".
//
// How PTX types look as LLVM types here:
//   pred -> i1; b/u/s N -> iN; f32 -> float; f64 -> double;
//   f16, bf16, f16x2, bf16x2, tf32, fp8 kinds -> the integer of their width
//   (the lowering converts them itself); b128 -> i128
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <stdexcept>
#include <string>

#include "ptx/ast.h"

namespace sonde::softgpu::jit {

inline constexpr unsigned kWarpSize = 32;

// Thrown when an instruction (or this form of it) cannot be compiled. The
// engine adds function and line and turns it into the driver's error.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class EmitContext {
 public:
  virtual ~EmitContext() = default;

  llvm::IRBuilder<>& b;
  llvm::Module& module;
  const ptx::Module& ptxModule;
  const ptx::Function& function;
  unsigned lanes = kWarpSize;  // 1 or 32
  // The host has AVX-512 F, VL, BW and DQ and the code may use them.
  bool avx512 = false;
  // f32 results that are NaN become 0x7fffffff, as on the hardware. Off: they
  // keep the host's NaN bits, which is faster and the same to any program that
  // does not look at the bits of a NaN.
  bool canonicalNan = true;

  bool uniform() const { return lanes == 1; }
  // The LLVM type of a PTX type in the form at hand.
  llvm::Type* type(ptx::ScalarType t) const { return form(scalarType(t)); }
  llvm::Type* scalarType(ptx::ScalarType t) const {
    switch (t) {
      case ptx::ScalarType::f32: return b.getFloatTy();
      case ptx::ScalarType::f64: return b.getDoubleTy();
      case ptx::ScalarType::none: throw Unsupported("an operand without a type");
      default: return b.getIntNTy(ptx::bitsOf(t));
    }
  }
  llvm::Type* form(llvm::Type* scalar) const {
    return uniform() ? scalar : static_cast<llvm::Type*>(llvm::FixedVectorType::get(scalar, kWarpSize));
  }
  llvm::Value* constantInt(unsigned bits, uint64_t v) const {
    return llvm::ConstantInt::get(form(b.getIntNTy(bits)), v);
  }
  llvm::Value* constantFp(llvm::Type* scalarFp, double v) const { return llvm::ConstantFP::get(form(scalarFp), v); }

  // The operand read as type t: bit-cast from the register's type; immediates
  // converted as PTX converts them; predicates honour `negated`. Narrower than
  // the register: truncated; wider: an error that the checker has caught.
  virtual llvm::Value* source(const ptx::Operand& operand, ptx::ScalarType t) = 0;
  // Writes a destination register (or vector element, or sink) under the
  // instruction's guard and the lanes' mask. A value narrower than the register
  // is extended by the signedness of t.
  virtual void store(const ptx::Operand& destination, llvm::Value* value, ptx::ScalarType t) = 0;
  // Lanes that run this instruction: i1 or <32 x i1>; for helpers with effects
  // and for instructions that must not trap on idle lanes.
  virtual llvm::Value* activeMask() = 0;
  // The carry flag of add.cc and friends, per lane, as i1 form.
  virtual llvm::Value* carry() = 0;
  virtual void setCarry(llvm::Value* value) = 0;

 protected:
  EmitContext(llvm::IRBuilder<>& builder, llvm::Module& m, const ptx::Module& pm, const ptx::Function& f)
      : b(builder), module(m), ptxModule(pm), function(f) {}
};

// Lowers an instruction whose result depends on its operands alone (arithmetic,
// logic, comparison, conversion, selection, moves between registers, video,
// half and packed kinds, dp4a …). false: not such an instruction. Throws
// Unsupported.
bool emitArithmetic(EmitContext& context, const ptx::Instruction& instruction);

}  // namespace sonde::softgpu::jit
