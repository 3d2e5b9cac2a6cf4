// SPDX-License-Identifier: Apache-2.0
//
// Vector accesses that other blocks look at change as a whole.
#include <algorithm>
#include <string>

#include "device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

struct Case {
  const char* type;   // of the vector's elements
  unsigned elements;  // 8 or 16 bytes in all
  unsigned stride;    // bytes from a lane's vector to the next one's
  const char* load;
  const char* store;
};

// Block 0 writes vectors of equal elements, block 1 counts those whose elements differ. Both do a bounded number of
// rounds, so that one host thread suffices (and then sees nothing).
std::string kernelOf(const Case& c) {
  const std::string bits = std::string(c.type).substr(1), vector = ".v" + std::to_string(c.elements) + "." + c.type;
  std::string first, second, compare;
  for (unsigned i = 0; i < c.elements; ++i) {
    first += (i ? ", v" : "v");
    second += (i ? ", w" : "w") + std::to_string(i);
    if (i) compare += "  setp.ne.b" + bits + " q, w0, w" + std::to_string(i) + ";\n  @q add.u32 bad, bad, 1;\n";
  }
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 counter, .param .u32 rounds)
{
  .reg .b64 to, at; .reg .b32 i, n, b, t, bad; .reg .pred p, q;
  .reg .b)" +
         bits + " v, w<8>;\n" +
         R"(
  ld.param.u64 to, [data];
  ld.param.u64 at, [counter];
  ld.param.u32 n, [rounds];
  mov.u32 b, %ctaid.x;
  mov.u32 t, %laneid;
  mad.wide.u32 to, t, )" +
         std::to_string(c.stride) + ", to;\n" + R"(
  mov.u32 i, 0;
  mov.u32 bad, 0;
  setp.ne.u32 p, b, 0;
  @p bra READ;
WRITE:
  cvt.u)" +
         bits + ".u32 v, i;\n  " + c.store + vector + " [to], {" + first + "};\n" + R"(
  add.u32 i, i, 1;
  setp.lt.u32 p, i, n;
  @p bra WRITE;
  ret;
READ:
  )" + c.load +
         vector + " {" + second + "}, [to];\n" + compare + R"(
  add.u32 i, i, 1;
  setp.lt.u32 p, i, n;
  @p bra READ;
  red.global.add.u32 [at], bad;
  ret;
}
)";
}

class WholeVectors : public testing::TestWithParam<Case> {};

TEST_P(WholeVectors, AreNeverSeenHalfWritten) {
  const Case& c = GetParam();
  Kernels k(kernelOf(c));
  DeviceArray<uint64_t> data(1024);
  DeviceArray<uint32_t> bad(1);
  const LaunchOutcome out = k.run("k", {2}, {32}, data.address, bad.address, 100000u);
  ASSERT_EQ(out.error, 0) << out.message;
  EXPECT_EQ(bad[0], 0u);
  // The last round's number is in every element.
  const unsigned bytes = c.elements * std::stoul(std::string(c.type).substr(1)) / 8;
  const uint64_t wanted = std::string(c.type) == "u16"   ? 0x869f'869f'869f'869f
                          : std::string(c.type) == "u32" ? 0x0001'869f'0001'869f
                                                         : 0x1869f;
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned word = 0; word < bytes / 8; ++word) ASSERT_EQ(data[lane * c.stride / 8 + word], wanted) << lane;
}

constexpr const char *kRelaxedLoad = "ld.relaxed.gpu.global", *kRelaxedStore = "st.relaxed.gpu.global",
                     *kVolatileLoad = "ld.volatile.global", *kVolatileStore = "st.volatile.global";
INSTANTIATE_TEST_SUITE_P(All, WholeVectors,
                         testing::Values(Case{"u32", 2, 0, kRelaxedLoad, kRelaxedStore},     // one place
                                         Case{"u32", 2, 8, kRelaxedLoad, kRelaxedStore},     // a row
                                         Case{"u32", 2, 24, kRelaxedLoad, kRelaxedStore},    // scattered
                                         Case{"u64", 2, 0, kRelaxedLoad, kRelaxedStore},     //
                                         Case{"u64", 2, 16, kRelaxedLoad, kRelaxedStore},    //
                                         Case{"u64", 2, 48, kRelaxedLoad, kRelaxedStore},    //
                                         Case{"u32", 4, 16, kRelaxedLoad, kRelaxedStore},    //
                                         Case{"u32", 4, 80, kVolatileLoad, kVolatileStore},  //
                                         Case{"u16", 4, 8, "ld.acquire.gpu.global", "st.release.gpu.global"},
                                         Case{"u32", 2, 24, "ld.global.cg", "st.global.cg"}));

}  // namespace
}  // namespace sonde::softgpu::exec
