// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>

#include "cli/spool/reader.h"
#include "cli/spool/writer.h"

namespace sonde::cli {
namespace {

using nlohmann::json;
using Instances = std::map<uint32_t, uint64_t>;  // instance, or kAllInstances → value

struct Launch {
  uint32_t device = 0;
  std::string kernel;
  uint64_t duration = 0;
  std::map<std::string, Instances> events;
};

// The launches of one spool in the order of its blocks.
std::vector<Launch> launchesOf(const Spool& spool, uint32_t* passes = nullptr) {
  Trace trace;
  std::string ignored;
  spool::readSpool({reinterpret_cast<const unsigned char*>(spool.content.data()), spool.content.size()}, trace,
                   &ignored);
  if (passes != nullptr)
    for (const Process& p : trace.processes) *passes = std::max(*passes, p.passes);
  // From the start of a launch's first kernel to the end of its last; a graph has several.
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> spans;
  for (const GpuEvent& e : trace.gpuEvents) {
    if ((e.work != GpuWork::Kernel && e.work != GpuWork::Graph) || !e.finished) continue;
    const auto [it, isNew] = spans.try_emplace(e.correlation, e.start, e.end);
    it->second = {std::min(it->second.first, e.start), std::max(it->second.second, e.end)};
  }
  std::vector<Launch> launches;
  for (const CountedLaunch& l : trace.launches) {
    Launch launch{l.device, trace.text(l.kernel), l.duration(), {}};
    // The kernel's own time where its record is there.
    if (const auto it = spans.find(l.correlation); it != spans.end())
      launch.duration = it->second.second - it->second.first;
    for (const CounterValue& v : l.values) launch.events[trace.text(v.name)][v.instance] = v.count;
    launches.push_back(std::move(launch));
  }
  return launches;
}

std::optional<uint64_t> total(const Instances& instances) {
  uint64_t sum = 0;
  for (const auto& [instance, value] : instances) {
    if (value == CUPTI_EVENT_OVERFLOW) return std::nullopt;
    sum += value;
  }
  return sum;
}

json metricNumber(const CUpti_MetricValue& v, uint32_t kind) {
  switch (kind) {
    case CUPTI_METRIC_VALUE_KIND_DOUBLE: return v.metricValueDouble;
    case CUPTI_METRIC_VALUE_KIND_PERCENT: return v.metricValuePercent;
    case CUPTI_METRIC_VALUE_KIND_INT64: return v.metricValueInt64;
    case CUPTI_METRIC_VALUE_KIND_UTILIZATION_LEVEL: return static_cast<uint64_t>(v.metricValueUtilizationLevel);
    case CUPTI_METRIC_VALUE_KIND_THROUGHPUT: return v.metricValueThroughput;
    default: return v.metricValueUint64;
  }
}

// In the process that has CUPTI.
class MetricCalculator {
 public:
  explicit MetricCalculator(Gpu& gpu) : gpu_(gpu) {}
  bool load(std::string* error) {
    return gpu_.cupti("cuptiMetricGetIdFromName", metricId_, error) &&
           gpu_.cupti("cuptiEventGetIdFromName", eventId_, error) && gpu_.cupti("cuptiMetricGetValue", value_, error);
  }
  // NULL where the metric has no value; problems go to `problems`.
  json value(const Launch& launch, const CatalogueMetric& metric, uint32_t instance, std::set<std::string>* problems) {
    const auto device = static_cast<CUdevice>(launch.device);
    std::vector<CUpti_EventID> ids;
    std::vector<uint64_t> values;
    for (const std::string& name : metric.events) {
      const auto it = launch.events.find(name);
      CUpti_EventID id = 0;
      if (it == launch.events.end() || eventId_(device, name.c_str(), &id) != CUPTI_SUCCESS) continue;
      const auto sum = instance == spool::kAllInstances ? total(it->second) : one(it->second, instance);
      if (!sum) {
        problems->insert(fmt::format("{}: a counter of {} overflowed", metric.name, name));
        return nullptr;
      }
      ids.push_back(id);
      values.push_back(*sum);
    }
    CUpti_MetricID id = 0;
    CUptiResult r = metricId_(device, metric.name.c_str(), &id);
    CUpti_MetricValue result{};
    if (r == CUPTI_SUCCESS)
      r = value_(device, id, ids.size() * sizeof(CUpti_EventID), ids.data(), values.size() * sizeof(uint64_t),
                 values.data(), launch.duration, &result);
    if (r == CUPTI_SUCCESS) return metricNumber(result, metric.valueKind);
    problems->insert(fmt::format("{}: {}", metric.name, gpu_.resultText(r)));
    return nullptr;
  }

 private:
  static std::optional<uint64_t> one(const Instances& instances, uint32_t instance) {
    const auto it = instances.find(instance);
    if (it == instances.end() || it->second == CUPTI_EVENT_OVERFLOW) return std::nullopt;
    return it->second;
  }
  Gpu& gpu_;
  decltype(&::cuptiMetricGetIdFromName) metricId_ = nullptr;
  decltype(&::cuptiEventGetIdFromName) eventId_ = nullptr;
  decltype(&::cuptiMetricGetValue) value_ = nullptr;
};

// The instances for which a metric has a value of its own.
std::vector<uint32_t> instancesOf(const Launch& launch, const CatalogueMetric& metric) {
  if (!metric.perInstance) return {spool::kAllInstances};
  std::optional<size_t> count;
  for (const std::string& name : metric.events) {
    const auto it = launch.events.find(name);
    if (it == launch.events.end()) continue;
    // Events of domains with other numbers of instances do not go together.
    if (it->second.contains(spool::kAllInstances) || (count && *count != it->second.size()))
      return {spool::kAllInstances};
    count = it->second.size();
  }
  if (!count) return {spool::kAllInstances};
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < *count; i++) all.push_back(i);
  return all;
}

// Index into the block's "counters": those shown come first.
json describe(const Catalogue& catalogue, const CounterChoice& choice) {
  json counters = json::array();
  const auto add = [&](const std::string& name, bool metric, bool shown) {
    json c = {{"kind", metric ? "metric" : "event"},
              {"name", name},
              {"shown", shown},
              {"value_kind", 1},
              {"description", ""},
              {"domain", ""}};
    for (const DeviceCatalogue& d : catalogue) {
      if (const CatalogueMetric* m = metric ? d.metric(name) : nullptr) {
        c["description"] = m->description;
        c["value_kind"] = m->valueKind;
        break;
      }
      if (const CatalogueEvent* e = metric ? nullptr : d.event(name)) {
        c["description"] = e->description;
        c["domain"] = e->domain;
        break;
      }
    }
    counters.push_back(std::move(c));
  };
  for (const std::string& name : choice.metrics) add(name, true, true);
  for (const std::string& name : choice.events) add(name, false, true);
  for (const std::string& name : choice.counted)
    if (std::find(choice.events.begin(), choice.events.end(), name) == choice.events.end()) add(name, false, false);
  return counters;
}

// Values of a later pass go to the same launches of the first. False: the runs differ.
bool mergePass(std::vector<Launch>& first, const std::vector<Launch>& later, const std::map<std::string, size_t>& index,
               json& values) {
  bool same = first.size() == later.size();
  for (size_t i = 0; i < std::min(first.size(), later.size()); i++) {
    if (first[i].kernel != later[i].kernel || first[i].device != later[i].device) {
      same = false;
      break;
    }
    for (const auto& [name, instances] : later[i].events) {
      if (!first[i].events.emplace(name, instances).second || !index.contains(name)) continue;
      for (const auto& [instance, value] : instances) values.push_back({i, index.at(name), instance, value});
    }
  }
  return same;
}

}  // namespace

uint32_t passesNeeded(const std::vector<Spool>& spools) {
  uint32_t passes = 0;
  for (const Spool& s : spools) launchesOf(s, &passes);
  return passes;
}

void completeCounters(std::vector<std::vector<Spool>>& passes, const GpuLibraries& libraries,
                      const Catalogue& catalogue, const CounterChoice& choice, Console& console) {
  std::vector<Spool>& spools = passes[0];
  const json counters = describe(catalogue, choice);
  std::map<std::string, size_t> eventIndex;
  for (size_t i = 0; i < counters.size(); i++)
    if (counters[i]["kind"] == "event") eventIndex[counters[i]["name"].get<std::string>()] = i;
  std::vector<std::vector<Launch>> launches;
  std::vector<json> values(spools.size(), json::array());
  for (const Spool& s : spools) launches.push_back(launchesOf(s));
  bool same = true;
  for (size_t p = 1; p < passes.size(); p++) {
    same = same && passes[p].size() == spools.size();
    for (size_t s = 0; s < std::min(spools.size(), passes[p].size()); s++)
      same = mergePass(launches[s], launchesOf(passes[p][s]), eventIndex, values[s]) && same;
  }
  if (!same)
    console.warning(
        "the application did not launch the same kernels in each pass: values of events from different passes may not "
        "belong together");
  if (!choice.metrics.empty()) {
    json answer;
    std::string error;
    const bool good = inGpuProcess(
        libraries,
        [&](Gpu& gpu, json* result, std::string* why) {
          MetricCalculator calculator(gpu);
          if (!calculator.load(why)) return false;
          std::set<std::string> problems;
          json all = json::array();
          for (const auto& ofSpool : launches) {
            json rows = json::array();
            for (size_t l = 0; l < ofSpool.size(); l++) {
              for (const DeviceCatalogue& d : catalogue) {
                if (d.id != ofSpool[l].device) continue;
                for (size_t m = 0; m < choice.metrics.size(); m++) {
                  const CatalogueMetric* metric = d.metric(choice.metrics[m]);
                  if (metric == nullptr) continue;
                  for (const uint32_t instance : instancesOf(ofSpool[l], *metric)) {
                    json v = calculator.value(ofSpool[l], *metric, instance, &problems);
                    if (!v.is_null()) rows.push_back({l, m, instance, std::move(v)});
                  }
                }
              }
            }
            all.push_back(std::move(rows));
          }
          *result = {{"values", std::move(all)}, {"problems", problems}};
          return true;
        },
        &answer, &error);
    if (good) {
      for (size_t s = 0; s < spools.size(); s++)
        for (json& row : answer["values"][s]) values[s].push_back(std::move(row));
      for (const json& p : answer["problems"])
        console.warning(fmt::format("metric {}; it is left out where that is so", p.get<std::string>()));
    } else {
      console.warning(fmt::format("metrics cannot be worked out: {}", error));
    }
  }
  for (size_t s = 0; s < spools.size(); s++) {
    std::string& content = spools[s].content;
    content.resize(spool::padded(content.size()));  // a killed process can leave half a block
    content += spool::encodeBlock(spool::BlockType::CounterResults,
                                  json({{"counters", counters}, {"values", std::move(values[s])}}).dump());
  }
}

}  // namespace sonde::cli
