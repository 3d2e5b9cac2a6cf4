// SPDX-License-Identifier: Apache-2.0
// Where the instructions lie that records point to.
#include <cstring>
#include <nlohmann/json.hpp>

#include "cli/spool/decoder.h"

namespace sonde::spool {

bool Decoder::locations(std::span<const unsigned char> p) {
  for (; p.size() >= sizeof(LocationEntry); p = p.subspan(sizeof(LocationEntry))) {
    LocationEntry entry;
    std::memcpy(&entry, p.data(), sizeof entry);
    CodeLocation location;
    location.module = textOf(reinterpret_cast<const char*>(uintptr_t{entry.module}));
    location.offset = entry.offset;
    location.function = textOf(reinterpret_cast<const char*>(uintptr_t{entry.symbol}));
    trace_.locations.insert_or_assign({process_, entry.pc}, location);
  }
  return p.empty();
}

// [{"pc", "function", "file", "line"} …]; better names for what `locations` gave.
bool Decoder::locationNames(std::span<const unsigned char> payload) {
  const auto j = nlohmann::json::parse(payload.begin(), payload.end(), nullptr, /*allow_exceptions=*/false);
  if (!j.is_array()) return false;
  try {
    for (const auto& l : j) {
      const auto it = trace_.locations.find({process_, l.at("pc").get<uint64_t>()});
      if (it == trace_.locations.end()) continue;
      it->second.function = trace_.intern(l.at("function").get<std::string>());
      it->second.file = trace_.intern(l.at("file").get<std::string>());
      it->second.line = l.at("line").get<uint32_t>();
    }
  } catch (const std::exception&) {  // JSON of another shape
    return false;
  }
  return true;
}

}  // namespace sonde::spool
