// SPDX-License-Identifier: Apache-2.0
//
// L1 of each SM, L2 by slices and the DRAM behind it, as counts of sectors.
// docs/COUNTERS.md states the model. Lines have 128 bytes and four sectors of
// 32; both caches are set-associative with LRU replacement.
//
// L1: global loads and texture fetches allocate; global stores are written through and allocate
// nothing; atomics pass it by and drop its copy; local memory is written back.
// L2: everything allocates, sectors are fetched one by one on reads only,
// dirty sectors are written back when their line leaves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "softgpu/model/device_model.h"

namespace sonde::softgpu::exec {

// One line of one warp-level access: sectors (bits 0 to 3), kind (4 to 7) and
// line number (from 8). Line numbers are distances in the device's window, so
// that they do not depend on where the host has put it.
enum class CacheAccess : uint8_t {
  globalLoad,
  globalLoadAtL2,
  globalStore,
  atomic,
  localLoad,
  localStore,
  // Host memory outside the window: never cached, never in DRAM.
  hostLoad,
  hostStore,
  hostAtomic,
  textureLoad,
};
constexpr uint64_t cacheEntry(uint64_t line, CacheAccess kind, uint64_t sectors) {
  return line << 8 | uint64_t{static_cast<uint8_t>(kind)} << 4 | sectors;
}
inline constexpr unsigned kLineBits = 40;
inline constexpr uint64_t kLocalLines = uint64_t{1} << (kLineBits - 1);

// Tags of one cache, or of several equal ones side by side. Not thread-safe.
class SectoredCache {
 public:
  // A cache of 0 sets holds nothing.
  SectoredCache(uint64_t sets, uint32_t ways) : sets_(sets), ways_(ways), tags_(sets * ways) {}
  // Empties the cache.
  void reset();
  uint64_t sets() const { return sets_; }
  // Bits of a way: valid sectors 0 to 3, dirty ones 4 to 7.
  // The line's way, now the most recently used one of its set; null: not there.
  uint64_t* find(uint64_t set, uint64_t line);
  // Makes room for a line that is not there. `dirty`: dirty sectors (bits 0 to
  // 3) of the line that had to go, which is `gone`.
  uint64_t* insert(uint64_t set, uint64_t line, uint64_t* gone, uint64_t* dirty);

 private:
  uint64_t key(uint64_t line) const { return epoch_ << kLineBits | line; }
  uint64_t sets_;
  uint32_t ways_;
  uint64_t epoch_ = 1;          // ways of other epochs are empty
  std::vector<uint64_t> tags_;  // by recency within a set: epoch, line, dirty, valid
};

class CacheModel {
 public:
  explicit CacheModel(const model::DeviceModel& device);
  // Made for caches like those of this device.
  bool fits(const model::DeviceModel& device) const;
  // Empty caches, zero counters.
  void reset();
  uint32_t sliceOf(uint64_t line) const {
    const uint64_t group = line / slices_;
    return static_cast<uint32_t>((line % slices_ + (group ^ group >> 3 ^ group >> 7 ^ group >> 13)) % slices_);
  }
  // Accesses of an SM; what goes on to L2 is appended to toL2[slice % groups].
  // Calls for one SM must not overlap.
  void throughL1(uint32_t sm, const uint64_t* entries, size_t n, std::vector<uint64_t>* toL2, uint32_t groups);
  // Accesses of slices; calls for one slice must not overlap.
  void throughL2(const uint64_t* entries, size_t n);
  // Adds to values[instance * kRawCounterCount + counter]; there must be room
  // for instances() of them. Safe while others run through the caches.
  void addTo(uint64_t* values) const;
  uint32_t instances() const { return std::max(smCount_, slices_); }

 private:
  struct L1Counts {
    uint64_t globalHit = 0, globalMiss = 0, localLoadHit = 0, localLoadMiss = 0, localStoreHit = 0, localStoreMiss = 0,
             textureHit = 0, textureMiss = 0;
  };
  struct alignas(64) SliceCounts {
    uint64_t readHit = 0, readMiss = 0, writeHit = 0, writeMiss = 0, atomic = 0, dramRead = 0, dramWrite = 0;
  };
  uint64_t filled(uint64_t missing) const;

  model::Cache l1_, l2_;
  uint32_t smCount_, slices_;
  std::vector<SectoredCache> l1Tags_, l2Tags_;
  std::vector<L1Counts> l1Counts_;
  std::vector<SliceCounts> sliceCounts_;
};

}  // namespace sonde::softgpu::exec
