// SPDX-License-Identifier: Apache-2.0
//
// Cache events, and continuous mode while a kernel runs, through the public API.
#include <cstdlib>
#include <numeric>

#include "events_fixture.h"

namespace sonde::test {
namespace {

TEST_F(Events, CacheEventsByHand) {
  // Two blocks on two SMs read one row twice and write it once.
  const CUdeviceptr p = buffer(4096);
  CUfunction f = function(kernel("mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3;"
                                 "ld.global.u32 %r5, [%rd4]; ld.global.u32 %r6, [%rd4]; st.global.u32 [%rd4+128], %r6;"
                                 "atom.global.add.u32 %r7, [%rd1], %r6; st.global.u32 [%rd4+128], %r7;"),
                          "k");
  const auto v = count({"l1_global_load_hit",
                        "l1_global_load_miss",
                        "l2_subp0_total_read_sector_queries",
                        "l2_subp1_total_read_sector_queries",
                        "l2_subp2_total_read_sector_queries",
                        "l2_subp3_total_read_sector_queries",
                        "l2_subp0_atomic_queries",
                        "l2_subp1_atomic_queries",
                        "l2_subp2_atomic_queries",
                        "l2_subp3_atomic_queries",
                        "l2_subp0_total_write_sector_queries",
                        "l2_subp1_total_write_sector_queries",
                        "l2_subp2_total_write_sector_queries",
                        "l2_subp3_total_write_sector_queries",
                        "l2_subp0_write_sector_misses",
                        "l2_subp1_write_sector_misses",
                        "l2_subp2_write_sector_misses",
                        "l2_subp3_write_sector_misses",
                        "fb_subp0_read_sectors",
                        "fb_subp1_read_sectors"},
                       f, 2, 32, {p, 0});
  auto sum = [&](const std::string& suffix) {
    return std::accumulate(v.begin(), v.end(), uint64_t{0},
                           [&](uint64_t n, const auto& e) { return n + (e.first.ends_with(suffix) ? e.second : 0); });
  };
  EXPECT_EQ(8u, v.at("l1_global_load_hit"));
  EXPECT_EQ(8u, v.at("l1_global_load_miss"));
  EXPECT_EQ(8u + 2, sum("_total_read_sector_queries"));
  EXPECT_EQ(2u, sum("_atomic_queries"));
  EXPECT_EQ(16u, sum("_total_write_sector_queries"));
  EXPECT_EQ(4u, sum("_write_sector_misses"));
  EXPECT_EQ(4u, v.at("fb_subp0_read_sectors") + v.at("fb_subp1_read_sectors"));
}

TEST_F(Events, TextureFetchesByHand) {
  const CUdeviceptr texels = buffer(8 * 512), out = buffer(4096);
  std::vector<float> values(8 * 128);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  CU_OK(cuMemcpyHtoD(texels, values.data(), values.size() * 4));
  const CUtexObject texture = rows(texels);
  CUfunction f = function(fetchBetween(), "k");
  // Two warps of one block: the second finds everything in L1.
  const auto v = count({"tex0_cache_sector_queries", "tex0_cache_sector_misses", "l1_global_load_miss", "gld_request",
                        "l2_subp0_total_read_sector_queries", "l2_subp1_total_read_sector_queries",
                        "l2_subp2_total_read_sector_queries", "l2_subp3_total_read_sector_queries"},
                       f, 1, 64, {out, texture});
  const bool kepler = std::getenv("EVENTS_CAPABILITY") != nullptr;  // fetches whole lines: 2 of each row
  EXPECT_EQ(2 * 2 * 10u, v.at("tex0_cache_sector_queries"));
  EXPECT_EQ(10u, v.at("tex0_cache_sector_misses"));
  EXPECT_EQ(0u, v.at("l1_global_load_miss"));
  EXPECT_EQ(0u, v.at("gld_request"));
  uint64_t reads = 0;
  for (const auto& [name, n] : v) reads += name.starts_with("l2_") ? n : 0;
  EXPECT_EQ(kepler ? 16u : 10u, reads);
  // Counting fetches lane by lane, with the same values: the mean of four texels, twice.
  std::vector<float> got(64);
  CU_OK(cuMemcpyDtoH(got.data(), out, 256));
  for (uint32_t i = 0; i < 64; ++i) {
    const float at = static_cast<float>(i % 32);
    EXPECT_EQ(2 * (at + at + 1 + at + 128 + at + 129) / 4, got[i]) << i;
  }
  CU_OK(cuTexObjectDestroy(texture));
}

TEST_F(Events, ContinuousModeSeesARunningKernelProgress) {
  // The kernel waits for each step; the host lets it go on when it has seen the
  // step's trigger.
  constexpr uint32_t kSteps = 12;
  uint32_t* go = nullptr;
  CUdeviceptr at = 0;
  CU_OK(cuMemHostAlloc(reinterpret_cast<void**>(&go), 4, CU_MEMHOSTALLOC_DEVICEMAP));
  CU_OK(cuMemHostGetDevicePointer(&at, go, 0));
  *go = 0;
  CUfunction f =
      function(kernel("mov.u32 %r10, 0;\n"
                      "STEP: ld.volatile.global.u32 %r11, [%rd1]; setp.le.u32 %p1, %r11, %r10; @%p1 bra STEP;\n"
                      "pmevent 0; add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 12; @%p2 bra STEP;"),
               "k");
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS));
  CUpti_EventGroup g = group({"prof_trigger_00"});
  uint32_t on = 1;
  CUPTI_OK(cuptiEventGroupSetAttribute(g, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof on, &on));
  CUPTI_OK(cuptiEventGroupEnable(g));
  std::vector<uint64_t> values(instances(sm, CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT));
  uint64_t seen = 0;
  auto readMore = [&] {  // a read resets
    size_t bytes = values.size() * 8;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadEvent(g, CUPTI_EVENT_READ_FLAG_NONE, eventId("prof_trigger_00"), &bytes,
                                                      values.data()));
    seen += std::accumulate(values.begin(), values.end(), uint64_t{0});
  };
  uint64_t arguments[2] = {at, 0};
  void* pointers[2] = {&arguments[0], &arguments[1]};
  CU_OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, nullptr, pointers, nullptr));
  for (uint32_t step = 1; step <= kSteps; ++step) {
    readMore();
    EXPECT_EQ(step - 1, seen);
    __atomic_store_n(go, step, __ATOMIC_RELEASE);
    while (seen < step && !HasFatalFailure()) readMore();
    EXPECT_EQ(step, seen);
  }
  CU_OK(cuCtxSynchronize());
  readMore();
  EXPECT_EQ(kSteps, seen);
  CUPTI_OK(cuptiEventGroupDisable(g));
  CUPTI_OK(cuptiEventGroupDestroy(g));
  CUPTI_OK(cuptiSetEventCollectionMode(context, CUPTI_EVENT_COLLECTION_MODE_KERNEL));
  CU_OK(cuMemFreeHost(go));
}

}  // namespace
}  // namespace sonde::test
