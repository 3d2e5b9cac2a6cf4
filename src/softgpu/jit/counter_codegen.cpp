// SPDX-License-Identifier: Apache-2.0
//
// The counting variant. A block costs two additions: how often warps ran it,
// and with how many lanes. A predicated instruction costs one. What these mean
// in raw counters is kept in the CounterPlan. Memory requests are static too,
// unless they are predicated; sectors and bank conflicts of uniform accesses
// and of whole rows follow from a few scalar operations; only scattered lanes
// need the helper.
#include "ptx/defuse.h"
#include "softgpu/jit/function_codegen.h"
#include "softgpu/jit/instruction_class.h"

namespace sonde::softgpu::jit {

using exec::RawCounter;
using exec::WarpState;
using llvm::Value;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::StateSpace;

void FunctionCodegen::addToSlot(uint32_t slot, Value* amount) {
  Value* base = warpField(offsetof(WarpState, counters), b.getPtrTy(), "counters");
  Value* p = b.CreateConstInBoundsGEP1_32(b.getInt64Ty(), base, slot);
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), p), amount), p);
}

void FunctionCodegen::countBlock(uint32_t index) {
  const Block& block = flow_.blocks[index];
  CounterPlan& plan = k_.counters;
  if (block.begin == block.end) return;
  const uint32_t warps = plan.newSlot();
  const uint32_t threads = plan.newSlot();
  addToSlot(warps, b.getInt64(1));
  addToSlot(threads, popcount(mask_));
  const auto n = static_cast<int64_t>(block.end - block.begin);
  plan.add(warps, RawCounter::inst_executed, n);
  plan.add(warps, RawCounter::inst_issued, n);
  plan.add(threads, RawCounter::thread_inst_executed, n);
  for (uint32_t i = block.begin; i < block.end; ++i) {
    const Instruction& in = function.body[i];
    if (countingSites()) addSite(i, warps, threads);
    if (in.op == Opcode::bra || in.op == Opcode::brx) plan.add(warps, RawCounter::branch, 1);
    if (in.guard.reg == ptx::kNoId) countStatic(in, warps, threads);
  }
}

void FunctionCodegen::addSite(uint32_t i, uint32_t warps, uint32_t threads) {
  const Instruction& in = function.body[i];
  CounterPlan& plan = k_.counters;
  CounterSite site{index_, i, warps, threads, warps, threads};
  const bool access = in.op == Opcode::ld || in.op == Opcode::ldu || in.op == Opcode::st || in.op == Opcode::atom ||
                      in.op == Opcode::red;
  // Copies and matrices: the helpers find out what they do.
  if (in.op == Opcode::cp || in.op == Opcode::ldmatrix || in.op == Opcode::stmatrix ||
      (in.op == Opcode::wmma && (in.has(Mod::load) || in.has(Mod::store)))) {
    site.access = plan.newSlots(kAccessSlots);
    site.what =
        in.op == Opcode::cp ? kCopySite | (in.has(Mod::cg) ? 8u : 0) : in.op == Opcode::stmatrix || in.has(Mod::store);
  }
  if (access) site.what = accessKind(in) | (servedByL2(in) ? 8u : 0);
  if (access) switch (in.space) {
      case StateSpace::none:
      case StateSpace::sharedCluster: site.access = plan.newSlots(kAccessSlots); break;
      case StateSpace::global: site.access = plan.newSlots(2); break;
      case StateSpace::shared:
      case StateSpace::sharedCta: site.access = plan.newSlots(2) - kSharedTransactions; break;
      default: break;
    }
  if (in.op == Opcode::bra || in.op == Opcode::brx) site.diverged = plan.newSlot();
  plan.sites.push_back(site);
  sites_.resize(function.body.size());
  sites_[i] = static_cast<uint32_t>(plan.sites.size());
}

CounterSite* FunctionCodegen::siteOf(const Instruction& in) {
  if (!countingSites()) return nullptr;
  const auto i = static_cast<size_t>(&in - function.body.data());
  return i < sites_.size() && sites_[i] ? &k_.counters.sites[sites_[i] - 1] : nullptr;
}

Value* FunctionCodegen::accessBase() {
  if (outlinedAccess_) return outlinedAccess_;
  const CounterSite* site = siteOf(*current_);
  return b.getInt32(site ? site->access : 0);
}

void FunctionCodegen::addToAccess(uint32_t which, Value* amount) {
  if (!outlinedAccess_) {
    if (const CounterSite* site = siteOf(*current_); site && site->access) addToSlot(site->access + which, amount);
    return;
  }
  Value* base = warpField(offsetof(WarpState, counters), b.getPtrTy(), "counters");
  Value* slot = b.CreateAdd(b.CreateZExt(outlinedAccess_, b.getInt64Ty()), b.getInt64(which));
  Value* p = b.CreateInBoundsGEP(b.getInt64Ty(), base, slot);
  b.CreateStore(b.CreateAdd(b.CreateLoad(b.getInt64Ty(), p), amount), p);
}

void FunctionCodegen::countDiverged(const Instruction& in, Value* diverged) {
  Value* n = b.CreateZExt(diverged, b.getInt64Ty());
  if (const CounterSite* site = siteOf(in)) {
    addToSlot(site->diverged, n);
    k_.counters.add(site->diverged, RawCounter::divergent_branch, 1);
  } else {
    countRaw(RawCounter::divergent_branch, n);
  }
}

// What one execution of an instruction counts, given a slot of warps and one of
// threads that ran it.
void FunctionCodegen::countStatic(const Instruction& in, uint32_t warps, uint32_t threads) {
  CounterPlan& plan = k_.counters;
  plan.add(threads, RawCounter::thread_inst_not_pred_off, 1);
  const InstructionClass c = classify(in);
  plan.add(threads, c.kind, 1);
  if (c.flop != RawCounter::count_) plan.add(threads, c.flop, c.flopPerThread);
  if ((in.op == Opcode::bar || in.op == Opcode::barrier) && !in.has(Mod::warp))
    plan.add(warps, RawCounter::barrier_sync, 1);
  if (in.op == Opcode::pmevent) {
    const uint64_t which = in.operands.empty() ? 0 : in.operands[0].imm;
    for (uint32_t e = 0; e < 8; ++e)
      if (in.has(Mod::mask) ? (which >> e & 1) != 0 : which == e)
        plan.add(warps, static_cast<RawCounter>(static_cast<uint32_t>(RawCounter::prof_trigger_00) + e), 1);
  }
  if (!countingMemory()) return;
  const bool load = in.op == Opcode::ld || in.op == Opcode::ldu, isStore = in.op == Opcode::st;
  const bool red = isReduction(in), atom = in.op == Opcode::atom && !red;
  if (!load && !isStore && !atom && !red) return;
  const unsigned bytes = ptx::bitsOf(in.type()) / 8 * in.vectorWidth;
  switch (in.space) {
    case StateSpace::const_: plan.add(warps, RawCounter::const_load_requests, 1); return;
    case StateSpace::shared:
    case StateSpace::sharedCta:
      if (load) {
        plan.add(warps, RawCounter::shared_load_requests, 1);
        plan.add(threads, RawCounter::shared_load_bytes, bytes);
      } else if (isStore) {
        plan.add(warps, RawCounter::shared_store_requests, 1);
        plan.add(threads, RawCounter::shared_store_bytes, bytes);
      } else {
        plan.add(warps, RawCounter::shared_atom_requests, 1);
      }
      return;
    case StateSpace::local:
      plan.add(warps, load ? RawCounter::local_load_requests : RawCounter::local_store_requests, 1);
      return;
    case StateSpace::global: {
      if (atom || red) {
        plan.add(warps, atom ? RawCounter::global_atom_requests : RawCounter::global_red_requests, 1);
        plan.add(threads, atom ? RawCounter::global_atom_threads : RawCounter::global_red_threads, 1);
        return;
      }
      plan.add(warps, load ? RawCounter::global_load_requests : RawCounter::global_store_requests, 1);
      plan.add(threads, load ? RawCounter::global_load_bytes : RawCounter::global_store_bytes, bytes);
      const unsigned log = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : bytes <= 8 ? 3 : 4;
      const auto first = load ? RawCounter::gld_inst_8bit : RawCounter::gst_inst_8bit;
      plan.add(threads, static_cast<RawCounter>(static_cast<uint32_t>(first) + log), 1);
      return;
    }
    default: return;  // generic: the helper finds out
  }
}

// A predicated instruction. lanes: those that run it; null: from the guard.
void FunctionCodegen::countGuarded(const Instruction& in, Value* active) {
  if (!active) {
    Value* g = guard_;
    active = g->getType()->isVectorTy() ? b.CreateAnd(bitsOf(g), mask_) : b.CreateSelect(g, mask_, b.getInt32(0));
  }
  const uint32_t warps = k_.counters.newSlot();
  const uint32_t threads = k_.counters.newSlot();
  addToSlot(warps, b.CreateZExt(b.CreateICmpNE(active, b.getInt32(0)), b.getInt64Ty()));
  addToSlot(threads, popcount(active));
  if (CounterSite* site = siteOf(in)) {
    site->onWarps = warps;
    site->onThreads = threads;
  }
  countStatic(in, warps, threads);
}

namespace {
// Constants and parameters make no requests that are counted by address.
bool hasOwnPath(const Instruction& in) {
  return in.space == StateSpace::const_ || in.space == StateSpace::param || in.space == StateSpace::paramFunc ||
         in.space == StateSpace::paramEntry;
}
enum Kind : uint32_t { kLoad = 0, kStore = 1, kAtom = 2, kRed = 3 };

// An access whose space is found out at each execution; shared memory of the
// cluster has addresses in the generic space here.
bool isGenericAccess(const Instruction& in) {
  return in.space == StateSpace::none || in.space == StateSpace::sharedCluster;
}
}  // namespace

// Compilers write atom even where nobody reads the old value; the hardware's
// assembler makes a reduction of that, and so it counts as one.
bool FunctionCodegen::isReduction(const Instruction& in) const {
  if (in.op == Opcode::red) return true;
  if (in.op != Opcode::atom || in.has(Mod::exch) || in.has(Mod::cas)) return false;
  bool read = false;
  forEachDef(in, [&](ptx::RegId r) { read |= everRead_[r]; });
  return !read;
}

uint32_t FunctionCodegen::accessKind(const Instruction& in) const {
  if (in.op == Opcode::st) return kStore;
  if (isReduction(in)) return kRed;
  return in.op == Opcode::atom ? kAtom : kLoad;
}

// Loads that L1 may hold no copy for: of L2 by their cache operator, or ordered.
bool FunctionCodegen::servedByL2(const Instruction& in) const {
  return in.op == Opcode::ld && (in.has(Mod::cg) || in.has(Mod::cv) || in.has(Mod::volatile_) || in.has(Mod::relaxed) ||
                                 in.has(Mod::acquire) || in.has(Mod::mmio));
}

// For the cache model: two runs of span + 1 bytes of global memory.
void FunctionCodegen::cacheRows(Value* low, Value* high, Value* span) {
  if (!countingCaches()) return;
  const uint32_t what = accessKind(*current_) << 4 | (servedByL2(*current_) ? 1u << 7 : 0);
  b.CreateCall(k_.helper("sonde_cache_rows", b.getVoidTy(),
                         {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty(), b.getInt32Ty(), b.getInt32Ty()}),
               {warp_, low, high, b.CreateTrunc(span, b.getInt32Ty()), b.getInt32(what)});
}

// Sectors, lines, wavefronts of an access with these lane addresses, by helper.
void FunctionCodegen::countByHelper(const MemoryAccess& a) {
  const Instruction& in = *current_;
  Value* addresses = spill(genericAddresses(a), 4);
  const bool generic = isGenericAccess(in);
  const uint32_t what = static_cast<uint32_t>(a.space) | accessKind(in) << 4 | (generic ? 1u << 6 : 0) |
                        (servedByL2(in) ? 1u << 7 : 0) | (a.bytes * a.count) << 8;
  b.CreateCall(k_.helper("sonde_count_access", b.getVoidTy(),
                         {b.getPtrTy(), b.getPtrTy(), b.getInt32Ty(), b.getInt32Ty(), b.getInt32Ty()}),
               {warp_, addresses, effectMask(), b.getInt32(what), accessBase()});
}

// All lanes at one address.
void FunctionCodegen::countUniform(const MemoryAccess& a) {
  const Instruction& in = *current_;
  if (!countingMemory() || hasOwnPath(in)) return;
  if (isGenericAccess(in) || a.space == Space::local || in.op == Opcode::atom || in.op == Opcode::red) {
    countByHelper(a);
    return;
  }
  const bool isStore = in.op == Opcode::st;
  Value* one = b.getInt64(1);
  if (a.space == Space::shared) {
    countRaw(isStore ? RawCounter::shared_store_wavefronts : RawCounter::shared_load_wavefronts, one);
    addToAccess(kSharedTransactions, one);
    addToAccess(kSharedIdeal, one);
    return;
  }
  addToAccess(kGlobalTransactions, one);
  addToAccess(kGlobalIdeal, one);
  countRaw(isStore ? RawCounter::global_store_sectors : RawCounter::global_load_sectors, one);
  countRaw(isStore ? RawCounter::global_store_lines : RawCounter::global_load_lines, one);
  cacheRows(a.address, a.address, b.getInt64(a.bytes * a.count - 1));
}

// Sectors that the different bytes of both halves would fill: 16 elements each,
// or one, of which those at the same place count once.
Value* FunctionCodegen::idealSectors(const Halves& h, unsigned size) {
  Value* low = h.low;
  Value* high = h.high;
  Value* apart = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, low, high),
                             b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, low, high));
  auto bytes = [&](unsigned half) {
    Value* most = b.getInt64(half);
    return b.CreateAdd(most, b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, apart, most));
  };
  Value* all = bytes(size * 16);
  if (h.same) all = b.CreateSelect(h.same, bytes(size), all);
  return b.CreateLShr(b.CreateAdd(all, b.getInt64(31)), 5);
}

// Each half of the warp at consecutive elements or at one; the insert point is
// within that path. With all lanes there, the pieces touched are two intervals.
// Holes in the mask go to the helper.
void FunctionCodegen::countHalves(const MemoryAccess& a, const Halves& h) {
  const Instruction& in = *current_;
  if (!countingMemory() || hasOwnPath(in)) return;
  const unsigned size = a.bytes * a.count;
  if (a.space == Space::local || (a.space == Space::shared && size < 4)) {
    countByHelper(a);
    return;
  }
  auto& c = b.getContext();
  auto* simple = llvm::BasicBlock::Create(c, "count_halves", target_);
  auto* other = llvm::BasicBlock::Create(c, "count_other", target_);
  auto* done = llvm::BasicBlock::Create(c, "counted", target_);
  Value* full = b.CreateICmpEQ(effectMask(), b.getInt32(~0u));
  if (isGenericAccess(in)) {  // below global memory lie the shared and the local window
    Value* global = b.CreateAdd(warpField(offsetof(WarpState, localWindowBase), b.getInt64Ty(), "lw"),
                                warpField(offsetof(WarpState, localWindowSize), b.getInt64Ty(), "ls"));
    full = b.CreateAnd(full, b.CreateAnd(b.CreateICmpUGE(h.low, global), b.CreateICmpUGE(h.high, global)));
  }
  b.CreateCondBr(full, simple, other);
  b.SetInsertPoint(simple);
  const bool isStore = in.op == Opcode::st;
  if (a.space == Space::shared) {
    const auto wavefronts = isStore ? RawCounter::shared_store_wavefronts : RawCounter::shared_load_wavefronts;
    if (size > 4) {  // each half, or quarter, is a pass of its own
      Value* parts = b.getInt64(size == 8 ? 2 : 4);
      countRaw(wavefronts, parts);
      addToAccess(kSharedTransactions, parts);
      addToAccess(kSharedIdeal, parts);
    } else {
      // Distance in words: a second pass when two different words of the halves
      // share a bank.
      Value* distance = b.CreateAShr(b.CreateSub(h.high, h.low), 2);
      Value* bank = b.CreateAnd(distance, b.getInt32(31));
      Value* near = b.CreateICmpULE(b.CreateAdd(distance, b.getInt32(16)), b.getInt32(32));
      Value* conflict = b.CreateNot(b.CreateOr(near, b.CreateICmpEQ(bank, b.getInt32(16))));
      if (h.same) {
        Value* one = b.CreateAnd(b.CreateICmpEQ(bank, b.getInt32(0)), b.CreateICmpNE(distance, b.getInt32(0)));
        conflict = b.CreateSelect(h.same, one, conflict);
      }
      Value* extra = b.CreateZExt(conflict, b.getInt64Ty());
      Value* all = b.CreateAdd(extra, b.getInt64(1));
      countRaw(wavefronts, all);
      addToAccess(kSharedTransactions, all);
      addToAccess(kSharedIdeal, b.getInt64(1));
      countRaw(isStore ? RawCounter::shared_store_bank_conflicts : RawCounter::shared_load_bank_conflicts, extra);
    }
  } else {
    Value* span = b.getInt64(size * 16 - 1);
    if (h.same) span = b.CreateSelect(h.same, b.getInt64(size - 1), span);
    Value* lowEnd = b.CreateAdd(h.low, span);
    Value* highEnd = b.CreateAdd(h.high, span);
    auto pieces = [&](unsigned shift) -> Value* {
      auto at = [&](Value* v) { return b.CreateLShr(v, shift); };
      Value *s0 = at(h.low), *e0 = at(lowEnd), *s1 = at(h.high), *e1 = at(highEnd);
      Value* both = b.CreateAdd(b.CreateAdd(b.CreateSub(e0, s0), b.CreateSub(e1, s1)), b.getInt64(2));
      Value* begin = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, s0, s1);
      Value* end = b.CreateAdd(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, e0, e1), b.getInt64(1));
      return b.CreateSub(both, b.CreateBinaryIntrinsic(llvm::Intrinsic::usub_sat, end, begin));
    };
    Value* sectors = pieces(5);
    countRaw(isStore ? RawCounter::global_store_sectors : RawCounter::global_load_sectors, sectors);
    if (countingSites()) {
      addToAccess(kGlobalTransactions, sectors);
      addToAccess(kGlobalIdeal, idealSectors(h, size));
    }
    countRaw(isStore ? RawCounter::global_store_lines : RawCounter::global_load_lines, pieces(7));
    cacheRows(h.low, h.high, span);
    if (isGenericAccess(in)) countGenericGlobal(in, size);
  }
  b.CreateBr(done);
  b.SetInsertPoint(other);
  countByHelper(a);
  b.CreateBr(done);
  b.SetInsertPoint(done);
}

// A generic access of all lanes that turned out to be global.
void FunctionCodegen::countGenericGlobal(const Instruction& in, unsigned bytes) {
  const bool isStore = in.op == Opcode::st;
  addToAccess(kGlobalRequests, b.getInt64(1));
  addToAccess(kGlobalThreads, b.getInt64(kWarpSize));
  countRaw(isStore ? RawCounter::global_store_requests : RawCounter::global_load_requests, b.getInt64(1));
  countRaw(isStore ? RawCounter::global_store_bytes : RawCounter::global_load_bytes, b.getInt64(bytes * kWarpSize));
  const unsigned log = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : bytes <= 8 ? 3 : 4;
  const auto first = isStore ? RawCounter::gst_inst_8bit : RawCounter::gld_inst_8bit;
  countRaw(static_cast<RawCounter>(static_cast<uint32_t>(first) + log), b.getInt64(kWarpSize));
}

void FunctionCodegen::countScattered(const MemoryAccess& a) {
  if (countingMemory() && !hasOwnPath(*current_)) countByHelper(a);
}

}  // namespace sonde::softgpu::jit
