// SPDX-License-Identifier: Apache-2.0
//
// Functions of the device runtime library by which code without the header of
// cooperative groups (Numba) waits for a whole grid. Linked to modules that
// call them. The grid's counter lies behind %envreg1 and %envreg2: a block adds
// 1, the first one what is missing to 2^31, and bit 31 turns over with the last.
#pragma once

namespace sonde::softgpu::exec {

inline constexpr const char* kGridSyncPtx = R"(.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  .reg .pred %p<2>;
  ld.param.u32 %r1, [scope];
  setp.ne.u32 %p1, %r1, 1;
  mov.u32 %r2, %envreg2;
  mov.u32 %r3, %envreg1;
  mov.b64 %rd1, {%r2, %r3};
  selp.b64 %rd1, 0, %rd1, %p1;
  st.param.b64 [handle], %rd1;
  ret;
}
.visible .func (.param .b32 status) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .b32 %r<16>;
  .reg .b64 %rd<3>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [handle];
  mov.u32 %r1, 1;
  setp.eq.u64 %p1, %rd1, 0;
  @%p1 bra DONE;
  barrier.sync 0;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %tid.y;
  mov.u32 %r4, %tid.z;
  or.b32 %r2, %r2, %r3;
  or.b32 %r2, %r2, %r4;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra MET;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %nctaid.y;
  mov.u32 %r4, %nctaid.z;
  mul.lo.u32 %r2, %r2, %r3;
  mul.lo.u32 %r2, %r2, %r4;
  sub.u32 %r2, 0x80000001, %r2;
  mov.u32 %r5, %ctaid.x;
  mov.u32 %r6, %ctaid.y;
  mov.u32 %r7, %ctaid.z;
  or.b32 %r5, %r5, %r6;
  or.b32 %r5, %r5, %r7;
  setp.eq.u32 %p2, %r5, 0;
  selp.b32 %r2, %r2, 1, %p2;
  atom.add.acq_rel.gpu.u32 %r8, [%rd1+4], %r2;
AGAIN:
  ld.acquire.gpu.u32 %r9, [%rd1+4];
  xor.b32 %r9, %r9, %r8;
  setp.ge.s32 %p3, %r9, 0;
  @%p3 bra AGAIN;
MET:
  barrier.sync 0;
  mov.u32 %r1, 0;
DONE:
  st.param.b32 [status], %r1;
  ret;
}
)";

}  // namespace sonde::softgpu::exec
