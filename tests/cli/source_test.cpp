// SPDX-License-Identifier: Apache-2.0
// `sonde source` and `run --source-level-analysis`, against what sourced.cpp is
// known to do (the numbers stand there).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "built_product.h"

namespace sonde::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Source : public BuiltProduct {
 protected:
  void SetUp() override {
    BuiltProduct::SetUp();
    fs::create_directories(folder_ + "/src/kernels");
    std::ofstream(folder_ + "/src/kernels/sourced.cu") << "// the program's source\n"
                                                          "__global__ void scale(float* a) {\n"
                                                          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                                          "  if (i % 2 == 0)\n"
                                                          "    a[i * 8] = i < 3 && i > -1;\n"
                                                          "  // the end\n"
                                                          "}\n";
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
};

// Warp instructions 16 + 12 + 16 + 4, and 64 transactions: 112 in all.
constexpr const char* kLines =
    "File,Line,Cost (%),Executed,Thread Efficiency (%),Branches,Diverged,Global Transactions,Ideal,Shared "
    "Transactions,Ideal Shared,Function\n"
    "kernels/sourced.cu,5,71.4,16,50.0,0,0,64,8,0,0,scale(float*)\n"
    "kernels/sourced.cu,3,14.3,16,100.0,0,0,0,0,0,0,scale(float*)\n"
    "kernels/sourced.cu,4,10.7,12,83.3,4,4,0,0,0,0,scale(float*)\n"
    "kernels/sourced.cu,7,3.6,4,100.0,0,0,0,0,0,0,scale(float*)\n";

TEST_F(Source, LinesAsCsv) {
  const Outcome o = sonde({"source", "-q", "--csv", SOURCED, "lines-only"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, kLines);
}

TEST_F(Source, AnnotatedText) {
  const Outcome o = sonde({"source", "-q", "--source-dir", folder_ + "/src", "--", SOURCED, "lines-only"});
  EXPECT_EQ(o.status, 0) << o.err;
  // The most expensive line first, with its text; then the file in its order.
  EXPECT_TRUE(std::regex_search(
      o.out,
      std::regex(
          R"(Source Lines by Cost[^\n]*\n(?: +[A-Z][^\n]*\n| +warps[^\n]*\n)*[^\n]*Source\n +71\.4% +16 +50\.0% +64 \(8\) +sourced\.cu:5  a\[i \* 8\])")))
      << o.out;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n +10\.7% +12 +83\.3% +100\.0% +4    if \(i % 2 == 0\)\n)")))
      << o.out;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n +1  // the program's source\n)"))) << o.out;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n +6    // the end\n)"))) << o.out;
}

TEST_F(Source, HtmlNeedsNothingElse) {
  const Outcome o = sonde({"source", "-q", "--no-report", "-o", folder_ + "/report.html", "--source-dir",
                           folder_ + "/src", SOURCED, "lines-only"});
  EXPECT_EQ(o.status, 0) << o.err;
  const std::string html = read("report.html");
  EXPECT_EQ(html.compare(0, 15, "<!DOCTYPE html>"), 0);
  EXPECT_THAT(html, HasSubstr("a[i * 8] = i &lt; 3 &amp;&amp; i &gt; -1;"));
  EXPECT_THAT(html, HasSubstr("<td data-v='64'>64</td><td data-v='8'>8</td>"));
  EXPECT_THAT(html, HasSubstr("scale(float*)"));
  EXPECT_THAT(html, HasSubstr("</html>"));
  for (const char* outside : {"http", "src=", "<link", "@import", "url("}) EXPECT_THAT(html, Not(HasSubstr(outside)));
  // It is not replaced unasked.
  const Outcome again = sonde({"source", "-q", "-o", folder_ + "/report.html", SOURCED});
  EXPECT_EQ(again.status, 125);
  EXPECT_THAT(again.err, HasSubstr("exists already; -f replaces it"));
}

TEST_F(Source, CodeWithoutLinesIsShownAsPtx) {
  const Outcome o = sonde({"source", "--kernels", "plain", SOURCED});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\*\* module_2\.ptx \(100\.0%)"))) << o.out;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"( +50\.0% +1 +100\.0% +7      bar\.sync 0;\n)"))) << o.out;
  EXPECT_THAT(o.out, Not(HasSubstr("sourced.cu")));
  EXPECT_THAT(o.err, HasSubstr("-lineinfo"));
}

// Code of line 0 and code before the first line are of no line, and stand in the function's own file.
TEST_F(Source, CodeOfNoLine) {
  Outcome o = sonde({"source", "-q", "--csv", SOURCED, "gaps"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out,
            "File,Line,Cost (%),Executed,Thread Efficiency (%),Branches,Diverged,Global Transactions,Ideal,Shared "
            "Transactions,Ideal Shared,Function\n"
            "kernels/part.h,3,54.5,2,100.0,0,0,4,4,0,0,gaps\n"
            "kernels/sourced.cu,,27.3,3,100.0,0,0,0,0,0,0,gaps\n"
            "kernels/sourced.cu,20,9.1,1,100.0,0,0,0,0,0,0,gaps\n"
            "kernels/sourced.cu,22,9.1,1,100.0,0,0,0,0,0,0,gaps\n");
  o = sonde({"source", "-o", folder_ + "/gaps.html", SOURCED, "gaps"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n +27\.3% +3 +100\.0% +\(no line\) in gaps\n)"))) << o.out;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n +27\.3% +3 +100\.0% +-  \(no line\) in gaps\n)"))) << o.out;
  EXPECT_THAT(o.out, Not(HasSubstr(":0 ")));
  EXPECT_THAT(o.err, Not(HasSubstr("shown as PTX")));
  const std::string html = read("gaps.html");
  EXPECT_THAT(html, HasSubstr("(no line)"));
  EXPECT_THAT(html, HasSubstr("id='f1l0'"));
  EXPECT_THAT(html, HasSubstr("href='#f1l0'"));
}

// Kernels that kernels launched are kernels in every report.
TEST_F(Source, LaunchesOfTheDevice) {
  Outcome o = sonde({"run", "-q", "--csv", "-r", "cuda_gpu_kern_sum", SOURCED, "nested"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n[\d.]+,\d+,2,[\d.,]+,leaf\n)"))) << o.out;
  EXPECT_TRUE(std::regex_search(o.out, std::regex(R"(\n[\d.]+,\d+,1,[\d.,]+,nested\n)"))) << o.out;
  // How long the host's call was before it is known of the host's launch alone.
  o = sonde({"run", "-q", "--csv", "-r", "cuda_kern_exec_sum", SOURCED, "nested"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("nested"));
  EXPECT_THAT(o.out, Not(HasSubstr("leaf")));
  // 16 instructions of line 8 in each of two blocks, one thread each.
  o = sonde({"run", "-q", "--csv", "--source-level-analysis", "instruction_execution", SOURCED, "nested"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out,
            "File,Line,Executed,Threads,Not Predicated Off,Thread Efficiency (%),Function\n"
            "kernels/nested.cu,8,32,32,32,3.1,nested\n"
            "kernels/nested.cu,4,2,64,64,100.0,leaf\n"
            "kernels/nested.cu,9,2,2,2,3.1,nested\n");
}

TEST_F(Source, WhatCostsMoreThanItHasTo) {
  const Outcome o = sonde({"source", "-q", SOURCED, "lines-only"});
  EXPECT_EQ(o.status, 0) << o.err;
  // 56 of 64 transactions, and half of 16 warp instructions, of a cost of 112.
  EXPECT_TRUE(std::regex_search(
      o.out,
      std::regex(R"(Cost Above the Ideal\n +50\.0%  sourced\.cu:5  64 transactions with global memory where 8 would )"
                 R"(do \(8\.0x\)[^\n]*\n +7\.1%  sourced\.cu:5  50\.0% of the warps' threads)")))
      << o.out;
  const Outcome plain = sonde({"source", "-q", "--kernels", "plain", SOURCED});
  EXPECT_THAT(plain.out, HasSubstr("Nothing that is worth a percent of the cost."));
}

TEST_F(Source, NvprofsAnalyses) {
  const std::vector<std::string> first = {"run", "-q", "--csv", "--source-level-analysis"};
  const auto run = [&](const std::string& what) {
    std::vector<std::string> arguments = first;
    arguments.insert(arguments.end(), {what, SOURCED, "lines-only"});
    const Outcome o = sonde(arguments);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  };
  EXPECT_EQ(run("global_access"),
            "File,Line,Executed,Threads,Transactions,Ideal Transactions,Transactions/Access,Efficiency (%),Function\n"
            "kernels/sourced.cu,5,4,64,64,8,16.000000,12.5,scale(float*)\n");
  EXPECT_EQ(run("branch"),
            "File,Line,Executed,Diverged,Divergence (%),Threads,Function\n"
            "kernels/sourced.cu,4,4,4,100.0,128,scale(float*)\n");
  EXPECT_EQ(run("shared_access,instruction_execution"),
            "File,Line,Executed,Threads,Not Predicated Off,Thread Efficiency (%),Function\n"
            "kernels/sourced.cu,3,16,512,512,100.0,scale(float*)\n"
            "kernels/sourced.cu,5,16,256,256,50.0,scale(float*)\n"
            "kernels/sourced.cu,4,12,384,320,83.3,scale(float*)\n"
            "kernels/sourced.cu,7,4,128,128,100.0,scale(float*)\n");
  Outcome bad = sonde({"run", "--source-level-analysis", "pc_sampling", SOURCED});
  EXPECT_EQ(bad.status, 125);
  EXPECT_THAT(bad.err, HasSubstr("no clock that could be sampled"));
  bad = sonde({"run", "--source-level-analysis", "branches", SOURCED});
  EXPECT_EQ(bad.status, 125);
  EXPECT_THAT(bad.err, HasSubstr("there are global_access, shared_access, branch, instruction_execution and all"));
}

TEST_F(Source, KeptInATraceFile) {
  Outcome o = sonde({"run", "-q", "--no-report", "--source-level-analysis", "all", "-o", folder_ + "/t.sonde", SOURCED,
                     "lines-only"});
  EXPECT_EQ(o.status, 0) << o.err;
  o = sonde({"report", "-q", folder_ + "/t.sonde", "-r", "source_lines", "--csv"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_EQ(o.out, kLines);
}

TEST_F(Source, Mistakes) {
  Outcome o = sonde({"source"});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("sonde source [OPTIONS] APPLICATION"));
  o = sonde({"source", "--source-dir", folder_ + "/none", SOURCED});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("there is no such folder"));
  o = sonde({"source", folder_ + "/no-program"});
  EXPECT_EQ(o.status, 127);
  EXPECT_THAT(o.err, HasSubstr("there is no such program"));
  o = sonde({"source", folder_});
  EXPECT_EQ(o.status, 126);
  o = sonde({"source", "true"});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.err, HasSubstr("the application never initialised CUDA"));
  // The source is not where it was compiled.
  o = sonde({"source", SOURCED, "lines-only"});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.out, HasSubstr("The file was not found; --source-dir names folders to look in."));
  o = sonde({"source", "--kernels", "nothing", SOURCED});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.err, HasSubstr("no function matches --kernels"));
}

}  // namespace
}  // namespace sonde::test
