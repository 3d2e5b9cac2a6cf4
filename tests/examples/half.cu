// SPDX-License-Identifier: Apache-2.0
// Half and bfloat16 on the device and on the host give the same bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "check.h"

template <typename T>
__host__ __device__ inline void compute(T a, T b, T c, T* out) {
  out[0] = a + b;
  out[1] = a - b;
  out[2] = a * b;
#ifdef __CUDA_ARCH__
  out[3] = __hfma(a, b, c);
#else
  out[3] = T((double)(float)a * (double)(float)b + (double)(float)c);  // rounded once
#endif
  out[4] = a / b;
  out[5] = __hmax(a, b);
}

template <typename T>
__global__ void onDevice(const T* in, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) compute(in[3 * i], in[3 * i + 1], in[3 * i + 2], out + 6 * i);
}

template <typename T>
void compare(const char* name, const std::vector<T>& in) {
  const int n = static_cast<int>(in.size() / 3);
  std::vector<T> out(6 * n);
  T *deviceIn, *deviceOut;
  CHECK(cudaMalloc(&deviceIn, in.size() * sizeof(T)));
  CHECK(cudaMalloc(&deviceOut, out.size() * sizeof(T)));
  CHECK(cudaMemcpy(deviceIn, in.data(), in.size() * sizeof(T), cudaMemcpyHostToDevice));
  onDevice<T><<<(n + 127) / 128, 128>>>(deviceIn, deviceOut, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), deviceOut, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    T expected[6];
    compute(in[3 * i], in[3 * i + 1], in[3 * i + 2], expected);
    for (int k = 0; k < 6; ++k) {
      unsigned short got, wanted;
      std::memcpy(&got, &out[6 * i + k], 2);
      std::memcpy(&wanted, &expected[k], 2);
      bool bothNan = (float)out[6 * i + k] != (float)out[6 * i + k] && (float)expected[k] != (float)expected[k];
      if (!bothNan) expectEqual(name, got, wanted);
    }
  }
  CHECK(cudaFree(deviceIn));
  CHECK(cudaFree(deviceOut));
}

int main() {
  expectEqual("1.5 in half", __half_as_ushort(__half(1.5f)), 0x3e00);
  expectEqual("largest", __half_as_ushort(__half(65504.0f)), 0x7bff);
  expectEqual("too large", __half_as_ushort(__half(65520.0f)), 0x7c00);
  expectEqual("smallest", __half_as_ushort(__half(5.9604645e-8f)), 1);
  expectEqual("tie to even", __half_as_ushort(__half(1.00048828125f)), 0x3c00);
  expectEqual("round up", __half_as_ushort(__float2half_ru(1.0001f)), 0x3c01);
  expectEqual("1.5 in bfloat16", __bfloat16_as_ushort(__nv_bfloat16(1.5f)), 0x3fc0);
  expectEqual("bfloat16 tie", __bfloat16_as_ushort(__nv_bfloat16(1.00390625f)), 0x3f80);
  Random random(31);
  std::vector<__half> halves;
  std::vector<__nv_bfloat16> bfloats;
  for (int i = 0; i < 3 * 3000; ++i) {
    halves.push_back(__ushort_as_half(static_cast<unsigned short>(random.next() & 0xffff)));
    bfloats.push_back(__nv_bfloat16((random.unit() - 0.5f) * 100.0f));
  }
  compare("half", halves);
  compare("bfloat16", bfloats);
  return verdict("half", failures == 0);
}
