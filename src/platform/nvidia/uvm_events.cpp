// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/uvm_events.h"

namespace sonde::platform::nvidia {
namespace {

// CUpti_ActivityUnifiedMemoryCounterKind.
enum Kind : uint32_t {
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kCpuFaults = 3,
  kGpuFaults = 4,
  kThrashing = 5,
  kThrottling = 6,
  kRemoteMap = 7,
  kDeviceToDevice = 8,
};
constexpr uint32_t kCpu = 0xffffffff, kInCpu = 1;
constexpr size_t kMostOpen = 4096;  // of batches that were never replayed

uint32_t bits(uint64_t word, unsigned from, unsigned count) {
  return static_cast<uint32_t>(word >> from & ((uint64_t{1} << count) - 1));
}

}  // namespace

uint64_t uvmEventsFor(uint32_t kinds) {
  auto wants = [kinds](Kind kind) { return (kinds >> kind & 1) != 0; };
  uint64_t events = 0;
  auto add = [&events](UvmEventType type) { events |= uint64_t{1} << type; };
  if (wants(kHostToDevice) || wants(kDeviceToHost) || wants(kDeviceToDevice)) add(kUvmMigration);
  if (wants(kCpuFaults)) add(kUvmCpuFault);
  if (wants(kGpuFaults)) {
    add(kUvmGpuFault);
    add(kUvmGpuFaultReplay);
  }
  if (wants(kThrashing)) add(kUvmThrashing);
  if (wants(kThrottling)) {
    add(kUvmThrottlingStart);
    add(kUvmThrottlingEnd);
  }
  if (wants(kRemoteMap)) add(kUvmMapRemote);
  return events;
}

uint32_t UvmDecoder::idOf(uint32_t processor) const { return processor == 0 ? kCpu : clocks_.deviceOf(processor); }

void UvmDecoder::forget() {
  batches_.clear();
  throttled_.clear();
}

void UvmDecoder::decode(const UvmEntry& entry) {
  const uint64_t* w = entry.words;
  SondeUnifiedMemory r{};
  r.size = sizeof r;
  switch (bits(w[0], 0, 8)) {
    case kUvmCpuFault:  // access, cpu | address | time | process, thread | instruction
      r.kind = kCpuFaults;
      r.flags = bits(w[0], 8, 8);
      r.address = w[1];
      r.start = clocks_.fromCpu(w[2]);
      r.value = w[4];
      break;
    case kUvmMigration: {
      // cause, source, destination | … | address | bytes | CPU times | group | device times
      const uint32_t from = bits(w[0], 32, 16), to = bits(w[0], 48, 16);
      r.kind = from == 0 ? kHostToDevice : to == 0 ? kDeviceToHost : kDeviceToDevice;
      r.flags = bits(w[0], 8, 8);
      r.address = w[2];
      r.value = w[3];
      // In copies the CPU has the id 0.
      r.srcId = from == 0 ? 0 : idOf(from);
      r.dstId = to == 0 ? 0 : idOf(to);
      const uint32_t device = to != 0 ? r.dstId : r.srcId;  // whose engine copied, as the module has it
      r.start = w[7] != 0 ? clocks_.fromDevice(device, w[7]) : clocks_.fromCpu(w[4]);
      r.end = w[8] != 0 ? clocks_.fromDevice(device, w[8]) : clocks_.fromCpu(w[5] != 0 ? w[5] : w[4]);
      break;
    }
    case kUvmGpuFault: {
      // type, processor … | address | CPU time | device time | batch, …, access
      const std::pair key{bits(w[0], 16, 16), bits(w[4], 0, 32)};
      if (batches_.size() >= kMostOpen) batches_.erase(batches_.begin());
      const auto [at, fresh] = batches_.try_emplace(key, Batch{w[1], w[3], 1, bits(w[4], 40, 8)});
      if (!fresh && at->second.address == w[1]) ++at->second.count;
      return;
    }
    case kUvmGpuFaultReplay: {
      // One record for a batch: its first address, and how many faults had it.
      const std::pair key{bits(w[0], 16, 16), bits(w[0], 32, 32)};
      const auto at = batches_.find(key);
      if (at == batches_.end()) return;
      const Batch batch = at->second;
      batches_.erase(at);
      const uint32_t device = idOf(key.first);
      r.kind = kGpuFaults;
      r.value = batch.count;
      r.address = batch.address;
      r.flags = batch.access;
      r.srcId = device;
      r.start = clocks_.fromDevice(device, batch.start);
      r.end = w[2] != 0 ? clocks_.fromDevice(device, w[2]) : clocks_.fromCpu(w[1]);
      break;
    }
    case kUvmThrashing: {  // | address | bytes | time | mask of processors, 257 bits
      r.kind = kThrashing;
      r.address = w[1];
      r.value = w[2];
      r.start = clocks_.fromCpu(w[3]);
      r.flags = static_cast<uint32_t>(w[4] & 1);  // the CPU takes part
      for (uint32_t p = 1; p < 257; ++p) {
        if ((w[4 + p / 64] >> (p % 64) & 1) == 0) continue;
        const uint32_t device = clocks_.deviceOf(p);
        if (device < 320) r.processors[device / 64] |= uint64_t{1} << (device % 64);
      }
      r.srcId = static_cast<uint32_t>(r.processors[0]);
      break;
    }
    case kUvmThrottlingStart:  // processor | address | time
      if (throttled_.size() >= kMostOpen) throttled_.erase(throttled_.begin());
      throttled_[{bits(w[0], 16, 16), w[1]}] = w[2];
      return;
    case kUvmThrottlingEnd: {
      const uint32_t processor = bits(w[0], 16, 16);
      const auto at = throttled_.find({processor, w[1]});
      if (at == throttled_.end()) return;
      r.kind = kThrottling;
      r.address = w[1];
      r.start = clocks_.fromCpu(at->second);
      r.end = clocks_.fromCpu(w[2]);
      r.srcId = idOf(processor);
      r.flags = processor == 0 ? kInCpu : 0;
      throttled_.erase(at);
      break;
    }
    case kUvmMapRemote: {  // cause, who is mapped, where the memory is | address | bytes | time | device time
      r.kind = kRemoteMap;
      r.flags = bits(w[0], 8, 8);
      const uint32_t mapped = bits(w[0], 32, 16);
      r.srcId = idOf(mapped);
      r.dstId = idOf(bits(w[0], 48, 16));
      r.address = w[1];
      r.value = w[2];
      r.start = mapped != 0 && w[4] != 0 ? clocks_.fromDevice(r.srcId, w[4]) : clocks_.fromCpu(w[3]);
      break;
    }
    default: return;
  }
  clocks_.report(r);
}

}  // namespace sonde::platform::nvidia
