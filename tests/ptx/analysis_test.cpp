// SPDX-License-Identifier: Apache-2.0
//
// Liveness and uniformity on small functions worked out by hand.
#include <gtest/gtest.h>

#include "ptx/defuse.h"
#include "ptx/liveness.h"
#include "ptx/parser.h"
#include "ptx/uniformity.h"

namespace sonde::ptx {
namespace {

struct Analysed {
  Module module;
  const Function* f = nullptr;
  std::unique_ptr<Cfg> cfg;
  std::unique_ptr<Liveness> liveness;
  std::unique_ptr<Uniformity> uniformity;

  explicit Analysed(const std::string& body) {
    auto r = parse(
        ".version 8.0\n.target sm_80\n.address_size 64\n.const .u32 c[4];\n.entry k(.param .u64 ptr, .param .u32 n) "
        "{\n" +
        body + "\n}");
    for (const auto& d : r.diagnostics) ADD_FAILURE() << format(d);
    module = std::move(r.module);
    f = &module.functions.at(0);
    cfg = std::make_unique<Cfg>(*f);
    liveness = std::make_unique<Liveness>(*f, *cfg);
    uniformity = std::make_unique<Uniformity>(module, *f, *cfg, *liveness);
  }
  RegId reg(std::string_view name) const {
    for (RegId r = 0; r < f->registers.size(); ++r)
      if (f->registers[r].name == name) return r;
    ADD_FAILURE() << "no register " << name;
    return 0;
  }
  bool uniform(std::string_view name) const { return uniformity->uniform(reg(name)); }
};

TEST(Liveness, StraightLine) {
  // a, b and the 64-bit c live together before the last two: 1 + 1 + 2 words
  const Analysed a(R"(.reg .b32 a, b; .reg .b64 c, d; .reg .pred p;
    mov.b32 a, 1; mov.b32 b, 2; cvt.u64.u32 c, a; add.s32 b, b, a; st.global.u32 [c], b; ret;)");
  EXPECT_EQ(a.liveness->maxLiveWords(), 4u);
  EXPECT_FALSE(a.liveness->liveIn(0).test(a.reg("a")));
}

TEST(Liveness, LoopCarried) {
  const Analysed a(R"(.reg .b32 i, sum; .reg .pred p; .reg .b64 out;
    ld.param.u64 out, [ptr]; mov.b32 i, 0; mov.b32 sum, 0;
    L: add.s32 sum, sum, i; add.s32 i, i, 1; setp.lt.s32 p, i, 10; @p bra L;
    st.global.u32 [out], sum; ret;)");
  EXPECT_TRUE(a.liveness->liveIn(1).test(a.reg("i")));
  EXPECT_TRUE(a.liveness->liveOut(1).test(a.reg("out")));
  EXPECT_FALSE(a.liveness->liveIn(2).test(a.reg("i")));
  EXPECT_EQ(a.liveness->maxLiveWords(), 4u);
}

TEST(Liveness, GuardedWriteKeepsTheOldValue) {
  const Analysed a(R"(.reg .b32 x; .reg .pred p; .reg .b64 q;
    mov.b32 x, 1; bra N; N: @p mov.b32 x, 2; st.global.u32 [q], x; ret;)");
  EXPECT_TRUE(a.liveness->liveIn(1).test(a.reg("x")));
}

TEST(Defuse, VectorsPairsAndStores) {
  const Analysed a(R"(.reg .b32 r<6>; .reg .pred p, q; .reg .b64 a;
    ld.global.v2.u32 {r0, r1}, [a];
    shfl.sync.up.b32 r2|p, r3, 1, 0, -1;
    @q st.global.u32 [a], r4;)");
  auto defs = [&](size_t i) {
    std::vector<RegId> v;
    forEachDef(a.f->body[i], [&](RegId r) { v.push_back(r); });
    return v;
  };
  auto uses = [&](size_t i) {
    std::vector<RegId> v;
    forEachUse(a.f->body[i], [&](RegId r) { v.push_back(r); });
    return v;
  };
  EXPECT_EQ(defs(0), (std::vector<RegId>{0, 1}));
  EXPECT_EQ(uses(0), std::vector<RegId>{a.reg("a")});
  EXPECT_EQ(defs(1), (std::vector<RegId>{2, a.reg("p")}));
  EXPECT_EQ(uses(1), std::vector<RegId>{3});
  EXPECT_TRUE(defs(2).empty());
  EXPECT_EQ(uses(2), (std::vector<RegId>{a.reg("q"), a.reg("a"), 4}));
}

TEST(Uniformity, SourcesAndArithmetic) {
  const Analysed a(R"(.reg .b32 t, n1, b, s, k, v; .reg .b64 base, addr;
    mov.u32 t, %tid.x; ld.param.u32 n1, [n]; mov.u32 b, %ctaid.x;
    mad.lo.s32 s, b, n1, 4; add.s32 v, t, s;
    ld.const.u32 k, [c+4];
    ld.param.u64 base, [ptr]; mul.wide.u32 addr, v, 4; ret;)");
  EXPECT_FALSE(a.uniform("t"));
  EXPECT_TRUE(a.uniform("n1"));
  EXPECT_TRUE(a.uniform("s"));
  EXPECT_TRUE(a.uniform("k"));
  EXPECT_FALSE(a.uniform("v"));
  EXPECT_FALSE(a.uniform("addr"));
  EXPECT_TRUE(a.uniform("base"));
}

TEST(Uniformity, DivergentBranchMakesJoinedValuesVary) {
  const Analysed a(R"(.reg .b32 t, x, y, z; .reg .pred p, u; .reg .b64 q;
    mov.u32 t, %laneid; setp.lt.u32 p, t, 7; mov.b32 x, 0; mov.b32 z, 5;
    @p bra J;
    mov.b32 x, 1; mov.b32 y, 3; st.global.u32 [q], y;
    J: setp.eq.u32 u, z, 5; @u bra E; st.global.u32 [q], x;
    E: ret;)");
  EXPECT_FALSE(a.uniformity->uniformEnd(0));
  EXPECT_FALSE(a.uniform("x"));
  EXPECT_TRUE(a.uniform("y"));  // never read where the ways join
  EXPECT_TRUE(a.uniform("z"));
  EXPECT_TRUE(a.uniformity->uniformEnd(2));
}

TEST(Uniformity, UniformBranchKeepsUniformValues) {
  const Analysed a(R"(.reg .b32 x, m; .reg .pred p; .reg .b64 q;
    ld.param.u32 m, [n]; setp.lt.u32 p, m, 7; mov.b32 x, 0; @p bra J; mov.b32 x, 1; J: st.global.u32 [q], x; ret;)");
  EXPECT_TRUE(a.uniform("x"));
  EXPECT_TRUE(a.uniformity->uniformEnd(0));
}

TEST(Uniformity, LoopLeftAtDifferentTimes) {
  // The counter is uniform inside the loop but lanes leave with different counts.
  const Analysed a(R"(.reg .b32 i, t; .reg .pred p; .reg .b64 q;
    mov.u32 t, %tid.x; mov.b32 i, 0;
    L: add.s32 i, i, 1; setp.lt.u32 p, i, t; @p bra L;
    st.global.u32 [q], i; ret;)");
  EXPECT_FALSE(a.uniform("i"));
  EXPECT_FALSE(a.uniformity->uniformEnd(1));
}

TEST(Uniformity, VotesAndAtomics) {
  const Analysed a(R"(.reg .b32 m, o, t; .reg .pred p; .reg .b64 q;
    mov.u32 t, %tid.x; setp.lt.u32 p, t, 3;
    vote.sync.ballot.b32 m, p, -1; atom.global.add.u32 o, [q], 1; ret;)");
  EXPECT_TRUE(a.uniform("m"));
  EXPECT_FALSE(a.uniform("o"));
}

}  // namespace
}  // namespace sonde::ptx
