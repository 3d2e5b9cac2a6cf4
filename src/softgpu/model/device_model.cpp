// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/device_model.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace sonde::softgpu::model {
namespace {

using nlohmann::json;

struct Embedded {
  const char* id;
  const char* text;
};
constexpr Embedded kEmbedded[] = {
#include "embedded_models.inc"
};

// The event catalogues that models name, and the metrics that all share.
constexpr Embedded kCatalogues[] = {
#include "embedded_catalogues.inc"
};

const char* catalogueNamed(const std::string& name) {
  for (const auto& c : kCatalogues)
    if (name == c.id) return c.text;
  return nullptr;
}

// A catalogue whose hardware counters have so many bits; those that
// instrumentation counts do not become narrower.
std::string withCounterBits(const std::string& text, uint32_t bits) {
  json catalogue = json::parse(text);
  if (auto domains = catalogue.find("domains"); domains != catalogue.end() && domains->is_array())
    for (json& d : *domains)
      if (d.is_object() && d.value("method", "") != "instrumented" && !d.contains("counter_bits"))
        d["counter_bits"] = bits;
  return catalogue.dump();
}

struct AttributeName {
  const char* name;
  int value;
};
constexpr AttributeName kAttributeNames[] = {
#define X(name, value) {name, value},
#include "softgpu/model/attribute_names.inc"
#undef X
};

// Reads the keys of one JSON object and remembers which, so that a misspelt
// key is an error and not silence.
class Reader {
 public:
  Reader(const json& object, std::string origin, std::string path)
      : object_(object), origin_(std::move(origin)), path_(std::move(path)) {
    if (!object.is_object()) fail("", "must be an object");
  }

  template <class T>
  void integer(const char* key, T& out, int64_t low = 0, int64_t high = INT64_MAX) {
    const json* v = find(key);
    if (!v) return;
    if (!v->is_number_integer()) fail(key, "must be an integer");
    const auto n = v->get<int64_t>();
    if (n < low || n > high) fail(key, "must lie between " + std::to_string(low) + " and " + std::to_string(high));
    out = static_cast<T>(n);
  }
  void boolean(const char* key, bool& out) {
    const json* v = find(key);
    if (!v) return;
    if (!v->is_boolean()) fail(key, "must be true or false");
    out = v->get<bool>();
  }
  void text(const char* key, std::string& out) {
    const json* v = find(key);
    if (!v) return;
    if (!v->is_string()) fail(key, "must be a string");
    out = v->get<std::string>();
  }
  const json* find(const char* key) {
    seen_.insert(key);
    auto it = object_.find(key);
    return it == object_.end() ? nullptr : &*it;
  }
  void finish() {
    for (const auto& [key, value] : object_.items())
      if (!seen_.count(key)) fail(key.c_str(), "is not a key of a device model");
  }
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw std::runtime_error("device model " + origin_ + ": " + path_ + key + " " + what);
  }

 private:
  const json& object_;
  std::string origin_, path_;
  std::set<std::string> seen_;
};

void readCache(const json* value, const std::string& origin, const char* key, Cache& cache) {
  if (!value) return;
  Reader r(*value, origin, std::string(key) + ".");
  r.integer("bytes", cache.bytes, 0);
  r.integer("line_bytes", cache.lineBytes, 1, 4096);
  r.integer("sector_bytes", cache.sectorBytes, 1, 4096);
  r.integer("ways", cache.ways, 1, 1024);
  r.integer("slices", cache.slices, 1, 1024);
  r.finish();
}

void readCapability(Reader& r, DeviceModel& m) {
  std::string text;
  r.text("compute_capability", text);
  if (text.empty()) return;
  unsigned major = 0, minor = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%u.%u%c", &major, &minor, &rest) != 2 || major < 1 || major > 99 || minor > 9)
    r.fail("compute_capability", "must look like \"9.0\"");
  m.ccMajor = major;
  m.ccMinor = minor;
}

void readUuid(Reader& r, DeviceModel& m) {
  std::string text;
  r.text("uuid", text);
  if (text.empty()) return;
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    r.fail("uuid", "must be 32 lower-case hexadecimal digits");
  for (int i = 0; i < 16; i++) m.uuid[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
}

void readAttributes(Reader& r, DeviceModel& m) {
  const json* values = r.find("attributes");
  if (!values) return;
  if (!values->is_object()) r.fail("attributes", "must be an object");
  for (const auto& [key, value] : values->items()) {
    int id = -1;
    for (const auto& a : kAttributeNames)
      if (key == a.name) id = a.value;
    if (id < 0) r.fail("attributes." + key, "is not a device attribute");
    if (!value.is_number_integer()) r.fail("attributes." + key, "must be an integer");
    m.attributes[id] = value.get<int64_t>();
  }
}

DeviceModel modelNamed(const std::string& word) {
  for (const auto& e : kEmbedded) {
    if (word != e.id) continue;
    DeviceModel m = parseModel(e.text, e.id);
    m.id = e.id;
    return m;
  }
  std::ifstream file(word, std::ios::binary);
  if (!file) {
    std::string known;
    for (const auto& e : kEmbedded) known += (known.empty() ? "" : ", ") + std::string(e.id);
    throw std::runtime_error("SONDE_DEVICES: \"" + word + "\" is neither a model (" + known + ") nor a readable file");
  }
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  DeviceModel m = parseModel(text, word);
  if (m.id.empty()) m.id = word;
  return m;
}

}  // namespace

DeviceModel parseModel(const std::string& text, const std::string& origin) {
  json document;
  try {
    document = json::parse(text, nullptr, true, /*ignore_comments=*/true);
  } catch (const json::exception& e) {
    throw std::runtime_error("device model " + origin + ": " + e.what());
  }
  DeviceModel m;
  Reader r(document, origin, "");
  r.text("id", m.id);
  r.text("name", m.name);
  readUuid(r, m);
  readCapability(r, m);
  r.integer("sms", m.smCount, 1, 4096);
  r.integer("max_warps_per_sm", m.maxWarpsPerSm, 1, 64);
  r.integer("max_blocks_per_sm", m.maxBlocksPerSm, 1, 64);
  r.integer("max_threads_per_block", m.maxThreadsPerBlock, 32, 1024);
  r.integer("registers_per_sm", m.registersPerSm, 1, 1 << 20);
  r.integer("registers_per_block", m.registersPerBlock, 1, 1 << 20);
  r.integer("max_registers_per_thread", m.maxRegistersPerThread, 16, 1024);
  r.integer("shared_per_sm", m.sharedPerSm, 0, 16 << 20);
  r.integer("shared_per_block", m.sharedPerBlock, 0, 16 << 20);
  r.integer("shared_per_block_optin", m.sharedPerBlockOptin, 0, 16 << 20);
  r.integer("shared_reserved_per_block", m.sharedReservedPerBlock, 0, 1 << 20);
  r.integer("memory_bytes", m.memoryBytes, 1 << 20);
  r.integer("constant_bytes", m.constantBytes, 0, 1 << 24);
  readCache(r.find("l1"), origin, "l1", m.l1);
  readCache(r.find("l2"), origin, "l2", m.l2);
  r.integer("schedulers_per_sm", m.schedulersPerSm, 1, 16);
  r.boolean("unified_memory", m.unifiedMemory);
  r.boolean("concurrent_managed_access", m.concurrentManaged);
  r.integer("access_counter_threshold", m.accessCounterThreshold, 0, 1 << 30);
  bool pageable = false;
  r.boolean("pageable_access", pageable);
  if (pageable) r.fail("pageable_access", "must be false: the software GPU does not reach memory of malloc");
  r.boolean("concurrent_kernels", m.concurrentKernels);
  if (const json* clocks = r.find("clocks")) {
    Reader c(*clocks, origin, "clocks.");
    c.integer("base_mhz", m.baseClockMHz, 1, 100000);
    c.integer("boost_mhz", m.boostClockMHz, 1, 100000);
    c.integer("idle_mhz", m.idleClockMHz, 1, 100000);
    c.integer("memory_mhz", m.memoryClockMHz, 1, 100000);
    c.finish();
  }
  readAttributes(r, m);
  if (const json* facts = r.find("facts")) {
    for (const auto& [key, value] : facts->items()) {
      if (!value.is_number()) r.fail("facts." + key, "must be a number");
      m.facts[key] = value.get<double>();
    }
  }
  if (const json* strings = r.find("strings")) {
    for (const auto& [key, value] : strings->items()) {
      if (!value.is_string()) r.fail("strings." + key, "must be a string");
      m.strings[key] = value.get<std::string>();
    }
  }
  m.strings.try_emplace("chip", "sonde" + std::to_string(m.ccMajor) + std::to_string(m.ccMinor));
  // A list of catalogues; each the name of one that is compiled in, or written
  // out. A single one needs no list.
  if (const json* counters = r.find("counters")) {
    const json list = counters->is_array() ? *counters : json::array({*counters});
    // The same metrics, as formulas of the events that the device has.
    bool classic = false;
    uint32_t bits = 64;
    r.integer("counter_bits", bits, 1, 64);
    for (const json& c : list) {
      const char* known = c.is_string() ? catalogueNamed(c.get<std::string>()) : nullptr;
      if (c.is_string() && !known) r.fail("counters", "names no event catalogue (known: classic, hopper)");
      std::string text = known ? known : c.dump();
      classic = classic || c != json("hopper");
      if (bits < 64) text = withCounterBits(text, bits);
      m.countersJson += (m.countersJson.empty() ? "[" : ",") + text;
    }
    if (!m.countersJson.empty()) m.countersJson += "]";
    const char* metrics = catalogueNamed(classic ? "metrics" : "metrics_hopper");
    if (metrics && !m.countersJson.empty()) m.metricsJson = metrics;
  }
  r.finish();
  if (m.name.empty()) r.fail("name", "is missing");
  return m;
}

std::vector<DeviceModel> modelsFor(const std::string& list) {
  std::vector<DeviceModel> models;
  size_t start = 0;
  const std::string words = list.empty() ? "default" : list;
  while (start <= words.size()) {
    size_t comma = words.find(',', start);
    if (comma == std::string::npos) comma = words.size();
    const std::string word = words.substr(start, comma - start);
    if (!word.empty()) models.push_back(modelNamed(word));
    start = comma + 1;
  }
  // Devices of one model are different devices all the same.
  for (size_t i = 0; i < models.size(); i++) models[i].uuid[15] = static_cast<uint8_t>(models[i].uuid[15] ^ i);
  return models;
}

std::vector<DeviceModel> configuredModels() {
  const char* list = std::getenv("SONDE_DEVICES");
  return modelsFor(list ? list : "");
}

}  // namespace sonde::softgpu::model
