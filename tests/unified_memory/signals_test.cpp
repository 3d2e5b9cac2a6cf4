// SPDX-License-Identifier: Apache-2.0
// Signals of the program beside the driver's: what is a true crash stays one,
// with whichever handler, stack and disposition the program chose.
#include <sys/mman.h>

#include <csetjmp>
#include <csignal>
#include <thread>

#include "kernels.h"

namespace um {
namespace {

sigjmp_buf escape;
volatile uintptr_t crashAddress = 0;
volatile uintptr_t handlerStack = 0;
volatile int crashes = 0;

void onCrash(int, siginfo_t* info, void*) {
  crashAddress = reinterpret_cast<uintptr_t>(info->si_addr);
  handlerStack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  crashes = crashes + 1;
  siglongjmp(escape, 1);
}

class Signals : public UnifiedMemory {
 protected:
  void SetUp() override {
    sigaction(SIGSEGV, nullptr, &before_);
    install(onCrash);  // the first test of a process: before the driver has its own
    UnifiedMemory::SetUp();
    crashes = 0;
    crashAddress = 0;
    handlerStack = 0;
  }
  void TearDown() override {
    sigaction(SIGSEGV, &before_, nullptr);
    UnifiedMemory::TearDown();
  }
  static void install(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    ASSERT_EQ(0, sigaction(SIGSEGV, &action, nullptr));
  }
  static void install(void (*disposition)(int)) {
    struct sigaction action{};
    action.sa_handler = disposition;
    ASSERT_EQ(0, sigaction(SIGSEGV, &action, nullptr));
  }
  // Pages on the device, and the driver's handler in front again.
  char* onDevice(size_t bytes = kMiB) {
    char* p = managed(bytes);
    deviceFill(p, bytes, 2);
    return p;
  }
  static void readAll(const char* p, size_t bytes = kMiB) {
    for (size_t i = 0; i < bytes; i += kPage) ASSERT_EQ(2, load(p + i));
  }
  // The handler gets a write to `address`, once.
  static void crashAt(uintptr_t address) {
    const int before = crashes;
    if (sigsetjmp(escape, 1) == 0) {
      store(reinterpret_cast<char*>(address), 1);
      FAIL() << "a write to " << address << " went through";
    }
    EXPECT_EQ(address, crashAddress);
    EXPECT_EQ(before + 1, crashes);
  }
  struct sigaction before_{};
};

TEST_F(Signals, AHandlerFromBeforeTheDriverGetsCrashes) {
  const char* p = onDevice();
  readAll(p);
  crashAt(16);
  readAll(p);
}

TEST_F(Signals, ACrashOnADeviceAddressIsACrash) {
  install(onCrash);
  const char* p = onDevice();
  CUdeviceptr plain = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAlloc(&plain, kPage));
  crashAt(plain);
  crashAt(16);
  readAll(p);
  // What was managed memory and is freed.
  CUdeviceptr gone = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAllocManaged(&gone, kPage, CU_MEM_ATTACH_GLOBAL));
  store(reinterpret_cast<char*>(gone), 1);
  ASSERT_EQ(CUDA_SUCCESS, cuMemFree(gone));
  crashAt(gone);
  readAll(p);
  EXPECT_EQ(3, crashes);
}

TEST_F(Signals, ThousandsOfFaultsReachNoHandler) {
  install(onCrash);
  char* p = managed(kMiB);
  for (unsigned char round = 1; round <= 20; ++round) {
    deviceFill(p, kMiB, round);
    for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(round, static_cast<unsigned char>(load(p + i)));
  }
  EXPECT_EQ(0, crashes);
}

TEST_F(Signals, AnAlternateStackOfTheProgramStaysItsOwn) {
  install(onCrash, SA_ONSTACK);
  char* p = onDevice();
  std::thread([p] {
    constexpr size_t kStack = 65536;
    void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t before{}, mine{}, now{};
    ASSERT_EQ(0, sigaltstack(nullptr, &before));  // a sanitizer's, if any
    mine.ss_sp = memory;
    mine.ss_size = kStack;
    ASSERT_EQ(0, sigaltstack(&mine, nullptr));
    readAll(p);
    ASSERT_EQ(0, sigaltstack(nullptr, &now));
    EXPECT_EQ(memory, now.ss_sp);
    EXPECT_EQ(kStack, now.ss_size);
    EXPECT_EQ(0, now.ss_flags);
    crashAt(24);
    EXPECT_GE(handlerStack, reinterpret_cast<uintptr_t>(memory));
    EXPECT_LT(handlerStack, reinterpret_cast<uintptr_t>(memory) + kStack);
    sigaltstack(&before, nullptr);
    munmap(memory, kStack);
  }).join();
}

TEST_F(Signals, AThreadWithoutAnAlternateStackFaultsToo) {
  char* p = onDevice();
  std::thread([p] {
    stack_t before{}, none{}, now{};
    none.ss_flags = SS_DISABLE;
    ASSERT_EQ(0, sigaltstack(&none, &before));
    readAll(p);
    ASSERT_EQ(0, sigaltstack(nullptr, &now));
    EXPECT_EQ(SS_DISABLE, now.ss_flags);
    sigaltstack(&before, nullptr);
  }).join();
}

TEST_F(Signals, AHandlerForOneTimeIsCalledOnce) {
  // Of the two crashes the second is the default's: death.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        install(onCrash, SA_RESETHAND);
        readAll(onDevice());
        crashAt(16);
        (void)!write(2, "first\n", 6);
        store(reinterpret_cast<char*>(24), 1);
      },
      testing::KilledBySignal(SIGSEGV), "first");
}

TEST_F(Signals, WithoutAHandlerACrashEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        install(SIG_DFL);
        readAll(onDevice());
        (void)!write(2, "read\n", 5);
        store(reinterpret_cast<char*>(16), 1);
      },
      testing::KilledBySignal(SIGSEGV), "read");
}

TEST_F(Signals, ACrashThatIsIgnoredEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        install(SIG_IGN);
        readAll(onDevice());
        kill(getpid(), SIGSEGV);  // this can be ignored
        (void)!write(2, "read\n", 5);
        store(reinterpret_cast<char*>(16), 1);
      },
      testing::KilledBySignal(SIGSEGV), "read");
}

TEST_F(Signals, ASignalThatWasSentEndsTheProcess) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        install(SIG_DFL);
        readAll(onDevice());
        kill(getpid(), SIGSEGV);
        _exit(0);  // it lives
      },
      testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace um
