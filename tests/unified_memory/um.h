// SPDX-License-Identifier: Apache-2.0
// A context, managed memory and the counter records of unified memory.
#pragma once

#include <cuda.h>
#include <cupti.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "../cupti/collector.h"

namespace um {

using Counter = CUpti_ActivityUnifiedMemoryCounter3;
using testing_support::Collector;

inline constexpr uint32_t kHtoD = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD;
inline constexpr uint32_t kDtoH = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH;
inline constexpr uint32_t kDtoD = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD;
inline constexpr uint32_t kCpuFault = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT;
inline constexpr uint32_t kGpuFault = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT;
inline constexpr uint32_t kThrashing = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING;
inline constexpr uint32_t kThrottling = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING;
inline constexpr uint32_t kRemoteMap = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP;
inline constexpr uint32_t kCpuId = CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID;  // in remote maps and throttling
inline constexpr uint64_t kPage = 4096, kMiB = 1 << 20;

inline CUpti_ActivityUnifiedMemoryCounterConfig config(uint32_t kind, uint32_t device = 0, uint32_t enable = 1) {
  CUpti_ActivityUnifiedMemoryCounterConfig c{};
  c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
  c.kind = static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(kind);
  c.deviceId = device;
  c.enable = enable;
  return c;
}

// Whether the kernel lets this process have a userfaultfd for system calls too, and nobody said no.
inline bool userfaultfdAllowed() {
  const char* asked = getenv("SONDE_USERFAULTFD");
  if (asked != nullptr && std::string(asked) == "0") return false;
  const int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (fd >= 0) close(fd);
  return fd >= 0 || access("/dev/userfaultfd", R_OK | W_OK) == 0;
}
// Without it pages come back when the program has waited, but for SONDE_MANAGED=faults.
inline bool pagesReturn() {
  const char* asked = getenv("SONDE_MANAGED");
  return !userfaultfdAllowed() && (asked == nullptr || std::string(asked) != "faults");
}
inline bool systemCallsWait() { return userfaultfdAllowed() || pagesReturn(); }

// Nothing of the harness may be inlined around the touching instruction.
__attribute__((noinline)) inline void store(volatile char* at, char value) { *at = value; }
__attribute__((noinline)) inline char load(const volatile char* at) { return *at; }

class UnifiedMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxCreate_v4(&context_, nullptr, 0, 0));
    Collector::instance().start();
    std::vector<CUpti_ActivityUnifiedMemoryCounterConfig> all;
    for (uint32_t kind = kHtoD; kind <= kDtoD; ++kind) {
      all.push_back(config(kind));
      all.back().scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_ALL_DEVICES;
    }
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityConfigureUnifiedMemoryCounter(all.data(), static_cast<uint32_t>(all.size())));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
  }
  void TearDown() override {
    forget();  // nothing is left for the next test
    cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);
    if (context_) cuCtxDestroy(context_);
  }

  char* managed(size_t bytes) {
    CUdeviceptr p = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
    return reinterpret_cast<char*>(p);
  }
  static void fill(char* p, size_t bytes, char value) {
    for (size_t i = 0; i < bytes; i += kPage) store(p + i, value);
  }
  static void deviceFill(char* p, size_t bytes, unsigned char value) {
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8(reinterpret_cast<CUdeviceptr>(p), value, bytes));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  }
  static std::vector<Counter> records() {
    std::vector<Counter> out;
    for (const auto& r : Collector::instance().flush())
      if (r.kind() == CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER) out.push_back(r.as<Counter>());
    // Records of different threads come in no order.
    std::stable_sort(out.begin(), out.end(), [](const Counter& a, const Counter& b) { return a.start < b.start; });
    return out;
  }
  static std::vector<Counter> records(uint32_t kind) {
    std::vector<Counter> out;
    for (const Counter& r : records())
      if (static_cast<uint32_t>(r.counterKind) == kind) out.push_back(r);
    return out;
  }
  static void forget() {
    Collector::instance().flush();
    Collector::instance().clear();
  }
  CUcontext context_ = nullptr;
};

}  // namespace um
