// SPDX-License-Identifier: Apache-2.0
//
// Dynamic parallelism: what the threads of one grid enqueue on the device, until
// it is run.
//
// Work is run in a fixed order, whatever the number of host threads: when a block
// waits for what it launched, its own, in the order of its calls; when the grid's
// blocks have ended, all the rest by block, and last what went to the tail stream.
// That satisfies every stream and event that device code can name.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "softgpu/exec/engine.h"

namespace sonde::softgpu::exec {

// One piece of it.
struct DeviceWork {
  enum class Kind : uint8_t { kernel, copy, set };
  Kind kind = Kind::kernel;
  uint32_t kernel = 0;  // index into the program's kernels
  Dim3 grid, block;
  uint32_t dynamicSharedBytes = 0;
  std::vector<std::byte> params;
  uint64_t to = 0, from = 0, bytes = 0;  // copies and sets; device addresses
  uint8_t value = 0;
  uint64_t stream = 0;  // as device code gave it
  uint64_t parent = 0;  // the block that called, by number
  std::array<uint32_t, 3> parentBlock{};
  uint64_t order = 0;  // of the block's calls
  uint64_t queuedNs = 0;
};

// Streams that device code can name without making one.
inline constexpr uint64_t kStreamTailLaunch = 3, kStreamFireAndForget = 4;

class DeviceLaunches {
 public:
  static constexpr uint32_t kMostDepth = 24;  // levels of launches below the host's

  // The driver's side. Results are cudaError_t numbers, 0 for success.
  struct Host {
    uint32_t depth = 0;                               // of this grid; 0: launched by the host
    uint64_t syncDepth = 2, mostPending = 2048;       // CU_LIMIT_DEV_RUNTIME_…
    std::atomic<uint64_t>* pending = nullptr;         // of the whole tree of grids
    std::function<int32_t(const DeviceWork&)> check;  // may it be launched?
    // Runs work to its end, in this order. An error ends the grid.
    std::function<int32_t(std::vector<DeviceWork>&&, std::string* message)> run;
    std::function<void(const std::array<uint32_t, 3>& block, bool restored)> preempted;
    std::function<int32_t(int32_t attribute, int32_t* value)> deviceAttribute;
    std::function<int32_t(int32_t limit, uint64_t* value)> limit;
    int32_t device = 0, deviceCount = 1;
  };
  explicit DeviceLaunches(Host host) : host_(std::move(host)) {}
  ~DeviceLaunches();
  DeviceLaunches(const DeviceLaunches&) = delete;
  DeviceLaunches& operator=(const DeviceLaunches&) = delete;

  const Host& host() const { return host_; }

  // Device memory for a kernel's parameters, 64-byte aligned, until the grid's end; 0: none left.
  // `launch` is what cudaLaunchDeviceV2 will launch with it.
  uint64_t parameterBuffer(uint64_t bytes, const DeviceWork* launch);
  // The launch that belongs to a buffer, with its parameters; false: not a buffer.
  bool takeBuffer(uint64_t address, DeviceWork& work);
  bool readBuffer(uint64_t address, uint64_t bytes, std::vector<std::byte>& out);

  int32_t enqueue(DeviceWork&& work);
  bool hasWorkOf(uint64_t block);
  // On the stack of the thread, not of a warp. The first error and its message.
  int32_t runBlock(uint64_t block, const std::array<uint32_t, 3>& position, std::string* message);
  int32_t runRest(std::string* message);

  int32_t createStream(uint32_t flags, uint64_t& handle);
  int32_t destroyStream(uint64_t handle);
  bool isStream(uint64_t handle);
  int32_t createEvent(uint32_t flags, uint64_t& handle);
  int32_t destroyEvent(uint64_t handle);
  bool isEvent(uint64_t handle);
  // Device address of a NUL-terminated text.
  uint64_t text(const std::string& text);

 private:
  struct Buffer {
    uint64_t bytes = 0;
    bool launchable = false;
    DeviceWork launch;
  };
  uint64_t allocate(uint64_t bytes);  // the mutex is held
  int32_t run(std::vector<DeviceWork>&& work, std::string* message);

  Host host_;
  std::mutex mutex_;
  std::vector<DeviceWork> work_;
  std::map<uint64_t, Buffer> buffers_;
  std::map<std::string, uint64_t> texts_;
  std::vector<uint64_t> chunks_;
  uint64_t chunkAt_ = 0, chunkEnd_ = 0;
  std::set<uint64_t> streams_, events_;
  uint64_t nextHandle_ = 0x100;
};

}  // namespace sonde::softgpu::exec
