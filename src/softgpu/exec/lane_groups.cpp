// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/lane_groups.h"

#include <algorithm>
#include <span>

#include "softgpu/exec/cta.h"
#include "softgpu/exec/grid.h"

namespace sonde::softgpu::exec {

namespace {

void groupMain(void* argument) {
  LaneGroup& g = *static_cast<LaneGroup*>(argument);
  fiberStarted(g.split->caller);
  g.cameBack = g.function(g.warp, g.mask, g.arguments, g.results.data());
  g.done = true;
  switchFiber(g.fiber, g.split->caller, true);
  __builtin_unreachable();
}

LaneGroup* freeGroup(LaneGroups& groups, size_t stackBytes) {
  for (const auto& g : groups)
    if (!g->used) return g.get();
  auto g = std::make_unique<LaneGroup>();
  if (!g->stack.reserve(stackBytes)) return nullptr;
  return groups.emplace_back(std::move(g)).get();
}

void copyResults(void* to, const LaneGroup& g, uint32_t words) {
  auto* rows = static_cast<LaneGroup::Row*>(to);
  for (uint32_t w = 0; w < words; ++w)
    for (uint32_t l = 0; l < kLanes; ++l)
      if (g.mask >> l & 1) rows[w].words[l] = g.results[w].words[l];
}

}  // namespace

bool yieldToNextGroup(WarpState* warp) {
  LaneSplit* split = warp->cta->control[warp->warpid].split;
  if (!split) return false;
  switchFiber(split->current->fiber, split->caller);
  return true;
}

uint32_t callGroups(WarpState* warp, IndirectTarget target, const uint64_t* tokens, uint32_t active, void* arguments,
                    void* results, uint32_t resultWords) {
  Cta& cta = *warp->cta;
  WarpControl& control = cta.control[warp->warpid];
  LaneSplit split;
  split.outer = control.split;
  const uint32_t localTop = warp->localTop;
  const uint64_t position = warp->position;
  LaneGroup* mine[kLanes];  // plain: lost with the stack when a fault ends the block in one of them
  uint32_t count = 0, cameBack = 0;
  for (uint32_t left = active; left;) {
    const uint64_t token = tokens[__builtin_ctz(left)];
    uint32_t same = 0;
    for (uint32_t m = left; m; m &= m - 1)
      if (tokens[__builtin_ctz(m)] == token) same |= m & (0 - m);
    left &= ~same;
    const WarpFunction function = target(warp, token, same);
    LaneGroup* g = cta.fibers ? freeGroup(control.groups, cta.grid->kernel->stackBytes) : nullptr;
    LaneGroup plain;  // one after the other: nothing can wait, or there is no memory for stacks
    LaneGroup& group = g ? *g : plain;
    group.split = &split;
    group.warp = warp;
    group.function = function;
    group.arguments = arguments;
    group.mask = same;
    group.localTop = localTop;
    group.position = position;
    group.done = false;
    group.results.resize(std::max(1u, resultWords));
    if (!g) {
      cameBack |= function(warp, same, arguments, group.results.data());
      copyResults(results, group, resultWords);
      continue;
    }
    g->used = true;
    prepareFiber(g->fiber, g->stack, &groupMain, g);
    mine[count++] = g;
  }
  // A barrier in a group saves the warp's fiber from the group's stack, and the sanitizers must know which it is.
  const void* stackBottom = control.fiber.stackBottom;
  const size_t stackSize = control.fiber.stackSize;
  for (bool waits = count != 0; waits;) {
    waits = false;
    for (LaneGroup* g : std::span(mine, count)) {
      if (g->done) continue;
      control.split = &split;
      split.current = g;
      split.caller.stackBottom = stackBottom;
      split.caller.stackSize = stackSize;
      control.fiber.stackBottom = g->stack.bottom();
      control.fiber.stackSize = g->stack.size();
      warp->localTop = g->localTop;
      warp->position = g->position;
      switchFiber(split.caller, g->fiber);
      g->localTop = warp->localTop;
      g->position = warp->position;
      waits |= !g->done;
    }
    control.split = split.outer;
    control.fiber.stackBottom = stackBottom;
    control.fiber.stackSize = stackSize;
    if (waits) yieldWarp(warp);
  }
  for (LaneGroup* g : std::span(mine, count)) {
    cameBack |= g->cameBack;
    copyResults(results, *g, resultWords);
    g->used = false;
  }
  warp->localTop = localTop;
  warp->position = position;
  return cameBack;
}

}  // namespace sonde::softgpu::exec
