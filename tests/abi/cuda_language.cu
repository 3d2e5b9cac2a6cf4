// SPDX-License-Identifier: Apache-2.0
// Every way in which host code names kernels and device variables. Compiled, never run.
#include <cuda_runtime.h>

__device__ int counter[4];
__constant__ float coefficient;

__global__ void scale(int* p, float f) { p[0] = static_cast<int>(f + coefficient) + counter[1]; }

template <class T>
__global__ void one(T* p) {
  *p = 1;
}

int main() {
  int* d = nullptr;
  float h = 2;
  cudaMalloc(&d, 4);
  cudaMallocManaged(&d, 8);
  cudaMemcpyToSymbol(coefficient, &h, sizeof h);
  cudaMemcpyToSymbol(counter, &h, 4, 4);
  cudaMemcpyFromSymbol(&h, coefficient, sizeof h);
  scale<<<1, 32>>>(d, 1.f);
  one<<<dim3(1, 2), 32, 0, 0>>>(d);
  int grid = 0, block = 0;
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale);
  cudaOccupancyMaxPotentialBlockSize(&grid, &block, one<int>, 16);
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, scale);
  cudaFuncSetAttribute(one<int>, cudaFuncAttributeMaxDynamicSharedMemorySize, 3);
  cudaLaunchConfig_t config{};
  cudaLaunchKernelEx(&config, scale, d, 1);
  void* arguments[] = {&d};
  cudaLaunchKernel(one<int>, 1, 1, arguments);
  cudaEvent_t event;
  cudaEventCreate(&event, cudaEventDisableTiming);
  cudaEventRecord(event);
  cudaMemcpyAsync(d, &h, 4, cudaMemcpyDefault);
  void* address = nullptr;
  cudaGetSymbolAddress(&address, counter);
  cudaMemAdvise(d, 4, cudaMemAdviseSetReadMostly, cudaMemLocation{cudaMemLocationTypeDevice, 0});
  const auto channel = cudaCreateChannelDesc<float4>();
  return channel.x;
}
