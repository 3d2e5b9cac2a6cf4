// SPDX-License-Identifier: Apache-2.0
//
// Touches of the host view, told by the kernel's userfaultfd: unlike a page
// protection it also holds back system calls that are given such a page, and
// the program's signal handlers never see it. A thread of ours answers.
//
// The kernel allows this to privileged processes, or where
// vm.unprivileged_userfaultfd is 1 or /dev/userfaultfd can be opened.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace sonde::softgpu::memory {

class HostFaults {
 public:
  // Both run on the answering thread.
  struct Client {
    bool (*wantsPc)();
    // Gives the page to the CPU, or takes away the right to it; the thread tries
    // again when it returns.
    void (*fault)(uint64_t address, bool write, uint64_t pc);
  };

  // False: not allowed here. Once.
  bool start(const Client& client);
  bool running() const { return fd_.load(std::memory_order_relaxed) >= 0; }
  // From now on this range's pages are handed out by setRights. Shared memory only.
  bool watch(uint64_t address, uint64_t bytes) const;
  // Async-signal-safe. Wakes nobody: each waiting thread has an event of its own.
  // `before`: what was set for these pages last; a page that had no rights is
  // not mapped, and so has no write protection to be taken off.
  void setRights(uint64_t address, uint64_t bytes, uint8_t rights, uint8_t before) const;
  // In a forked child the pages are open; the descriptor would act on the parent.
  void forgetInChild();

 private:
  void answer();
  void map(uint64_t address, uint64_t bytes, bool protect) const;
  void protect(uint64_t address, uint64_t bytes, bool on) const;
  void wake(uint64_t address) const;

  // /proc/self/task/<thread>/syscall of the threads that faulted last: opening
  // it costs as much as a migration. For the answering thread alone.
  struct ThreadFile {
    uint32_t thread = 0;
    int fd = -1;
    uint64_t lastUse = 0;
  };
  uint64_t pcOf(uint32_t thread);
  int threadFile(uint32_t thread);
  ThreadFile files_[16];
  uint64_t fileUse_ = 0;

  std::atomic<int> fd_{-1};
  Client client_{};
};

}  // namespace sonde::softgpu::memory
