// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/names.h"

#include <cupti.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <utility>

namespace sonde::reports {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

// Walks a demangled name outside of <…>, (…) and the anonymous namespace.
// Calls visit(index) for each character at depth 0; stops when it says so.
template <typename Visit>
void walkTopLevel(std::string_view s, Visit visit) {
  int depth = 0;
  for (size_t i = 0; i < s.size(); i++) {
    if (s.compare(i, kAnonymous.size(), kAnonymous) == 0) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (s.compare(i, 8, "operator") == 0 &&
        (i == 0 || (!std::isalnum(static_cast<unsigned char>(s[i - 1])) && s[i - 1] != '_'))) {
      // The symbols of an operator's name are no brackets.
      i += 8;
      if (s.compare(i, 2, "()") == 0) {
        i += 2;
      } else {
        while (i < s.size() && std::string_view("<>=!-+*/%^&|~[],").find(s[i]) != std::string_view::npos) i++;
      }
      i--;
      continue;
    }
    const char c = s[i];
    if (depth == 0 && !visit(i)) return;
    if (c == '<' || c == '(' || c == '[' || c == '{') depth++;
    if ((c == '>' || c == ')' || c == ']' || c == '}') && depth > 0) depth--;
  }
}

}  // namespace

std::optional<NameStyle> parseNameStyle(std::string_view text) {
  if (text == "full") return NameStyle::Full;
  if (text == "base") return NameStyle::Base;
  if (text == "mangled") return NameStyle::Mangled;
  return std::nullopt;
}

std::string demangle(const std::string& mangled) {
  if (mangled.compare(0, 2, "_Z") != 0) return mangled;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? text.get() : mangled;
}

std::string baseName(std::string_view s) {
  size_t end = s.size(), start = 0;
  bool lambdaLike = false;
  walkTopLevel(s, [&](size_t i) {
    if (s[i] == '(' || s[i] == '<') {
      // "{lambda(int)#1}" and the like are one piece.
      if (end == s.size()) end = i;
      // Parameters end the name; template arguments may be followed by "::".
      if (s[i] == '(') return false;
    } else if (s[i] == ' ' && s.compare(i, 2, " [") != 0) {
      start = i + 1;  // what came before was the return type
      end = s.size();
    } else if (s[i] == ':') {
      start = i + 1;
      end = s.size();
    } else if (s[i] == '{') {
      lambdaLike = true;
    }
    return true;
  });
  if (start >= end || (lambdaLike && end == start)) return std::string(s);
  return std::string(s.substr(start, end - start));
}

std::string kernelName(const std::string& mangled, NameStyle style) {
  if (style == NameStyle::Mangled) return mangled;
  std::string full = demangle(mangled);
  return style == NameStyle::Full ? full : baseName(full);
}

std::string apiName(std::string_view recorded) {
  const size_t at = recorded.rfind("_v");
  if (at != std::string_view::npos && recorded.size() - at >= 6) {
    bool digits = true;
    for (size_t i = at + 2; i < recorded.size(); i++)
      digits &= std::isdigit(static_cast<unsigned char>(recorded[i])) != 0;
    if (digits) return std::string(recorded.substr(0, at));
  }
  return std::string(recorded);
}

std::string_view copyKindName(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "Host-to-Device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "Device-to-Host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return "Host-to-Array";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return "Array-to-Host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA: return "Array-to-Array";
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD: return "Array-to-Device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA: return "Device-to-Array";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "Device-to-Device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "Host-to-Host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "Peer-to-Peer";
    default: return "unknown";
  }
}

std::string_view memoryKindName(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "Pageable";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "Pinned";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return "Device";
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return "Array";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: return "Managed";
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC: return "Device Static";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC: return "Managed Static";
    default: return "";
  }
}

std::string_view overheadKindName(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER: return "Kernel compilation (PTX)";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: return "Record buffer flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: return "Instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE: return "Profiler resource handling";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING: return "Module loading by the runtime";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING: return "Lazy function loading";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: return "Command buffer full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST: return "Record buffer request";
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT: return "Unified memory tracing set-up";
    default: return "Unknown";
  }
}

std::string_view unifiedMemoryKindName(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD: return "Migration Host-to-Device";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH: return "Migration Device-to-Host";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT: return "CPU page fault";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT: return "GPU page fault";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING: return "Thrashing";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING: return "Throttling";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP: return "Remote map";
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD: return "Migration Device-to-Device";
    default: return "unknown";
  }
}

std::string_view unifiedMemoryFlagsName(uint32_t kind, uint32_t flags) {
  switch (kind) {
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT:
      switch (flags) {
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_READ: return "Read";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_WRITE: return "Write";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_ATOMIC: return "Atomic";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_PREFETCH: return "Prefetch";
        default: return "Unknown";
      }
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_HTOD:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOH:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_BYTES_TRANSFER_DTOD:
      switch (flags) {
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_USER: return "User";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_COHERENCE: return "Coherence";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_PREFETCH: return "Prefetch";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_EVICTION: return "Eviction";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_MIGRATION_CAUSE_ACCESS_COUNTERS: return "Access counters";
        default: return "Unknown";
      }
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_REMOTE_MAP:
      switch (flags) {
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_COHERENCE: return "Coherence";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_THRASHING: return "Thrashing";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_POLICY: return "Policy";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_OUT_OF_MEMORY: return "Out of memory";
        case CUPTI_ACTIVITY_UNIFIED_MEMORY_REMOTE_MAP_CAUSE_EVICTION: return "Eviction";
        default: return "Unknown";
      }
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THRASHING:
    case CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_THROTTLING: return (flags & 1) != 0 ? "CPU" : "";
    default: return "";
  }
}

std::string_view synchronizationTypeName(uint32_t type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return "Event synchronize";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return "Stream wait event";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return "Stream synchronize";
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return "Context synchronize";
    default: return "unknown";
  }
}

std::string_view memoryOperationName(uint32_t type) {
  switch (type) {
    case CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION: return "Allocation";
    case CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE: return "Release";
    default: return "unknown";
  }
}

std::string_view activityKindName(uint32_t kind) {
  static constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY"},
      {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET"},
      {CUPTI_ACTIVITY_KIND_KERNEL, "KERNEL"},
      {CUPTI_ACTIVITY_KIND_DRIVER, "DRIVER"},
      {CUPTI_ACTIVITY_KIND_RUNTIME, "RUNTIME"},
      {CUPTI_ACTIVITY_KIND_DEVICE, "DEVICE"},
      {CUPTI_ACTIVITY_KIND_CONTEXT, "CONTEXT"},
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"},
      {CUPTI_ACTIVITY_KIND_NAME, "NAME"},
      {CUPTI_ACTIVITY_KIND_MARKER, "MARKER"},
      {CUPTI_ACTIVITY_KIND_MARKER_DATA, "MARKER_DATA"},
      {CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD"},
      {CUPTI_ACTIVITY_KIND_CDP_KERNEL, "CDP_KERNEL"},
      {CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2"},
      {CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, "UNIFIED_MEMORY_COUNTER"},
      {CUPTI_ACTIVITY_KIND_FUNCTION, "FUNCTION"},
      {CUPTI_ACTIVITY_KIND_MODULE, "MODULE"},
      {CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE, "DEVICE_ATTRIBUTE"},
      {CUPTI_ACTIVITY_KIND_CUDA_EVENT, "CUDA_EVENT"},
      {CUPTI_ACTIVITY_KIND_STREAM, "STREAM"},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION"},
      {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "EXTERNAL_CORRELATION"},
      {CUPTI_ACTIVITY_KIND_MEMORY, "MEMORY"},
      {CUPTI_ACTIVITY_KIND_MEMORY2, "MEMORY2"},
      {CUPTI_ACTIVITY_KIND_MEMORY_POOL, "MEMORY_POOL"},
      {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, "GRAPH_TRACE"},
      {CUPTI_ACTIVITY_KIND_JIT, "JIT"},
      {CUPTI_ACTIVITY_KIND_ENVIRONMENT, "ENVIRONMENT"},
  };
  for (const auto& [value, name] : kNames)
    if (value == kind) return name;
  return "?";
}

std::string operationName(const GpuEvent& e) {
  if (e.work == GpuWork::Memset) return "[CUDA memset]";
  return fmt::format("[CUDA memcpy {}]", copyKindName(e.copyKind));
}

std::string gpuEventName(const Trace& trace, const GpuEvent& e, NameStyle style) {
  switch (e.work) {
    case GpuWork::Kernel: return kernelName(trace.text(e.name), style);
    case GpuWork::Graph: return fmt::format("[CUDA graph {}]", e.graphId);
    default: return operationName(e);
  }
}

std::string rangeName(const Trace& trace, const NvtxRange& range) {
  const std::string& domain = trace.text(range.domain);
  return domain.empty() ? trace.text(range.name) : domain + ":" + trace.text(range.name);
}

std::string deviceName(const Trace& trace, uint32_t process, uint32_t device) {
  for (const Device& d : trace.devices)
    if (d.process == process && d.id == device && d.name != 0)
      return fmt::format("{} ({})", trace.text(d.name), device);
  return fmt::format("GPU {}", device);
}

}  // namespace sonde::reports
