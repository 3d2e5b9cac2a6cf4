// SPDX-License-Identifier: Apache-2.0
//
// Lanes of one warp that call different functions through a pointer may wait
// for each other in them. So each group of lanes with one target has a stack of
// its own, and they go on in turn: where one would yield, the next runs, and the
// warp yields when all of them have.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "softgpu/exec/fiber.h"
#include "softgpu/exec/warp_state.h"

namespace sonde::softgpu::exec {

struct LaneGroup;

// One indirect call of a warp, on the stack that made it. Those of the lanes that called it are `outer`.
struct LaneSplit {
  LaneSplit* outer = nullptr;
  LaneGroup* current = nullptr;
  Fiber caller;
};

struct LaneGroup {
  LaneSplit* split = nullptr;
  WarpState* warp = nullptr;
  WarpFunction function = nullptr;
  void* arguments = nullptr;
  uint32_t mask = 0;
  uint32_t cameBack = 0;
  uint32_t localTop = 0;  // as the group left it
  uint64_t position = 0;
  bool done = false;
  bool used = false;  // by a call that goes on
  struct alignas(64) Row {
    uint32_t words[kLanes];
  };
  std::vector<Row> results, ownArguments;
  LaneSplit own;  // of a call beside which the lanes that did not make it go on
  Fiber fiber;
  FiberStack stack;
  ~LaneGroup() { releaseFiber(fiber); }
};

// A warp's, kept for its next calls.
using LaneGroups = std::vector<std::unique_ptr<LaneGroup>>;

// In a group: lets the next one run. Answers false outside of any.
bool yieldToNextGroup(WarpState* warp);

// What compiled code calls: resolves an address that it may call, or faults.
using IndirectTarget = WarpFunction (*)(WarpState* warp, uint64_t token, uint32_t mask);
// The lanes of `active` call what their tokens name. Answers those that came back; `results` are rows of words.
uint32_t callGroups(WarpState* warp, IndirectTarget target, const uint64_t* tokens, uint32_t active, void* arguments,
                    void* results, uint32_t resultWords);

// A call that some lanes of a warp make while others are elsewhere in the function. Laid out for compiled code.
struct CallJob {
  WarpFunction function;  // null: through `target`
  IndirectTarget target;
  const uint64_t* tokens;
  const void* arguments;
  void* results;
};
// Begins the call for the lanes of `active` that have not begun it and goes on with the others', until each has ended
// or yields. `live`: all lanes of the function at hand. Answers the lanes whose call has ended (low half) and those of
// them that came back.
uint64_t stepCall(WarpState* warp, const CallJob* job, uint32_t active, uint32_t live, uint32_t argumentWords,
                  uint32_t resultWords);

}  // namespace sonde::softgpu::exec
