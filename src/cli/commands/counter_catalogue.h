// SPDX-License-Identifier: Apache-2.0
// The events and metrics of the devices, as CUPTI tells them.
#ifndef SONDE_CLI_COMMANDS_COUNTER_CATALOGUE_H_
#define SONDE_CLI_COMMANDS_COUNTER_CATALOGUE_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/gpu_process.h"

namespace sonde::cli {

struct CatalogueEvent {
  std::string name, description, domain;
};

struct CatalogueMetric {
  std::string name, description;
  uint32_t valueKind = 0;           // CUpti_MetricValueKind
  bool perInstance = false;         // can be worked out for one instance of its domain
  bool hasProperties = false;       // depends on clocks, times or other facts of the device
  std::vector<std::string> events;  // that it is made of
};

struct DeviceCatalogue {
  uint32_t id = 0;
  std::string name;
  bool clocksMove = false;  // known not to be held
  std::vector<CatalogueEvent> events;
  std::vector<CatalogueMetric> metrics;

  const CatalogueEvent* event(const std::string& name) const;
  const CatalogueMetric* metric(const std::string& name) const;
};

using Catalogue = std::vector<DeviceCatalogue>;

// Of the devices in the list, or of all. False: *error.
bool readCatalogue(const GpuLibraries& libraries, const std::vector<uint32_t>& devices, Catalogue* catalogue,
                   std::string* error);

// "events" or "metrics" of each device as text, CSV or one JSON object a line.
enum class CatalogueFormat { Text, Csv, Json };
std::string describeEvents(const Catalogue& catalogue, CatalogueFormat format);
std::string describeMetrics(const Catalogue& catalogue, CatalogueFormat format);

// The names that differ least from one that does not exist, best first.
std::vector<std::string> nearestNames(const std::string& name, const std::vector<std::string>& names);

// What is to be counted.
struct CounterChoice {
  std::vector<std::string> events, metrics;  // shown, in the order asked
  std::vector<std::string> counted;          // events, those of the metrics included
};
// Resolves names and "all". False: *error names the nearest that exist.
bool chooseCounters(const Catalogue& catalogue, const std::vector<std::string>& events,
                    const std::vector<std::string>& metrics, CounterChoice* choice, std::string* error);

// A sentence for people whose clocks move while something that depends on them is counted.
std::optional<std::string> movingClocksWarning(const Catalogue& catalogue, const CounterChoice& choice);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_COUNTER_CATALOGUE_H_
