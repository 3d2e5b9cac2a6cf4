// SPDX-License-Identifier: Apache-2.0
//
// Allocations on the device windows: which ranges live, of what kind, and how
// the pages behind them are mapped in the two views (address_space.h).
//
// Every allocation is followed by at least one page that neither view maps, so
// that an access beyond its end faults instead of reaching a neighbour. A
// process may have only so many mappings, though (vm.max_map_count): when there
// are many allocations, further small ones lie side by side in arenas, with
// unused bytes between them that belong to none (SONDE_CHECK=memory sees those).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::memory {

enum class Kind : uint8_t {
  device,        // cuMemAlloc
  deviceStatic,  // module variables
  pinned,        // cuMemHostAlloc
  registered,    // cuMemHostRegister; lies outside the windows
  managed,       // cuMemAllocManaged
  managedStatic,
  reserved,  // cuMemAddressReserve: no pages of its own
  imported,  // another process's device memory (shared_pages.cpp)
};

struct Allocation {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as asked for
  Kind kind = Kind::device;
  uint32_t device = 0;
  uint32_t contextUid = 0;     // 0: belongs to no context
  uint32_t flags = 0;          // of the host-memory or managed call
  uint64_t id = 0;             // unique over the life of the process
  uint64_t pool = 0;           // handle of the memory pool it came from
  uint64_t contextHandle = 0;  // CUcontext
  bool syncMemops = false;
  bool releasing = false;  // freed in stream order, the stream is not there yet

  uint64_t end() const { return address + bytes; }
  bool contains(uint64_t a, uint64_t n) const {
    return a >= address && a - address <= bytes && n <= bytes - (a - address);
  }
};

// Where an allocation's pages can be found by another process: `offset` is the
// allocation's place in the file.
struct SharedPages {
  int fd = -1;  // stays the allocator's
  uint64_t offset = 0;
};

enum class AllocError : uint8_t { none, outOfMemory, invalidValue, alreadyRegistered, notFound };

// Process-wide and thread-safe. Never destroyed.
class Allocator {
 public:
  static Allocator& get();

  // Limits what the allocations of `device` may take together. Managed memory
  // counts where it resides, not here.
  void setCapacity(uint32_t device, uint64_t bytes);
  uint64_t capacity(uint32_t device) const;
  uint64_t used(uint32_t device) const;

  // False: each managed allocation has a mapping of its own, because whether a
  // device without faults may use it is said for each.
  void setManagedArenas(bool allowed) { managedArenas_.store(allowed); }

  // `request` gives bytes, kind, device, owner and flags; its address and id
  // are filled in. The memory reads as zero.
  AllocError allocate(Allocation& request, uint64_t align = 512);
  // Exactly the start of a live allocation that `allocate` made.
  AllocError release(uint64_t address, Allocation* was = nullptr);
  // Everything of a context that goes away; returns what was released.
  std::vector<Allocation> releaseContext(uint32_t contextUid);

  AllocError registerHost(Allocation& request);
  AllocError unregisterHost(uint64_t address);

  // The live allocation that holds this byte.
  std::optional<Allocation> find(uint64_t address) const;
  bool setSyncMemops(uint64_t address, bool value);
  // Marks an allocation as freed in stream order. False: it was, or is none.
  bool markReleasing(uint64_t address, Allocation* what);

  // Moves the pages of a live allocation of kind `device` into a file that
  // other processes can map. Nothing may access the allocation meanwhile.
  AllocError share(uint64_t address, SharedPages& out);
  // Maps such a file's bytes [offset, offset + request.bytes); `request` gives
  // bytes, device and owner and gets its address, id and kind.
  AllocError importPages(int fd, uint64_t offset, Allocation& request);

  // For kernels: is this range registered host memory?
  bool hostRangeAllowed(uint64_t address, uint64_t bytes) const;
  bool anyRegistered() const { return registeredCount_.load(std::memory_order_acquire) != 0; }

  // Where the host may read and write the bytes at a device address; other
  // addresses come back as they are.
  static std::byte* hostAccess(uint64_t address) {
    const AddressSpace& space = AddressSpace::get();
    return space.global.contains(address) ? space.deviceView(address) : reinterpret_cast<std::byte*>(address);
  }

  // A range of addresses without pages, for cuMemAddressReserve.
  AllocError reserveRange(uint64_t bytes, uint64_t align, uint64_t* address);
  AllocError releaseRange(uint64_t address, uint64_t bytes);
  // Does the range lie in one that reserveRange gave?
  bool reserved(uint64_t address, uint64_t bytes) const;
  // Registers or forgets pages that somebody else mapped into a reserved range.
  void adopt(const Allocation& allocation);
  bool abandon(uint64_t address);
  bool charge(uint32_t device, uint64_t bytes);
  void refund(uint32_t device, uint64_t bytes);

 private:
  Allocator();
  struct Arena {
    uint64_t address = 0, used = 0;
    int fd = -1;  // when its pages are shared, or managed
  };
  struct Range {
    uint64_t address, bytes;
    int fd = -1;             // when its pages are shared
    Arena* arena = nullptr;  // where a small allocation lies
  };
  struct Arenas {
    std::deque<Arena> all;                        // the last one is being filled
    std::vector<std::vector<uint64_t>> free;      // slots by size class
    std::unordered_map<uint64_t, Arena*> ofSlot;  // the arena of a free slot
  };
  bool takeRange(uint64_t bytes, uint64_t align, Range& out);
  void giveRange(Range range);
  AllocError releaseLocked(uint64_t address, Allocation* was);
  Arenas& arenasOf(Kind kind) { return arenas_[kind == Kind::pinned ? 1 : kind == Kind::managed ? 2 : 0]; }
  bool takeSlot(Kind kind, uint64_t bytes, Range& out);
  void giveSlot(Kind kind, const Range& range);

  mutable std::shared_mutex mutex_;
  Arenas arenas_[3];                           // device, pinned, managed
  std::map<uint64_t, uint64_t> free_;          // start -> bytes
  std::map<uint64_t, Allocation> live_;        // by address
  std::map<uint64_t, Range> ranges_;           // allocation address -> range it occupies
  std::map<uint64_t, Allocation> registered_;  // by address
  std::atomic<uint32_t> registeredCount_{0};
  uint32_t guarded_ = 0;  // allocations with pages of their own
  std::atomic<bool> managedArenas_{true};
  std::vector<uint64_t> capacity_, used_;
  uint64_t nextId_ = 1;
};

}  // namespace sonde::softgpu::memory
