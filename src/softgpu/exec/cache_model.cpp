// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/cache_model.h"

#include <algorithm>
#include <cstring>

#include "softgpu/exec/counters.h"

namespace sonde::softgpu::exec {

namespace {

constexpr uint64_t kMaxEpoch = 0xffff;

// What L1 asks of L2, in the place of a CacheAccess.
enum class L2Access : uint8_t { read, write, atomic, hostRead, hostWrite, hostAtomic };
uint64_t l2Entry(uint64_t line, L2Access kind, uint64_t sectors) {
  return line << 8 | uint64_t{static_cast<uint8_t>(kind)} << 4 | sectors;
}

uint64_t count(uint64_t sectors) { return static_cast<uint64_t>(__builtin_popcountll(sectors)); }

// One thread writes, others may look.
void bump(uint64_t& value, uint64_t by) {
  if (by) __atomic_store_n(&value, value + by, __ATOMIC_RELAXED);
}
uint64_t peek(const uint64_t& value) { return __atomic_load_n(&value, __ATOMIC_RELAXED); }

uint64_t setsOf(const model::Cache& c, uint32_t parts) {
  return c.bytes / std::max(1u, parts) / std::max(1u, c.lineBytes) / std::max(1u, c.ways);
}

}  // namespace

void SectoredCache::reset() {
  if (++epoch_ <= kMaxEpoch) return;
  std::fill(tags_.begin(), tags_.end(), 0);
  epoch_ = 1;
}

uint64_t* SectoredCache::find(uint64_t set, uint64_t line) {
  uint64_t* way = tags_.data() + set * ways_;
  const uint64_t wanted = key(line);
  if (way[0] >> 8 == wanted) return way;
  for (uint32_t i = 1; i < ways_; ++i) {
    if (way[i] >> 8 != wanted) continue;
    const uint64_t found = way[i];
    std::memmove(way + 1, way, i * sizeof *way);
    way[0] = found;
    return way;
  }
  return nullptr;
}

uint64_t* SectoredCache::insert(uint64_t set, uint64_t line, uint64_t* gone, uint64_t* dirty) {
  uint64_t* way = tags_.data() + set * ways_;
  const uint64_t last = way[ways_ - 1];
  const bool used = last >> (8 + kLineBits) == epoch_;
  *dirty = used ? last >> 4 & 15 : 0;
  *gone = last >> 8 & ((uint64_t{1} << kLineBits) - 1);
  std::memmove(way + 1, way, (ways_ - 1) * sizeof *way);
  way[0] = key(line) << 8;
  return way;
}

CacheModel::CacheModel(const model::DeviceModel& device)
    : l1_(device.l1), l2_(device.l2), smCount_(std::max(1u, device.smCount)), slices_(std::max(1u, device.l2.slices)) {
  l1Tags_.assign(smCount_, SectoredCache(setsOf(l1_, 1), std::max(1u, l1_.ways)));
  l2Tags_.assign(slices_, SectoredCache(setsOf(l2_, slices_), std::max(1u, l2_.ways)));
  l1Counts_.resize(smCount_);
  sliceCounts_.resize(slices_);
}

bool CacheModel::fits(const model::DeviceModel& d) const {
  auto same = [](const model::Cache& a, const model::Cache& b) {
    return a.bytes == b.bytes && a.lineBytes == b.lineBytes && a.sectorBytes == b.sectorBytes && a.ways == b.ways &&
           a.slices == b.slices;
  };
  return smCount_ == std::max(1u, d.smCount) && same(l1_, d.l1) && same(l2_, d.l2);
}

void CacheModel::reset() {
  for (SectoredCache& c : l1Tags_) c.reset();
  for (SectoredCache& c : l2Tags_) c.reset();
  std::fill(l1Counts_.begin(), l1Counts_.end(), L1Counts{});
  std::fill(sliceCounts_.begin(), sliceCounts_.end(), SliceCounts{});
}

// A cache with sectors above 32 bytes fetches all of them that belong together.
uint64_t CacheModel::filled(uint64_t missing) const {
  if (l1_.sectorBytes >= 128) return missing ? 15 : 0;
  if (l1_.sectorBytes == 64) return ((missing & 3) ? 3u : 0u) | ((missing & 12) ? 12u : 0u);
  return missing;
}

void CacheModel::throughL1(uint32_t sm, const uint64_t* entries, size_t n, std::vector<uint64_t>* toL2,
                           uint32_t groups) {
  SectoredCache& tags = l1Tags_[sm];
  L1Counts& counts = l1Counts_[sm];
  const uint64_t sets = tags.sets();
  L1Counts sum;
  auto send = [&](uint64_t line, L2Access kind, uint64_t sectors) {
    if (sectors) toL2[groups == 1 ? 0 : sliceOf(line) % groups].push_back(l2Entry(line, kind, sectors));
  };
  // The line's way, made when it is not there; what had to go is written back.
  auto place = [&](uint64_t line) {
    const uint64_t set = line % sets;
    uint64_t* way = tags.find(set, line);
    if (way) return way;
    uint64_t gone = 0, dirty = 0;
    way = tags.insert(set, line, &gone, &dirty);
    send(gone, L2Access::write, dirty);
    return way;
  };
  for (size_t i = 0; i < n; ++i) {
    const uint64_t line = entries[i] >> 8, sectors = entries[i] & 15;
    const auto kind = static_cast<CacheAccess>(entries[i] >> 4 & 15);
    switch (kind) {
      case CacheAccess::globalLoad:
      case CacheAccess::textureLoad:
      case CacheAccess::localLoad: {
        uint64_t missing = sectors, fetched = sectors;
        if (sets) {
          uint64_t* way = place(line);
          missing = sectors & ~*way;
          fetched = filled(missing) & ~*way;
          *way |= fetched;
        }
        send(line, L2Access::read, fetched);
        const bool global = kind == CacheAccess::globalLoad, texture = kind == CacheAccess::textureLoad;
        (global ? sum.globalHit : texture ? sum.textureHit : sum.localLoadHit) += count(sectors & ~missing);
        (global ? sum.globalMiss : texture ? sum.textureMiss : sum.localLoadMiss) += count(missing);
        break;
      }
      case CacheAccess::localStore: {
        uint64_t present = 0;
        if (sets) {
          uint64_t* way = place(line);
          present = sectors & *way;
          *way |= sectors | sectors << 4;
        } else {
          send(line, L2Access::write, sectors);
        }
        sum.localStoreHit += count(present);
        sum.localStoreMiss += count(sectors & ~present);
        break;
      }
      case CacheAccess::globalLoadAtL2:
        sum.globalMiss += count(sectors);
        send(line, L2Access::read, sectors);
        break;
      case CacheAccess::globalStore: send(line, L2Access::write, sectors); break;
      case CacheAccess::atomic:
        if (sets)
          if (uint64_t* way = tags.find(line % sets, line)) *way &= ~sectors;
        send(line, L2Access::atomic, sectors);
        break;
      case CacheAccess::hostLoad:
        sum.globalMiss += count(sectors);
        send(line, L2Access::hostRead, sectors);
        break;
      case CacheAccess::hostStore: send(line, L2Access::hostWrite, sectors); break;
      case CacheAccess::hostAtomic: send(line, L2Access::hostAtomic, sectors); break;
    }
  }
  bump(counts.globalHit, sum.globalHit);
  bump(counts.globalMiss, sum.globalMiss);
  bump(counts.localLoadHit, sum.localLoadHit);
  bump(counts.localLoadMiss, sum.localLoadMiss);
  bump(counts.localStoreHit, sum.localStoreHit);
  bump(counts.localStoreMiss, sum.localStoreMiss);
  bump(counts.textureHit, sum.textureHit);
  bump(counts.textureMiss, sum.textureMiss);
}

void CacheModel::throughL2(const uint64_t* entries, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const uint64_t line = entries[i] >> 8, sectors = entries[i] & 15;
    const auto kind = static_cast<L2Access>(entries[i] >> 4 & 15);
    const uint32_t slice = sliceOf(line);
    SliceCounts& counts = sliceCounts_[slice];
    if (kind == L2Access::atomic || kind == L2Access::hostAtomic) bump(counts.atomic, count(sectors));
    if (kind >= L2Access::hostRead) {
      bump(kind == L2Access::hostWrite ? counts.writeMiss : counts.readMiss, count(sectors));
      continue;
    }
    SectoredCache& tags = l2Tags_[slice];
    uint64_t present = 0, dirty = 0;
    if (tags.sets()) {
      const uint64_t set = line / slices_ % tags.sets();
      uint64_t* way = tags.find(set, line);
      if (!way) {
        uint64_t gone = 0;
        way = tags.insert(set, line, &gone, &dirty);
      }
      present = sectors & *way;
      *way |= sectors;
      if (kind != L2Access::read) *way |= sectors << 4;
    } else if (kind != L2Access::read) {
      dirty = sectors;
    }
    const uint64_t missing = sectors & ~present;
    if (kind == L2Access::write) {
      bump(counts.writeHit, count(present));
      bump(counts.writeMiss, count(missing));
    } else {
      bump(counts.readHit, count(present));
      bump(counts.readMiss, count(missing));
      bump(counts.dramRead, count(missing));
    }
    bump(counts.dramWrite, count(dirty));
  }
}

void CacheModel::addTo(uint64_t* values) const {
  auto add = [&](uint32_t instance, RawCounter counter, uint64_t n) {
    values[size_t{instance} * kRawCounterCount + static_cast<uint32_t>(counter)] += n;
  };
  using enum RawCounter;
  for (uint32_t sm = 0; sm < smCount_; ++sm) {
    const L1Counts& c = l1Counts_[sm];
    add(sm, l1_global_load_hit, peek(c.globalHit));
    add(sm, l1_global_load_miss, peek(c.globalMiss));
    add(sm, l1_local_load_hit, peek(c.localLoadHit));
    add(sm, l1_local_load_miss, peek(c.localLoadMiss));
    add(sm, l1_local_store_hit, peek(c.localStoreHit));
    add(sm, l1_local_store_miss, peek(c.localStoreMiss));
    add(sm, tex_hit, peek(c.textureHit));
    add(sm, tex_miss, peek(c.textureMiss));
  }
  for (uint32_t slice = 0; slice < slices_; ++slice) {
    const SliceCounts& c = sliceCounts_[slice];
    const uint64_t readHit = peek(c.readHit), readMiss = peek(c.readMiss), writeHit = peek(c.writeHit),
                   writeMiss = peek(c.writeMiss);
    add(slice, l2_read_sector_queries, readHit + readMiss);
    add(slice, l2_read_sector_hits, readHit);
    add(slice, l2_read_sector_misses, readMiss);
    add(slice, l2_write_sector_queries, writeHit + writeMiss);
    add(slice, l2_write_sector_hits, writeHit);
    add(slice, l2_write_sector_misses, writeMiss);
    add(slice, l2_atomic_queries, peek(c.atomic));
    add(slice, dram_read_sectors, peek(c.dramRead));
    add(slice, dram_write_sectors, peek(c.dramWrite));
  }
}

}  // namespace sonde::softgpu::exec
