// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/kernels.h"

namespace sonde::platform::nvidia {

// sonde_spin: writes the device time at its start and at its end, `ns` later.
// sonde_ping: answers each of `count` steps of a word of the host with the time
// at which it saw it; leaves at `limit` ns after its start. The time is read
// behind a branch on the word: beside the load it would be that of the asking.
// sonde_stamp: writes the device time, its own name and its number (from 1; the
// counter is the device's) into the next place of a ring in the host's memory.
const char kCalibrationPtx[] = R"(.version 6.3
.target sm_50
.address_size 64

.visible .entry sonde_spin(.param .u64 out, .param .u64 ns)
{
  .reg .pred %p;
  .reg .b64 %r<6>;
  mov.u64 %r0, %globaltimer;
  ld.param.u64 %r1, [out];
  ld.param.u64 %r2, [ns];
  cvta.to.global.u64 %r1, %r1;
  add.u64 %r3, %r0, %r2;
again:
  mov.u64 %r4, %globaltimer;
  setp.lt.u64 %p, %r4, %r3;
  @%p bra again;
  st.global.u64 [%r1], %r0;
  st.global.u64 [%r1+8], %r4;
  ret;
}

.visible .entry sonde_ping(.param .u64 word, .param .u64 out, .param .u32 first, .param .u32 count, .param .u64 limit)
{
  .reg .pred %p<3>;
  .reg .b32 %n<5>;
  .reg .b64 %r<8>;
  mov.u64 %r0, %globaltimer;
  ld.param.u64 %r1, [word];
  ld.param.u64 %r2, [out];
  ld.param.u32 %n0, [first];
  ld.param.u32 %n1, [count];
  ld.param.u64 %r3, [limit];
  cvta.to.global.u64 %r1, %r1;
  cvta.to.global.u64 %r2, %r2;
  add.u64 %r3, %r0, %r3;
  add.u32 %n1, %n0, %n1;
wait:
  ld.volatile.global.u32 %n2, [%r1];
  setp.ge.u32 %p1, %n2, %n0;
  @%p1 bra seen;
  mov.u64 %r4, %globaltimer;
  setp.lt.u64 %p0, %r4, %r3;
  @%p0 bra wait;
  bra done;
seen:
  mov.u64 %r4, %globaltimer;
  st.volatile.global.u64 [%r2], %r4;
  membar.sys;
  add.u64 %r2, %r2, 8;
  add.u32 %n0, %n0, 1;
  setp.lt.u32 %p2, %n0, %n1;
  @%p2 bra wait;
done:
  ret;
}

.visible .entry sonde_stamp(.param .u64 counter, .param .u64 ring, .param .u32 mask, .param .u32 name)
{
  .reg .b32 %n<4>;
  .reg .b64 %r<5>;
  mov.u64 %r0, %globaltimer;
  ld.param.u64 %r1, [counter];
  ld.param.u64 %r2, [ring];
  ld.param.u32 %n0, [mask];
  ld.param.u32 %n1, [name];
  cvta.to.global.u64 %r1, %r1;
  cvta.to.global.u64 %r2, %r2;
  atom.global.add.u32 %n2, [%r1], 1;
  and.b32 %n3, %n2, %n0;
  mul.wide.u32 %r3, %n3, 16;
  add.u64 %r2, %r2, %r3;
  add.u32 %n2, %n2, 1;
  st.global.u64 [%r2], %r0;
  st.global.u32 [%r2+8], %n1;
  membar.sys;
  st.volatile.global.u32 [%r2+12], %n2;
  ret;
}
)";

}  // namespace sonde::platform::nvidia
