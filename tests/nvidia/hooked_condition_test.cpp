// SPDX-License-Identifier: Apache-2.0
//
// Graphs whose nodes run when the device says so, on hooks, with the software
// driver in the place of the vendor's.

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "hooked_records.h"

namespace sonde::test {
namespace {

// count(out, handle): the first block does out[0] -= 1 while it is not 0, and the
// condition becomes out[0].
const char kPtx[] = R"(.version 8.3
.target sm_80
.address_size 64
.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);
.visible .entry count(.param .u64 out, .param .u64 handle)
{
  .reg .b64 %o, %h;
  .reg .b32 %r, %c;
  .reg .pred %p;
  mov.u32 %c, %ctaid.x;
  setp.ne.u32 %p, %c, 0;
  @%p ret;
  ld.param.u64 %o, [out];
  ld.param.u64 %h, [handle];
  ld.global.u32 %r, [%o];
  setp.eq.u32 %p, %r, 0;
  @%p bra set;
  sub.u32 %r, %r, 1;
  st.global.u32 [%o], %r;
set:
  {
    .param .b64 a;
    .param .b32 b;
    st.param.b64 [a], %h;
    st.param.b32 [b], %r;
    call.uni cudaGraphSetConditional, (a, b);
  }
  ret;
}
.visible .entry plain()
{
  ret;
}
)";

using Counts = std::map<int, int>;  // blocks of the grid, and how many kernels had so many

class HookedCondition : public ::testing::Test {
 protected:
  void SetUp() override {
    clearRecords();
    CHECK_CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
    CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    CHECK_CU(cuInit(0));
    CHECK_CU(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK_CU(cuCtxSetCurrent(context));
    CHECK_CU(cuModuleLoadData(&module, kPtx));
    CHECK_CU(cuModuleGetFunction(&count, module, "count"));
    CHECK_CU(cuModuleGetFunction(&plain, module, "plain"));
    CHECK_CU(cuMemAlloc(&left, 64));
    CHECK_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_CU(cuGraphCreate(&graph, 0));
  }
  void TearDown() override {
    cuGraphDestroy(graph);
    cuStreamDestroy(stream);
    cuMemFree(left);
    cuModuleUnload(module);
    cuptiFinalize();
  }
  CUgraphConditionalHandle handle(unsigned value) {
    CUgraphConditionalHandle h = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphConditionalHandleCreate(&h, graph, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
    return h;
  }
  CUgraphNode addKernel(CUgraph to, const std::vector<CUgraphNode>& after, unsigned blocks,
                        CUgraphConditionalHandle counts = 0) {
    void* params[] = {&left, &counts};
    CUDA_KERNEL_NODE_PARAMS k{};
    k.func = counts != 0 ? count : plain;
    k.gridDimX = blocks, k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    k.kernelParams = counts != 0 ? params : nullptr;
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddKernelNode(&node, to, after.data(), after.size(), &k));
    return node;
  }
  CUgraphNode addCondition(CUgraph to, const std::vector<CUgraphNode>& after, CUgraphConditionalHandle h,
                           CUgraphConditionalNodeType type, unsigned size, std::vector<CUgraph>* bodies) {
    CUgraphNodeParams p{};
    p.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    p.conditional.handle = h;
    p.conditional.type = type;
    p.conditional.size = size;
    p.conditional.ctx = context;
    CUgraphNode node = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphAddNode(&node, to, after.data(), nullptr, after.size(), &p));
    bodies->assign(p.conditional.phGraph_out, p.conditional.phGraph_out + size);
    return node;
  }
  void launch(CUgraphExec exec, unsigned value, int times = 1) {
    for (int i = 0; i < times; ++i) {
      CHECK_CU(cuMemsetD32(left, value, 1));
      CHECK_CU(cuCtxSynchronize());
      CHECK_CU(cuGraphLaunch(exec, stream));
      CHECK_CU(cuStreamSynchronize(stream));
    }
    CHECK_CUPTI(cuptiActivityFlushAll(0));
    auto byStart = [](const auto& a, const auto& b) { return a.start < b.start; };
    std::stable_sort(kernels.begin(), kernels.end(), byStart);
  }
  Counts counts() const {
    Counts c;
    for (const auto& k : kernels) ++c[k.gridX];
    return c;
  }
  std::vector<int> order() const {
    std::vector<int> grids;
    for (const auto& k : kernels) grids.push_back(k.gridX);
    return grids;
  }
  // Nodes that follow each other have times that do.
  void expectOrdered() {
    for (size_t i = 0; i < kernels.size(); ++i) {
      EXPECT_LT(0u, kernels[i].start);
      EXPECT_LT(kernels[i].start, kernels[i].end);
      if (i > 0) EXPECT_LE(kernels[i - 1].end, kernels[i].start) << i;
    }
  }
  static std::pair<size_t, size_t> shape(CUgraph g) {
    size_t nodes = 0, edges = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuGraphGetNodes(g, nullptr, &nodes));
    EXPECT_EQ(CUDA_SUCCESS, cuGraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
    return {nodes, edges};
  }

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction count = nullptr, plain = nullptr;
  CUdeviceptr left = 0;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
};

TEST_F(HookedCondition, ABodyIsRecordedAsOftenAsItRan) {
  const CUgraphConditionalHandle h = handle(1);
  std::vector<CUgraph> bodies;
  const CUgraphNode before = addKernel(graph, {}, 2);
  const CUgraphNode loop = addCondition(graph, {before}, h, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies);
  addKernel(graph, {loop}, 3);
  const CUgraphNode first = addKernel(bodies[0], {}, 4);
  addKernel(bodies[0], {first}, 5, h);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  // The application's graphs are as they were.
  EXPECT_EQ((std::pair<size_t, size_t>{3, 2}), shape(graph));
  EXPECT_EQ((std::pair<size_t, size_t>{2, 1}), shape(bodies[0]));
  launch(exec, 3);
  EXPECT_EQ((std::vector<int>{2, 4, 5, 4, 5, 4, 5, 3}), order());
  expectOrdered();
  std::set<uint32_t> correlations;
  std::map<int, std::set<uint64_t>> nodes;
  for (const auto& k : kernels) {
    correlations.insert(k.correlationId);
    nodes[k.gridX].insert(k.graphNodeId & 0xffffffff);
  }
  EXPECT_EQ(1u, correlations.size());
  // Numbered with the graph that the body is part of, in the order in which they were made.
  EXPECT_EQ((std::map<int, std::set<uint64_t>>{{2, {0}}, {3, {2}}, {4, {3}}, {5, {4}}}), nodes);
  kernels.clear();
  launch(exec, 1, 2);
  EXPECT_EQ((std::vector<int>{2, 4, 5, 3, 2, 4, 5, 3}), order());
  expectOrdered();
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedCondition, OnlyTheBodyThatWasChosen) {
  std::vector<CUgraph> bodies, choice;
  const CUgraphNode one = addCondition(graph, {}, handle(0), CU_GRAPH_COND_TYPE_IF, 2, &bodies);
  addKernel(bodies[0], {}, 2);
  addKernel(bodies[1], {}, 3);
  addCondition(graph, {one}, handle(1), CU_GRAPH_COND_TYPE_SWITCH, 3, &choice);
  for (unsigned i = 0; i < 3; ++i) addKernel(choice[i], {}, 10 + i);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  launch(exec, 0);
  EXPECT_EQ((std::vector<int>{3, 11}), order());
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedCondition, WithinEachOther) {
  std::vector<CUgraph> outer, inner;
  const CUgraphConditionalHandle h = handle(1);
  addCondition(graph, {addKernel(graph, {}, 2)}, handle(1), CU_GRAPH_COND_TYPE_IF, 1, &outer);
  addCondition(outer[0], {addKernel(outer[0], {}, 3)}, h, CU_GRAPH_COND_TYPE_WHILE, 1, &inner);
  addKernel(inner[0], {addKernel(inner[0], {}, 4)}, 5, h);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  launch(exec, 2);
  EXPECT_EQ((std::vector<int>{2, 3, 4, 5, 4, 5}), order());
  expectOrdered();
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedCondition, SetsInABody) {
  std::vector<CUgraph> bodies;
  addCondition(graph, {}, handle(1), CU_GRAPH_COND_TYPE_IF, 1, &bodies);
  CUDA_MEMSET_NODE_PARAMS p{};
  p.dst = left + 16, p.value = 7, p.elementSize = 4, p.width = 3, p.height = 1;
  CUgraphNode node;
  const CUgraphNode first = addKernel(bodies[0], {}, 2);
  CHECK_CU(cuGraphAddMemsetNode(&node, bodies[0], &first, 1, &p, context));
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  kernels.clear();
  launch(exec, 0);
  std::vector<uint64_t> bytes;
  for (const auto& s : sets)
    if (s.graphNodeId != 0) bytes.push_back(s.bytes);
  EXPECT_EQ(std::vector<uint64_t>{12}, bytes);
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedCondition, ChangedAndUpdated) {
  auto build = [&](CUgraph to, unsigned first, CUgraphNode* inBody) {
    CUgraphConditionalHandle h = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuGraphConditionalHandleCreate(&h, to, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    std::vector<CUgraph> bodies;
    addCondition(to, {addKernel(to, {}, first)}, h, CU_GRAPH_COND_TYPE_IF, 1, &bodies);
    *inBody = addKernel(bodies[0], {}, first + 1);
  };
  CUgraphNode node, other;
  build(graph, 2, &node);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  launch(exec, 0);
  EXPECT_EQ((std::vector<int>{2, 3}), order());
  CUDA_KERNEL_NODE_PARAMS k{};
  k.func = plain;
  k.gridDimX = 9, k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
  CHECK_CU(cuGraphExecKernelNodeSetParams(exec, node, &k));
  kernels.clear();
  launch(exec, 0);
  EXPECT_EQ((std::vector<int>{2, 9}), order());
  CUgraph next;
  CHECK_CU(cuGraphCreate(&next, 0));
  build(next, 20, &other);
  CUgraphExecUpdateResultInfo info{};
  CHECK_CU(cuGraphExecUpdate(exec, next, &info));
  EXPECT_EQ((std::pair<size_t, size_t>{2, 1}), shape(next));
  kernels.clear();
  launch(exec, 0);
  EXPECT_EQ((std::vector<int>{20, 21}), order());
  CHECK_CU(cuGraphDestroy(next));
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedCondition, LaunchesThatNobodyRecordedLeaveNothingBehind) {
  std::vector<CUgraph> bodies;
  addCondition(graph, {}, handle(1), CU_GRAPH_COND_TYPE_IF, 1, &bodies);
  addKernel(bodies[0], {}, 2);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  CHECK_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CHECK_CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET));
  launch(exec, 0, 3);
  EXPECT_EQ(Counts(), counts());
  CHECK_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  launch(exec, 0);
  EXPECT_EQ((Counts{{2, 1}}), counts());
  CHECK_CU(cuGraphExecDestroy(exec));
  // Its ring goes to the next one.
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  kernels.clear();
  launch(exec, 0, 2);
  EXPECT_EQ((Counts{{2, 2}}), counts());
  CHECK_CU(cuGraphExecDestroy(exec));
}

TEST_F(HookedCondition, MoreRunsThanTheRingHolds) {
  const CUgraphConditionalHandle h = handle(1);
  std::vector<CUgraph> bodies;
  addCondition(graph, {}, h, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies);
  addKernel(bodies[0], {}, 5, h);
  CUgraphExec exec;
  CHECK_CU(cuGraphInstantiate(&exec, graph, 0));
  launch(exec, 33'000);  // two stamps each time: 66000, of which 65536 stay
  const Counts many = counts();
  ASSERT_EQ(1u, many.size());
  EXPECT_EQ(32'768, many.at(5));
  kernels.clear();
  launch(exec, 2);
  EXPECT_EQ((Counts{{5, 2}}), counts());
  CHECK_CU(cuGraphExecDestroy(exec));
}

}  // namespace
}  // namespace sonde::test
