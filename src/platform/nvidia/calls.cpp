// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/calls.h"

#include <dlfcn.h>

#include <cstring>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {

OwnCalls own{};

namespace {

void* originalOf(void* library, const char* symbol) {
  for (const HookRow& row : driverRows())
    if (std::strcmp(row.symbol, symbol) == 0 && driverOriginal[row.cbid] != nullptr) return driverOriginal[row.cbid];
  return dlsym(library, symbol);
}

}  // namespace

#define TEXT_OF(name) #name
#define SYMBOL_OF(name) TEXT_OF(name)

bool resolveOwnCalls(void* library, const char** why) {
#define X(name) own.name = reinterpret_cast<decltype(own.name)>(originalOf(library, SYMBOL_OF(name)));
  SONDE_OWN_CALLS(X)
#undef X
  // Drivers before 12.8 have the first version alone; it is the same function.
  if (!own.cuEventElapsedTime)
    *reinterpret_cast<void**>(&own.cuEventElapsedTime) = originalOf(library, "cuEventElapsedTime");
  // The functions without which there is nothing to tell.
#define NEEDED(name)        \
  if (!own.name) {          \
    *why = SYMBOL_OF(name); \
    return false;           \
  }
  NEEDED(cuCtxGetCurrent)
  NEEDED(cuCtxPushCurrent)
  NEEDED(cuCtxPopCurrent)
  NEEDED(cuCtxGetDevice)
  NEEDED(cuDeviceGetAttribute)
  NEEDED(cuEventCreate)
  NEEDED(cuEventRecord)
  NEEDED(cuEventQuery)
  NEEDED(cuEventElapsedTime)
#undef NEEDED
  return true;
}

}  // namespace sonde::platform::nvidia
