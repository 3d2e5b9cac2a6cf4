// SPDX-License-Identifier: Apache-2.0
//
// The events that a device model offers, parsed from its JSON description
// (src/softgpu/model/events/*.json says how it looks).
#pragma once

#include <cupti.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sonde::core::events {

// Where the instances of a domain come from.
enum class Unit : uint8_t { sm, l2, dram };

struct Event {
  CUpti_EventID id = 0;
  std::string name, shortDescription, longDescription;
  CUpti_EventCategory category = CUPTI_EVENT_CATEGORY_INSTRUCTION;
  // value = sum of coefficient * raw counter, per instance
  std::vector<uint32_t> counters;
  std::vector<int64_t> coefficients;
  // Of the units, those with number % subsetOf == subsetIndex.
  uint32_t subsetOf = 1, subsetIndex = 0;
  size_t domain = 0;  // index into Catalogue::domains
};

struct Domain {
  CUpti_EventDomainID id = 0;
  std::string name;
  CUpti_EventCollectionMethod method = CUPTI_EVENT_COLLECTION_METHOD_SM;
  Unit unit = Unit::sm;
  uint32_t maxEvents = 8;      // counted at once
  uint32_t counterBits = 64;   // a value that does not fit reads as overflow
  uint32_t subsetOf = 1;       // the same for all events of the domain
  std::vector<size_t> events;  // indices into Catalogue::events
};

// Immutable after parse().
class Catalogue {
 public:
  // `text`: a JSON array of catalogues. `counterIndex` gives the number of a raw
  // counter, or -1. `ordinal` gives each catalogue name a number of its own in
  // the process (from 1), so that devices that share a catalogue share ids.
  // Throws std::invalid_argument with the catalogue, the event and the reason.
  static Catalogue parse(std::string_view text, const std::function<int(std::string_view)>& counterIndex,
                         const std::function<uint32_t(std::string_view)>& ordinal);

  const std::vector<Domain>& domains() const { return domains_; }
  const std::vector<Event>& events() const { return events_; }
  const Domain* domain(CUpti_EventDomainID id) const;
  const Event* event(CUpti_EventID id) const;
  const Event* event(std::string_view name) const;

 private:
  std::vector<Domain> domains_;
  std::vector<Event> events_;
};

}  // namespace sonde::core::events
