// SPDX-License-Identifier: Apache-2.0
//
// Nodes of graphs and their ids, on hooks, with the software driver in the place
// of the vendor's.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "hooked_records.h"

namespace sonde::test {
namespace {

const char kPtx[] = R"(.version 7.0
.target sm_60
.address_size 64
.visible .entry store(.param .u64 out, .param .u32 value)
{
  .reg .b32 %n<2>;
  .reg .b64 %r<2>;
  ld.param.u64 %r0, [out];
  ld.param.u32 %n0, [value];
  cvta.to.global.u64 %r0, %r0;
  st.global.u32 [%r0], %n0;
  ret;
}
.visible .entry other(.param .u64 out, .param .u32 value)
{
  ret;
}
)";

class HookedGraph : public ::testing::Test {
 protected:
  void SetUp() override {
    clearRecords();
    CHECK_CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
    for (CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET})
      CHECK_CUPTI(cuptiActivityEnable(kind));
    CHECK_CU(cuInit(0));
    CHECK_CU(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_CU(cuCtxSetCurrent(context));
    CHECK_CU(cuModuleLoadData(&module, kPtx));
    CHECK_CU(cuModuleGetFunction(&store, module, "store"));
    CHECK_CU(cuModuleGetFunction(&other, module, "other"));
    CHECK_CU(cuMemAlloc(&memory, 65536));
    CHECK_CU(cuMemsetD8(memory, 0, 65536));
    CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_CU(cuCtxSynchronize());
    CHECK_CUPTI(cuptiActivityFlushAll(0));
    sets.clear();
  }
  void TearDown() override {
    cuStreamDestroy(stream);
    cuMemFree(memory);
    cuModuleUnload(module);
    cuptiFinalize();
  }
  CUDA_KERNEL_NODE_PARAMS kernelParams(CUfunction function, unsigned blocks, void** params) {
    CUDA_KERNEL_NODE_PARAMS p{};
    p.func = function;
    p.gridDimX = blocks, p.gridDimY = 1, p.gridDimZ = 1;
    p.blockDimX = 32, p.blockDimY = 1, p.blockDimZ = 1;
    p.kernelParams = params;
    return p;
  }
  CUgraphNode addKernel(CUgraph graph, std::vector<CUgraphNode> after, unsigned value, unsigned blocks = 1) {
    CUdeviceptr out = memory + 4 * value;
    void* params[] = {&out, &value};
    const CUDA_KERNEL_NODE_PARAMS p = kernelParams(store, blocks, params);
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode(&node, graph, after.data(), after.size(), &p));
    return node;
  }
  void finish() {
    CHECK_CU(cuStreamSynchronize(stream));
    CHECK_CUPTI(cuptiActivityFlushAll(0));
    auto byStart = [](const auto& a, const auto& b) { return a.start < b.start; };
    std::stable_sort(kernels.begin(), kernels.end(), byStart);
  }
  unsigned at(unsigned index) {
    unsigned value = 0;
    cuMemcpyDtoH(&value, memory + 4 * index, 4);
    return value;
  }
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction store = nullptr, other = nullptr;
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
};

TEST_F(HookedGraph, NodesAreRecordedInOrderWithTheirIds) {
  CUgraph graph;
  CHECK_CU(cuGraphCreate(&graph, 0));
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = memory + 4096, set.value = 9, set.elementSize = 4, set.width = 100, set.height = 1;
  CUgraphNode first;
  CHECK_CU(cuGraphAddMemsetNode(&first, graph, nullptr, 0, &set, context));
  const CUgraphNode a = addKernel(graph, {first}, 1, 3), b = addKernel(graph, {a}, 2, 5);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = memory, copy.dstDevice = memory + 8192;
  copy.WidthInBytes = 512, copy.Height = copy.Depth = 1;
  CUgraphNode last;
  CHECK_CU(cuGraphAddMemcpyNode(&last, graph, &b, 1, &copy, context));
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  size_t nodes = 0;
  CHECK_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(4u, nodes);  // the application's graph is as it was
  uint32_t execId = 0;
  CHECK_CUPTI(cuptiGetGraphExecId(exec, &execId));
  for (int i = 0; i < 5; ++i) CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(10u, kernels.size());
  ASSERT_EQ(5u, copies.size());
  ASSERT_EQ(5u, sets.size());
  for (unsigned i = 0; i < 10; ++i) {
    const auto& k = kernels[i];
    EXPECT_EQ(i % 2 == 0 ? 3 : 5, k.gridX);
    EXPECT_EQ(execId, k.graphId);
    EXPECT_EQ(uint64_t{execId} << 32 | (1 + i % 2), k.graphNodeId);
    EXPECT_LT(k.start, k.end);
    EXPECT_EQ(kernels[i / 2 * 2].correlationId, k.correlationId);
    if (i > 0) {
      EXPECT_GE(k.start, kernels[i - 1].end);
    }
  }
  for (const auto& s : sets) {
    EXPECT_EQ(400u, s.bytes);
    EXPECT_EQ(9u, s.value);
    EXPECT_EQ(uint64_t{execId} << 32, s.graphNodeId);
  }
  for (const auto& c : copies) {
    EXPECT_EQ(512u, c.bytes);
    EXPECT_EQ(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, c.copyKind);
    EXPECT_EQ(uint64_t{execId} << 32 | 3, c.graphNodeId);
  }
  EXPECT_EQ(2u, at(2));
  CHECK_CU(cuGraphExecDestroy(exec));
  CHECK_CU(cuGraphDestroy(graph));
}

TEST_F(HookedGraph, NodesOfChildGraphsHaveTimesAndCanBeChanged) {
  CUgraph innermost, inner, graph;
  for (CUgraph* g : {&innermost, &inner, &graph}) CHECK_CU(cuGraphCreate(g, 0));
  addKernel(innermost, {addKernel(innermost, {}, 3, 3)}, 4, 4);
  CUgraphNode deep, child;
  const CUgraphNode second = addKernel(inner, {}, 2, 2);
  CHECK_CU(cuGraphAddChildGraphNode(&deep, inner, &second, 1, innermost));
  addKernel(inner, {deep}, 5, 5);
  const CUgraphNode first = addKernel(graph, {}, 1, 1);
  CHECK_CU(cuGraphAddChildGraphNode(&child, graph, &first, 1, inner));
  addKernel(graph, {child}, 6, 6);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(18u, kernels.size());
  std::set<uint64_t> ids;
  for (unsigned i = 0; i < 18; ++i) {
    EXPECT_EQ(static_cast<int>(i % 6 + 1), kernels[i].gridX);  // they come one after the other
    EXPECT_LT(kernels[i].start, kernels[i].end);
    EXPECT_EQ(kernels[i % 6].graphNodeId, kernels[i].graphNodeId);
    EXPECT_EQ(kernels[0].graphId, kernels[i].graphId);
    if (i > 0) {
      EXPECT_GE(kernels[i].start, kernels[i - 1].end);
    }
    ids.insert(kernels[i].graphNodeId);
  }
  // Nodes of child graphs are numbered behind those of the graph around them, the child nodes included.
  const std::set<uint64_t> numbers{0, 2, 3, 5, 6, 7};
  std::set<uint64_t> expected;
  for (const uint64_t n : numbers) expected.insert(uint64_t{kernels[0].graphId} << 32 | n);
  EXPECT_EQ(expected, ids);
  for (unsigned i = 1; i <= 6; ++i) EXPECT_EQ(i, at(i));

  // A node of a child graph, named as the application knows it.
  CUgraph part, deepPart;
  CHECK_CU(cuGraphChildGraphNodeGetGraph(child, &part));
  std::vector<CUgraphNode> nodes(3);
  size_t count = 3;
  CHECK_CU(cuGraphGetNodes(part, nodes.data(), &count));
  ASSERT_EQ(3u, count);
  CHECK_CU(cuGraphChildGraphNodeGetGraph(nodes[1], &deepPart));
  std::vector<CUgraphNode> deepNodes(2);
  count = 2;
  CHECK_CU(cuGraphGetNodes(deepPart, deepNodes.data(), &count));
  CUdeviceptr out = memory + 4 * 7;
  unsigned value = 77;
  void* params[] = {&out, &value};
  CUDA_KERNEL_NODE_PARAMS p = kernelParams(store, 7, params);
  CHECK_CU(cuGraphExecKernelNodeSetParams(exec, nodes[0], &p));
  value = 78, out = memory + 4 * 8;
  p.gridDimX = 8;
  CHECK_CU(cuGraphExecKernelNodeSetParams(exec, deepNodes[1], &p));
  kernels.clear();
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(6u, kernels.size());
  const int changed[] = {1, 7, 3, 8, 5, 6};
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(changed[i], kernels[i].gridX);
  EXPECT_EQ(77u, at(7));
  EXPECT_EQ(78u, at(8));

  // The child graph as a whole: of the same shape, and of another.
  CUgraph other, wrong;
  CHECK_CU(cuGraphClone(&other, inner));
  std::vector<CUgraphNode> others(3);
  count = 3;
  CHECK_CU(cuGraphGetNodes(other, others.data(), &count));
  value = 79, out = memory + 4 * 9;
  p.gridDimX = 9;
  CHECK_CU(cuGraphKernelNodeSetParams(others[2], &p));
  CHECK_CU(cuGraphExecChildGraphNodeSetParams(exec, child, other));
  CHECK_CU(cuGraphCreate(&wrong, 0));
  addKernel(wrong, {}, 20);
  EXPECT_NE(CUDA_SUCCESS, cuGraphExecChildGraphNodeSetParams(exec, child, wrong));
  kernels.clear();
  CHECK_CU(cuGraphLaunch(exec, stream));
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(12u, kernels.size());
  const int replaced[] = {1, 2, 3, 4, 9, 6};
  for (unsigned i = 0; i < 12; ++i) {
    EXPECT_EQ(replaced[i % 6], kernels[i].gridX);
    EXPECT_LT(kernels[i].start, kernels[i].end);
  }
  EXPECT_EQ(79u, at(9));
  EXPECT_EQ(0u, at(20));
  CHECK_CU(cuGraphExecDestroy(exec));
}

// What the driver does not copy has no times; that its nodes ran is known.
TEST_F(HookedGraph, NodesOfAGraphThatAllocatesAreRecordedWithoutTimes) {
  CUgraph graph;
  CHECK_CU(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS allocation{};
  allocation.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  allocation.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  allocation.bytesize = 4096;
  CUgraphNode made, freed;
  CHECK_CU(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &allocation));
  const CUgraphNode a = addKernel(graph, {made}, 1, 3), b = addKernel(graph, {a}, 2, 5);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = allocation.dptr, copy.dstDevice = memory + 8192;
  copy.WidthInBytes = 512, copy.Height = copy.Depth = 1;
  CUgraphNode copied;
  CHECK_CU(cuGraphAddMemcpyNode(&copied, graph, &b, 1, &copy, context));
  CHECK_CU(cuGraphAddMemFreeNode(&freed, graph, &copied, 1, allocation.dptr));
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CHECK_CU(cuGraphNodeSetEnabled(exec, b, 0));
  CHECK_CU(cuGraphLaunch(exec, stream));
  CHECK_CU(cuGraphNodeSetEnabled(exec, b, 1));
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(3u, kernels.size());
  uint32_t execId = 0;
  CHECK_CUPTI(cuptiGetGraphExecId(exec, &execId));
  std::vector<int> grids;
  for (const auto& k : kernels) {
    grids.push_back(k.gridX);
    EXPECT_EQ(0u, k.start);
    EXPECT_EQ(0u, k.end);
    EXPECT_EQ(execId, k.graphId);
    EXPECT_STREQ("store", k.name);
    EXPECT_NE(0u, k.correlationId);
  }
  EXPECT_EQ((std::vector<int>{3, 3, 5}), grids);
  ASSERT_EQ(2u, copies.size());
  for (const auto& c : copies) {
    EXPECT_EQ(CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, c.copyKind);
    EXPECT_EQ(512u, c.bytes);
    EXPECT_EQ(0u, c.start);
  }
  EXPECT_NE(kernels[0].correlationId, kernels[1].correlationId);
  EXPECT_EQ(kernels[1].correlationId, kernels[2].correlationId);
  EXPECT_EQ(2u, at(2));
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedGraph, TheApplicationsNodesStillChangeTheExecutableGraph) {
  CUgraph graph;
  CHECK_CU(cuGraphCreate(&graph, 0));
  const CUgraphNode a = addKernel(graph, {}, 1), b = addKernel(graph, {a}, 2);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CUdeviceptr out = memory + 4 * 7;
  unsigned value = 77;
  void* params[] = {&out, &value};
  CUDA_KERNEL_NODE_PARAMS p = kernelParams(store, 4, params);
  CHECK_CU(cuGraphExecKernelNodeSetParams(exec, a, &p));
  unsigned enabled = 0;
  CHECK_CU(cuGraphNodeGetEnabled(exec, b, &enabled));
  EXPECT_EQ(1u, enabled);
  CHECK_CU(cuGraphNodeSetEnabled(exec, b, 0));
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(1u, kernels.size());
  EXPECT_EQ(4, kernels[0].gridX);
  EXPECT_EQ(77u, at(7));
  EXPECT_EQ(0u, at(1));
  EXPECT_EQ(0u, at(2));
  // Also when nobody profiles any more.
  CHECK_CUPTI(cuptiFinalize());
  CHECK_CU(cuGraphNodeSetEnabled(exec, b, 1));
  value = 78;
  CHECK_CU(cuGraphExecKernelNodeSetParams(exec, a, &p));
  CHECK_CU(cuGraphLaunch(exec, stream));
  CHECK_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(78u, at(7));
  EXPECT_EQ(2u, at(2));
  CHECK_CU(cuGraphExecDestroy(exec));
  CHECK_CU(cuGraphDestroy(graph));
}

TEST_F(HookedGraph, AnUpdateWithAnotherGraphOfTheSameShape) {
  CUgraph graph, second, different;
  for (CUgraph* g : {&graph, &second, &different}) CHECK_CU(cuGraphCreate(g, 0));
  addKernel(graph, {addKernel(graph, {}, 1, 1)}, 2, 2);
  addKernel(second, {addKernel(second, {}, 11, 3)}, 12, 4);
  addKernel(different, {}, 21);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CUgraphExecUpdateResultInfo info{};
  const CUresult updated = cuGraphExecUpdate(exec, second, &info);
  if (updated == CUDA_ERROR_NOT_SUPPORTED) GTEST_SKIP() << "the driver has no updates";
  CHECK_CU(updated);
  EXPECT_EQ(CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
  EXPECT_NE(CUDA_SUCCESS, cuGraphExecUpdate(exec, different, &info));
  EXPECT_NE(CU_GRAPH_EXEC_UPDATE_SUCCESS, info.result);
  CHECK_CU(cuGraphLaunch(exec, stream));
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(4u, kernels.size());
  EXPECT_EQ(3, kernels[0].gridX);
  EXPECT_EQ(4, kernels[1].gridX);
  EXPECT_EQ(11u, at(11));
  EXPECT_EQ(12u, at(12));
  EXPECT_EQ(0u, at(1));
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedGraph, BranchesMayOverlapAndJoinsComeAfterAllOfThem) {
  CUgraph graph;
  CHECK_CU(cuGraphCreate(&graph, 0));
  const CUgraphNode root = addKernel(graph, {}, 1, 1);
  std::vector<CUgraphNode> branches;
  for (unsigned i = 0; i < 4; ++i) branches.push_back(addKernel(graph, {root}, 2 + i, 2));
  addKernel(graph, branches, 10, 3);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(6u, kernels.size());
  EXPECT_EQ(1, kernels.front().gridX);
  EXPECT_EQ(3, kernels.back().gridX);
  std::set<uint64_t> ids;
  std::set<uint32_t> branchStreams;
  for (unsigned i = 1; i < 5; ++i) branchStreams.insert(kernels[i].streamId);
  EXPECT_EQ(4u, branchStreams.size());                      // what may overlap has streams of its own …
  EXPECT_EQ(1u, branchStreams.count(kernels[0].streamId));  // … one goes on in the launch's, and so does the join
  EXPECT_EQ(kernels[0].streamId, kernels[5].streamId);
  for (unsigned i = 0; i < 6; ++i) {
    ids.insert(kernels[i].graphNodeId & 0xffffffff);
    EXPECT_GE(kernels[i].start, i > 0 ? kernels[0].end : 0);
    if (i < 5) {
      EXPECT_LE(kernels[i].end, kernels[5].start);
    }
  }
  EXPECT_EQ((std::set<uint64_t>{0, 1, 2, 3, 4, 5}), ids);
  CHECK_CU(cuGraphExecDestroy(exec));
  CHECK_CU(cuGraphDestroy(graph));
}

struct Events {
  std::vector<CUpti_CallbackId> seen;
  std::map<uint64_t, uint64_t> clones;  // id by id of the original
};

void CUPTIAPI onEvent(void* user, CUpti_CallbackDomain, CUpti_CallbackId cbid, const void* data) {
  auto& events = *static_cast<Events*>(user);
  const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
  const auto* graph = static_cast<const CUpti_GraphData*>(resource.resourceDescriptor);
  events.seen.push_back(cbid);
  if (cbid != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  uint64_t original = 0, copy = 0;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetGraphNodeId(graph->originalNode, &original));
  EXPECT_EQ(CUPTI_SUCCESS, cuptiGetGraphNodeId(graph->node, &copy));
  events.clones[original] = copy;
}

TEST_F(HookedGraph, AClientCanFollowANodeFromItsMakingToItsRecords) {
  Events events;
  CUpti_SubscriberHandle subscriber;
  CHECK_CUPTI(cuptiSubscribe(&subscriber, onEvent, &events));
  for (CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
        CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED, CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
        CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING})
    CHECK_CUPTI(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id));
  CUgraph graph;
  CHECK_CU(cuGraphCreate(&graph, 0));
  const CUgraphNode a = addKernel(graph, {}, 1, 3);
  uint32_t id = 0;
  uint64_t node = 0;
  CHECK_CUPTI(cuptiGetGraphId(graph, &id));
  CHECK_CUPTI(cuptiGetGraphNodeId(a, &node));
  EXPECT_EQ(uint64_t{id} << 32, node);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(1u, kernels.size());
  EXPECT_EQ(events.clones.at(node), kernels[0].graphNodeId);
  CHECK_CU(cuGraphExecDestroy(exec));
  CHECK_CU(cuGraphDestroy(graph));
  EXPECT_EQ((std::vector<CUpti_CallbackId>{CUPTI_CBID_RESOURCE_GRAPH_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                           CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED,
                                           CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING,
                                           CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING}),
            events.seen);
  CHECK_CUPTI(cuptiUnsubscribe(subscriber));
}

TEST_F(HookedGraph, ACapturedGraphIsRecordedNodeByNodeAndNotTouched) {
  CHECK_CU(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (unsigned i = 1; i <= 3; ++i) {
    CUdeviceptr out = memory + 4 * i;
    void* params[] = {&out, &i};
    CHECK_CU(cuLaunchKernel(store, i, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  }
  CUgraph graph;
  CHECK_CU(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  CHECK_CU(cuGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(3u, nodes);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 40; ++i) CHECK_CU(cuGraphLaunch(exec, stream));
  finish();
  ASSERT_EQ(120u, kernels.size());
  for (unsigned i = 0; i < 120; ++i) EXPECT_EQ(static_cast<int>(1 + i % 3), kernels[i].gridX);
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedGraph, UnifiedMemoryWithoutTheNodeIsAnErrorThatNamesIt) {
  if (access("/dev/nvidia-uvm-tools", F_OK) == 0) GTEST_SKIP() << "this machine has the node";
  CUpti_ActivityUnifiedMemoryCounterConfig config{};
  config.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
  config.kind = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
  config.enable = 1;
  EXPECT_EQ(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE, cuptiActivityConfigureUnifiedMemoryCounter(&config, 1));
  const char* message = nullptr;
  CHECK_CUPTI(cuptiGetErrorMessage(CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE, &message));
  EXPECT_NE(nullptr, std::strstr(message, "/dev/nvidia-uvm-tools"));
}

}  // namespace
}  // namespace sonde::test
