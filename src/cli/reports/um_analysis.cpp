// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/um_analysis.h"

#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>

namespace sonde::reports {
namespace {

constexpr uint64_t kBlock = 2u << 20;

bool isManaged(uint32_t memoryKind) {
  return memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED || memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC;
}

std::string fileName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

const CodeLocation* locationOf(const Trace& trace, uint32_t process, uint64_t pc) {
  const auto it = trace.locations.find({process, pc});
  return it != trace.locations.end() ? &it->second : nullptr;
}

}  // namespace

std::vector<UmArea> umAreas(const Trace& trace) {
  std::map<std::pair<uint32_t, uint64_t>, UmArea> areas;
  // An address that is used again after its release is one area with the largest size.
  for (const MemoryOperation& m : trace.memoryOperations) {
    if (!isManaged(m.kind) || m.operation != CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION) continue;
    UmArea& area = areas[{m.process, m.address}];
    area.process = m.process;
    area.address = m.address;
    area.bytes = std::max(area.bytes, m.bytes);
    area.allocation = true;
  }
  std::map<std::pair<uint32_t, uint64_t>, std::vector<const UnifiedMemory*>> others;  // by address
  for (const UnifiedMemory& e : trace.unifiedMemory) {
    auto it = areas.upper_bound({e.process, e.address});
    if (it != areas.begin()) {
      const UmArea& before = std::prev(it)->second;
      // Pages reach beyond the last byte of an allocation.
      if (before.process == e.process && e.address < before.address + (before.bytes + 4095) / 4096 * 4096) {
        std::prev(it)->second.events.push_back(&e);
        continue;
      }
    }
    others[{e.process, e.address}].push_back(&e);
  }
  UmArea* open = nullptr;
  for (auto& [key, events] : others) {
    const bool joins = open != nullptr && open->process == key.first &&
                       key.second / kBlock <= (open->address + open->bytes) / kBlock + 1;
    if (!joins) {
      UmArea& area = areas[key];
      area.process = key.first;
      area.address = key.second;
      open = &area;
    }
    uint64_t size = 4096;
    for (const UnifiedMemory* e : events)
      if (isUmTransfer(e->kind) || e->kind == kUmThrashing || e->kind == kUmRemoteMap) size = std::max(size, e->value);
    open->bytes = std::max(open->bytes, key.second + size - open->address);
    open->events.insert(open->events.end(), events.begin(), events.end());
  }
  std::vector<UmArea> out;
  for (auto& [key, area] : areas) {
    if (area.events.empty()) continue;
    std::stable_sort(area.events.begin(), area.events.end(),
                     [](const UnifiedMemory* a, const UnifiedMemory* b) { return a->start < b->start; });
    out.push_back(std::move(area));
  }
  return out;
}

uint32_t umDevice(const UnifiedMemory& e) {
  switch (e.kind) {
    case kUmHtoD:
    case kUmDtoD: return e.dstId;
    // Who maps; the CPU may, on a machine where it reaches the device's memory.
    case kUmRemoteMap: return e.srcId != CUPTI_UNIFIED_MEMORY_CPU_DEVICE_ID ? e.srcId : e.dstId;
    default: return e.srcId;
  }
}

bool umOnCpu(const UnifiedMemory& e) {
  return (e.kind == kUmThrashing || e.kind == kUmThrottling) && (e.flags & 1) != 0;
}

std::string umContenders(const UnifiedMemory& e) {
  std::string out = umOnCpu(e) ? "CPU" : "";
  for (uint32_t device = 0; device < 320; device++)
    if ((e.processors[device / 64] >> (device % 64) & 1) != 0)
      out += fmt::format("{}GPU {}", out.empty() ? "" : ", ", device);
  return out;
}

UmKernels::UmKernels(const Trace& trace, NameStyle style) : trace_(trace), style_(style) {
  for (const GpuEvent& e : trace.gpuEvents)  // by start
    if (e.work == GpuWork::Kernel && e.finished) tracks_[{e.process, e.device}].kernels.push_back(&e);
  for (auto& [key, track] : tracks_) {
    uint64_t last = 0;
    for (const GpuEvent* e : track.kernels) track.lastEnd.push_back(last = std::max(last, e->end));
  }
}

std::string UmKernels::at(uint32_t process, uint32_t device, uint64_t time) {
  constexpr const char* kNone = "(copy, set or none)";
  const auto track = tracks_.find({process, device});
  if (track == tracks_.end()) return kNone;
  const auto& kernels = track->second.kernels;
  auto it = std::upper_bound(kernels.begin(), kernels.end(), time,
                             [](uint64_t t, const GpuEvent* e) { return t < e->start; });
  const GpuEvent* found = nullptr;
  while (it != kernels.begin()) {
    --it;
    if (track->second.lastEnd[static_cast<size_t>(it - kernels.begin())] < time) break;
    if ((*it)->end < time) continue;
    if (found != nullptr && found->name != (*it)->name) return "(several kernels)";
    found = *it;
  }
  return found != nullptr ? kernelName(trace_.text(found->name), style_) : kNone;
}

std::string umFunction(const Trace& trace, uint32_t process, uint64_t pc) {
  const CodeLocation* l = locationOf(trace, process, pc);
  return l != nullptr ? demangle(trace.text(l->function)) : std::string();
}

std::string umSource(const Trace& trace, uint32_t process, uint64_t pc) {
  const CodeLocation* l = locationOf(trace, process, pc);
  if (l == nullptr || l->file == 0) return {};
  return l->line != 0 ? fmt::format("{}:{}", fileName(trace.text(l->file)), l->line) : fileName(trace.text(l->file));
}

std::string umPlace(const Trace& trace, uint32_t process, uint64_t pc) {
  const CodeLocation* l = locationOf(trace, process, pc);
  if (l == nullptr || l->module == 0) return fmt::format("0x{:x}", pc);
  return fmt::format("{}+0x{:x}", fileName(trace.text(l->module)), l->offset);
}

}  // namespace sonde::reports
