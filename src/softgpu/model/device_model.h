// SPDX-License-Identifier: Apache-2.0
//
// A device model: what a software GPU reports about itself and how its
// counters and clocks behave. Models are JSON files (model/*.json, compiled
// in); SONDE_DEVICES chooses them: names or file paths, separated by commas,
// one device each ("default", "kepler", "hopper", "default,default").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sonde::softgpu::model {

struct Cache {
  uint64_t bytes = 0;
  uint32_t lineBytes = 128, sectorBytes = 32, ways = 4, slices = 1;
};

struct DeviceModel {
  std::string id;    // "default"
  std::string name;  // cuDeviceGetName
  uint8_t uuid[16] = {};
  uint32_t ccMajor = 9, ccMinor = 0;
  uint32_t smCount = 16;
  uint32_t maxWarpsPerSm = 64, maxBlocksPerSm = 32, maxThreadsPerBlock = 1024;
  uint32_t registersPerSm = 65536, registersPerBlock = 65536, maxRegistersPerThread = 255;
  uint32_t sharedPerSm = 233472, sharedPerBlock = 49152, sharedPerBlockOptin = 232448, sharedReservedPerBlock = 1024;
  uint64_t memoryBytes = uint64_t{8} << 30;
  uint64_t constantBytes = 65536;
  Cache l1, l2;
  uint32_t schedulersPerSm = 4;
  bool unifiedMemory = true, concurrentKernels = true;
  bool concurrentManaged = true;        // kernels can fault on managed memory (since Pascal)
  uint32_t accessCounterThreshold = 0;  // touches from afar before managed pages migrate; 0: never
  uint32_t baseClockMHz = 1095, boostClockMHz = 1980, idleClockMHz = 345, memoryClockMHz = 2619;
  std::map<int, int64_t> attributes;  // CUdevice_attribute values that the fields above do not give
  std::map<std::string, double> facts;
  std::map<std::string, std::string> strings;
  std::string countersJson;  // domains and events, read by the event API
  std::string metricsJson;   // metrics on these events
};

// Parses one model. Throws std::runtime_error that names the file, the key and
// what is wrong.
DeviceModel parseModel(const std::string& json, const std::string& origin);

// The models that a list names ("" means "default"). Throws std::runtime_error.
std::vector<DeviceModel> modelsFor(const std::string& list);
// The models that SONDE_DEVICES names.
std::vector<DeviceModel> configuredModels();

}  // namespace sonde::softgpu::model
