// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/instruction_class.h"

namespace sonde::softgpu::jit {

using exec::RawCounter;
using ptx::Instruction;
using ptx::Mod;
using ptx::Opcode;
using ptx::ScalarType;

namespace {

// Waits for copies and their groups; nothing is accessed.
bool isCopyGroup(const Instruction& in) {
  return in.op == Opcode::cp && (in.has(Mod::commit_group) || in.has(Mod::wait_group) || in.has(Mod::wait_all) ||
                                 (in.has(Mod::mbarrier) && in.has(Mod::arrive)));
}

// Matrix instructions by what they do: wmma.load, wgmma.fence.
bool isMatrixAccess(const Instruction& in) {
  return in.op == Opcode::wmma && (in.has(Mod::load) || in.has(Mod::store));
}
bool isMatrixOrder(const Instruction& in) { return in.op == Opcode::wgmma && !in.has(Mod::mma_async); }

}  // namespace

InstructionClass classify(const Instruction& in) {
  InstructionClass c;
  if (isCopyGroup(in) || isMatrixOrder(in)) return c;  // inst_misc
  if (isMatrixAccess(in)) {
    c.kind = RawCounter::inst_compute_ld_st;
    return c;
  }
  // A comparison is of what it compares: the last of set.lt.u32.f32.
  const ScalarType t = in.op == Opcode::set && !in.types.empty() ? in.types.back() : in.type();
  const bool half = t == ScalarType::f16 || t == ScalarType::bf16 || t == ScalarType::f16x2 || t == ScalarType::bf16x2;
  const bool packed = t == ScalarType::f16x2 || t == ScalarType::bf16x2 || t == ScalarType::f32x2;
  auto byType = [&] {
    c.kind = half                   ? RawCounter::inst_fp_16
             : t == ScalarType::f64 ? RawCounter::inst_fp_64
             : ptx::isFloat(t)      ? RawCounter::inst_fp_32
                                    : RawCounter::inst_integer;
  };
  auto flop = [&](RawCounter single, RawCounter twice, RawCounter halves) {
    byType();
    if (!ptx::isFloat(t)) return;
    c.flop = half ? halves : t == ScalarType::f64 ? twice : single;
    c.flopPerThread = packed ? 2 : 1;
  };
  switch (in.op) {
    case Opcode::ld:
    case Opcode::ldu:
    case Opcode::st:
    case Opcode::atom:
    case Opcode::red:
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::cp:
    case Opcode::ldmatrix:
    case Opcode::stmatrix:
    case Opcode::suld:
    case Opcode::sust:
    case Opcode::sured:
    case Opcode::tex:
    case Opcode::tld4:
    case Opcode::txq:
    case Opcode::suq:
    case Opcode::discard:
    case Opcode::applypriority:
    case Opcode::multimem: c.kind = RawCounter::inst_compute_ld_st; break;
    case Opcode::bra:
    case Opcode::brx:
    case Opcode::call:
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap:
    case Opcode::brkpt: c.kind = RawCounter::inst_control; break;
    case Opcode::cvt: c.kind = RawCounter::inst_bit_convert; break;
    case Opcode::shfl:
    case Opcode::vote:
    case Opcode::match:
    case Opcode::redux:
    case Opcode::elect:
    case Opcode::movmatrix:
    case Opcode::activemask: c.kind = RawCounter::inst_inter_thread; break;
    case Opcode::add:
    case Opcode::sub: flop(RawCounter::flop_sp_add, RawCounter::flop_dp_add, RawCounter::flop_hp_add); break;
    case Opcode::mul: flop(RawCounter::flop_sp_mul, RawCounter::flop_dp_mul, RawCounter::flop_hp_mul); break;
    case Opcode::fma:
    case Opcode::mad: flop(RawCounter::flop_sp_fma, RawCounter::flop_dp_fma, RawCounter::flop_hp_fma); break;
    case Opcode::ex2:
    case Opcode::lg2:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::tanh:
    case Opcode::rsqrt:
    case Opcode::rcp:
    case Opcode::sqrt:
    case Opcode::div:
      byType();
      if (t == ScalarType::f32) c.flop = RawCounter::flop_sp_special;
      break;
    case Opcode::mov:
    case Opcode::bar:
    case Opcode::barrier:
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::nanosleep:
    case Opcode::pmevent:
    case Opcode::mbarrier:
    case Opcode::griddepcontrol:
    case Opcode::setmaxnreg:
    case Opcode::createpolicy:
    case Opcode::tensormap:
    case Opcode::tcgen05:
    case Opcode::clusterlaunchcontrol:
    case Opcode::alloca:
    case Opcode::stacksave:
    case Opcode::stackrestore: c.kind = RawCounter::inst_misc; break;
    case Opcode::isspacep:
    case Opcode::cvta: c.kind = RawCounter::inst_integer; break;
    default: byType(); break;
  }
  return c;
}

namespace {

RecordClass memoryClass(const Instruction& in, bool ofKernel) {
  using ptx::StateSpace;
  const bool atomic = in.op == Opcode::atom || in.op == Opcode::red;
  switch (in.op) {
    case Opcode::tex:
    case Opcode::tld4:
    case Opcode::txq: return RecordClass::texture;
    case Opcode::suld:
    case Opcode::suq:
    case Opcode::sust: return RecordClass::surface;
    case Opcode::sured: return RecordClass::surfaceAtomic;
    case Opcode::ldmatrix:
    case Opcode::stmatrix: return RecordClass::shared;
    case Opcode::multimem: return in.has(Mod::red) ? RecordClass::globalAtomic : RecordClass::global;
    default: break;
  }
  switch (in.space) {
    case StateSpace::global: return atomic ? RecordClass::globalAtomic : RecordClass::global;
    case StateSpace::shared:
    case StateSpace::sharedCta:
    case StateSpace::sharedCluster:
      // cp.async reads global memory; what it names first is where that goes.
      if (in.op == Opcode::cp) return RecordClass::global;
      return atomic ? RecordClass::sharedAtomic : RecordClass::shared;
    case StateSpace::local: return RecordClass::local;
    case StateSpace::const_: return RecordClass::constant;
    // Kernel parameters lie in constant memory, those of calls on the stack.
    case StateSpace::paramEntry: return RecordClass::constant;
    case StateSpace::param:
    case StateSpace::paramFunc: {
      using Ref = ptx::Operand::Ref;
      const bool load = in.op == Opcode::ld && in.operands.size() > 1;
      const bool ofCall = load && (in.operands[1].ref == Ref::localVar || in.operands[1].ref == Ref::returnParam);
      return ofKernel && load && !ofCall ? RecordClass::constant : RecordClass::local;
    }
    default: return atomic ? RecordClass::globalAtomic : RecordClass::generic;
  }
}

}  // namespace

RecordClass recordClass(const Instruction& in, bool ofKernel) {
  switch (classify(in).kind) {
    case RawCounter::inst_fp_32: return RecordClass::fp32;
    case RawCounter::inst_fp_64: return RecordClass::fp64;
    case RawCounter::inst_fp_16: return RecordClass::fp16;
    case RawCounter::inst_integer: return RecordClass::integer;
    case RawCounter::inst_bit_convert: return RecordClass::bitConversion;
    case RawCounter::inst_control: return RecordClass::controlFlow;
    case RawCounter::inst_inter_thread: return RecordClass::interThread;
    case RawCounter::inst_compute_ld_st: return memoryClass(in, ofKernel);
    default: break;
  }
  const bool barrier = in.op == Opcode::bar || in.op == Opcode::barrier || in.op == Opcode::mbarrier ||
                       (in.op == Opcode::cp && in.has(Mod::mbarrier));
  return barrier ? RecordClass::barrier : RecordClass::miscellaneous;
}

}  // namespace sonde::softgpu::jit
