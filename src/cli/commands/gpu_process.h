// SPDX-License-Identifier: Apache-2.0
// Questions to a driver and to CUPTI, asked in a process of their own: two
// drivers do not share one, and nothing of theirs stays in ours.
#ifndef SONDE_CLI_COMMANDS_GPU_PROCESS_H_
#define SONDE_CLI_COMMANDS_GPU_PROCESS_H_

#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace sonde::cli {

struct GpuLibraries {
  std::string driver;  // path or soname
  std::string cupti;   // empty: the driver alone
};

// The libraries in that process; lives there only.
class Gpu {
 public:
  // Loads them and initialises the driver. False: *error.
  bool load(const GpuLibraries& libraries, std::string* error);

  template <typename F>
  F driverFunction(const char* name) const {
    return reinterpret_cast<F>(dlsym(driver_, name));
  }
  template <typename F>
  bool cupti(const char* name, F& function, std::string* error) const {
    function = cupti_ != nullptr ? reinterpret_cast<F>(dlsym(cupti_, name)) : nullptr;
    if (function == nullptr) *error = "libcupti has no function " + std::string(name);
    return function != nullptr;
  }
  int deviceCount() const;
  std::string deviceName(int device) const;
  // The primary context of a device; NULL: *error.
  CUcontext context(int device, std::string* error) const;
  std::string resultText(CUptiResult result) const;

 private:
  void* driver_ = nullptr;
  void* cupti_ = nullptr;
};

// Runs `work` in the other process; what it puts into the answer comes back.
// False: *error, also when that process dies.
bool inGpuProcess(const GpuLibraries& libraries,
                  const std::function<bool(Gpu& gpu, nlohmann::json* answer, std::string* error)>& work,
                  nlohmann::json* answer, std::string* error);

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_GPU_PROCESS_H_
