// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>

#include "softgpu/exec/cta.h"
#include "softgpu/exec/fault_text.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/program_impl.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::exec {

namespace {

using memory::Allocation;
using memory::Allocator;

// --- reports ---

struct Reports {
  std::mutex mutex;
  std::set<std::tuple<const void*, int, uint64_t, uint64_t>> told;
};
Reports& reports() {
  static auto* r = new Reports;
  return *r;
}

// The first finding of this kind for these instructions?
bool isNews(const WarpState& warp, int kind, uint64_t one, uint64_t other) {
  std::lock_guard lock(reports().mutex);
  return reports().told.emplace(warp.cta->grid->program, kind, one, other).second;
}

std::string place(const WarpState& warp, uint64_t position) {
  Fault at;
  warp.cta->grid->program->locate(position, at);
  std::string text = fmt::format("PTX line {}", at.pos.line);
  if (!at.file.empty()) text += fmt::format(" ({}:{})", at.file, at.fileLine);
  return text;
}

std::string threadName(const WarpState& warp, uint32_t linear) {
  const WarpState& w = warp.cta->states[linear / kLanes];
  const uint32_t l = linear % kLanes;
  return fmt::format("thread ({},{},{})", w.tid[0][l], w.tid[1][l], w.tid[2][l]);
}

std::string blockName(const WarpState& warp) {
  const GridRun& grid = *warp.cta->grid;
  return fmt::format("kernel '{}', block ({},{},{})", shownName(grid.program->kernels()[grid.request->kernel].name),
                     warp.ctaid[0], warp.ctaid[1], warp.ctaid[2]);
}

void tell(const std::string& text) { std::fprintf(stderr, "sonde: %s\n", text.c_str()); }

// --- what has been written ---

struct InitShadow {
  std::mutex mutex;
  std::map<uint64_t, std::vector<bool>> written;  // by allocation id: a bit for each byte
};
InitShadow& shadow() {
  static auto* s = new InitShadow;
  return *s;
}

// Memory of the program that only the device and copies can write.
bool followed(const Allocation& a) { return a.kind == memory::Kind::device && a.contextUid != 0; }

std::vector<bool>& bitsOf(const Allocation& a) {  // under the lock
  auto& bits = shadow().written[a.id];
  if (bits.size() < a.bytes) bits.resize(a.bytes, false);
  return bits;
}

void markWritten(const Allocation& a, uint64_t address, uint64_t bytes) {
  const uint64_t first = address - a.address, end = std::min(first + bytes, a.bytes);
  std::lock_guard lock(shadow().mutex);
  auto& bits = bitsOf(a);
  for (uint64_t i = first; i < end; ++i) bits[i] = true;
}

bool isWritten(const Allocation& a, uint64_t address, uint64_t bytes) {
  const uint64_t first = address - a.address, end = std::min(first + bytes, a.bytes);
  std::lock_guard lock(shadow().mutex);
  const auto& bits = bitsOf(a);
  for (uint64_t i = first; i < end; ++i)
    if (!bits[i]) return false;
  return true;
}

// --- global memory ---

void checkGlobal(WarpState* w, const uint64_t* addresses, uint32_t mask, CheckedAccess kind, uint32_t bytes) {
  std::optional<Allocation> a;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const uint64_t address = addresses[l];
    const auto inside = [&](uint64_t base, uint64_t size) { return address - base < size; };
    if (inside(w->sharedWindowBase, w->sharedWindowSize) || inside(w->localWindowBase, w->localWindowSize)) continue;
    if ((bytes & (bytes - 1)) == 0 && address % bytes) continue;  // misaligned: the access itself says so
    if (!a || !a->contains(address, bytes)) a = Allocator::get().find(address);
    if (checks().memory && (!a || !a->contains(address, bytes))) {
      {
        const std::string text =
            fmt::format("{} {} bytes, {}, at",
                        kind == CheckedAccess::read    ? "a read of"
                        : kind == CheckedAccess::write ? "a write of"
                                                       : "an atomic operation on",
                        bytes,
                        a ? fmt::format("across the end of an allocation of {} bytes at 0x{:x}", a->bytes, a->address)
                          : whereIs(address));
        recordFault(*w->cta->grid, *w, kErrorIllegalAddress, 1u << l, address, text.c_str());
      }
      leaveWarp(w);  // a jump: nothing here may own anything any more
    }
    if (!checks().init || !a || !followed(*a)) continue;
    if (kind != CheckedAccess::write && !isWritten(*a, address, bytes) && isNews(*w, 0, w->position, 0))
      tell(fmt::format(
          "uninitialized memory: {}, {} reads {} bytes at 0x{:x} (byte {} of an allocation of {}) that nothing "
          "has written: {}",
          blockName(*w), threadName(*w, w->warpid * kLanes + l), bytes, address, address - a->address, a->bytes,
          place(*w, w->position)));
    if (kind != CheckedAccess::read) markWritten(*a, address, bytes);
  }
}

// --- shared memory ---

void race(WarpState* w, const char* now, uint32_t thread, const char* before, uint32_t other, uint64_t otherAt,
          uint64_t offset) {
  if (!isNews(*w, 1, std::min(w->position, otherAt), std::max(w->position, otherAt))) return;
  tell(fmt::format("race in shared memory: {}: {} {} byte {} at {}, which {} {} at {}, without a barrier between them",
                   blockName(*w), threadName(*w, thread), now, offset, place(*w, w->position), threadName(*w, other),
                   before, place(*w, otherAt)));
}

void checkShared(WarpState* w, uint32_t lane, uint64_t offset, CheckedAccess kind, uint32_t bytes) {
  SharedShadow& s = *w->cta->shadow;
  const uint32_t thread = w->warpid * kLanes + lane, warp = w->warpid;
  for (uint64_t i = offset; i < offset + bytes && i < s.bytes.size(); ++i) {
    SharedShadow::Byte& b = s.bytes[i];
    // Is an earlier access ordered before this one?
    auto ordered = [&](uint16_t who, uint32_t epoch, uint32_t warpEpoch, uint64_t at) {
      if (who == 0 || epoch != s.epoch || who == thread + 1) return true;
      if ((who - 1u) / kLanes != warp) return false;
      return warpEpoch != s.warpEpoch[warp] || at == w->position;  // lanes of one instruction
    };
    const bool bothAtomic = b.atomic && kind == CheckedAccess::atomic;
    if (!bothAtomic && !ordered(b.writer, b.writeEpoch, b.writeWarpEpoch, b.writeAt))
      race(w, kind == CheckedAccess::read ? "reads" : "writes", thread, "wrote", b.writer - 1u, b.writeAt, i);
    if (kind != CheckedAccess::read && !(kind == CheckedAccess::atomic && b.atomic) &&
        !ordered(b.reader, b.readEpoch, b.readWarpEpoch, b.readAt))
      race(w, "writes", thread, "read", b.reader - 1u, b.readAt, i);
    if (kind == CheckedAccess::read) {
      // A reader of another thread is worth more than this one's own.
      if (b.readEpoch != s.epoch || b.reader == 0 || (b.reader - 1u) / kLanes == warp) {
        b.reader = static_cast<uint16_t>(thread + 1);
        b.readEpoch = s.epoch;
        b.readWarpEpoch = s.warpEpoch[warp];
        b.readAt = w->position;
      }
    } else {
      b.writer = static_cast<uint16_t>(thread + 1);
      b.writeEpoch = s.epoch;
      b.writeWarpEpoch = s.warpEpoch[warp];
      b.writeAt = w->position;
      b.atomic = kind == CheckedAccess::atomic;
    }
  }
}

// Called by compiled code before an access. Addresses: as the space has them.
void check(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t word) {
  const uint32_t space = word & 15, bytes = word >> 8;
  const auto kind = static_cast<CheckedAccess>(word >> 4 & 15);
  if (checks().race && w->cta->shadow) {
    for (uint32_t m = mask; m; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      const uint64_t offset = space == 1 ? static_cast<uint32_t>(addresses[l]) : addresses[l] - w->sharedBase;
      if (space != 2 && offset < w->totalSharedBytes) checkShared(w, l, offset, kind, bytes);
    }
  }
  if (space == 0 && (checks().memory || checks().init)) checkGlobal(w, addresses, mask, kind, bytes);
}

// A barrier of `count` threads (0: all) is reached by `lanes`; `live`: lanes that have not left.
void checkBarrier(WarpState* w, uint32_t lanes, uint32_t live, uint32_t count) {
  if (!checks().sync || (count != 0 && count < w->cta->grid->threadsPerBlock)) return;
  const uint32_t missing = live & ~lanes;
  if (!missing || !isNews(*w, 3, w->position, 0)) return;
  const auto l = static_cast<uint32_t>(__builtin_ctz(missing));
  tell(fmt::format("barrier error: {}: {} of {} threads of warp {} reach the barrier at {}; {} is elsewhere",
                   blockName(*w), __builtin_popcount(lanes), __builtin_popcount(live), w->warpid,
                   place(*w, w->position), threadName(*w, w->warpid * kLanes + l)));
}

// bar.warp.sync by `mask`; members: what each lane names.
void checkSyncwarp(WarpState* w, const uint32_t* members, uint32_t mask) {
  if (w->cta->shadow) ++w->cta->shadow->warpEpoch[w->warpid];
  if (!checks().sync) return;
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const bool absent = (members[l] >> l & 1) == 0;
    if (!absent) continue;
    if (isNews(*w, 2, w->position, 0))
      tell(fmt::format("barrier error: {}, {} calls __syncwarp with the mask 0x{:08x}, which does not name it: {}",
                       blockName(*w), threadName(*w, w->warpid * kLanes + l), members[l], place(*w, w->position)));
  }
}

}  // namespace

void SharedShadow::begin(uint64_t sharedBytes) {
  if (bytes.size() < sharedBytes) bytes.resize(sharedBytes);
  ++epoch;
}

void noteWritten(uint64_t address, uint64_t bytes) {
  if (!checks().init) return;
  const auto a = Allocator::get().find(address);
  if (a && followed(*a)) markWritten(*a, address, bytes);
}

std::span<const jit::RuntimeSymbol> checkHelpers() {
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_check", reinterpret_cast<void*>(&check)},
      {"sonde_check_barrier", reinterpret_cast<void*>(&checkBarrier)},
      {"sonde_check_syncwarp", reinterpret_cast<void*>(&checkSyncwarp)},
  };
  return symbols;
}

}  // namespace sonde::softgpu::exec
