// SPDX-License-Identifier: Apache-2.0
// libcudart on the software driver: registration, launches, memory, errors.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/runtime/fat_binary.h"

namespace sonde::test {
namespace {

// fill: out[i] = value + i for i < n.   poke: writes through a bad pointer.
// twice: out[i] = 2 * table[i] from constant memory.
constexpr char kPtx[] = R"(
.version 6.4
.target sm_50
.address_size 64

.global .align 4 .u32 counter = 7;
.const .align 4 .b32 table[4] = {1, 2, 3, 4};

.visible .entry fill(.param .u64 out, .param .u32 value, .param .u32 n)
{
    .reg .pred  p;
    .reg .b32   i, a, b, c;
    .reg .b64   at, offset;
    mov.u32     a, %ctaid.x;
    mov.u32     b, %ntid.x;
    mov.u32     c, %tid.x;
    mad.lo.u32  i, a, b, c;
    ld.param.u32 a, [n];
    setp.ge.u32 p, i, a;
    @p ret;
    ld.param.u32 b, [value];
    add.u32     b, b, i;
    ld.param.u64 at, [out];
    cvta.to.global.u64 at, at;
    mul.wide.u32 offset, i, 4;
    add.s64     at, at, offset;
    st.global.u32 [at], b;
    ret;
}

.visible .entry poke(.param .u64 out)
{
    .reg .b64   at;
    ld.param.u64 at, [out];
    st.global.u32 [at], 1;
    ret;
}

.visible .entry twice(.param .u64 out)
{
    .reg .b32   i, v;
    .reg .b64   at, from, offset;
    mov.u32     i, %tid.x;
    mul.wide.u32 offset, i, 4;
    mov.u64     from, table;
    add.s64     from, from, offset;
    ld.const.u32 v, [from];
    add.u32     v, v, v;
    ld.param.u64 at, [out];
    add.s64     at, at, offset;
    st.global.u32 [at], v;
    ret;
}
)";

// Their addresses stand for the kernels and variables, as in compiled code.
char fillStub, pokeStub, twiceStub, unknownStub;
char counterShadow[4], tableShadow[16];

class Runtime : public ::testing::Test {
 protected:
  void SetUp() override {
    binary_ = std::make_unique<FatBinary>(kPtx);
    binary_->kernel(&fillStub, "fill");
    binary_->kernel(&pokeStub, "poke");
    binary_->kernel(&twiceStub, "twice");
    binary_->variable(counterShadow, "counter", 4, false);
    binary_->variable(tableShadow, "table", 16, true);
    __cudaRegisterFatBinaryEnd(binary_->handle());
    cudaGetLastError();
  }
  void TearDown() override {
    cudaDeviceSynchronize();
    cudaGetLastError();
  }
  static cudaError_t fill(unsigned* out, unsigned value, unsigned n, unsigned blocks, unsigned threads,
                          cudaStream_t stream = nullptr) {
    void* arguments[] = {&out, &value, &n};
    return cudaLaunchKernel(&fillStub, dim3(blocks), dim3(threads), arguments, 0, stream);
  }
  std::unique_ptr<FatBinary> binary_;
};

TEST_F(Runtime, VersionsAreThoseOfCuda13) {
  int driver = 0, runtime = 0;
  ASSERT_EQ(cudaDriverGetVersion(&driver), cudaSuccess);
  ASSERT_EQ(cudaRuntimeGetVersion(&runtime), cudaSuccess);
  EXPECT_EQ(driver, 13000);
  EXPECT_EQ(runtime, 13000);
}

TEST_F(Runtime, LaunchesARegisteredKernel) {
  constexpr unsigned n = 1000;
  unsigned* out = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), n * 4), cudaSuccess);
  ASSERT_EQ(fill(out, 5, n, 8, 128), cudaSuccess);
  std::vector<unsigned> host(n);
  ASSERT_EQ(cudaMemcpy(host.data(), out, n * 4, cudaMemcpyDeviceToHost), cudaSuccess);
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(host[i], 5 + i);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(Runtime, CallConfigurationIsAStackPerThread) {
  ASSERT_EQ(__cudaPushCallConfiguration(dim3(2, 3, 4), dim3(32), 16, nullptr), 0u);
  ASSERT_EQ(__cudaPushCallConfiguration(dim3(1), dim3(8, 2), 0, reinterpret_cast<void*>(0x2)), 0u);
  dim3 grid, block;
  size_t shared = 99;
  void* stream = nullptr;
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(block.y, 2u);
  EXPECT_EQ(shared, 0u);
  EXPECT_EQ(stream, reinterpret_cast<void*>(0x2));
  ASSERT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaSuccess);
  EXPECT_EQ(grid.z, 4u);
  EXPECT_EQ(shared, 16u);
  EXPECT_EQ(__cudaPopCallConfiguration(&grid, &block, &shared, &stream), cudaErrorMissingConfiguration);
}

TEST_F(Runtime, LaunchStubOfCuda13) {
  cudaKernel_t kernel = nullptr;
  ASSERT_EQ(__cudaGetKernel(&kernel, &fillStub), cudaSuccess);
  unsigned* out = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), 16), cudaSuccess);
  unsigned value = 40, n = 4;
  void* arguments[] = {&out, &value, &n};
  ASSERT_EQ(__cudaLaunchKernel(kernel, dim3(1), dim3(4), arguments, 0, nullptr), cudaSuccess);
  unsigned host[4] = {};
  ASSERT_EQ(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[3], 43u);
  value = 50;
  ASSERT_EQ(__cudaLaunchKernel_ptsz(kernel, dim3(1), dim3(4), arguments, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[3], 53u);
  // A handle of the public function works wherever a stub does.
  ASSERT_EQ(cudaGetKernel(&kernel, &fillStub), cudaSuccess);
  value = 60;
  ASSERT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(4), arguments, 0, nullptr), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[3], 63u);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(Runtime, ErrorsOfLaunches) {
  unsigned* out = nullptr;
  EXPECT_EQ(cudaLaunchKernel(&unknownStub, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(fill(out, 0, 0, 0, 32), cudaErrorInvalidConfiguration);
  EXPECT_EQ(fill(out, 0, 0, 1, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(fill(out, 0, 0, 1, 2048), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Runtime, LastErrorIsKeptPerThread) {
  EXPECT_EQ(cudaMemcpy(nullptr, nullptr, 4, static_cast<cudaMemcpyKind>(7)), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidMemcpyDirection);
  std::thread([] { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess); }).join();
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);  // a success does not clear it
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(Runtime, NamesAndTextsOfErrors) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
}

TEST_F(Runtime, FreeOfWhatWasNotAllocated) {
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(0x10)), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMalloc(nullptr, 4), cudaErrorInvalidValue);
  void* huge = nullptr;
  EXPECT_EQ(cudaMalloc(&huge, size_t{1} << 60), cudaErrorMemoryAllocation);
  EXPECT_EQ(huge, nullptr);
}

TEST_F(Runtime, SetDeviceRules) {
  int count = 0, device = -1;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  ASSERT_GE(count, 1);
  EXPECT_EQ(cudaSetDevice(count), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 0);
}

TEST_F(Runtime, PropertiesAgreeWithAttributes) {
  cudaDeviceProp prop{};
  ASSERT_EQ(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
  auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
  };
  EXPECT_GT(std::strlen(prop.name), 0u);
  EXPECT_EQ(prop.warpSize, 32);
  EXPECT_EQ(prop.major, attribute(cudaDevAttrComputeCapabilityMajor));
  EXPECT_EQ(prop.minor, attribute(cudaDevAttrComputeCapabilityMinor));
  EXPECT_EQ(prop.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount));
  EXPECT_EQ(prop.maxThreadsPerBlock, attribute(cudaDevAttrMaxThreadsPerBlock));
  EXPECT_EQ(prop.sharedMemPerBlock, static_cast<size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlock)));
  EXPECT_EQ(prop.maxGridSize[1], attribute(cudaDevAttrMaxGridDimY));
  EXPECT_EQ(prop.l2CacheSize, attribute(cudaDevAttrL2CacheSize));
  EXPECT_EQ(cudaGetDeviceProperties(&prop, 99), cudaErrorInvalidDevice);
}

TEST_F(Runtime, SymbolsAreReadAndWritten) {
  unsigned value = 0;
  ASSERT_EQ(cudaMemcpyFromSymbol(&value, counterShadow, 4, 0, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(value, 7u);
  unsigned two[2] = {30, 40};
  ASSERT_EQ(cudaMemcpyToSymbol(tableShadow, two, 8, 8, cudaMemcpyHostToDevice), cudaSuccess);
  unsigned* out = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), 16), cudaSuccess);
  void* arguments[] = {&out};
  ASSERT_EQ(cudaLaunchKernel(&twiceStub, dim3(1), dim3(4), arguments, 0, nullptr), cudaSuccess);
  unsigned host[4] = {};
  ASSERT_EQ(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[0], 2u);
  EXPECT_EQ(host[1], 4u);
  EXPECT_EQ(host[2], 60u);
  EXPECT_EQ(host[3], 80u);
  size_t size = 0;
  void* address = nullptr;
  EXPECT_EQ(cudaGetSymbolSize(&size, tableShadow), cudaSuccess);
  EXPECT_EQ(size, 16u);
  EXPECT_EQ(cudaGetSymbolAddress(&address, tableShadow), cudaSuccess);
  EXPECT_NE(address, nullptr);
  EXPECT_EQ(cudaMemcpyToSymbol(tableShadow, two, 8, 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetSymbolAddress(&address, &unknownStub), cudaErrorInvalidSymbol);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(Runtime, TwoDimensionalCopiesAndSets) {
  void* device = nullptr;
  size_t pitch = 0;
  ASSERT_EQ(cudaMallocPitch(&device, &pitch, 10, 3), cudaSuccess);
  EXPECT_GE(pitch, 10u);
  ASSERT_EQ(cudaMemset2D(device, pitch, 0x11, 10, 3), cudaSuccess);
  std::vector<unsigned char> in(4 * 3);
  std::iota(in.begin(), in.end(), 1);
  ASSERT_EQ(cudaMemcpy2D(static_cast<char*>(device) + 2, pitch, in.data(), 4, 4, 3, cudaMemcpyHostToDevice),
            cudaSuccess);
  std::vector<unsigned char> out(10 * 3);
  ASSERT_EQ(cudaMemcpy2D(out.data(), 10, device, pitch, 10, 3, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(out[0], 0x11);
  EXPECT_EQ(out[2], 1);
  EXPECT_EQ(out[10 + 5], 8);
  EXPECT_EQ(out[20 + 6], 0x11);
  EXPECT_EQ(cudaMemcpy2D(out.data(), 2, device, pitch, 10, 3, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST_F(Runtime, ThreeDimensionalSetLeavesTheRestAlone) {
  cudaPitchedPtr box{};
  ASSERT_EQ(cudaMalloc3D(&box, cudaExtent{8, 4, 3}), cudaSuccess);
  ASSERT_EQ(cudaMemset(box.ptr, 0, box.pitch * 4 * 3), cudaSuccess);
  ASSERT_EQ(cudaMemset3D(box, 0x5a, cudaExtent{5, 2, 3}), cudaSuccess);
  std::vector<unsigned char> host(8 * 4 * 3);
  cudaMemcpy3DParms copy{};
  copy.srcPtr = box;
  copy.dstPtr = {host.data(), 8, 8, 4};
  copy.extent = {8, 4, 3};
  copy.kind = cudaMemcpyDeviceToHost;
  ASSERT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
  int set = 0;
  for (unsigned char byte : host) set += byte == 0x5a;
  EXPECT_EQ(set, 5 * 2 * 3);
  EXPECT_EQ(host[2 * 32 + 8 + 4], 0x5a);  // slice 2, row 1, column 4
  EXPECT_EQ(host[2 * 32 + 8 + 5], 0);
  EXPECT_EQ(cudaFree(box.ptr), cudaSuccess);
}

TEST_F(Runtime, WhatAPointerIs) {
  void *device = nullptr, *pinned = nullptr, *managed = nullptr;
  int local = 0;
  ASSERT_EQ(cudaMalloc(&device, 64), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 64), cudaSuccess);
  ASSERT_EQ(cudaMallocManaged(&managed, 64, cudaMemAttachGlobal), cudaSuccess);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, device), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.devicePointer, device);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  EXPECT_EQ(attributes.device, 0);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, managed), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(managed), cudaSuccess);
}

TEST_F(Runtime, StreamsKeepTheirOrder) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  struct Trace {
    std::atomic<int> next{0};
    int callback = -1, function = -1;
    cudaError_t status = cudaErrorUnknown;
  } trace;
  unsigned* out = nullptr;
  unsigned host[4] = {};
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), 16), cudaSuccess);
  ASSERT_EQ(fill(out, 9, 4, 1, 4, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamAddCallback(
                stream,
                [](cudaStream_t, cudaError_t status, void* data) {
                  auto* t = static_cast<Trace*>(data);
                  t->status = status;
                  t->callback = t->next++;
                },
                &trace, 0),
            cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream,
                [](void* data) {
                  auto* t = static_cast<Trace*>(data);
                  t->function = t->next++;
                },
                &trace),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(host, out, 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(trace.callback, 0);
  EXPECT_EQ(trace.function, 1);
  EXPECT_EQ(trace.status, cudaSuccess);
  EXPECT_EQ(host[3], 12u);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(Runtime, EventsMeasureTime) {
  cudaEvent_t start, stop;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&stop), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(start, nullptr), cudaSuccess);
  unsigned* out = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), 4096), cudaSuccess);
  ASSERT_EQ(fill(out, 0, 1024, 4, 256), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(stop, nullptr), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(stop), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(stop), cudaSuccess);
  float milliseconds = -1;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, start, stop), cudaSuccess);
  EXPECT_GT(milliseconds, 0.0f);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(stop), cudaSuccess);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

TEST_F(Runtime, FunctionAttributesAndOccupancy) {
  cudaFuncAttributes attributes{};
  ASSERT_EQ(cudaFuncGetAttributes(&attributes, &fillStub), cudaSuccess);
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  EXPECT_EQ(attributes.sharedSizeBytes, 0u);
  EXPECT_GT(attributes.numRegs, 0);
  EXPECT_EQ(attributes.ptxVersion, 50);
  int blocks = 0;
  ASSERT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &fillStub, 1024, 0), cudaSuccess);
  cudaDeviceProp prop{};
  ASSERT_EQ(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
  EXPECT_EQ(blocks, prop.maxThreadsPerMultiProcessor / 1024);
  const char* name = nullptr;
  ASSERT_EQ(cudaFuncGetName(&name, &fillStub), cudaSuccess);
  EXPECT_STREQ(name, "fill");
  EXPECT_EQ(cudaFuncGetAttributes(&attributes, &unknownStub), cudaErrorInvalidDeviceFunction);
}

TEST_F(Runtime, FatBinaryWithoutPtxIsRefusedAtTheLaunch) {
  char stub = 0;
  FatBinary elf(std::string("\177ELF") + std::string(60, '\0'), 2);
  elf.kernel(&stub, "anything");
  EXPECT_EQ(cudaLaunchKernel(&stub, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorNoKernelImageForDevice);
}

TEST_F(Runtime, KernelThatTheModuleLacks) {
  char stub = 0;
  binary_->kernel(&stub, "missing");
  EXPECT_EQ(cudaLaunchKernel(&stub, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidDeviceFunction);
}

TEST_F(Runtime, DriverEntryPoint) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status{};
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &function, 12000, cudaEnableDefault, &status),
            cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSuccess);
  int version = 0;
  EXPECT_EQ(reinterpret_cast<int (*)(int*)>(function)(&version), 0);
  EXPECT_EQ(version, 13000);
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &function, 12000, cudaEnableDefault, &status),
            cudaSuccess);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
}

TEST_F(Runtime, WhatIsNotBuiltSaysSo) {
  EXPECT_EQ(cudaImportExternalMemory(nullptr, nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
}

TEST_F(Runtime, BadAddressIsStickyUntilTheDeviceIsReset) {
  unsigned* nowhere = reinterpret_cast<unsigned*>(0x40);
  void* arguments[] = {&nowhere};
  ASSERT_EQ(cudaLaunchKernel(&pokeStub, dim3(1), dim3(1), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorIllegalAddress);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  cudaGetLastError();
  unsigned* out = nullptr;
  ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&out), 16), cudaSuccess);
  ASSERT_EQ(fill(out, 1, 4, 1, 4), cudaSuccess);
  unsigned host[4] = {};
  ASSERT_EQ(cudaMemcpy(host, out, 16, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host[3], 4u);
  EXPECT_EQ(cudaFree(out), cudaSuccess);
}

// The functions are deprecated, and in use.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
// Bytes go along the rows: 18 bytes from byte 5 of the first row of 8 on end in the third row, before its last byte.
TEST_F(Runtime, BytesToAndFromAnArray) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array = nullptr;
  ASSERT_EQ(cudaMallocArray(&array, &format, 8, 3, 0), cudaSuccess);
  unsigned char all[24] = {}, in[18], out[18] = {};
  for (unsigned char i = 0; i < 18; ++i) in[i] = static_cast<unsigned char>(i + 1);
  ASSERT_EQ(cudaMemcpyToArray(array, 0, 0, all, 24, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpyToArray(array, 5, 0, in, 18, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_EQ(cudaMemcpy2DFromArray(all, 8, array, 0, 0, 8, 3, cudaMemcpyDeviceToHost), cudaSuccess);
  for (unsigned i = 0; i < 24; ++i) EXPECT_EQ(all[i], i >= 5 && i < 23 ? i - 4 : 0) << i;
  ASSERT_EQ(cudaMemcpyFromArray(out, array, 5, 0, 18, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(std::memcmp(in, out, 18), 0);
  EXPECT_EQ(cudaMemcpyToArray(array, 5, 0, in, 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeArray(array), cudaSuccess);
  cudaGetLastError();
}
#pragma GCC diagnostic pop

TEST_F(Runtime, ManyThreadsShareOneContext) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      unsigned* out = nullptr;
      unsigned host[64] = {};
      if (cudaMalloc(reinterpret_cast<void**>(&out), sizeof host) != cudaSuccess) return;
      bool ok = fill(out, 100 * t, 64, 2, 32) == cudaSuccess &&
                cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess;
      for (unsigned i = 0; i < 64; ++i) ok = ok && host[i] == 100 * t + i;
      if (ok && cudaFree(out) == cudaSuccess) ++good;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
}

}  // namespace
}  // namespace sonde::test
