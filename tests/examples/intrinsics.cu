// SPDX-License-Identifier: Apache-2.0
// Integer and rounding intrinsics, atomics, votes, and the C functions of
// device code, against values worked out by hand.
#include <cstdint>
#include <new>

#include "check.h"

__constant__ float scale = 3.0f;
__device__ int counter = 5;

__global__ void integers(long long* out) {
  int i = 0;
  out[i++] = __clz(1);                                        // 31
  out[i++] = __clz(0);                                        // 32
  out[i++] = __clzll(1ll << 40);                              // 23
  out[i++] = __popc(0xf0f0u);                                 // 8
  out[i++] = __popcll(~0ull);                                 // 64
  out[i++] = __ffs(0x80);                                     // 8
  out[i++] = __ffs(0);                                        // 0
  out[i++] = __brev(1u) == 0x80000000u;                       // 1
  out[i++] = __byte_perm(0x33221100u, 0x77665544u, 0x7531u);  // 0x77553311
  out[i++] = __mulhi(0x40000000, 8);                          // 2
  out[i++] = __umul64hi(~0ull, 2);                            // 1
  out[i++] = __funnelshift_l(0x80000000u, 1u, 1);             // 3
  out[i++] = __sad(3, -4, 10);                                // 17
  out[i++] = __hadd(-3, 0);                                   // -2 (rounds down)
  out[i++] = __dp4a(0x01020304, 0x01010101, 5);               // 15
  out[i++] = __vadd4(0x01ff01ffu, 0x01010101u);               // 0x02000200
  out[i++] = __vaddus4(0x01ff01ffu, 0x01010101u);             // 0x02ff02ff
  out[i++] = __fns(0xb0u, 0, 2);                              // 5: the second set bit of 1011 0000
}

__global__ void roundings(double* out) {
  int i = 0;
  out[i++] = __fadd_ru(1.0f, 1e-10f);       // 1 + 2^-23
  out[i++] = __fadd_rd(1.0f, 1e-10f);       // 1
  out[i++] = __fmul_rz(1.0f / 3.0f, 3.0f);  // 1 (1/3 is rounded up) or the float below
  out[i++] = __ddiv_rd(1.0, 3.0) < __ddiv_ru(1.0, 3.0);
  out[i++] = __float2int_rn(2.5f);          // 2
  out[i++] = __float2int_ru(2.1f);          // 3
  out[i++] = __float2int_rz(-2.9f);         // -2
  out[i++] = __float2uint_rz(-5.0f);        // 0, saturated
  out[i++] = __double2float_rz(1.0 + 1e-9); // 1
  out[i++] = __int2float_rz(16777217);      // 16777216
  out[i++] = __saturatef(3.0f);             // 1
  out[i++] = __uint_as_float(0x40490fdbu);  // pi
  out[i++] = __hiloint2double(0x40000000, 0);  // 2
  out[i++] = __fdividef(6.0f, 4.0f);        // 1.5
  out[i++] = __frsqrt_rn(4.0f);             // 0.5
}

__global__ void atomics(int* data, unsigned long long* wide, float* real, double* twice) {
  atomicAdd(&data[0], 1);
  atomicSub(&data[1], 2);
  atomicMax(&data[2], (int)threadIdx.x);
  atomicMin(&data[3], -(int)threadIdx.x);
  atomicInc((unsigned*)&data[4], 6u);
  atomicOr(&data[5], 1 << (threadIdx.x % 8));
  if (threadIdx.x == 7) atomicExch(&data[6], 77);
  atomicCAS(&data[7], 0, (int)threadIdx.x + 1);
  atomicAdd(wide, 1ull << 33);
  atomicAdd(real, 0.5f);
  atomicAdd(twice, 0.25);
}

__global__ void votes(unsigned* out) {
  unsigned lane = threadIdx.x;
  unsigned ballot = __ballot_sync(~0u, lane % 4 == 1);
  int all = __all_sync(~0u, lane < 32), any = __any_sync(~0u, lane == 40);
  unsigned match = __match_any_sync(~0u, lane / 8);
  int counted = __syncthreads_count(lane < 5);
  if (lane == 9) {
    out[0] = ballot;
    out[1] = all + 2 * any;
    out[2] = match;
    out[3] = counted;
    out[4] = (unsigned)__shfl_xor_sync(0x200u, 5, 0);
  }
  double moved = __shfl_down_sync(~0u, lane * 1.5, 2);
  if (lane == 10) out[5] = (unsigned)moved;  // lane 12: 18
}

struct Point {
  int x, y;
  __device__ Point(int a, int b) : x(a), y(b) {}
};

__global__ void language(float* out) {
  out[0] = scale * 2.0f;
  out[1] = (float)atomicAdd(&counter, 10);
  Point* point = new Point(3, 4);
  out[2] = (float)(point->x * 10 + point->y);
  delete point;
  char text[16];
  memcpy(text, "sonde", 6);
  out[3] = (float)(text[0] == 's' ? 5 : 0);
  auto square = [](float x) { return x * x; };
  out[4] = square(1.5f);
  out[5] = std::sqrt(16.0f) + std::abs(-2.0f) + fmaxf(1.0f, 2.0f) + max(1, 5);
  int* memory = (int*)malloc(4 * sizeof(int));
  memset(memory, 0, 16);
  memory[2] = 9;
  int copy[4];
  memcpy(copy, memory, 16);
  free(memory);
  out[6] = (float)copy[2];
  printf("from the device: %d %s %.2f\n", copy[2], "text", 1.5);
}

int main() {
  long long* integersOut;
  CHECK(cudaMalloc(&integersOut, 32 * sizeof(long long)));
  integers<<<1, 1>>>(integersOut);
  long long i64[18];
  CHECK(cudaMemcpy(i64, integersOut, sizeof i64, cudaMemcpyDeviceToHost));
  const long long wantedIntegers[18] = {31, 32, 23, 8,  64, 8,  0,          1,          0x77553311,
                                        2,  1,  3,  17, -2, 15, 0x02000200, 0x02ff02ff, 5};
  for (int i = 0; i < 18; ++i) expectEqual("integer", i64[i], wantedIntegers[i]);

  double* realsOut;
  CHECK(cudaMalloc(&realsOut, 32 * sizeof(double)));
  roundings<<<1, 1>>>(realsOut);
  double f64[15];
  CHECK(cudaMemcpy(f64, realsOut, sizeof f64, cudaMemcpyDeviceToHost));
  const double wantedReals[15] = {1.0 + std::ldexp(1.0, -23), 1, 1, 1, 2, 3, -2, 0, 1, 16777216, 1,
                                  3.1415927410125732421875, 2, 1.5, 0.5};
  for (int i = 0; i < 15; ++i) expectEqual("rounding", f64[i], wantedReals[i]);

  struct {
    int data[8];
    unsigned long long wide;
    double twice;
    float real;
  } state = {}, *deviceState;
  CHECK(cudaMalloc(&deviceState, sizeof state));
  CHECK(cudaMemcpy(deviceState, &state, sizeof state, cudaMemcpyHostToDevice));
  atomics<<<1, 64>>>(deviceState->data, &deviceState->wide, &deviceState->real, &deviceState->twice);
  CHECK(cudaMemcpy(&state, deviceState, sizeof state, cudaMemcpyDeviceToHost));
  expectEqual("atomicAdd", state.data[0], 64);
  expectEqual("atomicSub", state.data[1], -128);
  expectEqual("atomicMax", state.data[2], 63);
  expectEqual("atomicMin", state.data[3], -63);
  expectEqual("atomicInc", state.data[4], 64 % 7);
  expectEqual("atomicOr", state.data[5], 255);
  expectEqual("atomicExch", state.data[6], 77);
  expectEqual("atomicCAS", state.data[7] >= 1 && state.data[7] <= 64, true);
  expectEqual("atomicAdd 64", state.wide, 64ull << 33);
  expectEqual("atomicAdd float", state.real, 32.0f);
  expectEqual("atomicAdd double", state.twice, 16.0);

  unsigned* votesOut;
  CHECK(cudaMalloc(&votesOut, 8 * sizeof(unsigned)));
  votes<<<1, 32>>>(votesOut);
  unsigned u32[6];
  CHECK(cudaMemcpy(u32, votesOut, sizeof u32, cudaMemcpyDeviceToHost));
  const unsigned wantedVotes[6] = {0x22222222u, 1, 0x0000ff00u, 5, 5, 18};
  for (int i = 0; i < 6; ++i) expectEqual("vote", u32[i], wantedVotes[i]);

  float* languageOut;
  CHECK(cudaMalloc(&languageOut, 8 * sizeof(float)));
  language<<<1, 1>>>(languageOut);
  float f32[7];
  CHECK(cudaMemcpy(f32, languageOut, sizeof f32, cudaMemcpyDeviceToHost));
  const float wantedLanguage[7] = {6, 5, 34, 5, 2.25f, 13, 9};
  for (int i = 0; i < 7; ++i) expectEqual("language", f32[i], wantedLanguage[i]);
  int value = 0;
  CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  expectEqual("counter", value, 15);
  return verdict("intrinsics", failures == 0);
}
