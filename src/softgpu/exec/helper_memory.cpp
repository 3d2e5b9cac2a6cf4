// SPDX-License-Identifier: Apache-2.0
//
// What compiled code calls for memory accesses that have no fast path: lanes
// one by one, with every check.
#include "softgpu/exec/helpers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstring>

#include "ptx/types.h"
#include "softgpu/exec/atomic_ops.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/half_float.h"

namespace sonde::softgpu::exec {

namespace {

struct Access {
  uint32_t space, bytes, count;
  explicit Access(uint32_t description)
      : space(description & 15), bytes(1u << (description >> 4 & 15)), count(description >> 8) {}
};

SONDE_DEVICE_CODE void copyElement(void* to, const void* from, uint32_t bytes) {
  switch (bytes) {
    case 1: *static_cast<volatile uint8_t*>(to) = *static_cast<const volatile uint8_t*>(from); return;
    case 2: *static_cast<volatile uint16_t*>(to) = *static_cast<const volatile uint16_t*>(from); return;
    case 4: *static_cast<volatile uint32_t*>(to) = *static_cast<const volatile uint32_t*>(from); return;
    case 8: *static_cast<volatile uint64_t*>(to) = *static_cast<const volatile uint64_t*>(from); return;
#if defined(__x86_64__)
    case 16:  // at once, on every processor with AVX
      if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0) {
        *static_cast<volatile __m128i*>(to) = *static_cast<const volatile __m128i*>(from);
        return;
      }
      [[fallthrough]];
#endif
    default:
      for (uint32_t i = 0; i < bytes; ++i)
        static_cast<volatile uint8_t*>(to)[i] = static_cast<const volatile uint8_t*>(from)[i];
  }
}

}  // namespace

SONDE_DEVICE_CODE void* resolveLane(WarpState* w, uint32_t space, uint64_t address, uint32_t bytes, uint32_t lane,
                                    bool write) {
  const uint32_t only = 1u << lane;
  if (space == 1) {
    // An address of the cluster's shared memory that is the block's own.
    if (static_cast<uint32_t>(address) >> 24 == w->clusterRank + 1) address &= 0xffffff;
    const uint64_t generic = w->sharedBase + static_cast<uint32_t>(address);
    if (address % bytes)
      raiseFault(w, kErrorMisalignedAddress, only, generic, write ? "a misaligned write to" : "a misaligned read of");
    if (address + bytes > w->totalSharedBytes || address > w->totalSharedBytes)
      raiseFault(
          w, kErrorIllegalAddress, only, generic,
          write ? "a write beyond the block's shared memory, to" : "a read beyond the block's shared memory, of");
    return reinterpret_cast<void*>(generic + w->deviceDelta);
  }
  if (space == 2) {
    const uint64_t generic = w->localBase + lane * w->localStride + address;
    if (address % bytes)
      raiseFault(w, kErrorMisalignedAddress, only, generic, write ? "a misaligned write to" : "a misaligned read of");
    if (address + bytes > w->localLimit || address > w->localLimit)
      raiseFault(
          w, kErrorIllegalAddress, only, generic,
          write ? "a write beyond the thread's local memory, to" : "a read beyond the thread's local memory, of");
    return reinterpret_cast<void*>(generic + w->deviceDelta);
  }
  if (address % bytes)
    raiseFault(w, kErrorMisalignedAddress, only, address, write ? "a misaligned write to" : "a misaligned read of");
  if (address - w->windowBase < w->windowSize && bytes <= w->windowSize - (address - w->windowBase))
    return reinterpret_cast<void*>(address + w->deviceDelta);
  const auto& allowed = w->cta->grid->request->hostAddressAllowed;
  if (allowed && allowed(address, bytes)) return reinterpret_cast<void*>(address);
  if (address >> 32 == 0xffffffff)
    raiseFault(w, kErrorIllegalAddress, only, address & 0xffffffff,
               write ? "a write beyond the shared memory of a block of the cluster, to shared::cluster address"
                     : "a read beyond the shared memory of a block of the cluster, of shared::cluster address");
  raiseFault(w, kErrorIllegalAddress, only, address, write ? kWriteTo : kReadOf);
}

namespace {

SONDE_DEVICE_CODE void loadLanes(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t description,
                                 void* out) {
  const Access a(description);
  auto* to = static_cast<uint8_t*>(out);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    const auto* from = static_cast<const uint8_t*>(resolveLane(w, a.space, addresses[l], a.bytes * a.count, l, false));
    for (uint32_t i = 0; i < a.count; ++i) copyElement(to + (i * kLanes + l) * a.bytes, from + i * a.bytes, a.bytes);
  }
}

#if defined(__x86_64__)
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 says it of its own intrinsics
#endif
#define SONDE_AVX512 \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq"), no_sanitize("address", "thread", "undefined")))

// Where a shared or generic access of the lanes lies, and which lanes (a mask)
// leave their space or are misaligned.
struct Row512 {
  __m512i at[4];
  uint32_t bad = 0;
};

SONDE_AVX512 inline Row512 locate512(const WarpState* w, const uint64_t* addresses, const Access& a) {
  Row512 row;
  const auto shift = static_cast<unsigned>(__builtin_ctz(a.bytes * a.count));
  const bool shared = a.space == 1;
  const __m512i base = _mm512_set1_epi64(static_cast<int64_t>(shared ? 0 : w->windowBase));
  const __m512i limit =
      _mm512_set1_epi64(static_cast<int64_t>((shared ? w->totalSharedBytes : w->windowSize) >> shift));
  const __m512i move = _mm512_set1_epi64(static_cast<int64_t>(w->deviceDelta + (shared ? w->sharedBase : 0)));
  const __m512i turn = _mm512_set1_epi64(shift);
  for (int i = 0; i < 4; ++i) {
    const __m512i address = _mm512_load_si512(addresses + 8 * i);
    // Rotating makes a misaligned distance a huge one.
    const __m512i distance = _mm512_rorv_epi64(_mm512_sub_epi64(address, base), turn);
    row.bad |= uint32_t{_mm512_cmpge_epu64_mask(distance, limit)} << (8 * i);
    row.at[i] = _mm512_add_epi64(address, move);
  }
  return row;
}

// One element for each lane: no gather is as narrow.
template <class T>
SONDE_DEVICE_CODE void loadEach(const uint64_t* at, uint32_t mask, void* out) {
  auto* to = static_cast<T*>(out);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    to[l] = *reinterpret_cast<const volatile T*>(at[l]);
  }
}
template <class T>
SONDE_DEVICE_CODE void storeEach(const uint64_t* at, uint32_t mask, const void* in) {
  const auto* from = static_cast<const T*>(in);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    *reinterpret_cast<volatile T*>(at[l]) = from[l];
  }
}

SONDE_AVX512 void loadLanes512(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t description,
                               void* out) {
  const Access a(description);
  const bool narrow = a.bytes < 4 && a.count == 1;
  if (a.space > 1 || a.bytes > 8 || (a.bytes < 4 && !narrow)) return loadLanes(w, addresses, mask, description, out);
  const Row512 row = locate512(w, addresses, a);
  const __m512i* at = row.at;
  if (row.bad & mask) return loadLanes(w, addresses, mask, description, out);
  if (narrow) {
    const auto* each = reinterpret_cast<const uint64_t*>(row.at);
    return a.bytes == 1 ? loadEach<uint8_t>(each, mask, out) : loadEach<uint16_t>(each, mask, out);
  }
  for (uint32_t e = 0; e < a.count; ++e) {
    const char* base = reinterpret_cast<const char*>(0) + e * a.bytes;
    for (int i = 0; i < 4; ++i) {
      const auto m = static_cast<__mmask8>(mask >> (8 * i));
      if (a.bytes == 4)
        _mm256_store_si256(reinterpret_cast<__m256i*>(static_cast<char*>(out) + e * 128 + 32 * i),
                           _mm512_mask_i64gather_epi32(_mm256_setzero_si256(), m, at[i], base, 1));
      else
        _mm512_store_si512(static_cast<char*>(out) + e * 256 + 64 * i,
                           _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), m, at[i], base, 1));
    }
  }
}

SONDE_DEVICE_CODE void storeLanes(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t description,
                                  const void* in);

SONDE_AVX512 void storeLanes512(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t description,
                                const void* in) {
  const Access a(description);
  const bool narrow = a.bytes < 4 && a.count == 1;
  if (a.space > 1 || a.bytes > 8 || (a.bytes < 4 && !narrow)) return storeLanes(w, addresses, mask, description, in);
  const Row512 row = locate512(w, addresses, a);
  const __m512i* at = row.at;
  if (row.bad & mask) return storeLanes(w, addresses, mask, description, in);
  if (narrow) {
    const auto* each = reinterpret_cast<const uint64_t*>(row.at);
    return a.bytes == 1 ? storeEach<uint8_t>(each, mask, in) : storeEach<uint16_t>(each, mask, in);
  }
  for (uint32_t e = 0; e < a.count; ++e) {
    char* base = reinterpret_cast<char*>(0) + e * a.bytes;
    for (int i = 0; i < 4; ++i) {
      const auto m = static_cast<__mmask8>(mask >> (8 * i));
      if (a.bytes == 4)
        _mm512_mask_i64scatter_epi32(
            base, m, at[i],
            _mm256_load_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(in) + e * 128 + 32 * i)), 1);
      else
        _mm512_mask_i64scatter_epi64(base, m, at[i], _mm512_load_si512(static_cast<const char*>(in) + e * 256 + 64 * i),
                                     1);
    }
  }
}

bool hostHasAvx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
}
#pragma GCC diagnostic pop
#endif

SONDE_DEVICE_CODE void storeLanes(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t description,
                                  const void* in) {
  const Access a(description);
  const auto* from = static_cast<const uint8_t*>(in);
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    auto* to = static_cast<uint8_t*>(resolveLane(w, a.space, addresses[l], a.bytes * a.count, l, true));
    for (uint32_t i = 0; i < a.count; ++i) copyElement(to + i * a.bytes, from + (i * kLanes + l) * a.bytes, a.bytes);
  }
}

SONDE_DEVICE_CODE void loadOne(WarpState* w, uint64_t address, uint32_t mask, uint32_t description, void* out) {
  const Access a(description);
  const auto lane = static_cast<uint32_t>(__builtin_ctz(mask));
  const auto* from = static_cast<const uint8_t*>(resolveLane(w, a.space, address, a.bytes * a.count, lane, false));
  for (uint32_t i = 0; i < a.count; ++i)
    copyElement(static_cast<uint8_t*>(out) + i * a.bytes, from + i * a.bytes, a.bytes);
}

SONDE_DEVICE_CODE void storeOne(WarpState* w, uint64_t address, uint32_t mask, uint32_t description, const void* in) {
  const Access a(description);
  const auto lane = static_cast<uint32_t>(__builtin_ctz(mask));
  auto* to = static_cast<uint8_t*>(resolveLane(w, a.space, address, a.bytes * a.count, lane, true));
  for (uint32_t i = 0; i < a.count; ++i)
    copyElement(to + i * a.bytes, static_cast<const uint8_t*>(in) + i * a.bytes, a.bytes);
}

// cp.async: `bytes` to shared memory, of which `valid` come from the source.
SONDE_DEVICE_CODE void copyAsync(WarpState* w, const uint64_t* to, const uint64_t* from, uint32_t mask, uint32_t bytes,
                                 const uint32_t* valid) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    // Everyday copies: whole, aligned, within the windows.
    if (valid[l] >= bytes && bytes >= 4 && bytes <= 16 && ((to[l] | from[l]) & (bytes - 1)) == 0 &&
        to[l] <= w->totalSharedBytes - bytes && w->totalSharedBytes >= bytes &&
        from[l] - w->windowBase < w->windowSize) {
      auto* d = reinterpret_cast<void*>(w->sharedBase + w->deviceDelta + to[l]);
      const auto* s = reinterpret_cast<const void*>(from[l] + w->deviceDelta);
      switch (bytes) {
        case 4: std::memcpy(d, s, 4); break;
        case 8: std::memcpy(d, s, 8); break;
        default: std::memcpy(d, s, 16); break;
      }
      continue;
    }
    auto* d = static_cast<uint8_t*>(resolveLane(w, 1, to[l], bytes, l, true));
    const uint32_t n = valid[l] < bytes ? valid[l] : bytes;
    const uint8_t* s = n ? static_cast<const uint8_t*>(resolveLane(w, 0, from[l], bytes, l, false)) : nullptr;
    for (uint32_t i = 0; i < bytes; ++i)
      *static_cast<volatile uint8_t*>(d + i) = i < n ? *static_cast<const volatile uint8_t*>(s + i) : 0;
  }
}

// --- atomics ---

// plain: shared and local memory, which this host thread alone touches.
template <class T, class F>
SONDE_DEVICE_CODE T exchangeWith(T* p, bool plain, F&& change) {
  if (plain) {
    const T old = *p;
    *p = change(old);
    return old;
  }
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, change(old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

template <class U, class S>
SONDE_DEVICE_CODE U integerAtomic(void* at, bool plain, AtomicOp op, bool isSigned, U x, U y) {
  auto* p = static_cast<U*>(at);
  if (!plain) switch (op) {
      case AtomicOp::add: return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST);
      case AtomicOp::bitAnd: return __atomic_fetch_and(p, x, __ATOMIC_SEQ_CST);
      case AtomicOp::bitOr: return __atomic_fetch_or(p, x, __ATOMIC_SEQ_CST);
      case AtomicOp::bitXor: return __atomic_fetch_xor(p, x, __ATOMIC_SEQ_CST);
      case AtomicOp::exch: return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST);
      case AtomicOp::cas: {
        U expected = x;
        __atomic_compare_exchange_n(p, &expected, y, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return expected;
      }
      default: break;
    }
  return exchangeWith<U>(p, plain, [&](U old) -> U {
    switch (op) {
      case AtomicOp::add: return static_cast<U>(old + x);
      case AtomicOp::bitAnd: return old & x;
      case AtomicOp::bitOr: return old | x;
      case AtomicOp::bitXor: return old ^ x;
      case AtomicOp::exch: return x;
      case AtomicOp::cas: return old == x ? y : old;
      case AtomicOp::min: return (isSigned ? static_cast<S>(old) < static_cast<S>(x) : old < x) ? old : x;
      case AtomicOp::max: return (isSigned ? static_cast<S>(old) > static_cast<S>(x) : old > x) ? old : x;
      case AtomicOp::inc: return old >= x ? U{0} : static_cast<U>(old + 1);
      case AtomicOp::dec: return old == 0 || old > x ? x : static_cast<U>(old - 1);
    }
    return old;
  });
}

template <class F, class U>
U bitsAs(F f) {
  U u;
  std::memcpy(&u, &f, sizeof u);
  return u;
}
template <class F, class U>
F valueAs(U u) {
  F f;
  std::memcpy(&f, &u, sizeof f);
  return f;
}

uint16_t addHalf(uint16_t a, uint16_t b, bool brain) {
  const float sum = brain ? bfloatToFloat(a) + bfloatToFloat(b) : halfToFloat(a) + halfToFloat(b);
  return brain ? floatToBfloat(sum) : floatToHalf(sum);
}
uint16_t extremeHalf(uint16_t a, uint16_t b, bool brain, bool wantMin) {
  const float x = brain ? bfloatToFloat(a) : halfToFloat(a), y = brain ? bfloatToFloat(b) : halfToFloat(b);
  if (std::isnan(x)) return b;
  if (std::isnan(y)) return a;
  if (x == y) return wantMin ? ((a & 0x8000) ? a : b) : ((a & 0x8000) ? b : a);
  return (x < y) == wantMin ? a : b;
}

}  // namespace

SONDE_DEVICE_CODE uint64_t atomicOne(void* p, bool plain, AtomicOp op, ptx::ScalarType t, uint64_t x, uint64_t y) {
  using enum ptx::ScalarType;
  if (op == AtomicOp::exch || op == AtomicOp::cas ||
      !(t == f16 || t == bf16 || t == f16x2 || t == bf16x2 || t == f32 || t == f64)) {
    const bool s = ptx::isSigned(t);
    switch (ptx::bitsOf(t)) {
      case 16:
        return integerAtomic<uint16_t, int16_t>(p, plain, op, s, static_cast<uint16_t>(x), static_cast<uint16_t>(y));
      case 32:
        return integerAtomic<uint32_t, int32_t>(p, plain, op, s, static_cast<uint32_t>(x), static_cast<uint32_t>(y));
      default: return integerAtomic<uint64_t, int64_t>(p, plain, op, s, x, y);
    }
  }
  switch (t) {
    case f32: {
      const auto v = valueAs<float>(static_cast<uint32_t>(x));
      return exchangeWith(static_cast<uint32_t*>(p), plain, [&](uint32_t old) {
        const auto o = valueAs<float>(old);
        float r = op == AtomicOp::add ? o + v : op == AtomicOp::min ? std::fmin(o, v) : std::fmax(o, v);
        // atom.add.f32 on global memory flushes subnormals only on old cards; the result NaN is canonical.
        return std::isnan(r) ? 0x7fffffffu : bitsAs<float, uint32_t>(r);
      });
    }
    case f64: {
      const auto v = valueAs<double>(x);
      return exchangeWith(static_cast<uint64_t*>(p), plain, [&](uint64_t old) {
        const auto o = valueAs<double>(old);
        return bitsAs<double, uint64_t>(op == AtomicOp::add   ? o + v
                                        : op == AtomicOp::min ? std::fmin(o, v)
                                                              : std::fmax(o, v));
      });
    }
    case f16:
    case bf16:
      return exchangeWith(static_cast<uint16_t*>(p), plain, [&](uint16_t old) {
        const auto v = static_cast<uint16_t>(x);
        return op == AtomicOp::add ? addHalf(old, v, t == bf16) : extremeHalf(old, v, t == bf16, op == AtomicOp::min);
      });
    default:
      return exchangeWith(static_cast<uint32_t*>(p), plain, [&](uint32_t old) {
        const bool brain = t == bf16x2;
        auto one = [&](uint32_t shift) -> uint32_t {
          const auto o = static_cast<uint16_t>(old >> shift), v = static_cast<uint16_t>(x >> shift);
          return uint32_t{op == AtomicOp::add ? addHalf(o, v, brain) : extremeHalf(o, v, brain, op == AtomicOp::min)}
                 << shift;
        };
        return one(0) | one(16);
      });
  }
}

namespace {

SONDE_DEVICE_CODE void atomics(WarpState* w, const uint64_t* addresses, uint32_t mask, uint32_t what, const uint64_t* x,
                               const uint64_t* y, uint64_t* out) {
  const auto op = static_cast<AtomicOp>(what >> 8 & 255);
  const auto t = static_cast<ptx::ScalarType>(what >> 16 & 255);
  const uint32_t space = what & 255;
  const uint32_t bytes = ptx::bitsOf(t) / 8;
  // The first element of a vector: the whole of it is aligned.
  if (const uint32_t width = what >> 24; width > 1)
    for (uint32_t m = mask; m; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      resolveLane(w, space, addresses[l], bytes * width, l, true);
    }
  const bool integerAdd = op == AtomicOp::add && !ptx::isFloat(t);
  if (!out && integerAdd && (mask & (mask - 1))) {
    // Nobody wants the old values: lanes on one place add up first.
    const auto first = static_cast<uint32_t>(__builtin_ctz(mask));
    bool same = true;
    uint64_t sum = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
      const auto l = static_cast<uint32_t>(__builtin_ctz(m));
      same &= addresses[l] == addresses[first];
      sum += x[l];
    }
    if (same && space != 2) {
      atomicOne(resolveLane(w, space, addresses[first], bytes, first, true), space != 0, op, t, sum, 0);
      return;
    }
  }
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    void* p = resolveLane(w, space, addresses[l], bytes, l, true);
    const uint64_t old = atomicOne(p, space != 0, op, t, x[l], y ? y[l] : 0);
    if (out) out[l] = old;
  }
}

// y: null for an exchange. Low halves of the 32 lanes, then the high ones.
__attribute__((target("cx16"))) SONDE_DEVICE_CODE void atomics128(WarpState* w, const uint64_t* addresses,
                                                                  uint32_t mask, uint32_t space, const uint64_t* x,
                                                                  const uint64_t* y, uint64_t* out) {
  __extension__ using Wide = unsigned __int128;
  auto of = [](const uint64_t* row, uint32_t l) { return row[l] | static_cast<Wide>(row[kLanes + l]) << 64; };
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    auto* p = static_cast<Wide*>(resolveLane(w, space, addresses[l], 16, l, true));
    Wide old = 0;
    if (y) {
      old = __sync_val_compare_and_swap(p, of(x, l), of(y, l));
    } else {
      Wide seen = __sync_val_compare_and_swap(p, old, old);
      do {
        old = seen;
        seen = __sync_val_compare_and_swap(p, old, of(x, l));
      } while (seen != old);
    }
    out[l] = static_cast<uint64_t>(old);
    out[kLanes + l] = static_cast<uint64_t>(old >> 64);
  }
}

}  // namespace

std::span<const jit::RuntimeSymbol> memoryHelpers() {
  auto* load = &loadLanes;
  auto* store = &storeLanes;
#if defined(__x86_64__)
  if (hostHasAvx512()) {
    load = &loadLanes512;
    store = &storeLanes512;
  }
#endif
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_load", reinterpret_cast<void*>(load)},
      {"sonde_store", reinterpret_cast<void*>(store)},
      {"sonde_load1", reinterpret_cast<void*>(&loadOne)},
      {"sonde_store1", reinterpret_cast<void*>(&storeOne)},
      {"sonde_cp_async", reinterpret_cast<void*>(&copyAsync)},
      {"sonde_atomic", reinterpret_cast<void*>(&atomics)},
      {"sonde_atomic128", reinterpret_cast<void*>(&atomics128)},
  };
  return symbols;
}

}  // namespace sonde::softgpu::exec
