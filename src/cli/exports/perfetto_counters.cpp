// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/perfetto_counters.h"

#include <cupti.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace sonde::exports {
namespace {

namespace pf = perfetto;

enum CounterId : uint32_t {
  kCounterActiveKernels = 1,
  kCounterCopyThroughput,
  kCounterSmClock,
  kCounterMemoryClock,
  kCounterTemperature,
  kCounterPower,
  kCounterFan
};

// The iids of counter descriptors: from 1 those of the activity of devices.
constexpr uint64_t kFirstEnvironmentIid = 1 << 16;
constexpr uint64_t kFirstKernelCounterIid = 2 << 16;

ProtoWriter counterDescription(uint64_t iid, uint32_t device) {
  ProtoWriter kernels, copies, descriptor, entry, interned;
  kernels.varint(pf::counter::specId, kCounterActiveKernels)
      .text(pf::counter::specName, "Active kernels")
      .text(pf::counter::specDescription, "Kernels that run at this moment")
      .varint(pf::counter::specSelectByDefault, 1)
      .varint(pf::counter::specGroups, pf::counter::kGroupCompute)
      .varint(pf::counter::specDirection, pf::counter::kForwards);
  copies.varint(pf::counter::specId, kCounterCopyThroughput)
      .text(pf::counter::specName, "Copy throughput")
      .text(pf::counter::specDescription, "Bytes per second of the copies and sets under way")
      .varint(pf::counter::specNumeratorUnits, pf::counter::kUnitByte)
      .varint(pf::counter::specDenominatorUnits, pf::counter::kUnitSecond)
      .varint(pf::counter::specSelectByDefault, 1)
      .varint(pf::counter::specGroups, pf::counter::kGroupMemory)
      .varint(pf::counter::specDirection, pf::counter::kForwards);
  descriptor.message(pf::counter::specs, kernels).message(pf::counter::specs, copies);
  entry.varint(pf::interned::iid, iid)
      .message(pf::interned::counterDescriptor, descriptor)
      .integer(pf::interned::counterGpuId, device);
  interned.message(pf::interned::gpuCounterDescriptors, entry);
  return interned;
}

}  // namespace

void writeActivityCounters(PerfettoStream& stream, const Trace& trace) {
  struct Change {
    uint64_t time;
    int kernels;
    double throughput;
  };
  std::map<uint32_t, std::vector<Change>> byDevice;
  for (const GpuEvent& e : trace.gpuEvents) {
    if (!e.finished || e.duration() == 0 || e.work == GpuWork::Graph) continue;
    const bool kernel = e.work == GpuWork::Kernel;
    const double rate = kernel ? 0 : static_cast<double>(e.bytes) * 1e9 / static_cast<double>(e.duration());
    byDevice[e.device].push_back({e.start, kernel ? 1 : 0, rate});
    byDevice[e.device].push_back({e.end, kernel ? -1 : 0, -rate});
  }
  uint64_t iid = 0;
  for (auto& [device, changes] : byDevice) {
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.time < b.time; });
    iid++;
    int64_t kernels = 0;
    int copies = 0;
    double throughput = 0;
    for (size_t i = 0; i < changes.size();) {
      const uint64_t time = changes[i].time;
      for (; i < changes.size() && changes[i].time == time; i++) {
        kernels += changes[i].kernels;
        throughput += changes[i].throughput;
        if (changes[i].kernels == 0) copies += changes[i].throughput > 0 ? 1 : changes[i].throughput < 0 ? -1 : 0;
      }
      if (copies == 0) throughput = 0;  // no rounding left over
      ProtoWriter first, second, event, body;
      first.varint(pf::counter::counterId, kCounterActiveKernels).integer(pf::counter::intValue, kernels);
      second.varint(pf::counter::counterId, kCounterCopyThroughput).real(pf::counter::doubleValue, throughput);
      event.message(pf::counter::counters, first).message(pf::counter::counters, second);
      event.integer(pf::counter::gpuId, device).varint(pf::counter::descriptorIid, iid);
      if (time == changes.front().time) body.message(pf::packet::internedData, counterDescription(iid, device));
      body.message(pf::packet::gpuCounterEvent, event);
      stream.emit(time, body);
    }
  }
}

void writeKernelCounters(PerfettoStream& stream, const Trace& trace, const CountedLaunches& counted) {
  uint64_t iid = kFirstKernelCounterIid;
  for (const CounterTrack& track : counterTracks(trace, counted)) {
    iid++;
    for (const auto& [time, value] : track.values) {
      ProtoWriter counter, event, body;
      counter.varint(pf::counter::counterId, iid).real(pf::counter::doubleValue, value);
      event.message(pf::counter::counters, counter)
          .integer(pf::counter::gpuId, track.device)
          .varint(pf::counter::descriptorIid, iid);
      if (time == track.values.front().first) {
        ProtoWriter spec, descriptor, entry, interned;
        spec.varint(pf::counter::specId, iid)
            .text(pf::counter::specName, track.name)
            .text(pf::counter::specDescription, track.description)
            .varint(pf::counter::specSelectByDefault, 1)
            .varint(pf::counter::specGroups, pf::counter::kGroupCompute)
            .varint(pf::counter::specDirection, pf::counter::kForwards);
        descriptor.message(pf::counter::specs, spec);
        entry.varint(pf::interned::iid, iid)
            .message(pf::interned::counterDescriptor, descriptor)
            .integer(pf::interned::counterGpuId, track.device);
        interned.message(pf::interned::gpuCounterDescriptors, entry);
        body.message(pf::packet::internedData, interned);
      }
      body.message(pf::packet::gpuCounterEvent, event);
      stream.emit(time, body);
    }
  }
}

void writeEnvironment(PerfettoStream& stream, const Trace& trace) {
  struct Track {
    uint32_t id;
    const char *name, *description;
  };
  constexpr Track kTracks[] = {{kCounterSmClock, "SM clock (MHz)", "Clock of the multiprocessors"},
                               {kCounterMemoryClock, "Memory clock (MHz)", "Clock of the memory"},
                               {kCounterTemperature, "Temperature (C)", "Temperature of the device"},
                               {kCounterPower, "Power (W)", "Power that the device draws"},
                               {kCounterFan, "Fan (%)", "Speed of the fan"}};
  std::map<uint32_t, bool> described;
  for (const EnvironmentSample& e : trace.environment) {
    std::vector<std::pair<uint32_t, double>> values;
    switch (e.kind) {
      case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
        values = {{kCounterSmClock, e.smClockMHz}, {kCounterMemoryClock, e.memoryClockMHz}};
        break;
      case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE: values = {{kCounterTemperature, e.temperatureC}}; break;
      case CUPTI_ACTIVITY_ENVIRONMENT_POWER: values = {{kCounterPower, e.powerMilliwatts / 1000.0}}; break;
      default: values = {{kCounterFan, e.fanPercent}}; break;
    }
    ProtoWriter event, body;
    for (const auto& [id, value] : values) {
      ProtoWriter counter;
      counter.varint(pf::counter::counterId, id).real(pf::counter::doubleValue, value);
      event.message(pf::counter::counters, counter);
    }
    event.integer(pf::counter::gpuId, e.device).varint(pf::counter::descriptorIid, kFirstEnvironmentIid + e.device);
    if (!std::exchange(described[e.device], true)) {
      ProtoWriter descriptor, entry, interned;
      for (const Track& track : kTracks) {
        ProtoWriter spec;
        spec.varint(pf::counter::specId, track.id)
            .text(pf::counter::specName, track.name)
            .text(pf::counter::specDescription, track.description)
            .varint(pf::counter::specSelectByDefault, 1);
        descriptor.message(pf::counter::specs, spec);
      }
      entry.varint(pf::interned::iid, kFirstEnvironmentIid + e.device)
          .message(pf::interned::counterDescriptor, descriptor)
          .integer(pf::interned::counterGpuId, e.device);
      interned.message(pf::interned::gpuCounterDescriptors, entry);
      body.message(pf::packet::internedData, interned);
    }
    body.message(pf::packet::gpuCounterEvent, event);
    stream.emit(e.start, body);
  }
}

}  // namespace sonde::exports
