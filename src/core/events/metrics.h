// SPDX-License-Identifier: Apache-2.0
//
// Metrics: formulas over the events and properties of a device, parsed from
// the platform's JSON text (src/softgpu/model/events/metrics.json).
#pragma once

#include <cupti.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/events/event_system.h"
#include "core/events/expression.h"

namespace sonde::core::events {

struct Metric {
  CUpti_MetricID id = 0;
  std::string name, shortDescription, longDescription;
  CUpti_MetricCategory category = CUPTI_METRIC_CATEGORY_INSTRUCTION;
  CUpti_MetricValueKind kind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
  uint32_t evaluationMode = CUPTI_METRIC_EVALUATION_MODE_AGGREGATE;
  Expression value;
  // What each name of `value` is.
  struct Input {
    bool isProperty = false;
    uint32_t property = 0;  // a CUpti_MetricPropertyID, or one of our own
    std::string event;
  };
  std::vector<Input> inputs;
};

// Thread-safe. Metrics are parsed at first use and then immutable. A metric has
// the same id on every device: its place in the list.
class MetricSystem {
 public:
  MetricSystem(const SondePlatform& platform, EventSystem& events) : platform_(platform), events_(events) {}

  // Metrics whose events the device has.
  Status forDevice(uint32_t device, std::vector<const Metric*>* metrics);
  // Every metric that some device has.
  Status all(std::vector<const Metric*>* metrics);
  Status byId(CUpti_MetricID id, const Metric** metric);
  Status byName(uint32_t device, std::string_view name, const Metric** metric);

  // The events of a metric on a device, each once.
  Status eventIds(uint32_t device, const Metric& metric, std::vector<CUpti_EventID>* ids);
  Status eventIdsAnyDevice(const Metric& metric, std::vector<CUpti_EventID>* ids);
  std::vector<CUpti_MetricPropertyID> properties(const Metric& metric) const;

  Status property(uint32_t device, uint32_t id, double* value);
  // `values[i]` is the value of `ids[i]`; an id that stands there several times
  // (one per instance) counts as the sum.
  Status evaluate(uint32_t device, const Metric& metric, std::span<const CUpti_EventID> ids,
                  std::span<const uint64_t> values, uint64_t durationNs, CUpti_MetricValue* result);
  Status evaluate(const Metric& metric, std::span<const CUpti_EventID> ids, std::span<const uint64_t> values,
                  std::span<const CUpti_MetricPropertyID> propertyIds, std::span<const uint64_t> propertyValues,
                  CUpti_MetricValue* result);

 private:
  using List = std::vector<Metric>;
  // The metrics in the device's text.
  Status load(uint32_t device, const List** list);
  // The same metric as the device has it: formulas may differ between devices.
  Status onDevice(uint32_t device, CUpti_MetricID id, const Metric** metric);
  // `wanted`: the ids of the metric's events, in the order of its inputs.
  Status compute(const Metric& metric, std::span<const CUpti_EventID> wanted, std::span<const CUpti_EventID> ids,
                 std::span<const uint64_t> values, const std::map<uint32_t, double>& properties,
                 CUpti_MetricValue* result);

  const SondePlatform& platform_;
  EventSystem& events_;
  std::mutex mutex_;
  std::map<std::string, List, std::less<>> lists_;  // by text
};

}  // namespace sonde::core::events
