// SPDX-License-Identifier: Apache-2.0
// `sonde devices` and `sonde version`.
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "cli/commands/clocks.h"
#include "cli/commands/console.h"
#include "cli/commands/gpu_process.h"
#include "cli/commands/installation.h"
#include "cli/commands/settings.h"
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

struct Limit {
  const char* key;   // in JSON
  const char* text;  // with the value in front
  CUdevice_attribute attribute;
};
constexpr Limit kLimits[] = {
    {"warp_size", "threads a warp", CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {"max_threads_per_block", "threads a block", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {"max_threads_per_multiprocessor", "threads an SM", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {"max_blocks_per_multiprocessor", "blocks an SM", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {"registers_per_multiprocessor", "registers an SM", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {"shared_memory_per_multiprocessor", "B of shared memory an SM",
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {"shared_memory_per_block", "B a block", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {"l2_bytes", "B of L2 cache", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
};

// A description of each device, in the process that has the driver.
bool describeDevices(Gpu& gpu, nlohmann::json* result, std::string* error) {
  const auto get = gpu.driverFunction<CUresult (*)(int*, CUdevice_attribute, CUdevice)>("cuDeviceGetAttribute");
  const auto memory = gpu.driverFunction<CUresult (*)(size_t*, CUdevice)>("cuDeviceTotalMem_v2");
  if (get == nullptr || memory == nullptr) {
    *error = "the driver lacks functions of the driver API";
    return false;
  }
  *result = nlohmann::json::array();
  for (int d = 0; d < gpu.deviceCount(); d++) {
    const auto attribute = [&](CUdevice_attribute a) {
      int v = 0;
      get(&v, a, d);
      return v;
    };
    size_t bytes = 0;
    memory(&bytes, d);
    nlohmann::json limits;
    for (const Limit& l : kLimits) limits[l.key] = attribute(l.attribute);
    result->push_back(
        {{"id", d},
         {"name", gpu.deviceName(d)},
         {"compute_capability", fmt::format("{}.{}", attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                                            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))},
         {"multiprocessors", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)},
         {"memory_bytes", bytes},
         {"core_clock_khz", attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)},
         {"memory_clock_khz", attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)},
         {"limits", std::move(limits)},
         {"clocks", clockState(gpu, d)}});
  }
  return true;
}

bool listDevices(const GpuLibraries& libraries, const char* kind, bool json, Console& console) {
  nlohmann::json devices;
  std::string error;
  if (!inGpuProcess(libraries, describeDevices, &devices, &error)) {
    console.error(fmt::format("{}: {}", kind, error));
    return false;
  }
  for (nlohmann::json& d : devices) {
    if (json) {
      d["kind"] = kind;
      console.result(d.dump() + "\n");
      continue;
    }
    console.result(fmt::format("{:<9} {:>2}  {:<32} {:>4}  {:>4}  {:>11}  {:>9}\n", kind, d["id"].get<int>(),
                               d["name"].get<std::string>(), d["compute_capability"].get<std::string>(),
                               d["multiprocessors"].get<int>(), reports::formatBytes(d["memory_bytes"].get<double>()),
                               fmt::format("{} MHz", d["core_clock_khz"].get<int>() / 1000)));
    std::string limits;
    for (const Limit& l : kLimits)
      limits += fmt::format("{}{} {}", limits.empty() ? "" : ", ",
                            reports::formatCount(d["limits"][l.key].get<uint64_t>()), l.text);
    console.result(
        fmt::format("              clocks: {}\n              limits: {}\n", describeClocks(d["clocks"]), limits));
  }
  return true;
}

}  // namespace

int devicesCommand(const std::string& device, bool json, Console& console) {
  const Installation here = Installation::find();
  const bool software = device != "real", real = device == "real" || (device == "auto" && hasRealDevice());
  if (!json)
    console.result(fmt::format("{:<9} {:>2}  {:<32} {:>4}  {:>4}  {:>11}  {:>9}\n", "Kind", "Id", "Name", "CC", "SMs",
                               "Memory", "Clock"));
  bool good = true;
  if (software) good = listDevices({here.softgpu + "/libcuda.so.1", here.cupti}, "software", json, console);
  if (real) good = listDevices({"libcuda.so.1", here.cupti}, "real", json, console) && good;
  return good ? 0 : kOwnFailure;
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
