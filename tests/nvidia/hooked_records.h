// SPDX-License-Identifier: Apache-2.0
// What a client keeps of the records, for tests of the hooks on the software driver.
#ifndef SONDE_TESTS_NVIDIA_HOOKED_RECORDS_H_
#define SONDE_TESTS_NVIDIA_HOOKED_RECORDS_H_

#include <cuda.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#define CHECK_CU(call) ASSERT_EQ(CUDA_SUCCESS, (call))
#define CHECK_CUPTI(call) ASSERT_EQ(CUPTI_SUCCESS, (call))

namespace sonde::test {

inline std::mutex mutex;  // of the records
inline std::vector<CUpti_ActivityKernel10> kernels;
inline std::vector<CUpti_ActivityMemcpy6> copies;
inline std::vector<CUpti_ActivityMemset4> sets;
inline std::vector<CUpti_ActivityMemoryPool2> pools;
inline std::vector<CUpti_ActivityMemory4> allocations;  // and releases

inline void clearRecords() {
  kernels.clear();
  copies.clear();
  sets.clear();
  pools.clear();
  allocations.clear();
}

inline void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 1 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

inline void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* r = nullptr;
  std::lock_guard lock(mutex);
  while (cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS) {
    switch (r->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel10*>(r));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY: copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpy6*>(r)); break;
      case CUPTI_ACTIVITY_KIND_MEMSET: sets.push_back(*reinterpret_cast<CUpti_ActivityMemset4*>(r)); break;
      case CUPTI_ACTIVITY_KIND_MEMORY_POOL: pools.push_back(*reinterpret_cast<CUpti_ActivityMemoryPool2*>(r)); break;
      case CUPTI_ACTIVITY_KIND_MEMORY2: allocations.push_back(*reinterpret_cast<CUpti_ActivityMemory4*>(r)); break;
      default: break;
    }
  }
  std::free(buffer);
}

}  // namespace sonde::test

#endif  // SONDE_TESTS_NVIDIA_HOOKED_RECORDS_H_
