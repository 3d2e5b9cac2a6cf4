// SPDX-License-Identifier: Apache-2.0
//
// Against the compilers themselves, where they are installed: what nvcc and
// clang emit must be read, pass the checker and survive printing (ptxas must
// take the printed text), and the checker must judge single instructions as
// ptxas does.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptx/check.h"
#include "ptx/parser.h"
#include "ptx/print.h"
#include "structure.h"

namespace sonde::ptx {
namespace {

namespace fs = std::filesystem;

int shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()); }

// The program's path, or "" when it is not installed. A wrapper on the PATH may have outlived its toolkit.
std::string tool(const std::string& name) {
  for (const std::string& candidate : {name, "/usr/local/cuda/bin/" + name})
    if (shell(candidate + " --version") == 0) return candidate;
  return {};
}

class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "sonde-ptx-XXXXXX").string();
    const char* made = mkdtemp(pattern.data());
    dir_ = made ? made : "";
  }
  ~Scratch() {
    if (!dir_.empty()) fs::remove_all(dir_);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  std::string path(const std::string& name) const { return (dir_ / name).string(); }

 private:
  fs::path dir_;
};

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

const char* const kSource = R"(
#ifndef __CUDACC_VER_MAJOR__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define TID __nvvm_read_ptx_sreg_tid_x()
#define SYNC __nvvm_bar_sync(0)
#else
#define TID threadIdx.x
#define SYNC __syncthreads()
#endif
struct Big { int a; double b; char c[5]; };
__constant__ float coefficients[16] = {1.5f, 2.5f};
__device__ int counters[4] = {1, 2, 3};
__device__ int* where = &counters[2];
__device__ __noinline__ float scale(float x, Big s) { return x * s.a + (float)s.b; }
__device__ __noinline__ float shift(float x, Big s) { return x + s.c[3]; }
typedef float (*Function)(float, Big);
__device__ Function table[2] = {scale, shift};

extern "C" __global__ void branches(float* p, int n, Big s, int choice) {
  __shared__ float tile[256];
  int t = TID;
  tile[t] = p[t] * coefficients[t & 15];
  SYNC;
  float v = table[choice & 1](tile[255 - t], s);
  switch (choice) {
    case 0: v += 1; break;
    case 1: v *= 2; break;
    case 2: v /= 3; break;
    case 3: v = -v; break;
    case 4: v -= 7; break;
    case 5: v = v * v; break;
    case 6: v = v + n; break;
    default: v = 0;
  }
  char buffer[40];
  for (int i = 0; i < n; ++i) buffer[(i * 7) % 40] = (char)v;
  p[t] = v + buffer[choice % 40] + *where;
}

extern "C" __global__ void inlineAssembly(unsigned* p, int n) {
  unsigned a = p[0], b;
  for (int i = 0; i < 2; ++i)
    asm volatile("{ .reg .pred q; .reg .b32 t; setp.ne.b32 q, %1, 0; @q add.u32 t, %1, 1; mov.b32 %0, t; }" : "=r"(b) : "r"(a + n));
  asm volatile("{ .reg .pred q; setp.eq.b32 q, %0, 5; }" ::"r"(b));
  p[1] = b;
}

extern "C" __global__ void integers(long long* p, unsigned short h) {
  p[0] = __builtin_popcountll(p[1]) + (p[2] / (p[3] | 1)) + (p[4] % (p[5] | 1)) + (p[6] >> (h & 63));
  p[7] = __builtin_clzll(p[8] | 1) + (h * 3);
}
)";

void acceptCompiled(const std::string& text, const std::string& name, const std::string& ptxas, const std::string& arch,
                    const Scratch& s) {
  const auto first = parse(text);
  for (const auto& d : first.diagnostics) ADD_FAILURE() << format(d, name);
  ASSERT_TRUE(first.ok());
  EXPECT_GE(first.module.functions.size(), 3u);
  for (const auto& d : check(first.module)) ADD_FAILURE() << format(d, name);
  const std::string printed = print(first.module);
  const auto second = parse(printed);
  for (const auto& d : second.diagnostics) ADD_FAILURE() << name << " printed: " << format(d);
  EXPECT_EQ(ModuleComparison(first.module, second.module).difference(), "") << name;
  if (!ptxas.empty()) {
    EXPECT_EQ(shell(ptxas + " -arch=" + arch + " " + s.write("printed.ptx", printed) + " -o " + s.path("out.cubin")), 0)
        << printed;
  }
}

TEST(Toolkit, WhatNvccEmits) {
  const std::string nvcc = tool("nvcc");
  if (nvcc.empty()) GTEST_SKIP() << "nvcc is not installed";
  const Scratch s;
  const std::string source = s.write("k.cu", kSource);
  for (const char* options :
       {"-arch=compute_80", "-arch=compute_90 -lineinfo", "-arch=compute_80 -G", "-arch=compute_75 -rdc=true"}) {
    ASSERT_EQ(shell(nvcc + " " + options + " -ptx " + source + " -o " + s.path("k.ptx")), 0) << options;
    const std::string number = std::string(options).substr(14, 2);
    acceptCompiled(slurp(s.path("k.ptx")), options, tool("ptxas"),
                   "sm_" + number + (std::string(options).find("-rdc") != std::string::npos ? " -c" : ""), s);
  }
}

TEST(Toolkit, WhatClangEmits) {
  const std::string clang = tool("clang++-19");
  if (clang.empty()) GTEST_SKIP() << "clang++-19 is not installed";
  const Scratch s;
  const std::string source = s.write("k.cu", kSource);
  for (const char* options : {"-O0", "-O2", "-O2 -g", "-O1 -gline-tables-only"}) {
    ASSERT_EQ(shell(clang +
                    " -x cuda -nocudainc -nocudalib --cuda-path=/nonexistent -Xclang -target-sdk-version=12.3 "
                    "--cuda-device-only -S "
                    "--cuda-gpu-arch=sm_80 " +
                    std::string(options) + " " + source + " -o " + s.path("k.ptx")),
              0)
        << options;
    acceptCompiled(slurp(s.path("k.ptx")), std::string("clang ") + options, tool("ptxas"), "sm_80", s);
  }
}

TEST(Toolkit, SameVerdictsAsPtxas) {
  const std::string ptxas = tool("ptxas");
  if (ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
  const Scratch s;
  const std::string head =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.global .u32 gv; .shared .u32 sv; .const .u32 cv;\n"
      ".func (.param .b32 r) fn(.param .b32 a) { ret; }\n.visible .entry k(.param .u64 p, .param .u32 n) {\n"
      ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg "
      ".s32 %s<9>;\n"
      ".param .b32 pv;\n";
  for (const char* instruction : {
           "add.s32 %r1, %r2, %rd1;",
           "add.s32 %r1, %s2, 5;",
           "add.f32 %f1, %f2, 1;",
           "add.f32 %f1, %r2, 1.0;",
           "add.u32 %f1, %r1, %r2;",
           "add.u32 %r1, %tid.x, 1;",
           "mov.u32 %r1, %f1;",
           "mov.b32 %r1, %f1;",
           "mov.u32 %r1, %tid;",
           "mov.b32 %r1, 1.0;",
           "ld.global.u64 %r1, [%rd1];",
           "ld.global.u32 %rd1, [%rd1];",
           "ld.global.u32 %f1, [%rd1];",
           "st.global.f32 [%rd1], 1;",
           "st.global.f32 [%rd1], %r1;",
           "st.const.u32 [cv], %r1;",
           "ld.relaxed.global.u32 %r1, [%rd1];",
           "cvt.f32.s32 %f1, %r1;",
           "cvt.rn.f32.s32 %f1, %r1;",
           "cvt.rn.f64.f32 %d1, %f1;",
           "cvt.u32.u16 %r1, %r2;",
           "cvt.rzi.s32.f32 %r1, %f1;",
           "mul.s32 %r1, %r1, %r1;",
           "mul.wide.s32 %r1, %r1, %r1;",
           "mul.wide.s32 %rd1, %r1, %r1;",
           "div.f32 %f1, %f1, %f2;",
           "setp.lt.b32 %p1, %r1, %r2;",
           "setp.eq.b32 %p1, %r1, %r2;",
           "setp.ltu.s32 %p1, %r1, %r2;",
           "selp.f32 %f1, %f2, %f3, %r1;",
           "shl.b64 %rd1, %rd2, %rd1;",
           "shl.b64 %rd1, %rd2, %r1;",
           "atom.add.u32 _, [%rd1], 1;",
           "atom.exch.u32 %r1, [%rd1], %r2;",
           "atom.cas.b32 %r1, [%rd1], %r2;",
           "red.exch.b32 [%rd1], %r2;",
           "bar.sync 16;",
           "bar.sync 15;",
           "fence.sc;",
           "fence.sc.cta;",
           "vote.ballot.b32 %r1, %p1;",
           "vote.sync.ballot.b32 %r1, !%p1, -1;",
           "shfl.sync.down.b32 _|%p1, %r2, 1, 31, -1;",
           "call (pv), fn, (pv);",
           "call (pv), fn, (pv, pv);",
           "foo %r1;",
           "ld.global.xyz.u32 %r1, [%rd1];",
           "add.s32 %r1, %r9, 1;",
           "bra NOWHERE;",
           "ret 1;",
           "add.s32 %r1, %r2;",
           "mov.f32 %f1, 0f3F80;",
           "max.f32 %f1, %f2, %f3, %f4;",
       }) {
    const std::string text = head + instruction + "\nret;\n}\n";
    auto ours = parse(text);
    if (ours.ok()) ours.diagnostics = check(ours.module);
    const bool theirs = shell(ptxas + " -arch=sm_90a " + s.write("one.ptx", text) + " -o " + s.path("one.cubin")) == 0;
    EXPECT_EQ(ours.ok(), theirs) << instruction << (ours.diagnostics.empty() ? "" : "\n" + format(ours.diagnostics[0]));
  }
}

}  // namespace
}  // namespace sonde::ptx
