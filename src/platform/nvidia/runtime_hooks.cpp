// SPDX-License-Identifier: Apache-2.0
#include <generated_cuda_runtime_api_meta.h>
#include <generated_cudart_removed_meta.h>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {
namespace {

constexpr bool kLegacy = false, kPerThread = true;

#define SONDE_RUNTIME_HOOK(cbid, since, stream, symbol, structure, types, ...)          \
  cudaError_t hook_##symbol types {                                                     \
    auto* original = reinterpret_cast<decltype(&hook_##symbol)>(runtimeOriginal[cbid]); \
    if (flagOf(runtimeWanted[cbid]) == 0) [[likely]]                                    \
      return original(__VA_ARGS__);                                                     \
    structure params{__VA_ARGS__};                                                      \
    auto run = [&] { return original(__VA_ARGS__); };                                   \
    return static_cast<cudaError_t>(runtimeCall(cbid, #symbol, &params, run));          \
  }
#define SONDE_RUNTIME_HOOK_PLAIN(cbid, since, stream, symbol, types)                    \
  cudaError_t hook_##symbol types {                                                     \
    auto* original = reinterpret_cast<decltype(&hook_##symbol)>(runtimeOriginal[cbid]); \
    if (flagOf(runtimeWanted[cbid]) == 0) [[likely]]                                    \
      return original();                                                                \
    auto run = [&] { return original(); };                                              \
    return static_cast<cudaError_t>(runtimeCall(cbid, #symbol, nullptr, run));          \
  }
#include "platform/nvidia/generated/runtime_hooks.inc"
#undef SONDE_RUNTIME_HOOK
#undef SONDE_RUNTIME_HOOK_PLAIN

const HookRow kRows[] = {
#define SONDE_RUNTIME_HOOK(cbid, since, stream, symbol, structure, types, ...) \
  {#symbol, cbid, since, stream, reinterpret_cast<void*>(&hook_##symbol)},
#define SONDE_RUNTIME_HOOK_PLAIN(cbid, since, stream, symbol, types) \
  {#symbol, cbid, since, stream, reinterpret_cast<void*>(&hook_##symbol)},
#include "platform/nvidia/generated/runtime_hooks.inc"
};

}  // namespace

std::span<const HookRow> runtimeRows() { return kRows; }

}  // namespace sonde::platform::nvidia
