// SPDX-License-Identifier: Apache-2.0
//
// Parts of a device: how it is split, and that work stays on its part.
#include "gpu.h"
#include "platform/tools_api.h"

extern "C" const SondePlatform* sondeToolsGetPlatform(uint32_t);

namespace {

// where(out): out[ctaid.x] = %smid
constexpr const char* kWhere = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .entry where(.param .u64 out)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %smid;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
}
)";

// The default model: 16 multiprocessors of compute capability 9.0, in groups of 8.
class GreenTest : public Gpu {
 protected:
  void SetUp() override {
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&primary_, 0));
    OK(cuCtxSetCurrent(primary_));
    OK(cuModuleLoadData(&module_, kWhere));
    OK(cuModuleGetFunction(&where_, module_, "where"));
    OK(cuMemAlloc(&out_, 4 * kBlocks));
    OK(cuDeviceGetDevResource(0, &whole_, CU_DEV_RESOURCE_TYPE_SM));
  }
  void TearDown() override {
    cuCtxSetCurrent(primary_);
    cuMemFree(out_);
    cuModuleUnload(module_);
    cuCtxSetCurrent(nullptr);
    EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }
  // Green contexts on the two halves.
  void halves(CUgreenCtx* first, CUgreenCtx* second) {
    CUdevResource groups[2];
    unsigned n = 2;
    OK(cuDevSmResourceSplitByCount(groups, &n, &whole_, nullptr, 0, 8));
    ASSERT_EQ(n, 2u);
    CUdevResourceDesc desc;
    OK(cuDevResourceGenerateDesc(&desc, groups, 1));
    OK(cuGreenCtxCreate(first, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    OK(cuDevResourceGenerateDesc(&desc, groups + 1, 1));
    OK(cuGreenCtxCreate(second, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  }
  CUresult launch(CUstream s) {
    void* args[] = {&out_};
    return cuLaunchKernel(where_, kBlocks, 1, 1, 32, 1, 1, 0, s, args, nullptr);
  }
  void expectSms(CUstream s, unsigned first, unsigned count) {
    OK(cuStreamSynchronize(s));
    std::vector<unsigned> sm(kBlocks);
    OK(cuMemcpyDtoH(sm.data(), out_, 4 * kBlocks));
    for (unsigned i = 0; i < kBlocks; i++) EXPECT_EQ(sm[i], first + i % count) << i;
    OK(cuMemsetD8(out_, 0xff, 4 * kBlocks));
    OK(cuCtxSynchronize());
  }
  static constexpr unsigned kBlocks = 40;
  CUcontext primary_ = nullptr;
  CUmodule module_;
  CUfunction where_;
  CUdeviceptr out_;
  CUdevResource whole_;
};

TEST_F(GreenTest, HowADeviceIsSplit) {
  EXPECT_EQ(whole_.type, CU_DEV_RESOURCE_TYPE_SM);
  EXPECT_EQ(whole_.sm.smCount, 16u);
  EXPECT_EQ(whole_.sm.minSmPartitionSize, 8u);
  EXPECT_EQ(whole_.sm.smCoscheduledAlignment, 8u);
  unsigned n = 0;
  auto groups = [&](unsigned least, unsigned flags) {
    n = 99;
    EXPECT_EQ(cuDevSmResourceSplitByCount(nullptr, &n, &whole_, nullptr, flags, least), CUDA_SUCCESS);
    return n;
  };
  constexpr unsigned alone = CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
  EXPECT_EQ(groups(0, 0), 2u);
  EXPECT_EQ(groups(3, 0), 2u);
  EXPECT_EQ(groups(9, 0), 1u);
  EXPECT_EQ(groups(0, alone), 8u);
  EXPECT_EQ(groups(3, alone), 4u);
  EXPECT_EQ(groups(5, alone), 2u);
  EXPECT_EQ(groups(5, alone | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE), 2u);
  CUdevResource parts[8], rest;
  n = 2;
  OK(cuDevSmResourceSplitByCount(parts, &n, &whole_, &rest, alone, 5));
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(parts[1].sm.smCount, 6u);
  EXPECT_EQ(rest.sm.smCount, 4u);
  CUdevResource again[2];
  n = 2;
  FAILS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount(again, &n, &rest, nullptr, 0, 2));
  CUdevResourceDesc desc;
  CUdevResource both[] = {parts[0], rest}, twice[] = {parts[0], parts[0]}, mixed[] = {parts[0], whole_};
  OK(cuDevResourceGenerateDesc(&desc, both, 2));
  FAILS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, twice, 2));
  FAILS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, mixed, 2));
  // Ten multiprocessors that do not lie together, split again.
  CUgreenCtx green;
  CUdevResource inner;
  OK(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  OK(cuGreenCtxGetDevResource(green, &inner, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(inner.sm.smCount, 10u);
  n = 8;
  OK(cuDevSmResourceSplitByCount(parts, &n, &inner, &rest, alone, 4));
  EXPECT_EQ(n, 2u);
  EXPECT_EQ(rest.sm.smCount, 2u);
  OK(cuGreenCtxDestroy(green));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(nullptr, &n, &whole_, nullptr, 0, 17));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(nullptr, nullptr, &whole_, nullptr, 0, 1));
  CUdevResource none{};
  FAILS(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevSmResourceSplitByCount(nullptr, &n, &none, nullptr, 0, 1));
  FAILS(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &none, CU_DEV_RESOURCE_TYPE_INVALID));
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDevResource(99, &none, CU_DEV_RESOURCE_TYPE_SM));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, desc, 0, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM));
}

TEST_F(GreenTest, KernelsStayOnTheirPart) {
  CUgreenCtx a, b, asked;
  halves(&a, &b);
  CUstream sa, sb, plain;
  OK(cuGreenCtxStreamCreate(&sa, a, CU_STREAM_NON_BLOCKING, 0));
  OK(cuGreenCtxStreamCreate(&sb, b, CU_STREAM_NON_BLOCKING, -1));
  OK(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
  OK(launch(sa));
  expectSms(sa, 0, 8);
  OK(launch(sb));
  expectSms(sb, 8, 8);
  OK(launch(plain));
  expectSms(plain, 0, 16);
  OK(cuStreamGetGreenCtx(sb, &asked));
  EXPECT_EQ(asked, b);
  OK(cuStreamGetGreenCtx(plain, &asked));
  EXPECT_EQ(asked, nullptr);
  int priority = 9;
  OK(cuStreamGetPriority(sb, &priority));
  EXPECT_EQ(priority, -1);
  // A captured launch remembers its part wherever the graph runs.
  CUgraph graph;
  CUgraphExec exec;
  OK(cuStreamBeginCapture(sb, CU_STREAM_CAPTURE_MODE_RELAXED));
  OK(launch(sb));
  OK(cuStreamEndCapture(sb, &graph));
  OK(cuGraphInstantiate(&exec, graph, 0));
  OK(cuGraphLaunch(exec, plain));
  expectSms(plain, 8, 8);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  // What fits at once is less: two blocks of 1024 threads on each of 8.
  void* args[] = {&out_};
  OK(cuLaunchCooperativeKernel(where_, 16, 1, 1, 1024, 1, 1, 0, sa, args));
  FAILS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchCooperativeKernel(where_, 17, 1, 1, 1024, 1, 1, 0, sa, args));
  OK(cuLaunchCooperativeKernel(where_, 17, 1, 1, 1024, 1, 1, 0, plain, args));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&plain, a, CU_STREAM_DEFAULT, 0));
  OK(cuCtxSynchronize());
  for (CUstream s : {sa, sb, plain}) OK(cuStreamDestroy(s));
  OK(cuGreenCtxDestroy(a));
  OK(cuGreenCtxDestroy(b));
}

TEST_F(GreenTest, CurrentOnAThread) {
  CUgreenCtx a, b, asked;
  halves(&a, &b);
  CUcontext context, top;
  OK(cuCtxFromGreenCtx(&context, b));
  OK(cuCtxPushCurrent(context));
  OK(cuCtxGetCurrent(&top));
  EXPECT_EQ(top, context);
  EXPECT_NE(top, primary_);
  OK(launch(nullptr));
  expectSms(nullptr, 8, 8);
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(launch(s));
  expectSms(s, 8, 8);
  OK(cuStreamGetGreenCtx(s, &asked));
  EXPECT_EQ(asked, b);
  OK(cuStreamGetCtx_v2(s, &top, &asked));
  EXPECT_EQ(asked, b);
  OK(cuStreamGetGreenCtx(nullptr, &asked));
  EXPECT_EQ(asked, b);
  CUdevResource part;
  OK(cuCtxGetDevResource(context, &part, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(part.sm.smCount, 8u);
  unsigned long long id = 0, byHandle = 0, other = 0;
  OK(cuGreenCtxGetId(nullptr, &id));
  OK(cuGreenCtxGetId(b, &byHandle));
  OK(cuGreenCtxGetId(a, &other));
  EXPECT_EQ(id, byHandle);
  EXPECT_NE(id, other);
  // Memory is the primary context's.
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 16));
  OK(cuCtxPopCurrent(&top));
  EXPECT_EQ(top, context);
  OK(cuCtxGetCurrent(&top));
  EXPECT_EQ(top, primary_);
  OK(cuMemsetD8(p, 1, 16));
  OK(cuMemFree(p));
  OK(launch(nullptr));
  expectSms(nullptr, 0, 16);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxGetId(nullptr, &id));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(context));
  // When it is gone, so is what its streams are good for.
  OK(cuGreenCtxDestroy(b));
  FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, launch(s));
  FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamDestroy(s));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy(b));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(context));
  OK(cuGreenCtxDestroy(a));
}

TEST_F(GreenTest, EventsOfAPart) {
  CUgreenCtx a, b;
  halves(&a, &b);
  CUstream sa, sb;
  CUevent event;
  OK(cuGreenCtxStreamCreate(&sa, a, CU_STREAM_NON_BLOCKING, 0));
  OK(cuGreenCtxStreamCreate(&sb, b, CU_STREAM_NON_BLOCKING, 0));
  OK(cuEventCreate(&event, 0));
  Gate first, second;
  OK(first.hold(sa));
  OK(second.hold(sb));
  OK(cuGreenCtxRecordEvent(a, event));
  FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  first.open();
  OK(cuEventSynchronize(event));  // the other part's work does not matter
  OK(cuEventRecord(event, sb));
  OK(cuGreenCtxWaitEvent(a, event));
  CUstream later;
  OK(cuGreenCtxStreamCreate(&later, a, CU_STREAM_NON_BLOCKING, 0));
  std::atomic<int> n{0};
  auto count = [](void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); };
  OK(cuLaunchHostFunc(sa, count, &n));
  OK(cuLaunchHostFunc(later, count, &n));
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(later));
  EXPECT_EQ(n, 0);
  second.open();
  OK(cuStreamSynchronize(sa));
  OK(cuStreamSynchronize(later));
  EXPECT_EQ(n, 2);
  for (CUstream s : {sa, sb, later}) OK(cuStreamDestroy(s));
  OK(cuEventDestroy(event));
  OK(cuGreenCtxDestroy(a));
  OK(cuGreenCtxDestroy(b));
}

TEST_F(GreenTest, EventsOfMultiprocessorsShowIt) {
  const SondePlatform* platform = sondeToolsGetPlatform(SONDE_TOOLS_ABI_VERSION);
  SondeListener listener{};
  listener.size = sizeof listener;
  ASSERT_EQ(platform->attach(&listener), 0);
  uint32_t warps = 0, written = 0;
  for (uint32_t c = 0; platform->counterName(c); c++) {
    if (std::string(platform->counterName(c)) == "warps_launched") warps = c;
    if (std::string(platform->counterName(c)) == "l2_write_sector_queries") written = c;
  }
  const uint32_t wanted[] = {warps, written};
  ASSERT_EQ(platform->counterConfigure(primary_, SONDE_COUNTER_MODE_KERNEL, wanted, 2), 0);
  CUgreenCtx a, b;
  halves(&a, &b);
  CUstream s;
  OK(cuGreenCtxStreamCreate(&s, b, CU_STREAM_NON_BLOCKING, 0));
  OK(launch(s));
  OK(cuStreamSynchronize(s));
  std::vector<uint64_t> perSm(16), perSlice(16), start(16);
  uint64_t kernels = 0;
  uint32_t sms = 16, slices = 16;
  EXPECT_EQ(platform->counterRead(primary_, &warps, 1, perSm.data(), start.data(), &sms, &kernels), 0);
  EXPECT_EQ(platform->counterRead(primary_, &written, 1, perSlice.data(), start.data(), &slices, nullptr), 0);
  EXPECT_EQ(kernels, 1u);
  EXPECT_EQ(sms, 16u);
  // 40 blocks of one warp over multiprocessors 8 to 15.
  for (uint32_t sm = 0; sm < 16; sm++) EXPECT_EQ(perSm[sm], sm < 8 ? 0u : 5u) << sm;
  // The caches saw all of it: each block writes one sector.
  uint64_t sectors = 0;
  for (uint64_t n : perSlice) sectors += n;
  EXPECT_EQ(sectors, 40u);
  OK(cuStreamDestroy(s));
  OK(cuGreenCtxDestroy(a));
  OK(cuGreenCtxDestroy(b));
  platform->detach();
}

}  // namespace
