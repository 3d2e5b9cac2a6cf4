// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/mma_tile.h"

#include <immintrin.h>

#include <cstring>

#include "softgpu/exec/mma_number.h"
#include "softgpu/exec/mma_tile_math.h"

namespace sonde::softgpu::exec {
namespace {

using namespace tile_math;

#define SONDE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c,prefer-vector-width=512")))
#define SONDE_AVX2 __attribute__((target("avx2,fma,f16c")))

// 16-bit elements of a fragment, widened.
SONDE_INLINE void halves(uint32_t* __restrict raw, const void* fragment, const uint16_t* __restrict at, unsigned count,
                         bool dense) {
  if (!dense) {
    const auto* from = static_cast<const uint16_t*>(fragment);
    for (unsigned i = 0; i < count; ++i) raw[i] = from[at[i]];
    return;
  }
  const auto* from = static_cast<const uint32_t*>(fragment);
  for (unsigned r = 0; r < count / 64; ++r)
    for (unsigned l = 0; l < 32; ++l) {
      raw[64 * r + l] = from[32 * r + l] & 0xffffu;
      raw[64 * r + 32 + l] = from[32 * r + l] >> 16;
    }
}

// Elements as f32, which holds each exactly. False: an infinity or NaN is among them.
SONDE_INLINE bool decode(float* __restrict out, const void* fragment, const uint16_t* __restrict at, unsigned count,
                         MatrixType type, bool dense) {
  uint32_t raw[kSide * kDepth];
  uint32_t special = 0;
  if (type == MatrixType::f16) {
    halves(raw, fragment, at, count, dense);
    for (unsigned i = 0; i < count; ++i) {
      special |= (raw[i] & 0x7c00u) == 0x7c00u;
      const float magnitude = bits<float>((raw[i] & 0x7fffu) << 13) * 0x1p112f;
      out[i] = bits<float>(bits<uint32_t>(magnitude) | (raw[i] & 0x8000u) << 16);
    }
    return special == 0;
  }
  if (type == MatrixType::bf16) {
    halves(raw, fragment, at, count, dense);
    for (unsigned i = 0; i < count; ++i) raw[i] <<= 16;
  } else {
    const auto* from = static_cast<const uint32_t*>(fragment);
    const uint32_t mask = type == MatrixType::tf32 ? 0xffffe000u : 0xffffffffu;
    if (dense)
      for (unsigned i = 0; i < count; ++i) raw[i] = from[i] & mask;
    else
      for (unsigned i = 0; i < count; ++i) raw[i] = from[at[i]] & mask;
  }
  for (unsigned i = 0; i < count; ++i) {
    special |= (raw[i] & 0x7f800000u) == 0x7f800000u;
    out[i] = bits<float>(raw[i]);
  }
  return special == 0;
}

SONDE_AVX2 void roundToHalf(const float* from, uint16_t* to, unsigned count) {
  for (unsigned i = 0; i < count; i += 8)
    _mm_store_si128(reinterpret_cast<__m128i*>(to + i),
                    _mm256_cvtps_ph(_mm256_load_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

SONDE_INLINE bool floats(const Shape& s, const void* fa, const void* fb, const void* fc, void* fd) {
  alignas(64) float a[kSide * kDepth], b[kSide * kDepth], c[kSide * kSide], d[kSide * kSide];
  if (!decode(a, fa, s.a, s.m * s.k, s.type, s.dense) || !decode(b, fb, s.b, s.k * s.n, s.type, s.dense)) return false;
  if (!decode(c, fc, s.c, s.m * s.n, s.halfAddend ? MatrixType::f16 : MatrixType::f32, s.dense)) return false;
  const Grain ga = grainOf(a, s.m * s.k), gb = grainOf(b, s.k * s.n);
  if (sumsAreExact(ga, gb, c, s.m * s.n, s.k))
    chains(s, a, b, c, d);
  else if (s.halfSum)
    halfProduct(s, a, b, c, d);
  else if (productsAreExact(ga, gb, c, s.m * s.n, s.k))
    addLast(s, a, b, c, d);
  else if (!narrowProduct(s, a, b, c, d))
    cutProduct(s, a, b, c, d);
  if (s.halfSum) {
    alignas(64) uint16_t half[kSide * kSide];
    roundToHalf(d, half, s.m * s.n);
    for (unsigned i = 0; i < s.dCount; ++i) static_cast<uint16_t*>(fd)[s.d[i]] = half[s.dElement[i]];
  } else if (s.dense) {
    std::memcpy(fd, d, s.m * s.n * sizeof(float));
  } else {
    for (unsigned i = 0; i < s.dCount; ++i) static_cast<uint32_t*>(fd)[s.d[i]] = bits<uint32_t>(d[s.dElement[i]]);
  }
  return true;
}

// 8-bit elements of a fragment, widened.
SONDE_INLINE void bytes(int32_t* __restrict out, const void* fragment, const uint16_t* __restrict at, unsigned count,
                        const Shape& s) {
  if (s.dense) {
    const auto* from = static_cast<const uint32_t*>(fragment);
    for (unsigned r = 0; r < count / 128; ++r)
      for (unsigned byte = 0; byte < 4; ++byte)
        for (unsigned l = 0; l < 32; ++l) {
          const uint32_t up = from[32 * r + l] << (24 - 8 * byte);
          out[128 * r + 32 * byte + l] =
              s.type == MatrixType::s8 ? static_cast<int32_t>(up) >> 24 : static_cast<int32_t>(up >> 24);
        }
  } else if (s.type == MatrixType::s8) {
    for (unsigned i = 0; i < count; ++i) out[i] = static_cast<const int8_t*>(fragment)[at[i]];
  } else {
    for (unsigned i = 0; i < count; ++i) out[i] = static_cast<const uint8_t*>(fragment)[at[i]];
  }
}

SONDE_INLINE void integers(const Shape& s, const void* fa, const void* fb, const void* fc, void* fd) {
  alignas(64) int32_t a[kSide * kDepth], b[kSide * kDepth], d[kSide * kSide];
  bytes(a, fa, s.a, s.m * s.k, s);
  bytes(b, fb, s.b, s.k * s.n, s);
  alignas(64) int32_t c[kSide * kSide];
  if (s.dense)
    std::memcpy(c, fc, s.m * s.n * sizeof c[0]);
  else
    for (unsigned i = 0; i < s.m * s.n; ++i) c[i] = static_cast<const int32_t*>(fc)[s.c[i]];
  for (unsigned row = 0; row < s.m; ++row) {
    int32_t sum[kSide];
    for (unsigned j = 0; j < s.n; ++j) sum[j] = 0;
    for (unsigned i = 0; i < s.k; ++i) {
      const int32_t left = a[row * s.k + i];
      for (unsigned j = 0; j < s.n; ++j) sum[j] += left * b[i * s.n + j];
    }
    for (unsigned j = 0; j < s.n; ++j) {
      const int32_t addend = c[row * s.n + j];
      const auto wrapped = static_cast<int32_t>(static_cast<uint32_t>(addend) + static_cast<uint32_t>(sum[j]));
      // Both of one sign, and the result of the other: beyond the end.
      const bool beyond = ((addend ^ wrapped) & (sum[j] ^ wrapped)) < 0;
      d[row * s.n + j] = s.satfinite && beyond ? (addend < 0 ? INT32_MIN : INT32_MAX) : wrapped;
    }
  }
  if (s.dense) {
    std::memcpy(fd, d, s.m * s.n * sizeof d[0]);
    return;
  }
  for (unsigned i = 0; i < s.dCount; ++i) static_cast<int32_t*>(fd)[s.d[i]] = d[s.dElement[i]];
}

// A chain of fma along k for each element.
SONDE_INLINE void doubles(const Shape& s, const void* fa, const void* fb, const void* fc, void* fd) {
  alignas(64) double a[kSide * kDepth], b[kSide * kDepth], c[kSide * kSide], d[kSide * kSide];
  auto take = [&](double* out, const void* fragment, const uint16_t* at, unsigned count)
                  __attribute__((always_inline)) {
                    if (s.dense)
                      std::memcpy(out, fragment, count * sizeof out[0]);
                    else
                      for (unsigned i = 0; i < count; ++i) out[i] = static_cast<const double*>(fragment)[at[i]];
                  };
  take(a, fa, s.a, s.m * s.k);
  take(b, fb, s.b, s.k * s.n);
  take(c, fc, s.c, s.m * s.n);
  chains(s, a, b, c, d);
  if (s.dense) {
    std::memcpy(fd, d, s.m * s.n * sizeof d[0]);
    return;
  }
  for (unsigned i = 0; i < s.dCount; ++i) static_cast<double*>(fd)[s.d[i]] = d[s.dElement[i]];
}

// Constant sides, so that the loops over columns are whole vectors.
template <unsigned M, unsigned N, unsigned K>
SONDE_INLINE bool sized(const Shape& given, const void* a, const void* b, const void* c, void* d) {
  Shape s = given;
  s.m = M;
  s.n = N;
  s.k = K;
  switch (s.type) {
    case MatrixType::f64: doubles(s, a, b, c, d); return true;
    case MatrixType::s8:
    case MatrixType::u8: integers(s, a, b, c, d); return true;
    default: return floats(s, a, b, c, d);
  }
}

SONDE_INLINE bool dispatch(const Shape& s, const void* a, const void* b, const void* c, void* d) {
  const unsigned key = s.m << 16 | s.n << 8 | s.k;
  switch (key) {
    case 16u << 16 | 16u << 8 | 16: return sized<16, 16, 16>(s, a, b, c, d);
    case 32u << 16 | 8u << 8 | 16: return sized<32, 8, 16>(s, a, b, c, d);
    case 8u << 16 | 32u << 8 | 16: return sized<8, 32, 16>(s, a, b, c, d);
    case 16u << 16 | 16u << 8 | 8: return sized<16, 16, 8>(s, a, b, c, d);
    case 16u << 16 | 8u << 8 | 8: return sized<16, 8, 8>(s, a, b, c, d);
    case 16u << 16 | 8u << 8 | 16: return sized<16, 8, 16>(s, a, b, c, d);
    case 16u << 16 | 8u << 8 | 32: return sized<16, 8, 32>(s, a, b, c, d);
    case 8u << 16 | 8u << 8 | 4: return sized<8, 8, 4>(s, a, b, c, d);
    default: return false;
  }
}

SONDE_AVX512 bool tile512(const Shape& s, const void* a, const void* b, const void* c, void* d) {
  return dispatch(s, a, b, c, d);
}
SONDE_AVX2 bool tile256(const Shape& s, const void* a, const void* b, const void* c, void* d) {
  return dispatch(s, a, b, c, d);
}

using Tile = bool (*)(const Shape&, const void*, const void*, const void*, void*);
Tile best() {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return tile512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") ? tile256
                                                                                                           : nullptr;
}
Tile tile() {
  static const Tile chosen = best();
  return chosen;
}

bool knownShape(const MatrixJob& j) {
  const unsigned key = static_cast<unsigned>(j.m << 16 | j.n << 8 | j.k);
  const bool f16m8 = !j.wmma && j.m == 8 && j.k == 4 && j.a == MatrixType::f16;
  if (f16m8) return false;
  for (const unsigned known :
       {16u << 16 | 16u << 8 | 16, 32u << 16 | 8u << 8 | 16, 8u << 16 | 32u << 8 | 16, 16u << 16 | 16u << 8 | 8,
        16u << 16 | 8u << 8 | 8, 16u << 16 | 8u << 8 | 16, 16u << 16 | 8u << 8 | 32, 8u << 16 | 8u << 8 | 4})
    if (key == known) return true;
  return false;
}

// The position of an element as an index into the fragment seen as an array of such.
uint16_t position(const MatrixElement& e, MatrixType type) {
  return static_cast<uint16_t>(e.word * perRegister(type) + e.field);
}

}  // namespace

std::unique_ptr<TilePlan> TilePlan::make(const MatrixJob& job, const std::vector<MatrixElement>& a,
                                         const std::vector<MatrixElement>& b, const std::vector<MatrixElement>& c,
                                         const std::vector<MatrixElement>& d) {
  const bool wanted = job.a == MatrixType::f16 || job.a == MatrixType::bf16 || job.a == MatrixType::tf32 ||
                      job.a == MatrixType::f64 || job.a == MatrixType::s8 || job.a == MatrixType::u8;
  if (!tile() || !wanted || job.a != job.b || !knownShape(job)) return nullptr;
  auto plan = std::make_unique<TilePlan>();
  constexpr uint16_t missing = UINT16_MAX;
  plan->a_.assign(job.m * job.k, missing);
  plan->b_.assign(job.k * job.n, missing);
  plan->c_.assign(job.m * job.n, missing);
  for (const auto& e : a) plan->a_[e.row * job.k + e.column] = position(e, job.a);
  for (const auto& e : b) plan->b_[e.row * job.n + e.column] = position(e, job.b);
  for (const auto& e : c) plan->c_[e.row * job.n + e.column] = position(e, job.c);
  for (const auto* table : {&plan->a_, &plan->b_, &plan->c_})
    for (const uint16_t at : *table)
      if (at == missing) return nullptr;
  for (const auto& e : d) {
    plan->d_.push_back(position(e, job.d));
    plan->dElement_.push_back(static_cast<uint16_t>(e.row * job.n + e.column));
  }
  return plan;
}

bool TilePlan::multiply(const MatrixJob& job, const void* a, const void* b, const void* c, void* d) const {
  const Shape shape{job.m,
                    job.n,
                    job.k,
                    job.a,
                    a_.data(),
                    b_.data(),
                    c_.data(),
                    d_.data(),
                    dElement_.data(),
                    static_cast<unsigned>(d_.size()),
                    job.satfinite != 0,
                    job.d == MatrixType::f16,
                    job.c == MatrixType::f16,
                    job.wmma != 0};
  return tile()(shape, a, b, c, d);
}

}  // namespace sonde::softgpu::exec
