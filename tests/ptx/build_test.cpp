// SPDX-License-Identifier: Apache-2.0
#include "ptx/build.h"

#include <gtest/gtest.h>

#include "ptx/check.h"
#include "ptx/parser.h"
#include "ptx/print.h"

namespace sonde::ptx {
namespace {

TEST(Build, CountsVisitsOfABlock) {
  auto r = parse(R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .u32 visits;
.entry k() {
  .reg .pred %p<2>; .reg .b32 %r<2>;
  mov.u32 %r1, %tid.x;
L: setp.eq.u32 %p1, %r1, 0;
  @%p1 bra L;
M: ret;
}
)");
  ASSERT_TRUE(r.ok());
  Module& m = r.module;
  Function& f = m.functions[0];
  const RegId address = addRegister(f, "%sonde_rd", ScalarType::b64);
  const RegId number = addRegister(f, "%r", ScalarType::b32);
  EXPECT_EQ(f.registers[number].name, "%r5");  // behind %r0, %r1
  std::vector<Instruction> code;
  code.push_back(makeInstruction(m, "mov.u64", {regOperand(address), variableOperand(Operand::Ref::moduleVar, 0)}));
  code.push_back(
      makeInstruction(m, "atom.global.add.u32", {regOperand(number), addressOperand(address), intOperand(1)}));
  insertInstructions(f, 1, std::move(code));
  EXPECT_TRUE(check(m).empty());
  const std::string text = print(m);
  EXPECT_NE(text.find("L:\n\tmov.u64 %sonde_rd0, visits;\n\tatom.global.add.u32 %r5, [%sonde_rd0], 1;\n\tsetp.eq.u32"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("bra L;\nM:\n\tret;"), std::string::npos) << text;
  EXPECT_TRUE(parse(text).ok());
}

TEST(Build, UnknownWords) {
  Module m;
  EXPECT_EQ(makeInstruction(m, "st.globl.u32").op, Opcode::invalid);
  EXPECT_TRUE(m.mnemonics.empty());
  const Instruction i = makeInstruction(m, "mov.u32", {}, Guard{3, true});
  EXPECT_EQ(i.guard.reg, 3u);
  EXPECT_EQ(makeInstruction(m, "mov.u32").mnemonic, i.mnemonic);
}

}  // namespace
}  // namespace sonde::ptx
