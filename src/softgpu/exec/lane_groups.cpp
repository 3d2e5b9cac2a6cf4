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

uint32_t sameToken(const uint64_t* tokens, uint32_t lanes) {
  const uint64_t token = tokens[__builtin_ctz(lanes)];
  uint32_t same = 0;
  for (uint32_t m = lanes; m; m &= m - 1)
    if (tokens[__builtin_ctz(m)] == token) same |= m & (0 - m);
  return same;
}

void prepare(LaneGroup& g, LaneSplit* split, WarpState* warp, WarpFunction function, void* arguments, uint32_t mask,
             uint32_t resultWords) {
  g.split = split;
  g.warp = warp;
  g.function = function;
  g.arguments = arguments;
  g.mask = mask;
  g.localTop = warp->localTop;
  g.position = warp->position;
  g.done = false;
  g.results.resize(std::max(1u, resultWords));
}

// Runs a group until it ends or yields.
void runGroup(WarpControl& control, LaneGroup& g) {
  WarpState* const warp = g.warp;
  // A barrier in a group saves the warp's fiber from the group's stack, and the sanitizers must know which it is.
  const void* const stackBottom = control.fiber.stackBottom;
  const size_t stackSize = control.fiber.stackSize;
  LaneSplit* const before = control.split;
  const uint32_t localTop = warp->localTop;
  const uint64_t position = warp->position;
  control.split = g.split;
  g.split->current = &g;
  g.split->caller.stackBottom = stackBottom;
  g.split->caller.stackSize = stackSize;
  control.fiber.stackBottom = g.stack.bottom();
  control.fiber.stackSize = g.stack.size();
  warp->localTop = g.localTop;
  warp->position = g.position;
  switchFiber(g.split->caller, g.fiber);
  g.localTop = warp->localTop;
  g.position = warp->position;
  warp->localTop = localTop;
  warp->position = position;
  control.split = before;
  control.fiber.stackBottom = stackBottom;
  control.fiber.stackSize = stackSize;
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
  LaneGroup* mine[kLanes];  // plain: lost with the stack when a fault ends the block in one of them
  uint32_t count = 0, cameBack = 0;
  for (uint32_t left = active; left;) {
    const uint32_t same = sameToken(tokens, left);
    left &= ~same;
    const WarpFunction function = target(warp, tokens[__builtin_ctz(same)], same);
    LaneGroup* g = cta.fibers ? freeGroup(control.groups, cta.grid->kernel->stackBytes) : nullptr;
    if (!g) {  // one after the other: nothing can wait, or there is no memory for stacks
      LaneGroup plain;
      prepare(plain, &split, warp, function, arguments, same, resultWords);
      cameBack |= function(warp, same, arguments, plain.results.data());
      copyResults(results, plain, resultWords);
      continue;
    }
    prepare(*g, &split, warp, function, arguments, same, resultWords);
    g->used = true;
    prepareFiber(g->fiber, g->stack, &groupMain, g);
    mine[count++] = g;
  }
  for (bool waits = count != 0; waits;) {
    waits = false;
    for (LaneGroup* g : std::span(mine, count)) {
      if (g->done) continue;
      runGroup(control, *g);
      waits |= !g->done;
    }
    if (waits) yieldWarp(warp);
  }
  for (LaneGroup* g : std::span(mine, count)) {
    cameBack |= g->cameBack;
    copyResults(results, *g, resultWords);
    g->used = false;
  }
  return cameBack;
}

uint64_t stepCall(WarpState* warp, const CallJob* job, uint32_t active, uint32_t live, uint32_t argumentWords,
                  uint32_t resultWords) {
  Cta& cta = *warp->cta;
  WarpControl& control = cta.control[warp->warpid];
  const auto functionOf = [&](uint32_t lanes) {
    return job->function ? job->function : job->target(warp, job->tokens[__builtin_ctz(lanes)], lanes);
  };
  uint32_t ended = 0, cameBack = 0;
  const auto plainly = [&](uint32_t lanes) {
    cameBack |= functionOf(lanes)(warp, lanes, const_cast<void*>(job->arguments), job->results);
    ended |= lanes;
  };
  // A lane's call is the one that was begun by those who run now: calls inside it have other splits around them.
  LaneGroup* mine[kLanes];
  uint32_t count = 0, begun = 0;
  for (const auto& g : control.groups)
    if (g->used && g->split == &g->own && g->own.outer == control.split && (g->mask & active)) {
      mine[count++] = g.get();
      begun |= g->mask;
    }
  for (uint32_t fresh = active & ~begun; fresh;) {
    const uint32_t lanes = job->function ? fresh : sameToken(job->tokens, fresh);
    fresh &= ~lanes;
    // With everybody here nobody else can be waited for.
    LaneGroup* g = cta.fibers && lanes != live ? freeGroup(control.groups, cta.grid->kernel->stackBytes) : nullptr;
    if (!g) {
      plainly(lanes);
      continue;
    }
    const auto* rows = static_cast<const LaneGroup::Row*>(job->arguments);
    g->ownArguments.assign(rows, rows + std::max(1u, argumentWords));
    prepare(*g, &g->own, warp, functionOf(lanes), g->ownArguments.data(), lanes, resultWords);
    g->own.outer = control.split;
    g->used = true;
    prepareFiber(g->fiber, g->stack, &groupMain, g);
    mine[count++] = g;
  }
  for (LaneGroup* g : std::span(mine, count)) {
    runGroup(control, *g);
    if (!g->done) continue;
    ended |= g->mask;
    cameBack |= g->cameBack;
    copyResults(job->results, *g, resultWords);
    g->used = false;
  }
  return ended | uint64_t{cameBack} << 32;
}

}  // namespace sonde::softgpu::exec
