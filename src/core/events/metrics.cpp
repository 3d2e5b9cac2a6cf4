// SPDX-License-Identifier: Apache-2.0
#include "core/events/metrics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>

namespace sonde::core::events {
namespace {

struct PropertyName {
  const char* name;
  CUpti_MetricPropertyID id;
  const char* fact;  // of SondePlatform::deviceFact; null: comes with the call
};

constexpr PropertyName kProperties[] = {
    {"prop.multiprocessor_count", CUPTI_METRIC_PROPERTY_MULTIPROCESSOR_COUNT, "multiprocessor_count"},
    {"prop.warps_per_multiprocessor", CUPTI_METRIC_PROPERTY_WARPS_PER_MULTIPROCESSOR, "warps_per_multiprocessor"},
    {"prop.kernel_gpu_time", CUPTI_METRIC_PROPERTY_KERNEL_GPU_TIME, nullptr},
    {"prop.clock_rate", CUPTI_METRIC_PROPERTY_CLOCK_RATE, "clock_rate_khz"},
    {"prop.frame_buffer_count", CUPTI_METRIC_PROPERTY_FRAME_BUFFER_COUNT, "frame_buffers"},
    {"prop.global_memory_bandwidth", CUPTI_METRIC_PROPERTY_GLOBAL_MEMORY_BANDWIDTH, "global_memory_bandwidth_kBps"},
    {"prop.flop_sp_per_cycle", CUPTI_METRIC_PROPERTY_FLOP_SP_PER_CYCLE, "flop_sp_per_cycle"},
    {"prop.flop_dp_per_cycle", CUPTI_METRIC_PROPERTY_FLOP_DP_PER_CYCLE, "flop_dp_per_cycle"},
    {"prop.flop_hp_per_cycle", CUPTI_METRIC_PROPERTY_FLOP_HP_PER_CYCLE, "flop_hp_per_cycle"},
    {"prop.l2_units", CUPTI_METRIC_PROPERTY_L2_UNITS, "l2_units"},
};
// The property list of CUPTI has none for the issue rate, so that it is a
// constant of the formula's device here.
constexpr const char* kInstructionPerCycle = "prop.instruction_per_cycle";
constexpr uint32_t kInstructionPerCycleId = 0x40000000;

const PropertyName* propertyByName(std::string_view name) {
  for (const PropertyName& p : kProperties)
    if (name == p.name) return &p;
  return nullptr;
}

template <class T>
T oneOf(const std::string& metric, const std::string& value, std::initializer_list<std::pair<const char*, T>> choices) {
  for (const auto& [name, result] : choices)
    if (value == name) return result;
  throw std::invalid_argument("metric " + metric + ": \"" + value + "\" is not known");
}

Metric parseMetric(const nlohmann::json& j, uint32_t index) {
  Metric m;
  m.id = index + 1;
  m.name = j.at("name").get<std::string>();
  m.shortDescription = j.at("short").get<std::string>();
  m.longDescription = j.at("long").get<std::string>();
  m.category = oneOf<CUpti_MetricCategory>(m.name, j.at("category").get<std::string>(),
                                           {{"memory", CUPTI_METRIC_CATEGORY_MEMORY},
                                            {"instruction", CUPTI_METRIC_CATEGORY_INSTRUCTION},
                                            {"multiprocessor", CUPTI_METRIC_CATEGORY_MULTIPROCESSOR},
                                            {"cache", CUPTI_METRIC_CATEGORY_CACHE},
                                            {"texture", CUPTI_METRIC_CATEGORY_TEXTURE}});
  m.kind = oneOf<CUpti_MetricValueKind>(m.name, j.at("kind").get<std::string>(),
                                        {{"double", CUPTI_METRIC_VALUE_KIND_DOUBLE},
                                         {"uint64", CUPTI_METRIC_VALUE_KIND_UINT64},
                                         {"percent", CUPTI_METRIC_VALUE_KIND_PERCENT},
                                         {"throughput", CUPTI_METRIC_VALUE_KIND_THROUGHPUT},
                                         {"utilization", CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL}});
  m.evaluationMode = oneOf<uint32_t>(
      m.name, j.at("mode").get<std::string>(),
      {{"aggregate", CUPTI_METRIC_EVALUATION_MODE_AGGREGATE},
       {"aggregate+instance", CUPTI_METRIC_EVALUATION_MODE_AGGREGATE | CUPTI_METRIC_EVALUATION_MODE_PER_INSTANCE}});
  m.value = Expression::parse(j.at("value").get<std::string>());
  for (const std::string& name : m.value.names()) {
    Metric::Input input;
    if (name == kInstructionPerCycle) {
      input.isProperty = true;
      input.property = kInstructionPerCycleId;
    } else if (const PropertyName* p = propertyByName(name)) {
      input.isProperty = true;
      input.property = p->id;
    } else if (name.starts_with("prop.")) {
      throw std::invalid_argument("metric " + m.name + ": no property is called " + name);
    } else {
      input.event = name;
    }
    m.inputs.push_back(std::move(input));
  }
  return m;
}

}  // namespace

Status MetricSystem::load(uint32_t device, const List** list) {
  std::lock_guard lock(mutex_);
  const char* text = nullptr;
  if (platform_.deviceString(device, "metrics", &text) != 0 || !text)
    return {CUPTI_ERROR_NOT_SUPPORTED, "device " + std::to_string(device) + " has no metrics"};
  if (const auto known = lists_.find(std::string_view(text)); known != lists_.end()) {
    *list = &known->second;
    return {};
  }
  try {
    const nlohmann::json all = nlohmann::json::parse(text).at("metrics");
    List parsed;
    for (const nlohmann::json& j : all) parsed.push_back(parseMetric(j, static_cast<uint32_t>(parsed.size())));
    *list = &lists_.emplace(text, std::move(parsed)).first->second;
  } catch (const std::exception& e) {
    return {CUPTI_ERROR_NOT_SUPPORTED, std::string("the metrics of the device cannot be read: ") + e.what()};
  }
  return {};
}

Status MetricSystem::forDevice(uint32_t device, std::vector<const Metric*>* metrics) {
  const Catalogue* catalogue = nullptr;
  if (Status s = events_.catalogue(device, &catalogue); !s.ok()) return s;
  const List* list = nullptr;
  if (Status s = load(device, &list); !s.ok()) return s;
  for (const Metric& m : *list) {
    const bool there = std::all_of(m.inputs.begin(), m.inputs.end(), [&](const Metric::Input& i) {
      return i.isProperty || catalogue->event(std::string_view(i.event));
    });
    if (there) metrics->push_back(&m);
  }
  return {};
}

Status MetricSystem::all(std::vector<const Metric*>* metrics) {
  uint32_t count = 0;
  if (Status s = events_.deviceCount(&count); !s.ok()) return s;
  std::set<CUpti_MetricID> seen;
  for (uint32_t d = 0; d < count; ++d) {
    std::vector<const Metric*> here;
    if (!forDevice(d, &here).ok()) continue;  // a device without counters has no metrics
    for (const Metric* m : here)
      if (seen.insert(m->id).second) metrics->push_back(m);
  }
  return {};
}

Status MetricSystem::byId(CUpti_MetricID id, const Metric** metric) {
  std::vector<const Metric*> known;
  if (Status s = all(&known); !s.ok()) return s;
  for (const Metric* m : known)
    if (m->id == id) {
      *metric = m;
      return {};
    }
  return {CUPTI_ERROR_INVALID_METRIC_ID, "no device has a metric " + std::to_string(id)};
}

Status MetricSystem::byName(uint32_t device, std::string_view name, const Metric** metric) {
  std::vector<const Metric*> known;
  if (Status s = forDevice(device, &known); !s.ok()) return s;
  for (const Metric* m : known)
    if (m->name == name) {
      *metric = m;
      return {};
    }
  return {CUPTI_ERROR_INVALID_METRIC_NAME,
          "device " + std::to_string(device) + " has no metric \"" + std::string(name) + "\""};
}

Status MetricSystem::onDevice(uint32_t device, CUpti_MetricID id, const Metric** metric) {
  const List* list = nullptr;
  if (Status s = load(device, &list); !s.ok()) return s;
  if (id == 0 || id > list->size())
    return {CUPTI_ERROR_INVALID_METRIC_ID, "device " + std::to_string(device) + " has no metric " + std::to_string(id)};
  *metric = &(*list)[id - 1];
  return {};
}

Status MetricSystem::eventIds(uint32_t device, const Metric& any, std::vector<CUpti_EventID>* ids) {
  const Catalogue* catalogue = nullptr;
  if (Status s = events_.catalogue(device, &catalogue); !s.ok()) return s;
  const Metric* own = nullptr;
  if (Status s = onDevice(device, any.id, &own); !s.ok()) return s;
  const Metric& metric = *own;
  for (const Metric::Input& i : metric.inputs) {
    if (i.isProperty) continue;
    const Event* e = catalogue->event(std::string_view(i.event));
    if (!e)
      return {CUPTI_ERROR_INVALID_METRIC_ID, "device " + std::to_string(device) + " lacks the event \"" + i.event +
                                                 "\" that metric \"" + metric.name + "\" is made of"};
    ids->push_back(e->id);
  }
  return {};
}

Status MetricSystem::eventIdsAnyDevice(const Metric& metric, std::vector<CUpti_EventID>* ids) {
  uint32_t count = 0;
  if (Status s = events_.deviceCount(&count); !s.ok()) return s;
  Status status{CUPTI_ERROR_INVALID_METRIC_ID, "no device has this metric"};
  for (uint32_t d = 0; d < count; ++d) {
    ids->clear();
    if (status = eventIds(d, metric, ids); status.ok()) return status;
  }
  return status;
}

std::vector<CUpti_MetricPropertyID> MetricSystem::properties(const Metric& metric) const {
  std::vector<CUpti_MetricPropertyID> result;
  for (const Metric::Input& i : metric.inputs)
    if (i.isProperty && i.property != kInstructionPerCycleId)
      result.push_back(static_cast<CUpti_MetricPropertyID>(i.property));
  return result;
}

Status MetricSystem::property(uint32_t device, uint32_t id, double* value) {
  const char* fact = id == kInstructionPerCycleId ? "instruction_per_cycle" : nullptr;
  for (const PropertyName& p : kProperties)
    if (p.id == id) fact = p.fact;
  if (!fact || platform_.deviceFact(device, fact, value) != 0)
    return {CUPTI_ERROR_INVALID_METRIC_VALUE, "the device does not tell the property " + std::to_string(id)};
  return {};
}

Status MetricSystem::compute(const Metric& metric, std::span<const CUpti_EventID> wanted,
                             std::span<const CUpti_EventID> ids, std::span<const uint64_t> values,
                             const std::map<uint32_t, double>& properties, CUpti_MetricValue* result) {
  std::vector<double> inputs;
  size_t nextEvent = 0;
  for (const Metric::Input& input : metric.inputs) {
    if (input.isProperty) {
      const auto it = properties.find(input.property);
      if (it == properties.end())
        return {CUPTI_ERROR_INVALID_PARAMETER,
                "metric \"" + metric.name + "\" needs property " + std::to_string(input.property)};
      inputs.push_back(it->second);
      continue;
    }
    const CUpti_EventID id = wanted[nextEvent++];
    std::optional<double> sum;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != id) continue;
      if (values[i] == CUPTI_EVENT_OVERFLOW)
        return {CUPTI_ERROR_INVALID_EVENT_VALUE,
                "event \"" + input.event + "\" overflowed, so that metric \"" + metric.name + "\" has no value"};
      sum = sum.value_or(0) + static_cast<double>(values[i]);
    }
    if (!sum)
      return {CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT,
              "metric \"" + metric.name + "\" needs a value of event \"" + input.event + "\""};
    inputs.push_back(*sum);
  }
  const double value = metric.value.evaluate([&](size_t i) { return inputs[i]; });
  const bool number = metric.kind == CUPTI_METRIC_VALUE_KIND_DOUBLE || metric.kind == CUPTI_METRIC_VALUE_KIND_PERCENT;
  if (!std::isfinite(value) || (!number && (value < -0.5 || value >= 0x1p64)))
    return {CUPTI_ERROR_INVALID_METRIC_VALUE, "the value of metric \"" + metric.name + "\" would be " +
                                                  std::to_string(value) + ", which its kind cannot hold"};
  switch (metric.kind) {
    case CUPTI_METRIC_VALUE_KIND_DOUBLE: result->metricValueDouble = value; break;
    case CUPTI_METRIC_VALUE_KIND_PERCENT: result->metricValuePercent = value; break;
    case CUPTI_METRIC_VALUE_KIND_UINT64: result->metricValueUint64 = static_cast<uint64_t>(std::round(value)); break;
    case CUPTI_METRIC_VALUE_KIND_THROUGHPUT:
      result->metricValueThroughput = static_cast<uint64_t>(std::round(value));
      break;
    case CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL:
      result->metricValueUtilizationLevel = static_cast<CUpti_MetricValueUtilizationLevel>(std::llround(value));
      break;
    default: return {CUPTI_ERROR_UNKNOWN, "metric \"" + metric.name + "\" is of an unknown kind"};
  }
  return {};
}

Status MetricSystem::evaluate(uint32_t device, const Metric& any, std::span<const CUpti_EventID> ids,
                              std::span<const uint64_t> values, uint64_t durationNs, CUpti_MetricValue* result) {
  const Metric* own = nullptr;
  if (Status s = onDevice(device, any.id, &own); !s.ok()) return s;
  const Metric& metric = *own;
  std::vector<CUpti_EventID> wanted;
  if (Status s = eventIds(device, metric, &wanted); !s.ok()) return s;
  std::map<uint32_t, double> properties;
  for (const Metric::Input& i : metric.inputs) {
    if (!i.isProperty) continue;
    double value = static_cast<double>(durationNs);
    if (i.property != CUPTI_METRIC_PROPERTY_KERNEL_GPU_TIME)
      if (Status s = property(device, i.property, &value); !s.ok()) return s;
    properties[i.property] = value;
  }
  return compute(metric, wanted, ids, values, properties, result);
}

Status MetricSystem::evaluate(const Metric& metric, std::span<const CUpti_EventID> ids,
                              std::span<const uint64_t> values, std::span<const CUpti_MetricPropertyID> propertyIds,
                              std::span<const uint64_t> propertyValues, CUpti_MetricValue* result) {
  std::map<uint32_t, double> properties;
  for (size_t i = 0; i < propertyIds.size(); ++i) properties[propertyIds[i]] = static_cast<double>(propertyValues[i]);
  double issueRate = 0;
  if (property(0, kInstructionPerCycleId, &issueRate).ok()) properties[kInstructionPerCycleId] = issueRate;
  std::vector<CUpti_EventID> wanted;
  if (Status s = eventIdsAnyDevice(metric, &wanted); !s.ok()) return s;
  Status status = compute(metric, wanted, ids, values, properties, result);
  // The one code that the two forms document differently.
  if (status.code == CUPTI_ERROR_INVALID_METRIC_VALUE) status.code = CUPTI_ERROR_NOT_COMPATIBLE;
  return status;
}

}  // namespace sonde::core::events
