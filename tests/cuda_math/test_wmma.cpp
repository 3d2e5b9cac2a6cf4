// SPDX-License-Identifier: Apache-2.0
//
// wmma.cu, compiled by the CUDA compiler of the machine, where there is one.
#include <algorithm>
#include <cmath>

#include "../exec/device_fixture.h"
#include "nvcc.h"

namespace sonde::softgpu::exec {
namespace {

uint16_t half(int v) {  // integers up to 2048
  if (v == 0) return 0;
  const unsigned sign = v < 0 ? 0x8000 : 0, m = static_cast<unsigned>(std::abs(v));
  const int e = 31 - __builtin_clz(m);
  return static_cast<uint16_t>(sign | static_cast<unsigned>(e + 15) << 10 | ((m << 10 >> e) & 0x3ff));
}

TEST(CudaMatrix, ProductAndPackedHalves) {
  const std::string ptx = test::compileCuda(SONDE_WMMA_CU);
  if (ptx.empty()) GTEST_SKIP() << "no CUDA compiler on this machine";
  Kernels kernels(ptx);
  ASSERT_TRUE(kernels.program);
  constexpr int n = 64;
  DeviceArray<uint16_t> a(n * n), b(n * n);
  DeviceArray<float> c(n * n);
  auto va = [](int i) { return i * 7 % 9 - 4; };
  auto vb = [](int i) { return i * 5 % 11 - 5; };
  for (int i = 0; i < n * n; ++i) {
    a[i] = half(va(i));
    b[i] = half(vb(i));
  }
  LaunchOutcome out = kernels.run("product", {n / 16, n / 16}, {32}, a.address, b.address, c.address, n);
  ASSERT_EQ(out.error, 0) << out.message;
  for (int r = 0; r < n; ++r)
    for (int col = 0; col < n; ++col) {
      int sum = 0;
      for (int k = 0; k < n; ++k) sum += va(r * n + k) * vb(k * n + col);
      ASSERT_EQ(c[r * n + col], static_cast<float>(2 * sum)) << r << "," << col;
    }

  constexpr int pairs = n * n / 2;
  DeviceArray<uint16_t> sums(n * n), products(n * n);
  out = kernels.run("halves", {pairs / 128}, {128}, a.address, b.address, sums.address, products.address, pairs);
  ASSERT_EQ(out.error, 0) << out.message;
  for (int i = 0; i < n * n; ++i) {
    ASSERT_EQ(sums[i] & 0x7fff ? sums[i] : 0, half(va(i) * vb(i) + std::max(va(i), vb(i)))) << i;
    const float p = static_cast<float>(va(i) * vb(i));
    uint32_t bits;
    std::memcpy(&bits, &p, 4);
    ASSERT_EQ(products[i] & 0x7fff ? products[i] : 0, bits >> 16) << i;
  }
}

}  // namespace
}  // namespace sonde::softgpu::exec
