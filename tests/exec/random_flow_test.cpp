// SPDX-License-Identifier: Apache-2.0
//
// Random control flow: functions of random blocks with branches in every
// direction (irreducible loops included), predicated instructions and early
// exits, run by the engine and by a thread-at-a-time interpreter that knows
// nothing of warps.
#include <random>
#include <sstream>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

constexpr unsigned kRegisters = 7;  // 0 to 3 start different in each thread, 4 to 6 equal
constexpr unsigned kPredicates = 3;
constexpr uint32_t kPrologue = 17;  // instructions before the first block
constexpr uint32_t kFuel = 12;      // backward branches that a thread may take

struct Op {
  enum Kind { add, mul, xorOp, shr, setLess, setBit } kind;
  unsigned to, a, b;
  uint32_t immediate;
  int guard = -1;
  bool negated = false;
};
struct RandomBlock {
  std::vector<Op> ops;
  enum End { jump, branch, guardedExit, fallThrough } end;
  unsigned target = 0;
  int guard = 0;
  bool negated = false;
};

std::vector<RandomBlock> randomProgram(unsigned seed, unsigned size = 0) {
  std::mt19937 random(seed);
  auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::vector<RandomBlock> blocks(size ? size : 4 + pick(10));
  for (auto& block : blocks) {
    for (unsigned n = 1 + pick(4); n > 0; --n) {
      Op op;
      op.kind = static_cast<Op::Kind>(pick(6));
      // Half of the instructions work on the uniform registers alone.
      const unsigned low = pick(2) ? 4 : 0, range = low ? 3 : kRegisters;
      op.a = low + pick(range);
      op.b = low + pick(range);
      op.to = op.kind >= Op::setLess ? pick(kPredicates) : low + pick(range);
      op.immediate = pick(32);
      if (pick(4) == 0) {
        op.guard = static_cast<int>(pick(kPredicates));
        op.negated = pick(2);
      }
      block.ops.push_back(op);
    }
    const unsigned kind = pick(10);
    block.end = kind < 2   ? RandomBlock::jump
                : kind < 7 ? RandomBlock::branch
                : kind < 8 ? RandomBlock::guardedExit
                           : RandomBlock::fallThrough;
    block.target = pick(static_cast<unsigned>(blocks.size()) + 1);
    block.guard = static_cast<int>(pick(kPredicates));
    block.negated = pick(2);
  }
  return blocks;
}

// `first`: of each block, and of the end, the number of its first instruction.
std::string toPtx(const std::vector<RandomBlock>& blocks, std::vector<uint32_t>& first) {
  std::ostringstream out;
  uint32_t next = kPrologue;
  out << ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
         "  .reg .pred %p<6>;\n  .reg .b32 %r<20>;\n  .reg .b64 %rd<4>;\n"
         "  ld.param.u64 %rd1, [out];\n  mov.u32 %r10, %tid.x;\n  mov.u32 %r11, %ctaid.x;\n"
         "  mad.lo.u32 %r12, %r11, 64, %r10;\n  mov.u32 %r0, %r10;\n  mul.lo.u32 %r1, %r10, 7;\n  xor.b32 %r2, %r10, "
         "21;\n"
         "  shr.u32 %r3, %r10, 2;\n  mov.u32 %r4, %r11;\n  add.u32 %r5, %r11, 3;\n  mov.u32 %r6, 9;\n  mov.u32 %r13, "
         "0;\n"
         "  setp.lt.u32 %p0, %r10, 20;\n  setp.lt.u32 %p1, %r11, 1;\n  setp.eq.u32 %p2, %r6, 9;\n"
         "  mul.wide.u32 %rd2, %r12, 4;\n  add.u64 %rd3, %rd1, %rd2;\n";
  for (size_t i = 0; i < blocks.size(); ++i) {
    out << "$B" << i << ":\n";
    first.push_back(next);
    for (const Op& op : blocks[i].ops) {
      ++next;
      out << "  ";
      if (op.guard >= 0) out << "@" << (op.negated ? "!" : "") << "%p" << op.guard << " ";
      switch (op.kind) {
        case Op::add: out << "add.u32 %r" << op.to << ", %r" << op.a << ", %r" << op.b << ";\n"; break;
        case Op::mul: out << "mad.lo.u32 %r" << op.to << ", %r" << op.a << ", 5, %r" << op.b << ";\n"; break;
        case Op::xorOp: out << "xor.b32 %r" << op.to << ", %r" << op.a << ", " << op.immediate << ";\n"; break;
        case Op::shr: out << "shr.u32 %r" << op.to << ", %r" << op.a << ", " << op.immediate % 8 << ";\n"; break;
        case Op::setLess: out << "setp.lt.u32 %p" << op.to << ", %r" << op.a << ", %r" << op.b << ";\n"; break;
        case Op::setBit: out << "setp.gt.u32 %p" << op.to << ", %r" << op.a << ", " << op.immediate << ";\n"; break;
      }
    }
    const RandomBlock& b = blocks[i];
    const std::string guard = std::string("@") + (b.negated ? "!" : "") + "%p" + std::to_string(b.guard) + " ";
    const bool backward = b.target <= i;
    if (b.end == RandomBlock::guardedExit) {
      out << "  " << guard << "bra $store;\n";
      ++next;
    } else if (b.end != RandomBlock::fallThrough) {
      if (backward) {  // spends fuel, whether taken or not
        out << "  add.u32 %r13, %r13, 1;\n  setp.gt.u32 %p4, %r13, " << kFuel << ";\n  @%p4 bra $store;\n";
        next += 3;
      }
      ++next;
      out << "  " << (b.end == RandomBlock::branch ? guard : "") << "bra $B" << b.target << ";\n";
    }
  }
  first.push_back(next);
  out << "$B" << blocks.size() << ":\n$store:\n";
  for (unsigned r = 0; r < kRegisters; ++r) out << "  mad.lo.u32 %r0, %r0, 31, %r" << r << ";\n";
  out << "  st.global.u32 [%rd3], %r0;\n  ret;\n}\n";
  return out.str();
}

// What the threads do with each instruction.
struct Tally {
  uint64_t threads = 0, on = 0;
};

// One thread alone. `tally`: by number of the instruction.
uint32_t interpret(const std::vector<RandomBlock>& blocks, const std::vector<uint32_t>& first, uint32_t tid,
                   uint32_t cta, std::vector<Tally>& tally) {
  uint32_t r[kRegisters] = {tid, tid * 7, tid ^ 21, tid >> 2, cta, cta + 3, 9};
  bool p[kPredicates] = {tid < 20, cta < 1, true};
  uint32_t fuel = 0;
  auto did = [&](uint32_t instruction, bool on = true) {
    if (tally.size() <= instruction) tally.resize(instruction + 1);
    ++tally[instruction].threads;
    tally[instruction].on += on;
  };
  for (uint32_t k = 0; k < kPrologue; ++k) did(k);
  for (size_t i = 0; i < blocks.size();) {
    const RandomBlock& b = blocks[i];
    uint32_t at = first[i];
    for (const Op& op : b.ops) {
      const bool on = op.guard < 0 || p[op.guard] != op.negated;
      did(at++, on);
      if (!on) continue;
      switch (op.kind) {
        case Op::add: r[op.to] = r[op.a] + r[op.b]; break;
        case Op::mul: r[op.to] = r[op.a] * 5 + r[op.b]; break;
        case Op::xorOp: r[op.to] = r[op.a] ^ op.immediate; break;
        case Op::shr: r[op.to] = r[op.a] >> (op.immediate % 8); break;
        case Op::setLess: p[op.to] = r[op.a] < r[op.b]; break;
        case Op::setBit: p[op.to] = r[op.a] > op.immediate; break;
      }
    }
    const bool taken = p[b.guard] != b.negated;
    if (b.end == RandomBlock::guardedExit) {
      did(at, taken);
      if (taken) break;
      ++i;
    } else if (b.end == RandomBlock::fallThrough) {
      ++i;
    } else {
      if (b.target <= i) {
        const bool empty = ++fuel > kFuel;
        did(at++);
        did(at++);
        did(at++, empty);
        if (empty) break;
      }
      const bool goes = b.end == RandomBlock::jump || taken;
      did(at, goes);
      i = goes ? b.target : i + 1;
    }
  }
  for (unsigned k = 0; k < kRegisters; ++k) r[0] = r[0] * 31 + r[k];
  for (uint32_t k = 0; k < kRegisters + 2; ++k) did(first.back() + k);
  return r[0];
}

// Threads do with each instruction what they would alone; how many of them do it together is bounded.
void expectCounts(const Kernels& k, const std::vector<Tally>& tally) {
  std::vector<const InstructionCount*> counts(tally.size());
  for (const InstructionCount& c : k.instructions) {
    ASSERT_LT(c.index, tally.size());
    counts[c.index] = &c;
  }
  for (size_t i = 0; i < tally.size(); ++i) {
    SCOPED_TRACE("instruction " + std::to_string(i));
    ASSERT_EQ(counts[i] != nullptr, tally[i].threads != 0);
    if (!counts[i]) continue;
    EXPECT_EQ(counts[i]->threads, tally[i].threads);
    EXPECT_EQ(counts[i]->onThreads, tally[i].on);
    EXPECT_LE(counts[i]->executed, tally[i].threads);
    EXPECT_GE(counts[i]->executed * 32, tally[i].threads);
    // Each that diverges takes a thread of both sorts; so where all go one way none does.
    EXPECT_LE(counts[i]->diverged, counts[i]->executed);
    EXPECT_LE(counts[i]->diverged, std::min(tally[i].on, tally[i].threads - tally[i].on));
  }
}

class RandomFlow : public testing::TestWithParam<unsigned> {};

TEST_P(RandomFlow, EveryThreadGetsWhatItWouldAlone) {
  for (unsigned seed = GetParam() * 10; seed < GetParam() * 10 + 10; ++seed) {
    const auto blocks = randomProgram(seed);
    std::vector<uint32_t> first;
    const std::string ptx = toPtx(blocks, first);
    Kernels k(ptx);
    ASSERT_TRUE(k.program) << ptx;
    for (const bool sourceLevel : {false, true}) {
      for (CountLevel level : {CountLevel::off, CountLevel::instructions}) {
        if ((level != CountLevel::off || sourceLevel) && seed % 5 != 0) continue;
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + ptx);
        DeviceArray<uint32_t> out(128, 0xdeadbeef);
        k.level = level;
        k.sourceLevel = sourceLevel;
        k.instructions.clear();
        const LaunchOutcome r = k.run("k", {2}, {50}, out.address);  // the second warp is not full
        ASSERT_EQ(r.error, 0) << r.message;
        std::vector<Tally> tally;
        for (uint32_t cta = 0; cta < 2; ++cta)
          for (uint32_t tid = 0; tid < 50; ++tid)
            ASSERT_EQ(out[cta * 64 + tid], interpret(blocks, first, tid, cta, tally))
                << "block " << cta << " thread " << tid;
        if (sourceLevel) expectCounts(k, tally);
      }
    }
  }
}

// So many waiting places that their masks, and registers, are kept in memory.
TEST(LargeFlow, OfManyBlocks) {
  const auto blocks = randomProgram(7, 260);
  std::vector<uint32_t> first;
  Kernels k(toPtx(blocks, first));
  ASSERT_TRUE(k.program);
  for (const bool counted : {false, true}) {
    DeviceArray<uint32_t> out(128, 0xdeadbeef);
    k.level = counted ? CountLevel::instructions : CountLevel::off;
    k.sourceLevel = counted;
    k.instructions.clear();
    const LaunchOutcome r = k.run("k", {2}, {50}, out.address);
    ASSERT_EQ(r.error, 0) << r.message;
    std::vector<Tally> tally;
    for (uint32_t cta = 0; cta < 2; ++cta)
      for (uint32_t tid = 0; tid < 50; ++tid)
        ASSERT_EQ(out[cta * 64 + tid], interpret(blocks, first, tid, cta, tally))
            << "block " << cta << " thread " << tid;
    if (counted) expectCounts(k, tally);
  }
}

// Loops that wait for others, one behind the other, more than are kept in registers: lanes of a warp add to the same
// words by compare-and-swap.
TEST(LargeFlow, OfManyLoops) {
  constexpr unsigned kLoops = 150;
  std::ostringstream s;
  s << ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<4>;\n"
    << ".reg .b32 %r<" << 4 * kLoops + 8 << ">;\n.reg .pred %p<" << kLoops + 1 << ">;\n"
    << "ld.param.u64 %rd1, [p];\nmov.u32 %r2, %tid.x;\nadd.u32 %r1, %r2, 1;\nand.b32 %r2, %r2, 7;\n"
    << "mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n";
  for (unsigned i = 0; i < kLoops; ++i) {
    const unsigned a = 4 * i + 4;
    s << "ld.global.u32 %r" << a << ", [%rd3];\nL" << i << ":\nadd.u32 %r" << a + 1 << ", %r" << a << ", %r1;\n"
      << "atom.global.cas.b32 %r" << a + 2 << ", [%rd3], %r" << a << ", %r" << a + 1 << ";\nsetp.ne.u32 %p" << i
      << ", %r" << a + 2 << ", %r" << a << ";\nmov.u32 %r" << a << ", %r" << a + 2 << ";\n@%p" << i << " bra L" << i
      << ";\n";
  }
  s << "ret;\n}\n";
  Kernels k(s.str());
  ASSERT_TRUE(k.program);
  DeviceArray<uint32_t> out(8, 0);
  const LaunchOutcome r = k.run("k", {3}, {64}, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  // Threads t = w + 8 i, i below 8, add t + 1 each: 8 w + 8 + 224; three blocks, 150 times.
  for (unsigned w = 0; w < 8; ++w) EXPECT_EQ(out[w], 3 * kLoops * (8 * w + 8 + 224));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFlow, testing::Range(0u, 6u));

}  // namespace
}  // namespace sonde::softgpu::exec
