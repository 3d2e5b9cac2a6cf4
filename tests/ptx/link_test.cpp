// SPDX-License-Identifier: Apache-2.0
#include "ptx/link.h"

#include <gtest/gtest.h>

#include "ptx/parser.h"

namespace sonde::ptx {
namespace {

LinkInput input(const std::string& name, const std::string& body) {
  auto r = parse(".version 8.0\n.target sm_80\n.address_size 64\n" + body);
  for (const auto& d : r.diagnostics) ADD_FAILURE() << format(d, name);
  return {std::move(r.module), name};
}

LinkResult linked(const std::string& a, const std::string& b) {
  std::vector<LinkInput> in;
  in.push_back(input("a.ptx", a));
  in.push_back(input("b.ptx", b));
  return link(std::move(in));
}

TEST(Link, ExternMeetsDefinition) {
  const auto r = linked(
      ".extern .global .u32 counter;\n.extern .func (.param .b32 r) f(.param .b32 x);\n"
      ".extern .func (.param .b32 r) vprintf(.param .b64 x, .param .b64 y);\n"
      ".entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, counter; .param .b32 p; .param .b32 q; call (q), f, (p); ret; }",
      ".visible .global .u32 other = 1;\n.visible .global .u32 counter = 7;\n"
      ".visible .func (.param .b32 r) f(.param .b32 x) { ret; }");
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r.module.variables.size(), 2u);
  EXPECT_EQ(r.module.variables[0].name, "counter");
  EXPECT_EQ(r.module.variables[0].init.at(0).bits, 7u);
  const Function* k = r.module.findFunction("k");
  ASSERT_NE(k, nullptr);
  EXPECT_EQ(k->body[0].operands[1].refId, 0u);
  const auto callee = k->body[1].operands[0].refId;
  EXPECT_EQ(r.module.functions[callee].name, "f");
  EXPECT_TRUE(r.module.functions[callee].hasBody);
  EXPECT_EQ(r.unresolvedFunctions, std::vector<std::string>{"vprintf"});
  EXPECT_TRUE(r.unresolvedVariables.empty());
}

TEST(Link, LocalsAreRenamed) {
  const auto r = linked(
      ".global .u32 x = 1;\n.visible .global .u64 px = x;\n.func f() { ret; }\n.visible .entry a() { call f; ret; }",
      ".global .u32 x = 2;\n.visible .global .u64 py = x;\n.func f() { ret; }\n.visible .entry b() { call f; ret; }");
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r.module.variables.size(), 4u);
  EXPECT_EQ(r.module.variables[2].name, "x$1");
  EXPECT_EQ(r.module.variables[2].init[0].bits, 2u);
  EXPECT_EQ(r.module.variables[1].init[0].symbol, "x");
  EXPECT_EQ(r.module.variables[3].init[0].symbol, "x$1");
  const Function* b = r.module.findFunction("b");
  EXPECT_EQ(r.module.functions[b->body[0].operands[0].refId].name, "f$1");
}

TEST(Link, StrongWinsOverWeak) {
  const auto r = linked(".weak .func f() { ret; }\n.visible .entry k() { call f; exit; }",
                        ".visible .func f() { trap; }\n.weak .global .u32 w = 3;");
  ASSERT_TRUE(r.ok());
  const Function* k = r.module.findFunction("k");
  EXPECT_EQ(r.module.functions[k->body[0].operands[0].refId].body[0].op, Opcode::trap);
  EXPECT_EQ(r.module.functions.size(), 2u);
}

TEST(Link, CommonTakesTheLargest) {
  const auto r = linked(".common .global .align 4 .b8 c[8];", ".common .global .align 16 .b8 c[32];");
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r.module.variables.size(), 1u);
  EXPECT_EQ(r.module.variables[0].sizeBytes, 32u);
  EXPECT_EQ(r.module.variables[0].align, 16u);
}

TEST(Link, TwoStrongDefinitions) {
  const auto r = linked(".visible .entry k() { ret; }", "\n.visible .entry k() { ret; }");
  ASSERT_EQ(r.diagnostics.size(), 1u);
  EXPECT_EQ(r.diagnostics[0].message, "b.ptx: 'k' is already defined in a.ptx, line 4");
  EXPECT_EQ(r.diagnostics[0].pos.line, 5u);
}

TEST(Link, DeclarationMustFit) {
  const auto r = linked(".extern .global .u32 x;", ".visible .global .u64 x = 1;");
  ASSERT_EQ(r.diagnostics.size(), 1u);
  EXPECT_EQ(r.diagnostics[0].message, "b.ptx: 'x' is declared differently in a.ptx, line 4");
}

TEST(Link, KernelsMayBeDeclaredAsFunctionsForTheirAddress) {
  const char* kernel = ".visible .entry k(.param .u64 p, .param .u32 n) { ret; }";
  const std::string declared = ".extern .func k(.param .b64 p, .param .b32 n);\n.visible .entry a() { .reg .b64 %r; ";
  const auto r = linked(declared + "mov.u64 %r, k; ret; }", kernel);
  ASSERT_TRUE(r.ok());
  const Function* a = r.module.findFunction("a");
  EXPECT_TRUE(r.module.functions[a->body[0].operands[1].refId].isKernel);
  EXPECT_TRUE(r.unresolvedFunctions.empty());
  const auto other = linked(".extern .func k(.param .b64 p);", kernel);
  ASSERT_EQ(other.diagnostics.size(), 1u);
  EXPECT_EQ(other.diagnostics[0].message, "b.ptx: 'k' is declared differently in a.ptx, line 4");
  const auto called = linked(declared + "{ .param .b64 x; .param .b32 y; call k, (x, y); } ret; }", kernel);
  ASSERT_EQ(called.diagnostics.size(), 1u);
  EXPECT_EQ(called.diagnostics[0].message, "a.ptx: 'k' is a kernel and cannot be called");
}

TEST(Link, DynamicSharedMemoryIsOne) {
  const auto r = linked(".extern .shared .align 4 .b8 s[];\n.entry a() { ret; }",
                        ".extern .shared .align 16 .b8 s[];\n.entry b() { ret; }");
  ASSERT_TRUE(r.ok());
  ASSERT_EQ(r.module.variables.size(), 1u);
  EXPECT_EQ(r.module.variables[0].align, 16u);
  EXPECT_TRUE(r.unresolvedVariables.empty());
}

TEST(Link, AliasesAreFollowed) {
  const auto r = linked(".visible .func g() { ret; }\n.visible .func h();\n.alias h, g;",
                        ".extern .func h();\n.entry k() { call h; ret; }");
  ASSERT_TRUE(r.ok());
  const Function* k = r.module.findFunction("k");
  EXPECT_EQ(r.module.functions[k->body[0].operands[0].refId].name, "g");
  EXPECT_TRUE(r.unresolvedFunctions.empty());
}

}  // namespace
}  // namespace sonde::ptx
