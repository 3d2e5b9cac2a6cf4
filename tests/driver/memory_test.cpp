// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "gpu.h"

namespace {

using MemoryTest = Gpu;

TEST_F(MemoryTest, FreeMemoryGoesDownAndUp) {
  size_t before, after, total;
  OK(cuMemGetInfo(&before, &total));
  EXPECT_EQ(total, size_t{8} << 30);
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 100 << 20));
  OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, size_t{100} << 20);
  OK(cuMemFree(p));
  OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
}

TEST_F(MemoryTest, MoreThanTheDeviceHas) {
  CUdeviceptr p = 99;
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t{8} << 30) + 1));
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, ~size_t{0}));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
  EXPECT_EQ(p, CUdeviceptr{99});
}

TEST_F(MemoryTest, FreeOnlyWhatWasAllocated) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4096));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p + 16));
  OK(cuMemFree(p));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
  OK(cuMemFree(0));
  int onHost = 0;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(reinterpret_cast<CUdeviceptr>(&onHost)));
}

TEST_F(MemoryTest, NewMemoryIsAlignedAndDistinct) {
  CUdeviceptr last = 0;
  std::vector<CUdeviceptr> all;
  for (size_t bytes : {1, 100, 511, 513, 5000, 1 << 20}) {
    CUdeviceptr p;
    OK(cuMemAlloc(&p, bytes));
    EXPECT_EQ(p % 512, 0u);
    EXPECT_NE(p, last);
    CUdeviceptr base;
    size_t size;
    OK(cuMemGetAddressRange(&base, &size, p + bytes - 1));
    EXPECT_EQ(base, p);
    EXPECT_EQ(size, bytes);
    FAILS(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&base, &size, p + bytes));
    all.push_back(last = p);
  }
  for (auto p : all) OK(cuMemFree(p));
}

TEST_F(MemoryTest, PitchedRows) {
  CUdeviceptr p;
  size_t pitch;
  OK(cuMemAllocPitch(&p, &pitch, 100, 7, 4));
  EXPECT_EQ(pitch, 512u);
  OK(cuMemAllocPitch(&p, &pitch, 513, 7, 4));
  EXPECT_EQ(pitch, 1024u);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&p, &pitch, 100, 7, 3));
}

TEST_F(MemoryTest, PinnedMemoryIsOneForBothSides) {
  void* host;
  OK(cuMemHostAlloc(&host, 8192, CU_MEMHOSTALLOC_DEVICEMAP));
  std::memset(host, 0x11, 8192);
  CUdeviceptr device;
  OK(cuMemHostGetDevicePointer(&device, host, 0));
  OK(cuMemsetD8(device + 100, 0x22, 1));
  EXPECT_EQ(static_cast<unsigned char*>(host)[99], 0x11);
  EXPECT_EQ(static_cast<unsigned char*>(host)[100], 0x22);
  unsigned type, flags;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_HOST});
  OK(cuMemHostGetFlags(&flags, host));
  EXPECT_TRUE(flags & CU_MEMHOSTALLOC_DEVICEMAP);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(device));
  OK(cuMemFreeHost(host));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
}

TEST_F(MemoryTest, RegisteredMemory) {
  std::vector<int> data(5000, 3);
  OK(cuMemHostRegister(data.data(), 20000, 0));
  FAILS(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(data.data() + 10, 40, 0));
  CUdeviceptr device;
  OK(cuMemHostGetDevicePointer(&device, data.data() + 4, 0));
  OK(cuMemsetD32(device, 77, 2));
  EXPECT_EQ(data[3], 3);
  EXPECT_EQ(data[4], 77);
  EXPECT_EQ(data[5], 77);
  EXPECT_EQ(data[6], 3);
  OK(cuMemHostUnregister(data.data()));
  FAILS(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(data.data()));
}

TEST_F(MemoryTest, ManagedMemory) {
  CUdeviceptr p;
  OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
  auto* host = reinterpret_cast<uint32_t*>(p);
  host[10] = 5;
  OK(cuMemsetD32(p, 9, 4));
  OK(cuCtxSynchronize());
  EXPECT_EQ(host[3], 9u);
  EXPECT_EQ(host[10], 5u);
  unsigned managed;
  OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
  EXPECT_EQ(managed, 1u);
  OK(cuMemFree(p));
}

TEST_F(MemoryTest, PointerAttributes) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 1000));
  unsigned type;
  OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 999));
  EXPECT_EQ(type, unsigned{CU_MEMORYTYPE_DEVICE});
  CUcontext owner;
  OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
  EXPECT_EQ(owner, context_);
  int local = 0;
  FAILS(CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)));
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  size_t size = 1;
  void* out[] = {&type, &size};
  OK(cuPointerGetAttributes(2, which, out, p + 1));
  EXPECT_EQ(size, 1000u);
  OK(cuPointerGetAttributes(2, which, out, reinterpret_cast<CUdeviceptr>(&local)));
  EXPECT_EQ(type, 0u);
  OK(cuMemFree(p));
}

TEST_F(MemoryTest, StreamOrderedAllocation) {
  CUmemoryPool pool;
  OK(cuDeviceGetDefaultMemPool(&pool, 0));
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr p;
  OK(cuMemAllocAsync(&p, 1 << 20, s));
  cuuint64_t used;
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, cuuint64_t{1} << 20);
  Gate gate;
  OK(gate.hold(s));
  OK(cuMemFreeAsync(p, s));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(p, s));
  // The stream has not come to it yet.
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, cuuint64_t{1} << 20);
  gate.open();
  OK(cuStreamSynchronize(s));
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0u);
  OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
  EXPECT_EQ(used, cuuint64_t{1} << 20);
  OK(cuStreamDestroy(s));
}

TEST_F(MemoryTest, ContextTakesItsMemoryAlong) {
  size_t before, after, total;
  OK(cuMemGetInfo(&before, &total));
  CUcontext other;
  OK(createContext(&other, 0, 0));
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 50 << 20));
  OK(cuCtxDestroy(other));
  OK(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
}

}  // namespace
