// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/managed/host_faults.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace sonde::softgpu::memory {
namespace {

constexpr uint64_t kPage = 4096;

int openDescriptor() {
  // Not UFFD_USER_MODE_ONLY: that would leave system calls with EFAULT.
  int fd = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  if (fd >= 0) return fd;
#ifdef USERFAULTFD_IOC_NEW
  const int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
  close(device);
#endif
  return fd;
}

}  // namespace

int HostFaults::threadFile(uint32_t thread) {
  ThreadFile* oldest = &files_[0];
  for (ThreadFile& f : files_) {
    if (f.fd >= 0 && f.thread == thread) {
      f.lastUse = ++fileUse_;
      return f.fd;
    }
    if (f.lastUse < oldest->lastUse) oldest = &f;
  }
  if (oldest->fd >= 0) close(oldest->fd);
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
  *oldest = {thread, open(path, O_RDONLY | O_CLOEXEC), ++fileUse_};
  return oldest->fd;
}

// Where a thread that waits for a page was: the last number of its file.
uint64_t HostFaults::pcOf(uint32_t thread) {
  char text[256];
  // It may not have gone to sleep yet, or the file be of a thread that is gone.
  for (int attempt = 0; attempt < 200; attempt++) {
    const int fd = threadFile(thread);
    const ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0) {
      for (ThreadFile& f : files_)
        if (f.thread == thread) {
          if (f.fd >= 0) close(f.fd);
          f = {};
        }
      if (attempt > 0) return 0;
      continue;
    }
    text[n] = 0;
    if (std::strncmp(text, "running", 7) != 0) {
      const char* last = std::strrchr(text, ' ');
      return last ? std::strtoull(last + 1, nullptr, 16) : 0;
    }
    sched_yield();
  }
  return 0;
}

bool HostFaults::start(const Client& client) {
  if (running()) return true;
  const int fd = openDescriptor();
  if (fd < 0) return false;
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_THREAD_ID |
                 UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM;
  if (ioctl(fd, UFFDIO_API, &api) != 0) {
    close(fd);
    return false;
  }
  client_ = client;
  fd_.store(fd);
  // The application's signals are for its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] {
    // Every fault waits for this thread: ahead of others, where that is allowed.
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), -10);
    answer();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

void HostFaults::forgetInChild() {
  const int fd = fd_.exchange(-1);
  if (fd >= 0) close(fd);
}

bool HostFaults::watch(uint64_t address, uint64_t bytes) const {
  if (!running()) return false;
  uffdio_register r{};
  r.range = {address, bytes};
  r.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR | UFFDIO_REGISTER_MODE_WP;
  return ioctl(fd_.load(), UFFDIO_REGISTER, &r) == 0;
}

// Pages that exist are mapped, others come into being, zeroed.
void HostFaults::map(uint64_t address, uint64_t bytes, bool protect) const {
  const int fd = fd_.load();
  for (uint64_t done = 0; done < bytes;) {
    uffdio_continue c{};
    c.range = {address + done, bytes - done};
    c.mode = UFFDIO_CONTINUE_MODE_DONTWAKE;
#ifdef UFFDIO_CONTINUE_MODE_WP
    if (protect) c.mode |= UFFDIO_CONTINUE_MODE_WP;
#endif
    if (ioctl(fd, UFFDIO_CONTINUE, &c) == 0) return;
    if (c.mapped > 0) {
      done += static_cast<uint64_t>(c.mapped);
      continue;
    }
    if (errno == EEXIST) {
      done += kPage;
      continue;
    }
    if (errno == EAGAIN) continue;
    if (errno != EFAULT) return;
    uffdio_zeropage z{};
    z.range = {address + done, bytes - done};
    z.mode = UFFDIO_ZEROPAGE_MODE_DONTWAKE;
    if (ioctl(fd, UFFDIO_ZEROPAGE, &z) == 0) return;
    if (z.zeropage > 0)
      done += static_cast<uint64_t>(z.zeropage);
    else if (errno != EEXIST && errno != EAGAIN)
      return;
  }
}

void HostFaults::protect(uint64_t address, uint64_t bytes, bool on) const {
  uffdio_writeprotect w{};
  w.range = {address, bytes};
  w.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : UFFDIO_WRITEPROTECT_MODE_DONTWAKE;
  while (ioctl(fd_.load(), UFFDIO_WRITEPROTECT, &w) != 0 && errno == EAGAIN) {
  }
}

void HostFaults::setRights(uint64_t address, uint64_t bytes, uint8_t rights, uint8_t before) const {
  if (!running()) return;
  if (rights == 0) {
    madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTNEED);
    return;
  }
  map(address, bytes, rights == 1);
  if (rights == 1 || before != 0) protect(address, bytes, rights == 1);
}

void HostFaults::wake(uint64_t address) const {
  uffdio_range range{address, kPage};
  ioctl(fd_.load(), UFFDIO_WAKE, &range);
}

void HostFaults::answer() {
  for (;;) {
    uffd_msg message;
    const ssize_t n = read(fd_.load(), &message, sizeof message);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n != static_cast<ssize_t>(sizeof message)) return;
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    const uint64_t page = message.arg.pagefault.address / kPage * kPage;
    const bool write = (message.arg.pagefault.flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0;
    const uint64_t pc = client_.wantsPc() ? pcOf(message.arg.pagefault.feat.ptid) : 0;
    client_.fault(page, write, pc);
    wake(page);
  }
}

}  // namespace sonde::softgpu::memory
