// SPDX-License-Identifier: Apache-2.0
//
// The usual products of matrices, a whole tile at a time: every column of a row
// in one vector. Results are those of matrixDot.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/exec/mma_layout.h"

namespace sonde::softgpu::exec {

// One element of a fragment: the register's row and lane (register * 32 + lane),
// and which part of it.
struct MatrixElement {
  uint16_t word, field;
  uint16_t row, column;
};

class TilePlan {
 public:
  // Null: this kind of product, or this host, has no such form.
  static std::unique_ptr<TilePlan> make(const MatrixJob& job, const std::vector<MatrixElement>& a,
                                        const std::vector<MatrixElement>& b, const std::vector<MatrixElement>& c,
                                        const std::vector<MatrixElement>& d);
  // False: the operands hold something that wants matrixDot (infinities, NaN); d is untouched then.
  bool multiply(const MatrixJob& job, const void* a, const void* b, const void* c, void* d) const;

  struct Shape {
    unsigned m, n, k;
    MatrixType type;
    const uint16_t *a, *b, *c, *d;  // positions of [m][k], [k][n], [m][n]; d: of the elements that are written
    const uint16_t* dElement;       // row * n + column of each
    unsigned dCount;
    bool satfinite, halfSum, halfAddend;
    bool dense;  // wmma: element i of lane l is number 32 i + l of the matrix, row by row
  };

 private:
  std::vector<uint16_t> a_, b_, c_, d_, dElement_;
};

}  // namespace sonde::softgpu::exec
