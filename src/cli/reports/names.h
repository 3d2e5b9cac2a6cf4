// SPDX-License-Identifier: Apache-2.0
// How things are called in reports and exports.
#ifndef SONDE_CLI_REPORTS_NAMES_H_
#define SONDE_CLI_REPORTS_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/spool/trace.h"

namespace sonde::reports {

enum class NameStyle { Full, Base, Mangled };

std::optional<NameStyle> parseNameStyle(std::string_view text);

// "_Z5saxpyifPfS_" → "saxpy(int, float, float*, float*)"; anything that is no
// mangled name stays as it is.
std::string demangle(const std::string& mangled);
// The function's own name: "void ns::scan<int, 4>(int*)" → "scan".
std::string baseName(std::string_view demangled);
std::string kernelName(const std::string& mangled, NameStyle style);

// "cudaMalloc_v3020" → "cudaMalloc"; "cuMemAlloc_v2" stays.
std::string apiName(std::string_view recorded);

std::string_view copyKindName(uint32_t copyKind);  // "Host-to-Device"
std::string_view memoryKindName(uint32_t kind);    // "Pageable"
std::string_view overheadKindName(uint32_t kind);  // "Driver compiler"
std::string_view unifiedMemoryKindName(uint32_t kind);
// Of flags, by kind: "read", "page fault" …; empty where they say nothing.
std::string_view unifiedMemoryFlagsName(uint32_t kind, uint32_t flags);
std::string_view synchronizationTypeName(uint32_t type);
std::string_view memoryOperationName(uint32_t type);
std::string_view activityKindName(uint32_t kind);  // "CONCURRENT_KERNEL"

// "[CUDA memcpy Host-to-Device]", "[CUDA memset]"; for copies and sets.
std::string operationName(const GpuEvent& event);
// Of any GPU event.
std::string gpuEventName(const Trace& trace, const GpuEvent& event, NameStyle style);
// "domain:text", or "text" in the default domain.
std::string rangeName(const Trace& trace, const NvtxRange& range);
// "NVIDIA H200 (0)".
std::string deviceName(const Trace& trace, uint32_t process, uint32_t device);

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_NAMES_H_
