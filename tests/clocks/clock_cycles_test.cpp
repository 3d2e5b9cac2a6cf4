// SPDX-License-Identifier: Apache-2.0
// CLK-001, what locking is for: with moving clocks the elapsed cycles of one
// kernel differ from launch to launch (in the same way on every run), with
// locked ones they are the same to the cycle.
#include <cupti_profiler_target.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "gpu.h"

namespace sonde::test {
namespace {

class Cycles : public Gpu {
 protected:
  static void SetUpTestSuite() {
    char path[] = "/tmp/sonde-cycles-XXXXXX";
    directory = mkdtemp(path);
    setenv("SONDE_STATE_DIR", directory.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory); }
  void SetUp() override {
    Gpu::SetUp();
    p = buffer(1 << 20);
    q = buffer(1 << 20);
    // Threads add to a number in memory for a while; each pass is traffic.
    const std::string body =
        "and.b32 %r5, %r3, 255; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd3, %rd3, %rd1; mov.u32 %r6, 2000;\n"
        "L: ld.volatile.global.u32 %r7, [%rd3]; add.u32 %r7, %r7, 1; st.volatile.global.u32 [%rd3], %r7;\n"
        "sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra L;";
    work = function(kernel(body), "k");
  }
  void TearDown() override {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    Gpu::TearDown();
  }
  uint64_t elapsed() { return count({"elapsed_cycles_sm"}, work, 16, 256, {p, q}).at("elapsed_cycles_sm"); }
  void heat() { launch(work, 64, 256, {p, q}); }

  static inline std::string directory;
  CUdeviceptr p = 0, q = 0;
  CUfunction work = nullptr;
  std::map<int, uint64_t> cyclesAt;
};

TEST_F(Cycles, CLK_001_010_UnlockedTheyDiffer) {
  // The tenth kernel before it is the first that costs clock (clock_model_test.cpp).
  const uint64_t first = elapsed();
  for (int i = 1; i < 10; ++i) ASSERT_EQ(first, elapsed()) << i;
  EXPECT_LT(elapsed(), first);
  for (int i = 0; i < 30; ++i) heat();
  EXPECT_LT(elapsed(), first);
}

// They go with the clock, and the clock goes with the kernels of the stream
// alone: not with time, nor with what other streams do.
TEST_F(Cycles, UnlockedTheyAreTheSameOnEveryStream) {
  std::vector<uint64_t> series[2];
  for (auto& cycles : series) {
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 40; ++i) cycles.push_back(elapsed());
    CU_OK(cuStreamDestroy(stream));
    stream = nullptr;
    heat();
  }
  EXPECT_GT(std::set<uint64_t>(series[0].begin(), series[0].end()).size(), 3u);
  EXPECT_TRUE(std::is_sorted(series[0].rbegin(), series[0].rend())) << "a device that works gets no faster";
  EXPECT_EQ(series[0], series[1]);
}

TEST_F(Cycles, CLK_001_023_LockedTheyAreTheSameToTheCycle) {
  heat();
  for (const auto mode : {CUPTI_CLOCK_CONTROL_MODE_BASE, CUPTI_CLOCK_CONTROL_MODE_BOOST}) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, mode));
    const uint64_t first = elapsed();  // from the first launch after the call
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(first, elapsed()) << i;
      if (i < 5) heat();
    }
    ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlUnlock());
    cyclesAt[mode] = first;
  }
  // Memory takes time, not cycles: 500 ns are more of the faster clock's.
  EXPECT_GT(cyclesAt[CUPTI_CLOCK_CONTROL_MODE_BOOST], cyclesAt[CUPTI_CLOCK_CONTROL_MODE_BASE]);
}

// Replay: events that need several passes are of one clock.
TEST_F(Cycles, CLK_001_PassesOfAReplayAgree) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiClockControlLock(context, CUPTI_CLOCK_CONTROL_MODE_BASE));
  const auto events = {"elapsed_cycles_sm",    "active_cycles",  "inst_executed",   "inst_issued",
                       "thread_inst_executed", "warps_launched", "threads_launched"};
  const auto first = count(events, work, 16, 256, {p, q});
  heat();
  EXPECT_EQ(first, count(events, work, 16, 256, {p, q}));
  EXPECT_EQ(first.at("elapsed_cycles_sm"), elapsed());
}

}  // namespace
}  // namespace sonde::test
