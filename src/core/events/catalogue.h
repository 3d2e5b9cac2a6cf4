// SPDX-License-Identifier: Apache-2.0
//
// The events that a device model offers, parsed from its JSON description
// (src/softgpu/model/events/*.json says how it looks).
#pragma once

#include <cupti.h>

#include <cstdint>
#include <functional>
#include <map>
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

// Ids of domains and events, from 1 and without gaps over the catalogues in the
// order of their first use: a process whose devices have the same catalogues
// numbers them from 1 to the number of them.
class IdAllocator {
 public:
  struct Range {
    uint32_t firstDomain = 1, firstEvent = 1;
  };
  // Of a catalogue with so many domains and events.
  Range of(std::string_view catalogue, uint32_t domains, uint32_t events);

 private:
  Range next_;
  std::map<std::string, Range, std::less<>> known_;
};

// Immutable after parse().
class Catalogue {
 public:
  // `text`: a JSON array of catalogues. `counterIndex` gives the number of a raw
  // counter, or -1. `ids` says where the ids of a catalogue begin: the same for
  // all devices of the process that share it.
  // Throws std::invalid_argument with the catalogue, the event and the reason.
  static Catalogue parse(std::string_view text, const std::function<int(std::string_view)>& counterIndex,
                         IdAllocator& ids);

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
