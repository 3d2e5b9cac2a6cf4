// SPDX-License-Identifier: Apache-2.0
//
// The list in docs/INSTRUCTIONS.md is the code's, and what it calls unsupported is refused by name and line.
#include "softgpu/exec/fidelity.h"

#include <fstream>
#include <map>

#include "device_fixture.h"
#include "ptx/parser.h"

namespace sonde::softgpu::exec {
namespace {

std::map<std::string, std::string> rowsOfDocument() {
  std::ifstream in(SONDE_INSTRUCTIONS);
  std::map<std::string, std::string> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    const size_t end = line.find('`', 3);
    rows[line.substr(3, end - 3)] = line.substr(end + 1);
  }
  return rows;
}

std::string rowOf(ptx::Opcode op) {
  const OpcodeFidelity f = fidelityOf(op);
  return std::string(" | ") + name(f.fidelity) + " | " + f.remark + " |";
}

TEST(FidelityList, TheDocumentIsTheTable) {
  const auto rows = rowsOfDocument();
  size_t n = 0;
  std::string expected;
  for (uint32_t i = 0; i < static_cast<uint32_t>(ptx::Opcode::count_); ++i) {
    const auto op = static_cast<ptx::Opcode>(i);
    const std::string word(ptx::name(op));
    if (word.empty()) continue;
    ++n;
    expected += "| `" + word + "`" + rowOf(op) + "\n";
    const auto at = rows.find(word);
    if (at == rows.end())
      ADD_FAILURE() << word << " is missing in docs/INSTRUCTIONS.md";
    else
      EXPECT_EQ(at->second, rowOf(op)) << word;
  }
  EXPECT_EQ(rows.size(), n) << "the table as it should be:\n" << expected;
  if (HasFailure()) std::puts(expected.c_str());
}

std::string kernelOf(const std::string& instruction, const std::string& head) {
  return head +
         ".visible .entry k()\n{\n  .reg .b32 %r<9>;\n  .reg .b64 %rd<9>;\n  .reg .pred %p<3>;\n  .reg .f32 "
         "%f<9>;\n  .shared .align 128 .b8 s[256];\n  mov.u32 %r1, s;\n  mov.u64 %rd1, 0;\n  " +
         instruction + "\n  ret;\n}\n";
}

TEST(FidelityList, WhatIsUnsupportedIsRefusedByNameAndLine) {
  const std::string head90 = ".version 8.6\n.target sm_90a\n.address_size 64\n";
  const std::string head100 = ".version 8.6\n.target sm_100a\n.address_size 64\n";
  model::DeviceModel d = testDevice();
  d.ccMajor = 10;
  d.ccMinor = 0;
  const std::pair<std::string, std::string> cases[] = {
      {"wgmma.fence.sync.aligned;", head90},
      {"wgmma.commit_group.sync.aligned;", head90},
      {"tcgen05.wait::ld.sync.aligned;", head100},
      {"multimem.ld_reduce.relaxed.sys.global.add.f32 %f1, [%rd1];", head90},
      {"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r1];", head100},
  };
  for (const auto& [instruction, head] : cases) {
    Kernels k(kernelOf(instruction, head), d);
    ASSERT_TRUE(k.program) << instruction;
    const LaunchOutcome r = k.run("k", {1}, {32});
    EXPECT_NE(r.error, 0) << instruction;
    const std::string word = instruction.substr(0, instruction.find('.'));
    EXPECT_THAT(r.message, testing::HasSubstr(word)) << instruction;
    EXPECT_THAT(r.message, testing::HasSubstr("line 13")) << instruction;
  }
}

TEST(FidelityList, InstructionsAndReport) {
  const ptx::ParseResult parsed = ptx::parse(R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k()
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  .reg .f32 %f<9>;
  mov.u64 %rd1, 0;
  mov.u64 %rd2, %clock64;
  div.approx.f32 %f1, %f2, %f3;
  div.rn.f32 %f1, %f2, %f3;
  div.rn.f32 %f4, %f2, %f3;
  sin.approx.f32 %f1, %f2;
  red.global.add.u32 [%rd1], %r1;
  red.global.add.f32 [%rd1], %f1;
  ret;
}
)");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(fidelityReport(parsed.module, 0),
            "k\twithin bound\t1\tdiv.approx.f32\t.approx and .full: within bound\n"
            "k\texact\t2\tdiv.rn.f32\t.approx and .full: within bound\n"
            "k\texact\t1\tmov.u64\t%clock and %globaltimer read the host's clock\n"
            "k\torder-dependent\t1\tmov.u64 of a clock\t%clock and %globaltimer read the host's clock\n"
            "k\torder-dependent\t1\tred.global.add.f32\tsums of floating-point numbers: order-dependent\n"
            "k\texact\t1\tred.global.add.u32\tsums of floating-point numbers: order-dependent\n"
            "k\texact\t1\tret\t\n"
            "k\twithin bound\t1\tsin.approx.f32\tdocs/ARITHMETIC.md\n");
}

}  // namespace
}  // namespace sonde::softgpu::exec
