// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "gpu.h"

namespace {

using DeviceTest = Gpu;

int attribute(CUdevice_attribute a) {
  int value = -1;
  EXPECT_EQ(nameOf(cuDeviceGetAttribute(&value, a, 0)), "CUDA_SUCCESS");
  return value;
}

TEST_F(DeviceTest, DefaultModelIsWhatItsFileSays) {
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 9);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 0);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 16);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), 2147483647);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 2048);
  size_t bytes = 0;
  OK(cuDeviceTotalMem(&bytes, 0));
  EXPECT_EQ(bytes, size_t{8} << 30);
  char name[64];
  OK(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "Sonde Software GPU");
  char tiny[6];
  OK(cuDeviceGetName(tiny, sizeof tiny, 0));
  EXPECT_STREQ(tiny, "Sonde");
}

TEST_F(DeviceTest, EveryAttributeHasAnswerAndOthersHaveNone) {
  for (int a = 1; a < CU_DEVICE_ATTRIBUTE_MAX; a++) {
    int value;
    OK(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(a), 0));
  }
  int value;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 7));
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
}

TEST_F(DeviceTest, BusIdGoesBothWays) {
  char id[32];
  OK(cuDeviceGetPCIBusId(id, sizeof id, 0));
  CUdevice back = 5;
  OK(cuDeviceGetByPCIBusId(&back, id));
  EXPECT_EQ(back, 0);
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetByPCIBusId(&back, "0000:7f:00.0"));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetByPCIBusId(&back, "here"));
}

TEST_F(DeviceTest, ContextStack) {
  CUcontext second, current;
  OK(createContext(&second, CU_CTX_SCHED_SPIN, 0));
  OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, second);
  unsigned flags;
  OK(cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_SPIN});
  unsigned long long a, b;
  OK(cuCtxGetId(context_, &a));
  OK(cuCtxGetId(second, &b));
  EXPECT_GT(b, a);
  OK(cuCtxPopCurrent(&current));
  EXPECT_EQ(current, second);
  OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  OK(cuCtxPushCurrent(second));
  OK(cuCtxDestroy(second));
  OK(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(second));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(second));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(reinterpret_cast<CUcontext>(0x1234)));
}

TEST_F(DeviceTest, NoContextNoWork) {
  CUcontext mine;
  OK(cuCtxPopCurrent(&mine));
  CUdeviceptr p;
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&p, 16));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuStreamSynchronize(nullptr));
  OK(cuCtxPushCurrent(mine));
}

TEST_F(DeviceTest, PrimaryContextLivesWhileItIsRetained) {
  unsigned flags;
  int active;
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  CUcontext a, b;
  OK(cuDevicePrimaryCtxRetain(&a, 0));
  OK(cuDevicePrimaryCtxRetain(&b, 0));
  EXPECT_EQ(a, b);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(a));
  OK(cuDevicePrimaryCtxRelease(0));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 1);
  OK(cuDevicePrimaryCtxRelease(0));
  OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
}

TEST_F(DeviceTest, Limits) {
  size_t value;
  OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(value, size_t{8} << 20);
  OK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
  OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  EXPECT_EQ(value, size_t{16} << 20);
  FAILS(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(static_cast<CUlimit>(99), 1));
  int least, greatest;
  OK(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_LT(greatest, 0);
}

TEST_F(DeviceTest, ProcAddressFollowsVersionAndStreamFlag) {
  void *v2 = nullptr, *v4 = nullptr, *legacy = nullptr, *perThread = nullptr;
  CUdriverProcAddressQueryResult status;
  OK(cuGetProcAddress("cuCtxCreate", &v2, 12000, 0, &status));
  OK(cuGetProcAddress("cuCtxCreate", &v4, 13000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_NE(v2, v4);
  EXPECT_EQ(v4, reinterpret_cast<void*>(&cuCtxCreate_v4));
  OK(cuGetProcAddress("cuLaunchKernel", &legacy, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
  OK(cuGetProcAddress("cuLaunchKernel", &perThread, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  EXPECT_EQ(legacy, reinterpret_cast<void*>(&cuLaunchKernel));
  EXPECT_NE(legacy, perThread);
  void* p = &status;
  FAILS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuMemAllocAsync", &p, 11010, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(p, nullptr);
  FAILS(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNothingOfTheKind", &p, 13000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(DeviceTest, ErrorNames) {
  const char* text;
  OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGetErrorName(static_cast<CUresult>(12345), &text));
  EXPECT_EQ(text, nullptr);
}

TEST_F(DeviceTest, ExportTablesDoNotExist) {
  const void* table = this;
  CUuuid id{};
  FAILS(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &id));
  EXPECT_EQ(table, nullptr);
}

}  // namespace
