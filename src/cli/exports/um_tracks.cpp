// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/um_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "cli/reports/table.h"
#include "cli/reports/um_analysis.h"

namespace sonde::exports {
namespace {

using namespace reports;

UmSlice sliceOf(const Trace& trace, const UnifiedMemory& e) {
  UmSlice s;
  s.start = e.start;
  s.end = e.end;
  s.texts.emplace_back("address", fmt::format("0x{:x}", e.address));
  const std::string flags(unifiedMemoryFlagsName(e.kind, e.flags));
  switch (e.kind) {
    case kUmHtoD:
    case kUmDtoH:
    case kUmDtoD:
    case kUmRemoteMap:
      s.name = fmt::format("{} ({})", formatBytes(static_cast<double>(e.value)), flags);
      s.numbers.emplace_back("bytes", e.value);
      s.texts.emplace_back("cause", flags);
      break;
    case kUmGpuFault:
      s.name = fmt::format("{} fault", flags);
      s.numbers.emplace_back("faults", e.value);
      s.texts.emplace_back("access", flags);
      break;
    case kUmCpuFault: {
      const std::string function = umFunction(trace, e.process, e.value), source = umSource(trace, e.process, e.value);
      s.name = fmt::format("{} fault in {}", flags, function.empty() ? umPlace(trace, e.process, e.value) : function);
      s.texts.emplace_back("access", flags);
      if (!source.empty()) s.texts.emplace_back("source", source);
      s.texts.emplace_back("instruction", fmt::format("0x{:x}", e.value));
      break;
    }
    case kUmThrashing:
      s.name = umContenders(e);
      s.numbers.emplace_back("bytes", e.value);
      break;
    default: s.name = umOnCpu(e) ? "CPU held back" : fmt::format("GPU {} held back", e.srcId);
  }
  return s;
}

std::string trackName(const UnifiedMemory& e) {
  const char* what = nullptr;
  switch (e.kind) {
    case kUmHtoD: what = "Host-to-Device"; break;
    case kUmDtoH: what = "Device-to-Host"; break;
    case kUmDtoD: what = "Device-to-Device"; break;
    case kUmGpuFault: what = "page faults"; break;
    case kUmRemoteMap: what = "remote maps"; break;
    case kUmThrashing: return "Unified memory: thrashing";
    case kUmThrottling: return "Unified memory: throttling";
    default: return "Unified memory: CPU page faults";
  }
  return fmt::format("Unified memory: GPU {} {}", umDevice(e), what);
}

}  // namespace

std::vector<UmTrack> umTracks(const Trace& trace) {
  // What overlaps goes to a further track of the same name.
  std::map<std::tuple<uint32_t, std::string>, std::vector<UmTrack>> lanes;
  for (const UnifiedMemory& e : trace.unifiedMemory) {  // by start
    const std::string name = trackName(e);
    auto& all = lanes[{e.process, name}];
    UmTrack* free = nullptr;
    for (UmTrack& lane : all)
      if (free == nullptr && std::max(lane.slices.back().start, lane.slices.back().end) <= e.start) free = &lane;
    if (free == nullptr) free = &all.emplace_back(UmTrack{e.process, name, {}});
    free->slices.push_back(sliceOf(trace, e));
  }
  std::vector<UmTrack> out;
  for (auto& [key, all] : lanes)
    for (UmTrack& lane : all) out.push_back(std::move(lane));
  return out;
}

std::vector<UmLevel> umLevels(const Trace& trace) {
  std::map<std::pair<uint32_t, uint32_t>, std::multimap<uint64_t, int64_t>> changes;
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    const auto bytes = static_cast<int64_t>(e.value);
    if (e.kind == kUmHtoD || e.kind == kUmDtoD) changes[{e.process, e.dstId}].emplace(e.end, bytes);
    if (e.kind == kUmDtoH || e.kind == kUmDtoD) changes[{e.process, e.srcId}].emplace(e.start, -bytes);
  }
  std::vector<UmLevel> out;
  for (const auto& [key, all] : changes) {
    UmLevel level{key.first, key.second, {}};
    int64_t now = 0;
    for (const auto& [time, change] : all) {
      now = std::max<int64_t>(now + change, 0);  // what a device touched first came to it without a transfer
      if (!level.values.empty() && level.values.back().first == time)
        level.values.back().second = now;
      else
        level.values.emplace_back(time, now);
    }
    out.push_back(std::move(level));
  }
  return out;
}

}  // namespace sonde::exports
