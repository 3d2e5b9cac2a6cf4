// SPDX-License-Identifier: Apache-2.0
//
// Puts a jump in the place of a function.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::static_runtime {

// Jumps for functions that are too small to hold one: a page within 2 GiB of
// `near`. Read-only once this is gone; the page stays.
class Island {
 public:
  explicit Island(uint64_t near);
  ~Island();
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;
  // Null: no room.
  const unsigned char* add(const void* target);

 private:
  unsigned char* first_ = nullptr;
  unsigned char* next_ = nullptr;
};

// Overwrites the function at `at`, which has `room` bytes. False: it is too
// small, or its page cannot be written.
bool writeJump(uint64_t at, uint64_t room, const void* target, Island& island);

}  // namespace sonde::static_runtime
