// SPDX-License-Identifier: Apache-2.0
// Faults of managed memory beside everything else that a process does.
#include <sys/mman.h>
#include <sys/wait.h>

#include <csetjmp>
#include <csignal>
#include <thread>

#include "um.h"

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
#ifdef FAULTS_BY_SIGNAL
  GTEST_SKIP() << "SONDE_MANAGED=faults without userfaultfd leaves this to the program";
#endif
  const int file = memfd_create("system-calls", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  char* p = managed(16 * kPage);
  deviceFill(p, 16 * kPage, 5);
  EXPECT_EQ(static_cast<ssize_t>(16 * kPage), pwrite(file, p, 16 * kPage, 0)) << strerror(errno);
  deviceFill(p, 16 * kPage, 6);
  EXPECT_EQ(static_cast<ssize_t>(16 * kPage), pread(file, p, 16 * kPage, 0)) << strerror(errno);
  for (size_t i = 0; i < 16 * kPage; i += kPage) EXPECT_EQ(5, load(p + i));
  close(file);
}

}  // namespace
}  // namespace um
