// SPDX-License-Identifier: Apache-2.0
//
// flow_bench [FILE…]: CPU time of the control-flow analysis (jit::Flow) alone, of the functions of PTX files and of
// made-up kernels with many compare-and-swap loops, which all may wait for each other.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>

#include "ptx/parser.h"
#include "softgpu/jit/flow.h"

namespace {

double cpuMs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

std::string loops(int n) {
  std::string s = fmt::format(
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 q)\n{{\n"
      ".reg .b64 %rd<8>;\n.reg .b32 %r<{}>;\n.reg .pred %p<{}>;\nld.param.u64 %rd1, [p];\nld.param.u32 %r1, [q];\n"
      "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n",
      4 * n + 8, n + 1);
  for (int i = 0; i < n; ++i)
    s += fmt::format(
        "ld.global.u32 %r{0}, [%rd3];\nL{3}:\nadd.u32 %r{1}, %r{0}, %r1;\natom.global.cas.b32 %r{2}, [%rd3], %r{0}, "
        "%r{1};\nsetp.ne.u32 %p{3}, %r{2}, %r{0};\nmov.u32 %r{0}, %r{2};\n@%p{3} bra L{3};\n",
        4 * i + 4, 4 * i + 5, 4 * i + 6, i);
  return s + "ret;\n}\n";
}

void analyse(const std::string& name, const std::string& text) {
  const auto parsed = sonde::ptx::parse(text);
  if (!parsed.ok()) {
    std::printf("%s: cannot be read\n", name.c_str());
    return;
  }
  for (const auto& function : parsed.module.functions) {
    if (!function.hasBody) continue;
    const double start = cpuMs();
    const sonde::softgpu::jit::Flow flow(function, function.isKernel);
    std::printf("%s: %s: %zu instructions, %zu blocks: %.1f ms\n", name.c_str(), function.name.c_str(),
                function.body.size(), flow.blocks.size(), cpuMs() - start);
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i]);
    std::stringstream text;
    text << in.rdbuf();
    analyse(argv[i], text.str());
  }
  if (argc == 1)
    for (const int n : {250, 500, 1000, 2000, 4000}) analyse(fmt::format("{} loops", n), loops(n));
}
