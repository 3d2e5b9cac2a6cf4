// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/kernel_run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "platform/clock.h"
#include "softgpu/driver/counters.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/device_errors.h"
#include "softgpu/memory/address_space.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

using platform::nowNs;

SondeWork workOf(Stream& stream, const Command& command, uint32_t kind, uint64_t start, uint64_t end) {
  Context& context = *stream.context();
  SondeWork w{};
  w.size = sizeof w;
  w.kind = kind;
  w.correlationId = command.correlationId;
  w.deviceId = context.device()->ordinal;
  const ReportedContext name = reported(stream);
  w.contextUid = name.uid;
  w.streamId = stream.id();
  w.context = name.handle;
  w.queued = command.queuedNs;
  w.submitted = command.submittedNs;
  w.start = start;
  w.end = end;
  w.graphId = command.graphId;
  w.graphNodeId = command.graphNodeId;
  w.channelId = stream.id();
  w.channelType = kind == SONDE_WORK_KERNEL ? 1 : 2;
  w.listenerWord = command.listenerWord;
  w.listenerWord2 = command.listenerWord2;
  w.listenerWord3 = command.listenerWord3;
  return w;
}

SondeWork describeKernel(Stream& stream, const Command& command, uint64_t start, uint64_t end) {
  Context& context = *stream.context();
  Function& function = *command.launch.function;
  const exec::KernelInfo& info = function.info();
  SondeWork w = workOf(stream, command, SONDE_WORK_KERNEL, start, end);
  w.name = info.name.c_str();
  w.moduleId = function.module()->id();
  w.functionId = function.id();
  w.gridId = command.gridId;
  const auto& l = command.launch;
  const uint32_t grid[3] = {l.grid.x, l.grid.y, l.grid.z}, block[3] = {l.block.x, l.block.y, l.block.z},
                 cluster[3] = {l.cluster.x, l.cluster.y, l.cluster.z};
  std::memcpy(w.grid, grid, sizeof grid);
  std::memcpy(w.block, block, sizeof block);
  std::memcpy(w.cluster, cluster, sizeof cluster);
  w.registersPerThread = info.registersPerThread;
  w.staticSharedMemory = info.staticSharedBytes;
  w.dynamicSharedMemory = l.dynamicShared;
  const auto& model = context.device()->model;
  w.sharedMemoryExecuted = info.staticSharedBytes + l.dynamicShared + model.sharedReservedPerBlock;
  w.localMemoryPerThread = info.localBytesPerThread;
  w.localMemoryTotal = uint64_t{info.localBytesPerThread} * model.smCount * model.maxWarpsPerSm * 32;
  const int requested = function.cacheConfig.load();
  w.cacheConfigRequested = w.cacheConfigExecuted =
      static_cast<uint32_t>(requested ? requested : static_cast<int>(context.cacheConfig.load()));
  w.sharedMemoryConfig = 1;
  const int carveout = l.carveout >= 0 ? l.carveout : function.carveout.load();
  w.sharedMemoryCarveoutRequested = carveout >= 0;
  w.sharedMemoryCarveout = carveout >= 0 ? static_cast<uint32_t>(carveout) : 0;
  w.sharedMemoryOptin = function.maxDynamicShared.load() + info.staticSharedBytes > model.sharedPerBlock;
  const ClusterFacts clusters = clusterFacts(function, l);
  w.clusterSchedulingPolicy = clusters.policy;
  w.maxPotentialClusterSize = clusters.largest;
  w.maxActiveClusters = clusters.active;
  w.launchType = l.cooperative ? 1 : 0;
  w.priority = l.priority;
  w.accessPolicy = l.accessPolicy ? &*l.accessPolicy : nullptr;
  return w;
}

namespace {

void print(std::string_view line) { std::fwrite(line.data(), 1, line.size(), stdout); }

bool hostAllowed(uint64_t address, uint64_t bytes) { return memory::Allocator::get().hostRangeAllowed(address, bytes); }

// Instructions have no addresses; each takes the place of one of 16 bytes.
constexpr uint32_t kInstructionBytes = 16;

std::vector<SondeInstructionCount> describeInstructions(Module& module,
                                                        const std::vector<exec::InstructionCount>& counts) {
  std::vector<SondeInstructionCount> out;
  out.reserve(counts.size());
  uint32_t function = ~0u, id = 0;
  for (const exec::InstructionCount& c : counts) {
    if (c.function != function) id = module.functionIdOf(function = c.function);
    SondeInstructionCount& i = out.emplace_back();
    i.functionId = id;
    i.pcOffset = c.index * kInstructionBytes;
    // Line 0 is what compilers give to code of no line.
    const bool known = !c.file.empty() && c.line != 0;
    i.file = known ? c.file.data() : module.ptxName();  // of a std::string
    i.line = known ? c.line : c.ptxLine;
    i.instructionClass = c.recordClass;
    i.isBranch = c.isBranch;
    i.access = c.access;
    i.accessBytes = c.accessBytes;
    i.cached = c.cached;
    i.executed = c.executed;
    i.threads = c.threads;
    i.notPredicatedOff = c.onThreads;
    i.diverged = c.diverged;
    i.globalExecuted = c.global.executed;
    i.globalThreads = c.global.threads;
    i.globalTransactions = c.global.transactions;
    i.globalIdeal = c.global.ideal;
    i.sharedExecuted = c.shared.executed;
    i.sharedThreads = c.shared.threads;
    i.sharedTransactions = c.shared.transactions;
    i.sharedIdeal = c.shared.ideal;
  }
  return out;
}

// Where a grid stands among those that launched it.
struct Nesting {
  uint32_t depth = 0;  // 0: launched by the host
  std::atomic<uint64_t>* pending = nullptr;
  uint32_t clockMHz = 0;  // what the kernels launched by the device run at too
  uint64_t parentGridId = 0;
  std::array<uint32_t, 3> parentBlock{};
  int32_t error = 0;  // out: CUresult
  std::string message;
};

void runGrid(Stream& stream, Command& command, Nesting& nesting);

exec::DeviceLaunches::Host launchesOf(Stream& stream, Command& command, const Nesting& nesting);

void runGrid(Stream& stream, Command& command, Nesting& nesting) {
  Context& context = *stream.context();
  Function& function = *command.launch.function;
  exec::LaunchRequest request;
  request.program = &function.module()->program();
  request.kernel = function.index();
  request.grid = command.launch.grid;
  request.block = command.launch.block;
  request.cluster = command.launch.cluster;
  request.dynamicSharedBytes = command.launch.dynamicShared;
  request.params = command.launch.params.view();
  request.gridId = command.gridId;
  request.cooperative = command.launch.cooperative;
  // Read as zero when made; nobody but the kernel's grid barrier uses it.
  memory::Allocation workspace;
  if (request.cooperative) {
    workspace.bytes = 8;
    workspace.kind = memory::Kind::device;
    workspace.device = context.device()->ordinal;
    if (memory::Allocator::get().allocate(workspace) != memory::AllocError::none) {
      context.fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the barrier of a cooperative launch");
      return;
    }
    request.gridWorkspace = workspace.address;
  }
  request.device = &context.device()->model;
  if (command.launch.sms) request.sms = *command.launch.sms;
  request.deviceOrdinal = context.device()->ordinal;
  request.smClockMHz = nesting.clockMHz;
  {
    std::lock_guard lock(context.objects);
    request.heapBytes = context.limits[CU_LIMIT_MALLOC_HEAP_SIZE];
    request.printfBytes = context.limits[CU_LIMIT_PRINTF_FIFO_SIZE];
    request.stackBytes = context.limits[CU_LIMIT_STACK_SIZE];
  }
  request.print = print;
  if (memory::Allocator::get().anyRegistered()) request.hostAddressAllowed = hostAllowed;

  const bool nested = nesting.depth != 0;
  exec::CounterValues values;
  exec::CounterMonitor monitor;
  std::unique_lock<std::mutex> alone;
  const auto level = static_cast<exec::CountLevel>(context.countLevel.load(std::memory_order_acquire));
  std::unique_ptr<exec::DeviceLaunches> launches;
  if (function.module()->program().launchesOnDevice()) {
    launches = std::make_unique<exec::DeviceLaunches>(launchesOf(stream, command, nesting));
    request.launches = launches.get();
  }
  if (command.countInstructions)
    function.load(std::max(level, exec::CountLevel::requests), true, command.correlationId);
  if (level != exec::CountLevel::off) {
    // What a kernel launches is counted with it.
    if (!nested) {
      if (context.counters->mode == SONDE_COUNTER_MODE_KERNEL) alone = std::unique_lock(context.counters->oneKernel);
      countKernelStart(context, monitor);
      request.monitor = &monitor;
    }
    request.count = level;
    request.counters = &values;
  } else {
    context.counters->kernels.fetch_add(1, std::memory_order_relaxed);
  }
  std::vector<exec::InstructionCount> instructions;
  if (command.countInstructions) {
    if (!alone && !nested) alone = std::unique_lock(context.counters->oneKernel);
    request.instructions = &instructions;
  }
  const uint64_t start = nowNs();
  context.device()->clocks->workStarted(start);
  exec::LaunchOutcome outcome = exec::Engine::get().run(request);
  const uint64_t end = nowNs();
  context.device()->clocks->workDone(end);
  if (launches && !outcome.error) {
    std::string message;
    if (const int32_t error = launches->runRest(&message)) {
      outcome.error = error;
      outcome.message = message;
    }
  }
  const uint64_t completed = nowNs();
  if (request.gridWorkspace) memory::Allocator::get().release(request.gridWorkspace);
  if (level != exec::CountLevel::off) addCounters(context, values, monitor);
  if (alone) alone.unlock();
  nesting.error = outcome.error;
  nesting.message = outcome.message;
  if (outcome.error && !nested) context.fail(static_cast<CUresult>(outcome.error), outcome.message);

  if (!command.announced) return;
  SondeWork w = describeKernel(stream, command, start, end);
  w.status = static_cast<uint32_t>(outcome.error);
  if (launches) w.completed = completed;
  w.parentGridId = nesting.parentGridId;
  std::copy(nesting.parentBlock.begin(), nesting.parentBlock.end(), w.parentBlock);
  const auto described = describeInstructions(*function.module(), instructions);
  w.instructionSize = sizeof(SondeInstructionCount);
  w.instructions = described.data();
  w.instructionCount = described.size();
  tools::reportWork(w);
}

// Of a device-side launch, as cudaError_t.
int32_t checkLaunch(Module& module, const exec::DeviceWork& work) {
  LaunchShape shape;
  shape.grid = work.grid;
  shape.block = work.block;
  shape.dynamicShared = work.dynamicSharedBytes;
  const Ref<Function> function = module.function(work.kernel);
  const CUresult e = checkLaunchShape(*function, shape);
  return e == CUDA_ERROR_INVALID_VALUE ? exec::kDeviceInvalidConfiguration : static_cast<int32_t>(e);
}

// The kernels, copies and sets that a grid launched.
class Children {
 public:
  Children(Stream& stream, Command& parent, const Nesting& nesting)
      : stream_(stream), parent_(parent), nesting_(nesting), module_(parent.launch.function->module()) {}

  int32_t run(std::vector<exec::DeviceWork>&& work, std::string* message) {
    // All are known before the first begins, so that room for their records is taken for all.
    std::vector<std::unique_ptr<Command>> commands;
    for (exec::DeviceWork& w : work)
      commands.push_back(w.kind == exec::DeviceWork::Kind::kernel ? prepare(w) : nullptr);
    for (size_t i = 0; i < work.size(); ++i) {
      if (!commands[i]) {
        move(work[i]);
        continue;
      }
      Command& command = *commands[i];
      command.submittedNs = nowNs();
      Nesting below = nestingOf(work[i]);
      // The code is made here, so that its making is not part of the kernel's time.
      const auto level = static_cast<exec::CountLevel>(stream_.context()->countLevel.load(std::memory_order_acquire));
      if (const CUresult e = command.launch.function->load(level, false, command.correlationId)) {
        *message = "a kernel that was launched on the device could not be compiled";
        return e;
      }
      runGrid(stream_, command, below);
      if (below.error) {
        *message = below.message;
        return below.error;
      }
    }
    return 0;
  }

 private:
  Nesting nestingOf(const exec::DeviceWork& w) const {
    Nesting below;
    below.depth = nesting_.depth + 1;
    below.pending = nesting_.pending;
    below.clockMHz = nesting_.clockMHz;
    below.parentGridId = parent_.gridId;
    below.parentBlock = w.parentBlock;
    return below;
  }
  std::unique_ptr<Command> prepare(exec::DeviceWork& w) {
    auto command = std::make_unique<Command>();
    command->kind = CommandKind::kernel;
    command->correlationId = parent_.correlationId;
    command->graphId = parent_.graphId;
    command->graphNodeId = parent_.graphNodeId;
    command->gridId = nextGridId();
    command->queuedNs = w.queuedNs;
    LaunchPlan& plan = command->launch;
    plan.function = module_->function(w.kernel);
    plan.grid = w.grid;
    plan.block = w.block;
    plan.dynamicShared = w.dynamicSharedBytes;
    plan.priority = parent_.launch.priority;
    plan.sms = parent_.launch.sms;
    const uint32_t bytes = plan.function->info().paramBytes;
    std::byte* to = plan.params.resize(bytes);
    std::fill_n(to, bytes, std::byte{});
    std::copy_n(w.params.begin(), std::min<size_t>(w.params.size(), bytes), to);
    if (tools::wants(SONDE_INTEREST_KERNEL)) {
      SondeWork report = describeKernel(stream_, *command, 0, 0);
      report.parentGridId = parent_.gridId;
      std::copy(w.parentBlock.begin(), w.parentBlock.end(), report.parentBlock);
      tools::reportWorkEnqueued(report);
      command->announced = true;
      command->listenerWord = report.listenerWord;
      command->listenerWord2 = report.listenerWord2;
      command->listenerWord3 = report.listenerWord3;
      command->countInstructions = report.countInstructions != 0;
    }
    return command;
  }
  // The ranges were checked when it was enqueued; managed pages come by themselves.
  static void move(const exec::DeviceWork& w) {
    std::byte* to = memory::AddressSpace::get().deviceView(w.to);
    if (w.kind == exec::DeviceWork::Kind::set)
      std::memset(to, w.value, w.bytes);
    else
      std::memmove(to, memory::AddressSpace::get().deviceView(w.from), w.bytes);
  }

  Stream& stream_;
  Command& parent_;
  Nesting nesting_;
  Module* module_;
};

exec::DeviceLaunches::Host launchesOf(Stream& stream, Command& command, const Nesting& nesting) {
  Context& context = *stream.context();
  Device& device = *context.device();
  Module& module = *command.launch.function->module();
  exec::DeviceLaunches::Host host;
  host.depth = nesting.depth;
  host.pending = nesting.pending;
  {
    std::lock_guard lock(context.objects);
    host.syncDepth = context.limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH];
    host.mostPending = context.limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT];
  }
  host.device = static_cast<int32_t>(device.ordinal);
  host.deviceCount = static_cast<int32_t>(Driver::get().devices().size());
  host.check = [&module](const exec::DeviceWork& work) { return checkLaunch(module, work); };
  auto children = std::make_shared<Children>(stream, command, nesting);
  host.run = [children](std::vector<exec::DeviceWork>&& work, std::string* message) {
    return children->run(std::move(work), message);
  };
  host.preempted = [gridId = command.gridId, &context](const std::array<uint32_t, 3>& block, bool restored) {
    if (!tools::wants(SONDE_INTEREST_PREEMPTION)) return;
    SondePreemption p{};
    p.size = sizeof p;
    p.restored = restored;
    p.context = context.handle();
    p.time = nowNs();
    p.gridId = gridId;
    std::copy(block.begin(), block.end(), p.block);
    tools::reportPreemption(p);
  };
  host.deviceAttribute = [&device](int32_t attribute, int32_t* value) {
    int64_t v = 0;
    if (!deviceAttribute(device, attribute, v)) return exec::kDeviceInvalidValue;
    *value = static_cast<int32_t>(v);
    return 0;
  };
  host.limit = [&context](int32_t which, uint64_t* value) {
    std::lock_guard lock(context.objects);
    const auto found = context.limits.find(which);
    if (found == context.limits.end()) return exec::kDeviceInvalidValue;
    *value = found->second;
    return 0;
  };
  return host;
}

}  // namespace

void runKernel(Stream& stream, Command& command) {
  std::atomic<uint64_t> pending{0};
  Nesting top;
  top.pending = &pending;
  top.clockMHz = stream.context()->device()->kernelClockMHz(stream.kernelsRun++, nowNs());
  runGrid(stream, command, top);
}

}  // namespace sonde::softgpu::driver
