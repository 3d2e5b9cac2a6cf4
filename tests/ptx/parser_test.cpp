// SPDX-License-Identifier: Apache-2.0
//
// Texts that must be read, and what must come out of them.
#include "ptx/parser.h"

#include <gtest/gtest.h>

namespace sonde::ptx {
namespace {

constexpr std::string_view kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

Module parsed(std::string_view body) {
  auto r = parse(std::string(kHeader) + std::string(body));
  EXPECT_TRUE(r.ok());
  for (const auto& d : r.diagnostics) ADD_FAILURE() << format(d);
  return std::move(r.module);
}

// The instructions of one kernel whose body is `body`.
Function kernel(std::string_view body) {
  Module m = parsed(".visible .entry k(.param .u64 ptr, .param .u32 n)\n{\n" + std::string(body) + "\n}\n");
  EXPECT_EQ(m.functions.size(), 1u);
  return m.functions.empty() ? Function{} : std::move(m.functions[0]);
}

TEST(Parser, Header) {
  auto r = parse(".version 8.4\n.target sm_90a, debug\n.address_size 64\n");
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r.module.versionMajor, 8u);
  EXPECT_EQ(r.module.versionMinor, 4u);
  EXPECT_EQ(r.module.target, 90u);
  EXPECT_EQ(r.module.targetSuffix, "a");
  EXPECT_EQ(r.module.targetOptions, std::vector<std::string>{"debug"});
  EXPECT_EQ(r.module.addressSize, 64u);
}

TEST(Parser, RegistersRangesAndGuards) {
  const Function f = kernel(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    setp.lt.and.s32 %p1|%p0, %r1, -5, !%p0;
    @!%p1 add.s32 %r3, %r2, 0x10;
  )");
  ASSERT_EQ(f.registers.size(), 6u);
  EXPECT_EQ(f.registers[0].name, "%p0");
  EXPECT_EQ(f.registers[0].type, ScalarType::pred);
  EXPECT_EQ(f.registers[5].name, "%r3");
  ASSERT_EQ(f.body.size(), 2u);
  const Instruction& setp = f.body[0];
  EXPECT_EQ(setp.op, Opcode::setp);
  EXPECT_EQ(setp.mods, (std::vector<Mod>{Mod::lt, Mod::and_}));
  EXPECT_EQ(setp.types, std::vector<ScalarType>{ScalarType::s32});
  ASSERT_EQ(setp.operands.size(), 4u);
  EXPECT_EQ(setp.operands[0].kind, Operand::Kind::predPair);
  EXPECT_EQ(setp.operands[0].elements[0].reg, 1u);
  EXPECT_EQ(setp.operands[0].elements[1].reg, 0u);
  EXPECT_EQ(setp.operands[2].imm, static_cast<uint64_t>(-5));
  EXPECT_TRUE(setp.operands[3].negated);
  const Instruction& add = f.body[1];
  EXPECT_EQ(add.guard.reg, 1u);
  EXPECT_TRUE(add.guard.negated);
  EXPECT_EQ(add.operands[2].imm, 16u);
  EXPECT_EQ(add.pos.line, 10u);
  EXPECT_EQ(add.pos.column, 11u);
}

TEST(Parser, DottedMnemonics) {
  const Function f = kernel(R"(
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
    ld.global.L1::no_allocate.L2::128B.v4.u32 {%r0, %r1, _, %r3}, [%rd1+-16];
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r2, %r3}], [%r4];
    barrier.cluster.arrive.release;
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
    wgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16 {%r0,%r1,%r2,%r3,%r4,%r5}, %rd1, %rd2, 1, 1, 1, 0, 0;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0,%r1,%r2,%r3}, {%r4,%r5,%r6,%r7}, {%r1,%r2}, {%r0,%r1,%r2,%r3};
  )");
  ASSERT_EQ(f.body.size(), 6u);
  EXPECT_EQ(f.body[0].space, StateSpace::global);
  EXPECT_EQ(f.body[0].vectorWidth, 4);
  EXPECT_EQ(f.body[0].mods, (std::vector<Mod>{Mod::L1_no_allocate, Mod::L2_128B}));
  EXPECT_EQ(f.body[0].operands[0].elements[2].kind, Operand::Kind::sink);
  EXPECT_EQ(f.body[0].operands[1].offset, -16);
  const Instruction& tma = f.body[1];
  EXPECT_EQ(tma.mods, (std::vector<Mod>{Mod::async, Mod::bulk, Mod::tensor, Mod::geom_2d, Mod::complete_tx_bytes}));
  EXPECT_EQ(tma.space, StateSpace::sharedCluster);
  EXPECT_EQ(tma.space2, StateSpace::global);
  EXPECT_EQ(tma.operands[1].kind, Operand::Kind::texture);
  EXPECT_EQ(tma.operands[1].elements[1].elements.size(), 2u);
  EXPECT_EQ(f.body[2].mods, (std::vector<Mod>{Mod::cluster, Mod::arrive, Mod::release}));
  EXPECT_TRUE(f.body[4].has(Mod::mnk));
  EXPECT_EQ(f.body[4].shape.n, 24);
  EXPECT_TRUE(f.body[5].has(Mod::m16n8k16));
  EXPECT_EQ(f.body[5].shape.k, 16);
  EXPECT_EQ(f.body[5].types.size(), 4u);
}

TEST(Parser, NumbersAndExpressions) {
  const Function f = kernel(R"(
    .reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .f32 %f<2>; .reg .f64 %d<2>;
    mov.b32 %r1, 0b101;
    mov.b32 %r1, 017;
    mov.b32 %r1, 0xFFFFFFFFU;
    mov.b32 %r1, (1+2)*3-WARP_SZ;
    mov.b64 %rd1, -9223372036854775808;
    mov.f32 %f1, 0f3F800000;
    mov.f64 %d1, 0d4008000000000000;
    mov.f32 %f1, -1.5;
    mov.b32 %r1, (.s64)7 / -2;
    mov.b32 %r1, 3 > 2 ? 10 : 20;
    mov.b32 %r1, -1+3;
    mov.b32 %r1, ~0 & 0xFF << 4;
  )");
  auto imm = [&](size_t i) { return f.body[i].operands[1].imm; };
  EXPECT_EQ(imm(0), 5u);
  EXPECT_EQ(imm(1), 15u);
  EXPECT_EQ(imm(2), 0xFFFFFFFFu);
  EXPECT_EQ(imm(3), static_cast<uint64_t>(-23));
  EXPECT_EQ(imm(4), uint64_t{1} << 63);
  EXPECT_EQ(imm(5), 0x3F800000u);
  EXPECT_TRUE(f.body[5].operands[1].is32);
  EXPECT_EQ(imm(6), 0x4008000000000000u);
  EXPECT_EQ(imm(7), 0xBFF8000000000000u);
  EXPECT_EQ(imm(8), static_cast<uint64_t>(-3));
  EXPECT_EQ(imm(9), 10u);
  EXPECT_EQ(imm(10), 2u);
  EXPECT_EQ(imm(11), 0xFF0u);
}

TEST(Parser, ScopesHideNames) {
  const Function f = kernel(R"(
    .reg .b32 %r<3>;
    L: mov.b32 %r1, 0;
    {
      .reg .b64 %r1;
      .reg .pred p;
      mov.b64 %r1, 1;
      L: bra L;
    }
    {
      .reg .pred p;
      @p bra L;
    }
    bra L;
  )");
  ASSERT_EQ(f.registers.size(), 6u);
  EXPECT_EQ(f.registers[3].name, "%r1$1");
  EXPECT_EQ(f.registers[4].name, "p");
  EXPECT_EQ(f.registers[5].name, "p$1");
  EXPECT_EQ(f.body[0].operands[0].reg, 1u);
  EXPECT_EQ(f.body[1].operands[0].reg, 3u);
  ASSERT_EQ(f.labels.size(), 2u);
  EXPECT_EQ(f.labels[1].name, "L$1");
  EXPECT_EQ(f.labels[1].instruction, 2u);
  EXPECT_EQ(f.body[2].operands[0].index, 1u);
  EXPECT_EQ(f.body[3].operands[0].index, 0u);
  EXPECT_EQ(f.body[4].operands[0].index, 0u);
}

TEST(Parser, WholeVectorRegisterIsItsComponents) {
  const Function f =
      kernel(".reg .v2 .u32 v; .reg .b64 %rd<2>; mov.b64 %rd1, v; ld.global.v2.u32 v, [%rd1]; mov.b32 v.y, v.x;");
  const Operand& v = f.body[0].operands[1];
  ASSERT_EQ(v.kind, Operand::Kind::vector);
  ASSERT_EQ(v.elements.size(), 2u);
  EXPECT_EQ(v.elements[1].reg, 0u);
  EXPECT_EQ(v.elements[1].component, 1);
  EXPECT_EQ(f.body[2].operands[1].component, 0);
}

TEST(Parser, RegisterPlusConstant) {
  const Function f = kernel(".reg .b32 %r<3>; add.u32 %r1, %r2 + 1+2, %r0;");
  const Operand& sum = f.body[0].operands[1];
  EXPECT_EQ(sum.kind, Operand::Kind::reg);
  EXPECT_EQ(sum.reg, 2u);
  EXPECT_EQ(sum.offset, 3);
  EXPECT_EQ(f.body[0].operands[2].offset, 0);
}

TEST(Parser, GlobalVariableInABodyBelongsToTheModule) {
  const Module m = parsed(
      ".global .u32 x = 1;\n.entry a() { .reg .b32 r; .global .u32 x = 2; ld.global.u32 r, [x]; }\n"
      ".entry b() { .reg .b32 r; ld.global.u32 r, [x]; }");
  ASSERT_EQ(m.variables.size(), 2u);
  EXPECT_EQ(m.variables[1].name, "x$1");
  EXPECT_EQ(m.functions[0].body[0].operands[1].refId, 1u);
  EXPECT_EQ(m.functions[1].body[0].operands[1].refId, 0u);
}

TEST(Parser, ParameterLayout) {
  const Module m = parsed(
      ".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 8 .b8 c[12], .param .v2 .f32 d) "
      ".maxntid 128, 2 .minnctapersm 3 { ret; }");
  const Function& f = m.functions[0];
  EXPECT_EQ(f.paramOffsets, (std::vector<uint32_t>{0, 8, 16, 32}));
  EXPECT_EQ(f.paramBytes, 40u);
  EXPECT_TRUE(f.params[1].isPointerParam);
  EXPECT_EQ(f.params[1].pointerSpace, StateSpace::global);
  EXPECT_EQ(f.params[1].pointerAlign, 16u);
  EXPECT_EQ(f.params[2].sizeBytes, 12u);
  EXPECT_EQ(f.hints.maxntid, (std::array<uint32_t, 3>{128, 2, 1}));
  EXPECT_EQ(f.hints.minnctapersm, 3u);
}

TEST(Parser, VariablesAndInitialisers) {
  const Module m = parsed(R"(
    .extern .shared .align 16 .b8 smem[];
    .global .align 4 .b32 a[2][3] = {{1, 2}, {4}};
    .global .align 8 .u64 p[3] = {a, generic(a)+8, 0};
    .const .f32 c = 1.5;
    .global .f64 d[] = {1, 0d4000000000000000};
    .global .align 1 .b8 bytes[8] = {0xFF(a), 0xFF00(generic(a)+4), 255};
    .weak .global .attribute(.managed) .align 4 .u32 w;
    .global .samplerref s = {addr_mode_0 = wrap, filter_mode = nearest};
    .global .b16 h = 0x3C00;
  )");
  ASSERT_EQ(m.variables.size(), 9u);
  EXPECT_TRUE(m.variables[0].isExtern);
  EXPECT_EQ(m.variables[0].sizeBytes, 0u);
  EXPECT_EQ(m.variables[0].align, 16u);
  const auto& a = m.variables[1];
  EXPECT_EQ(a.sizeBytes, 24u);
  ASSERT_EQ(a.init.size(), 4u);
  EXPECT_EQ(a.init[2].kind, Initializer::Kind::zero);
  EXPECT_EQ(a.init[3].bits, 4u);
  const auto& p = m.variables[2];
  EXPECT_EQ(p.init[0].kind, Initializer::Kind::symbol);
  EXPECT_EQ(p.init[1].kind, Initializer::Kind::genericSymbol);
  EXPECT_EQ(p.init[1].offset, 8);
  EXPECT_EQ(m.variables[3].init[0].bits, 0x3FC00000u);
  EXPECT_EQ(m.variables[4].dims[0], 2u);
  EXPECT_EQ(m.variables[4].sizeBytes, 16u);
  EXPECT_EQ(m.variables[4].init[0].bits, 0x3FF0000000000000u);
  EXPECT_TRUE(m.variables[5].init[1].masked);
  EXPECT_EQ(m.variables[5].init[1].maskShift, 8u);
  EXPECT_TRUE(m.variables[6].isManaged);
  EXPECT_TRUE(m.variables[6].isWeak);
  EXPECT_EQ(m.variables[7].properties[1].second, "nearest");
}

TEST(Parser, Calls) {
  const Module m = parsed(R"(
    .extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
    .func (.reg .u32 out) twice(.reg .u32 in) { add.u32 out, in, in; ret; }
    .visible .entry k(.param .u64 p) {
      .reg .b32 %r<3>; .reg .b64 %rd<3>;
      {
        .param .b64 param0; .param .b64 param1; .param .b32 retval0;
        st.param.b64 [param0], %rd1;
        call.uni (retval0), vprintf, (param0, param1);
        ld.param.b32 %r1, [retval0];
      }
      {
        .param .b64 param0; .param .b32 retval0;
        prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;
        call (retval0), %rd2, (param0), prototype_0;
      }
      call (%r1), twice, (%r2);
    })");
  const Function& k = m.functions[2];
  ASSERT_EQ(k.variables.size(), 5u);
  EXPECT_EQ(k.variables[3].name, "param0$1");
  const Instruction& direct = k.body[1];
  EXPECT_TRUE(direct.has(Mod::uni));
  EXPECT_EQ(direct.operands[0].ref, Operand::Ref::function);
  EXPECT_EQ(direct.operands[0].refId, 0u);
  ASSERT_EQ(direct.callArgs.size(), 2u);
  EXPECT_EQ(direct.callArgs[1].refId, 1u);
  EXPECT_EQ(direct.callReturns[0].refId, 2u);
  const Instruction& indirect = k.body[3];
  EXPECT_EQ(indirect.callPrototype, 0u);
  EXPECT_TRUE(k.prototypes[0].noreturn);
  EXPECT_EQ(indirect.operands[0].kind, Operand::Kind::reg);
  EXPECT_EQ(indirect.callArgs[0].refId, 3u);
  const Function& twice = m.functions[1];
  EXPECT_EQ(twice.returns[0].regId, 0u);
  EXPECT_EQ(twice.body[0].operands[1].reg, twice.params[0].regId);
}

TEST(Parser, BranchTables) {
  const Function f = kernel(R"(
    .reg .b32 %r<2>;
    ts: .branchtargets A, B, A;
    brx.idx %r1, ts;
    A: ret;
    B: exit;
  )");
  ASSERT_EQ(f.branchTargets.size(), 1u);
  EXPECT_EQ(f.branchTargets[0].ids, (std::vector<uint32_t>{0, 1, 0}));
  EXPECT_EQ(f.body[0].operands[1].ref, Operand::Ref::branchTargets);
}

TEST(Parser, LocationsResolveInlining) {
  const Module m = parsed(R"(
    .visible .entry k() {
      .loc 1 30 1
      bar.sync 0;
      .loc 1 20 3, function_name $L__info_string0, inlined_at 1 30 1
      bar.sync 0;
      .loc 1 10 5, function_name $L__info_string0+3, inlined_at 1 20 3
      ret;
    }
    .file 1 "/src/a.cu", 123, 456
    .section .debug_str
    {
    $L__info_string0:
    .b8 95,90,0,95,89,0
    }
  )");
  const Function& f = m.functions[0];
  const Location& innermost = m.locations[f.body[2].loc];
  EXPECT_EQ(innermost.line, 10u);
  EXPECT_EQ(innermost.functionName, "_Y");
  const Location& middle = m.locations[innermost.inlinedAt];
  EXPECT_EQ(middle.line, 20u);
  EXPECT_EQ(middle.functionName, "_Z");
  EXPECT_EQ(m.locations[middle.inlinedAt].line, 30u);
  EXPECT_EQ(m.locations[middle.inlinedAt].inlinedAt, kNoId);
  EXPECT_EQ(m.files[0].path, "/src/a.cu");
  EXPECT_EQ(m.files[0].size, 456u);
}

TEST(Parser, SpecialRegistersTexturesVideo) {
  const Function f = kernel(R"(
    .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<3>; .reg .pred %p<2>;
    mov.u32 %r1, %ctaid.y;
    mov.b32 %r1, %envreg3;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [%rd1, {%f5, %f6}];
    vadd.u32.u32.s32.sat %r1, %r2.b2, -%r3.h1;
    shfl.sync.down.b32 %r1|%p1, %r2, 16, 31, -1;
    mov .b32 %r1 , %r2;
  )");
  EXPECT_EQ(f.body[0].operands[1].special, SpecialReg::ctaid);
  EXPECT_EQ(f.body[0].operands[1].component, 1);
  EXPECT_EQ(f.body[1].operands[1].index, 3u);
  EXPECT_EQ(f.body[2].operands[0].kind, Operand::Kind::predPair);
  EXPECT_EQ(f.body[2].operands[0].elements[0].kind, Operand::Kind::vector);
  EXPECT_EQ(f.body[2].operands[1].elements.size(), 2u);
  EXPECT_EQ(f.body[3].operands[1].selector, "b2");
  EXPECT_TRUE(f.body[3].operands[2].negated);
  EXPECT_EQ(f.body[3].operands[2].selector, "h1");
  EXPECT_EQ(f.body[5].op, Opcode::mov);
}

}  // namespace
}  // namespace sonde::ptx
