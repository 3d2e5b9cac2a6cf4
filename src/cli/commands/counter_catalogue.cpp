// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/counter_catalogue.h"

#include <cupti_profiler_target.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "cli/exports/exports.h"
#include "cli/reports/table.h"

namespace sonde::cli {
namespace {

using nlohmann::json;

struct EventApi {
  decltype(&::cuptiDeviceGetNumEventDomains) numDomains = nullptr;
  decltype(&::cuptiDeviceEnumEventDomains) domains = nullptr;
  decltype(&::cuptiEventDomainGetAttribute) domainAttribute = nullptr;
  decltype(&::cuptiEventDomainGetNumEvents) numEvents = nullptr;
  decltype(&::cuptiEventDomainEnumEvents) events = nullptr;
  decltype(&::cuptiEventGetAttribute) eventAttribute = nullptr;
  decltype(&::cuptiDeviceGetNumMetrics) numMetrics = nullptr;
  decltype(&::cuptiDeviceEnumMetrics) metrics = nullptr;
  decltype(&::cuptiMetricGetAttribute) metricAttribute = nullptr;
  decltype(&::cuptiMetricGetNumEvents) metricNumEvents = nullptr;
  decltype(&::cuptiMetricEnumEvents) metricEvents = nullptr;
  decltype(&::cuptiMetricGetNumProperties) metricNumProperties = nullptr;

  bool load(const Gpu& gpu, std::string* error) {
    return gpu.cupti("cuptiDeviceGetNumEventDomains", numDomains, error) &&
           gpu.cupti("cuptiDeviceEnumEventDomains", domains, error) &&
           gpu.cupti("cuptiEventDomainGetAttribute", domainAttribute, error) &&
           gpu.cupti("cuptiEventDomainGetNumEvents", numEvents, error) &&
           gpu.cupti("cuptiEventDomainEnumEvents", events, error) &&
           gpu.cupti("cuptiEventGetAttribute", eventAttribute, error) &&
           gpu.cupti("cuptiDeviceGetNumMetrics", numMetrics, error) &&
           gpu.cupti("cuptiDeviceEnumMetrics", metrics, error) &&
           gpu.cupti("cuptiMetricGetAttribute", metricAttribute, error) &&
           gpu.cupti("cuptiMetricGetNumEvents", metricNumEvents, error) &&
           gpu.cupti("cuptiMetricEnumEvents", metricEvents, error) &&
           gpu.cupti("cuptiMetricGetNumProperties", metricNumProperties, error);
  }
};

template <typename Get, typename Id, typename Attribute>
std::string textAttribute(Get get, Id id, Attribute attribute) {
  char text[4096] = "";
  size_t size = sizeof text - 1;
  return get(id, attribute, &size, text) == CUPTI_SUCCESS ? std::string(text) : std::string();
}

template <typename T, typename Get>
std::vector<T> list(uint32_t count, Get get) {
  std::vector<T> ids(count);
  size_t bytes = ids.size() * sizeof(T);
  if (count == 0 || get(&bytes, ids.data()) != CUPTI_SUCCESS) return {};
  ids.resize(bytes / sizeof(T));
  return ids;
}

json deviceEvents(const EventApi& api, CUdevice device) {
  json all = json::array();
  uint32_t count = 0;
  api.numDomains(device, &count);
  for (const auto domain : list<CUpti_EventDomainID>(
           count, [&](size_t* bytes, CUpti_EventDomainID* ids) { return api.domains(device, bytes, ids); })) {
    const std::string name = textAttribute(api.domainAttribute, domain, CUPTI_EVENT_DOMAIN_ATTR_NAME);
    count = 0;
    api.numEvents(domain, &count);
    for (const auto event :
         list<CUpti_EventID>(count, [&](size_t* bytes, CUpti_EventID* ids) { return api.events(domain, bytes, ids); }))
      all.push_back({{"name", textAttribute(api.eventAttribute, event, CUPTI_EVENT_ATTR_NAME)},
                     {"description", textAttribute(api.eventAttribute, event, CUPTI_EVENT_ATTR_SHORT_DESCRIPTION)},
                     {"domain", name}});
  }
  return all;
}

json deviceMetrics(const EventApi& api, CUdevice device) {
  json all = json::array();
  uint32_t count = 0;
  api.numMetrics(device, &count);
  for (const auto metric : list<CUpti_MetricID>(
           count, [&](size_t* bytes, CUpti_MetricID* ids) { return api.metrics(device, bytes, ids); })) {
    json events = json::array();
    uint32_t n = 0, properties = 0;
    api.metricNumEvents(metric, &n);
    for (const auto event : list<CUpti_EventID>(
             n, [&](size_t* bytes, CUpti_EventID* ids) { return api.metricEvents(metric, bytes, ids); }))
      events.push_back(textAttribute(api.eventAttribute, event, CUPTI_EVENT_ATTR_NAME));
    api.metricNumProperties(metric, &properties);
    uint32_t kind = 0, mode = 0;
    size_t size = sizeof kind;
    api.metricAttribute(metric, CUPTI_METRIC_ATTR_VALUE_KIND, &size, &kind);
    size = sizeof mode;
    api.metricAttribute(metric, CUPTI_METRIC_ATTR_EVALUATION_MODE, &size, &mode);
    all.push_back({{"name", textAttribute(api.metricAttribute, metric, CUPTI_METRIC_ATTR_NAME)},
                   {"description", textAttribute(api.metricAttribute, metric, CUPTI_METRIC_ATTR_SHORT_DESCRIPTION)},
                   {"kind", kind},
                   {"per_instance", (mode & CUPTI_METRIC_EVALUATION_MODE_PER_INSTANCE) != 0},
                   {"properties", properties != 0},
                   {"events", std::move(events)}});
  }
  return all;
}

// Unknown counts as not moving: no warning on mere suspicion.
bool clocksMove(const Gpu& gpu, int device) {
  decltype(&::cuptiClockControlGetStatus) getStatus = nullptr;
  std::string ignored;
  if (!gpu.cupti("cuptiClockControlGetStatus", getStatus, &ignored)) return false;
  CUpti_ClockControl_Status status{};
  CUcontext context = gpu.context(device, &ignored);
  return context != nullptr && getStatus(context, &status) == CUPTI_SUCCESS &&
         status != CUPTI_CLOCK_CONTROL_STATUS_LOCKED && status != CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED;
}

constexpr const char* kKindNames[] = {"double", "count", "percent", "throughput", "integer", "utilization"};

std::string kindName(uint32_t kind) { return kind < std::size(kKindNames) ? kKindNames[kind] : "other"; }

template <typename Items, typename Name>
std::vector<std::string> namesOf(const Items& items, Name name) {
  std::vector<std::string> all;
  std::set<std::string> seen;
  for (const auto& item : items)
    if (seen.insert(name(item)).second) all.push_back(name(item));
  return all;
}

std::vector<std::string> allEventNames(const Catalogue& catalogue) {
  std::vector<std::string> all;
  for (const DeviceCatalogue& d : catalogue)
    for (const CatalogueEvent& e : d.events) all.push_back(e.name);
  return namesOf(all, [](const std::string& s) { return s; });
}

std::vector<std::string> allMetricNames(const Catalogue& catalogue) {
  std::vector<std::string> all;
  for (const DeviceCatalogue& d : catalogue)
    for (const CatalogueMetric& m : d.metrics) all.push_back(m.name);
  return namesOf(all, [](const std::string& s) { return s; });
}

size_t editDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); k++) {
      const size_t above = row[k + 1];
      row[k + 1] = std::min({row[k] + 1, above + 1, diagonal + (a[i] != b[k] ? 1 : 0)});
      diagonal = above;
    }
  }
  return row.back();
}

bool choose(const std::vector<std::string>& asked, const std::vector<std::string>& names,
            const std::vector<std::string>& others, bool events, std::vector<std::string>* chosen, std::string* error) {
  const char* what = events ? "event" : "metric";
  for (const std::string& name : asked) {
    if (name == "all") {
      for (const std::string& n : names) chosen->push_back(n);
    } else if (std::find(names.begin(), names.end(), name) != names.end()) {
      chosen->push_back(name);
    } else if (std::find(others.begin(), others.end(), name) != others.end()) {
      *error = fmt::format("'{}' is {}: {} {}", name, events ? "a metric" : "an event", events ? "-m" : "-e", name);
      return false;
    } else {
      *error = fmt::format("there is no {} '{}'; the nearest are {}. --query-{}s lists all", what, name,
                           fmt::join(nearestNames(name, names), ", "), what);
      return false;
    }
  }
  *chosen = namesOf(*chosen, [](const std::string& s) { return s; });
  return true;
}

}  // namespace

const CatalogueEvent* DeviceCatalogue::event(const std::string& wanted) const {
  for (const CatalogueEvent& e : events)
    if (e.name == wanted) return &e;
  return nullptr;
}

const CatalogueMetric* DeviceCatalogue::metric(const std::string& wanted) const {
  for (const CatalogueMetric& m : metrics)
    if (m.name == wanted) return &m;
  return nullptr;
}

bool readCatalogue(const GpuLibraries& libraries, const std::vector<uint32_t>& devices, Catalogue* catalogue,
                   std::string* error) {
  json answer;
  const bool good = inGpuProcess(
      libraries,
      [&](Gpu& gpu, json* result, std::string* why) {
        EventApi api;
        if (!api.load(gpu, why)) return false;
        *result = json::array();
        for (int d = 0; d < gpu.deviceCount(); d++) {
          if (!devices.empty() && std::find(devices.begin(), devices.end(), static_cast<uint32_t>(d)) == devices.end())
            continue;
          uint32_t domains = 0;
          if (const CUptiResult r = api.numDomains(d, &domains); r != CUPTI_SUCCESS) {
            *why = fmt::format("device {} has no events: {}", d, gpu.resultText(r));
            return false;
          }
          result->push_back({{"id", d},
                             {"name", gpu.deviceName(d)},
                             {"moving", clocksMove(gpu, d)},
                             {"events", deviceEvents(api, d)},
                             {"metrics", deviceMetrics(api, d)}});
        }
        return true;
      },
      &answer, error);
  if (!good) return false;
  for (const json& d : answer) {
    DeviceCatalogue device;
    device.id = d["id"].get<uint32_t>();
    device.name = d["name"].get<std::string>();
    device.clocksMove = d["moving"].get<bool>();
    for (const json& e : d["events"])
      device.events.push_back(
          {e["name"].get<std::string>(), e["description"].get<std::string>(), e["domain"].get<std::string>()});
    for (const json& m : d["metrics"])
      device.metrics.push_back({m["name"].get<std::string>(), m["description"].get<std::string>(),
                                m["kind"].get<uint32_t>(), m["per_instance"].get<bool>(), m["properties"].get<bool>(),
                                m["events"].get<std::vector<std::string>>()});
    catalogue->push_back(std::move(device));
  }
  if (!catalogue->empty()) return true;
  *error = devices.empty() ? "there is no device" : fmt::format("there is no device {}", fmt::join(devices, ", "));
  return false;
}

std::string describeEvents(const Catalogue& catalogue, CatalogueFormat format) {
  std::string out = format == CatalogueFormat::Csv ? "Device,Device Name,Domain,Event Name,Description\n" : "";
  for (const DeviceCatalogue& d : catalogue) {
    size_t width = 0;
    for (const CatalogueEvent& e : d.events) width = std::max(width, e.name.size());
    if (format == CatalogueFormat::Text)
      out += fmt::format("Device {} ({}): {} events\n", d.id, d.name, d.events.size());
    std::string domain;
    for (const CatalogueEvent& e : d.events) {
      if (format == CatalogueFormat::Csv) {
        out += fmt::format("{},{},{},{},{}\n", d.id, reports::csvField(d.name), e.domain, e.name,
                           reports::csvField(e.description));
      } else if (format == CatalogueFormat::Json) {
        out +=
            json({{"device", d.id}, {"domain", e.domain}, {"event", e.name}, {"description", e.description}}).dump() +
            "\n";
      } else {
        if (e.domain != domain) out += fmt::format("  Domain {}:\n", domain = e.domain);
        out += fmt::format("    {:<{}}  {}\n", e.name, width, e.description);
      }
    }
  }
  return out;
}

std::string describeMetrics(const Catalogue& catalogue, CatalogueFormat format) {
  std::string out = format == CatalogueFormat::Csv ? "Device,Device Name,Metric Name,Value,Description\n" : "";
  for (const DeviceCatalogue& d : catalogue) {
    size_t width = 0;
    for (const CatalogueMetric& m : d.metrics) width = std::max(width, m.name.size());
    if (format == CatalogueFormat::Text)
      out += fmt::format("Device {} ({}): {} metrics\n", d.id, d.name, d.metrics.size());
    for (const CatalogueMetric& m : d.metrics) {
      if (format == CatalogueFormat::Csv) {
        out += fmt::format("{},{},{},{},{}\n", d.id, reports::csvField(d.name), m.name, kindName(m.valueKind),
                           reports::csvField(m.description));
      } else if (format == CatalogueFormat::Json) {
        out += json({{"device", d.id},
                     {"metric", m.name},
                     {"value", kindName(m.valueKind)},
                     {"description", m.description},
                     {"events", m.events}})
                   .dump() +
               "\n";
      } else {
        out += fmt::format("    {:<{}}  {}\n", m.name, width, m.description);
      }
    }
  }
  return out;
}

std::vector<std::string> nearestNames(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::pair<size_t, std::string>> all;
  for (const std::string& n : names) all.emplace_back(editDistance(name, n), n);
  std::sort(all.begin(), all.end());
  std::vector<std::string> nearest;
  for (size_t i = 0; i < std::min<size_t>(all.size(), 3); i++) nearest.push_back(all[i].second);
  return nearest;
}

bool chooseCounters(const Catalogue& catalogue, const std::vector<std::string>& events,
                    const std::vector<std::string>& metrics, CounterChoice* choice, std::string* error) {
  const auto eventNames = allEventNames(catalogue), metricNames = allMetricNames(catalogue);
  if (!choose(events, eventNames, metricNames, true, &choice->events, error) ||
      !choose(metrics, metricNames, eventNames, false, &choice->metrics, error))
    return false;
  choice->counted = choice->events;
  for (const std::string& name : choice->metrics)
    for (const DeviceCatalogue& d : catalogue)
      if (const CatalogueMetric* m = d.metric(name))
        choice->counted.insert(choice->counted.end(), m->events.begin(), m->events.end());
  choice->counted = namesOf(choice->counted, [](const std::string& s) { return s; });
  return true;
}

std::optional<std::string> movingClocksWarning(const Catalogue& catalogue, const CounterChoice& choice) {
  std::vector<std::string> affected;
  std::vector<uint32_t> devices;
  for (const DeviceCatalogue& d : catalogue) {
    if (!d.clocksMove) continue;
    devices.push_back(d.id);
    const auto ofCycles = [](const std::string& name) { return name.find("cycle") != std::string::npos; };
    for (const std::string& name : choice.events)
      if (ofCycles(name) && d.event(name) != nullptr) affected.push_back(name);
    for (const std::string& name : choice.metrics) {
      const CatalogueMetric* m = d.metric(name);
      if (m != nullptr && (m->hasProperties || std::any_of(m->events.begin(), m->events.end(), ofCycles)))
        affected.push_back(name);
    }
  }
  if (affected.empty()) return std::nullopt;
  affected = namesOf(affected, [](const std::string& s) { return s; });
  const size_t more = affected.size() > 3 ? affected.size() - 3 : 0;
  affected.resize(affected.size() - more);
  return fmt::format(
      "the clocks of device {} moved freely, and the values of {}{} depend on them: launches of one kernel can differ. "
      "--lock-clocks base holds the clocks still",
      fmt::join(devices, ", "), fmt::join(affected, ", "),
      more != 0 ? fmt::format(" and {} more", more) : std::string());
}

}  // namespace sonde::cli
