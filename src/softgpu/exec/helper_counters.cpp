// SPDX-License-Identifier: Apache-2.0
//
// Sectors, lines and wavefronts of scattered accesses.
#include <algorithm>

#include "softgpu/exec/cta.h"
#include "softgpu/exec/distinct.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/mma_layout.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/counter_plan.h"

namespace sonde::softgpu::exec {

namespace {

enum Kind : uint32_t { kLoad = 0, kStore = 1, kAtom = 2, kRed = 3 };

struct Banks {
  uint32_t wavefronts = 0, groups = 0;
};

// Passes over the 32 banks of 4 bytes. 8-byte accesses go by half, 16-byte ones
// by quarter warp.
Banks passes(const uint64_t* address, uint32_t mask, uint32_t bytes) {
  Banks result;
  const uint32_t perGroup = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  const uint32_t words = bytes <= 4 ? 1 : bytes / 4;
  for (uint32_t begin = 0; begin < kLanes; begin += perGroup) {
    const uint32_t group = perGroup == 32 ? mask : mask >> begin & ((1u << perGroup) - 1);
    if (!group) continue;
    uint32_t used = 0;  // banks with a word
    uint8_t count[32];
    uint64_t word[32][32];  // distinct words of each bank
    uint32_t most = 1;
    for (uint32_t m = group; m; m &= m - 1) {
      const uint64_t a = address[begin + static_cast<uint32_t>(__builtin_ctz(m))] >> 2;
      for (uint32_t i = 0; i < words; ++i) {
        const uint64_t w = a + i;
        const auto bank = static_cast<uint32_t>(w & 31);
        if (!(used >> bank & 1)) {
          used |= 1u << bank;
          count[bank] = 1;
          word[bank][0] = w;
          continue;
        }
        bool seen = false;
        for (uint32_t k = 0; k < count[bank] && !seen; ++k) seen = word[bank][k] == w;
        if (seen) continue;
        word[bank][count[bank]++] = w;
        most = std::max<uint32_t>(most, count[bank]);
      }
    }
    result.wavefronts += most;
    result.groups += 1;
  }
  return result;
}

// --- the cache model's log ---

void logLine(WarpState* w, uint64_t line, CacheAccess kind, uint64_t sectors) {
  std::vector<uint64_t>& log = w->cacheLog->entries;
  if (log.size() >= CacheRun::kFullLog) w->cta->grid->caches->flush(w->cta->block, *w->cacheLog);
  log.push_back(cacheEntry(line, kind, sectors));
}

// kAtom and kRed are atomics; atL2: a load that must not be served by L1.
CacheAccess globalAccess(uint32_t kind, bool atL2) {
  return kind == kStore  ? CacheAccess::globalStore
         : kind != kLoad ? CacheAccess::atomic
         : atL2          ? CacheAccess::globalLoadAtL2
                         : CacheAccess::globalLoad;
}

// Sectors of a line of the address space. Shared and local memory below global
// memory are not cached here; host memory outside the window keeps its place in
// a page, which is the same on every run.
void logGlobal(WarpState* w, uint64_t addressLine, CacheAccess kind, uint64_t sectors) {
  const uint64_t line = addressLine - (w->windowBase >> 7);
  if (line < w->windowSize >> 7) {
    if (addressLine << 7 >= w->localWindowBase + w->localWindowSize) logLine(w, line, kind, sectors);
    return;
  }
  logLine(w, addressLine & 31,
          kind == CacheAccess::globalStore ? CacheAccess::hostStore
          : kind == CacheAccess::atomic    ? CacheAccess::hostAtomic
                                           : CacheAccess::hostLoad,
          sectors);
}

// Two runs of `span` + 1 bytes, in whole sectors; both may be the same.
void cacheRows(WarpState* w, uint64_t low, uint64_t high, uint32_t span, uint32_t what) {
  const CacheAccess kind = globalAccess(what >> 4 & 3, what >> 7 & 1);
  uint64_t last = 0, sectors = 0;
  auto run = [&](uint64_t from) {
    const uint64_t end = (from + span) >> 5;
    for (uint64_t s = from >> 5; s <= end;) {
      const uint64_t line = s >> 2, upTo = std::min(end, line * 4 + 3);
      const uint64_t mask = (uint64_t{2} << (upTo & 3)) - (uint64_t{1} << (s & 3));
      if (sectors && line != last) {
        logGlobal(w, last, kind, sectors);
        sectors = 0;
      }
      last = line;
      sectors |= mask;
      s = upTo + 1;
    }
  };
  run(low);
  if (high != low) run(high);
  if (sectors) logGlobal(w, last, kind, sectors);
}

// Each line of a warp's access once, in the order of the lanes. An aligned
// access of up to 32 bytes lies in one sector.
void cacheLanes(WarpState* w, const uint64_t* lanes, uint32_t n, CacheAccess kind) {
  uint64_t line[kLanes];
  uint8_t sectors[kLanes];
  uint32_t lines = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const uint64_t at = lanes[i] >> 7;
    const auto mask = static_cast<uint8_t>(1u << (lanes[i] >> 5 & 3));
    uint32_t k = lines;
    while (k > 0 && line[k - 1] != at) --k;
    if (k > 0) {
      sectors[k - 1] |= mask;
    } else {
      line[lines] = at;
      sectors[lines++] = mask;
    }
  }
  for (uint32_t i = 0; i < lines; ++i) logGlobal(w, line[i], kind, sectors[i]);
}

void add(WarpState* w, RawCounter c, uint64_t n) { addCount(w->counters, c, n); }

// Source-level variant: the access's own slots. base 0: there are none.
void addToAccess(WarpState* w, uint32_t base, uint32_t which, uint64_t n) {
  if (!base) return;
  uint64_t& value = w->counters[base + which];
  __atomic_store_n(&value, value + n, __ATOMIC_RELAXED);
}

void countGlobal(WarpState* w, const uint64_t* lanes, uint32_t n, uint32_t kind, bool atL2, uint32_t bytes,
                 uint32_t base) {
  if (w->cacheLog) cacheLanes(w, lanes, n, globalAccess(kind, atL2));
  const Distinct different = countDistinct(lanes, n);
  const uint32_t sectors = different.sectors;
  if (base) {
    addToAccess(w, base, jit::kGlobalTransactions, sectors);
    addToAccess(w, base, jit::kGlobalIdeal, (different.addresses * bytes + 31) / 32);
  }
  switch (kind) {
    case kLoad:
      add(w, RawCounter::global_load_sectors, sectors);
      add(w, RawCounter::global_load_lines, different.lines);
      return;
    case kStore:
      add(w, RawCounter::global_store_sectors, sectors);
      add(w, RawCounter::global_store_lines, different.lines);
      return;
    case kAtom: add(w, RawCounter::global_atom_sectors, sectors); return;
    default: add(w, RawCounter::global_red_sectors, sectors); return;
  }
}

void countShared(WarpState* w, const uint64_t* address, uint32_t mask, uint32_t bytes, uint32_t kind, uint32_t base) {
  if (kind >= kAtom && !base) return;
  const Banks b = passes(address, mask, bytes);
  addToAccess(w, base, jit::kSharedTransactions, b.wavefronts);
  addToAccess(w, base, jit::kSharedIdeal, b.groups);
  if (kind >= kAtom) return;
  add(w, kind == kLoad ? RawCounter::shared_load_wavefronts : RawCounter::shared_store_wavefronts, b.wavefronts);
  add(w, kind == kLoad ? RawCounter::shared_load_bank_conflicts : RawCounter::shared_store_bank_conflicts,
      b.wavefronts - b.groups);
}

// On hardware the words of the 32 lanes lie side by side: word i of lane l at
// (32 i + l) * 4.
void countLocal(WarpState* w, const uint64_t* offset, uint32_t mask, uint32_t bytes, uint32_t kind) {
  uint64_t sector[kLanes * 8];
  uint32_t n = 0;
  const uint32_t words = std::max(1u, bytes / 4);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    for (uint32_t i = 0; i < words; ++i) sector[n++] = (offset[l] / 4 + i) * 4 + l / 8;
  }
  std::sort(sector, sector + n);
  const auto count = static_cast<uint64_t>(std::unique(sector, sector + n) - sector);
  if (w->cacheLog) {
    // Parameters have addresses there too; they are not local memory.
    const CacheAccess access = kind == kStore ? CacheAccess::localStore : CacheAccess::localLoad;
    for (uint64_t i = 0; i < count;) {
      const uint64_t line = sector[i] >> 2;
      uint64_t sectors = 0;
      for (; i < count && sector[i] >> 2 == line; ++i) sectors |= 1u << (sector[i] & 3);
      if (line < w->localStride / 4) logLine(w, w->localLine + line, access, sectors);
    }
  }
  add(w, kind == kStore ? RawCounter::local_store_sectors : RawCounter::local_load_sectors, count);
}

RawCounter sizeClass(uint32_t kind, uint64_t bytesOfALane) {
  const uint32_t log = bytesOfALane <= 1   ? 0
                       : bytesOfALane <= 2 ? 1
                       : bytesOfALane <= 4 ? 2
                       : bytesOfALane <= 8 ? 3
                                           : 4;
  return static_cast<RawCounter>(
      static_cast<uint32_t>(kind == kLoad ? RawCounter::gld_inst_8bit : RawCounter::gst_inst_8bit) + log);
}

// what: space | kind << 4 | generic << 6 | atL2 << 7 | bytes << 8. Requests of accesses
// with a space of their own are counted by the code; generic ones here. base: the
// first of the instruction's own slots (jit::AccessSlot).
void countAccess(WarpState* w, const uint64_t* address, uint32_t mask, uint32_t what, uint32_t base) {
  const uint32_t space = what & 15, kind = what >> 4 & 3, bytes = what >> 8;
  const bool generic = what >> 6 & 1, atL2 = what >> 7 & 1;
  if (!mask) return;
  if (space == 1) {
    countShared(w, address, mask, bytes, kind, base);
    return;
  }
  if (space == 2) {
    countLocal(w, address, mask, bytes, kind);
    return;
  }
  if (!generic && mask == ~0u) {
    countGlobal(w, address, kLanes, kind, atL2, bytes, base);
    return;
  }
  uint64_t lanes[kLanes];
  if (!generic) {
    uint32_t n = 0;
    for (uint32_t m = mask; m; m &= m - 1) lanes[n++] = address[__builtin_ctz(m)];
    countGlobal(w, lanes, n, kind, atL2, bytes, base);
    return;
  }
  // Each space that is hit makes a request of its own.
  uint32_t shared = 0, local = 0;
  uint64_t offset[kLanes];
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    if (address[l] - w->sharedWindowBase < w->sharedWindowSize) {
      shared |= 1u << l;
      offset[l] = address[l] - w->sharedBase;
    } else if (address[l] - w->localWindowBase < w->localWindowSize) {
      local |= 1u << l;
      offset[l] = address[l] - w->localBase - l * w->localStride;
    }
  }
  uint32_t n = 0;
  for (uint32_t m = mask & ~(shared | local); m; m &= m - 1) lanes[n++] = address[__builtin_ctz(m)];
  if (shared) {
    const auto threads = static_cast<uint64_t>(__builtin_popcount(shared));
    add(w,
        kind == kLoad    ? RawCounter::shared_load_requests
        : kind == kStore ? RawCounter::shared_store_requests
                         : RawCounter::shared_atom_requests,
        1);
    if (kind == kLoad) add(w, RawCounter::shared_load_bytes, threads * bytes);
    if (kind == kStore) add(w, RawCounter::shared_store_bytes, threads * bytes);
    addToAccess(w, base, jit::kSharedRequests, 1);
    addToAccess(w, base, jit::kSharedThreads, threads);
    countShared(w, offset, shared, bytes, kind, base);
  }
  if (local) {
    add(w, kind == kStore ? RawCounter::local_store_requests : RawCounter::local_load_requests, 1);
    countLocal(w, offset, local, bytes, kind);
  }
  if (!n) return;
  addToAccess(w, base, jit::kGlobalRequests, 1);
  addToAccess(w, base, jit::kGlobalThreads, n);
  if (kind == kAtom || kind == kRed) {
    add(w, kind == kAtom ? RawCounter::global_atom_requests : RawCounter::global_red_requests, 1);
    add(w, kind == kAtom ? RawCounter::global_atom_threads : RawCounter::global_red_threads, n);
  } else {
    add(w, kind == kLoad ? RawCounter::global_load_requests : RawCounter::global_store_requests, 1);
    add(w, kind == kLoad ? RawCounter::global_load_bytes : RawCounter::global_store_bytes, uint64_t{n} * bytes);
    add(w, sizeClass(kind, bytes), n);
  }
  countGlobal(w, lanes, n, kind, atL2, bytes, base);
}

// cp.async: a load from global memory, and a store to shared memory of the whole
// size, zeros included. what: bytes | atL2 << 8.
void countCopy(WarpState* w, const uint64_t* to, const uint64_t* from, uint32_t mask, uint32_t what,
               const uint32_t* valid, uint32_t base) {
  const uint32_t bytes = what & 255;
  uint64_t lanes[kLanes], read = 0;
  uint32_t n = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    if (valid[l] == 0) continue;
    lanes[n++] = from[l];
    read += std::min(valid[l], bytes);
  }
  if (n) {
    add(w, RawCounter::global_load_requests, 1);
    add(w, RawCounter::global_load_bytes, read);
    add(w, sizeClass(kLoad, bytes), n);
    addToAccess(w, base, jit::kGlobalRequests, 1);
    addToAccess(w, base, jit::kGlobalThreads, n);
    countGlobal(w, lanes, n, kLoad, what >> 8 & 1, bytes, base);
  }
  if (!mask) return;
  addToAccess(w, base, jit::kSharedRequests, 1);
  addToAccess(w, base, jit::kSharedThreads, static_cast<uint64_t>(__builtin_popcount(mask)));
  add(w, RawCounter::shared_store_requests, 1);
  add(w, RawCounter::shared_store_bytes, uint64_t{bytes} * static_cast<uint64_t>(__builtin_popcount(mask)));
  countShared(w, to, mask, bytes, kStore, base);
}

// An access of the whole warp to pieces of memory: one request; the passes over
// the banks, and the sectors, of the pieces in their order. space: 0 generic or
// global, 1 shared.
void countPieces(WarpState* w, uint64_t* piece, uint32_t n, uint32_t bytes, uint32_t space, uint32_t kind,
                 uint32_t base) {
  const uint64_t total = uint64_t{n} * bytes;
  if (space == 0 && piece[0] - w->sharedWindowBase < w->sharedWindowSize) {
    for (uint32_t i = 0; i < n; ++i) piece[i] -= w->sharedBase;
    space = 1;
  }
  if (space == 1) {
    add(w, kind == kLoad ? RawCounter::shared_load_requests : RawCounter::shared_store_requests, 1);
    add(w, kind == kLoad ? RawCounter::shared_load_bytes : RawCounter::shared_store_bytes, total);
    addToAccess(w, base, jit::kSharedRequests, 1);
    addToAccess(w, base, jit::kSharedThreads, kLanes);
    for (uint32_t i = 0; i < n; i += kLanes)
      countShared(w, piece + i, n - i >= kLanes ? ~0u : (1u << (n - i)) - 1, bytes, kind, base);
    return;
  }
  // A matrix in local memory is no request that any counter has.
  if (space != 0 || piece[0] - w->localWindowBase < w->localWindowSize) return;
  add(w, kind == kLoad ? RawCounter::global_load_requests : RawCounter::global_store_requests, 1);
  add(w, kind == kLoad ? RawCounter::global_load_bytes : RawCounter::global_store_bytes, total);
  add(w, sizeClass(kind, total / kLanes), kLanes);
  if (base) {
    std::sort(piece, piece + n);
    const auto different = static_cast<uint64_t>(std::unique(piece, piece + n) - piece);
    n = static_cast<uint32_t>(different);
    addToAccess(w, base, jit::kGlobalRequests, 1);
    addToAccess(w, base, jit::kGlobalThreads, kLanes);
    addToAccess(w, base, jit::kGlobalIdeal, (different * bytes + 31) / 32);
  }
  // Each sector once.
  for (uint32_t i = 0; i < n; ++i) piece[i] &= ~uint64_t{31};
  std::sort(piece, piece + n);
  n = static_cast<uint32_t>(std::unique(piece, piece + n) - piece);
  addToAccess(w, base, jit::kGlobalTransactions, n);
  uint64_t lines = 1;
  for (uint32_t i = 1; i < n; ++i) lines += piece[i] >> 7 != piece[i - 1] >> 7;
  add(w, kind == kLoad ? RawCounter::global_load_sectors : RawCounter::global_store_sectors, n);
  add(w, kind == kLoad ? RawCounter::global_load_lines : RawCounter::global_store_lines, lines);
  if (!w->cacheLog) return;
  for (uint32_t i = 0; i < n; i += kLanes)
    cacheLanes(w, piece + i, std::min<uint32_t>(n - i, kLanes), globalAccess(kind, false));
}

// ldmatrix, stmatrix: rows of 16 bytes, eight for each matrix. what: space | kind << 4 | matrices << 8.
void countRows(WarpState* w, const uint64_t* address, uint32_t what, uint32_t base) {
  uint64_t piece[kLanes];
  const uint32_t n = 8 * (what >> 8);
  std::copy_n(address, n, piece);
  countPieces(w, piece, n, 16, what & 15, what >> 4 & 3, base);
}

// wmma.load, wmma.store: the lines of the matrix in pieces of 16 bytes (a whole line, where it is shorter).
void countTile(WarpState* w, const MatrixJob* job, uint32_t partNumber, const uint64_t* address, uint32_t what,
               uint32_t stride, uint32_t base) {
  const auto part = static_cast<MatrixPart>(partNumber);
  const unsigned rows = part == MatrixPart::b ? job->k : job->m, columns = part == MatrixPart::a ? job->k : job->n;
  const unsigned lines = job->columnA ? columns : rows, length = job->columnA ? rows : columns;
  const unsigned bits = bitsOf(job->a), lineBytes = length * bits / 8, bytes = std::min(16u, lineBytes);
  constexpr uint32_t kMost = 256;  // a matrix has at most 32 x 32 elements of 32 bits
  uint64_t piece[kMost];
  uint32_t n = 0;
  for (unsigned line = 0; line < lines; ++line)
    for (unsigned at = 0; at < lineBytes && n < kMost; at += bytes)
      piece[n++] = address[0] + uint64_t{line} * stride * bits / 8 + at;
  if (n) countPieces(w, piece, n, bytes, what & 15, what >> 4 & 3, base);
}

}  // namespace

void countTexels(WarpState* w, uint64_t* addresses, uint32_t n) {
  for (uint32_t i = 0; i < n; ++i) addresses[i] >>= 5;
  std::sort(addresses, addresses + n);
  const auto sectors = static_cast<uint32_t>(std::unique(addresses, addresses + n) - addresses);
  add(w, RawCounter::tex_requests, 1);
  add(w, RawCounter::tex_sectors, sectors);
  if (!w->cacheLog) return;
  for (uint32_t i = 0; i < sectors;) {
    const uint64_t line = addresses[i] >> 2;
    uint64_t mask = 0;
    for (; i < sectors && addresses[i] >> 2 == line; ++i) mask |= uint64_t{1} << (addresses[i] & 3);
    logGlobal(w, line, CacheAccess::textureLoad, mask);
  }
}

std::span<const jit::RuntimeSymbol> counterHelpers() {
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_count_access", reinterpret_cast<void*>(&countAccess)},
      {"sonde_cache_rows", reinterpret_cast<void*>(&cacheRows)},
      {"sonde_count_copy", reinterpret_cast<void*>(&countCopy)},
      {"sonde_count_rows", reinterpret_cast<void*>(&countRows)},
      {"sonde_count_tile", reinterpret_cast<void*>(&countTile)},
  };
  return symbols;
}

}  // namespace sonde::softgpu::exec
