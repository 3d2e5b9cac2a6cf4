// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "gpu.h"
#include "ptx.h"

namespace {

class KernelTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuModuleLoadData(&module_, kSmall));
    OK(cuModuleGetFunction(&empty_, module_, "empty"));
    OK(cuModuleGetFunction(&store_, module_, "store"));
  }
  CUresult store(CUdeviceptr p, unsigned value, CUstream s = nullptr) {
    void* params[] = {&p, &value};
    return cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, s, params, nullptr);
  }
  CUmodule module_ = nullptr;
  CUfunction empty_ = nullptr, store_ = nullptr;
};

TEST_F(KernelTest, VectorAdd) {
  CUmodule m;
  CUfunction f;
  OK(cuModuleLoadData(&m, kVectorAdd));
  OK(cuModuleGetFunction(&f, m, "vadd"));
  const int n = 1000;
  std::vector<int> a(n), b(n), out(n);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 100);
  CUdeviceptr da, db, dout;
  OK(cuMemAlloc(&da, n * 4));
  OK(cuMemAlloc(&db, n * 4));
  OK(cuMemAlloc(&dout, n * 4));
  OK(cuMemcpyHtoD(da, a.data(), n * 4));
  OK(cuMemcpyHtoD(db, b.data(), n * 4));
  void* params[] = {&da, &db, &dout, const_cast<int*>(&n)};
  OK(cuLaunchKernel(f, 4, 1, 1, 256, 1, 1, 0, nullptr, params, nullptr));
  OK(cuMemcpyDtoH(out.data(), dout, n * 4));
  for (int i = 0; i < n; i++) ASSERT_EQ(out[i], 2 * i + 100);
  OK(cuModuleUnload(m));
}

TEST_F(KernelTest, ParametersAsOneBuffer) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4));
  struct {
    CUdeviceptr p;
    unsigned v;
  } packed{p, 0xabcd};
  size_t bytes = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  unsigned out;
  OK(cuMemcpyDtoH(&out, p, 4));
  EXPECT_EQ(out, 0xabcdu);
  bytes = 8;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
}

TEST_F(KernelTest, ImpossibleLaunches) {
  auto launch = [&](unsigned gx, unsigned bx, unsigned by, unsigned shared) {
    return cuLaunchKernel(empty_, gx, 1, 1, bx, by, 1, shared, nullptr, nullptr, nullptr);
  };
  OK(launch(1, 1024, 1, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(0, 1, 1, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(1, 0, 1, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(1, 1025, 1, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(1, 512, 3, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(0x80000000u, 1, 1, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(1, 32, 1, 49153));
  OK(cuFuncSetAttribute(empty_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
  OK(launch(1, 32, 1, 232448));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute(empty_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(store_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  OK(cuCtxSynchronize());
}

TEST_F(KernelTest, BadAddressIsStickyForItsContextOnly) {
  OK(store(0x40, 1));
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  CUdeviceptr p;
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&p, 4));
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(nullptr));
  CUcontext other;
  OK(createContext(&other, 0, 0));
  OK(cuMemAlloc(&p, 4));
  OK(cuCtxSynchronize());
  OK(cuCtxDestroy(other));
  OK(cuCtxDestroy(context_));
  context_ = nullptr;
}

TEST_F(KernelTest, WritingPastTheEndFaults) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4096));
  OK(store(p + 4092, 1));
  OK(cuCtxSynchronize());
  OK(store(p + 4096, 1));
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

TEST_F(KernelTest, HostMemoryIsNotTheDevices) {
  unsigned local = 5;
  OK(store(reinterpret_cast<CUdeviceptr>(&local), 1));
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  EXPECT_EQ(local, 5u);
}

TEST_F(KernelTest, RegisteredHostMemoryIs) {
  alignas(4096) static unsigned data[1024];
  OK(cuMemHostRegister(data, sizeof data, 0));
  OK(store(reinterpret_cast<CUdeviceptr>(&data[17]), 99));
  OK(cuCtxSynchronize());
  EXPECT_EQ(data[17], 99u);
  OK(cuMemHostUnregister(data));
}

TEST_F(KernelTest, PinnedAndManagedMemory) {
  unsigned* pinned;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4096, 0));
  CUdeviceptr managed;
  OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  OK(store(reinterpret_cast<CUdeviceptr>(pinned + 3), 11));
  OK(store(managed + 8, 12));
  OK(cuCtxSynchronize());
  EXPECT_EQ(pinned[3], 11u);
  EXPECT_EQ(reinterpret_cast<unsigned*>(managed)[2], 12u);
}

TEST_F(KernelTest, Trap) {
  CUfunction f;
  OK(cuModuleGetFunction(&f, module_, "trapped"));
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  const CUresult r = cuCtxSynchronize();
  EXPECT_TRUE(r == CUDA_ERROR_LAUNCH_FAILED || r == CUDA_ERROR_ILLEGAL_INSTRUCTION) << nameOf(r);
}

TEST_F(KernelTest, VariablesOfTheModule) {
  CUdeviceptr answer, p;
  size_t bytes;
  OK(cuModuleGetGlobal(&answer, &bytes, module_, "answer"));
  EXPECT_EQ(bytes, 4u);
  unsigned value;
  OK(cuMemcpyDtoH(&value, answer, 4));
  EXPECT_EQ(value, 42u);
  value = 7;
  OK(cuMemcpyHtoD(answer, &value, 4));
  OK(cuModuleGetGlobal(nullptr, &bytes, module_, "table"));
  EXPECT_EQ(bytes, 400u);
  FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &bytes, module_, "nothing"));
  CUfunction scale;
  OK(cuModuleGetFunction(&scale, module_, "scale"));
  OK(cuMemAlloc(&p, 4));
  void* params[] = {&p};
  OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  OK(cuMemcpyDtoH(&value, p, 4));
  EXPECT_EQ(value, 21u);  // 7 * 3
}

TEST_F(KernelTest, LaunchesKeepStreamOrder) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4));
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  Gate gate;
  OK(gate.hold(s));
  for (unsigned i = 1; i <= 50; i++) OK(store(p, i, s));
  unsigned value = 99;
  unsigned* pinned;
  OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 4, 0));
  *pinned = 0;
  OK(cuMemcpyDtoHAsync(pinned, p, 4, s));
  EXPECT_EQ(*pinned, 0u);
  gate.open();
  OK(cuStreamSynchronize(s));
  EXPECT_EQ(*pinned, 50u);
  (void)value;
}

TEST_F(KernelTest, LaunchExWithAttributes) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4));
  unsigned value = 31;
  void* params[] = {&p, &value};
  CUlaunchAttribute a[2]{};
  a[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  a[0].value.priority = -1;
  a[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  a[1].value.cooperative = 1;
  CUlaunchConfig c{};
  c.gridDimX = c.gridDimY = c.gridDimZ = c.blockDimX = c.blockDimY = c.blockDimZ = 1;
  c.attrs = a;
  c.numAttrs = 2;
  OK(cuLaunchKernelEx(&c, store_, params, nullptr));
  unsigned out;
  OK(cuMemcpyDtoH(&out, p, 4));
  EXPECT_EQ(out, 31u);
  c.gridDimX = 1 << 20;
  FAILS(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchKernelEx(&c, store_, params, nullptr));
}

TEST_F(KernelTest, OccupancyOfAnEmptyKernel) {
  int blocks = 0;
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty_, 1024, 0));
  EXPECT_EQ(blocks, 2);  // 64 warps
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty_, 32, 0));
  EXPECT_EQ(blocks, 32);  // block slots
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, empty_, 32, 49152 - 1024));
  EXPECT_EQ(blocks, 4);  // 233472 / 49152
  int grid = 0, block = 0;
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, empty_, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 32);
}

TEST_F(KernelTest, LibrariesWorkInEveryContext) {
  CUlibrary library;
  OK(cuLibraryLoadData(&library, kSmall, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel;
  OK(cuLibraryGetKernel(&kernel, library, "store"));
  FAILS(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nope"));
  for (int i = 0; i < 2; i++) {
    CUcontext c;
    OK(createContext(&c, 0, 0));
    CUdeviceptr p;
    OK(cuMemAlloc(&p, 4));
    unsigned v = 5, out = 0;
    void* params[] = {&p, &v};
    OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    OK(cuMemcpyDtoH(&out, p, 4));
    EXPECT_EQ(out, 5u);
    CUdeviceptr g;
    size_t bytes;
    OK(cuLibraryGetGlobal(&g, &bytes, library, "answer"));
    OK(cuMemcpyDtoH(&out, g, 4));
    EXPECT_EQ(out, 42u);
    OK(cuCtxDestroy(c));
  }
  const char* name;
  OK(cuKernelGetName(&name, kernel));
  EXPECT_STREQ(name, "store");
  OK(cuLibraryUnload(library));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuKernelGetName(&name, kernel));
}

TEST_F(KernelTest, ManyThreadsLaunch) {
  std::vector<std::thread> threads;
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 8 * 4));
  for (unsigned t = 0; t < 8; t++)
    threads.emplace_back([&, t] {
      ASSERT_EQ(cuCtxSetCurrent(context_), CUDA_SUCCESS);
      CUstream s;
      ASSERT_EQ(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
      for (unsigned i = 0; i < 100; i++) ASSERT_EQ(store(p + 4 * t, t * 1000 + i, s), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamSynchronize(s), CUDA_SUCCESS);
    });
  for (auto& t : threads) t.join();
  unsigned out[8];
  OK(cuMemcpyDtoH(out, p, 32));
  for (unsigned t = 0; t < 8; t++) EXPECT_EQ(out[t], t * 1000 + 99);
}

// Parameters and results of functions in registers: as old compilers and people write them.
TEST_F(Gpu, FunctionsTakeAndGiveRegisters) {
  constexpr const char* text = R"(.version 7.0
.target sm_70
.address_size 64
.func (.reg .u32 sum, .reg .pred odd, .reg .v2 .u32 pair) both(.reg .u32 a, .reg .v2 .u32 b, .reg .u64 c)
{
  .reg .u32 t;
  .reg .pred early;
  cvt.u32.u64 t, c;
  add.u32 sum, a, b.x;
  add.u32 sum, sum, b.y;
  add.u32 sum, sum, t;
  and.b32 t, sum, 1;
  setp.ne.u32 odd, t, 0;
  mov.v2.u32 pair, {a, sum};
  setp.lt.u32 early, a, 2;
  @early ret;                      // lanes leave at different places
  add.u32 sum, sum, 1000;
  ret;
}
.visible .entry k(.param .u64 out)
{
  .reg .u64 o, w;
  .reg .u32 x, s, one, r;
  .reg .v2 .u32 v, p;
  .reg .pred q;
  ld.param.u64 o, [out];
  mov.u32 x, %tid.x;
  mov.u32 one, 1;
  mov.v2.u32 v, {x, one};
  mov.u64 w, 10;
  call (s, q, p), both, (x, v, w);
  selp.u32 r, 7, 3, q;
  mul.wide.u32 w, x, 16;
  add.u64 o, o, w;
  st.global.v4.u32 [o], {s, r, p.x, p.y};
  ret;
}
)";
  CUmodule module;
  CUfunction f;
  CUdeviceptr out;
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&f, module, "k"));
  OK(cuMemAlloc(&out, 4 * 16));
  void* args[] = {&out};
  OK(cuLaunchKernel(f, 1, 1, 1, 4, 1, 1, 0, nullptr, args, nullptr));
  unsigned r[4][4];
  OK(cuMemcpyDtoH(r, out, sizeof r));
  for (unsigned x = 0; x < 4; ++x) {
    const unsigned sum = 2 * x + 11;  // odd
    EXPECT_EQ(r[x][0], x < 2 ? sum : sum + 1000);
    EXPECT_EQ(r[x][1], 7u);
    EXPECT_EQ(r[x][2], x);
    EXPECT_EQ(r[x][3], sum);
  }
}

// Code that has no cooperative groups header waits for the grid by functions of the device runtime (Numba); and a text
// of a later PTX version that uses nothing new runs.
TEST_F(KernelTest, AGridWaitsByTheDeviceRuntimesFunctions) {
  constexpr const char* text = R"(.version 9.3
.target sm_75
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry rounds(.param .u64 p)
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 1;
  mov.u32 %r2, 0;
  mov.u32 %r3, 5;
  {
  .param .b32 a;
  .param .b64 b;
  st.param.b32 [a], %r1;
  call.uni (b), cudaCGGetIntrinsicHandle, (a);
  ld.param.b64 %rd2, [b];
  }
AGAIN:
  red.global.add.u32 [%rd1], 1;
  {
  .param .b64 a;
  .param .b32 b;
  .param .b32 c;
  st.param.b64 [a], %rd2;
  st.param.b32 [b], %r2;
  call.uni (c), cudaCGSynchronize, (a, b);
  ld.param.b32 %r4, [c];
  }
  // All 8 * 64 threads have added: the sum is 512 times the rounds so far.
  ld.volatile.global.u32 %r5, [%rd1];
  sub.u32 %r6, 6, %r3;
  mad.lo.u32 %r7, %r6, 512, %r4;
  setp.eq.u32 %p1, %r5, %r7;
  @!%p1 red.global.add.u32 [%rd1+4], 1;
  {
  .param .b64 a;
  .param .b32 b;
  .param .b32 c;
  st.param.b64 [a], %rd2;
  st.param.b32 [b], %r2;
  call.uni (c), cudaCGSynchronize, (a, b);
  }
  sub.u32 %r3, %r3, 1;
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra AGAIN;
  ret;
}
)";
  CUmodule module;
  CUfunction rounds;
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&rounds, module, "rounds"));
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 8));
  OK(cuMemsetD8(p, 0, 8));
  void* arguments[] = {&p};
  OK(cuLaunchCooperativeKernel(rounds, 8, 1, 1, 64, 1, 1, 0, nullptr, arguments));
  uint32_t sum[2];
  OK(cuMemcpyDtoH(sum, p, 8));
  EXPECT_EQ(sum[0], 5u * 512);
  EXPECT_EQ(sum[1], 0u);
  FAILS(CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        cuModuleLoadData(&module, ".version 10.0\n.target sm_75\n.address_size 64\n"));
  OK(cuMemFree(p));
}

}  // namespace
