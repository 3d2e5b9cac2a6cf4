// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

// k(p): the body with %tid.x in %t, its four bytes at p in %a, and shared memory of 64 words.
std::string kernel(const std::string& body) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
  .shared .align 4 .b8 words[256];
  .reg .b32 %t, %s, %v, %w<4>;
  .reg .b64 %p, %a, %o;
  .reg .pred %q;
  ld.param.u64 %p, [p];
  mov.u32 %t, %tid.x;
  mov.u32 %s, words;
  shl.b32 %v, %t, 2;
  add.u32 %s, %s, %v;
  mul.wide.u32 %o, %t, 4;
  add.u64 %a, %p, %o;
)" + body +
         "\n  ret;\n}\n";
}

class Checks : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxCreate_v4(&context_, nullptr, 0, 0), CUDA_SUCCESS);
  }
  void TearDown() override { cuCtxDestroy(context_); }

  // What a launch with this many threads says on stderr; `bytes` at p, the first `written` of them set to 0.
  std::string run(const std::string& body, unsigned threads, size_t bytes, size_t written) {
    CUmodule module;
    CUfunction f;
    CUdeviceptr p = 0;
    EXPECT_EQ(cuModuleLoadData(&module, kernel(body).c_str()), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleGetFunction(&f, module, "k"), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&p, bytes), CUDA_SUCCESS);
    if (written) EXPECT_EQ(cuMemsetD8(p, 0, written), CUDA_SUCCESS);
    void* args[] = {&p};
    testing::internal::CaptureStderr();
    EXPECT_EQ(cuLaunchKernel(f, 1, 1, 1, threads, 1, 1, 0, nullptr, args, nullptr), CUDA_SUCCESS);
    result_ = cuCtxSynchronize();
    return testing::internal::GetCapturedStderr();
  }
  CUcontext context_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Checks, AccessBehindAnAllocation) {
  // 30 words: the last two threads are beyond, within the page.
  const std::string text = run("  st.global.u32 [%a], %t;", 32, 120, 0);
  EXPECT_EQ(result_, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(has(text, "a write of 4 bytes, just beyond the end of an allocation of 120 bytes")) << text;
  EXPECT_TRUE(has(text, "thread (30,0,0)")) << text;
}

TEST_F(Checks, AccessAcrossTheEnd) {
  const std::string text = run("  ld.global.u32 %v, [%a];", 30, 118, 118);
  EXPECT_EQ(result_, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(has(text, "across the end of an allocation of 118 bytes")) << text;
}

TEST_F(Checks, ReadOfWhatNobodyWrote) {
  const std::string text = run("  ld.global.u32 %v, [%a];\n  st.global.u32 [%a], %v;", 32, 128, 127);
  EXPECT_EQ(result_, CUDA_SUCCESS);
  EXPECT_TRUE(has(text, "uninitialized memory: kernel 'k', block (0,0,0), thread (31,0,0) reads 4 bytes")) << text;
  EXPECT_TRUE(has(text, "byte 124 of an allocation of 128")) << text;
}

TEST_F(Checks, WhatKernelsAndSetsWroteMayBeRead) {
  EXPECT_EQ(run("  ld.global.u32 %v, [%a];\n  st.global.u32 [%a], %v;", 32, 128, 128), "");
  EXPECT_EQ(run("  st.global.u32 [%a], %t;\n  ld.global.u32 %v, [%a];", 32, 128, 0), "");
  EXPECT_EQ(result_, CUDA_SUCCESS);
}

// Each thread writes its word; the first one of the block reads the 40th.
constexpr const char* kWrite = "  st.shared.u32 [%s], %t;\n";
constexpr const char* kRead = "  setp.eq.u32 %q, %t, 0;\n  @%q ld.shared.u32 %v, [words+160];\n";

TEST_F(Checks, RaceBetweenWarps) {
  const std::string text = run(std::string(kWrite) +
                                   "  xor.b32 %w0, %t, 32;\n  shl.b32 %w0, %w0, 2;\n"
                                   "  mov.u32 %w1, words;\n  add.u32 %w0, %w0, %w1;\n  ld.shared.u32 %v, [%w0];",
                               64, 256, 0);
  EXPECT_EQ(result_, CUDA_SUCCESS);
  EXPECT_TRUE(has(text, "race in shared memory: kernel 'k', block (0,0,0)")) << text;
  EXPECT_TRUE(has(text, "without a barrier between them")) << text;
}

TEST_F(Checks, RaceWithinAWarp) {
  const std::string text =
      run(std::string(kWrite) + "  setp.eq.u32 %q, %t, 0;\n  @%q ld.shared.u32 %v, [words+20];", 32, 128, 0);
  EXPECT_TRUE(has(text, "thread (0,0,0) reads byte 20")) << text;
  EXPECT_TRUE(has(text, "which thread (5,0,0) wrote")) << text;
}

TEST_F(Checks, BarriersAndAtomicsAreNoRaces) {
  EXPECT_EQ(run(std::string(kWrite) + "  bar.sync 0;\n" + kRead, 64, 256, 0), "");
  EXPECT_EQ(run(std::string(kWrite) + "  bar.warp.sync 0xffffffff;\n  setp.eq.u32 %q, %t, 0;\n"
                                      "  @%q ld.shared.u32 %v, [words+20];",
                32, 128, 0),
            "");
  EXPECT_EQ(run("  red.shared.add.u32 [words], 1;", 64, 256, 0), "");
}

TEST_F(Checks, BarrierThatSomeThreadsMiss) {
  const std::string text = run("  setp.gt.u32 %q, %t, 47;\n  @%q bra END;\n  bar.sync 0;\nEND:", 64, 256, 0);
  EXPECT_TRUE(has(text, "barrier error: kernel 'k', block (0,0,0): 16 of 32 threads of warp 1 reach the barrier"))
      << text;
}

TEST_F(Checks, ThreadsThatHaveLeftAreNotMissed) {
  EXPECT_EQ(run("  setp.gt.u32 %q, %t, 47;\n  @%q ret;\n  bar.sync 0;", 64, 256, 0), "");
}

TEST_F(Checks, SyncwarpWithoutItsCaller) {
  const std::string text = run("  setp.gt.u32 %q, %t, 16;\n  @%q bra END;\n  bar.warp.sync 0xffff;\nEND:", 32, 128, 0);
  EXPECT_TRUE(has(text, "thread (16,0,0) calls __syncwarp with the mask 0x0000ffff, which does not name it")) << text;
}

}  // namespace
