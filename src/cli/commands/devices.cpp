// SPDX-License-Identifier: Apache-2.0
// `sonde devices` and `sonde version`.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/commands/console.h"
#include "cli/commands/installation.h"
#include "cli/commands/settings.h"
#include "cli/exports/exports.h"
#include "cli/reports/table.h"

#ifndef SONDE_VERSION
#define SONDE_VERSION "unknown"
#endif

namespace sonde::cli {
namespace {

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

struct Driver {
  CUresult (*init)(unsigned) = nullptr;
  CUresult (*driverVersion)(int*) = nullptr;
  CUresult (*count)(int*) = nullptr;
  CUresult (*get)(CUdevice*, int) = nullptr;
  CUresult (*name)(char*, int, CUdevice) = nullptr;
  CUresult (*attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
  CUresult (*memory)(size_t*, CUdevice) = nullptr;

  bool load(void* library) {
    return find(library, "cuInit", init) && find(library, "cuDriverGetVersion", driverVersion) &&
           find(library, "cuDeviceGetCount", count) && find(library, "cuDeviceGet", get) &&
           find(library, "cuDeviceGetName", name) && find(library, "cuDeviceGetAttribute", attribute) &&
           find(library, "cuDeviceTotalMem_v2", memory);
  }
};

// Runs in a process of its own: two drivers do not share one.
int listDevices(const std::string& library, const char* kind, bool json) {
  ::unsetenv("CUDA_INJECTION64_PATH");
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    fmt::print(stderr, "sonde: {}\n", dlerror());
    return 1;
  }
  Driver cu;
  if (!cu.load(handle)) {
    fmt::print(stderr, "sonde: {} lacks functions of the driver API\n", library);
    return 1;
  }
  if (const CUresult r = cu.init(0); r != CUDA_SUCCESS) {
    fmt::print(stderr, "sonde: {}: cuInit fails with error {}\n", library, static_cast<int>(r));
    return 1;
  }
  int count = 0;
  if (cu.count(&count) != CUDA_SUCCESS) return 1;
  for (int i = 0; i < count; i++) {
    CUdevice device = 0;
    char name[256] = "";
    size_t bytes = 0;
    if (cu.get(&device, i) != CUDA_SUCCESS) continue;
    cu.name(name, sizeof name, device);
    cu.memory(&bytes, device);
    const auto attribute = [&](CUdevice_attribute a) {
      int v = 0;
      cu.attribute(&v, a, device);
      return v;
    };
    const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
              sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
              clock = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    if (json) {
      fmt::print(
          "{{\"kind\":\"{}\",\"id\":{},\"name\":{},\"compute_capability\":\"{}.{}\",\"multiprocessors\":{},"
          "\"memory_bytes\":{},\"core_clock_khz\":{}}}\n",
          kind, i, exports::jsonString(name), major, minor, sms, bytes, clock);
    } else {
      fmt::print("{:<9} {:>2}  {:<32} {:>4}  {:>4}  {:>11}  {:>9}\n", kind, i, name, fmt::format("{}.{}", major, minor),
                 sms, reports::formatBytes(static_cast<double>(bytes)), fmt::format("{} MHz", clock / 1000));
    }
  }
  std::fflush(stdout);
  return 0;
}

int inChild(const std::string& library, const char* kind, bool json) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return 1;
  if (child == 0) ::_exit(listDevices(library, kind, json));
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int devicesCommand(const std::string& device, bool json, Console& console) {
  const Installation here = Installation::find();
  const bool software = device != "real", real = device == "real" || (device == "auto" && hasRealDevice());
  if (!json)
    console.result(fmt::format("{:<9} {:>2}  {:<32} {:>4}  {:>4}  {:>11}  {:>9}\n", "Kind", "Id", "Name", "CC", "SMs",
                               "Memory", "Clock"));
  console.flush();
  int failures = 0;
  if (software) failures += inChild(here.softgpu + "/libcuda.so.1", "software", json);
  if (real) failures += inChild("libcuda.so.1", "real", json);
  return failures == 0 ? 0 : kOwnFailure;
}

int versionCommand(Console& console) {
  const Installation here = Installation::find();
  console.result(fmt::format("sonde {} (CUPTI API {})\n", SONDE_VERSION, CUPTI_API_VERSION));
  const auto line = [&](const char* what, const std::string& path, const std::string& more) {
    std::error_code ec;
    console.result(fmt::format("  {:<13} {}{}\n", what, path, std::filesystem::exists(path, ec) ? more : " (missing)"));
  };
  std::string version;
  if (void* library = dlopen(here.cupti.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    CUptiResult (*getVersion)(uint32_t*) = nullptr;
    uint32_t number = 0;
    if (find(library, "cuptiGetVersion", getVersion) && getVersion(&number) == CUPTI_SUCCESS)
      version = fmt::format(" (API {})", number);
  }
  line("libcupti", here.cupti, version);
  line("collector", here.collector, "");
  line("software GPU", here.softgpu, "");
  return 0;
}

}  // namespace sonde::cli
