// SPDX-License-Identifier: Apache-2.0
// What every driver program runs: work whose records and counts are known.
//
//   3 launches of addOne, 4 blocks of 64 threads: 24 warps, 768 threads
//   1 copy to the device, 1 set, 1 copy back, 1 kernel on managed memory
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define WORKLOAD_OK(call)                                                                          \
  do {                                                                                             \
    const cudaError_t status_ = (call);                                                            \
    if (status_ != cudaSuccess) {                                                                  \
      std::fprintf(stderr, "%s:%d: error: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (0)

constexpr unsigned kWorkloadBlocks = 4, kWorkloadThreads = 64, kWorkloadLaunches = 3;
constexpr unsigned kWorkloadCount = kWorkloadBlocks * kWorkloadThreads;

__global__ void addOne(unsigned* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

// True when the results are right.
inline bool workload() {
  std::vector<unsigned> host(kWorkloadCount, 5);
  const size_t bytes = host.size() * sizeof host[0];
  unsigned *device = nullptr, *zeros = nullptr, *managed = nullptr;
  WORKLOAD_OK(cudaMalloc(&device, bytes));
  WORKLOAD_OK(cudaMalloc(&zeros, bytes));
  WORKLOAD_OK(cudaMallocManaged(&managed, bytes));
  for (unsigned i = 0; i < kWorkloadCount; ++i) managed[i] = i;
  WORKLOAD_OK(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
  WORKLOAD_OK(cudaMemset(zeros, 0, bytes));
  for (unsigned i = 0; i < kWorkloadLaunches; ++i) addOne<<<kWorkloadBlocks, kWorkloadThreads>>>(device);
  addOne<<<kWorkloadBlocks, kWorkloadThreads>>>(managed);
  WORKLOAD_OK(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
  WORKLOAD_OK(cudaDeviceSynchronize());
  bool right = true;
  for (unsigned i = 0; i < kWorkloadCount; ++i)
    right = right && host[i] == 5 + kWorkloadLaunches && managed[i] == i + 1;
  WORKLOAD_OK(cudaFree(device));
  WORKLOAD_OK(cudaFree(zeros));
  WORKLOAD_OK(cudaFree(managed));
  return right;
}
