// SPDX-License-Identifier: Apache-2.0
//
// Mapped memory, arrays, and streams that wait for values.
#include <cstring>

#include "gpu.h"
#include "ptx.h"

namespace {

class VirtualTest : public Gpu {
 protected:
  CUmemAllocationProp props() {
    CUmemAllocationProp p{};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    return p;
  }
  CUmemAccessDesc access(CUmemAccess_flags flags) {
    CUmemAccessDesc d{};
    d.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    d.flags = flags;
    return d;
  }
};

TEST_F(VirtualTest, OneMemoryAtTwoAddresses) {
  const CUmemAllocationProp p = props();
  size_t granularity;
  OK(cuMemGetAllocationGranularity(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ASSERT_EQ(granularity, size_t{2} << 20);
  CUdeviceptr range;
  OK(cuMemAddressReserve(&range, 4 * granularity, 0, 0, 0));
  CUmemGenericAllocationHandle memory;
  size_t before, after, total;
  OK(cuMemGetInfo(&before, &total));
  OK(cuMemCreate(&memory, granularity, &p, 0));
  OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, granularity);
  OK(cuMemMap(range, granularity, 0, memory, 0));
  OK(cuMemMap(range + 2 * granularity, granularity, 0, memory, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(range, granularity, 0, memory, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemMap(range + 4 * granularity, granularity, 0, memory, 0));
  unsigned value = 5;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(range, &value, 4));  // no access yet
  const CUmemAccessDesc d = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemSetAccess(range, granularity, &d, 1));
  OK(cuMemSetAccess(range + 2 * granularity, granularity, &d, 1));
  OK(cuMemcpyHtoD(range + 100, &value, 4));
  value = 0;
  OK(cuMemcpyDtoH(&value, range + 2 * granularity + 100, 4));
  EXPECT_EQ(value, 5u);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(range));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree(range, 4 * granularity));
  OK(cuMemRelease(memory));
  OK(cuMemcpyDtoH(&value, range + 100, 4));  // mapped memory stays
  OK(cuMemUnmap(range, granularity));
  OK(cuMemUnmap(range + 2 * granularity, granularity));
  OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  OK(cuMemAddressFree(range, 4 * granularity));
}

TEST_F(VirtualTest, KernelsReachMappedMemoryOnly) {
  const CUmemAllocationProp p = props();
  constexpr size_t size = 2 << 20;
  CUdeviceptr range;
  CUmemGenericAllocationHandle memory;
  OK(cuMemAddressReserve(&range, 2 * size, 0, 0, 0));
  OK(cuMemCreate(&memory, size, &p, 0));
  OK(cuMemMap(range, size, 0, memory, 0));
  const CUmemAccessDesc d = access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  OK(cuMemSetAccess(range, size, &d, 1));
  CUmodule m;
  CUfunction f;
  OK(cuModuleLoadData(&m, kSmall));
  OK(cuModuleGetFunction(&f, m, "store"));
  CUdeviceptr target = range + size - 4;
  unsigned value = 77;
  void* params[] = {&target, &value};
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  OK(cuCtxSynchronize());
  value = 0;
  OK(cuMemcpyDtoH(&value, target, 4));
  EXPECT_EQ(value, 77u);
  target = range + size;
  OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  FAILS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  OK(cuCtxDestroy(context_));
  context_ = nullptr;
}

TEST_F(VirtualTest, StreamWaitsForAValue) {
  CUstream a, b;
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  CUdeviceptr flag;
  OK(cuMemAlloc(&flag, 8));
  OK(cuMemsetD32(flag, 0, 2));
  OK(cuCtxSynchronize());
  std::atomic<int> n{0};
  OK(cuStreamWaitValue32(a, flag, 3, CU_STREAM_WAIT_VALUE_GEQ));
  OK(cuLaunchHostFunc(a, [](void* p) { static_cast<std::atomic<int>*>(p)->store(1); }, &n));
  OK(cuStreamWriteValue32(b, flag, 2, 0));
  OK(cuStreamSynchronize(b));
  EXPECT_EQ(n, 0);
  OK(cuStreamWriteValue32(b, flag, 3, 0));
  OK(cuStreamSynchronize(a));
  EXPECT_EQ(n, 1);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32(b, flag + 2, 3, 0));
}

TEST_F(VirtualTest, ArraysKeepRowsAndSlices) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 5;
  d.Height = 3;
  d.Depth = 2;
  d.Format = CU_AD_FORMAT_UNSIGNED_INT16;
  d.NumChannels = 1;
  CUarray array;
  OK(cuArray3DCreate(&array, &d));
  unsigned short in[30], out[30] = {};
  for (int i = 0; i < 30; i++) in[i] = static_cast<unsigned short>(i * 3);
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = in;
  c.srcPitch = 10;
  c.srcHeight = 3;
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  c.dstArray = array;
  c.WidthInBytes = 10;
  c.Height = 3;
  c.Depth = 2;
  OK(cuMemcpy3D(&c));
  CUDA_MEMCPY3D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.srcXInBytes = 4;
  back.srcY = 1;
  back.srcZ = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = out;
  back.dstPitch = 4;
  back.WidthInBytes = 4;
  back.Height = 2;
  back.Depth = 1;
  OK(cuMemcpy3D(&back));
  EXPECT_EQ(out[0], (15 + 5 + 2) * 3);
  EXPECT_EQ(out[1], (15 + 5 + 3) * 3);
  EXPECT_EQ(out[2], (15 + 10 + 2) * 3);
  back.srcXInBytes = 8;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&back));
  CUDA_ARRAY3D_DESCRIPTOR asked{};
  OK(cuArray3DGetDescriptor(&asked, array));
  EXPECT_EQ(asked.Width, 5u);
  EXPECT_EQ(asked.Depth, 2u);
  OK(cuArrayDestroy(array));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(array));
}

}  // namespace
