// SPDX-License-Identifier: Apache-2.0
//
// Operations in the four IEEE rounding modes. Round-to-nearest is the host's
// ordinary instruction. The directed modes use AVX-512's embedded rounding, or
// else a function that sets the host's rounding control around the operation.
#include <llvm/IR/IntrinsicsX86.h>

#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

namespace Intr = llvm::Intrinsic;

Value* Lower::flush(Value* v) {
  // Zero exponent field: a subnormal or a zero; both become their sign bit.
  Value* bits = asInt(v);
  Value* small = b.CreateICmpEQ(b.CreateAnd(bits, k(32, 0x7f800000)), k(32, 0));
  return asF32(b.CreateSelect(small, b.CreateAnd(bits, k(32, 0x80000000)), bits));
}

Value* Lower::canonical(Value* v) {
  if (!c.canonicalNan || v->getType()->getScalarSizeInBits() != 32) return v;
  return b.CreateSelect(isNan(v), fpBits(0x7fffffff), v);
}

Value* Lower::saturate(Value* v) {
  // Ordered comparisons are false for NaN, which so becomes zero; -0 also becomes +0.
  Value* zero = llvm::ConstantFP::get(v->getType(), 0.0);
  Value* one = llvm::ConstantFP::get(v->getType(), 1.0);
  v = b.CreateSelect(b.CreateFCmpOGT(v, zero), v, zero);
  return b.CreateSelect(b.CreateFCmpOLT(v, one), v, one);
}

Value* Lower::rounded(FpOp op, llvm::ArrayRef<Value*> args, Rounding r) {
  if (r == Rounding::nearest) {
    switch (op) {
      case FpOp::add: return b.CreateFAdd(args[0], args[1]);
      case FpOp::sub: return b.CreateFSub(args[0], args[1]);
      case FpOp::mul: return b.CreateFMul(args[0], args[1]);
      case FpOp::div: return b.CreateFDiv(args[0], args[1]);
      case FpOp::fma: return fmadd(args[0], args[1], args[2]);
      case FpOp::sqrt: return squareRoot(args[0]);
      case FpOp::narrow: return b.CreateFPTrunc(args[0], f32Type());
    }
  }
  if (r == Rounding::nearestAway) unsupported("this rounding does not apply here");
  return c.avx512 ? roundedEmbedded(op, args, r) : roundedByControl(op, args, r);
}

// On 512-bit pieces; a uniform value travels in the first element.
Value* Lower::roundedEmbedded(FpOp op, llvm::ArrayRef<Value*> args, Rounding r) {
  llvm::Type* scalar = args[0]->getType()->getScalarType();
  const bool isDouble = scalar->isDoubleTy();
  const unsigned width = isDouble ? 8 : 16;
  auto* chunkType = llvm::FixedVectorType::get(scalar, width);
  Value* control = b.getInt32(r == Rounding::down ? 9 : r == Rounding::up ? 10 : 11);

  auto chunk = [&](Value* v, unsigned index) -> Value* {
    if (c.uniform()) return b.CreateInsertElement(llvm::Constant::getNullValue(chunkType), v, uint64_t{0});
    llvm::SmallVector<int, 16> order;
    for (unsigned i = 0; i < width; ++i) order.push_back(static_cast<int>(index * width + i));
    return b.CreateShuffleVector(v, order);
  };
  auto call = [&](llvm::ArrayRef<Value*> x) -> Value* {
    auto emit = [&](Intr::ID single, Intr::ID twice) {
      llvm::SmallVector<Value*, 4> all(x.begin(), x.end());
      all.push_back(control);
      return b.CreateIntrinsic(isDouble ? twice : single, {}, all);
    };
    switch (op) {
      case FpOp::add: return emit(Intr::x86_avx512_add_ps_512, Intr::x86_avx512_add_pd_512);
      case FpOp::sub: return emit(Intr::x86_avx512_sub_ps_512, Intr::x86_avx512_sub_pd_512);
      case FpOp::mul: return emit(Intr::x86_avx512_mul_ps_512, Intr::x86_avx512_mul_pd_512);
      case FpOp::div: return emit(Intr::x86_avx512_div_ps_512, Intr::x86_avx512_div_pd_512);
      case FpOp::fma: return emit(Intr::x86_avx512_vfmadd_ps_512, Intr::x86_avx512_vfmadd_pd_512);
      case FpOp::sqrt: return emit(Intr::x86_avx512_sqrt_ps_512, Intr::x86_avx512_sqrt_pd_512);
      case FpOp::narrow: {
        Value* none = llvm::Constant::getNullValue(llvm::FixedVectorType::get(b.getFloatTy(), 8));
        return b.CreateIntrinsic(Intr::x86_avx512_mask_cvtpd2ps_512, {}, {x[0], none, b.getInt8(0xff), control});
      }
    }
    return nullptr;
  };

  const unsigned pieces = c.uniform() ? 1 : c.lanes / width;
  llvm::SmallVector<Value*, 4> results;
  for (unsigned i = 0; i < pieces; ++i) {
    llvm::SmallVector<Value*, 3> x;
    for (Value* v : args) x.push_back(chunk(v, i));
    results.push_back(call(x));
  }
  if (c.uniform()) return b.CreateExtractElement(results[0], uint64_t{0});
  while (results.size() > 1) {
    llvm::SmallVector<Value*, 4> joined;
    const unsigned n = llvm::cast<llvm::FixedVectorType>(results[0]->getType())->getNumElements();
    llvm::SmallVector<int, 32> order;
    for (unsigned i = 0; i < 2 * n; ++i) order.push_back(static_cast<int>(i));
    for (size_t i = 0; i < results.size(); i += 2)
      joined.push_back(b.CreateShuffleVector(results[i], results[i + 1], order));
    results = joined;
  }
  return results[0];
}

Value* Lower::roundedByControl(FpOp op, llvm::ArrayRef<Value*> args, Rounding r) {
  static constexpr const char* opNames[] = {"add", "sub", "mul", "div", "fma", "sqrt", "narrow"};
  llvm::Type* type = args[0]->getType();
  llvm::Type* result = op == FpOp::narrow ? f32Type() : type;
  // MXCSR: all exceptions masked, no flushing, the rounding in bits 13 and 14.
  const uint32_t control = 0x1f80u | (r == Rounding::down ? 1u << 13 : r == Rounding::up ? 2u << 13 : 3u << 13);
  const std::string name = std::string("sonde.") + opNames[static_cast<int>(op)] +
                           (r == Rounding::down ? ".rm"
                            : r == Rounding::up ? ".rp"
                                                : ".rz") +
                           (type->getScalarType()->isDoubleTy() ? ".f64" : ".f32") + formSuffix();
  llvm::SmallVector<llvm::Type*, 3> argTypes(args.size(), type);
  llvm::Function* f = helper(name, result, argTypes, [&](llvm::Function* fn) -> Value* {
    fn->addFnAttr(llvm::Attribute::StrictFP);
    Value* saved = b.CreateAlloca(b.getInt32Ty());
    Value* wanted = b.CreateAlloca(b.getInt32Ty());
    b.CreateIntrinsic(Intr::x86_sse_stmxcsr, {}, {saved});
    b.CreateStore(b.getInt32(control), wanted);
    b.CreateIntrinsic(Intr::x86_sse_ldmxcsr, {}, {wanted});
    llvm::LLVMContext& context = c.module.getContext();
    auto word = [&](const char* text) {
      return llvm::MetadataAsValue::get(context, llvm::MDString::get(context, text));
    };
    llvm::SmallVector<Value*, 5> x;
    for (llvm::Argument& a : fn->args()) x.push_back(&a);
    x.push_back(word("round.dynamic"));
    x.push_back(word("fpexcept.strict"));
    Value* v = nullptr;
    auto emit = [&](Intr::ID id, llvm::ArrayRef<llvm::Type*> types) {
      llvm::CallInst* call = b.CreateIntrinsic(id, types, x);
      call->addFnAttr(llvm::Attribute::StrictFP);
      v = call;
    };
    switch (op) {
      case FpOp::add: emit(Intr::experimental_constrained_fadd, {type}); break;
      case FpOp::sub: emit(Intr::experimental_constrained_fsub, {type}); break;
      case FpOp::mul: emit(Intr::experimental_constrained_fmul, {type}); break;
      case FpOp::div: emit(Intr::experimental_constrained_fdiv, {type}); break;
      case FpOp::fma: emit(Intr::experimental_constrained_fma, {type}); break;
      case FpOp::sqrt: emit(Intr::experimental_constrained_sqrt, {type}); break;
      case FpOp::narrow: emit(Intr::experimental_constrained_fptrunc, {result, type}); break;
    }
    b.CreateIntrinsic(Intr::x86_sse_ldmxcsr, {}, {saved});
    return v;
  });
  return b.CreateCall(f, args);
}

// Rounding to odd keeps what a second rounding to a narrower format must know.
Value* Lower::narrowToOdd(Value* wide) {
  Value* near = b.CreateFPTrunc(wide, f32Type());
  Value* back = b.CreateFPExt(near, f64Type());
  Value* bits = asInt(near);
  // Towards zero, then mark what was lost. A NaN is neither beyond nor inexact.
  Value* beyond = b.CreateFCmpOGT(fabs(back), fabs(wide));
  Value* inexact = b.CreateFCmpONE(back, wide);
  bits = b.CreateSub(bits, b.CreateZExt(beyond, bits->getType()));
  return asF32(b.CreateOr(bits, b.CreateZExt(inexact, bits->getType())));
}

Value* Lower::addToOdd(Value* x, Value* y) {
  // Knuth's TwoSum: the sum and its exact error.
  Value* sum = b.CreateFAdd(x, y);
  Value* yPart = b.CreateFSub(sum, x);
  Value* xPart = b.CreateFSub(sum, yPart);
  Value* error = b.CreateFAdd(b.CreateFSub(x, xPart), b.CreateFSub(y, yPart));
  Value* zero = llvm::Constant::getNullValue(sum->getType());
  Value* inexact = b.CreateFCmpONE(error, zero);  // false for the NaN that infinities give
  // The rounded magnitude is too large when error and sum differ in sign.
  Value *sumBits = asInt(sum), *errorBits = asInt(error);
  Value* differ = b.CreateICmpSLT(b.CreateXor(sumBits, errorBits), kLike(sumBits, 0));
  Value* down = b.CreateAnd(inexact, differ);
  Value* bits = b.CreateSub(sumBits, b.CreateZExt(down, sumBits->getType()));
  bits = b.CreateOr(bits, b.CreateZExt(inexact, bits->getType()));
  return b.CreateBitCast(bits, sum->getType());
}

}  // namespace sonde::softgpu::jit::arith
