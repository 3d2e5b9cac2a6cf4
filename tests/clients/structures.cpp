// SPDX-License-Identifier: Apache-2.0
#include "structures.h"

#include <cupti.h>

#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

namespace clients {
namespace {

std::vector<std::vector<std::string>> table(const char* file) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream in(std::string(API_TABLES "/") + file);
  std::string line, cell;
  std::getline(in, line);
  while (std::getline(in, line)) {
    rows.emplace_back();
    std::istringstream row(line);
    while (std::getline(row, cell, '\t')) rows.back().push_back(cell);
  }
  return rows;
}

const std::map<std::string, Structure>& structures() {
  static const auto* all = [] {
    auto* out = new std::map<std::string, Structure>;
    for (const auto& r : table("layouts.tsv")) {
      if (r[0] != "cupti") continue;
      Structure& s = (*out)[r[1]];
      s.name = r[1];
      if (r[2] == "(whole)") {
        s.size = std::stoul(r[3]);
      } else {
        s.fields[r[2]] = {std::stoul(r[3]), std::stoul(r[4])};
      }
    }
    return out;
  }();
  return *all;
}

// older structure -> newer, where the newer begins with the older.
const std::set<std::pair<std::string, std::string>>& prefixes() {
  static const auto* all = [] {
    auto* out = new std::set<std::pair<std::string, std::string>>;
    for (const auto& r : table("record_versions.tsv")) {
      if (r[2] == "yes") out->insert({r[0], r[1]});
    }
    return out;
  }();
  return *all;
}

struct Kind {
  const char* name;
  uint32_t number;
  const char* structure;
};
#define KIND(kind, structure) {#kind, CUPTI_ACTIVITY_KIND_##kind, structure}
const Kind kKinds[] = {
    KIND(MEMCPY, "Memcpy"),
    KIND(MEMSET, "Memset"),
    KIND(KERNEL, "Kernel"),
    KIND(DRIVER, "API"),
    KIND(RUNTIME, "API"),
    KIND(DEVICE, "Device"),
    KIND(CONTEXT, "Context"),
    KIND(CONCURRENT_KERNEL, "Kernel"),
    KIND(NAME, "Name"),
    KIND(MARKER, "Marker"),
    KIND(MARKER_DATA, "MarkerData"),
    KIND(SOURCE_LOCATOR, "SourceLocator"),
    KIND(GLOBAL_ACCESS, "GlobalAccess"),
    KIND(BRANCH, "Branch"),
    KIND(OVERHEAD, "Overhead"),
    KIND(CDP_KERNEL, "CdpKernel"),
    KIND(PREEMPTION, "Preemption"),
    KIND(ENVIRONMENT, "Environment"),
    KIND(MEMCPY2, "MemcpyPtoP"),
    KIND(INSTRUCTION_EXECUTION, "InstructionExecution"),
    KIND(UNIFIED_MEMORY_COUNTER, "UnifiedMemoryCounter"),
    KIND(FUNCTION, "Function"),
    KIND(MODULE, "Module"),
    KIND(DEVICE_ATTRIBUTE, "DeviceAttribute"),
    KIND(SHARED_ACCESS, "SharedAccess"),
    KIND(PC_SAMPLING, "PCSampling"),
    KIND(OPENACC_DATA, "OpenAccData"),
    KIND(OPENACC_LAUNCH, "OpenAccLaunch"),
    KIND(OPENACC_OTHER, "OpenAccOther"),
    KIND(CUDA_EVENT, "CudaEvent"),
    KIND(STREAM, "Stream"),
    KIND(SYNCHRONIZATION, "Synchronization"),
    KIND(EXTERNAL_CORRELATION, "ExternalCorrelation"),
    KIND(MEMORY, "Memory"),
    KIND(OPENMP, "OpenMp"),
    KIND(INTERNAL_LAUNCH_API, "API"),
    KIND(MEMORY2, "Memory"),
    KIND(MEMORY_POOL, "MemoryPool"),
    KIND(GRAPH_TRACE, "GraphTrace"),
    KIND(JIT, "Jit"),
};

const Kind* find(const std::string& name) {
  for (const Kind& k : kKinds) {
    if (name == k.name) return &k;
  }
  return nullptr;
}

}  // namespace

uint64_t Structure::read(const void* record, const std::string& field) const {
  const Field& f = fields.at(field);
  uint64_t value = 0;
  std::memcpy(&value, static_cast<const char*>(record) + f.offset, f.size < 8 ? f.size : 8);
  return value;
}

uint32_t kindNumber(const std::string& kind) {
  const Kind* k = find(kind);
  return k != nullptr ? k->number : 0;
}

const Structure* structureOf(const std::string& kind, uint32_t version) {
  const Kind* k = find(kind);
  if (k == nullptr) return nullptr;
  // The first of MEMORY2 is the second of its structure's.
  if (kind == "MEMORY2" && version < 2) return nullptr;
  auto found =
      structures().find(std::string("CUpti_Activity") + k->structure + (version == 1 ? "" : std::to_string(version)));
  return found != structures().end() ? &found->second : nullptr;
}

std::vector<uint32_t> versionsOf(const std::string& kind) {
  std::vector<uint32_t> out;
  for (uint32_t v = 1; v <= 12; ++v) {
    if (kind == "MEMORY" && v > 1) break;
    if (structureOf(kind, v) != nullptr) out.push_back(v);
  }
  return out;
}

uint32_t newestVersion(const std::string& kind) {
  const auto all = versionsOf(kind);
  return all.empty() ? 0 : all.back();
}

bool readableAs(const std::string& kind, uint32_t written, uint32_t read) {
  const auto all = versionsOf(kind);
  const Structure* newer = nullptr;
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i] > written) continue;
    const Structure* s = structureOf(kind, all[i]);
    if (newer != nullptr && prefixes().count({s->name, newer->name}) == 0) return false;
    if (all[i] == read) return true;
    newer = s;
  }
  return false;
}

}  // namespace clients
