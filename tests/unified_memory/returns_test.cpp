// SPDX-License-Identifier: Apache-2.0
// Without userfaultfd: what waiting for the device brings back.
#include <sys/mman.h>

#include <thread>

#include "kernels.h"

namespace um {
namespace {

class Returns : public UnifiedMemory {};

TEST_F(Returns, PagesAreBackAfterWaiting) {
  char* p = managed(kMiB);
  fill(p, kMiB, 1);
  forget();
  deviceFill(p, kMiB, 2);
  fill(p, kMiB, 3);
  uint64_t back = 0;
  for (const Counter& r : records(kDtoH)) back += r.value;
  EXPECT_EQ(kMiB, back);
  EXPECT_TRUE(records(kCpuFault).empty());
}

// Nothing has touched it: a system call may, and what it filled goes to the device.
TEST_F(Returns, AFreshAllocationIsOpenToSystemCalls) {
  const int file = memfd_create("fresh", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  const std::vector<char> contents(3 * kPage, 6);
  ASSERT_EQ(static_cast<ssize_t>(contents.size()), write(file, contents.data(), contents.size()));
  char* p = managed(64 * kPage);
  ASSERT_EQ(static_cast<ssize_t>(contents.size()), pread(file, p + 16 * kPage, contents.size(), 0)) << strerror(errno);
  EXPECT_TRUE(records().empty());
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8(reinterpret_cast<CUdeviceptr>(p), 1, 17 * kPage));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  // Three pages had contents; the others came into being on the device.
  uint64_t up = 0;
  for (const Counter& r : records(kHtoD)) {
    EXPECT_GE(r.address, reinterpret_cast<uint64_t>(p + 16 * kPage));
    EXPECT_LE(r.address + r.value, reinterpret_cast<uint64_t>(p + 19 * kPage));
    up += r.value;
  }
  EXPECT_EQ(3 * kPage, up);
  EXPECT_EQ(1, load(p + 16 * kPage));
  EXPECT_EQ(6, load(p + 18 * kPage));
  close(file);
}

// Each of these is a wait, after which no page may fault.
TEST_F(Returns, AQueryThatSaysDoneIsAWait) {
  char* p = managed(kMiB);
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  CUstream stream;
  CUevent event;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  const int file = memfd_create("returns", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  for (const char* how :
       {"cuStreamQuery", "cuEventQuery", "cuEventSynchronize", "cuStreamSynchronize", "cuMemcpyDtoH"}) {
    forget();
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(at, 3, kMiB, stream)) << how;
    ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, stream)) << how;
    const std::string name = how;
    CUresult result = CUDA_ERROR_NOT_READY;
    if (name == "cuStreamQuery")
      while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
    else if (name == "cuEventQuery")
      while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
    else if (name == "cuEventSynchronize")
      result = cuEventSynchronize(event);
    else if (name == "cuStreamSynchronize")
      result = cuStreamSynchronize(stream);
    else {
      char byte = 0;
      result = cuMemcpyDtoHAsync(&byte, at, 1, stream);  // pageable: it waits
      EXPECT_EQ(3, byte);
    }
    ASSERT_EQ(CUDA_SUCCESS, result) << how;
    EXPECT_EQ(static_cast<ssize_t>(kMiB), pwrite(file, p, kMiB, 0)) << how << ": " << strerror(errno);
    for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(3, load(p + i)) << how;
    EXPECT_TRUE(records(kCpuFault).empty()) << how;
    uint64_t back = 0;
    for (const Counter& r : records(kDtoH)) back += r.value;
    EXPECT_EQ(kMiB, back) << how;
  }
  close(file);
  cuEventDestroy(event);
  cuStreamDestroy(stream);
}

// What has not been waited for stays where it is, and faults.
TEST_F(Returns, AQueryThatSaysNotReadyIsNone) {
  char *p = managed(kPage), *busy = managed(kPage);
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Worker worker;
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(p), 4, kPage, stream));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  forget();
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(p), 5, kPage, stream));
  worker.launch(busy, 1, 1, false, stream);
  while (records(kHtoD).empty()) std::this_thread::yield();  // the set has begun
  EXPECT_EQ(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
  EXPECT_TRUE(records(kDtoH).empty());
  load(p);
  EXPECT_EQ(1u, records(kCpuFault).size());
  worker.open();
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(stream));
  EXPECT_EQ(5, load(p));
  EXPECT_EQ(1, load(busy));
  cuStreamDestroy(stream);
}

}  // namespace
}  // namespace um
