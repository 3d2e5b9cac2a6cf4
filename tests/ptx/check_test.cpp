// SPDX-License-Identifier: Apache-2.0
//
// What the checker accepts and what it says about the rest.
#include "ptx/check.h"

#include <gtest/gtest.h>

#include "ptx/check_rules.h"
#include "ptx/parser.h"

namespace sonde::ptx {
namespace {

std::string checkText(const std::string& text) {
  auto r = parse(text);
  for (const auto& d : r.diagnostics) ADD_FAILURE() << format(d);
  std::string s;
  for (const auto& d : check(r.module)) s += format(d, "") + "\n";
  return s;
}

// Line 9 is the instruction.
std::string one(const std::string& instruction, const std::string& version = "9.0",
                const std::string& target = "sm_90a") {
  return checkText(".version " + version + "\n.target " + target + R"(
.address_size 64
.global .u32 gv; .shared .u32 sv; .const .u32 cv;
.func (.param .b32 r) fn(.param .b32 a) { ret; }
.visible .entry k(.param .u64 p, .param .u32 n) {
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .s32 %s<9>; .reg .f16 %hf<9>;
.local .u32 lv; .param .b32 pv; .param .b64 pw;
)" + instruction + "\nL1: ret;\n}\n");
}

TEST(Check, AcceptsWhatItShould) {
  for (const char* s : {
           "add.s32 %r1, %s2, -5;",
           "add.f32 %f1, %r2, 1.0;",
           "mul.wide.u16 %r1, %h1, 3;",
           "mad.wide.s32 %rd1, %r1, %r2, %rd3;",
           "mov.b32 %r1, %f1;",
           "mov.u32 %r1, %tid.x;",
           "mov.u64 %rd1, gv;",
           "mov.u64 %rd1, fn;",
           "mov.b64 {%r1, _}, %rd1;",
           "mov.pred %p1, 1;",
           "mov.b32 %r1, {%h1, %h2};",
           "ld.global.u8 %rd1, [%rd2];",
           "ld.u32 %r1, [gv];",
           "ld.shared.v2.u32 {%r1, _}, [sv];",
           "st.global.f32 [%rd1], %r1;",
           "st.global.v2.b32 [%rd1], {%f1, 0f00000000};",
           "cvt.rn.f32.s32 %f1, %r1;",
           "cvt.u16.u32 %r1, %r2;",
           "cvt.rn.f16x2.f32 %r1, %f1, %f2;",
           "cvt.f32.f16 %f1, %h1;",
           "setp.ltu.ftz.f32 %p1|%p2, %f1, %f2;",
           "setp.eq.and.b64 %p1, %rd1, 0, !%p2;",
           "selp.b32 %r1, 1, 2, !%p1;",
           "shfl.sync.bfly.b32 %f1|%p1, %f2, 1, 31, -1;",
           "vote.sync.ballot.b32 %r1, !%p1, -1;",
           "bar.red.popc.u32 %r1, 0, %p1;",
           "atom.global.add.u32 _, [%rd1], 1;",
           "atom.cas.b64 %rd1, [%rd2], 0, %rd3;",
           "red.shared.add.f32 [sv], %f1;",
           "call (pv), fn, (pv);",
           "call (%r1), fn, (5);",
           "bra.uni L1;",
           "bar.sync 0, 64;",
           "fence.acq_rel.gpu;",
           "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
           "{%f1,%f2,%f3,%f4};",
           "wgmma.fence.sync.aligned;",
           "vadd.s32.u32.u32.sat %r1, %r2.b1, %r3.h0;",
           "dp4a.u32.s32 %r1, %r2, %r3, %r4;",
       })
    EXPECT_EQ(one(s), "") << s;
}

struct Case {
  const char* instruction;
  const char* message;  // "column: text", the line being 9
};

TEST(Check, SaysWhatIsWrong) {
  const Case cases[] = {
      {"add.s32 %r1, %r2;", "1: 'add.s32' expects 3 operands, found 2"},
      {"add.s32 %r1, %r2, 3, 4;", "22: 'add.s32' expects 3 operands, found 4"},
      {"ret 1;", "1: 'ret' expects no operands, found 1"},
      {"add.s32 %r1, %r2, %rd1;", "19: 'add.s32' expects a value of type .s32, found '%rd1' of type .b64"},
      {"add.u32 %f1, %r1, %r2;", "9: 'add.u32' expects a register of type .u32, found '%f1' of type .f32"},
      {"add.s32 5, %r1, %r2;", "9: 'add.s32' expects a register of type .s32, found the integer 5"},
      {"add.f32 %f1, %f2, 1;",
       "19: 'add.f32' expects a floating-point value of type .f32, found the integer 1; write it with a decimal point "
       "or as 0f…"},
      {"add.s32 %r1, %r2, 1.5;", "19: 'add.s32' expects a value of type .s32, found a floating-point number"},
      {"add.u32 %r1, %tid.x, 1;", "14: 'add.u32' expects a register or a number, found '%tid.x'"},
      {"add.s8 %r1, %r1, %r1;",
       "1: unexpected type '.s8' in 'add.s8'; expected one of '.u32', '.s32', '.u64', '.s64', '.u16', '.s16', "
       "'.u16x2', "
       "'.s16x2', '.f32', '.f64', '.f16', '.f16x2', '.bf16', '.bf16x2', '.f32x2'"},
      {"add.rn.s32 %r1, %r1, %r1;", "1: '.rn' cannot be used in 'add.rn.s32'"},
      {"mul.s32 %r1, %r1, %r1;", "1: 'mul.s32' needs one of '.wide', '.lo', '.hi'"},
      {"mul.lo.hi.s32 %r1, %r1, %r1;", "1: 'mul.lo.hi.s32' has more than one of '.lo', '.hi'"},
      {"mul.wide.s32 %r1, %r1, %r1;", "14: 'mul.wide.s32' expects a register of type .s64, found '%r1' of type .b32"},
      {"sin.f32 %f1, %f2;", "1: 'sin.f32' needs '.approx'"},
      {"div.f32 %f1, %f1, %f2;", "1: 'div.f32' needs one of '.approx', '.full', '.rn', '.rz', '.rm', '.rp'"},
      {"setp.lt.b32 %p1, %r1, %r2;", "1: 'setp.lt.b32' needs one of '.eq', '.ne'"},
      {"setp.lt.and.s32 %p1, %r1, %r2;", "1: 'setp.lt.and.s32' needs a predicate as third operand"},
      {"setp.lt.s32 %r1, %r1, %r2;", "13: 'setp.lt.s32' expects a predicate register, found '%r1' of type .b32"},
      {"selp.f32 %f1, %f2, %f3, %r1;", "25: 'selp.f32' expects a predicate register, found '%r1' of type .b32"},
      {"mov.u32 %r1, %f1;", "14: 'mov.u32' expects a value of type .u32, found '%f1' of type .f32"},
      {"mov.u32 %r1, %tid;", "14: 'mov.u32' expects a value of type .u32, found '%tid'"},
      {"mov.u64 %rd1, {%r1, %r2};", "15: 'mov.u64' cannot take a vector apart; use .b32, .b64 or .b128"},
      {"mov.b64 %rd1, {%r1, %r2, %r3};", "15: 'mov.b64' expects a vector of 2 or 4 elements, found 3"},
      {"ld.global.u64 %r1, [%rd1];",
       "15: 'ld.global.u64' expects a register of type .u64 or wider, found '%r1' of type .b32"},
      {"ld.global.u32 %r1, %rd1;", "20: 'ld.global.u32' expects an address in brackets, found '%rd1' of type .b64"},
      {"ld.global.u32 %r1, [sv];", "20: 'ld.global.u32' accesses .global, but 'sv' is in .shared"},
      {"ld.shared.nc.u32 %r1, [%r1];", "1: '.nc' is for .global loads only, in 'ld.shared.nc.u32'"},
      {"ld.relaxed.global.u32 %r1, [%rd1];",
       "1: 'ld.relaxed.global.u32' needs a scope: one of '.cta', '.cluster', '.gpu', '.sys'"},
      {"ld.shared.v4.u32 {%r1,%r2}, [%r3];", "18: 'ld.shared.v4.u32' expects a vector of 4 elements, found 2"},
      {"ld.shared.v4.b64 {%rd1,%rd2,%rd3,%rd4}, [%r3];",
       "1: 'ld.shared.v4.b64' moves 256 bits, which only .global accesses can"},
      {"st.const.u32 [cv], %r1;", "1: 'st' cannot access .const"},
      {"st.param.b32 [n], %r1;", "14: 'st.param.b32' writes to a parameter of a kernel, which is read-only"},
      {"cvt.f32.s32 %f1, %r1;", "1: 'cvt.f32.s32' needs one of '.rn', '.rz', '.rm', '.rp'"},
      {"cvt.s32.f32 %r1, %f1;", "1: 'cvt.s32.f32' needs one of '.rni', '.rzi', '.rmi', '.rpi'"},
      {"cvt.rn.f64.f32 %d1, %f1;", "1: this conversion is exact and takes no rounding modifier: 'cvt.rn.f64.f32'"},
      {"cvt.s32 %r1, %r1;", "1: 'cvt.s32' needs two types, of the result and of the operand"},
      {"atom.min.f32 %f1, [%rd1], %f2;", "1: unexpected type '.f32' in 'atom.min.f32'"},
      {"atom.u32 %r1, [%rd1], %r2;",
       "1: 'atom.u32' needs an operation: one of '.add', '.min', '.max', '.inc', '.dec', '.and', '.or', '.xor', "
       "'.exch', '.cas'"},
      {"atom.local.add.u32 %r1, [%rd1], 1;", "1: 'atom' cannot access .local"},
      {"vote.ballot.b32 %r1, %p1;",
       "1: 'vote.ballot.b32' without '.sync' is gone from sm_70 on (PTX ISA 6.4 and later); use 'vote.sync'"},
      {"bar.sync 16;", "10: barrier 16 does not exist; there are 0 to 15"},
      {"fence.sc;", "1: 'fence.sc' needs a scope: one of '.cta', '.cluster', '.gpu', '.sys'"},
      {"call (pv), k, (pv);", "12: 'k' is a kernel and cannot be called"},
      {"call (pv), fn;", "1: this call has 0 arguments; the callee has 1"},
      {"call (pv), fn, (pw);", "17: 'pw' has 8 bytes; the callee expects 4"},
      {"call (%rd1), fn, (pv);", "7: 'call' expects a register of type .b32, found '%rd1' of type .b64"},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2}, [%r5];",
       "42: 'ldmatrix.sync.aligned.m8n8.x4.shared.b16' expects a vector of 4 registers, found a vector of 2"},
      {"cp.async.cg.shared.global [%r1], [%rd1], 8;", "42: 'cp.async.cg.shared.global' copies 16 bytes, found 8"},
  };
  for (const auto& c : cases) {
    std::string expected = c.message;
    expected.insert(expected.find(':') + 1, " error:");
    EXPECT_EQ(one(c.instruction), ":9:" + expected + "\n") << c.instruction;
  }
}

TEST(Check, FeaturesNeedTheirVersionAndTarget) {
  EXPECT_EQ(one("redux.sync.add.u32 %r1, %r2, -1;", "7.0", "sm_75"),
            ":9:1: error: 'redux.sync.add.u32' needs sm_80 or later; .target says sm_75\n");
  EXPECT_EQ(one("redux.sync.add.u32 %r1, %r2, -1;", "6.5", "sm_80"),
            ":9:1: error: 'redux.sync.add.u32' needs PTX ISA version 7.0 or later; .version says 6.5\n");
  EXPECT_EQ(one("wgmma.fence.sync.aligned;", "8.0", "sm_90"),
            ":9:1: error: 'wgmma.fence.sync.aligned' exists on sm_90a only; .target says sm_90\n");
  EXPECT_EQ(one("mov.u32 %r1, %cluster_ctarank;", "8.0", "sm_80"),
            ":9:14: error: '%cluster_ctarank' needs sm_90 or later; .target says sm_80\n");
  EXPECT_EQ(one("fma.rn.bf16 %h1, %h2, %h3, %h4;", "7.0", "sm_75"),
            ":9:1: error: 'fma.rn.bf16' needs sm_80 or later; .target says sm_75\n");
  EXPECT_EQ(one("shfl.down.b32 %r1, %r2, 1, 31;", "6.0", "sm_60"), "");
  EXPECT_EQ(one("ld.global.v4.b64 {%rd1,%rd2,%rd3,%rd4}, [%rd5];"),
            ":9:1: error: a 256-bit ld needs sm_100 or later; .target says sm_90a\n");
  EXPECT_EQ(one("ld.global.v4.b64 {%rd1,%rd2,%rd3,%rd4}, [%rd5];", "8.8", "sm_100"), "");
}

TEST(Check, Functions) {
  EXPECT_EQ(
      checkText(".version 8.0\n.target sm_80\n.entry k(.param .align 4 .b8 big[5000]) { ret; }\n"),
      ":3:8: error: the parameters of 'k' take 5000 bytes; at most 4352 are allowed for this .version and .target\n");
  EXPECT_EQ(checkText(".version 8.1\n.target sm_80\n.entry k(.param .align 4 .b8 big[5000]) { ret; }\n"), "");
  EXPECT_EQ(checkText(".version 7.8\n.target sm_80\n.entry k() .reqnctapercluster 2 { ret; }\n"),
            ":3:8: error: '.reqnctapercluster' needs sm_90 or later; .target says sm_80\n");
}

TEST(Check, EveryOpcodeHasARule) {
  for (uint16_t i = 1; i < static_cast<uint16_t>(Opcode::count_); ++i)
    EXPECT_FALSE(rulesOf(static_cast<Opcode>(i)).empty()) << name(static_cast<Opcode>(i));
}

}  // namespace
}  // namespace sonde::ptx
