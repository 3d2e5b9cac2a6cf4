// SPDX-License-Identifier: Apache-2.0
#include "ptx/cfg.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ptx/parser.h"

namespace sonde::ptx {
namespace {

Module parsed(const std::string& body) {
  auto r = parse(".version 8.0\n.target sm_80\n.address_size 64\n" + body);
  for (const auto& d : r.diagnostics) ADD_FAILURE() << format(d);
  return std::move(r.module);
}

Cfg cfgOf(const std::string& body) {
  return Cfg(parsed(".entry k() { .reg .pred p, q; .reg .b32 r;\n" + body + "\n}").functions.at(0));
}

using Ids = std::vector<uint32_t>;

TEST(Cfg, Diamond) {
  //  0: @p bra; 1: then; 2: else; 3: join
  const Cfg c = cfgOf("@p bra ELSE; mov.b32 r, 1; bra JOIN; ELSE: mov.b32 r, 2; JOIN: ret;");
  ASSERT_EQ(c.blocks().size(), 5u);  // and the empty block behind the end
  EXPECT_EQ(c.blocks()[0].successors, (Ids{2, 1}));
  EXPECT_EQ(c.blocks()[1].successors, Ids{3});
  EXPECT_EQ(c.blocks()[3].predecessors, (Ids{1, 2}));
  EXPECT_TRUE(c.blocks()[3].leaves);
  EXPECT_EQ(c.dominator(3), 0u);
  EXPECT_EQ(c.dominator(0), kNoId);
  EXPECT_EQ(c.postDominator(0), 3u);
  EXPECT_EQ(c.postDominator(1), 3u);
  EXPECT_EQ(c.postDominator(3), kNoId);
  EXPECT_TRUE(c.postDominates(3, 0));
  EXPECT_FALSE(c.postDominates(1, 0));
  EXPECT_FALSE(c.reachable(4));
  EXPECT_EQ(c.order().front(), 0u);
  EXPECT_EQ(c.order().back(), 3u);
}

TEST(Cfg, GuardedReturnGoesOn) {
  const Cfg c = cfgOf("@p ret; mov.b32 r, 1; exit;");
  EXPECT_TRUE(c.blocks()[0].leaves);
  EXPECT_EQ(c.blocks()[0].successors, Ids{1});
  EXPECT_EQ(c.postDominator(0), kNoId);
}

TEST(Cfg, CallsDoNotEndBlocks) {
  const Module m = parsed(".func f() { ret; }\n.entry k() { .reg .b32 r; mov.b32 r, 1; call f; mov.b32 r, 2; ret; }");
  EXPECT_EQ(Cfg(m.functions[1]).blocks().size(), 2u);
}

TEST(Cfg, NestedLoops) {
  // 0 entry, 1 outer header, 2 inner (header and latch), 3 outer latch, 4 exit
  const Cfg c = cfgOf(R"(
    mov.b32 r, 0;
    OUTER: mov.b32 r, 1;
    INNER: add.s32 r, r, 1; @p bra INNER;
    @q bra OUTER;
    ret;)");
  ASSERT_EQ(c.loops().size(), 2u);
  EXPECT_EQ(c.loops()[0].header, 1u);
  EXPECT_EQ(c.loops()[0].blocks, (Ids{1, 2, 3}));
  EXPECT_EQ(c.loops()[0].backEdgesFrom, Ids{3});
  EXPECT_EQ(c.loops()[1].header, 2u);
  EXPECT_EQ(c.loops()[1].parent, 0u);
  EXPECT_EQ(c.loops()[1].depth, 2u);
  EXPECT_EQ(c.loopOf(2), 1u);
  EXPECT_EQ(c.loopOf(3), 0u);
  EXPECT_EQ(c.loopOf(4), kNoId);
  EXPECT_TRUE(c.isBackEdge(3, 1));
  EXPECT_FALSE(c.isBackEdge(1, 2));
  EXPECT_FALSE(c.irreducible());
  EXPECT_EQ(c.order(), (Ids{0, 1, 2, 3, 4}));
}

TEST(Cfg, LoopBlocksStandTogether) {
  // A break in the middle jumps to code that the text puts between the loop's blocks.
  const Cfg c = cfgOf(R"(
    HEAD: @p bra OUT;
    @q bra LATCH;
    bra LATCH2;
    OUT: ret;
    LATCH: bra HEAD;
    LATCH2: bra HEAD;)");
  ASSERT_EQ(c.loops().size(), 1u);
  const auto& loop = c.loops()[0];
  EXPECT_EQ(loop.blocks.size(), 5u);
  uint32_t last = 0;
  for (const uint32_t b : loop.blocks) last = std::max(last, c.position(b));
  EXPECT_EQ(last, 4u);
  EXPECT_EQ(c.position(3), 5u);
}

TEST(Cfg, IrreducibleIsNoticed) {
  EXPECT_TRUE(cfgOf("@p bra B; A: add.s32 r, r, 1; B: add.s32 r, r, 2; @q bra A; ret;").irreducible());
}

TEST(Cfg, EndlessLoop) {
  const Cfg c = cfgOf("@p bra OUT; L: bra L; OUT: ret;");
  EXPECT_EQ(c.postDominator(1), kNoId);
  EXPECT_EQ(c.postDominator(0), 2u);  // lanes that leave pass it
}

TEST(Cfg, IndexedBranch) {
  const Cfg c = cfgOf("ts: .branchtargets A, B, A; brx.idx r, ts; A: exit; B: ret;");
  EXPECT_EQ(c.blocks()[0].successors, (Ids{1, 2}));
}

TEST(Cfg, EmptyBody) {
  const Cfg c = cfgOf("");
  ASSERT_EQ(c.blocks().size(), 1u);
  EXPECT_TRUE(c.blocks()[0].leaves);
  EXPECT_EQ(c.order(), Ids{0});
}

TEST(CallGraph, DirectIndirectRecursive) {
  const Module m = parsed(R"(
    .func (.param .b32 r) leaf(.param .b32 x) { ret; }
    .func (.param .b32 r) other(.param .b32 x) { ret; }
    .func even();
    .func odd() { call even; ret; }
    .func even() { call odd; ret; }
    .global .u64 table[1] = {leaf};
    .entry k() {
      .reg .b64 rd; .param .b32 a, b;
      P: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (a), rd, (b), P;
      call odd;
      ret;
    })");
  const CallGraph g = callGraph(m);
  auto id = [&](std::string_view name) { return static_cast<uint32_t>(m.findFunction(name) - m.functions.data()); };
  Ids expected{id("leaf"), id("odd")};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(g.callees[id("k")], expected);  // `other` never has its address taken
  EXPECT_TRUE(g.recursive[id("odd")]);
  EXPECT_TRUE(g.recursive[id("even")]);
  EXPECT_FALSE(g.recursive[id("k")]);
  EXPECT_EQ(g.callers[id("leaf")], Ids{id("k")});
  EXPECT_EQ(g.bottomUp.back(), id("k"));
}

}  // namespace
}  // namespace sonde::ptx
