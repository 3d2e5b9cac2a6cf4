// SPDX-License-Identifier: Apache-2.0
//
// Graphs that allocate, and graphs whose nodes depend on values that kernels set.
#include "gpu.h"

namespace {

class GraphMemoryTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    OK(cuDeviceGraphMemTrim(device_));
    before_ = attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
  }
  uint64_t attribute(CUgraphMem_attribute which) {
    cuuint64_t value = 0;
    EXPECT_EQ(nameOf(cuDeviceGetGraphMemAttribute(device_, which, &value)), "CUDA_SUCCESS");
    return value;
  }
  uint64_t used() { return attribute(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) - before_; }
  CUstream stream_ = nullptr;
  uint64_t before_ = 0;
};

CUDA_MEM_ALLOC_NODE_PARAMS allocation(size_t bytes) {
  CUDA_MEM_ALLOC_NODE_PARAMS p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  p.bytesize = bytes;
  return p;
}

TEST_F(GraphMemoryTest, NodesAllocateAndFree) {
  CUgraph graph;
  CUgraphNode alloc, set, free;
  OK(cuGraphCreate(&graph, 0));
  auto p = allocation(4096);
  OK(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &p));
  ASSERT_NE(p.dptr, 0u);
  CUDA_MEMSET_NODE_PARAMS m{};
  m.dst = p.dptr;
  m.elementSize = 4;
  m.value = 7;
  m.width = 1024;
  m.height = 1;
  OK(cuGraphAddMemsetNode(&set, graph, &alloc, 1, &m, context_));
  OK(cuGraphAddMemFreeNode(&free, graph, &set, 1, p.dptr));
  CUDA_MEM_ALLOC_NODE_PARAMS back{};
  OK(cuGraphMemAllocNodeGetParams(alloc, &back));
  EXPECT_EQ(back.dptr, p.dptr);
  EXPECT_EQ(back.bytesize, 4096u);
  CUdeviceptr freed = 0;
  OK(cuGraphMemFreeNodeGetParams(free, &freed));
  EXPECT_EQ(freed, p.dptr);
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(used(), 0u);
  for (int i = 0; i < 3; ++i) OK(cuGraphLaunch(exec, stream_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(used(), 0u);
  EXPECT_GE(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 4096u);
  OK(cuDeviceGraphMemTrim(device_));
  EXPECT_EQ(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), before_);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&free, graph, nullptr, 0, 4096));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST_F(GraphMemoryTest, WhatIsNotFreedOutlivesTheGraph) {
  CUgraph graph;
  CUdeviceptr address = 0;
  OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuMemAllocAsync(&address, 256, stream_));
  OK(cuMemsetD32Async(address, 5, 64, stream_));
  OK(cuStreamEndCapture(stream_, &graph));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(used(), 256u);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream_));  // its memory is still in use
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  unsigned words[64];
  OK(cuStreamSynchronize(stream_));
  OK(cuMemcpyDtoH(words, address, sizeof words));
  EXPECT_EQ(words[63], 5u);
  OK(cuMemFreeAsync(address, stream_));
  EXPECT_EQ(used(), 0u);
}

TEST_F(GraphMemoryTest, FreedBeforeTheNextLaunchWhenAsked) {
  CUgraph graph;
  CUgraphNode alloc;
  OK(cuGraphCreate(&graph, 0));
  auto p = allocation(128);
  OK(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &p));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphLaunch(exec, stream_));
  EXPECT_EQ(used(), 128u);
  OK(cuMemFree(p.dptr));
  EXPECT_EQ(used(), 0u);
}

// out[i] = in[i] + 1, over 64 words.
constexpr const char* kIncrement = R"(.version 8.3
.target sm_80
.address_size 64
.visible .entry increment(.param .u64 words)
{
  .reg .b64 %w, %at;
  .reg .b32 %r<2>;
  ld.param.u64 %w, [words];
  mov.u32 %r0, %tid.x;
  mad.wide.u32 %at, %r0, 4, %w;
  ld.global.u32 %r1, [%at];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%at], %r1;
  ret;
}
)";

struct PoolCase {
  const char* name;
  CUmemAllocationType type;
  CUmemLocation location;
  bool counted;  // in the device's numbers
};

class GraphPoolTest : public GraphMemoryTest, public ::testing::WithParamInterface<PoolCase> {
 protected:
  void SetUp() override {
    GraphMemoryTest::SetUp();
    CUmemPoolProps props{};
    props.allocType = GetParam().type;
    props.location = GetParam().location;
    OK(cuMemPoolCreate(&pool_, &props));
    CUmodule module;
    OK(cuModuleLoadData(&module, kIncrement));
    OK(cuModuleGetFunction(&increment_, module, "increment"));
  }
  void TearDown() override {
    if (pool_) {
      EXPECT_EQ(nameOf(cuMemPoolDestroy(pool_)), "CUDA_SUCCESS");
    }
    GraphMemoryTest::TearDown();
  }
  // 64 words of 5, incremented: 6. `freed`: in the graph, after a copy to `out`.
  void capture(CUgraph* graph, CUdeviceptr* address, CUdeviceptr out, bool freed) {
    OK(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemAllocFromPoolAsync(address, 256, pool_, stream_));
    OK(cuMemsetD32Async(*address, 5, 64, stream_));
    void* args[] = {address};
    OK(cuLaunchKernel(increment_, 1, 1, 1, 64, 1, 1, 0, stream_, args, nullptr));
    if (freed) {
      OK(cuMemcpyAsync(out, *address, 256, stream_));
      OK(cuMemFreeAsync(*address, stream_));
    }
    OK(cuStreamEndCapture(stream_, graph));
  }
  CUmemoryPool pool_ = nullptr;
  CUfunction increment_ = nullptr;
};

TEST_P(GraphPoolTest, CapturedAllocationHasThePoolsPlace) {
  CUdeviceptr out = 0, address = 0;
  OK(cuMemAlloc(&out, 256));
  CUgraph graph;
  ASSERT_NO_FATAL_FAILURE(capture(&graph, &address, out, true));
  size_t count = 1;
  CUgraphNode root;
  OK(cuGraphGetRootNodes(graph, &root, &count));
  ASSERT_EQ(count, 1u);
  CUDA_MEM_ALLOC_NODE_PARAMS p{};
  OK(cuGraphMemAllocNodeGetParams(root, &p));
  EXPECT_EQ(p.poolProps.allocType, GetParam().type);
  EXPECT_EQ(p.poolProps.location.type, GetParam().location.type);
  EXPECT_EQ(p.bytesize, 256u);
  EXPECT_EQ(p.dptr, address);
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) {
    OK(cuMemsetD32Async(out, 0, 64, stream_));
    OK(cuGraphLaunch(exec, stream_));
    OK(cuStreamSynchronize(stream_));
    unsigned words[64] = {};
    OK(cuMemcpyDtoH(words, out, sizeof words));
    EXPECT_EQ(words[0], 6u);
    EXPECT_EQ(words[63], 6u);
    EXPECT_EQ(used(), 0u);
  }
  const uint64_t counted = GetParam().counted ? 256 : 0;
  EXPECT_EQ(attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), before_ + counted);
  EXPECT_EQ(nameOf(cuMemFreeAsync(address, stream_)), "CUDA_ERROR_INVALID_VALUE");  // freed by the graph
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuMemFree(out));
}

TEST_P(GraphPoolTest, HostSeesWhatIsNotFreed) {
  CUdeviceptr address = 0;
  CUgraph graph;
  ASSERT_NO_FATAL_FAILURE(capture(&graph, &address, 0, false));
  unsigned type = 0, isManaged = 7;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address));
  OK(cuPointerGetAttribute(&isManaged, CU_POINTER_ATTRIBUTE_IS_MANAGED, address));
  const bool managed = GetParam().type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  EXPECT_EQ(isManaged & 1u, managed ? 1u : 0u);
  if (!managed) {
    EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  }
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(used(), GetParam().counted ? 256u : 0u);
  EXPECT_EQ(reinterpret_cast<volatile unsigned*>(address)[63], 6u);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(reinterpret_cast<void*>(address)));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  EXPECT_EQ(reinterpret_cast<volatile unsigned*>(address)[0], 6u);
  OK(cuMemFree(address));
  EXPECT_EQ(used(), 0u);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(address));
}

INSTANTIATE_TEST_SUITE_P(
    Places, GraphPoolTest,
    ::testing::Values(PoolCase{"host", CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_HOST, 0}, false},
                      PoolCase{"hostNode", CU_MEM_ALLOCATION_TYPE_PINNED, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, false},
                      PoolCase{"managed", CU_MEM_ALLOCATION_TYPE_MANAGED, {CU_MEM_LOCATION_TYPE_NONE, 0}, false},
                      PoolCase{
                          "managedOnDevice", CU_MEM_ALLOCATION_TYPE_MANAGED, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, true}),
    [](const auto& info) { return info.param.name; });

TEST_F(GraphMemoryTest, NodesOfOtherPlacesAreChecked) {
  CUgraph graph;
  CUgraphNode node = nullptr;
  OK(cuGraphCreate(&graph, 0));
  auto p = allocation(64);
  p.poolProps.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  EXPECT_NE(p.dptr, 0u);
  p = allocation(64);
  p.poolProps.location.id = 99;
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  p = allocation(64);
  p.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  p = allocation(64);
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  EXPECT_EQ(p.dptr, 0u);
  p = allocation(64);
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  p.accessDescs = &access;
  p.accessDescCount = 1;
  OK(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  CUDA_MEM_ALLOC_NODE_PARAMS back{};
  OK(cuGraphMemAllocNodeGetParams(node, &back));
  ASSERT_EQ(back.accessDescCount, 1u);
  EXPECT_NE(back.accessDescs, &access);  // the node's own
  EXPECT_EQ(back.accessDescs[0].flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuGraphDestroy(graph));
}

TEST_F(GraphMemoryTest, GraphsWithMemoryNodesAreNotCopiedNorTakenApart) {
  CUgraph graph, other = nullptr;
  CUgraphNode alloc, free, child = nullptr;
  OK(cuGraphCreate(&graph, 0));
  auto p = allocation(64);
  OK(cuGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &p));
  OK(cuGraphAddMemFreeNode(&free, graph, &alloc, 1, p.dptr));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&child, graph, &alloc, 1, p.dptr));  // freed once
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&other, graph));
  EXPECT_EQ(other, nullptr);
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(free));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphRemoveDependencies_v2(graph, &alloc, &free, nullptr, 1));
  CUgraphExec exec, second = nullptr;
  OK(cuGraphInstantiate(&exec, graph, 0));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiate(&second, graph, 0));
  EXPECT_EQ(second, nullptr);
  CUgraphExecUpdateResultInfo info;
  OK(cuGraphExecUpdate(exec, graph, &info));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphExecDestroy(exec));
  // As a child it has to be moved.
  CUgraph parent;
  OK(cuGraphCreate(&parent, 0));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph));
  CUgraphNodeParams move{};
  move.type = CU_GRAPH_NODE_TYPE_GRAPH;
  move.graph.graph = graph;
  move.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&child, graph, nullptr, nullptr, 0, &move));  // into itself
  OK(cuGraphAddNode(&child, parent, nullptr, nullptr, 0, &move));
  OK(cuGraphChildGraphNodeGetGraph(child, &other));
  EXPECT_EQ(other, graph);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph));  // the parent's
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&child, parent, nullptr, nullptr, 0, &move));
  OK(cuGraphInstantiate(&exec, parent, 0));
  OK(cuGraphLaunch(exec, stream_));
  OK(cuStreamSynchronize(stream_));
  EXPECT_EQ(used(), 0u);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(parent));
}

// count(out, handle): out[0] += 1; the condition becomes 0 when it is 5.
constexpr const char* kCount = R"(.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count(.param .u64 out, .param .u64 handle)
{
  .reg .b64 %o, %h;
  .reg .b32 %r<3>;
  .reg .pred %p;
  ld.param.u64 %o, [out];
  ld.param.u64 %h, [handle];
  ld.global.u32 %r0, [%o];
  add.u32 %r0, %r0, 1;
  st.global.u32 [%o], %r0;
  setp.lt.u32 %p, %r0, 5;
  selp.u32 %r1, 1, 0, %p;
  {
    .param .b64 a;
    .param .b32 b;
    st.param.b64 [a], %h;
    st.param.b32 [b], %r1;
    call.uni cudaGraphSetConditional, (a, b);
  }
  ret;
}
)";

class ConditionalTest : public GraphMemoryTest {
 protected:
  void SetUp() override {
    GraphMemoryTest::SetUp();
    CUmodule module;
    OK(cuModuleLoadData(&module, kCount));
    OK(cuModuleGetFunction(&count_, module, "count"));
    OK(cuMemAlloc(&out_, 4));
    OK(cuMemsetD32(out_, 0, 1));
    OK(cuCtxSynchronize());  // the graph's stream does not wait for the set
    OK(cuGraphCreate(&graph_, 0));
  }
  // A node of this type on the condition, with one body that counts (and two for `bodies`).
  void build(CUgraphConditionalNodeType type, unsigned defaultValue, unsigned bodies) {
    OK(cuGraphConditionalHandleCreate(&handle_, graph_, context_, defaultValue, CU_GRAPH_COND_ASSIGN_DEFAULT));
    CUgraphNodeParams p{};
    p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    p.conditional.handle = handle_;
    p.conditional.type = type;
    p.conditional.size = bodies;
    p.conditional.ctx = context_;
    CUgraphNode node;
    OK(cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &p));
    for (unsigned i = 0; i < bodies; ++i) {
      void* args[] = {&out_, &handle_};
      CUDA_KERNEL_NODE_PARAMS k{};
      k.func = count_;
      k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
      k.kernelParams = args;
      CUgraphNode inner = nullptr;
      for (unsigned n = 0; n <= i; ++n)  // body i counts i + 1 times
        OK(cuGraphAddKernelNode(&inner, p.conditional.phGraph_out[i], n ? &inner : nullptr, n ? 1 : 0, &k));
    }
    OK(cuGraphInstantiate(&exec_, graph_, 0));
  }
  unsigned run() {
    unsigned value = 99;
    EXPECT_EQ(nameOf(cuGraphLaunch(exec_, stream_)), "CUDA_SUCCESS");
    EXPECT_EQ(nameOf(cuStreamSynchronize(stream_)), "CUDA_SUCCESS");
    EXPECT_EQ(nameOf(cuMemcpyDtoH(&value, out_, 4)), "CUDA_SUCCESS");
    return value;
  }
  CUfunction count_ = nullptr;
  CUdeviceptr out_ = 0;
  CUgraph graph_ = nullptr;
  CUgraphExec exec_ = nullptr;
  CUgraphConditionalHandle handle_ = 0;
};

TEST_F(ConditionalTest, WhileRunsUntilTheKernelSaysSo) {
  build(CU_GRAPH_COND_TYPE_WHILE, 1, 1);
  EXPECT_EQ(run(), 5u);
  EXPECT_EQ(run(), 6u);  // the default value again, and once more
}

TEST_F(ConditionalTest, IfAndElse) {
  build(CU_GRAPH_COND_TYPE_IF, 0, 2);
  EXPECT_EQ(run(), 2u);  // the second body
}

TEST_F(ConditionalTest, SwitchChoosesABodyOrNone) {
  build(CU_GRAPH_COND_TYPE_SWITCH, 2, 3);
  EXPECT_EQ(run(), 3u);
}

TEST_F(ConditionalTest, SwitchBeyondTheBodiesDoesNothing) {
  build(CU_GRAPH_COND_TYPE_SWITCH, 3, 3);
  EXPECT_EQ(run(), 0u);
}

TEST_F(ConditionalTest, BadNodesAreRefused) {
  CUgraphNodeParams p{};
  p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  p.conditional.handle = 12345;
  p.conditional.type = CU_GRAPH_COND_TYPE_IF;
  p.conditional.size = 1;
  CUgraphNode node;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &p));
  OK(cuGraphConditionalHandleCreate(&p.conditional.handle, graph_, context_, 0, 0));
  p.conditional.size = 3;  // an IF has at most two
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&node, graph_, nullptr, nullptr, 0, &p));
}

}  // namespace
