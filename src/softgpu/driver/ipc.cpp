// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/ipc.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <ctime>
#include <string>

namespace sonde::softgpu::driver {
namespace {

constexpr char kMagic[8] = {'S', 'o', 'n', 'd', 'e', 'I', 'P', 'C'};
constexpr size_t kPageBytes = 4096;

// Between processes, hence not FUTEX_PRIVATE_FLAG. std::atomic's own waiting is private.
void futexWait(const std::atomic<uint32_t>& word, uint32_t seen) {
  const timespec limit{0, 50'000'000};  // a process that dies between two steps wakes nobody
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}
void futexWakeAll(std::atomic<uint32_t>& word) { syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

}  // namespace

IpcHandle describeFile(IpcKind kind, int descriptor, uint32_t device) {
  IpcHandle handle{};
  std::memcpy(handle.magic, kMagic, sizeof kMagic);
  handle.kind = kind;
  handle.process = static_cast<uint32_t>(getpid());
  handle.descriptor = descriptor;
  handle.device = device;
  struct stat status{};
  if (descriptor >= 0 && fstat(descriptor, &status) == 0) handle.inode = status.st_ino;
  return handle;
}

bool recognised(const IpcHandle& handle, IpcKind kind) {
  return std::memcmp(handle.magic, kMagic, sizeof kMagic) == 0 && handle.kind == kind;
}

int openFile(const IpcHandle& handle) {
  const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.descriptor);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat status{};
  if (fstat(fd, &status) == 0 && status.st_ino == handle.inode && handle.offset + handle.bytes >= handle.offset &&
      static_cast<uint64_t>(status.st_size) >= handle.offset + handle.bytes)
    return fd;
  close(fd);
  return -1;
}

std::shared_ptr<SharedEvent> SharedEvent::create() {
  const int fd = memfd_create("sonde-event", MFD_CLOEXEC);
  if (fd < 0) return nullptr;
  void* page = ftruncate(fd, kPageBytes) == 0 ? mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                              : MAP_FAILED;
  if (page == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  return std::shared_ptr<SharedEvent>(new SharedEvent(fd, static_cast<Page*>(page)));  // zeros are its first state
}

std::shared_ptr<SharedEvent> SharedEvent::open(const IpcHandle& handle) {
  const int fd = openFile(handle);
  if (fd < 0) return nullptr;
  struct stat status{};
  void* page = fstat(fd, &status) == 0 && status.st_size == static_cast<off_t>(kPageBytes)
                   ? mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
  if (page == MAP_FAILED) {
    close(fd);
    return nullptr;
  }
  return std::shared_ptr<SharedEvent>(new SharedEvent(fd, static_cast<Page*>(page)));
}

SharedEvent::~SharedEvent() {
  munmap(page_, kPageBytes);
  close(descriptor_);
}

uint64_t SharedEvent::record() { return page_->recorded.fetch_add(1, std::memory_order_acq_rel) + 1; }
uint64_t SharedEvent::recorded() const { return page_->recorded.load(std::memory_order_acquire); }
bool SharedEvent::reached(uint64_t place) const { return page_->completed.load(std::memory_order_acquire) >= place; }

void SharedEvent::complete(uint64_t place) {
  uint64_t before = page_->completed.load(std::memory_order_relaxed);
  while (before < place && !page_->completed.compare_exchange_weak(before, place, std::memory_order_acq_rel)) {
  }
  page_->changes.fetch_add(1, std::memory_order_release);
  futexWakeAll(page_->changes);
}

void SharedEvent::wait(uint64_t place) const {
  while (!reached(place)) {
    const uint32_t seen = page_->changes.load(std::memory_order_acquire);
    if (reached(place)) return;
    futexWait(page_->changes, seen);
  }
}

}  // namespace sonde::softgpu::driver
