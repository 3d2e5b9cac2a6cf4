// SPDX-License-Identifier: Apache-2.0
// Copies and kernels of several streams that overlap: the input is cut into
// pieces, and each stream copies a piece in, works on it and copies it out,
// from pinned memory. A final event joins the streams.
// Usage: streams_overlap [--n ELEMENTS] [--streams COUNT] [--pieces COUNT]
#include <vector>

#include "example.h"

// Enough arithmetic to be worth overlapping: Newton's iteration for 1/sqrt(x).
__host__ __device__ inline float refine(float x, int rounds) {
  float y = 0.5f;
  for (int i = 0; i < rounds; ++i) y = y * (1.5f - 0.5f * x * y * y);
  return y;
}

__global__ void inverseRoots(const float* in, float* out, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = refine(in[i], rounds);
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "Copies and kernels of several streams that overlap",
                 "[--n ELEMENTS] [--streams COUNT] [--pieces COUNT]");
  const int n = option(argc, argv, "--n", 1 << 18);
  const int streamCount = option(argc, argv, "--streams", 4);
  const int pieces = option(argc, argv, "--pieces", 8);
  const int rounds = 8;
  const int piece = (n + pieces - 1) / pieces;

  float *in, *out, *deviceIn, *deviceOut;
  CHECK(cudaMallocHost(reinterpret_cast<void**>(&in), n * sizeof(float)));
  CHECK(cudaMallocHost(reinterpret_cast<void**>(&out), n * sizeof(float)));
  CHECK(cudaMalloc(&deviceIn, n * sizeof(float)));
  CHECK(cudaMalloc(&deviceOut, n * sizeof(float)));
  Random random(5);
  for (int i = 0; i < n; ++i) in[i] = 0.5f + 2.0f * random.unit();
  std::memset(out, 0, n * sizeof(float));

  std::vector<cudaStream_t> streams(streamCount);
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaStream_t main;
  CHECK(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking));
  cudaEvent_t start, stop, piecesDone;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventCreateWithFlags(&piecesDone, cudaEventDisableTiming));

  CHECK(cudaEventRecord(start, main));
  for (cudaStream_t stream : streams) CHECK(cudaStreamWaitEvent(stream, start, 0));
  for (int p = 0; p < pieces; ++p) {
    const int first = p * piece;
    const int count = first + piece <= n ? piece : n - first;
    if (count <= 0) break;
    cudaStream_t stream = streams[p % streamCount];
    CHECK(cudaMemcpyAsync(deviceIn + first, in + first, count * sizeof(float), cudaMemcpyHostToDevice, stream));
    inverseRoots<<<(count + 255) / 256, 256, 0, stream>>>(deviceIn + first, deviceOut + first, count, rounds);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpyAsync(out + first, deviceOut + first, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
  }
  for (cudaStream_t stream : streams) {
    CHECK(cudaEventRecord(piecesDone, stream));
    CHECK(cudaStreamWaitEvent(main, piecesDone, 0));
  }
  CHECK(cudaEventRecord(stop, main));
  CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0.0f;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));

  double worst = 0.0;
  for (int i = 0; i < n; ++i) {
    double expected = 1.0 / std::sqrt(static_cast<double>(in[i]));
    worst = larger(worst, std::fabs(out[i] - expected) / expected);
  }
  std::printf("%d elements in %d pieces on %d streams: %.3f ms, worst relative error %.2e\n", n, pieces, streamCount,
              milliseconds, worst);
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(main));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaEventDestroy(piecesDone));
  CHECK(cudaFreeHost(in));
  CHECK(cudaFreeHost(out));
  CHECK(cudaFree(deviceIn));
  CHECK(cudaFree(deviceOut));
  return verdict("streams_overlap", worst < 1e-5);
}
