// SPDX-License-Identifier: Apache-2.0
//
// Operations of streams on words of memory: checks, and what a stream does.
#pragma once

#include <span>
#include <vector>

#include "softgpu/driver/command.h"
#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

// A call has fewer operations than this.
inline constexpr unsigned kMemoryOpLimit = 256;

// From the operations of the API to those of a stream, all checked against what
// the context's device says it can do; barriers and flushes leave nothing,
// for memory is coherent here. Nothing is enqueued. `plan` is complete or
// untouched.
CUresult planMemoryOps(std::span<const CUstreamBatchMemOpParams> ops, const Context& context,
                       std::vector<MemoryOp>& plan);

}  // namespace sonde::softgpu::driver
