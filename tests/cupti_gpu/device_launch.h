// SPDX-License-Identifier: Apache-2.0
// PTX of kernels that launch kernels, as nvcc -rdc=true makes it, written by hand; and a client of their records.
#pragma once

#include <algorithm>

#include "tests/cupti/collector.h"
#include "tests/events/source_level.h"

namespace sonde::test {

// nvcc of today names these __cudaCDP2…, that of compute capability 3.5's time cuda….
inline std::string declarations(const std::string& prefix) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n"
         ".extern .func (.param .b64 r) " +
         prefix +
         "GetParameterBufferV2 (.param .b64 f, .param .align 4 .b8 g[12], "
         ".param .align 4 .b8 b[12], .param .b32 s);\n"
         ".extern .func (.param .b32 r) " +
         prefix +
         "LaunchDeviceV2 (.param .b64 p, .param .b64 s);\n"
         ".extern .func (.param .b32 r) " +
         prefix +
         "DeviceSynchronize ();\n"
         ".extern .func (.param .b32 r) " +
         prefix +
         "GetLastError ();\n"
         ".extern .func (.param .b32 r) " +
         prefix +
         "PeekAtLastError ();\n"
         // add(p, v): every thread adds v to the word at p.
         ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
         "  .reg .b64 %rd; .reg .b32 %r;\n"
         "  ld.param.u64 %rd, [p]; ld.param.u32 %r, [v];\n"
         "  red.global.add.u32 [%rd], %r;\n  ret;\n}\n"
         // note(p, v): the next free word behind p becomes v.
         ".visible .entry note(.param .u64 p, .param .u32 v)\n{\n"
         "  .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
         "  ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
         "  atom.global.add.u32 %r2, [%rd1], 1;\n"
         "  mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2+4], %r1;\n  ret;\n}\n";
}

struct Shape {
  unsigned x = 1, y = 1, z = 1;
  Shape(unsigned x1, unsigned y1 = 1, unsigned z1 = 1) : x(x1), y(y1), z(z1) {}
};

// A launch of `kernel`, whose parameters are a pointer and a word: the result in %r20, the buffer in %rd20.
inline std::string launchText(const std::string& prefix, const std::string& kernel, Shape grid, Shape block,
                              const std::string& pointer, const std::string& word, const std::string& stream = "0",
                              unsigned shared = 0) {
  static int number = 0;
  const std::string n = std::to_string(number++);
  auto dim3 = [](const std::string& name, Shape d) {
    return ".param .align 4 .b8 " + name + "[12]; st.param.b32 [" + name + "], " + std::to_string(d.x) +
           "; st.param.b32 [" + name + "+4], " + std::to_string(d.y) + "; st.param.b32 [" + name + "+8], " +
           std::to_string(d.z) + ";\n";
  };
  return "mov.u64 %rd20, " + kernel + ";\n{\n.param .b64 f; st.param.b64 [f], %rd20;\n" + dim3("g", grid) +
         dim3("b", block) + ".param .b32 s; st.param.b32 [s], " + std::to_string(shared) +
         ";\n.param .b64 q;\ncall.uni (q), " + prefix +
         "GetParameterBufferV2, (f, g, b, s);\nld.param.b64 %rd20, [q];\n}\n"
         "mov.u32 %r20, -1; setp.eq.s64 %p7, %rd20, 0; @%p7 bra $after" +
         n +
         ";\n"
         "st.u64 [%rd20], " +
         pointer + "; mov.u32 %r20, " + word +
         "; st.u32 [%rd20+8], %r20;\n"
         "{\n.param .b64 p0; st.param.b64 [p0], %rd20;\n.param .b64 t; st.param.b64 [t], " +
         stream + ";\n.param .b32 q;\ncall.uni (q), " + prefix +
         "LaunchDeviceV2, (p0, t);\nld.param.b32 %r20, [q];\n}\n"
         "$after" +
         n + ":\n";
}

inline std::string callText(const std::string& function, const std::string& result) {
  return "{\n.param .b32 q;\ncall.uni (q), " + function + ", ();\nld.param.b32 " + result + ", [q];\n}\n";
}

// k(p, n): %rd1 and %r1; %r2 block, %r3 thread.
inline std::string entry(const std::string& body, const std::string& name = "k") {
  return ".visible .entry " + name +
         "(.param .u64 p, .param .u32 n)\n{\n"
         ".reg .b64 %rd<32>; .reg .b32 %r<32>; .reg .pred %p<8>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;\n" +
         body + "ret;\n}\n";
}

class DeviceLaunch : public SourceSums {
 protected:
  CUresult start(CUfunction f, unsigned grid, unsigned block, CUdeviceptr p, uint32_t n = 0) {
    void* arguments[] = {&p, &n};
    const CUresult e = cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, nullptr, arguments, nullptr);
    return e != CUDA_SUCCESS ? e : cuCtxSynchronize();
  }
  std::vector<uint32_t> words(CUdeviceptr p, size_t n) {
    std::vector<uint32_t> out(n);
    EXPECT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(out.data(), p, n * 4));
    return out;
  }
};

using Words = std::vector<uint32_t>;

}  // namespace sonde::test
