// SPDX-License-Identifier: Apache-2.0
//
// The application's floating-point settings are not the device's.
#include <xmmintrin.h>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

constexpr const char* kHalve = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry halve(.param .u64 values)
{
  .reg .b32 %r<3>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [values];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f1, [%rd3];
  mul.rn.f32 %f2, %f1, 0f3F000000;
  st.global.f32 [%rd3], %f2;
  ret;
}
)";

TEST(FloatControl, SubnormalsAndRoundingAreTheDevices) {
  Kernels k(kHalve);
  DeviceArray<uint32_t> values(32, 0x00800000);  // the smallest normal number; its half is subnormal
  values[1] = 3;                                 // 1.5 units: to nearest even is 2
  values[2] = 1;                                 // half a unit: to nearest even is 0
  const unsigned before = _mm_getcsr();
  const unsigned flushing = (before & ~0x6000u) | 0x8040u | 0x4000u;  // flush, denormals are zero, round up
  _mm_setcsr(flushing);
  const LaunchOutcome out = k.run("halve", {1}, {32}, values.address);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  ASSERT_EQ(out.error, 0) << out.message;
  EXPECT_EQ(values[0], 0x00400000u);
  EXPECT_EQ(values[1], 2u);
  EXPECT_EQ(values[2], 0u);
  EXPECT_EQ(after & 0xffc0u, flushing & 0xffc0u);  // and the application keeps its own
}

}  // namespace
}  // namespace sonde::softgpu::exec
