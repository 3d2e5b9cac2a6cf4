// SPDX-License-Identifier: Apache-2.0
//
// Kernels that never end. SONDE_KERNEL_TIMEOUT=SECONDS ends a kernel that runs
// longer, with CUDA_ERROR_LAUNCH_TIMEOUT and where it is; loops then count their
// instructions and ask for the time now and again. Without it, a kernel in which for long nothing
// happens but waiting in loops is named once.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "softgpu/exec/warp_state.h"

namespace sonde::softgpu::exec {

struct GridRun;
struct Cta;

// Nanoseconds; 0: no limit.
inline uint64_t kernelTimeLimit() {
  static const uint64_t limit = [] {
    const char* text = std::getenv("SONDE_KERNEL_TIMEOUT");
    double seconds = 0;
    if (text) std::from_chars(text, text + std::strlen(text), seconds);  // whatever the program's locale is
    return seconds > 0 && seconds < 1e9 ? static_cast<uint64_t>(seconds * 1e9) : 0;
  }();
  return limit;
}

// Ends the grid, and does not return, when the limit has passed.
void checkTime(WarpState* warp);

// The same between the blocks of one thread, where no warp runs. Short blocks are not asked for the time each.
class BlockTimes {
 public:
  // `warp` stands for the block.
  void ended(GridRun& grid, const WarpState& warp) {
    if (kernelTimeLimit() && --left_ == 0) look(grid, warp);
  }

 private:
  void look(GridRun& grid, const WarpState& warp);
  uint32_t every_ = 1, left_ = 2;  // a launch of one block costs nothing
  uint64_t last_ = 0;
};

// One thread's view of a grid whose warps may all be waiting.
class IdleWatch {
 public:
  void progressed() {
    since_ = 0;
    looked_ = false;
  }
  // Every warp of the blocks that `blocks()` lists has waited in its loop once more.
  // Ends them if all that they do is to wait for mbarriers, which nobody else can complete.
  template <class Blocks>
  void idle(GridRun& grid, Blocks&& blocks) {
    if (due()) look(grid, blocks());
  }

 private:
  bool due();
  void look(GridRun& grid, const std::vector<Cta*>& blocks);
  uint64_t since_ = 0;
  uint32_t rounds_ = 0;
  bool looked_ = false;  // since progress was made
};

}  // namespace sonde::softgpu::exec
