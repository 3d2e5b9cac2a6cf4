// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/kernel_counters.h"

#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace sonde::exports {

CountedLaunches::CountedLaunches(const Trace& trace) : trace_(trace) {
  for (const CountedLaunch& l : trace.launches) launches_[{l.process, l.correlation}] = &l;
  if (launches_.empty()) return;
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!e.finished || (e.work != GpuWork::Kernel && e.work != GpuWork::Graph)) continue;
    const auto [it, isNew] = spans_.try_emplace({e.process, e.correlation}, e.start, e.end);
    it->second = {std::min(it->second.first, e.start), std::max(it->second.second, e.end)};
  }
}

const CountedLaunch* CountedLaunches::of(const GpuEvent& kernel) const {
  const auto it = launches_.find({kernel.process, kernel.correlation});
  return it != launches_.end() && it->second->kernel == kernel.name ? it->second : nullptr;
}

std::pair<uint64_t, uint64_t> CountedLaunches::span(const CountedLaunch& launch) const {
  const auto it = spans_.find({launch.process, launch.correlation});
  return it != spans_.end() ? it->second : std::pair(launch.start, launch.end);
}

std::vector<const CountedLaunch*> CountedLaunches::withoutKernel() const {
  std::set<const CountedLaunch*> found;
  for (const GpuEvent& e : trace_.gpuEvents)
    if (e.finished && e.work == GpuWork::Kernel)
      if (const CountedLaunch* l = of(e)) found.insert(l);
  std::vector<const CountedLaunch*> rest;
  for (const auto& [key, l] : launches_)
    if (!found.contains(l)) rest.push_back(l);
  return rest;
}

std::string counterLabel(const Trace& trace, const CounterValue& value) {
  const std::string& name = trace.text(value.name);
  return value.instance == spool::kAllInstances ? name : fmt::format("{}[{}]", name, value.instance);
}

std::vector<CounterTrack> counterTracks(const Trace& trace, const CountedLaunches& launches) {
  struct Change {
    uint64_t time;
    bool begins;
    double value;
  };
  using Key = std::tuple<uint32_t, CounterKind, StringId>;
  std::map<Key, std::vector<Change>> changes;
  std::vector<Key> order;  // as they were asked for
  for (const CountedLaunch& l : trace.launches) {
    std::map<Key, double> values;
    std::set<Key> without;
    for (const CounterValue& v : l.values) {
      const Key key{l.device, v.kind, v.name};
      if (std::find(trace.shownCounters.begin(), trace.shownCounters.end(), std::pair(v.kind, v.name)) ==
          trace.shownCounters.end())
        continue;
      if (v.kind == CounterKind::Metric) {
        if (v.instance != spool::kAllInstances || std::isnan(v.number)) continue;
        values[key] = v.number;
      } else if (v.count == CUPTI_EVENT_OVERFLOW) {
        without.insert(key);
      } else {
        values[key] += static_cast<double>(v.count);
      }
    }
    const auto [start, end] = launches.span(l);
    for (const auto& [key, value] : values) {
      if (without.contains(key)) continue;
      std::vector<Change>& list = changes[key];
      if (list.empty()) order.push_back(key);
      list.push_back({start, true, value});
      list.push_back({end, false, 0});
    }
  }
  std::vector<CounterTrack> tracks;
  for (const Key& key : order) {
    const auto& [device, kind, name] = key;
    CounterTrack track;
    track.device = device;
    track.name = trace.text(name);
    if (const auto info = trace.counterInfos.find({kind, name}); info != trace.counterInfos.end())
      track.description = trace.text(info->second.description);
    std::vector<Change>& list = changes[key];
    std::stable_sort(list.begin(), list.end(), [](const Change& a, const Change& b) {
      return a.time != b.time ? a.time < b.time : a.begins < b.begins;
    });
    for (const Change& c : list) {
      if (!track.values.empty() && track.values.back().first == c.time) track.values.pop_back();
      track.values.emplace_back(c.time, c.value);
    }
    tracks.push_back(std::move(track));
  }
  return tracks;
}

}  // namespace sonde::exports
