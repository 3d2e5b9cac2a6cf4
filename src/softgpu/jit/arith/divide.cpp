// SPDX-License-Identifier: Apache-2.0
//
// Integer division. The host's divide instruction traps on zero and works on
// one lane at a time, so narrow types are divided in floating point, which is
// exact: the quotient of two n-bit integers is at least 2^-n (relatively) away
// from the next integer above it.
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

Value* Lower::divideUnsigned(Value* x, Value* y, bool remainder) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  Value* isZero = b.CreateICmpEQ(y, kLike(y, 0));
  Value* divisor = b.CreateSelect(isZero, kLike(y, 1), y);
  Value* r;
  if (auto* constant = llvm::dyn_cast<llvm::Constant>(divisor); c.uniform() || constant) {
    r = remainder ? b.CreateURem(x, divisor) : b.CreateUDiv(x, divisor);
  } else if (bits == 64) {
    r = divide64(x, divisor, remainder);
  } else {
    llvm::Type* real = bits <= 16 ? f32Type() : f64Type();
    Value* quotient = b.CreateFDiv(b.CreateUIToFP(x, real), b.CreateUIToFP(divisor, real));
    // 32-bit quotients reach past the signed range; 16-bit ones go by way of i32.
    Value* q = bits <= 16 ? b.CreateTrunc(b.CreateFPToSI(quotient, intType(32)), x->getType())
                          : b.CreateFPToUI(quotient, x->getType());
    r = remainder ? b.CreateSub(x, b.CreateMul(q, divisor)) : q;
  }
  return b.CreateSelect(isZero, kLike(x, ~uint64_t{0}), r);
}

// Lane by lane in a function of its own: 64-bit quotients need the host's divider.
Value* Lower::divide64(Value* x, Value* y, bool remainder) {
  llvm::Type* type = x->getType();
  llvm::Function* f = helper(remainder ? "sonde.urem64.x32" : "sonde.udiv64.x32", type, {type, type},
                             [&](llvm::Function* fn) -> Value* {
                               llvm::LLVMContext& context = c.module.getContext();
                               Value* xs = b.CreateAlloca(type);
                               Value* ys = b.CreateAlloca(type);
                               b.CreateStore(fn->getArg(0), xs);
                               b.CreateStore(fn->getArg(1), ys);
                               llvm::BasicBlock* entry = b.GetInsertBlock();
                               auto* loop = llvm::BasicBlock::Create(context, "lane", fn);
                               auto* done = llvm::BasicBlock::Create(context, "done", fn);
                               b.CreateBr(loop);
                               b.SetInsertPoint(loop);
                               llvm::PHINode* lane = b.CreatePHI(b.getInt64Ty(), 2);
                               lane->addIncoming(b.getInt64(0), entry);
                               Value* px = b.CreateGEP(b.getInt64Ty(), xs, lane);
                               Value* py = b.CreateGEP(b.getInt64Ty(), ys, lane);
                               Value *n = b.CreateLoad(b.getInt64Ty(), px), *d = b.CreateLoad(b.getInt64Ty(), py);
                               b.CreateStore(remainder ? b.CreateURem(n, d) : b.CreateUDiv(n, d), px);
                               Value* next = b.CreateAdd(lane, b.getInt64(1));
                               lane->addIncoming(next, loop);
                               b.CreateCondBr(b.CreateICmpEQ(next, b.getInt64(kWarpSize)), done, loop);
                               b.SetInsertPoint(done);
                               return b.CreateLoad(type, xs);
                             });
  return b.CreateCall(f, {x, y});
}

Value* Lower::divideSigned(Value* x, Value* y, bool remainder) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  Value* shift = kLike(x, bits - 1);
  Value *signX = b.CreateAShr(x, shift), *signY = b.CreateAShr(y, shift);
  auto magnitude = [&](Value* v, Value* sign) { return b.CreateSub(b.CreateXor(v, sign), sign); };
  Value* r = divideUnsigned(magnitude(x, signX), magnitude(y, signY), remainder);
  Value* sign = remainder ? signX : b.CreateXor(signX, signY);
  r = magnitude(r, sign);
  return b.CreateSelect(b.CreateICmpEQ(y, kLike(y, 0)), kLike(x, ~uint64_t{0}), r);
}

bool Lower::divide() {
  const ScalarType t = in.type();
  const bool remainder = in.op == Opcode::rem;
  Value *x = src(1, t), *y = src(2, t);
  dst(ptx::isSigned(t) ? divideSigned(x, y, remainder) : divideUnsigned(x, y, remainder), t);
  return true;
}

}  // namespace sonde::softgpu::jit::arith
