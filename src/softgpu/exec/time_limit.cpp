// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/time_limit.h"

#include <fmt/format.h>

#include <cstdio>
#include <map>

#include "platform/clock.h"
#include "softgpu/exec/fault_text.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/program_impl.h"

namespace sonde::softgpu::exec {
namespace {

constexpr uint64_t kIdleHintNs = 10'000'000'000, kDeadlockNs = 2'000'000'000;

bool overTime(const GridRun& grid, uint64_t now) {
  const uint64_t limit = kernelTimeLimit();
  return limit && now - grid.outcome.startNs > limit;
}

void recordTimeout(GridRun& grid, const WarpState& warp) {
  recordFault(
      grid, warp, kErrorTimeout, 0, 0,
      fmt::format("still running after {:g} s (SONDE_KERNEL_TIMEOUT)", static_cast<double>(kernelTimeLimit()) * 1e-9)
          .c_str());
}

}  // namespace

void checkTime(WarpState* warp) {
  if (kernelTimeLimit() == 0 || !overTime(*warp->cta->grid, platform::nowNs())) return;
  recordTimeout(*warp->cta->grid, *warp);
  leaveWarp(warp);
}

void BlockTimes::look(GridRun& grid, const WarpState& warp) {
  constexpr uint32_t kMost = 64;
  constexpr uint64_t kShort = 50'000, kLong = 10'000'000;
  const uint64_t now = platform::nowNs(), passed = now - last_;
  if (overTime(grid, now) && !grid.failed.load(std::memory_order_relaxed)) recordTimeout(grid, warp);
  if (passed < kShort)
    every_ = every_ < kMost ? every_ * 2 : kMost;
  else if (passed > kLong)
    every_ = 1;
  last_ = now;
  left_ = every_;
}

bool IdleWatch::due() {
  if (++rounds_ % 64) return false;
  const uint64_t now = platform::nowNs();
  if (since_ == 0) since_ = now;
  return now - since_ >= kDeadlockNs;
}

void IdleWatch::look(GridRun& grid, const std::vector<Cta*>& blocks) {
  std::map<ClusterGroup*, bool> stuck;
  for (Cta* cta : blocks) {
    const bool waits = cta->onlyWaits();
    bool ended = true;  // blocks of a cluster that have no warps left need not wait
    for (uint32_t w = 0; w < cta->warps; ++w) ended &= cta->control[w].status == WarpStatus::done;
    stuck.try_emplace(cta->cluster, true).first->second &= waits || ended;
  }
  for (Cta* cta : blocks) {
    if (!looked_ || !stuck[cta->cluster]) continue;
    cta->reportDeadlock();
    return;
  }
  looked_ = true;
  if (platform::nowNs() - since_ < kIdleHintNs || blocks.empty() || grid.idleSaid.exchange(true)) return;
  const Cta& cta = *blocks[0];
  std::string text;
  for (uint32_t w = 0, named = 0; w < cta.warps && named < 8; ++w) {
    if (cta.control[w].status != WarpStatus::yielded) continue;
    text += fmt::format("{} warp {} ({})", named++ ? "," : "", w, grid.program->place(cta.states[w].position));
  }
  const WarpState& s = cta.states[0];
  std::fprintf(
      stderr,
      "sonde: kernel '%s': for %d s nothing has happened but waiting in loops: block (%u,%u,%u),%s. Unless the "
      "host or another stream writes what they read, it never ends; SONDE_KERNEL_TIMEOUT=SECONDS ends it.\n",
      shownName(grid.program->kernels()[grid.request->kernel].name).c_str(), static_cast<int>(kIdleHintNs / 1000000000),
      s.ctaid[0], s.ctaid[1], s.ctaid[2], text.c_str());
}

}  // namespace sonde::softgpu::exec
