// SPDX-License-Identifier: Apache-2.0
//
// Graphs built by hand and by capture.
#include <cstring>

#include "gpu.h"
#include "ptx.h"

namespace {

class GraphTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuModuleLoadData(&module_, kSmall));
    OK(cuModuleGetFunction(&store_, module_, "store"));
    OK(cuMemAlloc(&p_, 64));
    OK(cuMemsetD32(p_, 0, 16));
    OK(cuCtxSynchronize());  // the stream below does not wait for the legacy one
    OK(cuStreamCreate(&s_, CU_STREAM_NON_BLOCKING));
  }
  CUDA_KERNEL_NODE_PARAMS storing(CUdeviceptr* p, unsigned* v) {
    args_[0] = p;
    args_[1] = v;
    CUDA_KERNEL_NODE_PARAMS k{};
    k.func = store_;
    k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
    k.kernelParams = args_;
    return k;
  }
  CUresult store(CUdeviceptr p, unsigned v, CUstream s) {
    void* args[] = {&p, &v};
    return cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, s, args, nullptr);
  }
  unsigned at(int i) {
    unsigned v = 0;
    EXPECT_EQ(cuMemcpyDtoH(&v, p_ + 4 * i, 4), CUDA_SUCCESS);
    return v;
  }
  CUmodule module_;
  CUfunction store_;
  CUdeviceptr p_;
  CUstream s_;
  void* args_[2];
};

TEST_F(GraphTest, NodesRunInTheOrderOfTheirEdges) {
  CUgraph g;
  OK(cuGraphCreate(&g, 0));
  CUgraphNode set, kernel, copy, host;
  CUDA_MEMSET_NODE_PARAMS m{};
  m.dst = p_;
  m.value = 7;
  m.elementSize = 4;
  m.width = 4;
  m.height = 1;
  OK(cuGraphAddMemsetNode(&set, g, nullptr, 0, &m, context_));
  CUdeviceptr target = p_ + 4;
  unsigned value = 99;
  CUDA_KERNEL_NODE_PARAMS k = storing(&target, &value);
  OK(cuGraphAddKernelNode(&kernel, g, &set, 1, &k));
  value = 0;  // the node has its own copy
  static unsigned out[4];
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = p_;
  c.dstMemoryType = CU_MEMORYTYPE_HOST;
  c.dstHost = out;
  c.WidthInBytes = 16;
  c.Height = c.Depth = 1;
  OK(cuGraphAddMemcpyNode(&copy, g, &kernel, 1, &c, context_));
  static unsigned sum;
  sum = 0;
  CUDA_HOST_NODE_PARAMS h{};
  h.fn = [](void*) {
    for (unsigned v : out) sum += v;
  };
  OK(cuGraphAddHostNode(&host, g, &copy, 1, &h));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, g, 0));
  OK(cuGraphDestroy(g));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(sum, 7u + 99u + 7u + 7u);
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(sum, 240u);
  OK(cuGraphExecDestroy(exec));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, s_));
}

TEST_F(GraphTest, StructureCanBeAskedAndChanged) {
  CUgraph g;
  OK(cuGraphCreate(&g, 0));
  CUgraphNode a, b, c;
  OK(cuGraphAddEmptyNode(&a, g, nullptr, 0));
  OK(cuGraphAddEmptyNode(&b, g, &a, 1));
  OK(cuGraphAddEmptyNode(&c, g, nullptr, 0));
  OK(cuGraphAddDependencies(g, &b, &c, nullptr, 1));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &c, &a, nullptr, 1));  // a cycle
  size_t n = 0;
  OK(cuGraphGetNodes(g, nullptr, &n));
  EXPECT_EQ(n, 3u);
  CUgraphNode list[5];
  n = 5;
  OK(cuGraphGetRootNodes(g, list, &n));
  ASSERT_EQ(n, 1u);
  EXPECT_EQ(list[0], a);
  EXPECT_EQ(list[1], nullptr);
  CUgraphNode from[2], to[2];
  n = 2;
  OK(cuGraphGetEdges(g, from, to, nullptr, &n));
  ASSERT_EQ(n, 2u);
  EXPECT_EQ(from[1], b);
  EXPECT_EQ(to[1], c);
  CUgraph copy;
  OK(cuGraphClone(&copy, g));
  CUgraphNode twin;
  OK(cuGraphNodeFindInClone(&twin, b, copy));
  EXPECT_NE(twin, b);
  OK(cuGraphDestroyNode(b));
  n = 0;
  OK(cuGraphGetEdges(g, nullptr, nullptr, nullptr, &n));
  EXPECT_EQ(n, 0u);
  OK(cuGraphGetEdges(copy, nullptr, nullptr, nullptr, &n));
  EXPECT_EQ(n, 2u);
  CUgraphNodeType type;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(b, &type));
  OK(cuGraphDestroy(g));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(a, &type));
}

TEST_F(GraphTest, ChildGraphs) {
  CUgraph child, g;
  OK(cuGraphCreate(&child, 0));
  OK(cuGraphCreate(&g, 0));
  CUdeviceptr target = p_;
  unsigned value = 5;
  CUDA_KERNEL_NODE_PARAMS k = storing(&target, &value);
  CUgraphNode n1, n2, n3;
  OK(cuGraphAddKernelNode(&n1, child, nullptr, 0, &k));
  OK(cuGraphAddChildGraphNode(&n2, g, nullptr, 0, child));
  OK(cuGraphDestroy(child));
  value = 6;
  OK(cuGraphAddKernelNode(&n3, g, &n2, 1, &k));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, g, 0));
  OK(cuGraphNodeSetEnabled(exec, n3, 0));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 5u);
  OK(cuGraphNodeSetEnabled(exec, n3, 1));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 6u);
}

TEST_F(GraphTest, ExecutableGraphsCanBeUpdated) {
  CUgraph g, h;
  CUgraphNode n, other;
  OK(cuGraphCreate(&g, 0));
  OK(cuGraphCreate(&h, 0));
  CUdeviceptr target = p_;
  unsigned value = 1;
  CUDA_KERNEL_NODE_PARAMS k = storing(&target, &value);
  OK(cuGraphAddKernelNode(&n, g, nullptr, 0, &k));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, g, 0));
  value = 2;
  OK(cuGraphExecKernelNodeSetParams(exec, n, &k));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 2u);
  value = 3;
  OK(cuGraphAddKernelNode(&other, h, nullptr, 0, &k));
  CUgraphExecUpdateResultInfo info;
  OK(cuGraphExecUpdate(exec, h, &info));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 3u);
  OK(cuGraphAddEmptyNode(&n, h, &other, 1));
  FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, h, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

// What an update says about the first thing that does not fit.
TEST_F(GraphTest, UpdatesSayWhatDoesNotFit) {
  auto set = [&](CUgraph graph, CUgraphNode* node, const CUgraphNode* after, unsigned value, size_t height) {
    CUDA_MEMSET_NODE_PARAMS m{};
    m.dst = p_;
    m.elementSize = 4;
    m.value = value;
    m.width = 1;
    m.height = height;
    m.pitch = 4;
    return cuGraphAddMemsetNode(node, graph, after, after ? 1 : 0, &m, context_);
  };
  CUgraph g;
  CUgraphNode a, b;
  OK(cuGraphCreate(&g, 0));
  OK(set(g, &a, nullptr, 1, 2));
  OK(cuGraphAddEmptyNode(&b, g, &a, 1));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, g, 0));
  CUgraphExecUpdateResultInfo info;
  {  // another type
    CUgraph h;
    CUgraphNode x, y;
    OK(cuGraphCreate(&h, 0));
    OK(cuGraphAddEmptyNode(&x, h, nullptr, 0));
    OK(cuGraphAddEmptyNode(&y, h, &x, 1));
    FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, h, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    EXPECT_EQ(info.errorNode, x);
    OK(cuGraphDestroy(h));
  }
  {  // no edge
    CUgraph h;
    CUgraphNode x, y;
    OK(cuGraphCreate(&h, 0));
    OK(set(h, &x, nullptr, 1, 2));
    OK(cuGraphAddEmptyNode(&y, h, nullptr, 0));
    FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, h, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    EXPECT_EQ(info.errorNode, y);
    OK(cuGraphDestroy(h));
  }
  {  // a set of two dimensions keeps its shape
    CUgraph h;
    CUgraphNode x, y;
    OK(cuGraphCreate(&h, 0));
    OK(set(h, &x, nullptr, 1, 3));
    OK(cuGraphAddEmptyNode(&y, h, &x, 1));
    FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, h, &info));
    EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
    EXPECT_EQ(info.errorNode, x);
    OK(cuGraphDestroy(h));
  }
  // Afterwards a node is still named by the graph that the executable one was made from.
  CUgraph h;
  CUgraphNode x, y;
  OK(cuGraphCreate(&h, 0));
  OK(set(h, &x, nullptr, 9, 2));
  OK(cuGraphAddEmptyNode(&y, h, &x, 1));
  OK(cuGraphExecUpdate(exec, h, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(info.errorNode, nullptr);
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 9u);
  EXPECT_EQ(at(1), 9u);
  unsigned enabled = 7;
  OK(cuGraphNodeGetEnabled(exec, a, &enabled));
  EXPECT_EQ(enabled, 1u);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetEnabled(exec, x, &enabled));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphExecUpdate(exec, nullptr, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR);
}

// Programmatic edges order like any; what they are is kept.
TEST_F(GraphTest, EdgesKeepWhatTheyAre) {
  uint64_t values[2];
  auto kernel = [&](CUdeviceptr to, unsigned value, void** args) {
    CUgraphNodeParams p{};
    p.type = CU_GRAPH_NODE_TYPE_KERNEL;
    args[0] = &values[0];
    args[1] = &values[1];
    values[0] = to;
    values[1] = value;
    p.kernel.func = store_;
    p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = 1;
    p.kernel.blockDimX = p.kernel.blockDimY = p.kernel.blockDimZ = 1;
    p.kernel.kernelParams = args;
    return p;
  };
  CUgraph g;
  CUgraphNode a, b, c, empty;
  OK(cuGraphCreate(&g, 0));
  void* args[2];
  CUgraphNodeParams p = kernel(p_, 1, args);
  OK(cuGraphAddNode(&a, g, nullptr, nullptr, 0, &p));
  CUgraphEdgeData edge{};
  edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  p = kernel(p_, 2, args);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&b, g, &a, &edge, 1, &p));  // not from the default port
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  OK(cuGraphAddNode(&b, g, &a, &edge, 1, &p));
  OK(cuGraphAddEmptyNode(&empty, g, &b, 1));
  p = kernel(p_ + 4, 3, args);
  OK(cuGraphAddNode(&c, g, nullptr, nullptr, 0, &p));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddDependencies(g, &empty, &c, &edge, 1));  // from a kernel to a kernel
  edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER;
  OK(cuGraphAddDependencies(g, &b, &c, &edge, 1));
  size_t n = 8;
  CUgraphNode from[8], to[8];
  CUgraphEdgeData data[8];
  OK(cuGraphGetEdges(g, from, to, data, &n));
  ASSERT_EQ(n, 3u);
  int ports = 0;
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(data[i].type, to[i] == empty ? 0 : 1);
    ports += data[i].from_port * (to[i] == c ? 10 : 1);
  }
  EXPECT_EQ(ports, 21);
  n = 8;
  FAILS(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(g, from, to, nullptr, &n));
  n = 8;
  FAILS(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependencies(c, from, nullptr, &n));
  n = 8;
  OK(cuGraphNodeGetDependentNodes(b, to, data, &n));
  ASSERT_EQ(n, 2u);
  EXPECT_EQ(data[to[0] == c ? 0 : 1].from_port, CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
  CUgraph clone;
  OK(cuGraphClone(&clone, g));
  n = 8;
  FAILS(CUDA_ERROR_LOSSY_QUERY, cuGraphGetEdges(clone, from, to, nullptr, &n));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, clone, 0));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 2u);
  EXPECT_EQ(at(1), 3u);
  CUgraphEdgeData plain{};
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphRemoveDependencies(g, &b, &c, &plain, 1));  // there is no such edge
  OK(cuGraphRemoveDependencies(g, &b, &c, &edge, 1));
  n = 8;
  OK(cuGraphNodeGetDependencies(c, from, nullptr, &n));
  EXPECT_EQ(n, 0u);
}

TEST_F(GraphTest, KernelNodesKeepTheirHints) {
  CUgraph g;
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(store(p_, 1, s_));
  OK(cuStreamEndCapture(s_, &g));
  CUgraphNode node;
  size_t n = 1;
  OK(cuGraphGetNodes(g, &node, &n));
  CUkernelNodeAttrValue value{}, back{};
  value.sharedMemCarveout = 25;
  OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &value));
  OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &back));
  EXPECT_EQ(back.sharedMemCarveout, 25u);
  value.sharedMemCarveout = 101;
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &value));
  value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
  OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &back));
  EXPECT_EQ(back.memSyncDomain, CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
  OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &back));
  EXPECT_EQ(back.memSyncDomainMap.remote, 1);
  value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &value));
  OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &back));
  EXPECT_EQ(back.clusterSchedulingPolicyPreference, CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &back));
}

// Events that a launch itself records.
TEST_F(GraphTest, LaunchesRecordEvents) {
  CUevent timed, plain, other;
  OK(cuEventCreate(&timed, 0));
  OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
  CUlaunchAttribute attributes[2]{};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT;
  attributes[0].value.programmaticEvent.event = timed;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
  attributes[1].value.launchCompletionEvent.event = other;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = s_;
  config.attrs = attributes;
  config.numAttrs = 2;
  CUdeviceptr to = p_;
  unsigned value = 7;
  void* args[] = {&to, &value};
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernelEx(&config, store_, args, nullptr));  // it must not take times
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(at(0), 0u);  // nothing was launched
  attributes[0].value.programmaticEvent.event = plain;
  Gate gate;
  OK(gate.hold(s_));
  OK(cuLaunchKernelEx(&config, store_, args, nullptr));
  EXPECT_EQ(nameOf(cuEventQuery(plain)), "CUDA_ERROR_NOT_READY");
  EXPECT_EQ(nameOf(cuEventQuery(other)), "CUDA_ERROR_NOT_READY");
  gate.open();
  OK(cuEventSynchronize(plain));
  OK(cuEventSynchronize(other));
  EXPECT_EQ(at(0), 7u);
}

TEST_F(GraphTest, CaptureOverTwoStreams) {
  CUstream t;
  OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
  CUevent fork, join;
  OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
  OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(store(p_, 1, s_));
  OK(cuEventRecord(fork, s_));
  OK(cuStreamWaitEvent(t, fork, 0));
  CUstreamCaptureStatus status;
  OK(cuStreamIsCapturing(t, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(store(p_ + 4, 2, t));
  OK(store(p_ + 8, 3, s_));
  OK(cuEventRecord(join, t));
  OK(cuStreamWaitEvent(s_, join, 0));
  OK(cuMemsetD32Async(p_ + 12, 4, 1, s_));
  CUgraph g;
  OK(cuStreamEndCapture(s_, &g));
  EXPECT_EQ(at(0), 0u);  // nothing has run
  size_t nodes, edges;
  OK(cuGraphGetNodes(g, nullptr, &nodes));
  OK(cuGraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(nodes, 4u);
  EXPECT_EQ(edges, 4u);  // a diamond
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, g, 0));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  for (unsigned i = 0; i < 4; i++) EXPECT_EQ(at(static_cast<int>(i)), i + 1);
  // The streams are plain again.
  OK(store(p_, 50, t));
  OK(cuStreamSynchronize(t));
  EXPECT_EQ(at(0), 50u);
}

TEST_F(GraphTest, CapturedCopies) {
  unsigned* pinned;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 64, 0));
  pinned[0] = 11;
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  OK(cuMemcpyHtoDAsync(p_, pinned, 4, s_));
  OK(cuMemcpyDtoDAsync(p_ + 8, p_, 4, s_));
  OK(cuMemcpyDtoHAsync(pinned + 1, p_ + 8, 4, s_));
  CUgraph g;
  OK(cuStreamEndCapture(s_, &g));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, g, 0));
  pinned[0] = 22;  // read at launch, not at capture
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(pinned[1], 22u);
}

TEST_F(GraphTest, WhatACaptureForbids) {
  CUgraph g;
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(s_));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, store(p_, 1, s_));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s_, &g));
  EXPECT_EQ(g, nullptr);

  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr q;
  FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&q, 4));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s_, &g));

  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemAlloc(&q, 4));
  OK(cuStreamEndCapture(s_, &g));

  FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  FAILS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(s_, &g));

  CUstream blocking;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, store(p_, 1, nullptr));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(blocking, &g));
}

TEST_F(GraphTest, UnjoinedAndForeignWork) {
  CUstream t;
  OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
  CUevent e;
  OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  CUgraph g;
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  OK(cuEventRecord(e, s_));
  OK(cuStreamWaitEvent(t, e, 0));
  OK(store(p_, 1, t));
  FAILS(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(e));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s_, &g));
  CUstreamCaptureStatus status;
  OK(cuStreamIsCapturing(t, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);

  OK(cuEventRecord(e, t));
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(s_, e, 0));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s_, &g));
}

TEST_F(GraphTest, UserObjectsDieWithTheirLastGraph) {
  static int destroyed;
  destroyed = 0;
  CUuserObject o;
  OK(cuUserObjectCreate(&o, nullptr, [](void*) { destroyed++; }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  CUgraph g, copy;
  OK(cuGraphCreate(&g, 0));
  OK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
  OK(cuGraphClone(&copy, g));
  OK(cuGraphDestroy(g));
  EXPECT_EQ(destroyed, 0);
  OK(cuGraphDestroy(copy));
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
