// SPDX-License-Identifier: Apache-2.0
//
// What the calls with many operations have in common: their stream, and lists
// of which each entry holds for the operations from a given index on.
#pragma once

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

// The stream of a batch; the legacy default stream takes none.
CUresult batchStream(CUstream hStream, Ref<Stream>& stream);

// The first index is 0, each is greater than the one before, all are less than `count`.
bool validIndices(const size_t* indices, size_t entries, size_t count);

// The entry that holds for operation `i`, for `i` in rising order: `entry` is where the last search ended.
inline size_t entryOf(const size_t* indices, size_t entries, size_t i, size_t& entry) {
  while (entry + 1 < entries && indices[entry + 1] <= i) entry++;
  return entry;
}

}  // namespace sonde::softgpu::driver
