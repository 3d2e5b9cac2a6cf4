// SPDX-License-Identifier: Apache-2.0
// A picture in squares of one colour: a kernel that launches itself for the four
// quarters of each square that has more than one (dynamic parallelism).
// Compile with -rdc=true. Usage: quadtree [--levels N]
#include <vector>

#include "example.h"

constexpr int kThreads = 64, kMaxLevels = 10;

// Counts the leaves of each level. Each block looks at one of the four quarters at (x, y).
__global__ void split(const unsigned char* picture, int pitch, int x, int y, int size, int level, unsigned* leaves) {
  x += (blockIdx.x & 1) * size;
  y += (blockIdx.x >> 1) * size;
  const unsigned char colour = picture[y * pitch + x];
  bool differs = false;
  for (int i = threadIdx.x; i < size * size; i += kThreads)
    differs |= picture[(y + i / size) * pitch + x + i % size] != colour;
  if (!__syncthreads_or(differs)) {
    if (threadIdx.x == 0) atomicAdd(&leaves[level], 1u);
  } else if (threadIdx.x == 0) {
    split<<<4, kThreads>>>(picture, pitch, x, y, size / 2, level + 1, leaves);
  }
}

// Launched behind all the others: adds the levels up.
__global__ void sum(unsigned* leaves) {
  unsigned all = 0;
  for (int i = 0; i < kMaxLevels; ++i) all += leaves[i];
  leaves[kMaxLevels] = all;
}

__global__ void start(const unsigned char* picture, int size, unsigned* leaves) {
  split<<<1, kThreads>>>(picture, size, 0, 0, size, 0, leaves);
  sum<<<1, 1, 0, cudaStreamTailLaunch>>>(leaves);
}

static void splitOnHost(const unsigned char* picture, int pitch, int x, int y, int size, int level,
                        std::vector<unsigned>& leaves) {
  bool differs = false;
  for (int i = 0; i < size * size; ++i)
    differs |= picture[(y + i / size) * pitch + x + i % size] != picture[y * pitch + x];
  if (!differs) {
    ++leaves[level];
    ++leaves[kMaxLevels];
    return;
  }
  for (int quarter = 0; quarter < 4; ++quarter)
    splitOnHost(picture, pitch, x + (quarter & 1) * size / 2, y + (quarter >> 1) * size / 2, size / 2, level + 1,
                leaves);
}

int main(int argc, char** argv) {
  checkArguments(argc, argv, "A picture in squares of one colour, by kernels that launch themselves", "[--levels N]");
  const int levels = option(argc, argv, "--levels", 6);
  if (levels >= kMaxLevels) {
    std::fprintf(stderr, "--levels wants less than %d\n", kMaxLevels);
    return 2;
  }
  const int size = 1 << levels;
  std::vector<unsigned char> picture(size * size);
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {  // a disc off the middle
      const int dx = 3 * x - size, dy = 2 * y - size;
      picture[y * size + x] = dx * dx + dy * dy < size * size / 2;
    }
  std::vector<unsigned> expected(kMaxLevels + 1), leaves(kMaxLevels + 1);
  splitOnHost(picture.data(), size, 0, 0, size, 0, expected);

  unsigned char* devicePicture;
  unsigned* deviceLeaves;
  CHECK(cudaMalloc(&devicePicture, picture.size()));
  CHECK(cudaMalloc(&deviceLeaves, leaves.size() * sizeof(unsigned)));
  CHECK(cudaMemcpy(devicePicture, picture.data(), picture.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(deviceLeaves, 0, leaves.size() * sizeof(unsigned)));
  start<<<1, 1>>>(devicePicture, size, deviceLeaves);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(leaves.data(), deviceLeaves, leaves.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(devicePicture));
  CHECK(cudaFree(deviceLeaves));

  std::printf("%d x %d pixels: %u squares of one colour\n", size, size, leaves[kMaxLevels]);
  return verdict("quadtree", leaves == expected);
}
