// SPDX-License-Identifier: Apache-2.0
// A kernel of one thread that works page by page, as long as a test wants.
#pragma once

#include "um.h"

namespace um {

// work(p, pages, rounds, gate, done): waits until *gate is not 0 (pinned), adds 1
// to the first byte of each page, `rounds` times, and sets *done to 1.
inline constexpr const char* kWorkPtx = R"(
.version 4.1
.target sm_30
.address_size 64
.visible .entry work(.param .u64 p, .param .u32 pages, .param .u32 rounds, .param .u64 gate, .param .u64 done)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [pages];
  ld.param.u32 %r2, [rounds];
  ld.param.u64 %rd2, [gate];
  ld.param.u64 %rd3, [done];
WAIT:
  ld.volatile.global.u32 %r3, [%rd2];
  setp.eq.s32 %p1, %r3, 0;
  @%p1 bra WAIT;
ROUND:
  mov.u64 %rd4, %rd1;
  mov.u32 %r4, %r1;
PAGE:
  ld.volatile.global.u8 %r3, [%rd4];
  add.s32 %r3, %r3, 1;
  st.volatile.global.u8 [%rd4], %r3;
  add.s64 %rd4, %rd4, 4096;
  sub.s32 %r4, %r4, 1;
  setp.gt.s32 %p1, %r4, 0;
  @%p1 bra PAGE;
  sub.s32 %r2, %r2, 1;
  setp.gt.s32 %p1, %r2, 0;
  @%p1 bra ROUND;
  mov.u32 %r5, 1;
  st.volatile.global.u32 [%rd3], %r5;
  ret;
}
)";

// Needs a current context when it is made.
class Worker {
 public:
  Worker() {
    CUmodule module;
    EXPECT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kWorkPtx));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function_, module, "work"));
    EXPECT_EQ(CUDA_SUCCESS, cuMemAllocHost(reinterpret_cast<void**>(&flags_), 2 * sizeof *flags_));
    flags_[0] = flags_[1] = 0;
  }
  // Opens its gate at once, or when `open` is called.
  void launch(char* p, uint32_t pages, uint32_t rounds, bool atOnce = true, CUstream stream = nullptr) {
    flags_[1] = 0;
    flags_[0] = atOnce ? 1 : 0;
    const uint32_t *gate = flags_, *end = flags_ + 1;
    void* parameters[] = {&p, &pages, &rounds, &gate, &end};
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
  void open() { __atomic_store_n(flags_, 1, __ATOMIC_SEQ_CST); }
  bool done() const { return __atomic_load_n(flags_ + 1, __ATOMIC_SEQ_CST) != 0; }

 private:
  CUfunction function_ = nullptr;
  uint32_t* flags_ = nullptr;
};

}  // namespace um
