// SPDX-License-Identifier: Apache-2.0
//
// Attaching to a process that is at work already, with the software driver in
// the place of the vendor's.

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "hooked_records.h"

namespace sonde::test {
namespace {

const char kPtx[] = R"(.version 7.0
.target sm_60
.address_size 64
.visible .entry plain()
{
  ret;
}
)";

class HookedAttach : public ::testing::Test {
 protected:
  void SetUp() override {
    clearRecords();
    CHECK_CU(cuInit(0));
    CHECK_CU(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_CU(cuCtxSetCurrent(context));
    CHECK_CU(cuModuleLoadData(&module, kPtx));
    CHECK_CU(cuModuleGetFunction(&plain, module, "plain"));
    for (CUstream& s : streams) CHECK_CU(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override {
    for (CUstream s : streams) cuStreamDestroy(s);
    cuModuleUnload(module);
    CHECK_CUPTI(cuptiFinalize());
  }
  void attach(std::initializer_list<CUpti_ActivityKind> kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}) {
    CHECK_CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
    for (CUpti_ActivityKind kind : kinds) CHECK_CUPTI(cuptiActivityEnable(kind));
  }
  void launch(CUstream stream, unsigned blocks) {
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(plain, blocks, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
  }
  // How many kernels had so many blocks.
  std::map<int, int> counts() {
    EXPECT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
    std::lock_guard lock(mutex);
    std::map<int, int> result;
    for (const auto& k : kernels) ++result[k.gridX];
    return result;
  }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction plain = nullptr;
  CUstream streams[3] = {};
};

using Counts = std::map<int, int>;

// Begun before there were hooks: nothing of ours may come into it.
TEST_F(HookedAttach, WhileAStreamCaptures) {
  CHECK_CU(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED));
  launch(streams[0], 1);
  attach();
  launch(streams[0], 2);
  launch(streams[1], 3);
  launch(streams[1], 3);
  // Drawn into the capture after it was seen not to capture.
  CUevent fork, join;
  CHECK_CU(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  CHECK_CU(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  CHECK_CU(cuEventRecord(fork, streams[0]));
  CHECK_CU(cuStreamWaitEvent(streams[1], fork, 0));
  launch(streams[1], 4);
  launch(streams[1], 5);
  CHECK_CU(cuEventRecord(join, streams[1]));
  CHECK_CU(cuStreamWaitEvent(streams[0], join, 0));
  CUgraph graph;
  CHECK_CU(cuStreamEndCapture(streams[0], &graph));
  size_t nodes = 0;
  CHECK_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(4u, nodes);  // grids of 1, 2, 4 and 5
  launch(streams[1], 6);
  launch(streams[0], 7);
  EXPECT_EQ((Counts{{3, 2}, {6, 1}, {7, 1}}), counts());
  CHECK_CU(cuGraphDestroy(graph));
}

TEST_F(HookedAttach, WhileThreadsLaunch) {
  std::atomic<bool> stop{false};
  std::atomic<unsigned> launched{0};
  std::vector<std::thread> threads;
  for (CUstream stream : streams)
    threads.emplace_back([&, stream] {
      cuCtxSetCurrent(context);
      while (!stop.load()) {
        cuLaunchKernel(plain, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
        if (launched.fetch_add(1) % 16 == 0) cuStreamSynchronize(stream);
      }
    });
  while (launched.load() < 200) std::this_thread::yield();
  attach();
  const unsigned from = launched.load();
  while (launched.load() < from + 300) std::this_thread::yield();
  stop.store(true);
  for (std::thread& t : threads) t.join();
  // A launch that was counted later can have been made before the hooks came: one of each thread.
  const int seen = counts()[1];
  EXPECT_LE(static_cast<int>(launched.load() - from) - 3, seen);
  for (int i = 0; i < 50; ++i) launch(streams[i % 3], 2);
  EXPECT_EQ(50, counts()[2]);
  std::lock_guard lock(mutex);
  std::map<uint32_t, uint64_t> last;
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  for (const auto& k : kernels) {
    EXPECT_LE(k.start, k.end);  // grids of one thread may be shorter than what the model can tell
    EXPECT_GE(k.start, last[k.streamId]);
    last[k.streamId] = k.end;
  }
  EXPECT_EQ(3u, last.size());
}

TEST_F(HookedAttach, AStreamOfAGreenContext) {
  CUdevResource all{}, part{}, rest{};
  CUdevice device = 0;
  CHECK_CU(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 1;
  CHECK_CU(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 8));
  CUdevResourceDesc description;
  CHECK_CU(cuDevResourceGenerateDesc(&description, &part, 1));
  CUgreenCtx green;
  CHECK_CU(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
  attach();
  CUstream stream;
  CHECK_CU(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  for (int i = 0; i < 3; ++i) launch(stream, 2);
  CHECK_CU(cuStreamSynchronize(stream));
  EXPECT_EQ((Counts{{2, 3}}), counts());
  {
    std::lock_guard lock(mutex);
    for (const auto& k : kernels) EXPECT_LT(k.start, k.end);
  }
  CHECK_CU(cuStreamDestroy(stream));
  CHECK_CU(cuGreenCtxDestroy(green));
}

// A pool that holds more than its threshold gives memory back when somebody waits.
TEST_F(HookedAttach, PoolsAreTrimmedBySynchronisations) {
  attach({CUPTI_ACTIVITY_KIND_MEMORY_POOL});
  CUmemoryPool pool;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CHECK_CU(cuMemPoolCreate(&pool, &props));
  CUdeviceptr kept, freed;
  CHECK_CU(cuMemAllocFromPoolAsync(&kept, 4096, pool, streams[0]));
  CHECK_CU(cuMemAllocFromPoolAsync(&freed, 8192, pool, streams[0]));
  CHECK_CU(cuStreamSynchronize(streams[0]));  // nothing was freed
  CHECK_CU(cuMemFreeAsync(freed, streams[0]));
  CHECK_CU(cuStreamSynchronize(streams[0]));
  CHECK_CU(cuStreamSynchronize(streams[0]));  // nothing since
  CHECK_CU(cuMemFreeAsync(kept, streams[0]));
  cuuint64_t threshold = 1 << 20;
  CHECK_CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CHECK_CU(cuCtxSynchronize());  // it may keep so much
  CHECK_CU(cuMemPoolDestroy(pool));
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  std::lock_guard lock(mutex);
  std::vector<int> operations;
  for (const auto& p : pools) operations.push_back(p.memoryPoolOperationType);
  EXPECT_EQ((std::vector<int>{CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED,
                              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED,
                              CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED}),
            operations);
  ASSERT_EQ(3u, pools.size());
  EXPECT_EQ(0u, pools[1].releaseThreshold);
  EXPECT_EQ(4096u, pools[1].utilizedSize);
}

}  // namespace
}  // namespace sonde::test
