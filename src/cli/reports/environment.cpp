// SPDX-License-Identifier: Apache-2.0
// Clocks, temperature and power of the devices while the application ran.
#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/reports/reports.h"

namespace sonde::reports {
namespace {

struct Series {
  uint64_t samples = 0;
  double sum = 0, min = 0, max = 0;
  void add(double value) {
    min = samples == 0 ? value : std::min(min, value);
    max = samples == 0 ? value : std::max(max, value);
    sum += value;
    samples++;
  }
};

// In the order of the rows.
enum Quantity : int { kSmClock, kMemoryClock, kTemperature, kPower, kPowerLimit, kFan };
constexpr const char* kNames[] = {"SM clock (MHz)", "Memory clock (MHz)", "Temperature (C)",
                                  "Power (W)",      "Power limit (W)",    "Fan (%)"};

}  // namespace

std::vector<std::string> throttleReasonNames(uint32_t reasons) {
  constexpr std::pair<uint32_t, const char*> kReasons[] = {
      {CUPTI_CLOCKS_THROTTLE_REASON_GPU_IDLE, "idle"},
      {CUPTI_CLOCKS_THROTTLE_REASON_USER_DEFINED_CLOCKS, "set clocks"},
      {CUPTI_CLOCKS_THROTTLE_REASON_SW_POWER_CAP, "power cap"},
      {CUPTI_CLOCKS_THROTTLE_REASON_HW_SLOWDOWN, "hardware slowdown"},
      {0x80000000u, "unknown reason"}};
  std::vector<std::string> names;
  for (const auto& [bit, name] : kReasons)
    if ((reasons & bit) != 0) names.emplace_back(name);
  return names;
}

std::vector<MovedClock> movedClocks(const Trace& trace, const Options& options) {
  std::map<std::string, MovedClock> seen;
  for (const EnvironmentSample& e : trace.environment) {
    if (e.kind != CUPTI_ACTIVITY_ENVIRONMENT_SPEED || (e.throttleReasons & CUPTI_CLOCKS_THROTTLE_REASON_GPU_IDLE) != 0)
      continue;
    if (!options.devices.empty() && !options.devices.contains(e.device)) continue;
    const std::string device = deviceName(trace, e.process, e.device);
    const auto [it, fresh] = seen.try_emplace(device, MovedClock{device, e.smClockMHz, e.smClockMHz});
    it->second.minMHz = std::min(it->second.minMHz, e.smClockMHz);
    it->second.maxMHz = std::max(it->second.maxMHz, e.smClockMHz);
  }
  std::vector<MovedClock> moved;
  for (const auto& [device, clock] : seen)
    if (clock.minMHz != clock.maxMHz) moved.push_back(clock);
  return moved;
}

Table environmentSummary(const Trace& trace, const Options& options) {
  Table t;
  t.emptyReason = "no clocks, temperatures or power were recorded (--environment)";
  t.columns = {{"Device"},
               {"Quantity"},
               {"Samples", CellKind::Integer},
               {"Avg", CellKind::Integer},
               {"Min", CellKind::Integer},
               {"Max", CellKind::Integer}};
  // Several processes can sample one device.
  std::map<std::string, std::map<int, Series>> devices;
  std::map<std::string, std::map<std::string, uint64_t>> reasons;
  for (const EnvironmentSample& e : trace.environment) {
    if (!options.devices.empty() && !options.devices.contains(e.device)) continue;
    const std::string device = deviceName(trace, e.process, e.device);
    auto& series = devices[device];
    switch (e.kind) {
      case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
        series[kSmClock].add(e.smClockMHz);
        series[kMemoryClock].add(e.memoryClockMHz);
        for (const std::string& name : throttleReasonNames(e.throttleReasons)) reasons[device][name]++;
        break;
      case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE: series[kTemperature].add(e.temperatureC); break;
      case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
        series[kPower].add(e.powerMilliwatts / 1000.0);
        series[kPowerLimit].add(e.powerLimit / 1000.0);
        break;
      case CUPTI_ACTIVITY_ENVIRONMENT_COOLING: series[kFan].add(e.fanPercent); break;
      default: break;
    }
  }
  const auto text = [](double value) { return Cell(fmt::format("{:.1f}", value)); };
  for (const auto& [device, series] : devices) {
    for (const auto& [quantity, s] : series)
      t.rows.push_back({device, std::string(kNames[quantity]), s.samples, text(s.sum / static_cast<double>(s.samples)),
                        text(s.min), text(s.max)});
    // The share of the samples in which the clocks were held down, and why.
    for (const auto& [name, n] : reasons[device])
      t.rows.push_back({device,
                        fmt::format("Clocks held by {} (% of samples)", name),
                        n,
                        text(100.0 * static_cast<double>(n) / static_cast<double>(series.at(kSmClock).samples)),
                        {},
                        {}});
  }
  return t;
}

}  // namespace sonde::reports
