// SPDX-License-Identifier: Apache-2.0
// The program that the end-to-end tests profile: every number in it is known.
//
//   4 launches of fill<<<4, 128>>>, the last between cudaProfilerStart and Stop
//   2 launches of lib::scale<2><<<2, 64, 256 bytes>>> on a stream of its own
//   NVTX: push/pop "launches" around the first five launches with "inner" in it, start/end "all", a mark "here"
//   1 copy of 16384 bytes to the device, one of 2048 and one of 4 bytes back, 1 set of 1000 bytes
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                     \
  do {                                                                                  \
    const cudaError_t error = (call);                                                   \
    if (error != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%d: %s: %s\n", __LINE__, #call, cudaGetErrorString(error)); \
      std::exit(80);                                                                    \
    }                                                                                   \
  } while (0)

__global__ void fill(int* data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value; }

namespace lib {
template <int N>
__global__ void scale(float* data, float factor) {
  extern __shared__ float shared[];
  const unsigned i = threadIdx.x;
  shared[i] = data[blockIdx.x * blockDim.x + i];
  __syncthreads();
  data[blockIdx.x * blockDim.x + i] = shared[blockDim.x - 1 - i] * factor * N;
}
}  // namespace lib

int main(int argc, char** argv) {
  const nvtxRangeId_t all = nvtxRangeStartA("all");  // before CUDA is initialised
  int* ints = nullptr;
  float* floats = nullptr;
  CHECK(cudaMalloc(&ints, 4 * 128 * sizeof(int)));
  CHECK(cudaMalloc(&floats, 4096 * sizeof(float)));
  std::vector<float> host(4096, 1.0f);
  CHECK(cudaMemcpy(floats, host.data(), 16384, cudaMemcpyHostToDevice));
  nvtxRangePushA("launches");
  nvtxMarkA("here");
  for (int i = 0; i < 3; i++) fill<<<4, 128>>>(ints, i);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  nvtxRangePushA("inner");
  for (int i = 0; i < 2; i++) lib::scale<2><<<2, 64, 256, stream>>>(floats, 3.0f);
  nvtxRangePop();
  nvtxRangePop();
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemset(ints, 0, 1000));
  CHECK(cudaProfilerStart());
  fill<<<4, 128>>>(ints, 7);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaProfilerStop());
  std::vector<int> back(512);
  CHECK(cudaMemcpy(back.data(), ints, 2048, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(host.data(), floats, 4, cudaMemcpyDeviceToHost));
  if (back[0] != 7 || back[511] != 7 || host[0] != 36.0f) {
    std::fprintf(stderr, "wrong: %d %d %g\n", back[0], back[511], static_cast<double>(host[0]));
    return 81;
  }
  CHECK(cudaFree(ints));
  CHECK(cudaFree(floats));
  CHECK(cudaStreamDestroy(stream));
  nvtxRangeEnd(all);
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
