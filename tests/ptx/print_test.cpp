// SPDX-License-Identifier: Apache-2.0
//
// What the printer writes must mean what was read.
#include "ptx/print.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptx/parser.h"
#include "structure.h"

namespace sonde::ptx {
namespace {

const std::string kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

void roundTrip(const std::string& text, const std::string& name) {
  const auto first = parse(text);
  for (const auto& d : first.diagnostics) ADD_FAILURE() << format(d, name);
  const std::string printed = print(first.module);
  const auto second = parse(printed);
  for (const auto& d : second.diagnostics) ADD_FAILURE() << name << " printed: " << format(d) << "\n" << printed;
  EXPECT_EQ(ModuleComparison(first.module, second.module).difference(), "") << name << "\n" << printed;
  EXPECT_EQ(print(second.module), printed) << name;
}

TEST(Print, ExactText) {
  const auto r = parse(kHeader + R"(
.global .align 16 .b8 buf[64];
.const .f32 pi = 0f40490FDB;
.visible .entry k(.param .u64 .ptr .global .align 8 p, .param .u32 n) .maxntid 64 {
  .reg .pred %p<2>; .reg .b32 %r<3>, x; .reg .b64 %rd<2>;
  .loc 1 7 3
  ld.param.u64 %rd1, [p];
  @!%p1 bra DONE;
  { .reg .b32 x; mov.b32 x, -1; add.s32 %r1, x, %r2; }
  st.global.v2.b32 [%rd1+-8], {%r1, 0f3F800000};
DONE: ret;
}
.file 1 "k.cu"
)");
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(print(r.module), R"(.version 9.0
.target sm_90
.address_size 64
.file 1 "k.cu"

.visible .entry k(.param .u64 .ptr .global .align 8 p, .param .u32 n);
.global .align 16 .b8 buf[64];
.const .f32 pi = 0f40490FDB;

.visible .entry k(.param .u64 .ptr .global .align 8 p, .param .u32 n)
.maxntid 64, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<3>;
	.reg .b32 x;
	.reg .b64 %rd<2>;
	.reg .b32 x$1;
	.loc 1 7 3
	ld.param.u64 %rd1, [p];
	@!%p1 bra DONE;
	mov.b32 x$1, -1;
	add.s32 %r1, x$1, %r2;
	st.global.v2.b32 [%rd1+-8], {%r1, 0f3F800000};
DONE:
	ret;
}
)");
}

TEST(Print, OneInstruction) {
  const auto r =
      parse(kHeader + ".entry k() { .reg .b32 %r<3>; .reg .pred p, q; @p shfl.sync.idx.b32 %r1|q, %r2, 3, 31, -1; }");
  const auto& f = r.module.functions.at(0);
  EXPECT_EQ(print(f.body.at(0), f, r.module), "@p shfl.sync.idx.b32 %r1|q, %r2, 3, 31, -1;");
  EXPECT_EQ(print(f.body[0].operands[0], f, r.module), "%r1|q");
}

TEST(Print, InstructionPutTogetherByHand) {
  Module m;
  Function f;
  f.registers = {{"%r0", ScalarType::b32, 1}, {"%rd0", ScalarType::b64, 1}};
  Instruction i;
  i.op = Opcode::red;
  i.mods = {Mod::add};
  i.space = StateSpace::global;
  i.types = {ScalarType::u32};
  Operand address, one;
  address.kind = Operand::Kind::address;
  address.reg = 1;
  address.offset = 12;
  one.kind = Operand::Kind::integer;
  one.imm = 1;
  i.operands = {address, one};
  // State spaces stand before the operation, as assemblers want them.
  EXPECT_EQ(print(i, f, m), "red.global.add.u32 [%rd0+12], 1;");
}

TEST(Print, Variables) {
  roundTrip(kHeader + R"(
    .extern .shared .align 16 .b8 smem[];
    .global .align 4 .b32 a[2][3] = {{1, 2}, {4}};
    .global .align 8 .u64 p[3] = {a, generic(a)+8, 0};
    .global .v4 .f32 v[2] = {{1.0, 2.0, 3.0, 4.0}, {5.0}};
    .global .f64 d[] = {1, 0d4000000000000000};
    .global .align 1 .b8 bytes[8] = {0xFF(a), 0xFF00(generic(a)+4), 255};
    .weak .global .attribute(.managed) .align 4 .u32 w;
    .common .global .u32 c;
    .global .samplerref s = {addr_mode_0 = wrap, filter_mode = nearest};
    .global .s32 minus = -5;
    .extern .func (.param .b32 r) vprintf(.param .b64 x, .param .b64 y);
    .weak .func .attribute(.unified(1, 2)) (.reg .b32 out) f(.reg .b32 in) .noreturn { mov.b32 out, in; trap; }
    .global .u64 fp = f;
  )",
            "variables");
}

TEST(Print, CallsTablesAndLocations) {
  roundTrip(kHeader + R"(
    .visible .func (.param .b32 r) f(.param .b32 x) { ret; }
    .visible .func h() { ret; }
    .visible .func g();
    .alias g, h;
    .entry k() .reqntid 32, 2 .minnctapersm 2 .maxnreg 40 .pragma "nounroll";
    {
      .reg .b32 %r<4>; .reg .b64 %rd<2>; .param .b32 a, b;
      .loc 1 30 1
      call (a), f, (b);
      .loc 1 20 3, function_name $L__info_string0, inlined_at 1 30 1
      P: .callprototype (.param .b32 _) _ (.param .b32 _);
      call (a), %rd1, (b), P;
      .loc 1 10 5, function_name $L__info_string0+3, inlined_at 1 20 3
      T: .branchtargets X, Y;
      brx.idx %r1, T;
      X: .pragma "unroll 4"; mov.u32 %r1, %ctaid.y;
      Y: tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%rd1, {%r0, %r1}];
      C: .calltargets f;
      call (a), %rd1, (b), C;
      vadd.u32.u32.s32 %r1, %r2.b2, -%r3.h1;
      { { .reg .b32 q; L: mov.b32 q, WARP_SZ; bra L; } L: bra L; }
    }
    .file 1 "/src/a.cu", 123, 456
    .section .debug_str
    {
    $L__info_string0:
    .b8 95,90,0,95,89,0
    }
  )",
            "calls");
}

TEST(Print, EverySeedOfTheFuzzer) {
  size_t n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SONDE_PTX_SEEDS)) {
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    roundTrip(text.str(), entry.path().filename().string());
    ++n;
  }
  EXPECT_GE(n, 10u);
}

}  // namespace
}  // namespace sonde::ptx
