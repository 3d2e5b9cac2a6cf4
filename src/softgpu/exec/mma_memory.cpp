// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions that touch memory, and movmatrix.
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstring>
#include <memory>
#include <vector>

#include "softgpu/exec/helpers.h"
#include "softgpu/exec/mma_helpers.h"

namespace sonde::softgpu::exec {

namespace {

constexpr uint32_t kRowBytes = 16;  // eight 16-bit elements

uint16_t halfOf(uint32_t word, unsigned i) { return static_cast<uint16_t>(word >> (16 * i)); }
uint32_t wordOf(uint16_t low, uint16_t high) { return low | static_cast<uint32_t>(high) << 16; }

// Lane l holds the elements (l / 4, 2 (l % 4)) and the one right of it; with
// `transpose` those of the transposed matrix.
SONDE_DEVICE_CODE void loadMatrices(WarpState* warp, const uint64_t* addresses, uint32_t space, uint32_t count,
                                    uint32_t transpose, uint32_t* out) {
  for (uint32_t j = 0; j < count; ++j) {
    uint16_t rows[8][8];
    for (uint32_t i = 0; i < 8; ++i)
      std::memcpy(rows[i], resolveLane(warp, space, addresses[8 * j + i], kRowBytes, 8 * j + i, false), kRowBytes);
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t major = l / 4, minor = 2 * (l % 4);
      out[j * kLanes + l] = transpose ? wordOf(rows[minor][major], rows[minor + 1][major])
                                      : wordOf(rows[major][minor], rows[major][minor + 1]);
    }
  }
}

SONDE_DEVICE_CODE void storeMatrices(WarpState* warp, const uint64_t* addresses, uint32_t space, uint32_t count,
                                     uint32_t transpose, const uint32_t* in) {
  for (uint32_t j = 0; j < count; ++j) {
    uint16_t rows[8][8];
    for (uint32_t l = 0; l < kLanes; ++l) {
      const uint32_t major = l / 4, minor = 2 * (l % 4), word = in[j * kLanes + l];
      for (unsigned i = 0; i < 2; ++i) (transpose ? rows[minor + i][major] : rows[major][minor + i]) = halfOf(word, i);
    }
    for (uint32_t i = 0; i < 8; ++i)
      std::memcpy(resolveLane(warp, space, addresses[8 * j + i], kRowBytes, 8 * j + i, true), rows[i], kRowBytes);
  }
}

void transposeMatrix(const uint32_t* in, uint32_t* out) {
  uint16_t m[8][8];
  for (uint32_t l = 0; l < kLanes; ++l)
    for (unsigned i = 0; i < 2; ++i) m[l / 4][2 * (l % 4) + i] = halfOf(in[l], i);
  for (uint32_t l = 0; l < kLanes; ++l) out[l] = wordOf(m[2 * (l % 4)][l / 4], m[2 * (l % 4) + 1][l / 4]);
}

// Walks the lines (rows, or columns of a column-major matrix) of a matrix in
// memory: visit(line's bytes, index of the line, its length in elements).
template <class Visit>
SONDE_DEVICE_CODE void forEachLine(WarpState* warp, const MatrixJob& job, MatrixPart part, uint64_t base,
                                   uint32_t space, uint32_t stride, unsigned bits, bool write, Visit visit) {
  const unsigned rows = part == MatrixPart::b ? job.k : job.m, columns = part == MatrixPart::a ? job.k : job.n;
  const unsigned lines = job.columnA ? columns : rows, length = job.columnA ? rows : columns;
  const unsigned unit = bits < 8 ? 1 : bits / 8, bytes = length * bits / 8;
  for (unsigned line = 0; line < lines; ++line) {
    const uint64_t address = base + uint64_t{line} * stride * bits / 8;
    auto* first = static_cast<uint8_t*>(resolveLane(warp, space, address, unit, 0, write));
    resolveLane(warp, space, address + bytes - unit, unit, 0, write);  // the line's end is valid, too
    visit(first, line);
  }
}

// A matrix's elements by place, in the order of its lines.
uint64_t readElement(const uint8_t* line, unsigned i, unsigned bits) {
  uint64_t v = 0;
  if (bits >= 8)
    std::memcpy(&v, line + i * bits / 8, bits / 8);
  else
    v = (line[i * bits / 8] >> (i * bits % 8)) & ((1u << bits) - 1);
  return v;
}

// Where the elements of a fragment, in the order of its registers, stand in the
// matrix: line * length + place in the line.
struct FragmentPlan {
  MatrixJob job;
  MatrixPart part;
  unsigned length = 0;
  std::vector<uint16_t> at;
  static constexpr uint16_t kUnused = UINT16_MAX;
};

const FragmentPlan& fragmentPlan(const MatrixJob& job, MatrixPart part) {
  thread_local std::vector<std::unique_ptr<FragmentPlan>> plans;
  for (const auto& p : plans)
    if (p->part == part && std::memcmp(&p->job, &job, sizeof job) == 0) return *p;
  auto plan = std::make_unique<FragmentPlan>();
  plan->job = job;
  plan->part = part;
  const unsigned rows = part == MatrixPart::b ? job.k : job.m, columns = part == MatrixPart::a ? job.k : job.n;
  plan->length = job.columnA ? rows : columns;
  for (unsigned reg = 0; reg < job.registersA; ++reg)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      for (unsigned i = 0; i < perRegister(job.a); ++i) {
        const MatrixPlace p = matrixPlace(job, part, reg, lane, i);
        const unsigned line = job.columnA ? p.column : p.row, in = job.columnA ? p.row : p.column;
        plan->at.push_back(p.used ? static_cast<uint16_t>(line * plan->length + in) : FragmentPlan::kUnused);
      }
  plans.push_back(std::move(plan));
  return *plans.back();
}

// The largest matrix: 8 x 8 doubles or 16 x 16 words are 1 KiB, 32 x 16 halves too.
constexpr size_t kMatrixBytes = 32 * 32 * 4;

// The lines of a matrix in memory, `step` apart, when the whole lies in the space of its first element; else null, and
// line by line is the way to the fault.
struct Lines {
  uint8_t* first = nullptr;
  uint64_t step = 0;
  unsigned lines = 0, length = 0, bytes = 0;  // length in elements
};

SONDE_DEVICE_CODE Lines linesOf(WarpState* warp, const MatrixJob& job, MatrixPart part, uint64_t base, uint32_t space,
                                uint32_t stride, unsigned bits, bool write) {
  const unsigned rows = part == MatrixPart::b ? job.k : job.m, columns = part == MatrixPart::a ? job.k : job.n;
  Lines l;
  l.lines = job.columnA ? columns : rows;
  l.length = job.columnA ? rows : columns;
  l.bytes = l.length * bits / 8;
  l.step = uint64_t{stride} * bits / 8;
  if (space > 1) return l;
  auto* first = static_cast<uint8_t*>(resolveLane(warp, space, base, bits / 8, 0, write));
  const uint64_t span = (l.lines - 1) * l.step + l.bytes;
  const uint64_t start = space == 1 ? warp->sharedBase : warp->windowBase;
  const uint64_t size = space == 1 ? warp->totalSharedBytes : warp->windowSize;
  const uint64_t at = reinterpret_cast<uint64_t>(first) - warp->deviceDelta - start;
  if (at < size && span <= size - at) l.first = first;
  return l;
}

template <unsigned Bytes>
SONDE_DEVICE_CODE void copyLines(uint8_t* to, uint64_t toStep, const uint8_t* from, uint64_t fromStep, unsigned n) {
  for (unsigned i = 0; i < n; ++i) __builtin_memcpy(to + i * toStep, from + i * fromStep, Bytes);
}
SONDE_DEVICE_CODE void copyLines(uint8_t* to, uint64_t toStep, const uint8_t* from, uint64_t fromStep, unsigned n,
                                 unsigned bytes) {
  switch (bytes) {
    case 8: copyLines<8>(to, toStep, from, fromStep, n); return;
    case 16: copyLines<16>(to, toStep, from, fromStep, n); return;
    case 32: copyLines<32>(to, toStep, from, fromStep, n); return;
    case 64: copyLines<64>(to, toStep, from, fromStep, n); return;
    default:
      for (unsigned i = 0; i < n; ++i) __builtin_memcpy(to + i * toStep, from + i * fromStep, bytes);
  }
}

// to[i][line] = from[line][i]
template <class T>
SONDE_DEVICE_CODE void transpose(const T* from, T* to, unsigned lines, unsigned length) {
  for (unsigned line = 0; line < lines; ++line)
    for (unsigned i = 0; i < length; ++i) to[i * lines + line] = from[line * length + i];
}

#if defined(__SSE2__)
// Blocks of 8 x 8; sides are multiples of 8.
template <>
SONDE_DEVICE_CODE void transpose(const uint16_t* from, uint16_t* to, unsigned lines, unsigned length) {
  for (unsigned line = 0; line < lines; line += 8)
    for (unsigned i = 0; i < length; i += 8) {
      __m128i r[8], s[8];
      for (unsigned k = 0; k < 8; ++k)
        r[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (line + k) * length + i));
      for (unsigned k = 0; k < 4; ++k) {
        s[2 * k] = _mm_unpacklo_epi16(r[k], r[k + 4]);
        s[2 * k + 1] = _mm_unpackhi_epi16(r[k], r[k + 4]);
      }
      for (unsigned k = 0; k < 4; ++k) {
        r[2 * k] = _mm_unpacklo_epi16(s[k], s[k + 4]);
        r[2 * k + 1] = _mm_unpackhi_epi16(s[k], s[k + 4]);
      }
      for (unsigned k = 0; k < 4; ++k) {
        s[2 * k] = _mm_unpacklo_epi16(r[k], r[k + 4]);
        s[2 * k + 1] = _mm_unpackhi_epi16(r[k], r[k + 4]);
      }
      for (unsigned k = 0; k < 8; ++k) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (i + k) * lines + line), s[k]);
    }
}
// Blocks of 2 x 2.
template <>
SONDE_DEVICE_CODE void transpose(const uint64_t* from, uint64_t* to, unsigned lines, unsigned length) {
  for (unsigned line = 0; line < lines; line += 2)
    for (unsigned i = 0; i < length; i += 2) {
      const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + line * length + i));
      const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (line + 1) * length + i));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * lines + line), _mm_unpacklo_epi64(x, y));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (i + 1) * lines + line), _mm_unpackhi_epi64(x, y));
    }
}
// Blocks of 4 x 4.
template <>
SONDE_DEVICE_CODE void transpose(const uint32_t* from, uint32_t* to, unsigned lines, unsigned length) {
  for (unsigned line = 0; line < lines; line += 4)
    for (unsigned i = 0; i < length; i += 4) {
      __m128i r[4], s[4];
      for (unsigned k = 0; k < 4; ++k)
        r[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (line + k) * length + i));
      s[0] = _mm_unpacklo_epi32(r[0], r[1]);
      s[1] = _mm_unpackhi_epi32(r[0], r[1]);
      s[2] = _mm_unpacklo_epi32(r[2], r[3]);
      s[3] = _mm_unpackhi_epi32(r[2], r[3]);
      const __m128i out[4] = {_mm_unpacklo_epi64(s[0], s[2]), _mm_unpackhi_epi64(s[0], s[2]),
                              _mm_unpacklo_epi64(s[1], s[3]), _mm_unpackhi_epi64(s[1], s[3])};
      for (unsigned k = 0; k < 4; ++k)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (i + k) * lines + line), out[k]);
    }
}
#endif

SONDE_DEVICE_CODE void transposeElements(const uint8_t* from, uint8_t* to, unsigned lines, unsigned length,
                                         unsigned bits) {
  switch (bits) {
    case 8: transpose(from, to, lines, length); break;
    case 16: transpose(reinterpret_cast<const uint16_t*>(from), reinterpret_cast<uint16_t*>(to), lines, length); break;
    case 32: transpose(reinterpret_cast<const uint32_t*>(from), reinterpret_cast<uint32_t*>(to), lines, length); break;
    default: transpose(reinterpret_cast<const uint64_t*>(from), reinterpret_cast<uint64_t*>(to), lines, length); break;
  }
}

// Between a row-major matrix and a fragment: element i of lane l is number 32 i + l (matrixPlace), so that registers of
// 32 bits and more are the matrix itself, and in others `32 / bits` runs of 32 elements share a register.
SONDE_DEVICE_CODE void pack(const uint8_t* matrix, void* fragment, unsigned count, unsigned bits) {
  auto* out = static_cast<uint32_t*>(fragment);
  if (bits == 16) {
    const auto* from = reinterpret_cast<const uint16_t*>(matrix);
    for (unsigned r = 0; r < count / 64; ++r)
      for (unsigned l = 0; l < kLanes; ++l)
        out[kLanes * r + l] = from[64 * r + l] | static_cast<uint32_t>(from[64 * r + 32 + l]) << 16;
    return;
  }
  for (unsigned r = 0; r < count / 128; ++r)
    for (unsigned l = 0; l < kLanes; ++l)
      out[kLanes * r + l] = matrix[128 * r + l] | static_cast<uint32_t>(matrix[128 * r + 32 + l]) << 8 |
                            static_cast<uint32_t>(matrix[128 * r + 64 + l]) << 16 |
                            static_cast<uint32_t>(matrix[128 * r + 96 + l]) << 24;
}
SONDE_DEVICE_CODE void unpack(const void* fragment, uint8_t* matrix, unsigned count) {
  const auto* in = static_cast<const uint32_t*>(fragment);
  auto* to = reinterpret_cast<uint16_t*>(matrix);
  for (unsigned r = 0; r < count / 64; ++r)
    for (unsigned l = 0; l < kLanes; ++l) {
      to[64 * r + l] = static_cast<uint16_t>(in[kLanes * r + l]);
      to[64 * r + 32 + l] = static_cast<uint16_t>(in[kLanes * r + l] >> 16);
    }
}

// Of elements with fewer than 8 bits.
SONDE_DEVICE_CODE void loadSmall(const FragmentPlan& plan, uint8_t* const* lines, unsigned bits, uint32_t* out) {
  const unsigned per = 32 / bits;
  for (size_t word = 0; word < plan.at.size() / per; ++word) {
    out[word] = 0;
    for (unsigned i = 0; i < per; ++i) {
      const unsigned at = plan.at[word * per + i];
      if (at != FragmentPlan::kUnused)
        out[word] |= static_cast<uint32_t>(readElement(lines[at / plan.length], at % plan.length, bits)) << (i * bits);
    }
  }
}

SONDE_DEVICE_CODE void loadFragment(WarpState* warp, const MatrixJob* job, uint32_t partNumber,
                                    const uint64_t* addresses, uint32_t space, uint32_t stride, void* out) {
  const auto part = static_cast<MatrixPart>(partNumber);
  const unsigned bits = bitsOf(job->a);
  if (bits < 8) {
    const FragmentPlan& plan = fragmentPlan(*job, part);
    uint8_t* lines[256] = {};
    forEachLine(warp, *job, part, addresses[0], space, stride, bits, false,
                [&](uint8_t* bytes, unsigned line) { lines[line] = bytes; });
    loadSmall(plan, lines, bits, static_cast<uint32_t*>(out));
    return;
  }
  alignas(64) uint8_t lined[kMatrixBytes], rowMajor[kMatrixBytes];
  const Lines l = linesOf(warp, *job, part, addresses[0], space, stride, bits, false);
  const unsigned count = l.lines * l.length, used = count * bits / 8;
  // The steps that there are none of are left out.
  auto* fragment = static_cast<uint8_t*>(out);
  uint8_t* const matrix = bits >= 32 ? fragment : rowMajor;
  uint8_t* const first = job->columnA ? lined : matrix;
  if (l.first)
    copyLines(first, l.bytes, l.first, l.step, l.lines, l.bytes);
  else
    forEachLine(warp, *job, part, addresses[0], space, stride, bits, false,
                [&](uint8_t* from, unsigned line) { std::memcpy(first + line * l.bytes, from, l.bytes); });
  if (job->columnA) transposeElements(lined, matrix, l.lines, l.length, bits);
  if (bits < 32) pack(matrix, out, count, bits);
  const unsigned all = job->registersA * kLanes * (bits == 64 ? 8 : 4);
  if (all > used) std::memset(fragment + used, 0, all - used);
}

// Results have 16 bits or more.
SONDE_DEVICE_CODE void storeFragment(WarpState* warp, const MatrixJob* job, uint32_t partNumber,
                                     const uint64_t* addresses, uint32_t space, uint32_t stride, const void* in) {
  const auto part = static_cast<MatrixPart>(partNumber);
  const unsigned bits = bitsOf(job->a);
  alignas(64) uint8_t lined[kMatrixBytes], rowMajor[kMatrixBytes];
  const Lines l = linesOf(warp, *job, part, addresses[0], space, stride, bits, true);
  const uint8_t* matrix = static_cast<const uint8_t*>(in);
  if (bits < 32) {
    unpack(in, rowMajor, l.lines * l.length);
    matrix = rowMajor;
  }
  if (job->columnA) {
    transposeElements(matrix, lined, l.length, l.lines, bits);
    matrix = lined;
  }
  if (l.first)
    copyLines(l.first, l.step, matrix, l.bytes, l.lines, l.bytes);
  else
    forEachLine(warp, *job, part, addresses[0], space, stride, bits, true,
                [&](uint8_t* to, unsigned line) { std::memcpy(to, matrix + line * l.bytes, l.bytes); });
}

}  // namespace

std::span<const jit::RuntimeSymbol> matrixHelpers() {
  static const jit::RuntimeSymbol symbols[] = {
      {"sonde_mma", reinterpret_cast<void*>(&multiplyMatrices)},
      {"sonde_ldmatrix", reinterpret_cast<void*>(&loadMatrices)},
      {"sonde_stmatrix", reinterpret_cast<void*>(&storeMatrices)},
      {"sonde_movmatrix", reinterpret_cast<void*>(&transposeMatrix)},
      {"sonde_wmma_load", reinterpret_cast<void*>(&loadFragment)},
      {"sonde_wmma_store", reinterpret_cast<void*>(&storeFragment)},
  };
  return symbols;
}

}  // namespace sonde::softgpu::exec
