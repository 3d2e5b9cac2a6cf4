# SPDX-License-Identifier: Apache-2.0
"""Programs for sondecc_test.py, each of which answers 0 when its results are right."""

# Relocatable device code: a variable, a function and a template of another file, and one name twice.
LINKED_A = r"""
extern __device__ int counter;
__device__ int twice(int x);
template <class T> __device__ T third(T x) { return x * 3; }
static __device__ int own = 5;
__global__ void first(int* out) { out[threadIdx.x] = twice(threadIdx.x) + counter + own + third(1); }
void launchSecond(int*);
int main() {
  int* device;
  int host[64];
  if (cudaMalloc(&device, sizeof host)) return 1;
  first<<<1, 32>>>(device);
  launchSecond(device + 32);
  if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost)) return 2;
  return !(host[0] == 15 && host[31] == 77 && host[32] == 107 && host[63] == 138);
}
"""
LINKED_B = r"""
__device__ int counter = 7;
static __device__ int own = 100;
template <class T> __device__ T third(T x) { return x * 3; }
__device__ int twice(int x) { return 2 * x; }
__global__ void second(int* out) { out[threadIdx.x] = threadIdx.x + own + counter + third(0); }
void launchSecond(int* device) { second<<<1, 32>>>(device); }
"""

# What nvcc takes and clang does not by itself.
DIALECT = r"""
#include "header.cuh"
struct Large { int values[2000]; };
struct Trait { __host__ __device__ static int test(...); };
__global__ void kernel(Large large, int* out, unsigned* lanes) {
  __shared__ alignas(alignof(float4)) float tile[4][4];
  tile[threadIdx.x / 4 % 4][threadIdx.x % 4] = threadIdx.x;
  __syncthreads();
  unsigned lane;
  asm volatile("mov.u32 %0, %laneid;" : "=r"(lane));
  lanes[threadIdx.x] = lane + lanesBelow();
  out[threadIdx.x] = large.values[1999] + (reinterpret_cast<unsigned long long>(&tile[0][0]) % 16 == 0) +
                     static_cast<int>(tile[1][2]);
}
bool wraps(int i) { return i + 1 < i; }
int main(int argc, char**) {
  Large large{};
  large.values[1999] = 40;
  int* out;
  unsigned* lanes;
  cudaMallocManaged(&out, 16 * 4);
  cudaMallocManaged(&lanes, 16 * 4);
  kernel<<<1, 16>>>(large, out, lanes);
  if (cudaDeviceSynchronize()) return 1;
  if (!wraps(2147483646 + argc)) return 2;
  return !(out[5] == 47 && lanes[7] == 14);
}
"""
DIALECT_HEADER = r"""
__device__ inline unsigned lanesBelow() {
  unsigned mask;
  asm("mov.u32 %0, %lanemask_lt;" : "=r"(mask));
  return __popc(mask);
}
"""

# Barriers and pipelines of shared memory, and a tile of two warps.
BARRIER = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <utility>
namespace cg = cooperative_groups;

// The first warp sums what the others have written; then all see the sum.
__global__ void phases(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar[2];
  __shared__ int parts[128], sum;
  if (threadIdx.x == 0) {
    init(&bar[0], blockDim.x);
    init(&bar[1], blockDim.x);
  }
  __syncthreads();
  for (int round = 1; round <= 3; ++round) {
    parts[threadIdx.x] = round * threadIdx.x;
    auto token = bar[0].arrive();
    if (threadIdx.x < 32) {
      bar[0].wait(std::move(token));
      if (threadIdx.x == 0) {
        sum = 0;
        for (int i = 0; i < 128; ++i) sum += parts[i];
      }
    }
    bar[1].arrive_and_wait();
    if (threadIdx.x == 127) out[round - 1] = sum;
    bar[1].arrive_and_wait();
  }
}

__global__ void copies(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int data[64];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(&data[2 * threadIdx.x], &in[2 * threadIdx.x], cuda::aligned_size_t<8>(8), bar);
  bar.arrive_and_wait();
  out[threadIdx.x] = data[63 - threadIdx.x];
}

// Two stages between a warp that loads and one that adds.
__global__ void stages(const int* in, int* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  __shared__ int data[2][32];
  const bool loads = threadIdx.x < 32;
  const unsigned lane = threadIdx.x % 32;
  auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state,
                                  loads ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int sum = 0;
  for (int batch = 0; batch < 7; ++batch) {
    if (loads) {
      pipe.producer_acquire();
      cuda::memcpy_async(&data[batch % 2][lane], &in[32 * batch + lane], cuda::aligned_size_t<4>(4), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum += data[batch % 2][31 - lane];
      pipe.consumer_release();
    }
  }
  if (!loads) out[lane] = sum;
}

__global__ void ownStages(const int* in, int* out) {
  __shared__ int data[3][32];
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  int sum = 0;
  for (int batch = 0, ahead = 0; batch < 7; ++batch) {
    for (; ahead < 7 && ahead < batch + 3; ++ahead) {
      pipe.producer_acquire();
      cuda::memcpy_async(&data[ahead % 3][threadIdx.x], &in[32 * ahead + threadIdx.x], sizeof(int), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += data[batch % 3][threadIdx.x];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

__global__ void wide(int* out) {
  __shared__ cg::block_tile_memory<256> memory;
  auto tile = cg::tiled_partition<64>(cg::this_thread_block(memory));
  const int sum = cg::reduce(tile, static_cast<int>(threadIdx.x), cg::plus<int>());
  const int third = tile.shfl(static_cast<int>(threadIdx.x), 33);
  if (tile.thread_rank() == 5) {
    out[2 * tile.meta_group_rank()] = sum;
    out[2 * tile.meta_group_rank() + 1] = third;
  }
}

int main() {
  int *in, *out;
  cudaMallocManaged(&in, 256 * 4);
  cudaMallocManaged(&out, 256 * 4);
  for (int i = 0; i < 256; ++i) in[i] = i;
  phases<<<1, 128>>>(out);
  if (cudaDeviceSynchronize()) return 1;
  if (out[0] != 8128 || out[1] != 2 * 8128 || out[2] != 3 * 8128) return 2;
  copies<<<1, 32>>>(in, out);
  if (cudaDeviceSynchronize()) return 3;
  for (int i = 0; i < 32; ++i)
    if (out[i] != 63 - i) return 4;
  // Lane l of batch b has 32 b + l: over seven batches 32 * 21 + 7 l.
  stages<<<1, 64>>>(in, out);
  if (cudaDeviceSynchronize()) return 5;
  for (int i = 0; i < 32; ++i)
    if (out[i] != 672 + 7 * (31 - i)) return 6;
  ownStages<<<1, 32>>>(in, out);
  if (cudaDeviceSynchronize()) return 7;
  for (int i = 0; i < 32; ++i)
    if (out[i] != 672 + 7 * i) return 8;
  wide<<<1, 256>>>(out);
  if (cudaDeviceSynchronize()) return 9;
  for (int t = 0; t < 4; ++t)
    if (out[2 * t] != 2016 + 4096 * t || out[2 * t + 1] != 64 * t + 33) return 10 + t;
  return 0;
}
"""

# Products of matrices by a warp, against the sums written out.
MMA = r"""
#include <mma.h>
#include <cstdio>
using namespace nvcuda;
using Row = wmma::row_major;
using Column = wmma::col_major;
template <class T, class Sum, class S, int M, int N, int K, class LA, class LB>
__global__ void product(const S* a, const S* b, const Sum* c, Sum* d) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, LA> fa;
  wmma::fragment<wmma::matrix_b, M, N, K, T, LB> fb;
  wmma::fragment<wmma::accumulator, M, N, K, Sum> fc, one;
  wmma::load_matrix_sync(fa, a, __is_same(LA, Row) ? K : M);
  wmma::load_matrix_sync(fb, b, __is_same(LB, Row) ? N : K);
  wmma::load_matrix_sync(fc, c, N, wmma::mem_row_major);
  wmma::fill_fragment(one, Sum(1));
  for (int i = 0; i < fc.num_elements; i++) fc.x[i] = fc.x[i] + one.x[i];
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(d, fc, M, wmma::mem_col_major);
}
template <class T, class Sum, class S, int M, int N, int K, class LA, class LB>
bool run(const char* name) {
  S *a, *b;
  Sum *c, *d;
  cudaMallocManaged(&a, M * K * sizeof(S));
  cudaMallocManaged(&b, N * K * sizeof(S));
  cudaMallocManaged(&c, M * N * sizeof(Sum));
  cudaMallocManaged(&d, M * N * sizeof(Sum));
  auto left = [](int m, int k) { return (m * 3 + k * 5) % 7; };
  auto right = [](int k, int n) { return (k + n * 2) % 5; };
  for (int m = 0; m < M; m++)
    for (int k = 0; k < K; k++) a[__is_same(LA, Row) ? m * K + k : k * M + m] = S(float(left(m, k)));
  for (int n = 0; n < N; n++)
    for (int k = 0; k < K; k++) b[__is_same(LB, Row) ? k * N + n : n * K + k] = S(float(right(k, n)));
  for (int i = 0; i < M * N; i++) c[i] = Sum(float(i % 9));
  product<T, Sum, S, M, N, K, LA, LB><<<1, 32>>>(a, b, c, d);
  if (cudaDeviceSynchronize()) return false;
  int wrong = 0;
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      int sum = (m * N + n) % 9 + 1;
      for (int k = 0; k < K; k++) sum += left(m, k) * right(k, n);
      wrong += float(d[n * M + m]) != sum;
    }
  if (wrong) printf("%s %d %d %d: %d wrong\n", name, M, N, K, wrong);
  return wrong == 0;
}
int main() {
  bool ok = run<__half, float, __half, 16, 16, 16, Row, Column>("f16");
  ok &= run<__half, float, __half, 32, 8, 16, Column, Row>("f16");
  ok &= run<__half, __half, __half, 8, 32, 16, Row, Row>("f16, sums of f16");
  ok &= run<__nv_bfloat16, float, __nv_bfloat16, 16, 16, 16, Column, Column>("bf16");
  ok &= run<__nv_bfloat16, float, __nv_bfloat16, 32, 8, 16, Row, Column>("bf16");
  ok &= run<__nv_bfloat16, float, __nv_bfloat16, 8, 32, 16, Row, Row>("bf16");
  ok &= run<wmma::precision::tf32, float, float, 16, 16, 8, Row, Column>("tf32");
  ok &= run<double, double, double, 8, 8, 4, Row, Column>("f64");
  ok &= run<signed char, int, signed char, 16, 16, 16, Row, Column>("s8");
  ok &= run<unsigned char, int, unsigned char, 32, 8, 16, Column, Column>("u8");
  ok &= run<unsigned char, int, unsigned char, 8, 32, 16, Row, Row>("u8");
  return !ok;
}
"""

# Managed variables: read and written by both sides, before and after the first call of CUDA, by address, as an array,
# in a template, and of another file.
MANAGED_A = r"""
#include <cstdio>
__managed__ int count = 5;
__device__ __managed__ double table[4] = {1, 2, 3, 4};
struct Pair { int first, second; };
__managed__ Pair pair;
static __managed__ int own = 1;
extern __managed__ int elsewhere;
__device__ int plain = 3;
int* addressOfCount() { return &count; }
template <class T> __host__ __device__ T add(T x) { return x + T(own); }
__global__ void kernel(int* countPointer) {
  count += plain;
  *countPointer += 100;
  table[2] = table[1] + add(1.5);
  pair.second = pair.first + 1;
#ifdef LINKED
  elsewhere *= 2;
#endif
}
int main(int argc, char**) {
  if (count != 5 || table[3] != 4) return 1;  // nothing of CUDA has been called yet
  for (int i = 0; i < 2; ++i) count = argc == 1 ? count + 10 : 0;
  pair.first = 41;
  kernel<<<1, 1>>>(addressOfCount());
  if (cudaDeviceSynchronize() != cudaSuccess) return 2;
  if (count != 128 || table[2] != 4.5 || pair.second != 42 || add(1) != 2) return 3;
  int copy = 0;
  if (cudaMemcpyFromSymbol(&copy, count, sizeof copy) || copy != 128) return 4;
#ifdef LINKED
  if (elsewhere != 14) return 5;
#endif
  return *addressOfCount() == 128 ? 0 : 6;
}
"""
MANAGED_B = "__managed__ int elsewhere = 7;\n"

# Launches in device code of kernels that overload resolution chooses; the second file has one of them.
CHOSEN_H = r"""
#pragma once
__global__ void put(int *out, float value);
__global__ void put(int *out, int value, int times = 2);  // a default: the definition has none
namespace outer { namespace inner {
template <class T, int N = 3> __global__ void fill(T *out, T value);
} }
"""
CHOSEN_A = r"""
#include <cstdio>
#include "chosen.h"
__global__ void put(int *out, int value, int times) { *out = value * times; }
__global__ void put(int *out, double value);
namespace outer { namespace inner {
template <class T, int N> __global__ void fill(T *out, T value) { for (int i = 0; i < N; ++i) out[i] = value + i; }
template <class T> __global__ void sum(T *out, const T *in, int n);
} }
template <class T> __global__ void outer::inner::sum(T *out, const T *in, int n) {
  for (int i = 0; i < n; ++i) *out += in[i];
}
using outer::inner::fill;
template <class... Values>
static __global__ void __launch_bounds__(64) all(int *out, Values... values) {
  int number = 0;
  for (int value : {values...}) out[number++] = value;
}
template <class T> __global__ void each(T value) { *value += 100; }
template <> __global__ void each<unsigned *>(unsigned *value) { *value += 200; }
extern "C" __global__ void plain(int *out, int n) { *out = n; }
// Overloaded with itself inside.
static __global__ void count(int *out) { *out += 1000; }
__global__ void put(int *out, double value) { *out = int(value * 8); }
static __global__ void
count(int *out,
      unsigned depth) {
  atomicAdd(out, 1);
  if (depth > 0) count<<<2, 1>>>(out,  // each launches two
                                 depth - 1);
  else if (blockIdx.x == 0 && threadIdx.x == 0)
    count<<<1, 1>>>(out + 1);
}
template <class T> __device__ void dependent(T *out) { outer::inner::fill<T, 2><<<1, 1>>>(out, T(70)); }
__global__ void parent(int *out) {
  put<<<1, 1>>>(out, 5);
  put<<<1, 1>>>(out + 1, 2.5f);
  put<<<1, 1>>>(out + 2, 2.5);
  put<<<1, 1>>>(out + 3, 5, 7);
  fill<<<1, 1>>>(out + 4, 10);
  ::outer::inner::fill<int, 1><<<1, 1>>>(out + 7, 20);
  all<<<1, 1>>>(out + 8, 1, 2, 3);
  each<<<1, 1>>>(out + 11);
  each<<<1, 1>>>(reinterpret_cast<unsigned *>(out + 12));
  plain<<<1, 1>>>(out + 13, 44);
  count<<<1, 1>>>(out + 14, 2u);
  dependent(out + 16);
}
// Only the first lane has a value to give.
__global__ void handed(int *out) {
  int value;
  if ((threadIdx.x & (warpSize - 1)) == 0) value = out[0] + 3;
  out[32 + threadIdx.x] = __shfl_sync(~0u, value, 0);
}
int main() {
  int *out, host[64];
  cudaMalloc(&out, sizeof host);
  cudaMemset(out, 0, sizeof host);
  parent<<<1, 1>>>(out);
  handed<<<1, 32>>>(out);
  if (cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (int i = 0; i < 18; ++i) std::printf("%d ", host[i]);
  for (int i = 32; i < 64; ++i)
    if (host[i] != 13) return 2;
}
"""
CHOSEN_B = r"""
#include "chosen.h"
__global__ void put(int *out, float value) { *out = int(value * 4); }
"""
