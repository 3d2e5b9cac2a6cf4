// SPDX-License-Identifier: Apache-2.0
//
// What the kernel module's queue of unified-memory events says, as records.
// The layout of the entries (version 2, 72 bytes) is a fact of the module's
// interface; see docs/ARCHITECTURE.md, "Unified memory on a card".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

// Numbers of event types; also the bits of the mask that switches them on.
enum UvmEventType : uint8_t {
  kUvmCpuFault = 1,
  kUvmMigration = 2,
  kUvmGpuFault = 3,
  kUvmGpuFaultReplay = 4,
  kUvmThrashing = 10,
  kUvmThrottlingStart = 11,
  kUvmThrottlingEnd = 12,
  kUvmMapRemote = 13,
};

struct UvmEntry {
  uint64_t words[9];
};
static_assert(sizeof(UvmEntry) == 72);

// The events that some kinds of counters need: bit k of `kinds` stands for
// CUpti_ActivityUnifiedMemoryCounterKind k.
uint64_t uvmEventsFor(uint32_t kinds);

// Turns entries into records, in order. Not for several threads at once.
class UvmDecoder {
 public:
  struct Clocks {
    std::function<uint64_t(uint64_t)> fromCpu;               // CLOCK_MONOTONIC_RAW to host time
    std::function<uint64_t(uint32_t, uint64_t)> fromDevice;  // a device and its timer to host time
    std::function<uint32_t(uint32_t processor)> deviceOf;    // index in the module (1 …) to ordinal
    std::function<void(const SondeUnifiedMemory&)> report;
  };
  explicit UvmDecoder(Clocks clocks) : clocks_(std::move(clocks)) {}
  void decode(const UvmEntry& entry);
  void forget();  // faults and throttlings that are still open

 private:
  struct Batch {
    uint64_t address, start, count;
    uint32_t access;
  };
  uint32_t idOf(uint32_t processor) const;
  Clocks clocks_;
  std::map<std::pair<uint32_t, uint32_t>, Batch> batches_;       // by processor and batch
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> throttled_;  // by processor and address: since when
};

}  // namespace sonde::platform::nvidia
