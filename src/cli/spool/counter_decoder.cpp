// SPDX-License-Identifier: Apache-2.0
// Event values of kernel launches, and the results that were made of them.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/spool/decoder.h"

namespace sonde::spool {

bool Decoder::counters(std::span<const unsigned char> p) {
  if (p.size() < sizeof(CounterHeader)) return false;
  CounterHeader head;
  std::memcpy(&head, p.data(), sizeof head);
  p = p.subspan(sizeof head);
  if (p.size() / sizeof(CounterEntry) < head.entries) return false;
  if (firstLaunch_ == SIZE_MAX) firstLaunch_ = trace_.launches.size();
  auto launch = event<CountedLaunch>(head.start, head.end);
  launch.record = trace_.launches.size() - firstLaunch_;
  launch.device = head.device;
  launch.context = head.context;
  launch.correlation = head.correlation;
  launch.kernel = textOf(reinterpret_cast<const char*>(uintptr_t{head.kernel}));
  for (uint32_t i = 0; i < head.entries; i++) {
    CounterEntry entry;
    std::memcpy(&entry, p.data() + i * sizeof entry, sizeof entry);
    const StringId name = textOf(reinterpret_cast<const char*>(uintptr_t{entry.event}));
    launch.values.push_back({name, CounterKind::Event, entry.instance, entry.value, 0});
  }
  trace_.launches.push_back(std::move(launch));
  return true;
}

// {"counters": [{"kind", "name", "value_kind", "description", "domain", "shown"} …],
//  "values": [[launch, index into counters, instance, value] …]}
bool Decoder::counterResults(std::span<const unsigned char> payload) {
  const auto j = nlohmann::json::parse(payload.begin(), payload.end(), nullptr, /*allow_exceptions=*/false);
  if (!j.is_object() || !j.contains("counters") || !j.contains("values")) return false;
  std::vector<std::pair<CounterKind, StringId>> keys;
  try {
    for (const auto& c : j["counters"]) {
      CounterInfo info;
      info.kind = c.at("kind") == "metric" ? CounterKind::Metric : CounterKind::Event;
      info.valueKind = c.at("value_kind").get<uint32_t>();
      info.description = trace_.intern(c.at("description").get<std::string>());
      info.domain = trace_.intern(c.at("domain").get<std::string>());
      const auto key = std::pair(info.kind, trace_.intern(c.at("name").get<std::string>()));
      const bool isNew = trace_.counterInfos.emplace(key, info).second;
      if (isNew && c.at("shown").get<bool>()) trace_.shownCounters.push_back(key);
      keys.push_back(key);
    }
    for (const auto& v : j["values"]) {
      const size_t launch = v.at(0).get<size_t>();
      const auto& key = keys.at(v.at(1).get<size_t>());
      if (firstLaunch_ == SIZE_MAX || launch >= trace_.launches.size() - firstLaunch_) return false;
      CounterValue value{key.second, key.first, v.at(2).get<uint32_t>(), 0, 0};
      if (v.at(3).is_number_unsigned()) value.count = v.at(3).get<uint64_t>();
      value.number = v.at(3).is_null() ? std::nan("") : v.at(3).get<double>();
      trace_.launches[firstLaunch_ + launch].values.push_back(value);
    }
  } catch (const std::exception&) {  // JSON of another shape
    return false;
  }
  return true;
}

}  // namespace sonde::spool
