// SPDX-License-Identifier: Apache-2.0
//
// Memory, events and pools that several processes of one user share. A handle
// names a memory file by the process that has it open and its descriptor
// there; opening it goes through /proc. Such a handle works as long as the
// process that gave it lives and has not freed what it names.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "softgpu/driver/cuda_api.h"

namespace sonde::softgpu::driver {

enum class IpcKind : uint32_t { memory = 1, event, pool, poolMemory };

// What the 64 bytes of an IPC handle hold.
struct IpcHandle {
  char magic[8];
  IpcKind kind;
  uint32_t process;
  int32_t descriptor;
  uint32_t device;  // ordinal
  uint64_t inode;   // of the memory file: a descriptor may have been reused
  uint64_t offset, bytes;
  uint64_t id;  // of a pool, within its process
};
static_assert(sizeof(IpcHandle) <= CU_IPC_HANDLE_SIZE);

IpcHandle describeFile(IpcKind kind, int descriptor, uint32_t device);
// Is it a handle of this kind that this library made?
bool recognised(const IpcHandle& handle, IpcKind kind);
// A descriptor of the file, or -1: the process or its file is gone, or belongs to somebody else.
int openFile(const IpcHandle& handle);

// An event that several processes record and wait for: how often it has been
// recorded, and how far that has come, in a page of a memory file.
class SharedEvent {
 public:
  static std::shared_ptr<SharedEvent> create();
  static std::shared_ptr<SharedEvent> open(const IpcHandle& handle);
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  int descriptor() const { return descriptor_; }
  uint64_t record();          // a new place
  uint64_t recorded() const;  // the last one given out, by whomever
  bool reached(uint64_t place) const;
  void complete(uint64_t place);
  void wait(uint64_t place) const;  // until it is reached; blocks the thread

 private:
  struct Page {
    std::atomic<uint64_t> recorded, completed;
    std::atomic<uint32_t> changes;  // a futex
  };
  SharedEvent(int descriptor, Page* page) : descriptor_(descriptor), page_(page) {}
  const int descriptor_;
  Page* const page_;
};

}  // namespace sonde::softgpu::driver
