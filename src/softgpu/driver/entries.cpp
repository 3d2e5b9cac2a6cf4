// SPDX-License-Identifier: Apache-2.0
//
// The exported functions. Written from the table: when
// nobody listens to the call it costs one load and one branch.
#include <cudaProfiler.h>

#include <atomic>
#include <string>
#include <type_traits>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/legacy.h"
#include "softgpu/driver/lookup.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {
namespace {

// The call acts on the per-thread default stream for its duration.
class PerThreadScope {
 public:
  PerThreadScope() : before_(thread().perThreadDefault) { thread().perThreadDefault = true; }
  ~PerThreadScope() { thread().perThreadDefault = before_; }

 private:
  bool before_;
};

// The answer of a function that is here in name only.
CUresult refuse(const char* name, const char* why, std::atomic<bool>& said) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!said.exchange(true)) say(std::string(name) + " is not supported: " + why);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// The kernel that a call launches, for the callback's symbol name.
template <class First, class... Rest>
const char* launchedKernel(First first, Rest... rest) {
  if constexpr (std::is_same_v<First, CUfunction>)
    return tools::kernelName(first);
  else if constexpr (sizeof...(Rest) > 0 && std::is_same_v<First, const CUlaunchConfig*>)
    return launchedKernel(rest...);
  else
    return nullptr;
}

}  // namespace

#define SONDE_EXPORT extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
#define SONDE_ENTRIES
#include "softgpu/driver/entries_generated.inc"
#undef SONDE_ENTRIES

namespace {
const LookupEntry kLookup[] = {
#define SONDE_LOOKUP(name, version, perThread, symbol) \
  {name, version, perThread != 0, reinterpret_cast<void*>(&symbol), #symbol},
#include "softgpu/driver/entries_generated.inc"
#undef SONDE_LOOKUP
};
}  // namespace

std::span<const LookupEntry> lookupTable() { return kLookup; }

}  // namespace sonde::softgpu::driver
