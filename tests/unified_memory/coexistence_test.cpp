// SPDX-License-Identifier: Apache-2.0
// Faults of managed memory beside everything else that a process does.
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
#include <thread>

#include "kernels.h"

namespace um {
namespace {

class Coexistence : public UnifiedMemory {};

sigjmp_buf escape;
volatile uintptr_t crashAddress = 0;

void onCrash(int, siginfo_t* info, void*) {
  crashAddress = reinterpret_cast<uintptr_t>(info->si_addr);
  siglongjmp(escape, 1);
}

// A handler that the program installs after the driver's.
TEST_F(Coexistence, AProgramsHandlerGetsTrueCrashesOnly) {
  char* p = managed(kMiB);
  fill(p, kMiB, 1);
  struct sigaction mine{}, before{};
  mine.sa_sigaction = onCrash;
  mine.sa_flags = SA_SIGINFO;
  ASSERT_EQ(0, sigaction(SIGSEGV, &mine, &before));
  deviceFill(p, kMiB, 2);  // the driver steps in front again
  if (sigsetjmp(escape, 1) == 0) {
    for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(2, load(p + i));
    store(reinterpret_cast<char*>(16), 1);
    FAIL() << "a write to address 16 went through";
  }
  EXPECT_EQ(16u, crashAddress);
  sigaction(SIGSEGV, &before, nullptr);
}

TEST_F(Coexistence, ThreadsFaultAtOnceOnOnePage) {
  char* p = managed(kMiB);
  for (int round = 0; round < 20; ++round) {
    deviceFill(p, kMiB, static_cast<unsigned char>(round + 1));
    std::atomic<int> ready{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        for (size_t i = 0; i < kMiB; i += kPage) wrong += load(p + i) != round + 1;
      });
    for (auto& t : threads) t.join();
    ASSERT_EQ(0, wrong.load());
  }
}

// Byte 0 of each page is a kernel's, bytes 1 to 3 are those of three threads.
TEST_F(Coexistence, ThreadsFaultWhileAKernelRuns) {
  constexpr uint32_t kPages = 64, kRounds = 50, kThreads = 3;
  char* p = managed(kPages * kPage);
  Worker worker;
  worker.launch(p, kPages, kRounds, false);
  std::atomic<uint32_t> ready{0};
  uint8_t rounds[kThreads] = {};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      do {
        for (uint32_t i = 0; i < kPages; ++i) {
          volatile char* at = p + i * kPage + 1 + t;
          *at = static_cast<char>(*at + 1);
        }
        if (++rounds[t] == 1) ++ready;
      } while (!worker.done());
    });
  while (ready < kThreads) std::this_thread::yield();
  worker.open();
  for (auto& t : threads) t.join();
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  for (uint32_t i = 0; i < kPages; ++i) {
    ASSERT_EQ(kRounds, static_cast<uint8_t>(load(p + i * kPage))) << i;
    for (uint32_t t = 0; t < kThreads; ++t) ASSERT_EQ(rounds[t], static_cast<uint8_t>(load(p + i * kPage + 1 + t)));
  }
  EXPECT_FALSE(records(kGpuFault).empty());
  EXPECT_FALSE(records(kCpuFault).empty());
}

// Another process's pages are open to it, whatever the parent's threads are at.
TEST_F(Coexistence, ForkingWhileThreadsFault) {
  constexpr size_t kBytes = 64 * kPage;
  char* p = managed(kBytes);
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> turns{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      do {
        for (size_t i = 0; i < kBytes; i += kPage) load(p + i);
        ++turns;
      } while (!stop);
    });
  while (turns < 2) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    deviceFill(p, kBytes, static_cast<unsigned char>(i + 1));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (size_t at = 0; at < kBytes; at += kPage)
        if (load(p + at) != i + 1) _exit(1);
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    ASSERT_TRUE(WIFEXITED(status)) << status;
    ASSERT_EQ(0, WEXITSTATUS(status)) << i;
  }
  stop = true;
  for (auto& t : threads) t.join();
  for (size_t i = 0; i < kBytes; i += kPage) ASSERT_EQ(20, load(p + i));
}

TEST_F(Coexistence, AForkedChildReachesThePages) {
  char* p = managed(kMiB);
  deviceFill(p, kMiB, 3);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (size_t i = 0; i < kMiB; i += kPage)
      if (load(p + i) != 3) _exit(1);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
  // The parent has its own view of them.
  for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(3, load(p + i));
}

// By userfaultfd, or because the pages come back when the program waits.
TEST_F(Coexistence, SystemCallsReachPagesOfTheDevice) {
  if (!systemCallsWait()) GTEST_SKIP() << "SONDE_MANAGED=faults without userfaultfd leaves this to the program";
  const int file = memfd_create("system-calls", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  char* p = managed(16 * kPage);
  deviceFill(p, 16 * kPage, 5);
  EXPECT_EQ(static_cast<ssize_t>(16 * kPage), pwrite(file, p, 16 * kPage, 0)) << strerror(errno);
  deviceFill(p, 16 * kPage, 6);
  EXPECT_EQ(static_cast<ssize_t>(16 * kPage), pread(file, p, 16 * kPage, 0)) << strerror(errno);
  for (size_t i = 0; i < 16 * kPage; i += kPage) EXPECT_EQ(5, load(p + i));
  // Into a page that was never touched, from and into parts of pages.
  char* fresh = managed(2 * kPage);
  EXPECT_EQ(100, pread(file, fresh + kPage - 50, 100, 0)) << strerror(errno);
  EXPECT_EQ(5, load(fresh + kPage + 49));
  // Many pieces at once, of both sides.
  deviceFill(p + kPage, kPage, 7);
  iovec pieces[] = {{p, 10}, {p + kPage, 10}, {fresh, 10}};
  EXPECT_EQ(30, pwritev(file, pieces, 3, 0)) << strerror(errno);
  char back[30];
  EXPECT_EQ(30, pread(file, back, 30, 0));
  EXPECT_EQ(5, back[0]);
  EXPECT_EQ(7, back[10]);
  close(file);
}

// More than can have mappings of their own (65,530 by default): pages of one arena, some here and some there.
TEST_F(Coexistence, ManySmallAllocationsHaveAResidence) {
  constexpr size_t kCount = 24000;
  std::vector<char*> all;
  for (size_t i = 0; i < kCount; ++i) {
    all.push_back(managed(64));
    ASSERT_NE(all.back(), nullptr) << i;
    if (i >= 8000) store(all[i], static_cast<char>(i % 100));
  }
  forget();
  for (size_t i = 20000; i < kCount; i += 2)
    ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(all[i] + 1), 0x55, 63, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_FALSE(records(kHtoD).empty());
  for (size_t i = 8000; i < kCount; ++i) {
    ASSERT_EQ(static_cast<char>(i % 100), load(all[i])) << i;
    ASSERT_EQ(i >= 20000 && i % 2 == 0 ? 0x55 : 0, load(all[i] + 63)) << i;
  }
  EXPECT_FALSE(records(kDtoH).empty());
  // What is freed and given out again has never been touched.
  const CUmemLocation host{CU_MEM_LOCATION_TYPE_HOST, {0}};
  for (size_t i = 20000; i < kCount; ++i) ASSERT_EQ(CUDA_SUCCESS, cuMemFree(reinterpret_cast<CUdeviceptr>(all[i])));
  for (size_t i = 20000; i < kCount; ++i) {
    all[i] = managed(64);
    CUdevice where = 0;
    ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync(reinterpret_cast<CUdeviceptr>(all[i]), 64, host, 0, nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuMemRangeGetAttribute(&where, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                                                   reinterpret_cast<CUdeviceptr>(all[i]), 64));
    ASSERT_EQ(CU_DEVICE_INVALID, where);
  }
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  for (size_t i = 20000; i < kCount; ++i) ASSERT_EQ(0, load(all[i] + 63)) << i;
  for (char* p : all) ASSERT_EQ(CUDA_SUCCESS, cuMemFree(reinterpret_cast<CUdeviceptr>(p)));
}

// A function of the program in a stream comes after what is before it there.
TEST_F(Coexistence, AHostFunctionReachesThePages) {
  char* p = managed(kMiB);
  ASSERT_EQ(CUDA_SUCCESS, cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(p), 9, kMiB, nullptr));
  struct Seen {
    char* p;
    int right = 0;
    ssize_t written = -1;
  } seen{p};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchHostFunc(
                              nullptr,
                              [](void* user) {
                                auto& s = *static_cast<Seen*>(user);
                                if (systemCallsWait()) {
                                  const int file = memfd_create("host-function", MFD_CLOEXEC);
                                  s.written = write(file, s.p, kMiB);
                                  close(file);
                                }
                                for (size_t i = 0; i < kMiB; i += kPage) s.right += load(s.p + i) == 9;
                              },
                              &seen));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_EQ(256, seen.right);
  EXPECT_EQ(systemCallsWait() ? static_cast<ssize_t>(kMiB) : -1, seen.written);
}

}  // namespace
}  // namespace um
