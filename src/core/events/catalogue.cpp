// SPDX-License-Identifier: Apache-2.0
#include "core/events/catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/events/expression.h"

namespace sonde::core::events {
namespace {

using nlohmann::json;

template <class T>
T oneOf(const std::string& where, const std::string& value, std::initializer_list<std::pair<const char*, T>> choices) {
  std::string known;
  for (const auto& [name, result] : choices) {
    if (value == name) return result;
    known += known.empty() ? name : std::string(", ") + name;
  }
  throw std::invalid_argument(where + ": \"" + value + "\" is none of " + known);
}

Event parseEvent(const json& j, const std::string& where, const std::function<int(std::string_view)>& counterIndex) {
  Event e;
  e.name = j.at("name").get<std::string>();
  const std::string here = where + ", event " + e.name;
  e.shortDescription = j.at("short").get<std::string>();
  e.longDescription = j.at("long").get<std::string>();
  e.category = oneOf<CUpti_EventCategory>(here, j.at("category").get<std::string>(),
                                          {{"instruction", CUPTI_EVENT_CATEGORY_INSTRUCTION},
                                           {"memory", CUPTI_EVENT_CATEGORY_MEMORY},
                                           {"cache", CUPTI_EVENT_CATEGORY_CACHE},
                                           {"profile_trigger", CUPTI_EVENT_CATEGORY_PROFILE_TRIGGER}});
  const Expression value = Expression::parse(j.at("value").get<std::string>());
  if (!value.linear(e.coefficients)) throw std::invalid_argument(here + ": the value must be a sum of counters");
  for (const std::string& name : value.names()) {
    const int index = counterIndex(name);
    if (index < 0) throw std::invalid_argument(here + ": the platform has no counter \"" + name + "\"");
    e.counters.push_back(static_cast<uint32_t>(index));
  }
  if (j.contains("subset")) {
    e.subsetOf = j["subset"].at(0).get<uint32_t>();
    e.subsetIndex = j["subset"].at(1).get<uint32_t>();
    if (e.subsetOf == 0 || e.subsetIndex >= e.subsetOf) throw std::invalid_argument(here + ": bad subset");
  }
  return e;
}

Domain parseDomain(const json& j, const std::string& where) {
  Domain d;
  d.name = j.at("name").get<std::string>();
  const std::string here = where + ", domain " + d.name;
  d.method = oneOf<CUpti_EventCollectionMethod>(here, j.at("method").get<std::string>(),
                                                {{"pm", CUPTI_EVENT_COLLECTION_METHOD_PM},
                                                 {"sm", CUPTI_EVENT_COLLECTION_METHOD_SM},
                                                 {"instrumented", CUPTI_EVENT_COLLECTION_METHOD_INSTRUMENTED}});
  d.unit =
      oneOf<Unit>(here, j.at("unit").get<std::string>(), {{"sm", Unit::sm}, {"l2", Unit::l2}, {"dram", Unit::dram}});
  d.maxEvents = j.at("max_events").get<uint32_t>();
  d.counterBits = j.value("counter_bits", 64u);
  if (d.maxEvents == 0 || d.counterBits == 0 || d.counterBits > 64) throw std::invalid_argument(here + ": bad limits");
  return d;
}

}  // namespace

IdAllocator::Range IdAllocator::of(std::string_view catalogue, uint32_t domains, uint32_t events) {
  auto it = known_.find(catalogue);
  if (it == known_.end()) {
    it = known_.emplace(catalogue, next_).first;
    next_ = {next_.firstDomain + domains, next_.firstEvent + events};
  }
  return it->second;
}

Catalogue Catalogue::parse(std::string_view text, const std::function<int(std::string_view)>& counterIndex,
                           IdAllocator& ids) {
  Catalogue result;
  try {
    for (const json& c : json::parse(text)) {
      const std::string name = c.at("catalogue").get<std::string>();
      uint32_t events = 0;
      for (const json& dj : c.at("domains")) events += static_cast<uint32_t>(dj.at("events").size());
      auto [domainId, eventId] = ids.of(name, static_cast<uint32_t>(c.at("domains").size()), events);
      for (const json& dj : c.at("domains")) {
        Domain d = parseDomain(dj, "catalogue " + name);
        d.id = domainId++;
        for (const json& ej : dj.at("events")) {
          Event e = parseEvent(ej, "catalogue " + name + ", domain " + d.name, counterIndex);
          e.id = eventId++;
          e.domain = result.domains_.size();
          if (d.events.empty()) d.subsetOf = e.subsetOf;
          if (e.subsetOf != d.subsetOf)
            throw std::invalid_argument("domain " + d.name + ": its events have different numbers of instances");
          d.events.push_back(result.events_.size());
          result.events_.push_back(std::move(e));
        }
        result.domains_.push_back(std::move(d));
      }
    }
  } catch (const json::exception& e) {
    throw std::invalid_argument(std::string("event catalogue: ") + e.what());
  }
  return result;
}

const Domain* Catalogue::domain(CUpti_EventDomainID id) const {
  const auto it = std::find_if(domains_.begin(), domains_.end(), [&](const Domain& d) { return d.id == id; });
  return it == domains_.end() ? nullptr : &*it;
}

const Event* Catalogue::event(CUpti_EventID id) const {
  const auto it = std::find_if(events_.begin(), events_.end(), [&](const Event& e) { return e.id == id; });
  return it == events_.end() ? nullptr : &*it;
}

const Event* Catalogue::event(std::string_view name) const {
  const auto it = std::find_if(events_.begin(), events_.end(), [&](const Event& e) { return e.name == name; });
  return it == events_.end() ? nullptr : &*it;
}

}  // namespace sonde::core::events
