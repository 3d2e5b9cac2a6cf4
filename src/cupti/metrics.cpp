// SPDX-License-Identifier: Apache-2.0
// The Metric API.
#include <cupti.h>

#include <set>

#include "core/events/access.h"
#include "cupti/events_support.h"

using namespace sonde;
using namespace sonde::cupti;
using core::events::EventSystem;
using core::events::Metric;
using core::events::MetricSystem;
using core::events::Status;

namespace {

CUptiResult nullParameter(const char* name) { return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", name); }

#define SONDE_METRIC_SYSTEM(var)                                \
  Status var##Status;                                           \
  MetricSystem* var = core::events::metricSystem(&var##Status); \
  if (!var) return report(var##Status)

std::vector<CUpti_MetricID> idsOf(const std::vector<const Metric*>& metrics) {
  std::vector<CUpti_MetricID> ids;
  for (const Metric* m : metrics) ids.push_back(m->id);
  return ids;
}

CUptiResult deviceOf(CUcontext context, uint32_t* device) {
  if (!context || core::events::platform()->contextDevice(context, device) != 0)
    return core::fail(CUPTI_ERROR_INVALID_CONTEXT, context ? "this context is not alive" : "the context is NULL");
  return CUPTI_SUCCESS;
}

// The group sets for the events of some metrics.
CUptiResult groupSets(CUcontext context, const std::vector<const Metric*>& metrics, CUpti_EventGroupSets** sets) {
  Status status;
  EventSystem* events = core::events::eventSystem(&status);
  MetricSystem* system = core::events::metricSystem(&status);
  if (!events || !system) return report(status);
  uint32_t device = 0;
  if (CUptiResult r = deviceOf(context, &device)) return r;
  std::vector<CUpti_EventID> ids;
  std::set<CUpti_EventID> seen;
  for (const Metric* m : metrics) {
    std::vector<CUpti_EventID> own;
    if (status = system->eventIds(device, *m, &own); !status.ok()) return report(status);
    for (CUpti_EventID id : own)
      if (seen.insert(id).second) ids.push_back(id);
  }
  return report(events->createSets(context, ids.data(), ids.size(), sets));
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiGetNumMetrics(uint32_t* numMetrics) {
  if (!numMetrics) return nullParameter("numMetrics");
  SONDE_METRIC_SYSTEM(system);
  std::vector<const Metric*> metrics;
  if (Status s = system->all(&metrics); !s.ok()) return report(s);
  *numMetrics = static_cast<uint32_t>(metrics.size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnumMetrics(size_t* arraySizeBytes, CUpti_MetricID* metricArray) {
  if (!arraySizeBytes) return nullParameter("arraySizeBytes");
  if (!metricArray) return nullParameter("metricArray");
  SONDE_METRIC_SYSTEM(system);
  std::vector<const Metric*> metrics;
  if (Status s = system->all(&metrics); !s.ok()) return report(s);
  return writeList(arraySizeBytes, metricArray, idsOf(metrics));
}

CUptiResult CUPTIAPI cuptiDeviceGetNumMetrics(CUdevice device, uint32_t* numMetrics) {
  SONDE_METRIC_SYSTEM(system);
  std::vector<const Metric*> metrics;
  if (Status s = system->forDevice(static_cast<uint32_t>(device), &metrics); !s.ok()) return report(s);
  if (!numMetrics) return nullParameter("numMetrics");
  *numMetrics = static_cast<uint32_t>(metrics.size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceEnumMetrics(CUdevice device, size_t* arraySizeBytes, CUpti_MetricID* metricArray) {
  SONDE_METRIC_SYSTEM(system);
  std::vector<const Metric*> metrics;
  if (Status s = system->forDevice(static_cast<uint32_t>(device), &metrics); !s.ok()) return report(s);
  if (!arraySizeBytes) return nullParameter("arraySizeBytes");
  if (!metricArray) return nullParameter("metricArray");
  return writeList(arraySizeBytes, metricArray, idsOf(metrics));
}

CUptiResult CUPTIAPI cuptiMetricGetAttribute(CUpti_MetricID metric, CUpti_MetricAttribute attrib, size_t* valueSize,
                                             void* value) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!valueSize) return nullParameter("valueSize");
  if (!value) return nullParameter("value");
  switch (attrib) {
    case CUPTI_METRIC_ATTR_NAME: return writeString(valueSize, value, m->name);
    case CUPTI_METRIC_ATTR_SHORT_DESCRIPTION: return writeString(valueSize, value, m->shortDescription);
    case CUPTI_METRIC_ATTR_LONG_DESCRIPTION: return writeString(valueSize, value, m->longDescription);
    case CUPTI_METRIC_ATTR_CATEGORY: return writeValue(valueSize, value, m->category);
    case CUPTI_METRIC_ATTR_VALUE_KIND: return writeValue(valueSize, value, m->kind);
    case CUPTI_METRIC_ATTR_EVALUATION_MODE: return writeValue(valueSize, value, m->evaluationMode);
    default: return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no attribute of a metric", attrib);
  }
}

CUptiResult CUPTIAPI cuptiMetricGetIdFromName(CUdevice device, const char* metricName, CUpti_MetricID* metric) {
  SONDE_METRIC_SYSTEM(system);
  std::vector<const Metric*> known;  // whether there is the device comes first
  if (Status s = system->forDevice(static_cast<uint32_t>(device), &known); !s.ok()) return report(s);
  if (!metricName) return nullParameter("metricName");
  const Metric* m = nullptr;
  if (Status s = system->byName(static_cast<uint32_t>(device), metricName, &m); !s.ok()) return report(s);
  if (!metric) return nullParameter("metric");
  *metric = m->id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiMetricGetNumEvents(CUpti_MetricID metric, uint32_t* numEvents) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!numEvents) return nullParameter("numEvents");
  std::vector<CUpti_EventID> ids;
  if (Status s = system->eventIdsAnyDevice(*m, &ids); !s.ok()) return report(s);
  *numEvents = static_cast<uint32_t>(ids.size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiMetricEnumEvents(CUpti_MetricID metric, size_t* eventIdArraySizeBytes,
                                           CUpti_EventID* eventIdArray) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!eventIdArraySizeBytes) return nullParameter("eventIdArraySizeBytes");
  if (!eventIdArray) return nullParameter("eventIdArray");
  std::vector<CUpti_EventID> ids;
  if (Status s = system->eventIdsAnyDevice(*m, &ids); !s.ok()) return report(s);
  return writeList(eventIdArraySizeBytes, eventIdArray, ids);
}

CUptiResult CUPTIAPI cuptiMetricGetNumProperties(CUpti_MetricID metric, uint32_t* numProp) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!numProp) return nullParameter("numProp");
  *numProp = static_cast<uint32_t>(system->properties(*m).size());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiMetricEnumProperties(CUpti_MetricID metric, size_t* propIdArraySizeBytes,
                                               CUpti_MetricPropertyID* propIdArray) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!propIdArraySizeBytes) return nullParameter("propIdArraySizeBytes");
  if (!propIdArray) return nullParameter("propIdArray");
  return writeList(propIdArraySizeBytes, propIdArray, system->properties(*m));
}

CUptiResult CUPTIAPI cuptiMetricGetRequiredEventGroupSets(CUcontext context, CUpti_MetricID metric,
                                                          CUpti_EventGroupSets** eventGroupSets) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!eventGroupSets) return nullParameter("eventGroupSets");
  CUpti_EventGroupSets* sets = nullptr;
  if (CUptiResult r = groupSets(context, {m}, &sets)) return r;
  // NULL says that all events of the metric fit in one pass.
  if (sets->numSets <= 1) {
    Status status;
    (void)core::events::eventSystem(&status)->destroySets(sets);
    sets = nullptr;
  }
  *eventGroupSets = sets;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiMetricCreateEventGroupSets(CUcontext context, size_t metricIdArraySizeBytes,
                                                     CUpti_MetricID* metricIdArray,
                                                     CUpti_EventGroupSets** eventGroupPasses) {
  SONDE_METRIC_SYSTEM(system);
  uint32_t device = 0;
  if (CUptiResult r = deviceOf(context, &device)) return r;
  std::vector<const Metric*> metrics;
  for (size_t i = 0; metricIdArray && i < metricIdArraySizeBytes / sizeof(CUpti_MetricID); ++i) {
    const Metric* m = nullptr;
    if (Status s = system->byId(metricIdArray[i], &m); !s.ok()) return report(s);
    metrics.push_back(m);
  }
  if (!metricIdArray) return nullParameter("metricIdArray");
  if (!eventGroupPasses) return nullParameter("eventGroupPasses");
  return groupSets(context, metrics, eventGroupPasses);
}

CUptiResult CUPTIAPI cuptiMetricGetValue(CUdevice device, CUpti_MetricID metric, size_t eventIdArraySizeBytes,
                                         CUpti_EventID* eventIdArray, size_t eventValueArraySizeBytes,
                                         uint64_t* eventValueArray, uint64_t timeDuration,
                                         CUpti_MetricValue* metricValue) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!eventIdArray) return nullParameter("eventIdArray");
  if (!eventValueArray) return nullParameter("eventValueArray");
  if (!metricValue) return nullParameter("metricValue");
  const size_t n = eventIdArraySizeBytes / sizeof(CUpti_EventID);
  if (eventValueArraySizeBytes / sizeof(uint64_t) < n)
    return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "there are %zu event ids but only %zu values", n,
                      eventValueArraySizeBytes / sizeof(uint64_t));
  return report(system->evaluate(static_cast<uint32_t>(device), *m, {eventIdArray, n}, {eventValueArray, n},
                                 timeDuration, metricValue));
}

CUptiResult CUPTIAPI cuptiMetricGetValue2(CUpti_MetricID metric, size_t eventIdArraySizeBytes,
                                          CUpti_EventID* eventIdArray, size_t eventValueArraySizeBytes,
                                          uint64_t* eventValueArray, size_t propIdArraySizeBytes,
                                          CUpti_MetricPropertyID* propIdArray, size_t propValueArraySizeBytes,
                                          uint64_t* propValueArray, CUpti_MetricValue* metricValue) {
  SONDE_METRIC_SYSTEM(system);
  const Metric* m = nullptr;
  if (Status s = system->byId(metric, &m); !s.ok()) return report(s);
  if (!eventIdArray) return nullParameter("eventIdArray");
  if (!eventValueArray) return nullParameter("eventValueArray");
  if (!metricValue) return nullParameter("metricValue");
  const size_t n = eventIdArraySizeBytes / sizeof(CUpti_EventID);
  const size_t p = propIdArraySizeBytes / sizeof(CUpti_MetricPropertyID);
  if (p != 0 && !propIdArray) return nullParameter("propIdArray");
  if (p != 0 && !propValueArray) return nullParameter("propValueArray");
  if (eventValueArraySizeBytes / sizeof(uint64_t) < n || propValueArraySizeBytes / sizeof(uint64_t) < p)
    return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "there are more ids than values");
  return report(system->evaluate(*m, {eventIdArray, n}, {eventValueArray, n}, {propIdArray, p}, {propValueArray, p},
                                 metricValue));
}

}  // extern "C"
