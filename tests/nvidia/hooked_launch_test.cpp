// SPDX-License-Identifier: Apache-2.0
//
// What is recorded of launches beyond their shape, and of memory at the end of
// a context: libcupti on hooks, the software driver in the place of the vendor's.
#include "hooked_records.h"
#include "tests/driver/launch_attributes.h"

using namespace sonde::test;

namespace {

const char kPtx[] = R"(.version 7.8
.target sm_90
.address_size 64
.visible .entry plain()
{
  ret;
}
.visible .entry pair()
.reqnctapercluster 2
{
  ret;
}
)";

CUlaunchAttribute windowOf(CUdeviceptr base, size_t bytes, float ratio) {
  CUlaunchAttribute a{};
  a.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  a.value.accessPolicyWindow = {reinterpret_cast<void*>(base), bytes, ratio, CU_ACCESS_PROPERTY_PERSISTING,
                                CU_ACCESS_PROPERTY_STREAMING};
  return a;
}

constexpr uint32_t kSpread = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
constexpr uint32_t kBalanced = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;

class HookedLaunch : public ::testing::Test {
 protected:
  void SetUp() override {
    {
      std::lock_guard lock(mutex);
      clearRecords();
    }
    CHECK_CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
    CHECK_CU(cuInit(0));
    CHECK_CU(cuDevicePrimaryCtxRetain(&context_, 0));
    CHECK_CU(cuCtxSetCurrent(context_));
    CHECK_CU(cuModuleLoadData(&module_, kPtx));
    CHECK_CU(cuModuleGetFunction(&plain_, module_, "plain"));
    CHECK_CU(cuModuleGetFunction(&pair_, module_, "pair"));
    CHECK_CU(cuMemAlloc(&memory_, 4096));
  }
  void TearDown() override {
    CHECK_CUPTI(cuptiFinalize());
    cuMemFree(memory_);
    cuModuleUnload(module_);
    cuDevicePrimaryCtxRelease(0);
  }
  void flush() {
    CHECK_CU(cuCtxSynchronize());
    CHECK_CUPTI(cuptiActivityFlushAll(0));
  }
  // The record of one launch with these attributes.
  CUpti_ActivityKernel10 launched(CUfunction function, std::vector<CUlaunchAttribute> attributes,
                                  CUstream stream = nullptr, unsigned shared = 0) {
    CUlaunchConfig config{};
    config.gridDimX = 8;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 32;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernelEx(&config, function, nullptr, nullptr));
    return one();
  }
  CUpti_ActivityKernel10 one() {
    flush();
    std::lock_guard lock(mutex);
    EXPECT_EQ(1u, kernels.size());
    const CUpti_ActivityKernel10 found = kernels.empty() ? CUpti_ActivityKernel10{} : kernels[0];
    kernels.clear();
    return found;
  }
  static void expectWindow(const CUlaunchAttribute& given, const CUaccessPolicyWindow* window) {
    ASSERT_NE(nullptr, window);
    const CUaccessPolicyWindow& w = given.value.accessPolicyWindow;
    EXPECT_EQ(w.base_ptr, window->base_ptr);
    EXPECT_EQ(w.num_bytes, window->num_bytes);
    EXPECT_EQ(w.hitRatio, window->hitRatio);
    EXPECT_EQ(w.hitProp, window->hitProp);
    EXPECT_EQ(w.missProp, window->missProp);
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction plain_ = nullptr, pair_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(HookedLaunch, WindowOfTheLaunchOrItsStream) {
  const CUlaunchAttribute mine = windowOf(memory_, 4096, 0.5f), streams = windowOf(memory_, 1024, 0.25f);
  // From before the hooks.
  CUstream early = nullptr;
  CHECK_CU(cuStreamCreate(&early, CU_STREAM_NON_BLOCKING));
  CHECK_CU(cuStreamSetAttribute(early, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &streams.value));
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(nullptr, launched(plain_, {mine}).pAccessPolicyWindow) << "launch attributes were not enabled";
  CHECK_CUPTI(cuptiActivityEnableLaunchAttributes(1));
  EXPECT_EQ(nullptr, launched(plain_, {}).pAccessPolicyWindow);
  const CUpti_ActivityKernel10 first = launched(plain_, {mine});
  expectWindow(mine, first.pAccessPolicyWindow);
  expectWindow(streams, launched(plain_, {}, early).pAccessPolicyWindow);
  CUstream stream = nullptr, copy = nullptr;
  CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_CU(cuStreamCreate(&copy, CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(nullptr, launched(plain_, {}, stream).pAccessPolicyWindow);
  CHECK_CU(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &streams.value));
  expectWindow(streams, launched(plain_, {}, stream).pAccessPolicyWindow);
  expectWindow(mine, launched(plain_, {mine}, stream).pAccessPolicyWindow);
  EXPECT_EQ(nullptr, launched(plain_, {}, copy).pAccessPolicyWindow);
  CHECK_CU(cuStreamCopyAttributes(copy, stream));
  expectWindow(streams, launched(plain_, {}, copy).pAccessPolicyWindow);
  // The null stream.
  CHECK_CU(cuStreamSetAttribute(nullptr, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &mine.value));
  expectWindow(mine, launched(plain_, {}).pAccessPolicyWindow);
  const CUlaunchAttribute none = windowOf(0, 0, 0);
  for (CUstream s : {static_cast<CUstream>(nullptr), stream}) {
    CHECK_CU(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &none.value));
    EXPECT_EQ(nullptr, launched(plain_, {}, s).pAccessPolicyWindow);
  }
  expectWindow(mine, first.pAccessPolicyWindow);  // records live longer than launches
  for (CUstream s : {early, stream, copy}) CHECK_CU(cuStreamDestroy(s));
}

TEST_F(HookedLaunch, WindowAndClusterOfAGraphsNode) {
  const CUlaunchAttribute window = windowOf(memory_, 2048, 0.75f);
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CHECK_CUPTI(cuptiActivityEnableLaunchAttributes(1));
  CUstream stream = nullptr;
  CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  std::vector<CUlaunchAttribute> attributes{window, clusterOf(4),
                                            policyOf(CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)};
  CUlaunchConfig config{};
  config.gridDimX = 8;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 32;
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = 3;
  CHECK_CU(cuLaunchKernelEx(&config, plain_, nullptr, nullptr));
  CUgraph graph;
  CHECK_CU(cuStreamEndCapture(stream, &graph));
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CHECK_CU(cuGraphLaunch(exec, stream));
  CUpti_ActivityKernel10 k = one();
  expectWindow(window, k.pAccessPolicyWindow);
  EXPECT_EQ(4u, k.clusterX);
  EXPECT_EQ(kBalanced, k.clusterSchedulingPolicy);
  EXPECT_EQ(8u, k.maxPotentialClusterSize);
  EXPECT_EQ(16u * 32u / 4u, k.maxActiveClusters);
  // New parameters: the attributes stay.
  CUgraphNode node;
  size_t nodes = 1;
  CHECK_CU(cuGraphGetNodes(graph, &node, &nodes));
  CUDA_KERNEL_NODE_PARAMS params{};
  CHECK_CU(cuGraphKernelNodeGetParams(node, &params));
  params.sharedMemBytes = 40000;
  CHECK_CU(cuGraphExecKernelNodeSetParams(exec, node, &params));
  CHECK_CU(cuGraphLaunch(exec, stream));
  k = one();
  EXPECT_EQ(40000, k.dynamicSharedMemory);
  expectWindow(window, k.pAccessPolicyWindow);
  EXPECT_EQ(4u, k.clusterX);
  EXPECT_EQ(kBalanced, k.clusterSchedulingPolicy);
  EXPECT_EQ(16u * 5u / 4u, k.maxActiveClusters) << "five blocks share the 228 KiB of a multiprocessor";
  CHECK_CU(cuGraphExecDestroy(exec));
  CHECK_CU(cuGraphDestroy(graph));
  CHECK_CU(cuStreamDestroy(stream));
}

// 16 multiprocessors, each with room for 32 blocks.
TEST_F(HookedLaunch, ClustersAndTheirPlacement) {
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CUpti_ActivityKernel10 k = launched(plain_, {});
  EXPECT_EQ(0u, k.clusterX);
  EXPECT_EQ(kSpread, k.clusterSchedulingPolicy);
  EXPECT_EQ(0u, k.maxPotentialClusterSize);
  EXPECT_EQ(0u, k.maxActiveClusters);
  k = launched(plain_, {policyOf(CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING)});
  EXPECT_EQ(kBalanced, k.clusterSchedulingPolicy);
  EXPECT_EQ(0u, k.maxPotentialClusterSize);
  k = launched(plain_, {clusterOf(1)});
  EXPECT_EQ(1u, k.clusterX);
  EXPECT_EQ(0u, k.maxPotentialClusterSize);
  EXPECT_EQ(0u, k.maxActiveClusters);
  k = launched(plain_, {clusterOf(4)});
  EXPECT_EQ(kSpread, k.clusterSchedulingPolicy);
  EXPECT_EQ(8u, k.maxPotentialClusterSize);
  EXPECT_EQ(128u, k.maxActiveClusters);
  k = launched(plain_, {clusterOf(2)}, nullptr, 40000);
  EXPECT_EQ(16u * 5u / 2u, k.maxActiveClusters);
  // The kernel's own cluster, by both ways of launching.
  k = launched(pair_, {});
  EXPECT_EQ(2u, k.clusterX);
  EXPECT_EQ(1u, k.clusterY);
  EXPECT_EQ(1u, k.clusterZ);
  EXPECT_EQ(256u, k.maxActiveClusters);
  CHECK_CU(cuLaunchKernel(pair_, 4, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  k = one();
  EXPECT_EQ(2u, k.clusterX);
  EXPECT_EQ(256u, k.maxActiveClusters);
  // Attributes of the function, set after it was launched.
  const uint32_t stream = k.streamId;
  CHECK_CU(cuFuncSetAttribute(plain_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT_EQ(16u, launched(plain_, {clusterOf(4)}).maxPotentialClusterSize);
  CHECK_CU(cuFuncSetAttribute(plain_, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, kBalanced));
  k = launched(plain_, {});
  EXPECT_EQ(kBalanced, k.clusterSchedulingPolicy);
  EXPECT_EQ(stream, k.streamId);
  EXPECT_EQ(kSpread, launched(plain_, {policyOf(CU_CLUSTER_SCHEDULING_POLICY_SPREAD)}).clusterSchedulingPolicy);
}

TEST_F(HookedLaunch, LimitOfSharedMemory) {
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_EQ(CUPTI_FUNC_SHMEM_LIMIT_DEFAULT, launched(plain_, {}).shmemLimitConfig);
  CHECK_CU(cuFuncSetAttribute(plain_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
  EXPECT_EQ(CUPTI_FUNC_SHMEM_LIMIT_OPTIN, launched(plain_, {}, nullptr, 90000).shmemLimitConfig);
  EXPECT_EQ(CUPTI_FUNC_SHMEM_LIMIT_DEFAULT, launched(pair_, {}).shmemLimitConfig);
}

// All that a driver tells about an array is its handle.
TEST_F(HookedLaunch, MemoryOfTheHostAndArrays) {
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMORY2));
  CUDA_ARRAY_DESCRIPTOR d{};
  d.Width = d.Height = 64;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 1;
  CUarray freed, kept;
  CHECK_CU(cuArrayCreate(&freed, &d));
  CHECK_CU(cuArrayDestroy(freed));
  d.NumChannels = 2;
  CHECK_CU(cuArrayCreate(&kept, &d));
  std::vector<char> host(10000);
  CHECK_CU(cuMemHostRegister(host.data(), host.size(), 0));
  CHECK_CU(cuMemHostUnregister(host.data()));
  CUdeviceptr linear;
  CHECK_CU(cuMemAlloc(&linear, 3000));
  // The linear memory gets no record: so it is with the vendor's library.
  CHECK_CU(cuDevicePrimaryCtxReset(0));
  CHECK_CUPTI(cuptiActivityFlushAll(0));
  struct Expected {
    uint64_t address, bytes;
    CUpti_ActivityMemoryKind kind;
    CUpti_ActivityMemoryOperationType operation;
  };
  const auto at = [](const void* p) { return reinterpret_cast<uint64_t>(p); };
  constexpr auto kMade = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  constexpr auto kGone = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  const Expected expected[] = {{at(freed), 16384, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, kMade},
                               {at(freed), 16384, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, kGone},
                               {at(kept), 32768, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, kMade},
                               {at(host.data()), 10000, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, kMade},
                               {at(host.data()), 10000, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, kGone},
                               {linear, 3000, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, kMade},
                               {at(kept), 32768, CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, kGone}};
  {
    std::lock_guard lock(mutex);
    ASSERT_EQ(std::size(expected), allocations.size());
    for (size_t i = 0; i < allocations.size(); ++i) {
      EXPECT_EQ(expected[i].address, allocations[i].address) << i;
      EXPECT_EQ(expected[i].bytes, allocations[i].bytes) << i;
      EXPECT_EQ(expected[i].kind, allocations[i].memoryKind) << i;
      EXPECT_EQ(expected[i].operation, allocations[i].memoryOperationType) << i;
      EXPECT_EQ(CUPTI_INVALID_STREAM_ID, allocations[i].streamId) << i;
    }
  }
  memory_ = 0;
  module_ = nullptr;
}

}  // namespace
