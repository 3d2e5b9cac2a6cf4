// SPDX-License-Identifier: Apache-2.0
//
// mma and wmma.mma: fragments to matrices, the product, and back.
#include <algorithm>
#include <memory>

#include "softgpu/exec/mma_helpers.h"
#include "softgpu/exec/mma_number.h"

namespace sonde::softgpu::exec {

namespace {

constexpr unsigned kLaneCount = 32, kMaxSide = 32;

// a by rows and b by columns, so that k is innermost.
struct Matrices {
  MatrixVector a[kMaxSide], b[kMaxSide];
  double c[kMaxSide][kMaxSide];
  int64_t ci[kMaxSide][kMaxSide];
};

template <class F>
void forEachElement(const MatrixJob& job, MatrixPart part, MatrixType type, unsigned registers, unsigned lanes, F f) {
  const unsigned per = perRegister(type);
  for (unsigned reg = 0; reg < registers; ++reg)
    for (unsigned lane = 0; lane < kLaneCount; ++lane) {
      if (!((lanes >> lane) & 1)) continue;
      for (unsigned i = 0; i < per; ++i) {
        const MatrixPlace place = matrixPlace(job, part, reg, lane, i);
        if (place.used) f(place, reg * kLaneCount + lane, i);
      }
    }
}

uint64_t field(const void* fragment, MatrixType type, unsigned at, unsigned i) {
  if (type == MatrixType::f64) return static_cast<const uint64_t*>(fragment)[at];
  const uint32_t word = static_cast<const uint32_t*>(fragment)[at];
  const unsigned bits = bitsOf(type);
  return bits == 32 ? word : (word >> (i * bits)) & ((1u << bits) - 1);
}

void setField(void* fragment, MatrixType type, unsigned at, unsigned i, uint64_t value) {
  if (type == MatrixType::f64) {
    static_cast<uint64_t*>(fragment)[at] = value;
    return;
  }
  uint32_t& word = static_cast<uint32_t*>(fragment)[at];
  const unsigned bits = bitsOf(type);
  if (bits == 32) {
    word = static_cast<uint32_t>(value);
    return;
  }
  const uint32_t mask = ((1u << bits) - 1) << (i * bits);
  word = (word & ~mask) | (static_cast<uint32_t>(value << (i * bits)) & mask);
}

// The product for the lanes of one matrix (all of them but for m8n8k4 on f16).
void multiply(const MatrixJob& job, unsigned lanes, const void* a, const void* b, const void* c, void* d,
              Matrices& x) {
  for (MatrixVector& v : x.a) v.special = false;
  for (MatrixVector& v : x.b) v.special = false;
  forEachElement(job, MatrixPart::a, job.a, job.registersA, lanes, [&](MatrixPlace p, unsigned at, unsigned i) {
    setElement(x.a[p.row], p.column, field(a, job.a, at, i), job.a);
  });
  forEachElement(job, MatrixPart::b, job.b, job.registersB, lanes, [&](MatrixPlace p, unsigned at, unsigned i) {
    setElement(x.b[p.column], p.row, field(b, job.b, at, i), job.b);
  });
  MatrixJob output = job;
  output.c = job.d;
  if (isIntegerMatrix(job.a)) {
    forEachElement(job, MatrixPart::c, job.c, job.registersC, lanes, [&](MatrixPlace p, unsigned at, unsigned i) {
      x.ci[p.row][p.column] = static_cast<int32_t>(field(c, job.c, at, i));
    });
    const bool single = job.a == MatrixType::b1;
    forEachElement(output, MatrixPart::c, job.d, job.registersD, lanes, [&](MatrixPlace p, unsigned at, unsigned i) {
      int64_t sum = x.ci[p.row][p.column];
      const int32_t *u = x.a[p.row].integer, *v = x.b[p.column].integer;
      int32_t products = 0;   // at most 256 products of 16 bits
      if (!single)
        for (unsigned k = 0; k < job.k; ++k) products += u[k] * v[k];
      else
        for (unsigned k = 0; k < job.k; ++k) products += job.andPopc ? u[k] & v[k] : u[k] ^ v[k];
      sum += products;
      if (job.satfinite) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
      setField(d, job.d, at, i, static_cast<uint32_t>(sum));
    });
    return;
  }
  forEachElement(job, MatrixPart::c, job.c, job.registersC, lanes, [&](MatrixPlace p, unsigned at, unsigned i) {
    x.c[p.row][p.column] = matrixReal(field(c, job.c, at, i), job.c);
  });
  forEachElement(output, MatrixPart::c, job.d, job.registersD, lanes, [&](MatrixPlace p, unsigned at, unsigned i) {
    setField(d, job.d, at, i, matrixDot(job, x.a[p.row], x.b[p.column], x.c[p.row][p.column]));
  });
}

}  // namespace

void multiplyMatrices(const MatrixJob* job, const void* a, const void* b, const void* c, void* d) {
  // Too large for the stack of a warp.
  thread_local std::unique_ptr<Matrices> matrices;
  if (!matrices) matrices = std::make_unique<Matrices>();
  const bool quadPairs = !job->wmma && job->m == 8 && job->k == 4 && job->a == MatrixType::f16;
  if (!quadPairs) {
    multiply(*job, 0xffffffffu, a, b, c, d, *matrices);
    return;
  }
  for (unsigned pair = 0; pair < 4; ++pair) multiply(*job, 0x000f000fu << (4 * pair), a, b, c, d, *matrices);
}

}  // namespace sonde::softgpu::exec
