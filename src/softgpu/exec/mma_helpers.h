// SPDX-License-Identifier: Apache-2.0
//
// The run-time side of the matrix instructions: functions that compiled code
// calls with fragments in memory (32-lane rows, see mma_layout.h).
#pragma once

#include <span>

#include "softgpu/exec/mma_layout.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/compiler.h"

namespace sonde::softgpu::exec {

// mma, wmma.mma: "sonde_mma".
void multiplyMatrices(const MatrixJob* job, const void* a, const void* b, const void* c, void* d);
// The same, element by element: every form, slowly.
void multiplyElements(const MatrixJob& job, const void* a, const void* b, const void* c, void* d);

std::span<const jit::RuntimeSymbol> matrixHelpers();

}  // namespace sonde::softgpu::exec
