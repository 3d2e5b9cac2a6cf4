// SPDX-License-Identifier: Apache-2.0
//
// What each host thread does for a grid.
#pragma once

#include "softgpu/exec/grid.h"

namespace sonde::softgpu::exec {

// Takes blocks (or clusters) of the grid and runs them until there are none left. A block that only waits (for another
// block, say) does not keep the others of its thread from starting.
void runBlocks(GridRun& grid);

}  // namespace sonde::softgpu::exec
