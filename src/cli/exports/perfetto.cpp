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
#include "cli/exports/perfetto_fields.h"
#include "cli/exports/proto_writer.h"
#include "cli/exports/um_tracks.h"

namespace sonde::exports {
namespace {

namespace pf = perfetto;

enum Stage : uint64_t { kStageKernel = 1, kStageMemcpy, kStageMemset, kStageGraph, kStageCount };
enum CounterId : uint32_t {
  kCounterActiveKernels = 1,
  kCounterCopyThroughput,
  kCounterSmClock,
  kCounterMemoryClock,
  kCounterTemperature,
  kCounterPower,
  kCounterFan
};

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
      : trace_(trace), options_(options), sink_(sink), counted_(trace) {}

  void run() {
    start();
    gpuInfo();
    processes();
    gpuEvents();
    counters();
    kernelCounters();
    environment();
    apiCalls();
    ranges();
    unifiedMemory();
    losses();
  }

 private:
  void emit(uint64_t time, ProtoWriter& body) {
    body.varint(pf::packet::timestamp, time)
        .varint(pf::packet::timestampClockId, pf::clock::kRealtime)
        .varint(pf::packet::sequenceId, 1)
        .varint(pf::packet::sequenceFlags,
                first_ ? pf::packet::kIncrementalStateCleared | pf::packet::kNeedsIncrementalState
                       : pf::packet::kNeedsIncrementalState);
    first_ = false;
    ProtoWriter file;
    file.message(pf::trace::packet, body);
    sink_(file.bytes());
  }

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
    emit(origin_, body);
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
    emit(origin_, body);
  }

  static uint64_t processTrack(uint32_t process) { return 0x100000000ull + process; }

  void describe(const ProtoWriter& descriptor) {
    ProtoWriter body;
    body.message(pf::packet::trackDescriptor, descriptor);
    emit(origin_, body);
  }

  void processes() {
    for (uint32_t i = 0; i < trace_.processes.size(); i++) {
      const Process& p = trace_.processes[i];
      ProtoWriter process, track;
      process.varint(pf::track::processPid, p.pid);
      for (const std::string& a : p.arguments) process.text(pf::track::processCmdline, a);
      const size_t slash = p.executable.rfind('/');
      process.text(pf::track::processName, slash == std::string::npos ? p.executable : p.executable.substr(slash + 1));
      track.varint(pf::track::uuid, processTrack(i)).message(pf::track::process, process);
      describe(track);
    }
  }

  // Describes the track of a thread when it is first needed.
  uint64_t threadTrack(uint32_t process, uint32_t thread) {
    const auto [it, isNew] = threadTracks_.try_emplace({process, thread}, nextTrack_);
    if (!isNew) return it->second;
    const uint64_t uuid = nextTrack_++;
    const Process& p = trace_.processes[process];
    ProtoWriter descriptor, track;
    descriptor.varint(pf::track::threadPid, p.pid).varint(pf::track::threadTid, thread);
    if (const auto name = p.threadNames.find(thread); name != p.threadNames.end())
      descriptor.text(pf::track::threadName, trace_.text(name->second));
    track.varint(pf::track::uuid, uuid)
        .varint(pf::track::parentUuid, processTrack(process))
        .message(pf::track::thread, descriptor);
    describe(track);
    return uuid;
  }

  uint64_t childTrack(uint64_t parent, const std::string& name) {
    const uint64_t uuid = nextTrack_++;
    ProtoWriter track;
    track.varint(pf::track::uuid, uuid).varint(pf::track::parentUuid, parent).text(pf::track::name, name);
    describe(track);
    return uuid;
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
      emit(e.start, body);
    }
  }

  // How many kernels run, and how fast the copies under way go, for each device.
  void counters() {
    struct Change {
      uint64_t time;
      int kernels;
      double throughput;
    };
    std::map<uint32_t, std::vector<Change>> byDevice;
    for (const GpuEvent& e : trace_.gpuEvents) {
      if (!e.finished || e.duration() == 0 || e.work == GpuWork::Graph) continue;
      const bool kernel = e.work == GpuWork::Kernel;
      const double rate = kernel ? 0 : static_cast<double>(e.bytes) * 1e9 / static_cast<double>(e.duration());
      byDevice[e.device].push_back({e.start, kernel ? 1 : 0, rate});
      byDevice[e.device].push_back({e.end, kernel ? -1 : 0, -rate});
    }
    uint64_t iid = 0;
    for (auto& [device, changes] : byDevice) {
      std::stable_sort(changes.begin(), changes.end(),
                       [](const Change& a, const Change& b) { return a.time < b.time; });
      iid++;
      int64_t kernels = 0;
      int copies = 0;
      double throughput = 0;
      for (size_t i = 0; i < changes.size();) {
        const uint64_t time = changes[i].time;
        for (; i < changes.size() && changes[i].time == time; i++) {
          kernels += changes[i].kernels;
          throughput += changes[i].throughput;
          if (changes[i].kernels == 0) copies += changes[i].throughput > 0 ? 1 : changes[i].throughput < 0 ? -1 : 0;
        }
        if (copies == 0) throughput = 0;  // no rounding left over
        ProtoWriter first, second, event, body;
        first.varint(pf::counter::counterId, kCounterActiveKernels).integer(pf::counter::intValue, kernels);
        second.varint(pf::counter::counterId, kCounterCopyThroughput).real(pf::counter::doubleValue, throughput);
        event.message(pf::counter::counters, first).message(pf::counter::counters, second);
        event.integer(pf::counter::gpuId, device).varint(pf::counter::descriptorIid, iid);
        if (time == changes.front().time) body.message(pf::packet::internedData, counterDescription(iid, device));
        body.message(pf::packet::gpuCounterEvent, event);
        emit(time, body);
      }
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

  // A counter track for each event and metric of each device, and slices for
  // launches that have no record of a kernel: those of graphs.
  void kernelCounters() {
    constexpr uint64_t kFirstIid = 2 << 16;
    uint64_t iid = kFirstIid;
    for (const CounterTrack& track : counterTracks(trace_, counted_)) {
      iid++;
      for (const auto& [time, value] : track.values) {
        ProtoWriter counter, event, body;
        counter.varint(pf::counter::counterId, iid).real(pf::counter::doubleValue, value);
        event.message(pf::counter::counters, counter)
            .integer(pf::counter::gpuId, track.device)
            .varint(pf::counter::descriptorIid, iid);
        if (time == track.values.front().first) {
          ProtoWriter spec, descriptor, entry, interned;
          spec.varint(pf::counter::specId, iid)
              .text(pf::counter::specName, track.name)
              .text(pf::counter::specDescription, track.description)
              .varint(pf::counter::specSelectByDefault, 1)
              .varint(pf::counter::specGroups, pf::counter::kGroupCompute)
              .varint(pf::counter::specDirection, pf::counter::kForwards);
          descriptor.message(pf::counter::specs, spec);
          entry.varint(pf::interned::iid, iid)
              .message(pf::interned::counterDescriptor, descriptor)
              .integer(pf::interned::counterGpuId, track.device);
          interned.message(pf::interned::gpuCounterDescriptors, entry);
          body.message(pf::packet::internedData, interned);
        }
        body.message(pf::packet::gpuCounterEvent, event);
        emit(time, body);
      }
    }
    std::map<uint32_t, std::vector<const CountedLaunch*>> byProcess;
    for (const CountedLaunch* l : counted_.withoutKernel()) byProcess[l->process].push_back(l);
    for (auto& [process, list] : byProcess)
      nestedSlices(childTrack(processTrack(process), "Counted launches"), list, [&](const CountedLaunch& l) {
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

  static ProtoWriter counterDescription(uint64_t iid, uint32_t device) {
    ProtoWriter kernels, copies, descriptor, entry, interned;
    kernels.varint(pf::counter::specId, kCounterActiveKernels)
        .text(pf::counter::specName, "Active kernels")
        .text(pf::counter::specDescription, "Kernels that run at this moment")
        .varint(pf::counter::specSelectByDefault, 1)
        .varint(pf::counter::specGroups, pf::counter::kGroupCompute)
        .varint(pf::counter::specDirection, pf::counter::kForwards);
    copies.varint(pf::counter::specId, kCounterCopyThroughput)
        .text(pf::counter::specName, "Copy throughput")
        .text(pf::counter::specDescription, "Bytes per second of the copies and sets under way")
        .varint(pf::counter::specNumeratorUnits, pf::counter::kUnitByte)
        .varint(pf::counter::specDenominatorUnits, pf::counter::kUnitSecond)
        .varint(pf::counter::specSelectByDefault, 1)
        .varint(pf::counter::specGroups, pf::counter::kGroupMemory)
        .varint(pf::counter::specDirection, pf::counter::kForwards);
    descriptor.message(pf::counter::specs, kernels).message(pf::counter::specs, copies);
    entry.varint(pf::interned::iid, iid)
        .message(pf::interned::counterDescriptor, descriptor)
        .integer(pf::interned::counterGpuId, device);
    interned.message(pf::interned::gpuCounterDescriptors, entry);
    return interned;
  }

  // Clocks, temperature, power and fan of each device.
  void environment() {
    struct Track {
      uint32_t id;
      const char *name, *description;
    };
    constexpr Track kTracks[] = {{kCounterSmClock, "SM clock (MHz)", "Clock of the multiprocessors"},
                                 {kCounterMemoryClock, "Memory clock (MHz)", "Clock of the memory"},
                                 {kCounterTemperature, "Temperature (C)", "Temperature of the device"},
                                 {kCounterPower, "Power (W)", "Power that the device draws"},
                                 {kCounterFan, "Fan (%)", "Speed of the fan"}};
    constexpr uint64_t kFirstIid = 1 << 16;  // counters() has those below
    std::map<uint32_t, bool> described;
    for (const EnvironmentSample& e : trace_.environment) {
      std::vector<std::pair<uint32_t, double>> values;
      switch (e.kind) {
        case CUPTI_ACTIVITY_ENVIRONMENT_SPEED:
          values = {{kCounterSmClock, e.smClockMHz}, {kCounterMemoryClock, e.memoryClockMHz}};
          break;
        case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE: values = {{kCounterTemperature, e.temperatureC}}; break;
        case CUPTI_ACTIVITY_ENVIRONMENT_POWER: values = {{kCounterPower, e.powerMilliwatts / 1000.0}}; break;
        default: values = {{kCounterFan, e.fanPercent}}; break;
      }
      ProtoWriter event, body;
      for (const auto& [id, value] : values) {
        ProtoWriter counter;
        counter.varint(pf::counter::counterId, id).real(pf::counter::doubleValue, value);
        event.message(pf::counter::counters, counter);
      }
      event.integer(pf::counter::gpuId, e.device).varint(pf::counter::descriptorIid, kFirstIid + e.device);
      if (!std::exchange(described[e.device], true)) {
        ProtoWriter descriptor, entry, interned;
        for (const Track& track : kTracks) {
          ProtoWriter spec;
          spec.varint(pf::counter::specId, track.id)
              .text(pf::counter::specName, track.name)
              .text(pf::counter::specDescription, track.description)
              .varint(pf::counter::specSelectByDefault, 1);
          descriptor.message(pf::counter::specs, spec);
        }
        entry.varint(pf::interned::iid, kFirstIid + e.device)
            .message(pf::interned::counterDescriptor, descriptor)
            .integer(pf::interned::counterGpuId, e.device);
        interned.message(pf::interned::gpuCounterDescriptors, entry);
        body.message(pf::packet::internedData, interned);
      }
      body.message(pf::packet::gpuCounterEvent, event);
      emit(e.start, body);
    }
  }

  static void annotate(ProtoWriter& event, const char* name, const std::string& value) {
    ProtoWriter annotation;
    annotation.text(pf::annotation::name, name).text(pf::annotation::stringValue, value);
    event.message(pf::event::debugAnnotations, annotation);
  }
  static void annotate(ProtoWriter& event, const char* name, uint64_t value) {
    ProtoWriter a;
    a.text(pf::annotation::name, name).varint(pf::annotation::uintValue, value);
    event.message(pf::event::debugAnnotations, a);
  }

  void slice(uint64_t type, uint64_t time, uint64_t track, ProtoWriter event) {
    event.varint(pf::event::type, type).varint(pf::event::trackUuid, track);
    ProtoWriter body;
    body.message(pf::packet::trackEvent, event);
    emit(time, body);
  }

  // Slices of one track in an order that nests: each ends before the one
  // around it does.
  template <typename E, typename Describe>
  void nestedSlices(uint64_t track, std::vector<const E*>& events, Describe describeEvent) {
    std::stable_sort(events.begin(), events.end(), [](const E* a, const E* b) {
      return a->start != b->start ? a->start < b->start : a->end > b->end;
    });
    std::vector<uint64_t> open;
    const auto closeUntil = [&](uint64_t time) {
      while (!open.empty() && open.back() <= time) {
        slice(pf::event::kSliceEnd, open.back(), track, {});
        open.pop_back();
      }
    };
    for (const E* e : events) {
      closeUntil(e->start);
      slice(pf::event::kSliceBegin, e->start, track, describeEvent(*e));
      const uint64_t end = std::max(e->start, e->end);
      open.push_back(open.empty() ? end : std::min(end, open.back()));
    }
    closeUntil(UINT64_MAX);
  }

  void apiCalls() {
    std::map<std::pair<uint32_t, uint32_t>, std::vector<const ApiCall*>> byThread;
    for (const ApiCall& call : trace_.apiCalls) byThread[{call.process, call.threadId}].push_back(&call);
    for (auto& [thread, calls] : byThread) {
      nestedSlices(threadTrack(thread.first, thread.second), calls, [&](const ApiCall& call) {
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
        all.push_back({childTrack(processTrack(r.process), "NVTX start/end ranges"), 0});
        lane = std::prev(all.end());
      }
      slice(pf::event::kSliceBegin, r.start, lane->track, describeRange(r));
      slice(pf::event::kSliceEnd, r.end, lane->track, {});
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
      const uint64_t track = childTrack(threadTrack(thread.first, thread.second), "NVTX");
      std::vector<const NvtxRange*> closed;
      for (const NvtxRange* r : all) {
        if (r->style == RangeStyle::Mark) {
          slice(pf::event::kInstant, r->start, track, describeRange(*r));
        } else if (r->closed) {
          closed.push_back(r);
        }
      }
      nestedSlices(track, closed, describeRange);
    }
  }

  void unifiedMemory() {
    for (const UmTrack& t : umTracks(trace_)) {
      const uint64_t track = childTrack(processTrack(t.process), t.name);
      for (const UmSlice& s : t.slices) {
        ProtoWriter event;
        event.text(pf::event::categories, "unified_memory").text(pf::event::name, s.name);
        for (const auto& [key, value] : s.numbers) annotate(event, key, value);
        for (const auto& [key, value] : s.texts) annotate(event, key, value);
        slice(s.end != 0 ? pf::event::kSliceBegin : pf::event::kInstant, s.start, track, event);
        if (s.end != 0) slice(pf::event::kSliceEnd, s.end, track, {});
      }
    }
    for (const UmLevel& l : umLevels(trace_)) {
      ProtoWriter unit, descriptor;
      unit.varint(pf::track::counterUnit, pf::track::kUnitBytes);
      const uint64_t track = nextTrack_++;
      descriptor.varint(pf::track::uuid, track)
          .varint(pf::track::parentUuid, processTrack(l.process))
          .text(pf::track::name, fmt::format("Unified memory: migrated to GPU {}", l.device))
          .message(pf::track::counter, unit);
      describe(descriptor);
      for (const auto& [time, bytes] : l.values) {
        ProtoWriter event;
        event.integer(pf::event::counterValue, bytes);
        slice(pf::event::kCounter, time, track, event);
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
      slice(pf::event::kInstant, origin_, processTrack(i), event);
    }
  }

  const Trace& trace_;
  const Options& options_;
  const Sink& sink_;
  const uint64_t origin_ = trace_.origin();
  bool first_ = true;
  uint64_t nextTrack_ = 0x200000000ull;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> threadTracks_;
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
