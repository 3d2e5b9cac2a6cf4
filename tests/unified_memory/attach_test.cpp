// SPDX-License-Identifier: Apache-2.0
// A device whose kernels cannot fault (compute capability 3.5): what a launch
// moves and closes, and what attaching an allocation changes of that.
#include <sys/mman.h>

#include <csetjmp>
#include <csignal>

#include "um.h"

namespace um {
namespace {

// write(p, flag): *p = 7, after *flag (pinned) has become 1.
constexpr const char* kPtx = R"(
.version 4.1
.target sm_30
.address_size 64
.visible .entry write(.param .u64 p, .param .u64 flag)
{
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u64 %rd2, [flag];
LOOP:
  ld.volatile.global.u32 %r1, [%rd2];
  setp.eq.s32 %p1, %r1, 0;
  @%p1 bra LOOP;
  mov.u32 %r2, 7;
  st.global.u8 [%rd1], %r2;
  ret;
}
)";

sigjmp_buf escape;
volatile uintptr_t crashAddress = 0;
void onCrash(int, siginfo_t* info, void*) {
  crashAddress = reinterpret_cast<uintptr_t>(info->si_addr);
  siglongjmp(escape, 1);
}

class Attach : public UnifiedMemory {
 protected:
  void SetUp() override {
    UnifiedMemory::SetUp();
    CUmodule module;
    ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kPtx));
    ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&write_, module, "write"));
    ASSERT_EQ(CUDA_SUCCESS, cuMemAllocHost(reinterpret_cast<void**>(&flag_), 4));
    *flag_ = 0;
    struct sigaction mine{};
    mine.sa_sigaction = onCrash;
    mine.sa_flags = SA_SIGINFO;
    ASSERT_EQ(0, sigaction(SIGSEGV, &mine, &before_));
  }
  void TearDown() override {
    sigaction(SIGSEGV, &before_, nullptr);
    UnifiedMemory::TearDown();
  }
  // A kernel that writes 7 to p once `finish` lets it.
  void launch(char* p, CUstream stream = nullptr) {
    *flag_ = 0;
    void* parameters[] = {&p, &flag_};
    ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(write_, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  }
  CUresult finish(CUstream stream = nullptr) {
    *const_cast<volatile uint32_t*>(flag_) = 1;
    return cuStreamSynchronize(stream);
  }
  // Whether the CPU's touch of p is a fault of the program.
  static bool crashes(char* p) {
    crashAddress = 0;
    if (sigsetjmp(escape, 1) != 0) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(p), crashAddress);
      return true;
    }
    store(p, 1);
    return false;
  }
  CUfunction write_ = nullptr;
  uint32_t* flag_ = nullptr;
  struct sigaction before_{};
};

TEST_F(Attach, TheDeviceSaysThatItCannot) {
  int value = -1;
  ASSERT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
  EXPECT_EQ(0, value);
  char* p = managed(kPage);
  const CUmemLocation gpu = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}, cpu = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync_v2(at, kPage, gpu, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemPrefetchAsync_v2(at, kPage, cpu, 0, nullptr));
  EXPECT_EQ(CUDA_ERROR_INVALID_DEVICE, cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu));
  EXPECT_EQ(CUDA_SUCCESS, cuMemAdvise_v2(at, kPage, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
  CUdeviceptr large = 0;
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&large, size_t{13} << 30, CU_MEM_ATTACH_GLOBAL));
}

TEST_F(Attach, ALaunchMovesEverythingAndItsEndNothing) {
  char *p = managed(2 * kMiB), *other = managed(kPage);
  fill(p, 2 * kMiB, 1);
  store(other, 1);
  forget();
  launch(p);
  ASSERT_EQ(CUDA_SUCCESS, finish());
  uint64_t up = 0;
  for (const Counter& r : records(kHtoD)) {
    EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE}, r.flags);
    up += r.value;
  }
  EXPECT_EQ(2 * kMiB + kPage, up);
  EXPECT_TRUE(records(kGpuFault).empty());
  uint64_t down = 0;
  for (const Counter& r : records(kDtoH)) down += r.value;
  EXPECT_EQ(pagesReturn() ? up : 0u, down);  // when the program had waited
  EXPECT_EQ(7, load(p));                     // comes back page by page
  EXPECT_EQ(1, load(other));
  EXPECT_EQ(pagesReturn() ? 0u : 2u, records(kCpuFault).size());
}

TEST_F(Attach, TheCpuMayNotTouchWhatIsGlobalUntilTheProgramHasWaited) {
  char *p = managed(kPage), *other = managed(kPage);
  launch(p);
  EXPECT_TRUE(crashes(p));
  EXPECT_TRUE(crashes(other + 100));  // no matter who uses it
  ASSERT_EQ(CUDA_SUCCESS, finish());
  EXPECT_FALSE(crashes(other + 100));
  EXPECT_EQ(7, load(p));
}

TEST_F(Attach, AFinishedKernelClosesTheMemoryToo) {
  char* p = managed(kPage);
  launch(p);
  *const_cast<volatile uint32_t*>(flag_) = 1;
  EXPECT_TRUE(crashes(p));  // it may have ended, but nobody has asked
  while (cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY) {
  }
  EXPECT_FALSE(crashes(p));  // a query that says so is a wait
}

TEST_F(Attach, AnEventThatWasSeenIsAWaitForWhatIsBeforeIt) {
  char* p = managed(kPage);
  CUevent event;
  ASSERT_EQ(CUDA_SUCCESS, cuEventCreate(&event, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, nullptr));
  launch(p);
  ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
  EXPECT_TRUE(crashes(p));  // the kernel comes after the event
  ASSERT_EQ(CUDA_SUCCESS, cuEventRecord(event, nullptr));
  *const_cast<volatile uint32_t*>(flag_) = 1;
  ASSERT_EQ(CUDA_SUCCESS, cuEventSynchronize(event));
  EXPECT_FALSE(crashes(p));
  cuEventDestroy(event);
}

// EFAULT while a kernel may use it. Afterwards userfaultfd brings the pages, or
// they are back already; SONDE_MANAGED=faults without userfaultfd has neither.
TEST_F(Attach, SystemCallsMayNotTouchWhatIsBusy) {
  const int file = memfd_create("busy", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  char* p = managed(16 * kPage);
  fill(p, 16 * kPage, 1);
  launch(p);
  EXPECT_EQ(-1, pwrite(file, p, 16 * kPage, 0));
  EXPECT_EQ(EFAULT, errno);
  EXPECT_EQ(0, ftruncate(file, 16 * kPage));
  EXPECT_EQ(-1, pread(file, p, 16 * kPage, 0));
  EXPECT_EQ(EFAULT, errno);
  ASSERT_EQ(CUDA_SUCCESS, finish());
  if (!systemCallsWait()) GTEST_SKIP() << "SONDE_MANAGED=faults without userfaultfd leaves the rest to the program";
  EXPECT_EQ(static_cast<ssize_t>(16 * kPage), pwrite(file, p, 16 * kPage, 0)) << strerror(errno);
  char bytes[2] = {};
  EXPECT_EQ(1, pread(file, bytes, 1, 0));
  EXPECT_EQ(1, pread(file, bytes + 1, 1, kPage));
  EXPECT_EQ(7, bytes[0]);
  EXPECT_EQ(1, bytes[1]);
  launch(p);
  ASSERT_EQ(CUDA_SUCCESS, finish());
  EXPECT_EQ(1, pread(file, p + 1, 1, kPage)) << strerror(errno);
  EXPECT_EQ(7, load(p));
  close(file);
}

// Waiting for one stream opens nothing that another stream's kernel may use.
TEST_F(Attach, WhatIsBusyElsewhereStaysClosed) {
  CUstream one, two;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  char* p = managed(kPage);
  store(p, 1);
  launch(p, one);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(p) + 100, 2, 1, two));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamSynchronize(two));
  EXPECT_TRUE(crashes(p));
  ASSERT_EQ(CUDA_SUCCESS, finish(one));
  EXPECT_FALSE(crashes(p + 1));
  EXPECT_EQ(7, load(p));
  EXPECT_EQ(2, load(p + 100));
  cuStreamDestroy(one);
  cuStreamDestroy(two);
}

TEST_F(Attach, AHostFunctionHasWaitedForItsStream) {
  char* p = managed(kPage);
  launch(p);
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(nullptr, [](void* at) { store(static_cast<char*>(at) + 1, 8); }, p));
  ASSERT_EQ(CUDA_SUCCESS, finish());
  EXPECT_EQ(0u, crashAddress);
  EXPECT_EQ(7, load(p));
  EXPECT_EQ(8, load(p + 1));
}

TEST_F(Attach, ATouchOfWhatIsBusySaysWhatToDo) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        struct sigaction fatal{};
        fatal.sa_handler = SIG_DFL;
        sigaction(SIGSEGV, &fatal, nullptr);
        char* p = managed(kPage);
        launch(p);
        store(p + 16, 1);
      },
      testing::KilledBySignal(SIGSEGV),
      "sonde: the CPU touched managed memory \\(0x[0-9a-f]*\\) that a kernel of stream [0-9]+ may be using.*"
      "cudaDeviceSynchronize");
}

TEST_F(Attach, HostMemoryIsTheCpusAlone) {
  CUdeviceptr allocation = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&allocation, kPage, CU_MEM_ATTACH_HOST));
  char *mine = reinterpret_cast<char*>(allocation), *p = managed(kPage);
  store(mine, 3);
  forget();
  launch(p);
  EXPECT_FALSE(crashes(mine));
  EXPECT_TRUE(crashes(p));
  ASSERT_EQ(CUDA_SUCCESS, finish());
  for (const Counter& r : records(kHtoD)) EXPECT_NE(allocation, r.address);
  // Attached to all it is as any other.
  ASSERT_EQ(CUDA_SUCCESS, cuStreamAttachMemAsync(nullptr, allocation, 0, CU_MEM_ATTACH_GLOBAL));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  launch(mine);
  EXPECT_TRUE(crashes(mine));
  ASSERT_EQ(CUDA_SUCCESS, finish());
  EXPECT_EQ(7, load(mine));
}

TEST_F(Attach, MemoryOfOneStreamWaitsForThatStreamAlone) {
  CUstream one, two;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  char *a = managed(kPage), *b = managed(kPage);
  ASSERT_EQ(CUDA_SUCCESS, cuStreamAttachMemAsync(one, reinterpret_cast<CUdeviceptr>(a), 0, CU_MEM_ATTACH_SINGLE));
  ASSERT_EQ(CUDA_SUCCESS, cuStreamAttachMemAsync(two, reinterpret_cast<CUdeviceptr>(b), kPage, CU_MEM_ATTACH_SINGLE));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  store(a, 1);
  store(b, 1);
  forget();
  launch(a, one);
  EXPECT_TRUE(crashes(a));
  EXPECT_FALSE(crashes(b));
  ASSERT_EQ(CUDA_SUCCESS, finish(one));
  EXPECT_EQ(7, load(a));
  const auto up = records(kHtoD);
  ASSERT_EQ(1u, up.size());
  EXPECT_EQ(reinterpret_cast<uint64_t>(a), up[0].address);
  cuStreamDestroy(one);
  cuStreamDestroy(two);
}

TEST_F(Attach, WhatCannotBeAttachedIsRefused) {
  CUstream stream;
  ASSERT_EQ(CUDA_SUCCESS, cuStreamCreate(&stream, 0));
  char* p = managed(2 * kPage);
  const auto at = reinterpret_cast<CUdeviceptr>(p);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(nullptr, at, 0, CU_MEM_ATTACH_SINGLE));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, at, kPage, CU_MEM_ATTACH_SINGLE));  // a part
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, at + 8, 0, CU_MEM_ATTACH_SINGLE));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, 0, 0, CU_MEM_ATTACH_SINGLE));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, cuStreamAttachMemAsync(stream, at, 0, 8));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE,
            cuStreamAttachMemAsync(stream, reinterpret_cast<CUdeviceptr>(flag_), 0, CU_MEM_ATTACH_SINGLE));
  EXPECT_EQ(CUDA_SUCCESS, cuStreamAttachMemAsync(stream, at, 2 * kPage, CU_MEM_ATTACH_SINGLE));
  cuStreamDestroy(stream);
}

// The last test: the context is of no use after it.
TEST_F(Attach, XAKernelThatReadsHostMemoryFails) {
  CUdeviceptr allocation = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&allocation, kPage, CU_MEM_ATTACH_HOST));
  store(reinterpret_cast<char*>(allocation), 3);
  launch(reinterpret_cast<char*>(allocation));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, finish());
  EXPECT_EQ(3, load(reinterpret_cast<char*>(allocation)));
}

}  // namespace
}  // namespace um
