// SPDX-License-Identifier: Apache-2.0
//
// Kernels for the tests.
#pragma once

// out[i] = a[i] + b[i] for i < n
inline const char* const kVectorAdd = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [out];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  mul.wide.s32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.u32 %r6, [%rd5];
  ld.global.u32 %r7, [%rd6];
  add.s32 %r6, %r6, %r7;
  st.global.u32 [%rd7], %r6;
DONE:
  ret;
}
)";

// empty(): nothing. store(p, v): *p = v. trapped(): trap.
inline const char* const kSmall = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 answer = 42;
.visible .const .align 4 .u32 factor = 3;
.visible .global .align 4 .b8 table[400];
.visible .entry empty()
{
  ret;
}
.visible .entry store(.param .u64 p, .param .u32 v)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry scale(.param .u64 p)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.global.u32 %r1, [answer];
  ld.const.u32 %r2, [factor];
  mul.lo.s32 %r3, %r1, %r2;
  st.global.u32 [%rd1], %r3;
  ret;
}
.visible .entry trapped()
{
  trap;
  ret;
}
)";
