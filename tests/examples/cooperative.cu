// SPDX-License-Identifier: Apache-2.0
// Cooperative groups: tiles, coalesced lanes, reductions, scans, the grid.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "check.h"

namespace cg = cooperative_groups;
constexpr int kThreads = 128;

__global__ void groups(const int* in, int* out) {
  __shared__ int staged[kThreads];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, staged, in, sizeof(int) * kThreads);
  cg::wait(block);
  auto warp = cg::tiled_partition<32>(block);
  auto eight = cg::tiled_partition<8>(warp);
  int value = staged[block.thread_rank()];
  int sums = cg::reduce(eight, value, cg::plus<int>());
  int prefix = cg::inclusive_scan(warp, value);
  int third = 0;
  if (block.thread_rank() % 3 == 0) {
    cg::coalesced_group together = cg::coalesced_threads();
    third = cg::reduce(together, value, cg::plus<int>()) * 100 + together.thread_rank();
  }
  cg::thread_group sixteen = cg::tiled_partition(block, 16);
  sixteen.sync();
  int i = block.thread_rank();
  out[i] = sums;
  out[kThreads + i] = prefix;
  out[2 * kThreads + i] = third;
  out[3 * kThreads + i] = sixteen.thread_rank();
  out[4 * kThreads + i] = eight.meta_group_rank() + 10 * eight.shfl(value, 3) + 10000 * eight.any(value == 5);
}

// Each round one thread writes and every thread of the grid must see it.
__global__ void rounds(int* state, int count) {
  cg::grid_group grid = cg::this_grid();
  for (int i = 0; i < count; ++i) {
    if (grid.thread_rank() == 0) state[0] += 1;
    grid.sync();
    if (state[0] != i + 1) atomicAdd(&state[1], 1);
    grid.sync();
  }
}

int main() {
  int host[5 * kThreads], in[kThreads], *deviceIn, *deviceOut;
  for (int i = 0; i < kThreads; ++i) in[i] = i;
  CHECK(cudaMalloc(&deviceIn, sizeof in));
  CHECK(cudaMalloc(&deviceOut, sizeof host));
  CHECK(cudaMemcpy(deviceIn, in, sizeof in, cudaMemcpyHostToDevice));
  groups<<<1, kThreads>>>(deviceIn, deviceOut);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, deviceOut, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kThreads; ++i) {
    int first8 = i / 8 * 8, first32 = i / 32 * 32;
    expectEqual("reduce over 8", host[i], 8 * first8 + 28);
    int prefix = 0, third = 0, rank = 0;
    for (int j = first32; j < first32 + 32; ++j) {
      if (j <= i) prefix += j;
      if (j % 3 == 0) third += j;
      if (j % 3 == 0 && j < i) ++rank;
    }
    expectEqual("inclusive scan", host[kThreads + i], prefix);
    expectEqual("coalesced", host[2 * kThreads + i], i % 3 == 0 ? third * 100 + rank : 0);
    expectEqual("rank in 16", host[3 * kThreads + i], i % 16);
    expectEqual("tile of 8", host[4 * kThreads + i], i % 32 / 8 + 10 * (first8 + 3) + (first8 == 0 ? 10000 : 0));
  }

  CHECK(cudaMemset(deviceOut, 0, 2 * sizeof(int)));
  int count = 10;
  void* arguments[] = {&deviceOut, &count};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(rounds), dim3(6), dim3(64), arguments, 0, 0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, deviceOut, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  expectEqual("rounds", host[0], 10);
  expectEqual("threads that saw an old value", host[1], 0);
  CHECK(cudaFree(deviceIn));
  CHECK(cudaFree(deviceOut));
  return verdict("cooperative", failures == 0);
}
