// SPDX-License-Identifier: Apache-2.0
//
// Puts a jump in the place of a function.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::static_runtime {

// Jumps for functions that are too small to hold one, or that say which runtime
// is called: pages within 2 GiB of `near`. Read-only once this is gone; the pages stay.
class Island {
 public:
  explicit Island(uint64_t near);
  ~Island();
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;
  // Null: no room. A `mark` other than 0 is first written to the thread's word at `markOffset` from the thread pointer.
  const unsigned char* add(const void* target, unsigned mark, int32_t markOffset);

 private:
  unsigned char* first_ = nullptr;
  unsigned char* next_ = nullptr;
};

// Overwrites the function at `at`, which has `room` bytes. False: it is too
// small, or its page cannot be written.
bool writeJump(uint64_t at, uint64_t room, const void* target, Island& island, unsigned mark = 0,
               int32_t markOffset = 0);

}  // namespace sonde::static_runtime
