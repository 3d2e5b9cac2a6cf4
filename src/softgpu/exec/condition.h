// SPDX-License-Identifier: Apache-2.0
//
// The values that conditional graph nodes look at. Kernels set them with
// cudaGraphSetConditional; thread-safe.
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

// A new value, 0. The handle is never 0; 0: there are too many.
uint64_t createCondition();
void destroyCondition(uint64_t handle);
// False: no such handle.
bool setCondition(uint64_t handle, uint32_t value);
uint32_t conditionValue(uint64_t handle);

}  // namespace sonde::softgpu::exec
