// SPDX-License-Identifier: Apache-2.0
//
// Wrong texts: every message with its line and column. The lines count from
// the header's three.
#include <gtest/gtest.h>

#include "ptx/check.h"
#include "ptx/parser.h"

namespace sonde::ptx {
namespace {

std::string errorsOf(const std::string& text) {
  auto r = parse(text);
  std::string s;
  for (const auto& d : r.diagnostics) s += format(d, "") + "\n";
  return s;
}

const std::string kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::string moduleErrors(const std::string& body) { return errorsOf(kHeader + body); }

// `line 6` is the first line of `body`.
std::string bodyErrors(const std::string& body) {
  return moduleErrors(
      ".entry k(.param .u64 a) {\n.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .f32 %f<2>;\n" + body +
      "\n}\n");
}

TEST(ParseErrors, Header) {
  EXPECT_EQ(errorsOf(""), ":1:1: error: the text has no .version directive\n");
  EXPECT_EQ(errorsOf(".version 9.0\n"), ":1:1: error: the text has no .target directive\n");
  EXPECT_EQ(errorsOf(".target sm_80\n"), ":1:1: error: expected '.version' as the first directive, found '.target'\n");
  EXPECT_EQ(errorsOf(".version 9\n.target sm_80\n"),
            ":1:10: error: expected a version such as 9.0 after '.version', found '9'\n"
            ":1:1: error: the text has no .version directive\n");
  EXPECT_EQ(errorsOf(".version 9.0\n.target sm_9x\n"),
            ":2:9: error: expected a target such as sm_90 or sm_90a, found 'sm_9x'\n"
            ":1:1: error: the text has no .target directive\n");
  EXPECT_EQ(errorsOf(".version 9.0\n.target sm_80\n.address_size 48\n"),
            ":3:15: error: .address_size must be 32 or 64, found 48\n");
}

TEST(ParseErrors, UnknownWords) {
  EXPECT_EQ(bodyErrors("ad.s32 %r1, %r2, 1;\n"), ":6:1: error: unknown instruction 'ad'; did you mean 'add'?\n");
  EXPECT_EQ(bodyErrors("frobnicate %r1;\n"), ":6:1: error: unknown instruction 'frobnicate'\n");
  EXPECT_EQ(bodyErrors("ld.globl.u32 %r1, [%rd1];\n"),
            ":6:3: error: unknown modifier '.globl' of 'ld'; did you mean '.global'?\n");
  EXPECT_EQ(moduleErrors(".globl .u32 x;\n"),
            ":4:1: error: expected a directive of module scope (.entry, .func, .global, .const, .shared, .file, "
            ".section …), found '.globl'\n");
}

TEST(ParseErrors, UndefinedNames) {
  EXPECT_EQ(bodyErrors("mov.b32 %r1, %r9;\n"), ":6:14: error: undefined register '%r9'\n");
  EXPECT_EQ(bodyErrors("mov.b32 %r1, %r01;\n"), ":6:14: error: undefined register '%r01'\n");
  EXPECT_EQ(bodyErrors("ld.global.u32 %r1, [nowhere];\n"), ":6:21: error: undefined name 'nowhere' in an address\n");
  EXPECT_EQ(bodyErrors("  bra NOWHERE;\n"), ":6:7: error: undefined label 'NOWHERE'\n");
  EXPECT_EQ(bodyErrors("call nobody;\n"), ":6:6: error: undefined function 'nobody'\n");
  EXPECT_EQ(bodyErrors("@%q bra L;\nL:\n"), ":6:2: error: undefined predicate '%q'\n");
  EXPECT_EQ(bodyErrors("@%r1 bra L;\nL:\n"), ":6:2: error: the guard '%r1' is not a register of type .pred\n");
  EXPECT_EQ(bodyErrors("{ L: ret; }\nbra L;"), ":7:5: error: undefined label 'L'\n");
}

TEST(ParseErrors, RegisterPlusConstant) {
  EXPECT_EQ(bodyErrors("mov.f32 %f1, %f0 + 1;\n"),
            ":6:18: error: only an integer register can be followed by '+' and a constant\n");
  EXPECT_EQ(bodyErrors("mov.b32 %r1, %r0 + %r2;\n").substr(0, 12), ":6:20: error");
  EXPECT_EQ(bodyErrors("mov.b32 %r1, %r0 - 1;\n"), ":6:18: error: expected ',' or ';' after the operand, found '-'\n");
}

TEST(ParseErrors, Punctuation) {
  EXPECT_EQ(bodyErrors("add.s32 %r1, %r2 %r3;\n"),
            ":6:18: error: expected ',' or ';' after the operand, found '%r3'\n");
  EXPECT_EQ(bodyErrors("ld.global.u32 %r1, [%rd1;\n"), ":6:25: error: expected ']' after the address, found ';'\n");
  EXPECT_EQ(bodyErrors("mov.b64 %rd1, {%r1, %r2;\n"),
            ":6:24: error: expected ',' or '}' after the vector element, found ';'\n");
  EXPECT_EQ(bodyErrors("add.s32 %r1, , %r3;\n"), ":6:14: error: expected an operand, found ','\n");
  EXPECT_EQ(bodyErrors(".reg .b32 %x\n"), ":8:1: error: expected ';' after the register declaration, found '}'\n");
  EXPECT_EQ(moduleErrors(".entry k() {\nret;\n"),
            ":4:12: error: the body of 'k' is never closed: no '}' matches this '{'\n");
  EXPECT_EQ(moduleErrors(".entry () { ret; }\n"), ":4:8: error: a kernel (.entry) returns nothing\n");
  EXPECT_EQ(moduleErrors(".global .u32 x = ;\n"), ":4:18: error: expected an initial value, found ';'\n");
}

TEST(ParseErrors, AMissingSemicolonCostsOneLineOnly) {
  EXPECT_EQ(bodyErrors("add.s32 %r1, %r2, 1\nmov.b32 %r1, %r9;\nsub.s32 %r1, %r2, 1;\n"),
            ":7:1: error: expected ',' or ';' after the operand, found 'mov'\n"
            ":7:14: error: undefined register '%r9'\n");
}

TEST(ParseErrors, SeveralAreReported) {
  EXPECT_EQ(
      moduleErrors(".entry a() {\nfoobar;\nmov.b32 {x, y}, 1;\nret;\n}\n.global .pred z;\n.entry b() { bra X; }\n"),
      ":5:1: error: unknown instruction 'foobar'\n"
      ":6:10: error: undefined name 'x'\n"
      ":9:1: error: only registers can be of type .pred\n"
      ":10:18: error: undefined label 'X'\n");
}

TEST(ParseErrors, ThereIsAnEnd) {
  std::string body;
  for (int i = 0; i < 100; ++i) body += "foo;\n";
  auto r = parse(kHeader + ".entry k() {\n" + body + "}\n", {.maxErrors = 5});
  ASSERT_EQ(r.diagnostics.size(), 6u);
  EXPECT_EQ(r.diagnostics[5].message, "too many errors; the rest of the text was not read");
  EXPECT_EQ(r.diagnostics[4].pos.line, 9u);
}

TEST(ParseErrors, Redeclarations) {
  EXPECT_EQ(bodyErrors(".reg .b32 %r2;\n"), ":6:11: error: '%r2' is already declared in this block\n");
  EXPECT_EQ(bodyErrors("L: ret;\nL: ret;\n"), ":7:1: error: label 'L' is already defined in this block\n");
  EXPECT_EQ(moduleErrors(".global .u32 x;\n.global .u32 x;\n"), ":5:14: error: 'x' is already defined at line 4\n");
  EXPECT_EQ(moduleErrors(".entry k() { ret; }\n.entry k() { ret; }\n"),
            ":5:8: error: 'k' is already defined at line 4\n");
  EXPECT_EQ(moduleErrors(".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }\n"),
            ":5:7: error: the signature of 'f' differs from its declaration at line 4\n");
}

TEST(ParseErrors, Numbers) {
  EXPECT_EQ(
      bodyErrors("mov.f32 %f1, 0f3F80;\n"),
      ":6:14: error: expected an operand, found '0f3F80' (0f must be followed by exactly 8 hexadecimal digits)\n");
  EXPECT_EQ(bodyErrors("mov.b32 %r1, 09;\n"),
            ":6:14: error: expected an operand, found '09' (this number is not well formed)\n");
  EXPECT_EQ(bodyErrors("mov.b64 %rd1, 0x10000000000000000;\n"),
            ":6:15: error: expected an operand, found '0x10000000000000000' (this number does not fit into 64 bits)\n");
  EXPECT_EQ(bodyErrors("mov.b32 %r1, 1/0;\n"), ":6:15: error: division by zero in a constant expression\n");
  EXPECT_EQ(bodyErrors("mov.b32 %r1, 1.5 & 3;\n"), ":6:18: error: '&' needs integers, found a floating-point value\n");
}

TEST(ParseErrors, StrayBytes) {
  EXPECT_EQ(bodyErrors("mov.b32 %r1, \x80;\n"),
            ":6:14: error: expected an operand, found the byte 0x80 (this character has no meaning in PTX)\n");
  EXPECT_EQ(moduleErrors("/* no end"), ":4:1: error: expected a directive, found '/*' (this comment is not closed)\n");
  EXPECT_EQ(
      moduleErrors(".pragma \"x\n"),
      ":4:9: error: expected a string in quotes after '.pragma', found 'x' (this string is not closed on its line)\n");
}

TEST(ParseErrors, Declarations) {
  EXPECT_EQ(moduleErrors(".global .align 3 .u32 x;\n"), ":4:16: error: .align must be a power of two, found 3\n");
  EXPECT_EQ(moduleErrors(".global .u32 x[2] = {1, 2, 3};\n"),
            ":4:14: error: 'x' has more initial values than elements (2)\n");
  EXPECT_EQ(moduleErrors(".shared .u32 x = 1;\n"),
            ":4:18: error: only .global and .const variables can have initial values\n");
  EXPECT_EQ(moduleErrors(".local .u32 x;\n"), ":4:1: error: '.local' variables must be declared inside a function\n");
  EXPECT_EQ(moduleErrors(".global .u16 x = y;\n"), ":4:18: error: undefined name 'y' in an initial value\n");
  EXPECT_EQ(moduleErrors(".global .u32 y;\n.global .u16 x = y;\n"),
            ":5:18: error: an address does not fit into .u16; use a mask such as 0xFF(y)\n");
  EXPECT_EQ(moduleErrors(".global x;\n"), ":4:9: error: expected a type such as .b32, found 'x'\n");
}

TEST(ParseErrors, Calls) {
  EXPECT_EQ(bodyErrors("call (%r1), %rd1, (%r2);\n"),
            ":6:13: error: an indirect call needs a .callprototype or .calltargets after its arguments\n");
  EXPECT_EQ(bodyErrors("call a;\n"), ":6:6: error: 'a' cannot be called: it is not a function\n");
  EXPECT_EQ(bodyErrors("call %rd1, (%r1), %r2;\n"),
            ":6:19: error: '%r2' is not a .callprototype or .calltargets of this function\n");
}

TEST(ParseErrors, DeepNestingIsRefused) {
  const std::string many(1000, '(');
  EXPECT_NE(bodyErrors("mov.b32 %r1, " + many + "1;\n").find("this expression is nested too deeply"),
            std::string::npos);
  EXPECT_NE(bodyErrors(std::string(1000, '{')).find("blocks are nested too deeply"), std::string::npos);
  EXPECT_NE(bodyErrors("mov.b32 " + std::string(1000, '{')).find("operands are nested too deeply"), std::string::npos);
  EXPECT_NE(bodyErrors(".reg .b32 %z<4000000000>;").find("too many registers in this module"), std::string::npos);
}

}  // namespace
}  // namespace sonde::ptx
