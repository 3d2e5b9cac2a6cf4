// SPDX-License-Identifier: Apache-2.0
//
// Managed memory with a residence. Each 4 KiB page of a managed allocation
// lives with one processor at a time (or is duplicated for reading); the page
// protections of the host view and of the device view (address_space.h) are
// what makes it so, and an access from the wrong side faults and migrates.
//
// Until `activate` every page is open to both sides and nothing ever faults.
//
// Migration follows the density prefetcher of the real driver: a fault brings
// the 64 KiB around it, and the largest enclosing power of two (up to the
// 2 MiB block) of which more than 51 % would then be resident.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "platform/tools_api.h"
#include "softgpu/memory/managed/host_faults.h"
#include "softgpu/memory/managed/signal_lock.h"

namespace sonde::softgpu::memory {

// 0 is the CPU, 1 + n device n.
using Processor = uint8_t;
inline constexpr Processor kCpu = 0;
inline constexpr uint32_t kMaxManagedDevices = 31;
constexpr Processor processorOfDevice(uint32_t device) { return static_cast<Processor>(device + 1); }

enum class Advice : uint8_t {
  setReadMostly,
  unsetReadMostly,
  setPreferred,
  unsetPreferred,
  setAccessedBy,
  unsetAccessedBy,
};

// All zero: never touched, no advice.
struct ManagedPage {
  uint8_t home = 0;          // 1 + Processor; 0: nowhere yet
  uint8_t preferred = 0;     // 1 + Processor; 0: none
  uint8_t lastPrefetch = 0;  // 1 + Processor; 0: none
  bool readMostly = false;
  uint32_t copies = 0;                       // one bit per Processor with a read-only copy besides the home
  uint32_t accessedBy = 0;                   // one bit per Processor
  uint32_t remote = 0;                       // one bit per Processor that maps the page where it is
  uint8_t hostRights = 0, deviceRights = 0;  // in force: 0 none, 1 read, 3 read and write
  bool counted = false;                      // a remote access of the work under way was counted

  bool residentOn(Processor p) const { return home == p + 1 || (copies >> p & 1) != 0; }
};

// What managed memory must know of a device.
struct ManagedDevice {
  // False: its kernels cannot fault. What they may use is moved to it when they
  // are launched, and is closed to the CPU until the program has waited for them.
  bool concurrent = true;
  // Touches of remotely mapped pages in one 2 MiB block (each 4 KiB page once in
  // each kernel, copy or set) after which they migrate; 0: never.
  uint32_t accessThreshold = 0;
};

// Who may use a managed allocation on a device that is not concurrent.
enum class Attach : uint8_t { global, host, single };

// When a 64 KiB region counts as thrashing. Time is real time.
struct ThrashingLimits {
  uint64_t lapseNs = 5'000'000;   // moves further apart than this start a new count
  uint32_t detect = 3;            // moves in turn: reported, and the mover is held back from here on
  uint32_t pin = 10;              // moves in turn: the region stays with the CPU, devices map it
  uint64_t throttleNs = 250'000;  // how long a mover is held back
};

// Process-wide, thread-safe, never destroyed.
class ManagedMemory {
 public:
  static ManagedMemory& get();

  // Pages begin to have a residence. Allocations that exist are with the CPU.
  // `userfault`: learn of the CPU's touches from userfaultfd, where allowed.
  // `openFresh`: where it is not, pages that nobody has touched yet are open to
  // the CPU, so that a system call may fill them.
  void activate(bool userfault, bool openFresh);
  // System calls may be given any managed pointer.
  bool systemCallsWait() const { return hostFaults_.running(); }
  bool active() const { return active_.load(std::memory_order_acquire); }
  // Active, and there are managed allocations: work on a device has something to see to.
  bool inUse() const { return active() && regionCount_.load(std::memory_order_relaxed) != 0; }

  // A managed allocation came; false: no memory for its page table.
  // `populated`: its pages hold data, on the CPU's side.
  // `arena`: many allocations will lie in it, none of them attached to anything.
  bool add(uint64_t address, uint64_t bytes, bool populated, Attach attach = Attach::global, bool arena = false);
  void remove(uint64_t address);
  // Whole pages of an arena become as if never touched. Their contents are the caller's matter.
  void reset(uint64_t address, uint64_t bytes);

  // An access by the host (address in the host view) or a device (address in
  // the device view) faulted. True: try it again. Async-signal-safe.
  bool onFault(uint64_t address, bool write, uint64_t pc, int device);

  void setDevice(uint32_t device, const ManagedDevice& what);
  // Around each piece of work on a device: managed pages of devices without work
  // are closed to it, and at most `room` bytes of managed pages may be on it.
  void beforeDeviceWork(uint32_t device, uint64_t room);
  void afterDeviceWork(uint32_t device);

  // Devices that are not concurrent (managed/attach.cpp). A kernel is about to
  // be enqueued; its stream and context by their ids.
  void launching(uint32_t device, uint32_t stream, uint32_t context);
  void launched(uint32_t stream, uint64_t place);
  // The program has waited for a stream up to this place, or for all of a context.
  void waited(uint32_t stream, uint64_t place);
  void waitedForContext(uint32_t context);
  // False: no allocation starts at this address or its size is another (0: any).
  bool attachable(uint64_t address, uint64_t bytes);
  void attach(uint64_t address, Attach attach, uint32_t stream);
  // A copy or set of the driver is about to touch these bytes on a device:
  // faults as the device's, 64 pages a batch, without taking signals.
  void touch(uint64_t address, uint64_t bytes, bool write, uint32_t device);
  void prefetch(uint64_t address, uint64_t bytes, Processor to);
  void advise(uint64_t address, uint64_t bytes, Advice advice, Processor processor);
  // Brings every page within the CPU's reach that is not closed to it.
  void returnAllToCpu();
  // Called when the CPU touched what is closed to it, with the stream whose kernel
  // closes it; async-signal-safe. Set before `activate`.
  void setRefused(void (*refused)(uint64_t address, uint32_t stream)) { refused_ = refused; }
  // Calls `visit(page)` for each page of the range.
  template <class Visit>
  void visitPages(uint64_t address, uint64_t bytes, Visit visit) {
    std::lock_guard lock(lock_);
    if (Region* r = find(address))
      for (uint64_t p = r->index(address), last = r->index(address + bytes - 1); p <= last; p++) visit(r->page[p]);
  }

  // Counters to report: bit k for kind k. `wake` is called (async-signal-safe)
  // when the first event waits.
  void setEvents(uint32_t kindMask, void (*wake)());
  uint32_t eventKinds() const { return kindMask_.load(std::memory_order_relaxed); }
  // Takes up to `max` waiting events, oldest first.
  size_t takeEvents(SondeUnifiedMemory* out, size_t max);
  uint64_t droppedEvents() const { return dropped_.load(std::memory_order_relaxed); }

  void setThrashing(const ThrashingLimits& limits);

 private:
  ManagedMemory();
  static constexpr uint64_t kPage = 4096, kBig = 65536, kBlock = 2u << 20;
  struct Chunk {  // of 64 KiB
    uint64_t lastMoveNs = 0;
    uint32_t moves = 0;       // each to another processor than the one before
    uint32_t contenders = 0;  // bit per Processor
    Processor lastMover = 0;
    bool pinned = false;
  };
  struct Region {
    uint64_t address = 0, pages = 0, bytes = 0;
    bool arena = false;
    bool watched = false;  // the host view's pages are handed out by hostFaults_
    Attach attach = Attach::global;
    uint32_t attachStream = 0;            // of Attach::single
    bool counted = false;                 // a page of it is
    bool shut = false;                    // pages of the host view were protected against the CPU
    std::unique_ptr<uint32_t[]> touches;  // by 2 MiB block: counted remote accesses
    std::unique_ptr<ManagedPage[]> page;
    std::unique_ptr<Chunk[]> chunk;       // by kBig of address / kBig - address(0) / kBig
    std::unique_ptr<uint64_t[]> lastUse;  // by 2 MiB block, for eviction
    uint64_t index(uint64_t a) const { return (a - address) / kPage; }
    uint64_t addressOf(uint64_t p) const { return address + p * kPage; }
    uint64_t end() const { return address + pages * kPage; }
    Chunk& chunkOf(uint64_t p) { return chunk[addressOf(p) / kBig - address / kBig]; }
    uint64_t blockOf(uint64_t p) const { return addressOf(p) / kBlock - address / kBlock; }
    // First page of the aligned region of `size` around p, and one past its last.
    uint64_t alignedFirst(uint64_t p, uint64_t size) const;
    uint64_t alignedEnd(uint64_t p, uint64_t size) const;
  };
  struct Move {  // what a migration does to the pages outside the faulted ones
    Processor to;
    uint64_t faultFirst, faultEnd;
    uint32_t cause, otherCause;
    bool write;
  };

  // A stream with kernels on a device that is not concurrent, for which the
  // program has not waited yet.
  struct Busy {
    uint32_t stream, context;
    uint64_t place;
  };

  Region* find(uint64_t address);
  void answerHostFault(uint64_t address, bool write, uint64_t pc);
  void rightsOf(const ManagedPage& page, uint8_t& host, uint8_t& device) const;
  bool closedToCpu(const Region& r) const;
  bool visibleTo(const Region& r) const;
  void reopen();
  // The page is mapped by `who` from elsewhere and its accesses are counted.
  bool counts(const ManagedPage& page, Processor who) const {
    return traits_[who].accessThreshold != 0 && (page.remote & page.accessedBy & 1u << who) != 0 && page.copies == 0 &&
           page.preferred == 0 && page.home != who + 1;
  }
  void countTouches(Region& r, uint64_t first, uint64_t end, Processor who);
  void announceRemote(const Region& r, uint64_t first, uint64_t end, uint32_t cause);
  void apply(Region& r, uint64_t first, uint64_t end, bool hostFirst);
  void applyView(Region& r, uint64_t first, uint64_t end, bool host);
  void openView(Region& r, bool host);
  void grow(const Region& r, Processor p, uint64_t& first, uint64_t& end, uint64_t faultFirst, uint64_t faultEnd) const;
  bool move(Region& r, uint64_t first, uint64_t end, const Move& m);
  void place(ManagedPage& page, Processor to, bool write);
  void settle(Region& r, uint64_t first, uint64_t end);
  void handle(Region& r, uint64_t first, uint64_t end, bool write, Processor p, uint64_t pc, uint32_t faultsPerPage,
              uint64_t& throttle);
  bool judge(Region& r, uint64_t p, Processor who, uint64_t now, uint64_t& throttle);
  void holdBack(uint64_t page, Processor who, uint64_t ns);
  bool makeRoom(Processor p, uint64_t pages, const Region& keep, uint64_t keepBlock);
  void resident(Processor p, int64_t pages) {
    resident_[p] = static_cast<uint64_t>(static_cast<int64_t>(resident_[p]) + pages);
  }
  void mapRemotely(Region& r, uint64_t first, uint64_t end, Processor who, uint32_t cause);
  void emit(uint32_t kind, uint64_t value, uint64_t start, uint64_t end, uint64_t address, Processor from, Processor to,
            uint32_t flags);
  SondeUnifiedMemory* slot(uint32_t kind);

  SignalLock lock_;
  HostFaults hostFaults_;
  std::atomic<bool> active_{false};
  bool openFresh_ = false;
  std::map<uint64_t, Region> regions_;
  std::atomic<size_t> regionCount_{0};
  std::array<uint64_t, kMaxManagedDevices + 1> resident_{};  // pages
  std::array<uint64_t, kMaxManagedDevices + 1> room_;        // pages
  uint64_t useCount_ = 0;
  std::atomic<uint32_t> lastDevice_{0};
  uint32_t viewMask_ = ~1u;                                   // Processors the device view is open for
  std::array<uint32_t, kMaxManagedDevices + 1> running_{};    // pieces of work under way
  std::array<ManagedDevice, kMaxManagedDevices + 1> traits_;  // by Processor
  std::vector<Busy> busy_;
  ThrashingLimits limits_;
  void (*refused_)(uint64_t address, uint32_t stream) = nullptr;

  static constexpr size_t kRing = 16384;
  std::atomic<uint32_t> kindMask_{0};
  std::atomic<void (*)()> wake_{nullptr};
  std::unique_ptr<SondeUnifiedMemory[]> ring_;
  size_t ringHead_ = 0, ringCount_ = 0;
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace sonde::softgpu::memory
