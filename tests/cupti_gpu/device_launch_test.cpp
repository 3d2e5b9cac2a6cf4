// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels: what runs, in which order, with which errors.
#include "device_launch.h"

namespace sonde::test {
namespace {

class DeviceLaunchNames : public DeviceLaunch, public ::testing::WithParamInterface<const char*> {};

TEST_P(DeviceLaunchNames, ChildrenRunAndAreRecorded) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  const std::string prefix = GetParam();
  // Each block's thread 0 of 2 has add<<<3, 32>>> add 1 to the word of its block.
  const std::string text = declarations(prefix) + entry(
                                                      "mul.wide.u32 %rd2, %r2, 4; add.u64 %rd2, %rd2, %rd1;\n"
                                                      "setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;\n" +
                                                      launchText(prefix, "add", 3, 32, "%rd2", "1") +
                                                      "st.global.u32 [%rd2+64], %r20;\nDONE:\n");
  const CUdeviceptr p = buffer(4096);
  CU_OK(start(function(text, "k"), 2, 2, p));
  EXPECT_EQ(words(p, 2), (Words{96, 96}));
  EXPECT_EQ(words(p + 64, 2), (Words{0, 0}));  // cudaSuccess
  const auto parents = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  auto children = of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL);
  ASSERT_EQ(1u, parents.size());
  ASSERT_EQ(2u, children.size());
  std::sort(children.begin(), children.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  const auto& parent = parents[0];
  uint32_t contextId = 0, streamId = 0;
  CUPTI_OK(cuptiGetContextId(context, &contextId));
  CUPTI_OK(cuptiGetStreamIdEx(context, nullptr, 0, &streamId));
  for (uint32_t i = 0; i < 2; ++i) {
    const auto& c = children[i];
    EXPECT_STREQ("add", c.name);
    EXPECT_EQ(parent.gridId, c.parentGridId);
    EXPECT_NE(parent.gridId, c.gridId);
    EXPECT_EQ(i, c.parentBlockX);  // blocks in order
    EXPECT_EQ(0u, c.parentBlockY);
    EXPECT_EQ(0u, c.parentBlockZ);
    EXPECT_EQ(3, c.gridX);
    EXPECT_EQ(1, c.gridY);
    EXPECT_EQ(1, c.gridZ);
    EXPECT_EQ(32, c.blockX);
    EXPECT_EQ(1, c.blockY);
    EXPECT_EQ(1, c.blockZ);
    EXPECT_EQ(parent.correlationId, c.correlationId);
    EXPECT_EQ(contextId, c.contextId);
    EXPECT_EQ(streamId, c.streamId);
    EXPECT_EQ(0u, c.deviceId);
    EXPECT_EQ(0, c.staticSharedMemory);
    EXPECT_EQ(0, c.dynamicSharedMemory);
    EXPECT_EQ(0u, c.localMemoryPerThread);
    EXPECT_EQ(0u, c.localMemoryTotal);
    EXPECT_GT(c.registersPerThread, 0);
    EXPECT_LE(parent.start, c.queued);
    EXPECT_LE(c.queued, c.submitted);
    EXPECT_LE(c.submitted, c.start);
    EXPECT_LE(c.start, c.end);
    EXPECT_LE(c.end, c.completed);
    EXPECT_LE(parent.end, c.start);  // the parent's blocks had ended
    EXPECT_LE(c.end, parent.completed);
  }
  EXPECT_NE(children[0].gridId, children[1].gridId);
  EXPECT_LE(children[0].end, children[1].start);
}
INSTANTIATE_TEST_SUITE_P(Prefixes, DeviceLaunchNames, ::testing::Values("cuda", "__cudaCDP2"),
                         [](const auto& info) { return info.index == 0 ? "First" : "Second"; });

TEST_F(DeviceLaunch, OldFormsOfTheCalls) {
  const std::string text =
      ".version 7.0\n.target sm_70\n.address_size 64\n"
      ".extern .func (.param .b64 r) cudaGetParameterBuffer (.param .b64 a, .param .b64 s);\n"
      ".extern .func (.param .b32 r) cudaLaunchDevice (.param .b64 f, .param .b64 p, .param .align 4 .b8 g[12], "
      ".param .align 4 .b8 b[12], .param .b32 s, .param .b64 t);\n"
      ".visible .entry child(.param .u64 p)\n{\n.reg .b64 %rd<3>; .reg .b32 %r<3>; ld.param.u64 %rd1, [p];\n"
      "mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; st.global.u32 [%rd2], %r1; ret;\n}\n" +
      entry(
          "{\n.param .b64 a; st.param.b64 [a], 64;\n.param .b64 s; st.param.b64 [s], 8;\n.param .b64 q;\n"
          "call.uni (q), cudaGetParameterBuffer, (a, s);\nld.param.b64 %rd2, [q];\n}\nst.u64 [%rd2], %rd1;\n"
          "mov.u64 %rd3, child;\n{\n.param .b64 f; st.param.b64 [f], %rd3; .param .b64 x; st.param.b64 [x], %rd2;\n"
          ".param .align 4 .b8 g[12]; st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n"
          ".param .align 4 .b8 b[12]; st.param.b32 [b], 4; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;\n"
          ".param .b32 s; st.param.b32 [s], 0; .param .b64 t; st.param.b64 [t], 0; .param .b32 q;\n"
          "call.uni (q), cudaLaunchDevice, (f, x, g, b, s, t);\nld.param.b32 %r4, [q];\n}\n"
          "st.global.u32 [%rd1+16], %r4;\n");
  const CUdeviceptr p = buffer(64, 0xff);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 5), (Words{0, 1, 2, 3, 0}));
}

TEST_F(DeviceLaunch, ABlockThatWaitsGivesUpItsPlace) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_PREEMPTION});
  // Both warps of each block wait; thread 32's launch is waited for by thread 0 too.
  const std::string text =
      declarations("cuda") +
      entry(
          "mul.wide.u32 %rd2, %r2, 8; add.u64 %rd2, %rd2, %rd1;\n"
          "setp.ne.u32 %p1, %r3, 32; @%p1 bra WAIT;\n" +
          launchText("cuda", "add", 1, 32, "%rd2", "1") + "WAIT:\n" + "bar.sync 0;\n" +
          callText("cudaDeviceSynchronize", "%r4") +
          "setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;\n"
          "ld.global.u32 %r5, [%rd2]; add.u32 %r5, %r5, %r4; st.global.u32 [%rd2+4], %r5;\nDONE:\n");
  const CUdeviceptr p = buffer(4096);
  CU_OK(start(function(text, "k"), 3, 64, p));
  EXPECT_EQ(words(p, 6), (Words{32, 32, 32, 32, 32, 32}));
  const auto parents = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const auto children = of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL);
  const auto changes = of<CUpti_ActivityPreemption>(CUPTI_ACTIVITY_KIND_PREEMPTION);
  ASSERT_EQ(1u, parents.size());
  ASSERT_EQ(3u, children.size());
  ASSERT_EQ(6u, changes.size());
  for (const auto& child : children) {
    uint64_t saved = 0, restored = 0;
    for (const auto& c : changes) {
      EXPECT_EQ(parents[0].gridId, c.gridId);
      EXPECT_EQ(0u, c.blockY);
      EXPECT_EQ(0u, c.blockZ);
      EXPECT_EQ(0u, c.pad);
      if (c.blockX != child.parentBlockX) continue;
      (c.preemptionKind == CUPTI_ACTIVITY_PREEMPTION_KIND_SAVE ? saved : restored) = c.timestamp;
    }
    // The child ran while its parent's block was away, and the parent ended after it.
    EXPECT_NE(0u, saved);
    EXPECT_LE(saved, child.start);
    EXPECT_LE(child.end, restored);
    EXPECT_LE(restored, parents[0].end);
  }
}

TEST_F(DeviceLaunch, ACT_066_NoPreemptionWithoutWaiting) {
  enable({CUPTI_ACTIVITY_KIND_PREEMPTION});
  const std::string text = declarations("cuda") + entry(callText("cudaDeviceSynchronize", "%r4") +
                                                        launchText("cuda", "add", 1, 1, "%rd1", "1"));
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 1), (Words{1}));
  EXPECT_EQ(0u, of<CUpti_ActivityPreemption>(CUPTI_ACTIVITY_KIND_PREEMPTION).size());
}

TEST_F(DeviceLaunch, NestsToTheDocumentedDepth) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  // Counts itself, then launches itself; the error goes to the second word.
  const std::string text =
      declarations("__cudaCDP2") +
      entry("red.global.add.u32 [%rd1], 1; add.u32 %r6, %r1, 1;\n" +
            launchText("__cudaCDP2", "k", 1, 1, "%rd1", "%r6") + "st.global.u32 [%rd1+4], %r20;\n" +
            callText("__cudaCDP2PeekAtLastError", "%r5") + "st.global.u32 [%rd1+8], %r5;\n" +
            callText("__cudaCDP2GetLastError", "%r5") + "st.global.u32 [%rd1+12], %r5;\n" +
            callText("__cudaCDP2GetLastError", "%r5") + "st.global.u32 [%rd1+16], %r5;\n");
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  // The host's launch and 24 levels; cudaErrorLaunchMaxDepthExceeded, kept until it is asked for.
  EXPECT_EQ(words(p, 5), (Words{25, 65, 65, 65, 0}));
  const auto children = of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL);
  ASSERT_EQ(24u, children.size());
  // Each level's parent is the level above, and is complete after it.
  std::map<int64_t, const CUpti_ActivityCdpKernel*> byGrid;
  for (const auto& c : children) byGrid[c.gridId] = &c;
  size_t withParent = 0;
  for (const auto& c : children) {
    const auto parent = byGrid.find(c.parentGridId);
    if (parent == byGrid.end()) continue;
    ++withParent;
    EXPECT_LE(c.completed, parent->second->completed);
  }
  EXPECT_EQ(23u, withParent);
}

TEST_F(DeviceLaunch, SyncDepthIsALimit) {
  // At depth n: launch n + 1, wait, note the result of waiting in word n.
  const std::string text =
      declarations("cuda") +
      entry(
          "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd3, %rd1; setp.gt.u32 %p1, %r1, 3; @%p1 bra DONE;\n"
          "add.u32 %r6, %r1, 1;\n" +
          launchText("cuda", "k", 1, 1, "%rd1", "%r6") + callText("cudaDeviceSynchronize", "%r5") +
          "st.global.u32 [%rd3], %r5;\nDONE:\n");
  const CUdeviceptr p = buffer(64, 0xff);
  CUfunction f = function(text, "k");
  CU_OK(start(f, 1, 1, p));
  EXPECT_EQ(words(p, 4), (Words{0, 0, 68, 68}));  // the default of 2; cudaErrorSyncDepthExceeded
  CU_OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3));
  CU_OK(start(f, 1, 1, p));
  EXPECT_EQ(words(p, 4), (Words{0, 0, 0, 68}));
  CU_OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2));
}

TEST_F(DeviceLaunch, PendingLaunchesAreALimit) {
  std::string body;
  for (int i = 0; i < 6; ++i)
    body += launchText("cuda", "add", 1, 1, "%rd1", "1") + "st.global.u32 [%rd1+" + std::to_string(4 + 4 * i) +
            "], %r20;\n";
  const std::string text = declarations("cuda") + entry(body);
  CU_OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4));
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 7), (Words{4, 0, 0, 0, 0, 69, 69}));  // cudaErrorLaunchPendingCountExceeded
  CU_OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048));
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 7), (Words{10, 0, 0, 0, 0, 0, 0}));
}

TEST_F(DeviceLaunch, ACT_024_108_FullCdpBufferDropsAndCounts) {
  size_t bytes = 3 * 512, size = sizeof bytes;
  CUPTI_OK(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, &size, &bytes));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  std::string body;
  for (int i = 0; i < 5; ++i) body += launchText("cuda", "add", 1, 1, "%rd1", "1");
  const std::string text = declarations("cuda") + entry(body);
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 1), (Words{5}));
  EXPECT_EQ(3u, of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL).size());
  size_t dropped = 0;
  CUPTI_OK(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(2u, dropped);
}

TEST_F(DeviceLaunch, ACT_065_CdpRecordsFollowConcurrentKernel) {
  enable({CUPTI_ACTIVITY_KIND_KERNEL});
  const std::string text = declarations("cuda") + entry(launchText("cuda", "add", 1, 1, "%rd1", "1"));
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(0u, of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL).size());
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(1u, of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL).size());
}

TEST_F(DeviceLaunch, OrderOfStreams) {
  // The tail stream's kernel runs last; the others in the order of the calls.
  const std::string text = declarations("cuda") + entry(launchText("cuda", "note", 1, 1, "%rd1", "30", "3") +
                                                        launchText("cuda", "note", 1, 1, "%rd1", "10") +
                                                        launchText("cuda", "note", 1, 1, "%rd1", "20", "4"));
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 4), (Words{3, 10, 20, 30}));
}

TEST_F(DeviceLaunch, StreamsEventsAndTheirErrors) {
  const std::string text =
      declarations("cuda") +
      ".extern .func (.param .b32 r) cudaStreamCreateWithFlags (.param .b64 s, .param .b32 f);\n"
      ".extern .func (.param .b32 r) cudaStreamDestroy (.param .b64 s);\n"
      ".extern .func (.param .b32 r) cudaEventCreateWithFlags (.param .b64 e, .param .b32 f);\n"
      ".extern .func (.param .b32 r) cudaEventRecord (.param .b64 e, .param .b64 s);\n"
      ".extern .func (.param .b32 r) cudaStreamWaitEvent (.param .b64 s, .param .b64 e, .param .b32 f);\n"
      ".extern .func (.param .b32 r) cudaEventDestroy (.param .b64 e);\n" +
      [] {
        int slot = 0;
        auto call = [&](const std::string& f, const std::string& a, const std::string& b = "",
                        const std::string& c = "") {
          std::string s = "{\n.param .b64 x; st.param.b64 [x], " + a + ";\n";
          const bool flags = f.find("Flags") != std::string::npos;
          if (!b.empty())
            s += std::string(flags ? ".param .b32 y; st.param.b32 [y], " : ".param .b64 y; st.param.b64 [y], ") + b +
                 ";\n";
          if (!c.empty()) s += ".param .b32 z; st.param.b32 [z], " + c + ";\n";
          s += ".param .b32 q;\ncall.uni (q), cuda" + f + ", (x" + (b.empty() ? "" : ", y") + (c.empty() ? "" : ", z") +
               ");\nld.param.b32 %r9, [q];\n}\nst.global.u32 [%rd1+" + std::to_string(128 + 4 * slot++) + "], %r9;\n";
          return s;
        };
        // One after the other: each call takes the next slot.
        std::string b = "add.u64 %rd5, %rd1, 64; add.u64 %rd6, %rd1, 72;\n";
        b += call("StreamCreateWithFlags", "%rd5", "0");  // blocking ones do not exist
        b += call("StreamCreateWithFlags", "%rd5", "1");
        b += "ld.global.u64 %rd7, [%rd5];\n";
        b += call("EventCreateWithFlags", "%rd6", "0");  // events with times do not exist
        b += call("EventCreateWithFlags", "%rd6", "2");
        b += "ld.global.u64 %rd8, [%rd6];\n";
        b += launchText("cuda", "add", 1, 1, "%rd1", "1", "%rd7");
        b += call("EventRecord", "%rd8", "%rd7");
        b += call("StreamWaitEvent", "0", "%rd8", "0");
        b += call("EventRecord", "%rd7", "%rd8");  // the wrong way round
        b += call("EventDestroy", "%rd8");
        b += call("EventDestroy", "%rd8");
        b += call("StreamDestroy", "%rd7");
        b += launchText("cuda", "add", 1, 1, "%rd1", "1", "%rd7");  // a stream that is gone
        return entry(b + "st.global.u32 [%rd1+4], %r20;\n");
      }();
  const CUdeviceptr p = buffer(4096);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 2), (Words{1, 400}));
  EXPECT_EQ(words(p + 128, 10), (Words{1, 0, 1, 0, 0, 0, 400, 0, 400, 0}));
}

TEST_F(DeviceLaunch, MistakesAreErrors) {
  // A block that is too large; a function that is none.
  const std::string text = declarations("cuda") +
                           entry(launchText("cuda", "add", 1, 2048, "%rd1", "1") + "st.global.u32 [%rd1+4], %r20;\n" +
                                 launchText("cuda", "add", 0, 1, "%rd1", "1") + "st.global.u32 [%rd1+8], %r20;\n" +
                                 callText("cudaGetLastError", "%r5") + launchText("cuda", "12345", 1, 1, "%rd1", "1") +
                                 "st.global.u64 [%rd1+16], %rd20;\n" + callText("cudaGetLastError", "%r5") +
                                 "st.global.u32 [%rd1+12], %r5;\n");
  const CUdeviceptr p = buffer(64, 0xff);
  CU_OK(cuMemsetD32(p, 0, 1));
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 6), (Words{0, 9, 9, 98, 0, 0}));
}

TEST_F(DeviceLaunch, CopiesAndSetsKeepTheirPlace) {
  const std::string text =
      declarations("cuda") +
      ".extern .func (.param .b32 r) cudaMemsetAsync (.param .b64 p, .param .b32 v, .param .b64 n, .param .b64 s);\n"
      ".extern .func (.param .b32 r) cudaMemcpyAsync (.param .b64 t, .param .b64 f, .param .b64 n, .param .b32 k, "
      ".param .b64 s);\n" +
      entry("add.u64 %rd5, %rd1, 4;\n" + launchText("cuda", "add", 1, 1, "%rd1", "1") +
            // word 1 := word 0 = 1, then word 0 := 0x02020202, then + 1
            "{\n.param .b64 t; st.param.b64 [t], %rd5; .param .b64 f; st.param.b64 [f], %rd1; .param .b64 n; "
            "st.param.b64 [n], 4;\n"
            ".param .b32 k; st.param.b32 [k], 3; .param .b64 s; st.param.b64 [s], 0; .param .b32 q;\n"
            "call.uni (q), cudaMemcpyAsync, (t, f, n, k, s);\n}\n"
            "{\n.param .b64 p0; st.param.b64 [p0], %rd1; .param .b32 v; st.param.b32 [v], 2; .param .b64 n; "
            "st.param.b64 [n], 4;\n"
            ".param .b64 s; st.param.b64 [s], 0; .param .b32 q;\ncall.uni (q), cudaMemsetAsync, (p0, v, n, s);\n}\n" +
            launchText("cuda", "add", 1, 1, "%rd1", "1") +
            // not memory of the device
            "{\n.param .b64 p0; st.param.b64 [p0], 4096; .param .b32 v; st.param.b32 [v], 2; .param .b64 n; "
            "st.param.b64 [n], 4;\n"
            ".param .b64 s; st.param.b64 [s], 0; .param .b32 q;\ncall.uni (q), cudaMemsetAsync, (p0, v, n, s);\n"
            "ld.param.b32 %r5, [q];\n}\nst.global.u32 [%rd1+8], %r5;\n");
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  EXPECT_EQ(words(p, 3), (Words{0x02020203, 1, 1}));
}

TEST_F(DeviceLaunch, ManyBlocksAlwaysInTheSameOrder) {
  const std::string text = declarations("cuda") + entry(launchText("cuda", "note", 1, 1, "%rd1", "%r2"));
  const CUdeviceptr p = buffer(4096);
  Words expected{200};
  for (uint32_t i = 0; i < 200; ++i) expected.push_back(i);
  for (int run = 0; run < 5; ++run) {
    CU_OK(cuMemsetD32(p, 0, 1024));
    CU_OK(start(function(text, "k"), 200, 1, p));
    ASSERT_EQ(words(p, 201), expected);
  }
}

TEST_F(DeviceLaunch, EventsCountWhatIsLaunched) {
  const std::string text = declarations("cuda") + entry(launchText("cuda", "add", 2, 64, "%rd1", "1"));
  const CUdeviceptr p = buffer(64);
  const auto v = count({"warps_launched", "gred_count"}, function(text, "k"), 1, 1, {p, 0});
  EXPECT_EQ(v, (std::map<std::string, uint64_t>{{"warps_launched", 1 + 4}, {"gred_count", 4}}));
}

TEST_F(DeviceLaunch, InstructionsOfChildrenAreTheirs) {
  enable({CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_FUNCTION});
  const std::string text = declarations("cuda") + entry(launchText("cuda", "add", 2, 64, "%rd1", "1")) + "// own\n";
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  std::map<uint32_t, std::string> names;
  for (const auto& f : of<CUpti_ActivityFunction>(CUPTI_ACTIVITY_KIND_FUNCTION)) names[f.id] = f.name;
  uint32_t reductions = 0;
  for (const auto& a : of<CUpti_ActivityGlobalAccess3>(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS))
    if (names[a.functionId] == "add") reductions += a.executed;
  EXPECT_EQ(4u, reductions);
}

// The last test: it leaves the context unusable.
TEST_F(DeviceLaunch, ZFaultOfAChildEndsAll) {
  const std::string text =
      declarations("cuda") + entry("mov.u64 %rd2, 64;\n" + launchText("cuda", "add", 1, 1, "%rd2", "1"));
  CUcontext own = nullptr;
  CU_OK(cuCtxCreate(&own, nullptr, 0, device));
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CU_OK(cuModuleLoadData(&m, text.c_str()));
  CU_OK(cuModuleGetFunction(&f, m, "k"));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, start(f, 1, 1, 0));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  cuCtxDestroy(own);
  CU_OK(cuCtxSetCurrent(context));
}

}  // namespace
}  // namespace sonde::test
