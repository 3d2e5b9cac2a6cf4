// SPDX-License-Identifier: Apache-2.0
// The mathematical functions in kernels, against the host's C library.
#include <vector>

#include "check.h"

constexpr int kFunctions = 24;

template <typename T>
__host__ __device__ inline void evaluate(T x, T y, T* out) {
  int i = 0;
  out[i++] = sin(x);
  out[i++] = cos(x);
  out[i++] = tan(x);
  out[i++] = exp(x);
  out[i++] = exp2(x);
  out[i++] = expm1(x);
  out[i++] = log(y);
  out[i++] = log2(y);
  out[i++] = log10(y);
  out[i++] = log1p(y);
  out[i++] = pow(y, x);
  out[i++] = sqrt(y);
  out[i++] = cbrt(x);
  out[i++] = atan(x);
  out[i++] = atan2(x, y);
  out[i++] = sinh(x);
  out[i++] = tanh(x);
  out[i++] = asinh(x);
  out[i++] = erf(x);
  out[i++] = erfc(x);
  out[i++] = tgamma(y);
  out[i++] = hypot(x, y);
  out[i++] = fmod(x, y);
  out[i++] = floor(x) + ceil(y) + round(x) + trunc(y);
}

template <typename T>
__global__ void onDevice(const T* x, const T* y, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) evaluate(x[i], y[i], out + kFunctions * i);
}

template <typename T>
void compare(const char* name, double bound) {
  const int n = 500;
  std::vector<T> x(n), y(n), out(kFunctions * n), expected(kFunctions);
  Random random(37);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<T>(8.0f * (random.unit() - 0.5f));
    y[i] = static_cast<T>(0.01f + 6.0f * random.unit());
  }
  T *deviceX, *deviceY, *deviceOut;
  CHECK(cudaMalloc(&deviceX, n * sizeof(T)));
  CHECK(cudaMalloc(&deviceY, n * sizeof(T)));
  CHECK(cudaMalloc(&deviceOut, out.size() * sizeof(T)));
  CHECK(cudaMemcpy(deviceX, x.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(deviceY, y.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  onDevice<T><<<(n + 63) / 64, 64>>>(deviceX, deviceY, deviceOut, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), deviceOut, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    evaluate(x[i], y[i], expected.data());
    for (int k = 0; k < kFunctions; ++k) {
      double error = std::fabs((double)out[kFunctions * i + k] - (double)expected[k]);
      double scale = std::fmax(std::fabs((double)expected[k]), 1e-30);
      if (error / scale <= bound) continue;
      ++failures;
      std::printf("%s, function %d at %.17g, %.17g: got %.17g, wanted %.17g\n", name, k, (double)x[i], (double)y[i],
                  (double)out[kFunctions * i + k], (double)expected[k]);
    }
  }
  CHECK(cudaFree(deviceX));
  CHECK(cudaFree(deviceY));
  CHECK(cudaFree(deviceOut));
}

int main() {
  compare<float>("float", 12 * std::ldexp(1.0, -24));
  compare<double>("double", 12 * std::ldexp(1.0, -53));
  return verdict("math_functions", failures == 0);
}
