// SPDX-License-Identifier: Apache-2.0
// Perfetto protobuf: work on the GPU as render-stage events of a CUDA context
// (the viewer arranges them as device, context, stream), API calls and NVTX
// ranges as slices on the tracks of their threads, and on each launch the ids
// of what it started, which the viewer shows as arrows.
#include <cupti.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cli/exports/exports.h"
#include "cli/exports/kernel_counters.h"
#include "cli/exports/perfetto_counters.h"
#include "cli/exports/perfetto_stream.h"
#include "cli/exports/um_tracks.h"

namespace sonde::exports {
namespace {

namespace pf = perfetto;

enum Stage : uint64_t { kStageKernel = 1, kStageMemcpy, kStageMemset, kStageGraph, kStageCount };

enum ArgName : uint64_t {
  kArgDevice = 1,
  kArgContext,
  kArgStream,
  kArgCorrelation,
  kArgRegisters,
  kArgSharedStatic,
  kArgSharedDynamic,
  kArgThreads,
  kArgLocalMemory,
  kArgBytes,
  kArgThroughput,
  kArgSource,
  kArgDestination,
  kArgValue,
  kArgGraphNode,
  kArgEnd,
};
constexpr const char* kArgNames[] = {"",
                                     "device",
                                     "context",
                                     "stream",
                                     "correlation_id",
                                     "registers_per_thread",
                                     "shared_mem_static",
                                     "shared_mem_dynamic",
                                     "thread_count",
                                     "local_mem_per_thread",
                                     "bytes",
                                     "throughput_bytes_per_second",
                                     "source_memory",
                                     "destination_memory",
                                     "value",
                                     "graph_node_id"};
static_assert(std::size(kArgNames) == kArgEnd);

class PerfettoWriter {
 public:
  PerfettoWriter(const Trace& trace, const Options& options, const Sink& sink)
      : trace_(trace), options_(options), stream_(trace, sink), counted_(trace) {}

  void run() {
    start();
    gpuInfo();
    processes();
    gpuEvents();
    writeActivityCounters(stream_, trace_);
    writeKernelCounters(stream_, trace_, counted_);
    countedLaunches();
    writeEnvironment(stream_, trace_);
    apiCalls();
    ranges();
    unifiedMemory();
    losses();
  }

 private:
  void start() {
    ProtoWriter clock, snapshot, body;
    clock.varint(pf::clock::clockId, pf::clock::kRealtime).varint(pf::clock::timestamp, origin_);
    snapshot.message(pf::clock::clocks, clock).varint(pf::clock::primaryTraceClock, pf::clock::kRealtime);
    body.message(pf::packet::clockSnapshot, snapshot);
    // Everything of a fixed number is interned at once.
    ProtoWriter interned;
    const struct {
      Stage stage;
      const char* name;
      uint64_t category;
    } stages[] = {{kStageKernel, "Kernel", pf::interned::kCategoryCompute},
                  {kStageMemcpy, "Memcpy", pf::interned::kCategoryOther},
                  {kStageMemset, "Memset", pf::interned::kCategoryOther},
                  {kStageGraph, "Graph", pf::interned::kCategoryCompute}};
    for (const auto& s : stages) {
      ProtoWriter entry;
      entry.varint(pf::interned::iid, s.stage)
          .text(pf::interned::name, s.name)
          .varint(pf::interned::specificationCategory, s.category);
      interned.message(pf::interned::gpuSpecifications, entry);
    }
    for (uint64_t i = 1; i < kArgEnd; i++) {
      ProtoWriter entry;
      entry.varint(pf::interned::iid, i).text(pf::interned::name, kArgNames[i]);
      interned.message(pf::interned::computeArgNames, entry);
    }
    body.message(pf::packet::internedData, interned);
    stream_.emit(origin_, body);
  }

  void gpuInfo() {
    if (trace_.devices.empty()) return;
    // Perfetto knows a GPU by its number; each process sees the same ones.
    std::map<uint32_t, const Device*> devices;
    for (const Device& d : trace_.devices) devices.emplace(d.id, &d);
    ProtoWriter info, body;
    for (const auto& [id, d] : devices) {
      ProtoWriter gpu;
      const std::string& name = trace_.text(d->name);
      gpu.text(pf::gpu::name, name)
          .text(pf::gpu::vendor, name.compare(0, 6, "NVIDIA") == 0 ? "NVIDIA" : "Sonde")
          .text(pf::gpu::model, name)
          .text(pf::gpu::architecture, fmt::format("compute capability {}.{}", d->ccMajor, d->ccMinor))
          .text(pf::gpu::uuid, {reinterpret_cast<const char*>(d->uuid), sizeof d->uuid});
      const std::pair<const char*, std::string> extra[] = {
          {"multiprocessors", fmt::format("{}", d->multiprocessors)},
          {"core_clock_khz", fmt::format("{}", d->coreClockKHz)},
          {"memory_bytes", fmt::format("{}", d->memoryBytes)},
          {"l2_bytes", fmt::format("{}", d->l2Bytes)},
          {"memory_bandwidth_kb_per_second", fmt::format("{}", d->memoryBandwidthKBs)}};
      for (const auto& [key, value] : extra) {
        ProtoWriter pair;
        pair.text(pf::gpu::key, key).text(pf::gpu::value, value);
        gpu.message(pf::gpu::extraInfo, pair);
      }
      info.message(pf::gpu::gpus, gpu);
    }
    body.message(pf::packet::gpuInfo, info);
    stream_.emit(origin_, body);
  }

  void processes() {
    for (uint32_t i = 0; i < trace_.processes.size(); i++) {
      const Process& p = trace_.processes[i];
      ProtoWriter process, track;
      process.varint(pf::track::processPid, p.pid);
      for (const std::string& a : p.arguments) process.text(pf::track::processCmdline, a);
      const size_t slash = p.executable.rfind('/');
      process.text(pf::track::processName, slash == std::string::npos ? p.executable : p.executable.substr(slash + 1));
      track.varint(pf::track::uuid, PerfettoStream::processTrack(i)).message(pf::track::process, process);
      stream_.describe(track);
    }
  }

  uint64_t contextIid(const GpuEvent& e) const {
    // With one process the number that the viewer shows is the context's own.
    const uint64_t id = e.context != 0 ? e.context : 0xffff;
    return trace_.processes.size() > 1 ? (uint64_t{e.process} + 1) << 16 | id : id;
  }

  static void argument(ProtoWriter& launch, ArgName name, uint64_t value) {
    ProtoWriter arg;
    arg.varint(pf::stage::argNameIid, name).varint(pf::stage::argUint, value);
    launch.message(pf::stage::args, arg);
  }
  static void argument(ProtoWriter& launch, ArgName name, std::string_view value) {
    if (value.empty()) return;
    ProtoWriter arg;
    arg.varint(pf::stage::argNameIid, name).text(pf::stage::argString, value);
    launch.message(pf::stage::args, arg);
  }

  template <typename V>
  static void dimensions(ProtoWriter& launch, pf::Field field, const V& v) {
    ProtoWriter d;
    d.varint(pf::stage::x, static_cast<uint32_t>(v[0]))
        .varint(pf::stage::y, static_cast<uint32_t>(v[1]))
        .varint(pf::stage::z, static_cast<uint32_t>(v[2]));
    launch.message(field, d);
  }

  void gpuEvents() {
    uint64_t eventId = 0;
    for (const GpuEvent& e : trace_.gpuEvents) {
      if (!e.finished) continue;
      eventId++;
      submissions_[{e.process, e.correlation}].push_back(eventId);
      ProtoWriter interned, launch, stage, body;
      const uint64_t context = contextIid(e);
      if (contexts_.insert({context, true}).second) {
        ProtoWriter entry;
        entry.varint(pf::interned::iid, context)
            .varint(pf::interned::contextPid, trace_.processes[e.process].pid)
            .varint(pf::interned::contextApi, pf::event::kApiCuda);
        interned.message(pf::interned::graphicsContexts, entry);
      }
      const auto [queue, newQueue] =
          queues_.try_emplace({e.process, e.device, e.context, e.stream}, kStageCount + queues_.size());
      if (newQueue) {
        ProtoWriter entry;
        entry.varint(pf::interned::iid, queue->second)
            .text(pf::interned::name, fmt::format("Stream {}", e.stream))
            .text(pf::interned::specificationDescription,
                  fmt::format("device {}, context {}, stream {}", e.device, e.context, e.stream));
        interned.message(pf::interned::gpuSpecifications, entry);
      }
      const std::string name = reports::gpuEventName(trace_, e, options_.names);
      const auto [nameIid, newName] = names_.try_emplace(name, names_.size() + 1);
      if (newName) {
        ProtoWriter entry;
        entry.varint(pf::interned::iid, nameIid->second).text(pf::interned::name, name);
        interned.message(pf::interned::eventNames, entry);
      }
      argument(launch, kArgDevice, e.device);
      argument(launch, kArgContext, e.context);
      argument(launch, kArgStream, e.stream);
      argument(launch, kArgCorrelation, e.correlation);
      Stage kind = kStageGraph;
      if (e.work == GpuWork::Kernel) {
        kind = kStageKernel;
        const auto [kernel, newKernel] = kernels_.try_emplace(e.name, kernels_.size() + 1);
        if (newKernel) {
          ProtoWriter entry;
          entry.varint(pf::interned::iid, kernel->second)
              .text(pf::interned::name, trace_.text(e.name))
              .text(pf::interned::kernelDemangledName, reports::demangle(trace_.text(e.name)));
          interned.message(pf::interned::computeKernels, entry);
        }
        stage.varint(pf::stage::kernelIid, kernel->second);
        dimensions(launch, pf::stage::gridSize, e.grid);
        dimensions(launch, pf::stage::workgroupSize, e.block);
        argument(launch, kArgRegisters, e.registers);
        argument(launch, kArgSharedStatic, e.staticShared);
        argument(launch, kArgSharedDynamic, e.dynamicShared);
        argument(launch, kArgThreads,
                 static_cast<uint64_t>(e.grid[0]) * static_cast<uint64_t>(e.grid[1]) *
                     static_cast<uint64_t>(e.grid[2]) * static_cast<uint64_t>(e.block[0]) *
                     static_cast<uint64_t>(e.block[1]) * static_cast<uint64_t>(e.block[2]));
        argument(launch, kArgLocalMemory, e.localPerThread);
        if (e.graphNodeId != 0) argument(launch, kArgGraphNode, e.graphNodeId);
        if (const CountedLaunch* l = counted_.of(e)) counterArguments(*l, launch, interned);
      } else if (e.work != GpuWork::Graph) {
        kind = e.work == GpuWork::Memcpy ? kStageMemcpy : kStageMemset;
        argument(launch, kArgBytes, e.bytes);
        if (e.duration() != 0)
          argument(launch, kArgThroughput,
                   static_cast<uint64_t>(
                       std::min(1e18, static_cast<double>(e.bytes) * 1e9 / static_cast<double>(e.duration()))));
        argument(launch, kArgSource, reports::memoryKindName(e.srcKind));
        argument(launch, kArgDestination, reports::memoryKindName(e.dstKind));
        if (kind == kStageMemset) argument(launch, kArgValue, e.setValue);
      }
      stage.varint(pf::stage::eventId, eventId)
          .varint(pf::stage::duration, e.duration())
          .varint(pf::stage::context, context)
          .integer(pf::stage::gpuId, e.device)
          .varint(pf::stage::hwQueueIid, queue->second)
          .varint(pf::stage::stageIid, kind)
          .varint(pf::stage::nameIid, nameIid->second)
          .message(pf::stage::launch, launch);
      if (!interned.empty()) body.message(pf::packet::internedData, interned);
      body.message(pf::packet::gpuRenderStageEvent, stage);
      stream_.emit(e.start, body);
    }
  }

  // Values of events and metrics among the arguments of a kernel.
  void counterArguments(const CountedLaunch& l, ProtoWriter& launch, ProtoWriter& interned) {
    for (const CounterValue& v : l.values) {
      const auto [iid, isNew] = counterArgs_.try_emplace(counterLabel(trace_, v), kArgEnd + counterArgs_.size());
      if (isNew) {
        ProtoWriter entry;
        entry.varint(pf::interned::iid, iid->second).text(pf::interned::name, iid->first);
        interned.message(pf::interned::computeArgNames, entry);
      }
      ProtoWriter arg;
      arg.varint(pf::stage::argNameIid, iid->second);
      if (isWhole(v))
        arg.varint(pf::stage::argUint, v.count);
      else
        arg.real(pf::stage::argDouble, v.number);
      launch.message(pf::stage::args, arg);
    }
  }
  bool isWhole(const CounterValue& v) const {
    if (v.kind == CounterKind::Event) return true;
    const auto info = trace_.counterInfos.find({v.kind, v.name});
    return info != trace_.counterInfos.end() && info->second.valueKind == CUPTI_METRIC_VALUE_KIND_UINT64;
  }

  // Slices for launches that have no record of a kernel: those of graphs.
  void countedLaunches() {
    std::map<uint32_t, std::vector<const CountedLaunch*>> byProcess;
    for (const CountedLaunch* l : counted_.withoutKernel()) byProcess[l->process].push_back(l);
    for (auto& [process, list] : byProcess)
      stream_.nestedSlices(stream_.childTrack(PerfettoStream::processTrack(process), "Counted launches"), list,
                           [&](const CountedLaunch& l) {
                             ProtoWriter event;
                             event.text(pf::event::categories, "counted_launch")
                                 .text(pf::event::name, reports::kernelName(trace_.text(l.kernel), options_.names));
                             annotate(event, "device", uint64_t{l.device});
                             annotate(event, "correlation", uint64_t{l.correlation});
                             for (const CounterValue& v : l.values) {
                               if (isWhole(v))
                                 annotate(event, counterLabel(trace_, v).c_str(), v.count);
                               else
                                 annotate(event, counterLabel(trace_, v).c_str(), fmt::format("{}", v.number));
                             }
                             return event;
                           });
  }

  void apiCalls() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<const ApiCall*>> byThread;
    for (const ApiCall& call : trace_.apiCalls) byThread[{call.process, call.threadId}].push_back(&call);
    for (auto& [thread, calls] : byThread) {
      stream_.nestedSlices(stream_.threadTrack(thread.first, thread.second), calls, [&](const ApiCall& call) {
        ProtoWriter event;
        event.text(pf::event::categories, call.runtime ? "cuda_runtime" : "cuda_driver")
            .text(pf::event::name, reports::apiName(trace_.text(call.name)))
            .varint(pf::event::gpuApi, pf::event::kApiCuda);
        annotate(event, "correlation_id", call.correlation);
        if (call.returnValue != 0) annotate(event, "result", call.returnValue);
        if (const auto work = submissions_.find({call.process, call.correlation});
            !call.nested && work != submissions_.end()) {
          ProtoWriter correlation;
          for (const uint64_t id : work->second) correlation.varint(pf::event::correlationSubmissions, id);
          event.message(pf::event::gpuCorrelation, correlation);
        }
        return event;
      });
    }
  }

  void ranges() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<const NvtxRange*>> byThread;
    struct Lane {
      uint64_t track, until;
    };
    std::map<uint32_t, std::vector<Lane>> lanes;  // of ranges that need not nest
    const auto describeRange = [&](const NvtxRange& r) {
      ProtoWriter event;
      event.text(pf::event::categories, "nvtx").text(pf::event::name, reports::rangeName(trace_, r));
      if (r.color) annotate(event, "color_argb", *r.color);
      if (r.category != 0) annotate(event, "category", r.category);
      return event;
    };
    const auto inLane = [&](const NvtxRange& r) {
      auto& all = lanes[r.process];
      auto lane = std::find_if(all.begin(), all.end(), [&](const Lane& l) { return l.until <= r.start; });
      if (lane == all.end()) {
        all.push_back({stream_.childTrack(PerfettoStream::processTrack(r.process), "NVTX start/end ranges"), 0});
        lane = std::prev(all.end());
      }
      stream_.slice(pf::event::kSliceBegin, r.start, lane->track, describeRange(r));
      stream_.slice(pf::event::kSliceEnd, r.end, lane->track, {});
      lane->until = r.end;
    };
    // The records do not say which ranges are of the start/end sort. One that
    // crosses another of its thread must be, and cannot lie on a track of slices.
    std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> open;
    for (const NvtxRange& r : trace_.ranges) {
      auto& ends = open[{r.process, r.threadId}];
      while (!ends.empty() && ends.back() <= r.start) ends.pop_back();
      const bool crosses = !ends.empty() && r.end > ends.back();
      if (r.style == RangeStyle::StartEnd || (crosses && r.closed)) {
        if (r.closed) inLane(r);
        continue;
      }
      byThread[{r.process, r.threadId}].push_back(&r);
      if (r.style == RangeStyle::PushPop && r.closed) ends.push_back(r.end);
    }
    for (auto& [thread, all] : byThread) {
      const uint64_t track = stream_.childTrack(stream_.threadTrack(thread.first, thread.second), "NVTX");
      std::vector<const NvtxRange*> closed;
      for (const NvtxRange* r : all) {
        if (r->style == RangeStyle::Mark) {
          stream_.slice(pf::event::kInstant, r->start, track, describeRange(*r));
        } else if (r->closed) {
          closed.push_back(r);
        }
      }
      stream_.nestedSlices(track, closed, describeRange);
    }
  }

  void unifiedMemory() {
    for (const UmTrack& t : umTracks(trace_)) {
      const uint64_t track = stream_.childTrack(PerfettoStream::processTrack(t.process), t.name);
      for (const UmSlice& s : t.slices) {
        ProtoWriter event;
        event.text(pf::event::categories, "unified_memory").text(pf::event::name, s.name);
        for (const auto& [key, value] : s.numbers) annotate(event, key, value);
        for (const auto& [key, value] : s.texts) annotate(event, key, value);
        stream_.slice(s.end != 0 ? pf::event::kSliceBegin : pf::event::kInstant, s.start, track, event);
        if (s.end != 0) stream_.slice(pf::event::kSliceEnd, s.end, track, {});
      }
    }
    for (const UmLevel& l : umLevels(trace_)) {
      ProtoWriter unit, descriptor;
      unit.varint(pf::track::counterUnit, pf::track::kUnitBytes);
      const uint64_t track = stream_.newTrack();
      descriptor.varint(pf::track::uuid, track)
          .varint(pf::track::parentUuid, PerfettoStream::processTrack(l.process))
          .text(pf::track::name, fmt::format("Unified memory: migrated to GPU {}", l.device))
          .message(pf::track::counter, unit);
      stream_.describe(descriptor);
      for (const auto& [time, bytes] : l.values) {
        ProtoWriter event;
        event.integer(pf::event::counterValue, bytes);
        stream_.slice(pf::event::kCounter, time, track, event);
      }
    }
  }

  // A loss stands in the trace itself, where nobody can overlook it.
  void losses() {
    for (uint32_t i = 0; i < trace_.processes.size(); i++) {
      const Process& p = trace_.processes[i];
      if (p.dropped == 0 && p.damagedBytes == 0) continue;
      ProtoWriter event;
      event.text(pf::event::categories, "sonde")
          .text(pf::event::name, p.dropped != 0 ? fmt::format("{} records lost", p.dropped)
                                                : fmt::format("{} bytes of the trace unreadable", p.damagedBytes));
      stream_.slice(pf::event::kInstant, origin_, PerfettoStream::processTrack(i), event);
    }
  }

  const Trace& trace_;
  const Options& options_;
  PerfettoStream stream_;
  const uint64_t origin_ = trace_.origin();
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint64_t>> submissions_;  // (process, correlation) → event ids
  std::unordered_map<uint64_t, bool> contexts_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>, uint64_t> queues_;
  std::unordered_map<std::string, uint64_t> names_;
  std::unordered_map<StringId, uint64_t> kernels_;
  const CountedLaunches counted_;
  std::unordered_map<std::string, uint64_t> counterArgs_;
};

}  // namespace

void writePerfetto(const Trace& trace, const Options& options, const Sink& sink) {
  PerfettoWriter(trace, options, sink).run();
}

}  // namespace sonde::exports
