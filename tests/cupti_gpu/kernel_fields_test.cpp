// SPDX-License-Identifier: Apache-2.0
// What a kernel's record says of its resources and of how it was configured.
#include <string>

#include "gpu_trace.h"
#include "tests/driver/launch_attributes.h"

namespace sonde::test {
namespace {

// 48 bytes of local memory a thread, 64 bytes of shared memory a block.
constexpr char kResourcesPtx[] = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry resources(.param .u64 out)
{
    .local .align 4 .b8 room[48];
    .shared .align 4 .b8 block[64];
    .reg .b32 v;
    .reg .b64 at, a;
    mov.u64 a, room;
    st.local.u32 [a], 5;
    ld.local.u32 v, [a];
    ld.param.u64 at, [out];
    st.global.u32 [at], v;
    ret;
}
)";

class GpuKernelFields : public GpuTrace {
 protected:
  void SetUp() override {
    GpuTrace::SetUp();
    CU(cuModuleLoadData(&module_, kResourcesPtx));
    CU(cuModuleGetFunction(&function_, module_, "resources"));
    CUDA(allocate(&out_, 4096));
    enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  }
  void TearDown() override {
    cuModuleUnload(module_);
    cudaFree(out_);
    GpuTrace::TearDown();
  }
  // The record of one launch with these attributes.
  CUpti_ActivityKernel10 launched(std::vector<CUlaunchAttribute> attributes, CUstream stream = nullptr,
                                  uint32_t shared = 0, uint32_t blocks = 4) {
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 32;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    void* arguments[] = {&out_};
    EXPECT_EQ(CUDA_SUCCESS, cuLaunchKernelEx(&config, function_, arguments, nullptr));
    finish();
    const auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    EXPECT_EQ(1u, kernels.size());
    collector_.clear();
    return kernels.empty() ? CUpti_ActivityKernel10{} : kernels[0];
  }
  int attribute(CUfunction_attribute which) {
    int value = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuFuncGetAttribute(&value, which, function_));
    return value;
  }
  int ofDevice(CUdevice_attribute which) {
    int value = -1;
    EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&value, which, 0));
    return value;
  }
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  uint32_t* out_ = nullptr;
};

TEST_F(GpuKernelFields, Resources) {
  const CUpti_ActivityKernel10 k = launched({}, nullptr, 100);
  EXPECT_STREQ("resources", k.name);
  EXPECT_EQ(attribute(CU_FUNC_ATTRIBUTE_NUM_REGS), k.registersPerThread);
  EXPECT_EQ(64, k.staticSharedMemory);
  EXPECT_EQ(100, k.dynamicSharedMemory);
  // With what the device takes of each block for itself.
  EXPECT_EQ(164u + static_cast<uint32_t>(ofDevice(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)),
            k.sharedMemoryExecuted);
  EXPECT_EQ(48u, k.localMemoryPerThread);
  // Room for every thread that the device can hold.
  const uint64_t threads = static_cast<uint64_t>(ofDevice(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) *
                           static_cast<uint64_t>(ofDevice(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR));
  EXPECT_EQ(48u * threads, k.localMemoryTotal_v2);
  EXPECT_EQ(48u * threads, k.localMemoryTotal);
  EXPECT_EQ(1, k.sharedMemoryConfig) << "banks of four bytes";
  EXPECT_EQ(CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR, k.launchType);
  EXPECT_EQ(CUPTI_CHANNEL_TYPE_COMPUTE, k.channelType);
  EXPECT_EQ(0, k.isSharedMemoryCarveoutRequested);
  EXPECT_EQ(0, k.sharedMemoryCarveoutRequested);
  EXPECT_EQ(0u, k.clusterX);
}

TEST_F(GpuKernelFields, LimitOfSharedMemory) {
  EXPECT_EQ(CUPTI_FUNC_SHMEM_LIMIT_DEFAULT, launched({}).shmemLimitConfig);
  // 48 KiB a block are every kernel's; 64 bytes are static.
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152 - 64));
  EXPECT_EQ(CUPTI_FUNC_SHMEM_LIMIT_DEFAULT, launched({}).shmemLimitConfig);
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49152 - 63));
  EXPECT_EQ(CUPTI_FUNC_SHMEM_LIMIT_OPTIN, launched({}).shmemLimitConfig) << "also where the launch needs none";
}

CUlaunchAttribute windowOf(void* base, size_t bytes, float ratio = 0.5f) {
  CUlaunchAttribute a{};
  a.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
  a.value.accessPolicyWindow = {base, bytes, ratio, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING};
  return a;
}

void expectWindow(const CUlaunchAttribute& given, const CUaccessPolicyWindow* window) {
  ASSERT_NE(nullptr, window);
  const CUaccessPolicyWindow& w = given.value.accessPolicyWindow;
  EXPECT_EQ(w.base_ptr, window->base_ptr);
  EXPECT_EQ(w.num_bytes, window->num_bytes);
  EXPECT_EQ(w.hitRatio, window->hitRatio);
  EXPECT_EQ(w.hitProp, window->hitProp);
  EXPECT_EQ(w.missProp, window->missProp);
}

TEST_F(GpuKernelFields, AccessPolicyWindowOfTheLaunchOrItsStream) {
  const CUlaunchAttribute mine = windowOf(out_, 4096), streams = windowOf(out_, 1024, 0.25f);
  EXPECT_EQ(nullptr, launched({mine}).pAccessPolicyWindow) << "launch attributes were not enabled";
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableLaunchAttributes(1));
  EXPECT_EQ(nullptr, launched({}).pAccessPolicyWindow);
  const CUpti_ActivityKernel10 first = launched({mine});
  expectWindow(mine, first.pAccessPolicyWindow);
  CUstream stream = nullptr, copy = nullptr;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU(cuStreamCreate(&copy, CU_STREAM_NON_BLOCKING));
  CU(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &streams.value));
  CU(cuStreamCopyAttributes(copy, stream));
  expectWindow(streams, launched({}, copy).pAccessPolicyWindow);
  expectWindow(mine, launched({mine}, stream).pAccessPolicyWindow);
  // Nodes keep that of the stream which they were captured from.
  CUgraph graph;
  CUgraphExec exec;
  void* arguments[] = {&out_};
  CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuLaunchKernel(function_, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
  CU(cuStreamEndCapture(stream, &graph));
  CU(cuGraphInstantiate(&exec, graph, 0));
  const CUlaunchAttribute none = windowOf(nullptr, 0);
  CU(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &none.value));
  EXPECT_EQ(nullptr, launched({}, stream).pAccessPolicyWindow);
  CU(cuGraphLaunch(exec, stream));
  finish();
  const auto nodes = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, nodes.size());
  expectWindow(streams, nodes[0].pAccessPolicyWindow);
  expectWindow(mine, first.pAccessPolicyWindow);  // records live longer than launches
  CU(cuGraphExecDestroy(exec));
  CU(cuGraphDestroy(graph));
  CU(cuStreamDestroy(copy));
  CU(cuStreamDestroy(stream));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableLaunchAttributes(0));
}

TEST_F(GpuKernelFields, CacheConfiguration) {
  EXPECT_EQ(CU_FUNC_CACHE_PREFER_NONE, launched({}).cacheConfig.config.requested);
  CU(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL));
  CUpti_ActivityKernel10 k = launched({});
  EXPECT_EQ(CU_FUNC_CACHE_PREFER_EQUAL, k.cacheConfig.config.requested) << "the context's";
  CU(cuFuncSetCacheConfig(function_, CU_FUNC_CACHE_PREFER_L1));
  k = launched({});
  EXPECT_EQ(CU_FUNC_CACHE_PREFER_L1, k.cacheConfig.config.requested) << "the function's goes before";
  EXPECT_EQ(CU_FUNC_CACHE_PREFER_L1, k.cacheConfig.config.executed);
  CU(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE));
}

TEST_F(GpuKernelFields, SharedMemoryCarveout) {
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 25));
  CUpti_ActivityKernel10 k = launched({});
  EXPECT_EQ(1, k.isSharedMemoryCarveoutRequested);
  EXPECT_EQ(25, k.sharedMemoryCarveoutRequested);
  CUlaunchAttribute half{};
  half.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  half.value.sharedMemCarveout = 50;
  k = launched({half});
  EXPECT_EQ(1, k.isSharedMemoryCarveoutRequested);
  EXPECT_EQ(50, k.sharedMemoryCarveoutRequested) << "the launch's goes before";
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0));
  k = launched({});
  EXPECT_EQ(1, k.isSharedMemoryCarveoutRequested) << "no shared memory is a share too";
  EXPECT_EQ(0, k.sharedMemoryCarveoutRequested);
}

// The device has 16 multiprocessors, all in one group that clusters may be
// spread over, and each has room for 32 blocks.
TEST_F(GpuKernelFields, HowManyClustersFit) {
  ASSERT_EQ(16, ofDevice(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  ASSERT_EQ(32, ofDevice(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR));
  CUpti_ActivityKernel10 k = launched({});
  EXPECT_EQ(0u, k.maxPotentialClusterSize) << "blocks by themselves";
  EXPECT_EQ(0u, k.maxActiveClusters);
  k = launched({clusterOf(1)});
  EXPECT_EQ(1u, k.clusterX);
  EXPECT_EQ(0u, k.maxPotentialClusterSize);
  EXPECT_EQ(0u, k.maxActiveClusters);
  k = launched({clusterOf(4)});
  EXPECT_EQ(8u, k.maxPotentialClusterSize) << "what is portable";
  EXPECT_EQ(16u * 32u / 4u, k.maxActiveClusters);
  // 64 + 40000 bytes and 1024 of the device's own: 321 units of 128 bytes, of
  // which 228 KiB hold five.
  k = launched({clusterOf(4)}, nullptr, 40000);
  EXPECT_EQ(16u * 5u / 4u, k.maxActiveClusters);
  k = launched({clusterOf(2)}, nullptr, 40000);
  EXPECT_EQ(16u * 5u / 2u, k.maxActiveClusters);
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  k = launched({clusterOf(2)}, nullptr, 40000);
  EXPECT_EQ(16u, k.maxPotentialClusterSize);
  // Grids are whole numbers of clusters: one of sixteen blocks.
  k = launched({clusterOf(16)}, nullptr, 40000, 16);
  EXPECT_EQ(16u, k.maxPotentialClusterSize);
  EXPECT_EQ(5u, k.maxActiveClusters);
  // The cluster of the function.
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  k = launched({});
  EXPECT_EQ(2u, k.clusterX);
  EXPECT_EQ(16u * 32u / 2u, k.maxActiveClusters);
  // The driver says the same.
  CUlaunchConfig config{};
  config.gridDimX = 4;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 32;
  int clusters = 0, largest = 0;
  CU(cuOccupancyMaxActiveClusters(&clusters, function_, &config));
  CU(cuOccupancyMaxPotentialClusterSize(&largest, function_, &config));
  EXPECT_EQ(256, clusters);
  EXPECT_EQ(16, largest);
}

TEST_F(GpuKernelFields, ClusterSchedulingPolicy) {
  constexpr uint32_t kSpread = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  constexpr uint32_t kBalanced = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
  EXPECT_EQ(kSpread, launched({}).clusterSchedulingPolicy) << "without a wish, with clusters or without";
  EXPECT_EQ(kSpread, launched({policyOf(CU_CLUSTER_SCHEDULING_POLICY_DEFAULT), clusterOf(2)}).clusterSchedulingPolicy);
  const CUlaunchAttribute balanced = policyOf(CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
  EXPECT_EQ(kBalanced, launched({balanced}).clusterSchedulingPolicy);
  CU(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, kBalanced));
  EXPECT_EQ(kBalanced, launched({clusterOf(2)}).clusterSchedulingPolicy) << "the function's";
  EXPECT_EQ(kSpread, launched({policyOf(CU_CLUSTER_SCHEDULING_POLICY_SPREAD)}).clusterSchedulingPolicy)
      << "the launch's goes before";
  // Nodes have that of the launch they were made by, and may be given another one.
  CUstream stream = nullptr;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUlaunchConfig config{};
  config.gridDimX = 4;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  CUlaunchAttribute attribute = balanced;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* arguments[] = {&out_};
  CU(cuLaunchKernelEx(&config, function_, arguments, nullptr));
  CUgraph graph;
  CU(cuStreamEndCapture(stream, &graph));
  auto ofNode = [&] {
    CUgraphExec exec;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphInstantiate(&exec, graph, 0));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphLaunch(exec, stream));
    finish();
    const auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    EXPECT_EQ(1u, kernels.size());
    collector_.clear();
    EXPECT_EQ(CUDA_SUCCESS, cuGraphExecDestroy(exec));
    return kernels.empty() ? ~0u : kernels[0].clusterSchedulingPolicy;
  };
  EXPECT_EQ(kBalanced, ofNode());
  CUgraphNode node;
  size_t nodes = 1;
  CU(cuGraphGetNodes(graph, &node, &nodes));
  CUkernelNodeAttrValue value{};
  CU(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &value));
  EXPECT_EQ(CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING, value.clusterSchedulingPolicyPreference);
  value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  CU(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &value));
  EXPECT_EQ(kSpread, ofNode());
  // Not one of the policies.
  attribute.value.clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(7);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, function_, arguments, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 7));
  CU(cuGraphDestroy(graph));
  CU(cuStreamDestroy(stream));
}

TEST_F(GpuKernelFields, KindsOfLaunches) {
  CUlaunchAttribute cooperative{};
  cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  cooperative.value.cooperative = 1;
  EXPECT_EQ(CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE, launched({cooperative}).launchType);
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = 2;
  cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  const CUpti_ActivityKernel10 k = launched({cluster});
  EXPECT_EQ(2u, k.clusterX);
  EXPECT_EQ(1u, k.clusterY);
  EXPECT_EQ(1u, k.clusterZ);
  CUstream stream = nullptr;
  CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  uint32_t id = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamIdEx(nullptr, stream, 0, &id));
  const CUpti_ActivityKernel10 inStream = launched({}, stream);
  EXPECT_EQ(id, inStream.streamId);
  EXPECT_EQ(inStream.end, inStream.completed);
  CU(cuStreamDestroy(stream));
}

}  // namespace
}  // namespace sonde::test
