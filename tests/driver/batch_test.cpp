// SPDX-License-Identifier: Apache-2.0
//
// Many copies, prefetches and discards in one call.
#include <cstring>
#include <numeric>

#include "gpu.h"

namespace {

class BatchTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuStreamCreate(&s_, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p_, 4096));
    OK(cuMemsetD8(p_, 0, 4096));
    OK(cuCtxSynchronize());
  }
  static CUdeviceptr at(void* p) { return reinterpret_cast<CUdeviceptr>(p); }
  static CUmemcpyAttributes ordered(CUmemcpySrcAccessOrder order) {
    CUmemcpyAttributes a{};
    a.srcAccessOrder = order;
    return a;
  }
  CUstream s_;
  CUdeviceptr p_;
};

TEST_F(BatchTest, SourcesAreReadWhenTheySayThem) {
  char ephemeral[8] = "during!", any[8] = "anytime", ordered_[8] = "stream!";
  char* pinned;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 8, 0));
  std::strcpy(pinned, "before ");
  Gate gate;
  OK(gate.hold(s_));
  // Held up: what is read in stream order is read after the gate, the rest need not be.
  CUdeviceptr dsts[] = {p_, p_ + 8, p_ + 16};
  CUdeviceptr srcs[] = {at(ephemeral), at(any), at(pinned)};
  size_t sizes[] = {8, 8, 8};
  CUmemcpyAttributes attrs[] = {ordered(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL),
                                ordered(CU_MEMCPY_SRC_ACCESS_ORDER_ANY), ordered(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)};
  size_t from[] = {0, 1, 2};
  OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, attrs, from, 3, s_));
  std::memset(ephemeral, 'x', 8);     // the call is over: no matter
  std::memcpy(pinned, "after  ", 8);  // the stream has not come to it
  gate.open();
  char out[25] = {};
  OK(cuMemcpyDtoHAsync(out, p_, 24, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_STREQ(out, "during!");
  EXPECT_STREQ(out + 8, "anytime");
  EXPECT_STREQ(out + 16, "after  ");
  // Pageable memory in stream order: the call comes back when it has been read.
  srcs[0] = at(ordered_);
  size_t zero = 0;
  OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 1, &attrs[2], &zero, 1, s_));
  std::memset(ordered_, 'x', 8);
  OK(cuMemcpyDtoHAsync(out, p_, 8, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_STREQ(out, "stream!");
  // Towards pageable memory the call waits.
  char back[8] = {};
  dsts[0] = at(back);
  srcs[0] = p_ + 8;
  OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 1, &attrs[1], &zero, 1, s_));
  EXPECT_STREQ(back, "anytime");
}

TEST_F(BatchTest, OneAttributeHoldsUntilTheNextAndTheBatchIsCheckedWhole) {
  unsigned char host[64];
  std::iota(host, host + 64, 1);
  std::vector<CUdeviceptr> dsts, srcs;
  std::vector<size_t> sizes;
  for (int i = 0; i < 8; i++) {
    dsts.push_back(p_ + 8 * (7 - i));
    srcs.push_back(at(host + 8 * i));
    sizes.push_back(8);
  }
  CUmemcpyAttributes attrs[] = {ordered(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM),
                                ordered(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)};
  attrs[1].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
  size_t from[] = {0, 5};
  auto call = [&](CUstream s) {
    return cuMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), 8, attrs, from, 2, s);
  };
  // The old version tells which copy was at fault; nothing was copied.
  auto old = [&](size_t* failed) {
    void* f = nullptr;
    CUdriverProcAddressQueryResult status;
    EXPECT_EQ(cuGetProcAddress("cuMemcpyBatchAsync", &f, 12080, 0, &status), CUDA_SUCCESS);
    using F = CUresult (*)(CUdeviceptr*, CUdeviceptr*, size_t*, size_t, CUmemcpyAttributes*, size_t*, size_t, size_t*,
                           CUstream);
    return reinterpret_cast<F>(f)(dsts.data(), srcs.data(), sizes.data(), 8, attrs, from, 2, failed, s_);
  };
  size_t failed = 0;
  srcs[6] = 0x10;
  sizes[6] = 0;  // nothing to do, so nothing to check
  dsts[7] = p_ + 4095;
  FAILS(CUDA_ERROR_INVALID_VALUE, old(&failed));
  EXPECT_EQ(failed, 7u);
  unsigned char out[64];
  OK(cuMemcpyDtoH(out, p_, 64));
  for (unsigned char c : out) EXPECT_EQ(c, 0);
  srcs[6] = at(host + 48);
  sizes[6] = 8;
  dsts[7] = p_;
  attrs[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  FAILS(CUDA_ERROR_INVALID_VALUE, old(&failed));
  EXPECT_EQ(failed, 5u);
  attrs[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
  from[0] = 1;
  FAILS(CUDA_ERROR_INVALID_VALUE, old(&failed));
  EXPECT_EQ(failed, SIZE_MAX);
  from[0] = 0;
  from[1] = 8;
  FAILS(CUDA_ERROR_INVALID_VALUE, call(s_));
  from[1] = 0;
  FAILS(CUDA_ERROR_INVALID_VALUE, call(s_));
  from[1] = 5;
  FAILS(CUDA_ERROR_INVALID_VALUE, call(nullptr));  // the legacy default stream
  FAILS(CUDA_ERROR_INVALID_VALUE, call(CU_STREAM_LEGACY));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync(dsts.data(), srcs.data(), sizes.data(), 0, attrs, from, 2, s_));
  OK(call(s_));
  OK(cuStreamSynchronize(s_));
  OK(cuMemcpyDtoH(out, p_, 64));
  for (int i = 0; i < 64; i++) EXPECT_EQ(out[i], (7 - i / 8) * 8 + i % 8 + 1) << i;
  OK(call(CU_STREAM_PER_THREAD));
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));  // it reads `host`
}

TEST_F(BatchTest, CapturedCopiesBecomeNodes) {
  CUdeviceptr q;
  OK(cuMemAlloc(&q, 64));
  OK(cuMemsetD8(p_, 5, 64));
  OK(cuCtxSynchronize());
  CUdeviceptr dsts[] = {q, q + 32}, srcs[] = {p_, p_ + 32};
  size_t sizes[] = {16, 32}, zero = 0;
  CUmemcpyAttributes a = ordered(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM);
  CUgraph graph;
  OK(cuStreamBeginCapture(s_, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 2, &a, &zero, 1, s_));
  OK(cuStreamEndCapture(s_, &graph));
  size_t n = 0;
  OK(cuGraphGetNodes(graph, nullptr, &n));
  EXPECT_EQ(n, 2u);
  CUgraphExec exec;
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuMemsetD8(q, 0, 64));
  OK(cuCtxSynchronize());
  OK(cuGraphLaunch(exec, s_));
  OK(cuStreamSynchronize(s_));
  unsigned char out[64];
  OK(cuMemcpyDtoH(out, q, 64));
  for (int i = 0; i < 64; i++) EXPECT_EQ(out[i], i < 16 || i >= 32 ? 5 : 0) << i;
}

TEST_F(BatchTest, BoxesOfPointersAndArrays) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 6;
  d.Height = 4;
  d.Depth = 2;
  d.Format = CU_AD_FORMAT_UNSIGNED_INT32;
  d.NumChannels = 1;
  CUarray array;
  OK(cuArray3DCreate(&array, &d));
  unsigned in[48], out[48] = {};
  std::iota(in, in + 48, 100u);
  CUDA_MEMCPY3D_BATCH_OP ops[2]{};
  // All of it in; then a box of 2 x 3 x 2 at (3, 1, 0) out, in elements, into rows of 5 and layers of 4 rows.
  ops[0].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  ops[0].src.op.ptr.ptr = at(in);
  ops[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  ops[0].dst.op.array.array = array;
  ops[0].extent = {6, 4, 2};
  ops[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  OK(cuMemcpy3DBatchAsync(1, ops, 0, s_));
  ops[1].src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  ops[1].src.op.array.array = array;
  ops[1].src.op.array.offset = {3, 1, 0};
  ops[1].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  ops[1].dst.op.ptr.ptr = at(out);
  ops[1].dst.op.ptr.rowLength = 5;
  ops[1].dst.op.ptr.layerHeight = 4;
  ops[1].extent = {2, 3, 2};
  ops[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  OK(cuMemcpy3DBatchAsync(1, ops + 1, 0, s_));
  for (int z = 0; z < 2; z++)
    for (int y = 0; y < 4; y++)
      for (int x = 0; x < 5; x++) {
        const bool inside = x < 2 && y < 3;
        EXPECT_EQ(out[z * 20 + y * 5 + x], inside ? 100u + z * 24 + (y + 1) * 6 + x + 3 : 0u) << x << y << z;
      }
  // Pointers alone count bytes.
  CUDA_MEMCPY3D_BATCH_OP flat{};
  flat.src.type = flat.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  flat.src.op.ptr.ptr = at(in);
  flat.src.op.ptr.rowLength = 16;
  flat.dst.op.ptr.ptr = p_;
  flat.extent = {8, 3, 1};
  flat.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  OK(cuMemcpy3DBatchAsync(1, &flat, 0, s_));
  unsigned rows[6];
  OK(cuMemcpyDtoH(rows, p_, 24));
  EXPECT_EQ(rows[0], 100u);
  EXPECT_EQ(rows[1], 101u);
  EXPECT_EQ(rows[2], 104u);
  EXPECT_EQ(rows[5], 109u);
  auto refused = [&](auto change) {
    CUDA_MEMCPY3D_BATCH_OP bad = ops[1];
    change(bad);
    return cuMemcpy3DBatchAsync(1, &bad, 0, s_);
  };
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.extent.depth = 0; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.dst.op.ptr.rowLength = 1; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.dst.op.ptr.layerHeight = 2; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.src.op.array.offset.x = 5; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.src.op.array.offset.x = ~size_t{0}; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.extent.width = ~size_t{0} / 2; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.src.type = static_cast<CUmemcpy3DOperandType>(7); }));
  FAILS(CUDA_ERROR_INVALID_VALUE, refused([](auto& o) { o.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID; }));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, ops, 1, s_));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(1, ops, 0, nullptr));
}

TEST_F(BatchTest, PrefetchesAndDiscards) {
  CUdeviceptr a, b;
  OK(cuMemAllocManaged(&a, 1 << 20, CU_MEM_ATTACH_GLOBAL));
  OK(cuMemAllocManaged(&b, 1 << 20, CU_MEM_ATTACH_GLOBAL));
  std::memset(reinterpret_cast<void*>(a), 7, 1 << 20);
  CUdeviceptr ranges[] = {a, b, a + 65536};
  size_t sizes[] = {65536, 1 << 20, 65536}, from[] = {0, 2};
  CUmemLocation places[] = {{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, {CU_MEM_LOCATION_TYPE_HOST, {0}}};
  OK(cuMemPrefetchBatchAsync(ranges, sizes, 3, places, from, 2, 0, s_));
  OK(cuStreamSynchronize(s_));
  auto last = [](CUdeviceptr p, size_t bytes) {
    int where = -9;
    EXPECT_EQ(cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, bytes), CUDA_SUCCESS);
    return where;
  };
  EXPECT_EQ(last(a, 65536), 0);
  EXPECT_EQ(last(b, 1 << 20), 0);
  EXPECT_EQ(last(a + 65536, 65536), CU_DEVICE_CPU);
  EXPECT_EQ(last(a + 131072, 65536), CU_DEVICE_INVALID);
  EXPECT_EQ(reinterpret_cast<char*>(a)[100], 7);
  OK(cuMemDiscardBatchAsync(ranges, sizes, 3, 0, s_));
  OK(cuMemDiscardAndPrefetchBatchAsync(ranges, sizes, 3, places + 1, from, 1, 0, s_));
  OK(cuStreamSynchronize(s_));
  EXPECT_EQ(last(b, 1 << 20), CU_DEVICE_CPU);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(ranges, sizes, 3, places, from, 2, 1, s_));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(ranges, sizes, 1, places, from, 2, 0, s_));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemPrefetchBatchAsync(ranges, sizes, 3, places, from, 2, 0, nullptr));
  places[1].type = CU_MEM_LOCATION_TYPE_DEVICE;
  places[1].id = 77;
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchBatchAsync(ranges, sizes, 3, places, from, 2, 0, s_));
  ranges[1] = p_;  // not managed
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemDiscardBatchAsync(ranges, sizes, 3, 0, s_));
  OK(cuMemFree(a));
  OK(cuMemFree(b));
}

}  // namespace
