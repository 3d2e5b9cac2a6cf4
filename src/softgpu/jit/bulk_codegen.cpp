// SPDX-License-Identifier: Apache-2.0
//
// Bulk and tensor copies, asynchronous stores and reductions, tensor maps: one
// helper for all (exec/bulk_job.h).
#include "softgpu/exec/bulk_job.h"
#include "softgpu/jit/function_codegen.h"

namespace sonde::softgpu::jit {

using exec::AtomicOp;
using exec::BulkJob;
using exec::BulkKind;
using exec::MapField;
using exec::TensorMode;
using exec::WarpState;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;

namespace {

constexpr uint64_t kRow = exec::kLanes * sizeof(uint64_t);

bool isShared(StateSpace s) {
  return s == StateSpace::shared || s == StateSpace::sharedCta || s == StateSpace::sharedCluster;
}

}  // namespace

AtomicOp atomicOperation(const Instruction& in) {
  if (in.has(Mod::add)) return AtomicOp::add;
  if (in.has(Mod::min)) return AtomicOp::min;
  if (in.has(Mod::max)) return AtomicOp::max;
  if (in.has(Mod::and_)) return AtomicOp::bitAnd;
  if (in.has(Mod::or_)) return AtomicOp::bitOr;
  if (in.has(Mod::xor_)) return AtomicOp::bitXor;
  if (in.has(Mod::exch)) return AtomicOp::exch;
  if (in.has(Mod::cas)) return AtomicOp::cas;
  if (in.has(Mod::inc)) return AtomicOp::inc;
  if (in.has(Mod::dec)) return AtomicOp::dec;
  throw Unsupported("this atomic operation");
}

void FunctionCodegen::bulkRow(unsigned row, Value* lanesOfIt) {
  b.CreateAlignedStore(toForm(asType(lanesOfIt, b.getInt64Ty(), false)),
                       b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), bulkRows_, row * kRow), llvm::Align(64));
}

// Generic addresses.
void FunctionCodegen::bulkAddress(unsigned row, const Instruction& in, const Operand& o, StateSpace space) {
  // What is valid in the block's own shared memory is so in the cluster's.
  const MemoryAccess a = resolveAddress(in, o, isShared(space) ? StateSpace::sharedCluster : StateSpace::global, 1, 1);
  bulkRow(row, genericAddresses(a));
}

void FunctionCodegen::callBulk(const BulkJob& job) {
  static_assert(std::is_trivially_copyable_v<BulkJob>);
  const llvm::StringRef bytes(reinterpret_cast<const char*>(&job), sizeof job);
  auto* data = llvm::ConstantDataArray::getString(b.getContext(), bytes, false);
  auto* global =
      new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, "bulk");
  global->setAlignment(llvm::Align(8));
  b.CreateCall(k_.helper("sonde_bulk", b.getVoidTy(), {b.getPtrTy(), b.getInt32Ty(), b.getPtrTy(), b.getPtrTy()}),
               {warp_, effectMask(), global, bulkRows_});
}

bool FunctionCodegen::emitBulk(const Instruction& in) {
  const bool copies = in.op == Opcode::cp && in.has(Mod::bulk);
  const bool stores = in.op == Opcode::st && (in.has(Mod::async) || in.has(Mod::bulk));
  const bool reduces = in.op == Opcode::red && in.has(Mod::async);
  const bool maps = in.op == Opcode::tensormap;
  if (!copies && !stores && !reduces && !maps) return false;
  if (copies && in.has(Mod::prefetch)) return true;  // nothing to see of it
  markPosition(in);
  if (!bulkRows_)
    bulkRows_ = entryAlloca(llvm::ArrayType::get(b.getInt64Ty(), exec::kLanes * exec::kBulkRows), "bulk_rows");
  lanes = kWarpSize;
  if (copies)
    emitBulkCopy(in);
  else if (maps)
    emitTensorMap(in);
  else
    emitAsyncStore(in);
  return true;
}

// cp.async.bulk, cp.reduce.async.bulk and their tensor forms.
void FunctionCodegen::emitBulkCopy(const Instruction& in) {
  BulkJob job;
  const bool tensor = in.has(Mod::tensor);
  job.signals = in.has(Mod::complete_tx_bytes);
  job.multicast = in.has(Mod::multicast_cluster);
  if (in.has(Mod::multicast_cluster_all) || in.has(Mod::cp_mask) || in.has(Mod::ignore_oob) ||
      in.has(Mod::cta_group_1) || in.has(Mod::cta_group_2))
    throw Unsupported("a modifier that is not supported");
  if (in.has(Mod::reduce)) {
    job.reduces = true;
    job.op = atomicOperation(in);
    job.type = in.type();
    if (!tensor && ptx::bitsOf(job.type) < 16) throw Unsupported("a reduction of this type");
  }
  size_t next = 0;
  auto operand = [&]() -> const Operand& {
    if (next >= in.operands.size()) throw Unsupported("an operand is missing");
    return in.operands[next++];
  };
  if (!tensor) {
    bulkAddress(exec::kBulkTo, in, operand(), in.space);
    bulkAddress(exec::kBulkFrom, in, operand(), in.space2);
    bulkRow(exec::kBulkSize, source(operand(), ScalarType::u32));
  } else {
    job.kind = isShared(in.space) ? BulkKind::tensorLoad : BulkKind::tensorStore;
    job.mode = in.has(Mod::im2col) || in.has(Mod::im2col_no_offs)        ? TensorMode::im2col
               : in.has(Mod::tile_gather4) || in.has(Mod::tile_scatter4) ? TensorMode::rows4
                                                                         : TensorMode::tile;
    if (in.has(Mod::im2col_w) || in.has(Mod::im2col_w_128)) throw Unsupported("im2col::w");
    job.dimensions = in.has(Mod::geom_1d)   ? 1
                     : in.has(Mod::geom_2d) ? 2
                     : in.has(Mod::geom_3d) ? 3
                     : in.has(Mod::geom_4d) ? 4
                                            : 5;
    const Operand* shared = job.kind == BulkKind::tensorLoad ? &operand() : nullptr;
    const Operand& map = operand();
    if (map.kind != Operand::Kind::texture || map.elements.size() < 2)
      throw Unsupported("an operand that is no tensor");
    bulkRow(exec::kBulkFrom, mapAddress(map.elements[0]));
    const Operand& at = map.elements.back();
    for (unsigned i = 0; i < 5; ++i) {
      const bool single = at.kind != Operand::Kind::vector;
      const bool given = single ? i == 0 : i < at.elements.size();
      bulkRow(exec::kBulkCoordinates + i,
              given ? source(single ? at : at.elements[i], ScalarType::s32) : constantInt(32, 0));
    }
    if (!shared) shared = &operand();
    bulkAddress(exec::kBulkTo, in, *shared, StateSpace::sharedCluster);
  }
  if (job.signals) bulkAddress(exec::kBulkBarrier, in, operand(), StateSpace::sharedCluster);
  for (unsigned i = 0; i < 3; ++i) bulkRow(exec::kBulkOffsets + i, constantInt(32, 0));
  if (in.has(Mod::im2col)) {
    const Operand& offsets = operand();
    if (offsets.kind != Operand::Kind::vector) {
      bulkRow(exec::kBulkOffsets, source(offsets, ScalarType::u16));
    } else {
      for (unsigned i = 0; i < offsets.elements.size() && i < 3; ++i)
        bulkRow(exec::kBulkOffsets + i, source(offsets.elements[i], ScalarType::u16));
    }
  }
  if (job.multicast) bulkRow(exec::kBulkBlocks, source(operand(), ScalarType::u16));
  callBulk(job);
}

// A register, or a parameter of the kernel by name.
Value* FunctionCodegen::mapAddress(const Operand& o) {
  Operand value = o;
  if (o.kind == Operand::Kind::address) value.kind = o.reg != ptx::kNoId ? Operand::Kind::reg : Operand::Kind::symbol;
  Value* address = source(value, ScalarType::u64);
  if (o.kind == Operand::Kind::address && o.reg != ptx::kNoId && o.offset)
    address = b.CreateAdd(address, constantInt(64, static_cast<uint64_t>(o.offset)));
  return address;
}

// st.async, red.async and st.bulk.
void FunctionCodegen::emitAsyncStore(const Instruction& in) {
  BulkJob job;
  const StateSpace space = in.space == StateSpace::none ? StateSpace::global : in.space;
  bulkAddress(exec::kBulkTo, in, in.operands.at(0), space);
  if (in.has(Mod::bulk)) {
    job.kind = BulkKind::fill;
    bulkRow(exec::kBulkSize, source(in.operands.at(1), ScalarType::u64));
    callBulk(job);
    return;
  }
  job.kind = BulkKind::store;
  job.signals = in.has(Mod::complete_tx_bytes);
  job.type = in.type();
  job.count = in.vectorWidth;
  if (in.op == Opcode::red) {
    job.reduces = true;
    job.op = atomicOperation(in);
  }
  const Operand& v = in.operands.at(1);
  for (unsigned i = 0; i < job.count; ++i)
    bulkRow(exec::kBulkValues + i, asType(source(v.kind == Operand::Kind::vector ? v.elements.at(i) : v, job.type),
                                          b.getIntNTy(ptx::bitsOf(job.type)), false));
  if (job.signals) bulkAddress(exec::kBulkBarrier, in, in.operands.at(2), StateSpace::sharedCluster);
  callBulk(job);
}

void FunctionCodegen::emitTensorMap(const Instruction& in) {
  BulkJob job;
  if (in.has(Mod::cp_fenceproxy)) {
    job.kind = BulkKind::mapCopy;
    bulkAddress(exec::kBulkTo, in, in.operands.at(0), StateSpace::global);
    bulkAddress(exec::kBulkFrom, in, in.operands.at(1), StateSpace::shared);
    callBulk(job);
    return;
  }
  job.kind = BulkKind::mapReplace;
  struct Field {
    Mod mod;
    MapField field;
    bool indexed;
  };
  constexpr Field fields[] = {
      {Mod::global_address, MapField::address, false},
      {Mod::rank, MapField::rank, false},
      {Mod::box_dim, MapField::box, true},
      {Mod::global_dim, MapField::extent, true},
      {Mod::global_stride, MapField::stride, true},
      {Mod::element_stride, MapField::elementStride, true},
      {Mod::elemtype, MapField::elementType, false},
      {Mod::interleave_layout, MapField::interleave, false},
      {Mod::swizzle_mode, MapField::swizzle, false},
      {Mod::fill_mode, MapField::fill, false},
  };
  const Field* found = nullptr;
  for (const Field& f : fields)
    if (in.has(f.mod)) found = &f;
  if (!found) throw Unsupported("this field of a tensor map");
  job.field = found->field;
  bulkAddress(exec::kBulkTo, in, in.operands.at(0), in.space);
  bulkRow(exec::kBulkSize, found->indexed ? source(in.operands.at(1), ScalarType::u32) : constantInt(32, 0));
  const ScalarType t = in.types.empty() || ptx::bitsOf(in.types.back()) != 64 ? ScalarType::u32 : ScalarType::u64;
  bulkRow(exec::kBulkValues, source(in.operands.at(found->indexed ? 2 : 1), t));
  callBulk(job);
}

}  // namespace sonde::softgpu::jit
