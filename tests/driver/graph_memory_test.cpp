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
