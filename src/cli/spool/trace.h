// SPDX-License-Identifier: Apache-2.0
// A trace in memory: what the reports and the exports work on. Plain values,
// independent of the record layouts. Times are nanoseconds since the epoch.
#ifndef SONDE_CLI_SPOOL_TRACE_H_
#define SONDE_CLI_SPOOL_TRACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/spool/format.h"

namespace sonde {

using StringId = uint32_t;  // index into Trace::strings; 0 is the empty text

// Every event says which process it comes from (index into Trace::processes)
// and in which place it stood in that process's spool. Events are kept in the
// order (start, process, record).
struct EventBase {
  uint32_t process = 0;
  uint64_t record = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t duration() const { return end > start ? end - start : 0; }
};

struct ApiCall : EventBase {
  bool runtime = false;  // false: driver
  bool nested = false;   // a driver call made by a runtime call
  uint32_t cbid = 0;
  uint32_t threadId = 0;
  uint32_t correlation = 0;
  uint32_t returnValue = 0;
  StringId name = 0;  // as the library names it: "cudaMalloc_v3020"
};

enum class GpuWork : uint8_t { Kernel, Memcpy, Memset, Graph };

// A kernel, copy, set or whole graph on the device.
struct GpuEvent : EventBase {
  GpuWork work = GpuWork::Kernel;
  uint32_t device = 0, context = 0, stream = 0, correlation = 0;
  uint32_t graphId = 0;
  uint64_t graphNodeId = 0;
  uint32_t channel = 0;
  bool finished = true;  // false: delivered before it ended; its times mean nothing
  // Kernel
  bool fromDevice = false;  // a kernel launched it; `correlation` is of the host's launch above
  StringId name = 0;        // mangled
  int32_t grid[3] = {}, block[3] = {};
  uint32_t cluster[3] = {};
  uint32_t registers = 0;
  uint32_t staticShared = 0, dynamicShared = 0, sharedExecuted = 0;
  uint32_t localPerThread = 0;
  uint64_t localTotal = 0;
  uint64_t queued = 0, submitted = 0;
  // Copy and set
  uint64_t bytes = 0;
  uint8_t copyKind = 0, srcKind = 0, dstKind = 0;  // CUpti_ActivityMemcpyKind, …MemoryKind
  bool async = false;
  uint32_t setValue = 0;
  uint32_t srcDevice = 0, dstDevice = 0;  // peer copies
};

// The records do not tell a push/pop range from a start/end range whose ends
// lie in one thread; PushPop stands for both.
enum class RangeStyle : uint8_t { PushPop, StartEnd, Mark };

struct NvtxRange : EventBase {
  RangeStyle style = RangeStyle::PushPop;
  uint32_t threadId = 0;
  uint32_t id = 0;
  StringId name = 0, domain = 0;
  std::optional<uint32_t> color;  // ARGB
  uint32_t category = 0;
  bool closed = true;  // false: the range was still open when the records ended
};

struct Overhead : EventBase {
  uint32_t kind = 0;
  uint32_t threadId = 0;
  uint32_t correlation = 0;
};

struct Synchronization : EventBase {
  uint32_t type = 0, context = 0, stream = 0, eventId = 0, correlation = 0;
};

struct MemoryOperation : EventBase {  // start = end = the moment
  uint32_t operation = 0;             // CUpti_ActivityMemoryOperationType
  uint32_t kind = 0;
  uint32_t device = 0, context = 0, stream = 0, correlation = 0;
  uint64_t address = 0, bytes = 0;
};

struct UnifiedMemory : EventBase {
  uint32_t kind = 0;  // CUpti_ActivityUnifiedMemoryCounterKind
  uint64_t value = 0, address = 0;
  uint32_t srcId = 0, dstId = 0, stream = 0;
  uint32_t flags = 0;  // access type, cause or CUpti_ActivityFlag, by kind
  uint64_t processors[5] = {};
};

// Where an instruction lies.
struct CodeLocation {
  StringId module = 0;  // path
  uint64_t offset = 0;  // in it
  StringId function = 0, file = 0;
  uint32_t line = 0;  // 0: not known
};

// Clocks, temperature, power or fan of a device at one moment (start = end).
struct EnvironmentSample : EventBase {
  uint32_t device = 0;
  uint32_t kind = 0;                             // CUpti_ActivityEnvironmentKind: which fields hold
  uint32_t smClockMHz = 0, memoryClockMHz = 0;   // SPEED
  uint32_t throttleReasons = 0;                  // SPEED
  uint32_t temperatureC = 0;                     // TEMPERATURE
  uint32_t powerMilliwatts = 0, powerLimit = 0;  // POWER
  uint32_t fanPercent = 0;                       // COOLING
};

enum class CounterKind : uint8_t { Event, Metric };

// What an event or metric is, as the library that counted describes it.
struct CounterInfo {
  CounterKind kind = CounterKind::Event;
  uint32_t valueKind = 1;  // CUpti_MetricValueKind; events are counts (1)
  StringId description = 0, domain = 0;
};

struct CounterValue {
  StringId name = 0;
  CounterKind kind = CounterKind::Event;
  uint32_t instance = spool::kAllInstances;
  uint64_t count = 0;  // events, and metrics that are whole numbers
  double number = 0;   // metrics of the other kinds
};

// One launch of a kernel whose events were counted.
struct CountedLaunch : EventBase {
  uint32_t device = 0, context = 0, correlation = 0;
  StringId kernel = 0;  // mangled
  std::vector<CounterValue> values;
};

// One instruction of a function, summed over all launches of a process.
struct InstructionCounts {
  uint32_t process = 0;
  uint32_t functionId = 0, pc = 0;
  StringId function = 0;  // mangled
  StringId file = 0;      // 0: not known
  uint32_t line = 0;
  uint32_t locator = 0;           // while it is read: the id of file and line
  uint32_t instructionClass = 0;  // CUpti_ActivityInstructionClass; 0: not recorded
  uint64_t executed = 0, threads = 0, notPredicatedOff = 0;
  uint64_t branches = 0, diverged = 0, branchThreads = 0;
  struct Memory {
    uint64_t requests = 0, threads = 0, transactions = 0, ideal = 0;
    bool load = false;
    uint32_t bytes = 0;  // of one thread
  } global, shared;
};

struct Device {
  uint32_t process = 0, id = 0;
  StringId name = 0;
  uint32_t ccMajor = 0, ccMinor = 0;
  uint64_t memoryBytes = 0, memoryBandwidthKBs = 0;
  uint32_t coreClockKHz = 0, multiprocessors = 0, l2Bytes = 0, warpsPerMultiprocessor = 0;
  uint32_t warpSize = 0, maxThreadsPerBlock = 0, sharedPerMultiprocessor = 0;
  unsigned char uuid[16] = {};
};

struct Context {
  uint32_t process = 0, id = 0, device = 0, nullStream = 0;
};

struct Process {
  uint32_t pid = 0, parentPid = 0;
  std::string executable, workingDirectory, host, cuptiPath;
  std::vector<std::string> arguments;
  uint32_t cuptiVersion = 0;
  uint64_t startTime = 0;  // of the collection
  std::optional<spool::EndBlock> end;
  uint64_t records = 0;                  // read
  uint64_t dropped = 0;                  // lost by the library or for want of a buffer
  std::map<uint32_t, uint64_t> skipped;  // kind → records that the collector does not keep
  std::vector<std::string> notes;        // what the collector could not do
  uint32_t passes = 0;                   // that the counters need; 0: nothing was counted
  uint64_t damagedBytes = 0;             // of its spool, that could not be read
  std::map<uint32_t, StringId> threadNames;
};

struct Trace {
  std::vector<std::string> strings{std::string()};
  std::vector<Process> processes;
  std::vector<ApiCall> apiCalls;
  std::vector<GpuEvent> gpuEvents;
  std::vector<NvtxRange> ranges;
  std::vector<Overhead> overheads;
  std::vector<Synchronization> synchronizations;
  std::vector<MemoryOperation> memoryOperations;
  std::vector<UnifiedMemory> unifiedMemory;
  std::map<std::pair<uint32_t, uint64_t>, CodeLocation> locations;  // by process and program counter
  std::vector<EnvironmentSample> environment;
  std::vector<CountedLaunch> launches;
  std::vector<InstructionCounts> instructions;
  std::map<std::pair<uint32_t, StringId>, StringId> moduleTexts;  // (process, "module_3.ptx") → PTX
  std::map<std::pair<CounterKind, StringId>, CounterInfo> counterInfos;
  std::vector<std::pair<CounterKind, StringId>> shownCounters;  // those that were asked for, in that order
  std::vector<Device> devices;
  std::vector<Context> contexts;

  StringId intern(std::string text);
  const std::string& text(StringId id) const { return strings[id < strings.size() ? id : 0]; }
  uint64_t records() const;
  uint64_t dropped() const;
  uint64_t damagedBytes() const;
  uint64_t unfinished() const;  // kernels and copies without an end
  // The earliest start, 0 for an empty trace.
  uint64_t origin() const;
  // Sorts every list, pairs nested driver calls with runtime calls. Called once after reading.
  void finish();

 private:
  std::unordered_map<std::string, StringId> index_;
};

}  // namespace sonde

#endif  // SONDE_CLI_SPOOL_TRACE_H_
