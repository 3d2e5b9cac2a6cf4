// SPDX-License-Identifier: Apache-2.0
// The C++ part of the runtime headers, over a runtime that is made up here.
#include <cuComplex.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <math_constants.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace {

// The made-up device: 2048 threads and 100000 bytes of shared memory on each of 10 multiprocessors.
std::map<int, int> attributes = {{cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
                                 {cudaDevAttrWarpSize, 32},
                                 {cudaDevAttrMaxThreadsPerBlock, 1024},
                                 {cudaDevAttrMultiProcessorCount, 10}};
int kernelMaxThreads = 1024;
int blocksAtMost = 32;
size_t sharedPerSm = 100000;
std::vector<int> launched;
const void* launchedKernel = nullptr;
unsigned int lastFlags = 0;
size_t lastSize = 0;

void kernel(int, long long, float) {}

}  // namespace

extern "C" {
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  return *value = attributes.at(attribute), cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void*) {
  *out = {};
  out->maxThreadsPerBlock = kernelMaxThreads;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int size, size_t shared,
                                                                   unsigned int) {
  const int byThreads = 2048 / ((size + 31) / 32 * 32);
  const int byShared = shared ? static_cast<int>(sharedPerSm / shared) : blocksAtMost;
  *blocks = std::min({byThreads, byShared, blocksAtMost});
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* function, void** arguments) {
  launchedKernel = function;
  int first = 0;
  long long second = 0;
  float third = 0;
  std::memcpy(&first, arguments[0], sizeof first);
  std::memcpy(&second, arguments[1], sizeof second);
  std::memcpy(&third, arguments[2], sizeof third);
  launched = {first, static_cast<int>(second), static_cast<int>(third)};
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** pointer, size_t size) { return *pointer = &attributes, lastSize = size, cudaSuccess; }
cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  return *pointer = &attributes, lastSize = size, lastFlags = flags, cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t*, unsigned int flags) { return lastFlags = flags, cudaSuccess; }
}

namespace {

TEST(RuntimeHeaders, ChannelDescriptions) {
  const cudaChannelFormatDesc four = cudaCreateChannelDesc<float4>();
  EXPECT_EQ(std::vector<int>({four.x, four.y, four.z, four.w, four.f}),
            std::vector<int>({32, 32, 32, 32, cudaChannelFormatKindFloat}));
  const cudaChannelFormatDesc two = cudaCreateChannelDesc<uchar2>();
  EXPECT_EQ(std::vector<int>({two.x, two.y, two.z, two.w, two.f}),
            std::vector<int>({8, 8, 0, 0, cudaChannelFormatKindUnsigned}));
  EXPECT_EQ(cudaCreateChannelDesc<short>().f, cudaChannelFormatKindSigned);
  EXPECT_EQ(cudaCreateChannelDesc<short>().x, 16);
  const cudaChannelFormatDesc half = cudaCreateChannelDescHalf2();
  EXPECT_EQ(std::vector<int>({half.x, half.y, half.z, half.w, half.f}),
            std::vector<int>({16, 16, 0, 0, cudaChannelFormatKindFloat}));
  const cudaChannelFormatDesc none = cudaCreateChannelDesc<double3>();
  EXPECT_EQ(none.x, 0);
  EXPECT_EQ(none.f, cudaChannelFormatKindNone);
}

TEST(RuntimeHeaders, Dim3) {
  EXPECT_EQ(dim3().x, 1u);
  const dim3 d(7, 5);
  EXPECT_EQ(d.x * 100 + d.y * 10 + d.z, 751u);
  const uint3 u = d;
  EXPECT_EQ(dim3(u).y, 5u);
  EXPECT_EQ(sizeof(dim3), 12u);
}

TEST(RuntimeHeaders, VectorsAreAlignedAsOnTheDevice) {
  EXPECT_EQ(alignof(float4), 16u);
  EXPECT_EQ(alignof(float3), 4u);
  EXPECT_EQ(alignof(double2), 16u);
  EXPECT_EQ(alignof(uchar4), 4u);
  EXPECT_EQ(alignof(double4_32a), 32u);
  const float4 v = make_float4(1, 2, 3, 4);
  EXPECT_EQ(v.w, 4.0f);
}

TEST(RuntimeHeaders, ComplexNumbers) {
  const cuDoubleComplex product = cuCmul(make_cuDoubleComplex(1, 2), make_cuDoubleComplex(3, 4));
  EXPECT_EQ(product.x, -5.0);
  EXPECT_EQ(product.y, 10.0);
  const cuDoubleComplex quotient = cuCdiv(product, make_cuDoubleComplex(3, 4));
  EXPECT_DOUBLE_EQ(quotient.x, 1.0);
  EXPECT_DOUBLE_EQ(quotient.y, 2.0);
  const cuComplex other = cuCdivf(make_cuComplex(2, 0), make_cuComplex(0, 4));
  EXPECT_EQ(other.x, 0.0f);
  EXPECT_EQ(other.y, -0.5f);
  EXPECT_EQ(cuCabs(make_cuDoubleComplex(3, -4)), 5.0);
  EXPECT_EQ(cuCabs(make_cuDoubleComplex(3e300, 4e300)), 5e300);  // the squares would overflow
  const cuComplex sum = cuCfmaf(make_cuComplex(1, 2), make_cuComplex(3, 4), make_cuComplex(10, 20));
  EXPECT_EQ(sum.x, 5.0f);
  EXPECT_EQ(sum.y, 30.0f);
  EXPECT_EQ(cuConjf(sum).y, -30.0f);
}

TEST(RuntimeHeaders, ConstantsHaveTheirBits) {
  const auto bits = [](float f) {
    uint32_t u = 0;
    std::memcpy(&u, &f, 4);
    return u;
  };
  const auto bits64 = [](double d) {
    uint64_t u = 0;
    std::memcpy(&u, &d, 8);
    return u;
  };
  EXPECT_EQ(bits(CUDART_INF_F), 0x7f800000u);
  EXPECT_EQ(bits(CUDART_NAN_F), 0x7fffffffu);
  EXPECT_EQ(bits(CUDART_MIN_DENORM_F), 1u);
  EXPECT_EQ(bits(CUDART_MAX_NORMAL_F), 0x7f7fffffu);
  EXPECT_EQ(bits(CUDART_NEG_ZERO_F), 0x80000000u);
  EXPECT_EQ(bits64(CUDART_NAN), 0xfff8000000000000u);
  EXPECT_EQ(bits64(CUDART_MIN_DENORM), 1u);
  EXPECT_EQ(bits64(CUDART_PI), 0x400921fb54442d18u);
}

TEST(RuntimeHeaders, BlockSizeSearchTakesTheLargestThatFillsTheMultiprocessor) {
  int grid = 0, block = 0;
  ASSERT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel), cudaSuccess);
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 20);  // 2048 / 1024 blocks on 10 multiprocessors
}

TEST(RuntimeHeaders, BlockSizeSearchObeysLimits) {
  int grid = 0, block = 0;
  ASSERT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 300), cudaSuccess);
  // 300 needs ten warps: 6 blocks of 300 are 1800 threads; 256: 8 blocks are 2048.
  EXPECT_EQ(block, 256);
  EXPECT_EQ(grid, 80);
  kernelMaxThreads = 96;
  ASSERT_EQ(cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel), cudaSuccess);
  kernelMaxThreads = 1024;
  EXPECT_EQ(block, 64);  // 96: 21 blocks, 2016 threads; 64: 32 blocks, 2048 threads
  EXPECT_EQ(grid, 320);
}

TEST(RuntimeHeaders, BlockSizeSearchWithSharedMemoryPerThread) {
  int grid = 0, block = 0;
  // 100 bytes a thread: 1000 threads fit, in whole warps one block of 992 at most.
  ASSERT_EQ(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, kernel,
                                                           [](int size) { return static_cast<size_t>(size) * 100; }),
            cudaSuccess);
  EXPECT_EQ(block, 992);
  EXPECT_EQ(grid, 10);
  EXPECT_EQ(cudaOccupancyMaxPotentialBlockSize(nullptr, &block, kernel), cudaErrorInvalidValue);
}

TEST(RuntimeHeaders, LaunchConvertsArguments) {
  cudaLaunchConfig_t config = {};
  ASSERT_EQ(cudaLaunchKernelEx(&config, kernel, short{3}, 4, 5.0), cudaSuccess);
  EXPECT_EQ(launched, std::vector<int>({3, 4, 5}));
  EXPECT_EQ(launchedKernel, reinterpret_cast<const void*>(&kernel));
}

TEST(RuntimeHeaders, TypedAllocation) {
  float* pointer = nullptr;
  ASSERT_EQ(cudaMalloc(&pointer, 40), cudaSuccess);
  EXPECT_EQ(static_cast<void*>(pointer), &attributes);
  EXPECT_EQ(lastSize, 40u);
  ASSERT_EQ(cudaMallocManaged(&pointer, 8), cudaSuccess);
  EXPECT_EQ(lastFlags, unsigned{cudaMemAttachGlobal});
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(lastFlags, unsigned{cudaEventDisableTiming});
}

}  // namespace
