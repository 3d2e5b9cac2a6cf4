// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/device_launch.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "platform/clock.h"
#include "softgpu/exec/device_errors.h"
#include "softgpu/memory/address_space.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::exec {

namespace {
constexpr uint64_t kChunkBytes = 256 * 1024;
constexpr uint32_t kNonBlocking = 1;    // cudaStreamNonBlocking
constexpr uint32_t kDisableTiming = 2;  // cudaEventDisableTiming
constexpr uint32_t kBlockingSync = 1;   // cudaEventBlockingSync

// All bytes lie in one allocation.
bool valid(uint64_t address, uint64_t bytes) {
  const auto a = memory::Allocator::get().find(address);
  return a && a->contains(address, bytes);
}
}  // namespace

DeviceLaunches::~DeviceLaunches() {
  for (uint64_t c : chunks_) memory::Allocator::get().release(c);
}

uint64_t DeviceLaunches::allocate(uint64_t bytes) {
  bytes = (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64;
  if (bytes > chunkEnd_ - chunkAt_) {
    memory::Allocation chunk;
    chunk.bytes = std::max(kChunkBytes, bytes);
    chunk.kind = memory::Kind::device;
    chunk.device = static_cast<uint32_t>(host_.device);
    if (memory::Allocator::get().allocate(chunk) != memory::AllocError::none) return 0;
    chunks_.push_back(chunk.address);
    chunkAt_ = chunk.address;
    chunkEnd_ = chunk.address + chunk.bytes;
  }
  const uint64_t at = chunkAt_;
  chunkAt_ += bytes;
  return at;
}

uint64_t DeviceLaunches::parameterBuffer(uint64_t bytes, const DeviceWork* launch) {
  std::lock_guard lock(mutex_);
  const uint64_t at = allocate(bytes);
  if (!at) return 0;
  Buffer& b = buffers_[at];
  b.bytes = bytes;
  b.launchable = launch != nullptr;
  if (launch) b.launch = *launch;
  return at;
}

bool DeviceLaunches::readBuffer(uint64_t address, uint64_t bytes, std::vector<std::byte>& out) {
  std::lock_guard lock(mutex_);
  const auto found = buffers_.find(address);
  if (found == buffers_.end() || bytes > found->second.bytes) return false;
  out.resize(bytes);
  std::memcpy(out.data(), memory::AddressSpace::get().deviceView(address), bytes);
  return true;
}

bool DeviceLaunches::takeBuffer(uint64_t address, DeviceWork& work) {
  uint64_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    const auto found = buffers_.find(address);
    if (found == buffers_.end() || !found->second.launchable) return false;
    work = found->second.launch;
    bytes = found->second.bytes;
  }
  return readBuffer(address, bytes, work.params);
}

int32_t DeviceLaunches::enqueue(DeviceWork&& work) {
  if (work.kind == DeviceWork::Kind::kernel) {
    if (host_.depth >= kMostDepth) return kDeviceLaunchMaxDepthExceeded;
    if (const int32_t e = host_.check ? host_.check(work) : 0) return e;
  } else if (!valid(work.to, work.bytes) || (work.kind == DeviceWork::Kind::copy && !valid(work.from, work.bytes))) {
    return kDeviceInvalidValue;
  }
  if (host_.pending->fetch_add(1) >= host_.mostPending) {
    host_.pending->fetch_sub(1);
    return kDeviceLaunchPendingCountExceeded;
  }
  work.queuedNs = platform::nowNs();
  std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  return 0;
}

bool DeviceLaunches::hasWorkOf(uint64_t block) {
  std::lock_guard lock(mutex_);
  return std::any_of(work_.begin(), work_.end(), [&](const DeviceWork& w) { return w.parent == block; });
}

int32_t DeviceLaunches::run(std::vector<DeviceWork>&& work, std::string* message) {
  host_.pending->fetch_sub(work.size());
  return work.empty() ? 0 : host_.run(std::move(work), message);
}

int32_t DeviceLaunches::runBlock(uint64_t block, const std::array<uint32_t, 3>& position, std::string* message) {
  std::vector<DeviceWork> mine;
  {
    std::lock_guard lock(mutex_);
    // What waits for the grid's end stays.
    const auto first = std::stable_partition(work_.begin(), work_.end(), [&](const DeviceWork& w) {
      return w.parent != block || w.stream == kStreamTailLaunch;
    });
    std::move(first, work_.end(), std::back_inserter(mine));
    work_.erase(first, work_.end());
  }
  if (host_.preempted) host_.preempted(position, false);
  const int32_t error = run(std::move(mine), message);
  if (host_.preempted) host_.preempted(position, true);
  return error;
}

int32_t DeviceLaunches::runRest(std::string* message) {
  std::vector<DeviceWork> rest;
  {
    std::lock_guard lock(mutex_);
    rest.swap(work_);
  }
  std::stable_sort(rest.begin(), rest.end(), [](const DeviceWork& a, const DeviceWork& b) {
    return std::tuple(a.stream == kStreamTailLaunch, a.parent, a.order) <
           std::tuple(b.stream == kStreamTailLaunch, b.parent, b.order);
  });
  return run(std::move(rest), message);
}

// Streams of the device do not wait for the null stream; there are no others.
int32_t DeviceLaunches::createStream(uint32_t flags, uint64_t& handle) {
  if (flags != kNonBlocking) return kDeviceInvalidValue;
  std::lock_guard lock(mutex_);
  streams_.insert(handle = nextHandle_++);
  return 0;
}

int32_t DeviceLaunches::destroyStream(uint64_t handle) {
  std::lock_guard lock(mutex_);
  return streams_.erase(handle) ? 0 : kDeviceInvalidResourceHandle;
}

bool DeviceLaunches::isStream(uint64_t handle) {
  if (handle <= kStreamFireAndForget) return true;
  std::lock_guard lock(mutex_);
  return streams_.count(handle) != 0;
}

int32_t DeviceLaunches::createEvent(uint32_t flags, uint64_t& handle) {
  if (!(flags & kDisableTiming) || (flags & ~(kDisableTiming | kBlockingSync))) return kDeviceInvalidValue;
  std::lock_guard lock(mutex_);
  events_.insert(handle = nextHandle_++);
  return 0;
}

int32_t DeviceLaunches::destroyEvent(uint64_t handle) {
  std::lock_guard lock(mutex_);
  return events_.erase(handle) ? 0 : kDeviceInvalidResourceHandle;
}

bool DeviceLaunches::isEvent(uint64_t handle) {
  std::lock_guard lock(mutex_);
  return events_.count(handle) != 0;
}

uint64_t DeviceLaunches::text(const std::string& text) {
  std::lock_guard lock(mutex_);
  uint64_t& at = texts_[text];
  if (!at && (at = allocate(text.size() + 1)) != 0)
    std::memcpy(memory::AddressSpace::get().deviceView(at), text.c_str(), text.size() + 1);
  return at;
}

}  // namespace sonde::softgpu::exec
