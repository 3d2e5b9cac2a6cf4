// SPDX-License-Identifier: Apache-2.0
//
// Streams and graphs that wait for, and write, words of memory.
#include <dlfcn.h>

#include "gpu.h"

namespace {

CUstreamBatchMemOpParams waitOp(CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams p{};
  p.waitValue.operation = type;
  p.waitValue.address = address;
  p.waitValue.value64 = value;
  p.waitValue.flags = flags;
  return p;
}
CUstreamBatchMemOpParams writeOp(CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value) {
  CUstreamBatchMemOpParams p{};
  p.writeValue.operation = type;
  p.writeValue.address = address;
  p.writeValue.value64 = value;
  return p;
}

// Words in pinned memory, so that the host sees and writes them too.
class MemoryOpTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuStreamCreate(&s_, CU_STREAM_NON_BLOCKING));
    OK(cuMemHostAlloc(reinterpret_cast<void**>(&words_), 64, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&p_, words_, 0));
    for (int i = 0; i < 8; i++) set(i, 0);
  }
  void set(int i, uint64_t value) { __atomic_store_n(&words_[i], value, __ATOMIC_SEQ_CST); }
  // Is work behind the wait reached when the word gets `no`, and when it gets `yes`? A batch writes the answer.
  void expectWait(CUstreamBatchMemOpType type, unsigned flags, uint64_t value, uint64_t no, uint64_t yes) {
    set(0, no);
    set(1, 0);
    set(2, 0);
    CUstreamBatchMemOpParams ops[] = {writeOp(CU_STREAM_MEM_OP_WRITE_VALUE_64, p_ + 16, 55),
                                      waitOp(type, p_, value, flags),
                                      writeOp(CU_STREAM_MEM_OP_WRITE_VALUE_64, p_ + 8, 77)};
    OK(cuStreamBatchMemOp(s_, 3, ops, 0));
    // The stream has come to the wait; another one takes its time after that.
    while (__atomic_load_n(&words_[2], __ATOMIC_SEQ_CST) != 55) std::this_thread::yield();
    CUstream other;
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWriteValue64(other, p_ + 24, 1, 0));
    OK(cuStreamSynchronize(other));
    FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(s_));
    EXPECT_EQ(words_[1], 0u);
    set(0, yes);
    OK(cuStreamSynchronize(s_));
    EXPECT_EQ(words_[1], 77u);
    OK(cuStreamDestroy(other));
  }
  CUstream s_;
  uint64_t* words_;
  CUdeviceptr p_;
};

TEST_F(MemoryOpTest, EveryConditionOnBothSizes) {
  constexpr auto w32 = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  constexpr auto w64 = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  expectWait(w32, CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6);
  // A cyclic comparison: 2 comes after 0xfffffff0, and 0xfffffff0 before 2.
  expectWait(w32, CU_STREAM_WAIT_VALUE_GEQ, 0xfffffff0u, 0xffffffefu, 2);
  expectWait(w32, CU_STREAM_WAIT_VALUE_GEQ, 2, 0xfffffff0u, 3);
  expectWait(w32, CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5);
  expectWait(w32, CU_STREAM_WAIT_VALUE_AND, 0x30, 0x0f, 0x10);
  expectWait(w32, CU_STREAM_WAIT_VALUE_NOR, 0x0000ffffu, 0xffff0000u, 0xfffe0000u);
  expectWait(w64, CU_STREAM_WAIT_VALUE_GEQ, uint64_t{1} << 40, 0xffffffffu, (uint64_t{1} << 40) + 1);
  expectWait(w64, CU_STREAM_WAIT_VALUE_EQ, uint64_t{7} << 40, 7, uint64_t{7} << 40);
  expectWait(w64, CU_STREAM_WAIT_VALUE_AND, uint64_t{1} << 33, 1, uint64_t{3} << 33);
  expectWait(w64, CU_STREAM_WAIT_VALUE_NOR, ~uint64_t{0} >> 1, uint64_t{1} << 63, 0);
  // A 32-bit wait looks at 32 bits only.
  expectWait(w32, CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH, 5, uint64_t{5} << 32, (uint64_t{9} << 32) | 5);
}

TEST_F(MemoryOpTest, WritesAreAsWideAsTheySay) {
  set(3, ~uint64_t{0});
  OK(cuStreamWriteValue32(s_, p_ + 24, 0x12345678, CU_STREAM_WRITE_VALUE_DEFAULT));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[3], 0xffffffff12345678u);
  OK(cuStreamWriteValue64(s_, p_ + 24, 0x1122334455667788, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[3], 0x1122334455667788u);
}

TEST_F(MemoryOpTest, ABatchIsCheckedBeforeAnyOfIt) {
  constexpr auto w = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  CUstreamBatchMemOpParams ops[] = {writeOp(w, p_, 1), writeOp(w, p_ + 2, 2)};
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 2, ops, 0));  // a word across words
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[0], 0u);
  ops[1] = {};
  ops[1].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
  ops[1].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
  OK(cuStreamBatchMemOp(s_, 2, ops, 0));
  ops[1].memoryBarrier.flags = 2;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 2, ops, 0));
  ops[1] = {};
  ops[1].flushRemoteWrites.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  OK(cuStreamBatchMemOp(s_, 2, ops, 0));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[0], 1u);
  ops[1].operation = static_cast<CUstreamBatchMemOpType>(99);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 2, ops, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 0, ops, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 1, nullptr, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 1, ops, 1));
  std::vector<CUstreamBatchMemOpParams> many(256, writeOp(w, p_, 5));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s_, 256, many.data(), 0));
  OK(cuStreamBatchMemOp(s_, 255, many.data(), 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s_, p_, 0, 4));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(s_, p_, 0, 2));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(s_, 8, 0, 0));
  CUdeviceptr managed;
  OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32(s_, managed, 0, 0));
  OK(cuMemFree(managed));
}

TEST_F(MemoryOpTest, TheFirstVersionsFollowTheirAttributes) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* write = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>(
      dlsym(library, "cuStreamWriteValue32"));
  auto* wait64 = reinterpret_cast<CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned)>(
      dlsym(library, "cuStreamWaitValue64"));
  int can = 0;
  OK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, device_));
  ASSERT_EQ(can, 1);
  OK(write(s_, p_, 9, 0));
  OK(wait64(s_, p_, 9, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[0], 9u);
}

TEST_F(MemoryOpTest, ACaptureMakesANode) {
  CUgraph graph;
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuStreamWaitValue32(s_, p_, 3, CU_STREAM_WAIT_VALUE_EQ));
  OK(cuStreamWriteValue64(s_, p_ + 8, 4, 0));
  OK(cuStreamEndCapture(s_, &graph));
  EXPECT_EQ(words_[1], 0u);
  CUgraphNode nodes[3];
  size_t n = 3;
  OK(cuGraphGetNodes(graph, nodes, &n));
  ASSERT_EQ(n, 2u);
  CUgraphNodeType type;
  OK(cuGraphNodeGetType(nodes[1], &type));
  EXPECT_EQ(type, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{};
  OK(cuGraphBatchMemOpNodeGetParams(nodes[1], &params));
  EXPECT_EQ(params.ctx, context_);
  ASSERT_EQ(params.count, 1u);
  EXPECT_EQ(params.paramArray[0].operation, CU_STREAM_MEM_OP_WRITE_VALUE_64);
  EXPECT_EQ(params.paramArray[0].writeValue.value64, 4u);
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, s_));
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(s_));
  set(0, 3);
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[1], 4u);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
}

TEST_F(MemoryOpTest, NodesAreMadeAndChanged) {
  CUgraph graph;
  CUgraphNode node, generic;
  OK(cuGraphCreate(&graph, 0));
  CUstreamBatchMemOpParams ops[] = {writeOp(CU_STREAM_MEM_OP_WRITE_VALUE_32, p_, 1),
                                    writeOp(CU_STREAM_MEM_OP_WRITE_VALUE_32, p_ + 8, 2)};
  CUDA_BATCH_MEM_OP_NODE_PARAMS params{context_, 2, ops, 0};
  OK(cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  CUstreamBatchMemOpParams third = writeOp(CU_STREAM_MEM_OP_WRITE_VALUE_32, p_ + 16, 3);
  any.memOp.ctx = context_;
  any.memOp.count = 1;
  any.memOp.paramArray = &third;
  OK(cuGraphAddNode(&generic, graph, &node, nullptr, 1, &any));
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[0], 1u);
  EXPECT_EQ(words_[1], 2u);
  EXPECT_EQ(words_[2], 3u);
  ops[0].writeValue.value = 10;
  params.count = 1;
  OK(cuGraphExecBatchMemOpNodeSetParams(exec, node, &params));
  ops[0].writeValue.value = 20;
  OK(cuGraphBatchMemOpNodeSetParams(node, &params));
  ops[0].writeValue.value = 30;  // both have copies
  set(1, 0);
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[0], 10u);
  EXPECT_EQ(words_[1], 0u);
  CUgraphExec second;
  OK(cuGraphInstantiate(&second, graph, 0));
  OK(cuGraphLaunch(second, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(words_[0], 20u);
  params.flags = 1;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphBatchMemOpNodeSetParams(node, &params));
  params.flags = 0;
  params.paramArray = nullptr;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphAddBatchMemOpNode(&node, graph, nullptr, 0, &params));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphBatchMemOpNodeGetParams(node, nullptr));
}

}  // namespace
