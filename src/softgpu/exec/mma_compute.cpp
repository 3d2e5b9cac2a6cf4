// SPDX-License-Identifier: Apache-2.0
//
// mma and wmma.mma: fragments to matrices, the product, and back.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "softgpu/exec/mma_helpers.h"
#include "softgpu/exec/mma_number.h"
#include "softgpu/exec/mma_tile.h"

namespace sonde::softgpu::exec {

namespace {

constexpr unsigned kLaneCount = 32, kMaxSide = 32, kMaxDepth = 256;

// Where the elements of an instruction's registers are; worked out once for each
// kind of instruction and thread.
struct Plan {
  using Element = MatrixElement;
  MatrixJob job;
  unsigned depth = 0;   // k, padded
  unsigned groups = 1;  // m8n8k4 on f16 makes four products
  std::vector<Element> a[4], b[4], c[4], d[4];
  std::unique_ptr<TilePlan> tile;  // or null
};

Plan makePlan(const MatrixJob& job) {
  Plan plan;
  plan.job = job;
  plan.depth = (job.k + 7) / 8 * 8;
  if (!job.wmma && job.m == 8 && job.k == 4 && job.a == MatrixType::f16) plan.groups = 4;
  auto list = [&](const MatrixJob& j, MatrixPart part, MatrixType type, unsigned registers,
                  std::vector<Plan::Element>* out) {
    for (unsigned reg = 0; reg < registers; ++reg)
      for (unsigned lane = 0; lane < kLaneCount; ++lane)
        for (unsigned i = 0; i < perRegister(type); ++i) {
          const MatrixPlace p = matrixPlace(j, part, reg, lane, i);
          if (!p.used) continue;
          out[plan.groups == 4 ? lane % 16 / 4 : 0].push_back(
              {static_cast<uint16_t>(reg * kLaneCount + lane), static_cast<uint16_t>(i), p.row, p.column});
        }
  };
  MatrixJob output = job;
  output.c = job.d;
  list(job, MatrixPart::a, job.a, job.registersA, plan.a);
  list(job, MatrixPart::b, job.b, job.registersB, plan.b);
  list(job, MatrixPart::c, job.c, job.registersC, plan.c);
  list(output, MatrixPart::c, job.d, job.registersD, plan.d);
  if (plan.groups == 1) plan.tile = TilePlan::make(job, plan.a[0], plan.b[0], plan.c[0], plan.d[0]);
  return plan;
}

const Plan& planOf(const MatrixJob& job) {
  thread_local std::vector<std::unique_ptr<Plan>> plans;
  for (const auto& p : plans)
    if (std::memcmp(&p->job, &job, sizeof job) == 0) return *p;
  plans.push_back(std::make_unique<Plan>(makePlan(job)));
  return *plans.back();
}

// a by rows and b by columns, so that k is innermost; lines are `depth` apart.
struct Side {
  double real[kMaxSide * kMaxDepth];
  int32_t exponent[kMaxSide * kMaxDepth];
  int32_t integer[kMaxSide * kMaxDepth];
  bool special[kMaxSide];

  MatrixLine line(unsigned i, unsigned depth) const {
    return {real + i * depth, exponent + i * depth, integer + i * depth, special[i]};
  }
};
struct Matrices {
  Side a, b;
  double c[kMaxSide][kMaxSide];
  int64_t ci[kMaxSide][kMaxSide];
};

uint64_t field(const void* fragment, MatrixType type, const Plan::Element& e) {
  if (type == MatrixType::f64) return static_cast<const uint64_t*>(fragment)[e.word];
  const uint32_t word = static_cast<const uint32_t*>(fragment)[e.word];
  const unsigned bits = bitsOf(type);
  return bits == 32 ? word : (word >> (e.field * bits)) & ((1u << bits) - 1);
}

void setField(void* fragment, MatrixType type, const Plan::Element& e, uint64_t value) {
  if (type == MatrixType::f64) {
    static_cast<uint64_t*>(fragment)[e.word] = value;
    return;
  }
  uint32_t& word = static_cast<uint32_t*>(fragment)[e.word];
  const unsigned bits = bitsOf(type);
  if (bits == 32) {
    word = static_cast<uint32_t>(value);
    return;
  }
  const uint32_t mask = ((1u << bits) - 1) << (e.field * bits);
  word = (word & ~mask) | (static_cast<uint32_t>(value << (e.field * bits)) & mask);
}

void fill(Side& side, unsigned lines, unsigned depth, unsigned k, MatrixType type, const void* fragment,
          const std::vector<Plan::Element>& elements, bool byRow) {
  const bool integers = isIntegerMatrix(type);
  if (k != depth) {
    std::fill_n(side.real, lines * depth, 0.0);
    std::fill_n(side.exponent, lines * depth, kZeroExponent);
    std::fill_n(side.integer, lines * depth, 0);
  }
  std::fill_n(side.special, kMaxSide, false);
  for (const Plan::Element& e : elements) {
    const unsigned line = byRow ? e.row : e.column;
    const unsigned at = line * depth + positionOf(byRow ? e.column : e.row, type);
    const uint64_t bits = field(fragment, type, e);
    if (integers) {
      side.integer[at] = matrixInteger(bits, type);
      continue;
    }
    const double v = matrixReal(bits, type);
    side.real[at] = v;
    side.exponent[at] = exponentOf(v);
    side.special[line] |= side.exponent[at] == 1024;  // infinity or NaN
  }
}

}  // namespace

void multiplyMatrices(const MatrixJob* job, const void* a, const void* b, const void* c, void* d) {
  const Plan& plan = planOf(*job);
  if (plan.tile && plan.tile->multiply(*job, a, b, c, d)) return;
  multiplyElements(*job, a, b, c, d);
}

void multiplyElements(const MatrixJob& job, const void* a, const void* b, const void* c, void* d) {
  const Plan& plan = planOf(job);
  thread_local std::unique_ptr<Matrices> matrices;  // too large for the stack of a warp
  if (!matrices) matrices = std::make_unique<Matrices>();
  Matrices& x = *matrices;
  const unsigned depth = plan.depth;

  for (unsigned g = 0; g < plan.groups; ++g) {
    fill(x.a, job.m, depth, job.k, job.a, a, plan.a[g], true);
    fill(x.b, job.n, depth, job.k, job.b, b, plan.b[g], false);
    if (isIntegerMatrix(job.a)) {
      for (const Plan::Element& e : plan.c[g]) x.ci[e.row][e.column] = static_cast<int32_t>(field(c, job.c, e));
      for (const Plan::Element& e : plan.d[g]) {
        int64_t sum = matrixDot(job, x.a.line(e.row, depth), x.b.line(e.column, depth), x.ci[e.row][e.column], depth);
        if (job.satfinite) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
        setField(d, job.d, e, static_cast<uint32_t>(sum));
      }
      continue;
    }
    for (const Plan::Element& e : plan.c[g]) x.c[e.row][e.column] = matrixReal(field(c, job.c, e), job.c);
    for (const Plan::Element& e : plan.d[g])
      setField(d, job.d, e, matrixDot(job, x.a.line(e.row, depth), x.b.line(e.column, depth), x.c[e.row][e.column]));
  }
}

}  // namespace sonde::softgpu::exec
