// SPDX-License-Identifier: Apache-2.0
//
// Atomic operations of a warp on one place: the same as one lane after the other.
#include <fmt/format.h>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

struct Operation {
  const char* name;
  const char* type;
};

// Lanes of a mask: on data[0] and the shared word all with one value, on data[1] and the other shared word each with
// its own. With results (of add): data[2] and data[3] too, and what each lane got.
std::string kernelOf(const Operation& op, bool results) {
  const bool wide = std::string_view(op.type).ends_with("64");
  const char* bits = wide ? "b64" : "b32";
  std::string body =
      fmt::format(R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 mask, .param .{0} same)
{{
  .reg .b64 a, o, w; .reg .b32 t, m; .reg .{0} x, y, v; .reg .pred p, first;
  .shared .align 8 .{0} s[2];
  ld.param.u64 a, [data];
  ld.param.u64 o, [out];
  ld.param.u32 m, [mask];
  ld.param.{0} y, [same];
  mov.u32 t, %tid.x;
  setp.eq.u32 first, t, 0;
  @first ld.global.{0} v, [a];
  @first st.shared.{0} [s], v;
  @first st.shared.{0} [s+{1}], v;
  bar.warp.sync 0xffffffff;
  shr.u32 m, m, t;
  and.b32 m, m, 1;
  setp.eq.u32 p, m, 0;
  @p bra END;
  mad.lo.u32 m, t, 0x9e3779b1, 0x1234567;
  {2}
  red.global.{3}.{4} [a], y;
  red.global.{3}.{4} [a+{1}], x;
  red.shared.{3}.{4} [s], y;
  red.shared.{3}.{4} [s+{1}], x;
)",
                  bits, wide ? 8 : 4, wide ? "cvt.u64.u32 x, m; mul.lo.u64 x, x, 0x100000001b3;" : "mov.b32 x, m;",
                  op.name, op.type);
  if (results)
    body += fmt::format(R"(  mad.wide.u32 w, t, {0}, o;
  atom.global.{1}.{2} v, [a+{3}], y;
  st.global.{4} [w], v;
  atom.global.{1}.{2} v, [a+{5}], x;
  st.global.{4} [w+{6}], v;
)",
                        wide ? 8 : 4, op.name, op.type, wide ? 16 : 8, bits, wide ? 24 : 12, wide ? 256 : 128);
  return body + fmt::format(R"(END:
  bar.warp.sync 0xffffffff;
  @!first bra OUT;
  ld.shared.{0} v, [s];
  st.global.{0} [a+{1}], v;
  ld.shared.{0} v, [s+{2}];
  st.global.{0} [a+{3}], v;
OUT:
  ret;
}}
)",
                            bits, wide ? 32 : 16, wide ? 8 : 4, wide ? 40 : 20);
}

template <class U>
U applied(std::string_view op, U old, U x) {
  using S = std::make_signed_t<U>;
  if (op == "add") return old + x;
  if (op == "and") return old & x;
  if (op == "or") return old | x;
  if (op == "xor") return old ^ x;
  if (op == "min") return std::min(old, x);
  if (op == "max") return std::max(old, x);
  if (op == "smin") return static_cast<U>(std::min(static_cast<S>(old), static_cast<S>(x)));
  return static_cast<U>(std::max(static_cast<S>(old), static_cast<S>(x)));
}

template <class U>
void check(const Operation& op) {
  const std::string name = std::string(op.type[0] == 's' && op.name[0] == 'm' ? "s" : "") + op.name;
  const bool results = name == "add";
  Kernels k(kernelOf(op, results));
  for (const uint32_t mask : {~0u, 0x1u, 0x80000000u, 0x00f3a081u, 0xffff0000u})
    for (const U same : {U{3}, static_cast<U>(0x80000000u), static_cast<U>(~U{0} - 5)}) {
      SCOPED_TRACE(fmt::format("{}.{} mask {:x} value {:x}", op.name, op.type, mask, same));
      const U start = static_cast<U>(0x7fffffff71234567ull);
      DeviceArray<U> data(6, start), out(64, U{7});
      const LaunchOutcome r = k.run("k", {1}, {32}, data.address, out.address, mask, same);
      ASSERT_EQ(r.error, 0) << r.message;
      U one = start, own = start;
      for (uint32_t t = 0; t < 32; ++t) {
        const bool on = mask >> t & 1;
        U x = t * 0x9e3779b1u + 0x1234567u;
        if (sizeof(U) == 8) x = static_cast<U>(x * 0x100000001b3ull);
        if (results) {
          EXPECT_EQ(out[t], on ? one : 7) << t;
          EXPECT_EQ(out[32 + t], on ? own : 7) << t;
        }
        if (!on) continue;
        one = applied<U>(name, one, same);
        own = applied<U>(name, own, x);
      }
      EXPECT_EQ(data[0], one);
      EXPECT_EQ(data[1], own);
      EXPECT_EQ(data[4], one);
      EXPECT_EQ(data[5], own);
      if (results) {
        EXPECT_EQ(data[2], one);
        EXPECT_EQ(data[3], own);
      }
    }
}

TEST(Atomics, OfAWarpOnOnePlace32) {
  for (const Operation& op : {Operation{"add", "u32"},
                              {"add", "s32"},
                              {"and", "b32"},
                              {"or", "b32"},
                              {"xor", "b32"},
                              {"min", "u32"},
                              {"max", "u32"},
                              {"min", "s32"},
                              {"max", "s32"}})
    check<uint32_t>(op);
}

TEST(Atomics, OfAWarpOnOnePlace64) {
  for (const Operation& op : {Operation{"add", "u64"},
                              {"and", "b64"},
                              {"or", "b64"},
                              {"xor", "b64"},
                              {"min", "u64"},
                              {"max", "u64"},
                              {"min", "s64"},
                              {"max", "s64"}})
    check<uint64_t>(op);
}

// Blocks on several threads: each of 4096 lanes adds 1 and gets a number of its own.
TEST(Atomics, EveryLaneGetsANumberOfItsOwn) {
  Kernels k(R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 counter, .param .u64 out)
{
  .reg .b64 a, o; .reg .b32 n;
  ld.param.u64 a, [counter];
  ld.param.u64 o, [out];
  atom.global.add.u32 n, [a], 1;
  mad.wide.u32 o, n, 4, o;
  red.global.add.u32 [o], 1;
  ret;
}
)");
  DeviceArray<uint32_t> counter(1), out(4096);
  const LaunchOutcome r = k.run("k", {64}, {64}, counter.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(counter[0], 4096u);
  for (uint32_t i = 0; i < 4096; ++i) ASSERT_EQ(out[i], 1u) << i;
}

// An address that is not the device's is a fault with its address, as before.
TEST(Atomics, OnePlaceOutsideTheDevicesMemory) {
  Kernels k(R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 where)
{
  .reg .b64 a;
  ld.param.u64 a, [where];
  red.global.add.u32 [a], 1;
  ret;
}
)");
  const LaunchOutcome outside = k.run("k", {1}, {32}, uint64_t{0x1000});
  EXPECT_EQ(outside.error, 700);
  EXPECT_EQ(outside.fault.address, 0x1000u);
  DeviceArray<uint32_t> data(2);
  EXPECT_EQ(k.run("k", {1}, {32}, data.address + 2).error, 716);
}

}  // namespace
}  // namespace sonde::softgpu::exec
