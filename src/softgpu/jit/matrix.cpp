// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions: fragments go through memory to a helper, and back.
#include <cstring>

#include "softgpu/exec/mma_layout.h"
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::MatrixJob;
using exec::MatrixPart;
using exec::MatrixType;
using llvm::FixedVectorType;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;

namespace {

MatrixType matrixType(ScalarType t) {
  switch (t) {
    case ScalarType::f16:
    case ScalarType::f16x2: return MatrixType::f16;
    case ScalarType::bf16:
    case ScalarType::bf16x2: return MatrixType::bf16;
    case ScalarType::tf32: return MatrixType::tf32;
    case ScalarType::f64: return MatrixType::f64;
    case ScalarType::f32: return MatrixType::f32;
    case ScalarType::e4m3: return MatrixType::e4m3;
    case ScalarType::e5m2: return MatrixType::e5m2;
    case ScalarType::s8: return MatrixType::s8;
    case ScalarType::u8: return MatrixType::u8;
    case ScalarType::s4: return MatrixType::s4;
    case ScalarType::u4: return MatrixType::u4;
    case ScalarType::b1: return MatrixType::b1;
    case ScalarType::s32: return MatrixType::s32;
    default: throw Unsupported("a matrix of this type");
  }
}

size_t registerCount(const Operand& o) { return o.kind == Operand::Kind::vector ? o.elements.size() : 1; }
const Operand& registerAt(const Operand& o, size_t i) { return o.kind == Operand::Kind::vector ? o.elements[i] : o; }

MatrixJob shapeOf(const Instruction& in) {
  MatrixJob job;
  job.m = in.shape.m;
  job.n = in.shape.n;
  job.k = in.shape.k;
  if (!job.m || !job.n || !job.k || job.m > 32 || job.n > 32 || job.k > 256)
    throw Unsupported("a matrix of this shape");
  return job;
}

// Elements of a fragment per register row of 32 lanes; f64 takes a row of doubles.
uint64_t bytesOfRow(MatrixType t) { return t == MatrixType::f64 ? 256 : 128; }

}  // namespace

Value* FunctionCodegen::fragmentBuffer(unsigned which) {
  if (!fragments_[which])
    fragments_[which] = entryAlloca(llvm::ArrayType::get(b.getInt64Ty(), kWarpSize * 8), "fragment");
  return fragments_[which];
}

Value* FunctionCodegen::spillFragment(const Operand& o, exec::MatrixType t, unsigned which) {
  Value* buffer = fragmentBuffer(which);
  const ScalarType as = t == MatrixType::f64 ? ScalarType::f64 : ScalarType::b32;
  if (registerCount(o) * bytesOfRow(t) > kWarpSize * 64) throw Unsupported("a fragment of so many registers");
  for (size_t i = 0; i < registerCount(o); ++i) {
    Value* row = source(registerAt(o, i), as);
    b.CreateAlignedStore(row, b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), buffer, i * bytesOfRow(t)), llvm::Align(64));
  }
  return buffer;
}

void FunctionCodegen::storeFragment(const Operand& o, exec::MatrixType t, Value* buffer) {
  const ScalarType as = t == MatrixType::f64 ? ScalarType::f64 : ScalarType::b32;
  std::vector<Value*> rows;
  for (size_t i = 0; i < registerCount(o); ++i)
    rows.push_back(b.CreateAlignedLoad(type(as), b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), buffer, i * bytesOfRow(t)),
                                       llvm::Align(64)));
  for (size_t i = 0; i < rows.size(); ++i) store(registerAt(o, i), rows[i], as);
}

// The description travels as a constant of the module.
Value* FunctionCodegen::matrixJob(const exec::MatrixJob& job) {
  static_assert(std::is_trivially_copyable_v<MatrixJob>);
  const llvm::StringRef bytes(reinterpret_cast<const char*>(&job), sizeof job);
  auto* data = llvm::ConstantDataArray::getString(b.getContext(), bytes, false);
  auto* global =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "job");
  global->setAlignment(llvm::Align(8));
  return global;
}

bool FunctionCodegen::emitMatrix(const Instruction& in) {
  switch (in.op) {
    case Opcode::mma: emitMma(in); return true;
    case Opcode::wmma:
      if (in.has(Mod::mma))
        emitMma(in);
      else
        emitWmmaMemory(in);
      return true;
    case Opcode::ldmatrix:
    case Opcode::stmatrix: emitMatrixRows(in); return true;
    case Opcode::movmatrix: {
      lanes = kWarpSize;
      Value* from = spill(source(in.operands[1], ScalarType::b32), 0);
      Value* to = scratch(1);
      b.CreateCall(k_.helper("sonde_movmatrix", b.getVoidTy(), {b.getPtrTy(), b.getPtrTy()}), {from, to});
      store(in.operands[0], b.CreateAlignedLoad(type(ScalarType::b32), to, llvm::Align(64)), ScalarType::b32);
      return true;
    }
    default: return false;
  }
}

void FunctionCodegen::emitMma(const Instruction& in) {
  if (in.has(Mod::sp) || in.has(Mod::sp_ordered_metadata))
    throw Unsupported("sparse matrix products are not supported");
  if (in.has(Mod::block_scale)) throw Unsupported("block-scaled matrix products are not supported");
  lanes = kWarpSize;
  MatrixJob job = shapeOf(in);
  // d, a, b, c; wmma on f16 names those of d and c alone.
  const bool wmma = in.op == Opcode::wmma, two = in.types.size() == 2;
  job.wmma = wmma;
  job.d = matrixType(in.type(0));
  job.a = two ? MatrixType::f16 : matrixType(in.type(1));
  job.b = two ? MatrixType::f16 : matrixType(in.type(2));
  job.c = matrixType(in.type(two ? 1 : 3));
  job.satfinite = in.has(Mod::satfinite);
  job.andPopc = in.has(Mod::and_);
  unsigned layouts = 0;
  for (Mod m : in.mods) {
    if (m != Mod::row && m != Mod::col) continue;
    if (layouts++ == 0)
      job.columnA = m == Mod::col;
    else
      job.rowB = m == Mod::row;
  }
  const Operand &d = in.operands.at(0), &a = in.operands.at(1), &bOperand = in.operands.at(2), &c = in.operands.at(3);
  job.registersD = static_cast<uint8_t>(registerCount(d));
  job.registersA = static_cast<uint8_t>(registerCount(a));
  job.registersB = static_cast<uint8_t>(registerCount(bOperand));
  job.registersC = static_cast<uint8_t>(registerCount(c));
  if (wmma && job.a == MatrixType::f64 && job.m == 8 && job.n == 8 && job.k == 4 && job.registersC == 2) {
    multiplyDoubles(d, a, bOperand, c);
    return;
  }
  Value* fragmentA = spillFragment(a, job.a, 0);
  Value* fragmentB = spillFragment(bOperand, job.b, 1);
  Value* fragmentC = spillFragment(c, job.c, 2);
  Value* result = fragmentBuffer(3);
  llvm::Type* p = b.getPtrTy();
  b.CreateCall(k_.helper("sonde_mma", b.getVoidTy(), {p, p, p, p, p}),
               {matrixJob(job), fragmentA, fragmentB, fragmentC, result});
  storeFragment(d, job.d, result);
}

// wmma.m8n8k4 on f64: the registers are the matrices row by row (matrixPlace), and a row of eight is one vector.
void FunctionCodegen::multiplyDoubles(const Operand& d, const Operand& a, const Operand& right, const Operand& c) {
  constexpr int kRows = 8, kColumns = 8, kDepth = 4;
  const auto run = [](int first, int count) {
    std::vector<int> indices(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) indices[static_cast<size_t>(i)] = first + i;
    return indices;
  };
  Value* left = source(registerAt(a, 0), ScalarType::f64);
  Value* all = source(registerAt(right, 0), ScalarType::f64);
  std::vector<Value*> rowsOfB, sums;
  for (int k = 0; k < kDepth; ++k) rowsOfB.push_back(b.CreateShuffleVector(all, run(k * kColumns, kColumns)));
  for (int row = 0; row < kRows; ++row) {
    Value* addends = source(registerAt(c, static_cast<size_t>(row / 4)), ScalarType::f64);
    Value* sum = b.CreateShuffleVector(addends, run(row % 4 * kColumns, kColumns));
    for (int k = 0; k < kDepth; ++k) {
      Value* one = b.CreateShuffleVector(left, std::vector<int>(kColumns, row * kDepth + k));
      sum = b.CreateIntrinsic(llvm::Intrinsic::fma, {sum->getType()}, {one, rowsOfB[static_cast<size_t>(k)], sum});
    }
    sums.push_back(sum);
  }
  Value* results[2];
  for (size_t r = 0; r < 2; ++r)
    results[r] = concat(concat(sums[4 * r], sums[4 * r + 1]), concat(sums[4 * r + 2], sums[4 * r + 3]));
  for (size_t r = 0; r < 2; ++r) store(registerAt(d, r), results[r], ScalarType::f64);
}

// ldmatrix d, [row addresses] and stmatrix [row addresses], d: lane 8j + i has the
// address of row i of the 8 x 8 matrix j.
void FunctionCodegen::emitMatrixRows(const Instruction& in) {
  if (!in.has(Mod::m8n8)) throw Unsupported("only matrices of 8 x 8 16-bit elements are loaded by rows");
  const bool loads = in.op == Opcode::ldmatrix;
  const Operand &address = in.operands.at(loads ? 1 : 0), &data = in.operands.at(loads ? 0 : 1);
  const unsigned count = in.has(Mod::x4) ? 4 : in.has(Mod::x2) ? 2 : 1;
  if (registerCount(data) != count) throw Unsupported("as many registers as matrices are needed");
  markPosition(in);
  const MemoryAccess access = resolveAddress(in, address, in.space, 16, 1);
  lanes = kWarpSize;
  Value* addresses = spill(genericAddresses(access), 0);
  Value* rows = loads ? fragmentBuffer(0) : spillFragment(data, MatrixType::s32, 0);
  llvm::Type *p = b.getPtrTy(), *i32 = b.getInt32Ty();
  const uint32_t what = static_cast<uint32_t>(access.space) | (loads ? 0u : 1u) << 4;
  if (countingMemory())
    b.CreateCall(k_.helper("sonde_count_rows", b.getVoidTy(), {p, p, i32, i32}),
                 {warp_, addresses, b.getInt32(what | count << 8), accessBase()});
  b.CreateCall(k_.helper(loads ? "sonde_ldmatrix" : "sonde_stmatrix", b.getVoidTy(), {p, p, i32, i32, i32, p}),
               {warp_, addresses, b.getInt32(static_cast<uint32_t>(access.space)), b.getInt32(count),
                b.getInt32(in.has(Mod::trans)), rows});
  if (loads) storeFragment(data, MatrixType::s32, rows);
}

// wmma.load.{a,b,c} d, [address], stride; wmma.store.d [address], d, stride.
void FunctionCodegen::emitWmmaMemory(const Instruction& in) {
  const bool loads = in.has(Mod::load);
  MatrixJob job = shapeOf(in);
  job.wmma = 1;
  const MatrixType t = matrixType(in.type());
  const MatrixPart part = loads && in.has(Mod::a)   ? MatrixPart::a
                          : loads && in.has(Mod::b) ? MatrixPart::b
                                                    : MatrixPart::c;
  job.a = job.b = job.c = job.d = t;
  job.columnA = in.has(Mod::col);
  const Operand &address = in.operands.at(loads ? 1 : 0), &data = in.operands.at(loads ? 0 : 1);
  job.registersA = static_cast<uint8_t>(registerCount(data));
  markPosition(in);
  const MemoryAccess access = resolveAddress(in, address, in.space, 4, 1);
  lanes = kWarpSize;
  Value* addresses = spill(genericAddresses(access), 0);
  // Without a stride the matrix is dense.
  const unsigned rows = part == MatrixPart::b ? job.k : job.m, columns = part == MatrixPart::a ? job.k : job.n;
  Value* stride = nullptr;
  if (in.operands.size() > 2)
    stride = b.CreateExtractElement(source(in.operands[2], ScalarType::u32), uint64_t{0});
  else
    stride = b.getInt32(job.columnA ? rows : columns);
  Value* fragment = loads ? fragmentBuffer(0) : spillFragment(data, t, 0);
  llvm::Type *p = b.getPtrTy(), *i32 = b.getInt32Ty();
  const uint32_t what = static_cast<uint32_t>(access.space) | (loads ? 0u : 1u) << 4;
  if (countingMemory())
    b.CreateCall(k_.helper("sonde_count_tile", b.getVoidTy(), {p, p, i32, p, i32, i32, i32}),
                 {warp_, matrixJob(job), b.getInt32(static_cast<uint32_t>(part)), addresses, b.getInt32(what), stride,
                  accessBase()});
  b.CreateCall(k_.helper(loads ? "sonde_wmma_load" : "sonde_wmma_store", b.getVoidTy(), {p, p, i32, p, i32, i32, p}),
               {warp_, matrixJob(job), b.getInt32(static_cast<uint32_t>(part)), addresses,
                b.getInt32(static_cast<uint32_t>(access.space)), stride, fragment});
  if (loads) storeFragment(data, t, fragment);
}

}  // namespace sonde::softgpu::jit
