// SPDX-License-Identifier: Apache-2.0
#include "ptx/defuse.h"

namespace sonde::ptx {

unsigned destinationCount(const Instruction& i) {
  if (i.operands.empty()) return 0;
  switch (i.op) {
    case Opcode::st:
    case Opcode::red:
    case Opcode::bra:
    case Opcode::brx:
    case Opcode::call:
    case Opcode::ret:
    case Opcode::exit:
    case Opcode::trap:
    case Opcode::brkpt:
    case Opcode::membar:
    case Opcode::fence:
    case Opcode::nanosleep:
    case Opcode::prefetch:
    case Opcode::prefetchu:
    case Opcode::pmevent:
    case Opcode::cp:
    case Opcode::griddepcontrol:
    case Opcode::sust:
    case Opcode::sured:
    case Opcode::stmatrix:
    case Opcode::discard:
    case Opcode::applypriority:
    case Opcode::stackrestore:
    case Opcode::setmaxnreg:
    case Opcode::tensormap: return 0;
    case Opcode::bar:
    case Opcode::barrier: return i.has(Mod::red) ? 1 : 0;
    case Opcode::mbarrier:
      return i.has(Mod::arrive) || i.has(Mod::arrive_drop) || i.has(Mod::test_wait) || i.has(Mod::try_wait) ||
                     i.has(Mod::pending_count)
                 ? (i.operands[0].kind == Operand::Kind::address ? 0 : 1)
                 : 0;
    case Opcode::wmma: return i.has(Mod::store) ? 0 : 1;
    case Opcode::wgmma: return i.has(Mod::mma_async) ? 1 : 0;
    case Opcode::multimem: return i.has(Mod::ld_reduce) ? 1 : 0;
    case Opcode::clusterlaunchcontrol: return i.has(Mod::query_cancel) ? 1 : 0;
    case Opcode::tcgen05: return i.has(Mod::ld) ? 1 : 0;
    default: return 1;
  }
}

bool readsDestination(const Instruction& i) { return i.op == Opcode::wgmma && i.has(Mod::mma_async); }

}  // namespace sonde::ptx
