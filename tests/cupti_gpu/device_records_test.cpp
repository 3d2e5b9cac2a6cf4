// SPDX-License-Identifier: Apache-2.0
// Kernels that launch kernels: every field of their records, and source-level
// records and events of whole trees of launches.
#include <set>

#include "device_launch.h"

namespace sonde::test {
namespace {

class DeviceRecords : public DeviceLaunch {
 protected:
  std::vector<CUpti_ActivityCdpKernel> children() {
    return of<CUpti_ActivityCdpKernel>(CUPTI_ACTIVITY_KIND_CDP_KERNEL);
  }
  std::vector<CUpti_ActivityKernel10> parents() {
    return of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
};

// 32 bytes of local memory a thread, 64 bytes of shared memory.
constexpr char kRoomy[] =
    ".visible .entry roomy(.param .u64 p, .param .u32 v)\n{\n.local .align 8 .b8 l[32]; .shared .align 8 .b8 s[64];\n"
    ".reg .b64 %rd<3>; .reg .b32 %r<3>;\nld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v];\n"
    "st.local.u32 [l+4], %r1; st.shared.u32 [s], %r1; red.global.add.u32 [%rd1], %r1;\nret;\n}\n";

TEST_F(DeviceRecords, EveryFieldOfCdpKernel) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  // Of the host's grid of 2 x 3 x 2 blocks that at (1, 2, 1) alone launches.
  const std::string text =
      declarations("cuda") + kRoomy +
      entry(
          "mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z; mad.lo.u32 %r6, %r4, 2, %r2; mad.lo.u32 %r6, %r5, 6, %r6;\n"
          "setp.ne.u32 %p1, %r6, 11; @%p1 bra DONE;\n" +
          launchText("cuda", "roomy", {4, 3, 2}, {8, 2, 3}, "%rd1", "5", "0", 128) + "DONE:\n");
  const CUdeviceptr p = buffer(4096);
  CUstream stream = nullptr;
  CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUfunction f = function(text, "k");
  uint64_t address = p;
  uint32_t n = 0;
  void* arguments[] = {&address, &n};
  CU_OK(cuLaunchKernel(f, 2, 3, 2, 1, 1, 1, 0, stream, arguments, nullptr));
  CU_OK(cuStreamSynchronize(stream));
  EXPECT_EQ(words(p, 1), (Words{24 * 48 * 5}));
  const auto above = parents();
  const auto below = children();
  ASSERT_EQ(1u, above.size());
  ASSERT_EQ(1u, below.size());
  const CUpti_ActivityCdpKernel& c = below[0];
  uint32_t contextId = 0, streamId = 0;
  CUPTI_OK(cuptiGetContextId(context, &contextId));
  CUPTI_OK(cuptiGetStreamIdEx(context, stream, 0, &streamId));
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_CDP_KERNEL, c.kind);
  EXPECT_STREQ("roomy", c.name);
  EXPECT_EQ(0u, c.deviceId);
  EXPECT_EQ(contextId, c.contextId);
  EXPECT_EQ(streamId, c.streamId);
  EXPECT_EQ(4, c.gridX);
  EXPECT_EQ(3, c.gridY);
  EXPECT_EQ(2, c.gridZ);
  EXPECT_EQ(8, c.blockX);
  EXPECT_EQ(2, c.blockY);
  EXPECT_EQ(3, c.blockZ);
  EXPECT_EQ(1u, c.parentBlockX);
  EXPECT_EQ(2u, c.parentBlockY);
  EXPECT_EQ(1u, c.parentBlockZ);
  EXPECT_EQ(64, c.staticSharedMemory);
  EXPECT_EQ(128, c.dynamicSharedMemory);
  EXPECT_EQ(32u, c.localMemoryPerThread);
  // Of all threads that the device can hold at a time.
  int sms = 0, threads = 0;
  CU_OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  CU_OK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device));
  EXPECT_EQ(32u * static_cast<uint32_t>(sms * threads), c.localMemoryTotal);
  CUfunction roomy = function(text, "roomy");
  int registers = 0;
  CU_OK(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, roomy));
  EXPECT_EQ(registers, c.registersPerThread);
  EXPECT_EQ(above[0].cacheConfig.both, c.cacheConfig.both);
  EXPECT_EQ(above[0].sharedMemoryConfig, c.sharedMemoryConfig);
  EXPECT_EQ(above[0].correlationId, c.correlationId);
  EXPECT_EQ(above[0].gridId, c.parentGridId);
  EXPECT_NE(above[0].gridId, c.gridId);
  EXPECT_LE(above[0].start, c.queued);
  EXPECT_LE(c.queued, above[0].end);
  EXPECT_LE(c.queued, c.submitted);
  EXPECT_LE(above[0].end, c.submitted);
  EXPECT_LE(c.submitted, c.start);
  EXPECT_LT(c.start, c.end);
  EXPECT_LE(c.end, c.completed);
  EXPECT_LE(c.completed, above[0].completed);
  CU_OK(cuStreamDestroy(stream));
}

TEST_F(DeviceRecords, ParentsOfEachLevel) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  // Each grid of n blocks launches one of n - 1 from its last block: 3, 2, 1.
  const std::string text =
      declarations("__cudaCDP2") +
      entry(
          "red.global.add.u32 [%rd1], 1; setp.eq.u32 %p2, %r1, 0; add.u32 %r6, %r2, 1;\n"
          "setp.ne.or.u32 %p1, %r6, %r1, %p2; sub.u32 %r7, %r1, 1; setp.eq.u32 %p2, %r7, 0; @%p1 bra DONE;\n"
          "@%p2 bra DONE;\nsetp.eq.u32 %p3, %r7, 2; @%p3 bra TWO;\n" +
          launchText("__cudaCDP2", "k", 1, 1, "%rd1", "%r7") + "bra DONE;\nTWO:\n" +
          launchText("__cudaCDP2", "k", 2, 1, "%rd1", "%r7") + "DONE:\n");
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 3, 1, p, 3));
  EXPECT_EQ(words(p, 1), (Words{6}));
  const auto above = parents();
  auto below = children();
  ASSERT_EQ(1u, above.size());
  ASSERT_EQ(2u, below.size());
  if (below[0].gridX == 1) std::swap(below[0], below[1]);
  EXPECT_EQ(above[0].gridId, below[0].parentGridId);
  EXPECT_EQ(2u, below[0].parentBlockX);
  EXPECT_EQ(below[0].gridId, below[1].parentGridId);
  EXPECT_EQ(1u, below[1].parentBlockX);
  for (const auto& c : below) {
    EXPECT_EQ(above[0].correlationId, c.correlationId);
    EXPECT_LE(c.queued, c.submitted);
    EXPECT_LE(c.submitted, c.start);
    EXPECT_LE(c.start, c.end);
    EXPECT_LE(c.end, c.completed);
  }
  EXPECT_LE(below[1].completed, below[0].completed);
  EXPECT_LE(below[0].completed, above[0].completed);
}

// The buffer of a context keeps the size that it was made with.
TEST_F(DeviceRecords, ACT_025_SizeOfTheCdpBufferIsThatOfItsMaking) {
  size_t bytes = 2 * 512, size = sizeof bytes;
  CUPTI_OK(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, &size, &bytes));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  std::string body;
  for (int i = 0; i < 5; ++i) body += launchText("cuda", "add", 1, 1, "%rd1", "1");
  CUfunction f = function(declarations("cuda") + entry(body), "k");
  const CUdeviceptr p = buffer(64);
  CU_OK(start(f, 1, 1, p));
  EXPECT_EQ(2u, children().size());
  size_t dropped = 0;
  CUPTI_OK(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(3u, dropped);
  bytes = 8u << 20;
  CUPTI_OK(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, &size, &bytes));
  CU_OK(start(f, 1, 1, p));  // room is there again, for two
  EXPECT_EQ(4u, children().size());
  CUPTI_OK(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(3u, dropped);
  CUcontext other = nullptr;
  CU_OK(cuCtxCreate(&other, nullptr, 0, device));
  CUmodule m = nullptr;
  const std::string text = declarations("cuda") + entry(body);
  CU_OK(cuModuleLoadData(&m, text.c_str()));
  CU_OK(cuModuleGetFunction(&f, m, "k"));
  CUdeviceptr q = 0;
  CU_OK(cuMemAlloc(&q, 64));
  CU_OK(start(f, 1, 1, q));
  EXPECT_EQ(9u, children().size());
  CUPTI_OK(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(0u, dropped);
  CU_OK(cuCtxDestroy(other));
  CU_OK(cuCtxSetCurrent(context));
}

// k<<<g, 64>>> whose blocks launch scatter<<<2, 40>>>, which has every sort of access, and wait for it.
std::string scatter() {
  return ".visible .entry scatter(.param .u64 p, .param .u32 v)\n{\n.shared .align 8 .b8 s[4096];\n"
         ".reg .b64 %rd<5>; .reg .b32 %r<9>; .reg .pred %p<3>; .reg .f32 %f<3>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [v]; mov.u32 %r2, %tid.x;\n"
         "mul.wide.u32 %rd2, %r2, 12; add.u64 %rd2, %rd2, %rd1; ld.global.f32 %f1, [%rd2+64];\n"
         "shl.b32 %r3, %r2, 4; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; st.shared.f32 [%r4], %f1; bar.sync 0;\n"
         "setp.lt.u32 %p1, %r2, %r1; @%p1 bra L; red.global.add.u32 [%rd1], 1; ld.shared.f32 %f2, [%r4];\n"
         "L: @%p1 st.global.f32 [%rd2+64], %f1;\nret;\n}\n";
}

class DeviceSums : public DeviceRecords, public ::testing::WithParamInterface<bool> {};

TEST_P(DeviceSums, RecordsOfTheWholeTreeEqualTheEventsOfTheLaunch) {
  enableAll();
  const std::string text =
      declarations("cuda") + scatter() +
      entry("setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;\n" + launchText("cuda", "scatter", 2, 40, "%rd1", "9") +
            launchText("cuda", "add", 3, 32, "%rd1", "1") +
            (GetParam() ? callText("cudaDeviceSynchronize", "%r4") : std::string()) + "DONE: bar.sync 0;\n");
  const CUdeviceptr p = buffer(4096);
  expectSumsOf(function(text, "k"), 3, 64, {p, 0});
}

INSTANTIATE_TEST_SUITE_P(Waiting, DeviceSums, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Waits" : "DoesNot"; });

// A grid that launches itself, one block less each time.
TEST_F(DeviceRecords, SumsOfARecursion) {
  enableAll();
  const std::string text =
      declarations("cuda") + entry(
                                 "red.global.add.u32 [%rd1], 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;\n"
                                 "sub.u32 %r6, %r1, 1;\n" +
                                 launchText("cuda", "k", 2, 3, "%rd1", "%r6") + "DONE:\n");
  const CUdeviceptr p = buffer(64);
  expectSumsOf(function(text, "k"), 1, 1, {p, 2});
  // 1 thread, then 1 x 2 blocks of 3, then 6 x 2 blocks of 3.
  const Values records = sums();
  EXPECT_EQ(1u + 6 + 36, records.at("gred_thread_count"));
  EXPECT_EQ(1u + 2 + 12, records.at("gred_count"));
}
// Each grid's records follow its own kernel record and are its own.
TEST_F(DeviceRecords, InstructionsBelongToTheirGrid) {
  enable({CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_FUNCTION});
  const std::string text = declarations("cuda") +
                           entry("st.global.u32 [%rd1+8], %r1;\n" + launchText("cuda", "add", 2, 64, "%rd1", "1") +
                                 launchText("cuda", "add", 1, 5, "%rd1", "1")) +
                           "// of their grid\n";
  const CUdeviceptr p = buffer(64);
  CU_OK(start(function(text, "k"), 1, 1, p));
  std::map<uint32_t, std::string> names;
  for (const auto& f : of<CUpti_ActivityFunction>(CUPTI_ACTIVITY_KIND_FUNCTION)) names[f.id] = f.name;
  // What came after the record of each grid: its size, then executed and threads of its reductions.
  std::vector<std::tuple<std::string, uint32_t, uint64_t>> found;
  std::string grid;
  for (const auto& r : collector.records()) {
    if (r.kind() == CUPTI_ACTIVITY_KIND_CDP_KERNEL) {
      const auto& c = r.as<CUpti_ActivityCdpKernel>();
      grid = std::string(c.name) + std::to_string(c.gridX) + "x" + std::to_string(c.blockX);
    } else if (r.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      grid = r.as<CUpti_ActivityKernel10>().name;
    } else if (r.kind() == CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS) {
      const auto& a = r.as<CUpti_ActivityGlobalAccess3>();
      if (names[a.functionId] == "add") {
        EXPECT_NE("k", grid);
        found.emplace_back(grid, a.executed, a.threadsExecuted);
      } else {
        EXPECT_EQ("k", grid);
      }
    }
  }
  EXPECT_EQ(found, (std::vector<std::tuple<std::string, uint32_t, uint64_t>>{{"add2x64", 4, 128}, {"add1x5", 1, 5}}));
}

}  // namespace
}  // namespace sonde::test
