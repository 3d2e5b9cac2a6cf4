// SPDX-License-Identifier: Apache-2.0
#include "platform/find_platform.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "platform/nvidia/platform.h"

namespace sonde::platform {

const SondePlatform* findPlatform(const char** why) {
  constexpr const char* kDriver = "libcuda.so.1";
  // The handle is kept: the platform's functions must stay mapped.
  void* driver = dlopen(kDriver, RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) driver = dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) {
    *why =
        "no CUDA driver: libcuda.so.1 cannot be loaded; put Sonde's lib64/softgpu on LD_LIBRARY_PATH "
        "or start the program with `sonde run`";
    return nullptr;
  }
  const char* chosen = std::getenv("SONDE_PLATFORM");
  const bool hooks = chosen != nullptr && std::strcmp(chosen, "nvidia") == 0;
  auto getPlatform = reinterpret_cast<SondeToolsGetPlatformFn>(dlsym(driver, SONDE_TOOLS_GET_PLATFORM_SYMBOL));
  if (getPlatform == nullptr || hooks) return nvidia::platformFor(driver);
  const SondePlatform* platform = getPlatform(SONDE_TOOLS_ABI_VERSION);
  if (platform == nullptr) {
    *why = "libcuda.so.1 and libcupti.so.13 are from different releases of Sonde; install both from one";
    dlclose(driver);
  }
  return platform;
}

const char* attachFailure(const SondePlatform* platform) {
  return std::strcmp(platform->name, "nvidia") == 0 ? nvidia::attachFailure() : "";
}

}  // namespace sonde::platform
