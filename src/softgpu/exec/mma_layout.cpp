// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/mma_layout.h"

namespace sonde::softgpu::exec {

namespace {

MatrixType typeOf(const MatrixJob& job, MatrixPart part) {
  return part == MatrixPart::a ? job.a : part == MatrixPart::b ? job.b : job.c;
}

// mma.m8n8k4 on f16: four products at a time, each by 8 lanes: the quads q and q + 4.
MatrixPlace quadPairPlace(const MatrixJob& job, MatrixPart part, unsigned lane, unsigned i) {
  const unsigned inQuad = lane % 4, upper = lane < 16 ? 0 : 4;
  auto at = [](unsigned row, unsigned column) {
    return MatrixPlace{static_cast<uint16_t>(row), static_cast<uint16_t>(column)};
  };
  if (part == MatrixPart::a) return job.columnA ? at(i + upper, inQuad) : at(inQuad + upper, i);
  if (part == MatrixPart::b) return job.rowB ? at(inQuad, i + upper) : at(i, inQuad + upper);
  if (job.c == MatrixType::f16) return at(inQuad + upper, i);
  return at((lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1));
}

}  // namespace

MatrixPlace matrixPlace(const MatrixJob& job, MatrixPart part, unsigned reg, unsigned lane, unsigned index) {
  const MatrixType type = typeOf(job, part);
  const unsigned per = perRegister(type);
  auto at = [](unsigned row, unsigned column) {
    return MatrixPlace{static_cast<uint16_t>(row), static_cast<uint16_t>(column)};
  };
  if (job.wmma) {
    // Row-major; the elements of one number, of all lanes, are neighbours: registers of 32 bits are the matrix as it
    // is. Registers that the instruction has beyond what the matrix needs stay unused.
    const unsigned rows = part == MatrixPart::b ? job.k : job.m;
    const unsigned columns = part == MatrixPart::a ? job.k : job.n;
    const unsigned perLane = rows * columns / 32, i = reg * per + index;
    if (i >= perLane) return {0, 0, false};
    const unsigned element = i * 32 + lane;
    return at(element / columns, element % columns);
  }
  if (job.m == 8 && job.k == 4 && job.a == MatrixType::f16) return quadPairPlace(job, part, lane, reg * per + index);

  const unsigned group = lane / 4, inGroup = lane % 4;
  if (part == MatrixPart::c) {
    // Pairs of neighbouring columns; the second half of the registers is 8 rows below.
    const unsigned i = reg * per + index;
    return at(group + (i >= 2 ? 8 : 0), inGroup * 2 + (i & 1));
  }
  // Along k: a register's elements, then the four lanes of a group, then the next register.
  const bool twoRows = part == MatrixPart::a && job.m == 16;
  const unsigned step = twoRows ? reg / 2 : reg;
  const unsigned alongK = step * 4 * per + inGroup * per + index;
  if (part == MatrixPart::a) return at(group + (twoRows && (reg & 1) ? 8 : 0), alongK);
  return at(alongK, group);
}

}  // namespace sonde::softgpu::exec
