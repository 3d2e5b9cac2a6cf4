// SPDX-License-Identifier: Apache-2.0
#include <generated_cuda_meta.h>

#include <array>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {
namespace {

constexpr bool kLegacy = false, kPerThread = true;

inline bool passes(uint32_t cbid) { return (flagOf(driverWanted[cbid]) | flagOf(driverHandling[cbid])) == 0; }

#define SONDE_DRIVER_HOOK(cbid, since, stream, symbol, structure, types, ...)          \
  CUresult hook_##symbol types {                                                       \
    auto* original = reinterpret_cast<decltype(&hook_##symbol)>(driverOriginal[cbid]); \
    if (passes(cbid)) [[likely]]                                                       \
      return original(__VA_ARGS__);                                                    \
    structure params{__VA_ARGS__};                                                     \
    auto run = [&] { return original(__VA_ARGS__); };                                  \
    return static_cast<CUresult>(driverCall(cbid, #symbol, stream, &params, run));     \
  }
#define SONDE_DRIVER_HOOK_PLAIN(cbid, since, stream, symbol, types)                    \
  CUresult hook_##symbol types {                                                       \
    auto* original = reinterpret_cast<decltype(&hook_##symbol)>(driverOriginal[cbid]); \
    if (passes(cbid)) [[likely]]                                                       \
      return original();                                                               \
    auto run = [&] { return original(); };                                             \
    return static_cast<CUresult>(driverCall(cbid, #symbol, stream, nullptr, run));     \
  }
#include "platform/nvidia/generated/driver_hooks.inc"
#undef SONDE_DRIVER_HOOK
#undef SONDE_DRIVER_HOOK_PLAIN

const HookRow kRows[] = {
#define SONDE_DRIVER_HOOK(cbid, since, stream, symbol, structure, types, ...) \
  {#symbol, cbid, since, stream, reinterpret_cast<void*>(&hook_##symbol)},
#define SONDE_DRIVER_HOOK_PLAIN(cbid, since, stream, symbol, types) \
  {#symbol, cbid, since, stream, reinterpret_cast<void*>(&hook_##symbol)},
#include "platform/nvidia/generated/driver_hooks.inc"
};

}  // namespace

std::span<const HookRow> driverRows() { return kRows; }

const HookRow* driverRow(uint32_t cbid) {
  static const auto byCbid = [] {
    std::array<const HookRow*, kCbidCount> table{};
    for (const HookRow& row : kRows) table[row.cbid] = &row;
    return table;
  }();
  return cbid < kCbidCount ? byCbid[cbid] : nullptr;
}

}  // namespace sonde::platform::nvidia
