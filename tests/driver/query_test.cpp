// SPDX-License-Identifier: Apache-2.0
//
// Logs, what devices can do, and functions that refuse.
#include <cudaProfiler.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "gpu.h"
#include "ptx.h"

namespace {

class QueryTest : public Gpu {
 protected:
  // Something that the driver has a word to say about.
  static void complain() {
    CUmodule m;
    FAILS(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&m, ".version 8.0\n.target sm_70\nnonsense"));
  }
};

void CUDA_CB keep(void* data, CUlogLevel level, char* message, size_t length) {
  if (level == CU_LOG_LEVEL_ERROR) static_cast<std::vector<std::string>*>(data)->emplace_back(message, length);
}

TEST_F(QueryTest, LogsReachCallbacksFilesAndMemory) {
  CUlogIterator here;
  OK(cuLogsCurrent(&here, 0));
  const CUlogIterator start = here;
  std::vector<std::string> heard;
  CUlogsCallbackHandle handle;
  OK(cuLogsRegisterCallback(&keep, &heard, &handle));
  complain();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find("module refused"), std::string::npos);
  EXPECT_NE(heard[0].back(), '\n');
  OK(cuLogsUnregisterCallback(handle));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsUnregisterCallback(handle));
  complain();
  EXPECT_EQ(heard.size(), 1u);
  // Both messages, from the iterator on; it moves behind them.
  std::vector<char> buffer(25600);
  size_t size = buffer.size();
  OK(cuLogsDumpToMemory(&here, buffer.data(), &size, 0));
  const std::string text(buffer.data());
  EXPECT_EQ(text.size(), size);
  EXPECT_EQ(text.substr(0, heard[0].size() + 1), heard[0] + "\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::count(heard[0].begin(), heard[0].end(), '\n') * 2 + 2);
  size = buffer.size();
  OK(cuLogsDumpToMemory(&here, buffer.data(), &size, 0));
  EXPECT_EQ(size, 0u);
  // With little room: the newest, and a word that it is not all.
  here = start;
  size = text.size() - 1;
  OK(cuLogsDumpToMemory(&here, buffer.data(), &size, 0));
  EXPECT_EQ(std::string(buffer.data()).rfind("[earlier messages are lost]\n", 0), 0u);
  EXPECT_EQ(std::string(buffer.data()).substr(28), text.substr(text.size() - (size - 28)));
  here = start;
  size = 8;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToMemory(&here, buffer.data(), &size, 0));
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(here, start);
  const std::string path = ::testing::TempDir() + "sonde_logs.txt";
  OK(cuLogsDumpToFile(&here, path.c_str(), 0));
  std::ostringstream all;
  all << std::ifstream(path).rdbuf();
  EXPECT_EQ(all.str(), text);
  std::remove(path.c_str());
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(&here, path.c_str(), 1));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsDumpToFile(nullptr, "/nowhere/at/all", 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsRegisterCallback(nullptr, nullptr, nullptr));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLogsCurrent(nullptr, 0));
}

TEST_F(QueryTest, AtomicsWithTheHost) {
  const CUatomicOperation ops[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS,
                                   CU_ATOMIC_OPERATION_INTEGER_INCREMENT, CU_ATOMIC_OPERATION_FLOAT_MAX};
  unsigned can[4] = {9, 9, 9, 9};
  OK(cuDeviceGetHostAtomicCapabilities(can, ops, 4, device_));
  EXPECT_EQ(can[0], 1u | 2u | 4u | 8u | 16u);  // signed, unsigned, reduction, 32, 64
  EXPECT_EQ(can[1], 1u | 2u | 8u | 16u | 32u);
  EXPECT_EQ(can[2], 2u | 4u | 8u);
  EXPECT_EQ(can[3], 0u);
  const CUatomicOperation bad = CU_ATOMIC_OPERATION_MAX;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, &bad, 1, device_));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities(can, ops, 0, device_));
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetHostAtomicCapabilities(can, ops, 1, 99));
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetP2PAtomicCapabilities(can, ops, 1, device_, device_));
}

TEST_F(QueryTest, WhatNoDeviceHas) {
  CUexecAffinityParam affinity;
  FAILS(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuCtxGetExecAffinity(nullptr, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                                             CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                                             static_cast<CUflushGPUDirectRDMAWritesScope>(1)));
  CUlibrary library;
  void* f = &f;
  int has = 1;
  OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, device_));
  EXPECT_EQ(has, 0);
  OK(cuLibraryLoadData(&library, kSmall, nullptr, nullptr, 0, nullptr, nullptr, 0));
  FAILS(CUDA_ERROR_NOT_FOUND, cuLibraryGetUnifiedFunction(&f, library, "empty"));
  EXPECT_EQ(f, &f);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuLibraryGetUnifiedFunction(nullptr, library, "empty"));
  OK(cuLibraryUnload(library));
  CUDA_ARRAY_DESCRIPTOR d{8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray array, plane = nullptr;
  OK(cuArrayCreate(&array, &d));
  CUDA_ARRAY_SPARSE_PROPERTIES sparse;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&plane, array, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&sparse, array));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&needs, array, device_));
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuArrayGetMemoryRequirements(&needs, array, 99));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuArrayGetPlane(&plane, nullptr, 0));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetSparseProperties(&sparse, nullptr));
  OK(cuArrayDestroy(array));
}

TEST_F(QueryTest, WhatIsRefusedSaysSoOnce) {
  CUlogIterator here;
  OK(cuLogsCurrent(&here, 0));
  size_t granularity = 5;
  CUmulticastObjectProp props{};
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMulticastGetGranularity(&granularity, &props, CU_MULTICAST_GRANULARITY_MINIMUM));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMulticastGetGranularity(&granularity, &props, CU_MULTICAST_GRANULARITY_MINIMUM));
  EXPECT_EQ(granularity, 5u);
  char text[1000];
  size_t size = sizeof text;
  OK(cuLogsDumpToMemory(&here, text, &size, 0));
  static bool again = false;  // once a process
  const std::string line = "cuMulticastGetGranularity is not supported: there is no multicast memory\n";
  const std::string heard(text, size);
  EXPECT_EQ(std::count(heard.begin(), heard.end(), '\n'), again ? 0 : 1);
  if (!again) {
    EXPECT_EQ(heard.substr(heard.size() - std::min(heard.size(), line.size())), line);
  }
  again = true;
  char luid[8];
  unsigned mask;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuDeviceGetLuid(luid, &mask, device_));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuImportExternalMemory(nullptr, nullptr));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuCoredumpGetAttribute(CU_COREDUMP_FILE, nullptr, nullptr));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuCheckpointProcessLock(1, nullptr));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMemBatchDecompressAsync(nullptr, 1, 0, nullptr, nullptr));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuGraphicsMapResources(1, nullptr, nullptr));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuProfilerInitialize("", "", CU_OUT_CSV));
  void* f;
  OK(cuGetProcAddress("cuMulticastCreate", &f, 13000, 0, nullptr));
}

}  // namespace
