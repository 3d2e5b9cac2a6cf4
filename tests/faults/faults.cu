// SPDX-License-Identifier: Apache-2.0
//
// One fault of a program a run: what the program is told, and what its user is.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

__global__ void writesOutOfBounds(int* p, unsigned long long by) { p[threadIdx.x + by] = 1; }

__global__ void reads(const int* from, int* to) { *to = from[1]; }

__global__ void dividesByZero(int* p, int d) {
  p[0] = 7 / d;
  p[1] = 7 % d;
}

// Each half waits for a barrier that the other never reaches.
__global__ void neverEndsABarrier(int* p) {
  if (threadIdx.x < 32)
    asm volatile("bar.sync 1, 64;");
  else
    asm volatile("bar.sync 2, 64;");
  p[threadIdx.x] = 1;
}

static void show(cudaError_t e) { std::printf("%s: %s\n", cudaGetErrorName(e), cudaGetErrorString(e)); }

static void load(const char* instruction) {
  char ptx[400], log[500] = "";
  std::snprintf(ptx, sizeof ptx,
                ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() {\n  .reg .b32 %%r<3>;\n"
                "  %s\n  ret;\n}\n",
                instruction);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)sizeof log};
  CUmodule module;
  const CUresult r = cuModuleLoadDataEx(&module, ptx, 2, options, values);
  const char* name = nullptr;
  cuGetErrorName(r, &name);
  std::printf("%s\n%s\n", name, log);
}

int main(int, char** argv) {
  const char* fault = argv[1];
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  int* p = nullptr;
  cudaMalloc(&p, 4096);
  cudaMemset(p, 0, 4096);
  if (!std::strcmp(fault, "syntax")) return load("add.s32 %r1, %r2 1;"), 0;
  if (!std::strcmp(fault, "unknown")) return load("ad.s32 %r1, %r2, 1;"), 0;
  if (!std::strcmp(fault, "allocation")) {
    int* big = p;
    const cudaError_t e = cudaMalloc(&big, 1ull << 50);
    show(e);
    show(cudaGetLastError());
    // Not sticky, and the output is as it was.
    show(big == p ? cudaMemset(p, 0, 4) : cudaErrorUnknown);
    return 0;
  }
  if (!std::strcmp(fault, "bounds")) writesOutOfBounds<<<1, 32>>>(p, 1ull << 36);
  if (!std::strcmp(fault, "beyond")) writesOutOfBounds<<<1, 1>>>(p, 1026);
  if (!std::strcmp(fault, "null")) reads<<<1, 1>>>(nullptr, p);
  if (!std::strcmp(fault, "shape")) {
    writesOutOfBounds<<<1, 2048>>>(p, 0);
    show(cudaGetLastError());
  }
  if (!std::strcmp(fault, "zero")) dividesByZero<<<1, 1>>>(p, 0);
  if (!std::strcmp(fault, "barrier")) neverEndsABarrier<<<1, 64>>>(p);
  show(cudaDeviceSynchronize());
  int result[2] = {};
  show(cudaMemcpy(result, p, sizeof result, cudaMemcpyDeviceToHost));
  std::printf("%x %x\n", result[0], result[1]);
  return 0;
}
