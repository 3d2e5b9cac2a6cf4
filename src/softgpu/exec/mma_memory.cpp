// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions that touch memory, and movmatrix.
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

template <class T>
void gather(const FragmentPlan& plan, const std::byte* matrix, void* fragment) {
  const T* from = reinterpret_cast<const T*>(matrix);
  T* to = static_cast<T*>(fragment);
  const uint16_t* at = plan.at.data();
  for (size_t i = 0; i < plan.at.size(); ++i) to[i] = at[i] == FragmentPlan::kUnused ? T{0} : from[at[i]];
}
template <class T>
void scatter(const FragmentPlan& plan, const void* fragment, std::byte* matrix) {
  const T* from = static_cast<const T*>(fragment);
  T* to = reinterpret_cast<T*>(matrix);
  const uint16_t* at = plan.at.data();
  for (size_t i = 0; i < plan.at.size(); ++i)
    if (at[i] != FragmentPlan::kUnused) to[at[i]] = from[i];
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
  const FragmentPlan& plan = fragmentPlan(*job, part);
  if (bits < 8) {
    uint8_t* lines[256] = {};
    forEachLine(warp, *job, part, addresses[0], space, stride, bits, false,
                [&](uint8_t* bytes, unsigned line) { lines[line] = bytes; });
    loadSmall(plan, lines, bits, static_cast<uint32_t*>(out));
    return;
  }
  alignas(64) std::byte matrix[kMatrixBytes];
  const size_t bytes = plan.length * bits / 8;
  forEachLine(warp, *job, part, addresses[0], space, stride, bits, false,
              [&](uint8_t* from, unsigned line) { std::memcpy(matrix + line * bytes, from, bytes); });
  switch (bits) {
    case 8: gather<uint8_t>(plan, matrix, out); break;
    case 16: gather<uint16_t>(plan, matrix, out); break;
    case 32: gather<uint32_t>(plan, matrix, out); break;
    default: gather<uint64_t>(plan, matrix, out); break;
  }
}

// Results have 16 bits or more.
SONDE_DEVICE_CODE void storeFragment(WarpState* warp, const MatrixJob* job, uint32_t partNumber,
                                     const uint64_t* addresses, uint32_t space, uint32_t stride, const void* in) {
  const auto part = static_cast<MatrixPart>(partNumber);
  const unsigned bits = bitsOf(job->a);
  const FragmentPlan& plan = fragmentPlan(*job, part);
  alignas(64) std::byte matrix[kMatrixBytes];
  const size_t bytes = plan.length * bits / 8;
  switch (bits) {
    case 16: scatter<uint16_t>(plan, in, matrix); break;
    case 32: scatter<uint32_t>(plan, in, matrix); break;
    default: scatter<uint64_t>(plan, in, matrix); break;
  }
  forEachLine(warp, *job, part, addresses[0], space, stride, bits, true,
              [&](uint8_t* to, unsigned line) { std::memcpy(to, matrix + line * bytes, bytes); });
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
