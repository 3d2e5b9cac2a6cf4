// SPDX-License-Identifier: Apache-2.0
#include "ptx/locations.h"

#include <gtest/gtest.h>

#include "ptx/link.h"
#include "ptx/parser.h"

namespace sonde::ptx {
namespace {

constexpr std::string_view kText = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
  .reg .b32 r;
  mov.b32 r, 0;
  .loc 1 30 1
  mov.b32 r, 1;
  .loc 2 20 3, function_name $L__info_string0, inlined_at 1 30 1
  mov.b32 r, 2;
  .loc 2 10 5, function_name $L__info_string0+6, inlined_at 2 20 3
  mov.b32 r, 3;
  .loc 1 30 9
  ret;
}
.file 1 "/src/a.cu"
.file 2 "/src/b.cuh"
.section .debug_str
{
$L__info_string0:
.b8 95,90,49,102,118,0
.b8 95,90,49,103,118,0
}
)";

TEST(SourceMap, ChainsOfInlining) {
  const auto r = parse(kText);
  ASSERT_TRUE(r.ok());
  const Function& f = r.module.functions[0];
  const SourceMap map(r.module);
  EXPECT_TRUE(map.frames(f, f.body[0]).empty());
  const auto plain = map.frames(f, f.body[1]);
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain[0].file, "/src/a.cu");
  EXPECT_EQ(plain[0].line, 30u);
  EXPECT_EQ(plain[0].function, "k");
  const auto deep = map.frames(f, f.body[3]);
  ASSERT_EQ(deep.size(), 3u);
  EXPECT_EQ(deep[0].file, "/src/b.cuh");
  EXPECT_EQ(deep[0].line, 10u);
  EXPECT_EQ(deep[0].column, 5u);
  EXPECT_EQ(deep[0].function, "_Z1gv");
  EXPECT_EQ(deep[1].line, 20u);
  EXPECT_EQ(deep[1].function, "_Z1fv");
  EXPECT_EQ(deep[2].line, 30u);
  EXPECT_EQ(deep[2].function, "k");
}

TEST(SourceMap, Lines) {
  const auto r = parse(kText);
  const Function& f = r.module.functions[0];
  const SourceMap map(r.module);
  EXPECT_EQ(map.line(f.body[0]), kNoId);
  EXPECT_EQ(map.line(f.body[1]), map.line(f.body[4]));  // one line, two columns
  EXPECT_NE(map.line(f.body[2]), map.line(f.body[3]));
  EXPECT_EQ(map.line(f.body[3], true), map.line(f.body[1]));
  EXPECT_EQ(map.lines().size(), 3u);
  EXPECT_EQ(map.lines()[map.line(f.body[3])].line, 10u);
}

TEST(SourceMap, SurvivesLinking) {
  auto a = parse(kText);
  auto b = parse(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry other() {\n.loc 1 5 1\nret; }\n.file 1 \"/src/z.cu\"\n");
  std::vector<LinkInput> in;
  in.push_back({std::move(b.module), "b"});
  in.push_back({std::move(a.module), "a"});
  const auto linked = link(std::move(in));
  ASSERT_TRUE(linked.ok());
  const SourceMap map(linked.module);
  const Function* k = linked.module.findFunction("k");
  const auto deep = map.frames(*k, k->body[3]);
  ASSERT_EQ(deep.size(), 3u);
  EXPECT_EQ(deep[0].file, "/src/b.cuh");
  EXPECT_EQ(deep[0].function, "_Z1gv");
  EXPECT_EQ(deep[2].file, "/src/a.cu");
  const Function* other = linked.module.findFunction("other");
  EXPECT_EQ(map.frames(*other, other->body[0]).at(0).file, "/src/z.cu");
}

}  // namespace
}  // namespace sonde::ptx
