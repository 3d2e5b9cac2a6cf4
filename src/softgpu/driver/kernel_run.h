// SPDX-License-Identifier: Apache-2.0
//
// Running one kernel and all that it launches, and what is reported of it.
#pragma once

#include <atomic>

#include "platform/tools_api.h"
#include "softgpu/driver/driver.h"
#include "softgpu/exec/device_launch.h"

namespace sonde::softgpu::driver {

// What every report of a command says.
SondeWork workOf(Stream& stream, const Command& command, uint32_t kind, uint64_t start, uint64_t end);
SondeWork describeKernel(Stream& stream, const Command& command, uint64_t start, uint64_t end);

// A kernel of a stream's queue, to its end and that of its descendants.
void runKernel(Stream& stream, Command& command);

}  // namespace sonde::softgpu::driver
