// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "gpu.h"

namespace {

using CopyTest = Gpu;

TEST_F(CopyTest, ThereAndBack) {
  std::vector<int> in(1000), out(1000, 0);
  std::iota(in.begin(), in.end(), 5);
  CUdeviceptr a, b;
  OK(cuMemAlloc(&a, 4000));
  OK(cuMemAlloc(&b, 4000));
  OK(cuMemcpyHtoD(a, in.data(), 4000));
  OK(cuMemcpyDtoD(b, a, 4000));
  OK(cuMemcpyDtoH(out.data(), b, 4000));
  EXPECT_EQ(in, out);
  out.assign(1000, 0);
  OK(cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), b + 400, 40));
  EXPECT_EQ(out[0], 105);
  EXPECT_EQ(out[9], 114);
  EXPECT_EQ(out[10], 0);
}

TEST_F(CopyTest, OutsideAllocationsIsRefused) {
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 4000));
  std::vector<char> host(8000);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, host.data(), 4001));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(host.data(), a + 3999, 2));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0, host.data(), 4));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host.data()), host.data() + 10, 4));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(nullptr, a, 4));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(a, 1, 4001));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(a + 1, 1, 1));
  OK(cuMemcpyHtoD(a, host.data(), 0));
  OK(cuMemFree(a));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(a, host.data(), 4));
}

TEST_F(CopyTest, Sets) {
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 64));
  OK(cuMemsetD8(a, 0xff, 64));
  OK(cuMemsetD16(a + 2, 0x1234, 2));
  OK(cuMemsetD32(a + 8, 0xdeadbeef, 1));
  OK(cuMemsetD2D8(a + 16, 8, 0x55, 2, 3));
  unsigned char out[64];
  OK(cuMemcpyDtoH(out, a, 64));
  const unsigned char want[40] = {0xff, 0xff, 0x34, 0x12, 0x34, 0x12, 0xff, 0xff, 0xef, 0xbe, 0xad, 0xde, 0xff, 0xff,
                                  0xff, 0xff, 0x55, 0x55, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x55, 0x55, 0xff, 0xff,
                                  0xff, 0xff, 0xff, 0xff, 0x55, 0x55, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  for (int i = 0; i < 40; i++) EXPECT_EQ(out[i], want[i]) << i;
}

TEST_F(CopyTest, BoxInsideABox) {
  // A 2 x 2 x 2 piece at (1, 1, 1) of a 4 x 3 x 3 host box, to (0, 1, 0) of a
  // device box with rows of 8 bytes and 4 rows a slice.
  unsigned char host[36], back[64];
  for (int i = 0; i < 36; i++) host[i] = static_cast<unsigned char>(i);
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 64));
  OK(cuMemsetD8(a, 0xee, 64));
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = host;
  c.srcXInBytes = c.srcY = c.srcZ = 1;
  c.srcPitch = 4;
  c.srcHeight = 3;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = a;
  c.dstY = 1;
  c.dstPitch = 8;
  c.dstHeight = 4;
  c.WidthInBytes = c.Height = c.Depth = 2;
  OK(cuMemcpy3D(&c));
  OK(cuMemcpyDtoH(back, a, 64));
  for (int i = 0; i < 64; i++) {
    int want = 0xee;
    if (i == 8) want = 17;  // 1 + 4*1 + 12*1
    if (i == 9) want = 18;
    if (i == 16) want = 21;
    if (i == 17) want = 22;
    if (i == 40) want = 29;  // next slice: + 12
    if (i == 41) want = 30;
    if (i == 48) want = 33;
    if (i == 49) want = 34;
    EXPECT_EQ(back[i], want) << i;
  }
  c.srcPitch = 2;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&c));
}

TEST_F(CopyTest, PlaneWithPitch) {
  CUdeviceptr a;
  size_t pitch;
  OK(cuMemAllocPitch(&a, &pitch, 10, 3, 4));
  unsigned char in[30], out[30] = {};
  for (int i = 0; i < 30; i++) in[i] = static_cast<unsigned char>(i + 1);
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = in;
  c.srcPitch = 10;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = a;
  c.dstPitch = pitch;
  c.WidthInBytes = 10;
  c.Height = 3;
  OK(cuMemcpy2D(&c));
  unsigned char one;
  OK(cuMemcpyDtoH(&one, a + 2 * pitch + 3, 1));
  EXPECT_EQ(one, 24);
  std::swap(c.srcMemoryType, c.dstMemoryType);
  c.srcDevice = a;
  c.srcPitch = pitch;
  c.dstHost = out;
  c.dstPitch = 10;
  OK(cuMemcpy2D(&c));
  for (int i = 0; i < 30; i++) EXPECT_EQ(out[i], in[i]);
}

TEST_F(CopyTest, PageableSourceMayChangeAfterTheCall) {
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a;
  OK(cuMemAlloc(&a, 4096));
  Gate gate;
  OK(gate.hold(s));
  std::vector<int> in(1024, 7), out(1024);
  OK(cuMemcpyHtoDAsync(a, in.data(), 4096, s));
  in.assign(1024, 9);
  gate.open();
  OK(cuMemcpyDtoHAsync(out.data(), a, 4096, s));
  // To pageable memory the call returns when the bytes are there.
  EXPECT_EQ(out[0], 7);
  EXPECT_EQ(out[1023], 7);
  OK(cuStreamDestroy(s));
}

}  // namespace
