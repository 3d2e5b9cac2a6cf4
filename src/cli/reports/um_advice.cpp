// SPDX-License-Identifier: Apache-2.0
// Patterns in the records of unified memory, in words. Nothing is advised
// without the numbers that it was concluded from.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/reports/reports.h"
#include "cli/reports/um_analysis.h"

namespace sonde::reports {
namespace {

// Below these a pattern is not worth a word.
constexpr uint64_t kWorthBytes = 65536;                            // that page faults brought
constexpr uint64_t kRoundTrips = 2;                                // times that the same bytes went there and back
constexpr uint64_t kUser = 1, kEviction = 4, kAccessCounters = 5;  // migration causes
constexpr uint64_t kOutOfMemory = 4;                               // remote-map cause

std::string times(uint64_t n) { return n == 1 ? "once" : n == 2 ? "twice" : formatCount(n) + " times"; }
std::string many(uint64_t n, const char* what) {
  return fmt::format("{} {}{}", formatCount(n), what, n == 1 ? "" : "s");
}
std::string ofTime(uint64_t ns) { return formatTime(static_cast<double>(ns), TimeUnit::Auto); }
std::string ofBytes(uint64_t bytes) { return formatBytes(static_cast<double>(bytes)); }

// What happened to one area, in one direction or by one processor.
struct Tally {
  uint64_t transfers = 0, bytes = 0, time = 0;
  std::map<uint64_t, uint64_t> pages;  // page → how often it was moved
  void add(const UnifiedMemory& e) {
    transfers++;
    bytes += e.value;
    time += e.duration();
    for (uint64_t p = e.address / 4096; p < (e.address + e.value + 4095) / 4096; p++) pages[p]++;
  }
  uint64_t distinct() const { return pages.size() * 4096; }
};

class Advisor {
 public:
  Advisor(const Trace& trace, const Options& options) : trace_(trace), kernels_(trace, options.names) {}

  Table table() {
    Table t;
    t.columns = {{"Pattern"},
                 {"Virtual Address", CellKind::Label},
                 {"Size", CellKind::Bytes},
                 {"Moved", CellKind::Bytes},
                 {"Advice"}};
    t.emptyReason = trace_.unifiedMemory.empty()
                        ? "no events of unified memory were recorded (--unified-memory-profiling)"
                        : "no pattern that advice would help was found";
    t.prose = true;
    for (const UmArea& area : umAreas(trace_)) advise(area);
    std::stable_sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.moved > b.moved; });
    for (Found& f : found_)
      t.rows.push_back({std::string(f.pattern), fmt::format("0x{:x}", f.address), f.bytes, f.moved, std::move(f.text)});
    return t;
  }

 private:
  struct Found {
    const char* pattern;
    uint64_t address, bytes, moved;
    std::string text;
  };
  struct Side {  // who faulted, most often first
    uint64_t faults = 0, writes = 0, time = 0;
    std::map<std::string, uint64_t> by;
    std::string most() const {
      const auto it = std::max_element(by.begin(), by.end(), [](auto& a, auto& b) { return a.second < b.second; });
      return it != by.end() ? it->first : std::string();
    }
  };

  std::string codeName(const UnifiedMemory& e) const {
    const std::string function = umFunction(trace_, e.process, e.value), source = umSource(trace_, e.process, e.value);
    if (function.empty()) return umPlace(trace_, e.process, e.value);
    return source.empty() ? function : fmt::format("{} ({})", function, source);
  }
  static std::string mostly(const Side& side) {
    const std::string most = side.most();
    return most.empty() ? "" : fmt::format("{} in {}", side.by.size() > 1 ? ", mostly" : "", most);
  }

  void add(const UmArea& area, const char* pattern, uint64_t moved, std::string text) {
    found_.push_back({pattern, area.address, area.bytes, moved, std::move(text)});
  }

  void advise(const UmArea& area) {
    Tally up, down, evicted, far;
    std::map<uint32_t, uint64_t> upTo;  // bytes by device
    Side cpu, gpu;
    std::set<std::string> contenders;
    uint64_t thrashing = 0, throttled = 0, outOfMemory = 0, cpuWritesLater = 0;
    bool onDevice = false;  // it has been, so that a fault of the CPU is not a first touch
    for (const UnifiedMemory* e : area.events) {
      switch (e->kind) {
        case kUmHtoD:
          onDevice = true;
          if (e->flags == kAccessCounters) far.add(*e);
          if (e->flags == kUser || e->flags == kAccessCounters) break;
          up.add(*e);
          upTo[e->dstId] += e->value;
          break;
        case kUmDtoH:
          if (e->flags == kEviction) evicted.add(*e);
          if (e->flags == kUser || e->flags == kEviction) break;
          down.add(*e);
          break;
        case kUmCpuFault: {
          if (!onDevice) break;
          const bool write = unifiedMemoryFlagsName(e->kind, e->flags) != "Read";
          cpu.faults++;
          cpu.writes += write;
          cpuWritesLater += write;
          cpu.by[codeName(*e)]++;
          break;
        }
        case kUmGpuFault:
          onDevice = true;
          gpu.faults++;
          gpu.writes += unifiedMemoryFlagsName(e->kind, e->flags) != "Read";
          gpu.time += e->duration();
          gpu.by[kernels_.at(e->process, e->srcId, e->start)]++;
          break;
        case kUmThrashing:
          thrashing++;
          contenders.insert(umContenders(*e));
          break;
        case kUmThrottling: throttled += e->duration(); break;
        case kUmRemoteMap:
          if (e->flags == kOutOfMemory) outOfMemory += e->value;
          break;
        default: break;
      }
    }
    const std::string what =
        fmt::format("{} 0x{:x} ({})", area.allocation ? "Allocation" : "Memory at", area.address, ofBytes(area.bytes));
    uint32_t device = 0;
    for (const auto& [d, bytes] : upTo)
      if (bytes > upTo[device]) device = d;

    const bool again = !up.pages.empty() && up.bytes >= kRoundTrips * up.distinct();
    if (again && gpu.writes == 0 && cpuWritesLater == 0 && cpu.faults + gpu.faults > 0) {
      add(area, "read-mostly", up.bytes + down.bytes,
          fmt::format(
              "{}: its pages went to the GPU {} on average, {} in all for {}, although all {} on it after the "
              "first were reads{}. A fault shows only the first access to a page: if nothing writes to it from "
              "then on, cudaMemAdviseSetReadMostly gives each processor a copy, and it is moved once; otherwise "
              "see cudaMemAdviseSetPreferredLocation with cudaMemAdviseSetAccessedBy.",
              what, times(up.bytes / up.distinct()), ofBytes(up.bytes), ofBytes(up.distinct()),
              many(cpu.faults + gpu.faults, "fault"), mostly(cpu)));
    } else if (thrashing != 0 || (again && down.bytes >= kRoundTrips * down.distinct() && !down.pages.empty())) {
      add(area, "ping-pong", up.bytes + down.bytes,
          fmt::format("{}: {} use the same pages in turn: {} to the GPU and {} back for {}{}{}. CPU: {}{}. GPU: {}{}. "
                      "cudaMemAdviseSetPreferredLocation for the CPU with cudaMemAdviseSetAccessedBy for GPU {} keeps "
                      "it in one place, or give each side memory of its own.",
                      what, contenders.empty() ? "CPU and GPU" : fmt::format("{}", fmt::join(contenders, "; ")),
                      ofBytes(up.bytes), ofBytes(down.bytes), ofBytes(std::max(up.distinct(), down.distinct())),
                      thrashing != 0 ? fmt::format(", found to thrash {}", times(thrashing)) : "",
                      throttled != 0 ? fmt::format(", {} held back", ofTime(throttled)) : "", many(cpu.faults, "fault"),
                      mostly(cpu), many(gpu.faults, "fault group"), mostly(gpu), device));
    } else {
      if (up.bytes >= kWorthBytes && gpu.faults != 0)
        add(area, "prefetch to the GPU", up.bytes,
            fmt::format("{}: {} came to GPU {} in {} after {}{}; handling them took {}. "
                        "cudaMemPrefetchAsync of these bytes to GPU {} before the launch moves them without a fault.",
                        what, ofBytes(up.bytes), device, many(up.transfers, "transfer"),
                        many(gpu.faults, "fault group"), mostly(gpu), ofTime(gpu.time), device));
      if (down.bytes >= kWorthBytes && cpu.faults != 0)
        add(area, "prefetch to the CPU", down.bytes,
            fmt::format("{}: {} came back to the CPU in {} after {}{}. cudaMemPrefetchAsync of these bytes to the CPU "
                        "after the kernel moves them without a fault.",
                        what, ofBytes(down.bytes), many(down.transfers, "transfer"), many(cpu.faults, "fault"),
                        mostly(cpu)));
    }
    if (evicted.bytes != 0)
      add(area, "oversubscription", evicted.bytes,
          fmt::format("{}: {} were evicted to make room on the GPU, {} of them different pages. The work needs more "
                      "memory than the GPU has: smaller pieces, or less that is allocated with cudaMalloc, avoid it.",
                      what, ofBytes(evicted.bytes), ofBytes(evicted.distinct())));
    if (outOfMemory != 0)
      add(area, "no room on the GPU", outOfMemory,
          fmt::format("{}: the GPU reaches over to {} in the CPU's memory because it has no room and nothing to evict.",
                      what, ofBytes(outOfMemory)));
    if (far.bytes != 0)
      add(area, "far accesses", far.bytes,
          fmt::format("{}: {} moved to the GPU because it reached over to them often. cudaMemPrefetchAsync before the "
                      "first use, or cudaMemAdviseSetPreferredLocation for the GPU, saves the accesses until then.",
                      what, ofBytes(far.bytes)));
  }

  const Trace& trace_;
  UmKernels kernels_;
  std::vector<Found> found_;
};

}  // namespace

Table umAdvice(const Trace& trace, const Options& options) { return Advisor(trace, options).table(); }

}  // namespace sonde::reports
