// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/managed.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "softgpu/driver/env.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/faults.h"
#include "softgpu/memory/allocator.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::driver::managed {
namespace {

using memory::ManagedMemory;

std::mutex& mutex() {
  static std::mutex& m = *new std::mutex;  // outlives static destructors
  return m;
}
std::mutex& drainMutex() {
  static std::mutex& m = *new std::mutex;
  return m;
}
uint32_t wanted[memory::kMaxManagedDevices] = {};  // by device
bool threadRuns = false;
sem_t waiting;

// In a signal handler, before the program's own or the end of it.
void sayRefused(uint64_t address, uint32_t stream) {
  static std::atomic<bool> said{false};
  if (environment().quiet || said.exchange(true)) return;
  char text[512];
  const int n = std::snprintf(
      text, sizeof text,
      "sonde: the CPU touched managed memory (0x%llx) that a kernel of stream %u may be using. On this device "
      "(CONCURRENT_MANAGED_ACCESS is 0) wait for the kernel first: cudaDeviceSynchronize, cudaStreamSynchronize; or "
      "attach the memory to another stream or to the host: cudaStreamAttachMemAsync.\n",
      static_cast<unsigned long long>(address), stream);
  [[maybe_unused]] const auto written = write(2, text, std::min(static_cast<size_t>(n), sizeof text - 1));
}

bool preloaded = false;  // src/softgpu/managed_io is in the process

// What a system call is about to be given: as touches of the CPU. Answers
// whether it is managed memory.
int reachForSystemCall(const void* data, size_t bytes, int write, const void* pc) {
  auto& pages = ManagedMemory::get();
  const auto first = reinterpret_cast<uint64_t>(data);
  if (!memory::AddressSpace::get().global.contains(first) || !pages.inUse() || pages.systemCallsWait()) return 0;
  for (uint64_t at = first; at < first + bytes; at = (at / 4096 + 1) * 4096)
    if (!pages.onFault(at, write != 0, reinterpret_cast<uint64_t>(pc), -1)) return at != first;
  return 1;
}

// Pages come back when the program has waited: nothing else would let a system
// call reach them.
bool pagesReturn() {
  return !preloaded && !ManagedMemory::get().systemCallsWait() && environment().managed != "faults";
}

void activate() {
  if (ManagedMemory::get().active()) return;
  using Reach = int (*)(const void*, size_t, int, const void*);
  if (auto* slot = static_cast<Reach*>(dlsym(RTLD_DEFAULT, "sondeManagedReach"))) {
    preloaded = true;
    __atomic_store_n(slot, &reachForSystemCall, __ATOMIC_RELEASE);
  }
  for (int i = 0; Device* d = Driver::get().device(i); i++) {
    const int64_t asked = environment().accessCounters;
    ManagedMemory::get().setDevice(
        d->ordinal,
        {d->model.concurrentManaged, asked >= 0 ? static_cast<uint32_t>(asked) : d->model.accessCounterThreshold});
  }
  memory::ThrashingLimits limits;
  limits.lapseNs = static_cast<uint64_t>(environment().thrashingLapseMs) * 1'000'000;
  ManagedMemory::get().setThrashing(limits);
  exec::prepareThreadForFaults();
  exec::reassertFaultHandlers();
  exec::setFaultHook([](uint64_t address, bool write, uint64_t pc, int device) {
    return ManagedMemory::get().onFault(address, write, pc, device);
  });
  ManagedMemory::get().setRefused(&sayRefused);
  ManagedMemory::get().activate(environment().userfaultfd, environment().managed != "faults" && !preloaded);
}

// Under the mutex.
void startThread() {
  if (threadRuns) return;
  threadRuns = true;
  static const bool once = [] {
    sem_init(&waiting, 0, 0);
    // The child has no such thread: its events wait for the next drain.
    pthread_atfork(nullptr, nullptr, [] { threadRuns = false; });
    return true;
  }();
  (void)once;
  std::thread([] {
    for (;;) {
      while (sem_wait(&waiting) != 0) {
      }
      drain();
    }
  }).detach();
}

// `view` points into the device view, or is the application's own memory.
void touch(const std::byte* view, uint64_t bytes, bool write, uint32_t kind, uint32_t device) {
  if (kind != SONDE_MEMORY_MANAGED && kind != SONDE_MEMORY_MANAGED_STATIC) return;
  const auto& space = memory::AddressSpace::get();
  const uint64_t address = reinterpret_cast<uint64_t>(view) - static_cast<uint64_t>(space.deviceDelta);
  ManagedMemory::get().touch(address, bytes, write, device);
}

uint64_t extent(uint64_t width, uint64_t height, uint64_t pitch, uint64_t depth, uint64_t slice) {
  return width + (height - 1) * pitch + (depth - 1) * slice;
}

}  // namespace

void beforeAllocation(const Device& device) {
  // The program may have put a handler of its own in front of ours meanwhile.
  if (ManagedMemory::get().active()) exec::reassertFaultHandlers();
  const std::string& how = environment().managed;
  if (ManagedMemory::get().active() || how == "resident" || (how == "auto" && device.model.concurrentManaged)) return;
  std::lock_guard lock(mutex());
  activate();
}

Work::Work(Device& device, const Command& command) {
  if (!ManagedMemory::get().inUse()) return;
  if (command.kind != CommandKind::kernel && command.kind != CommandKind::copy && command.kind != CommandKind::set &&
      command.kind != CommandKind::prefetch)
    return;
  exec::reassertFaultHandlers();
  auto& allocator = memory::Allocator::get();
  const uint64_t capacity = allocator.capacity(device.ordinal), used = allocator.used(device.ordinal);
  ManagedMemory::get().beforeDeviceWork(device.ordinal, capacity > used ? capacity - used : 0);
  device_ = static_cast<int>(device.ordinal);
  if (command.kind == CommandKind::copy) {
    const CopyPlan& p = command.copy;
    if (p.bytes() == 0) return;
    touch(p.from, extent(p.width, p.height, p.fromPitch, p.depth, p.fromSlice), false, p.fromKind, device.ordinal);
    touch(p.to, extent(p.width, p.height, p.toPitch, p.depth, p.toSlice), true, p.toKind, device.ordinal);
  } else if (command.kind == CommandKind::set) {
    const SetPlan& p = command.set;
    if (p.width == 0 || p.height == 0) return;
    touch(p.to, extent(p.width * p.elementBytes, p.height, p.pitch, 1, 0), true, p.kind, device.ordinal);
  }
}

Work::~Work() {
  if (device_ >= 0) ManagedMemory::get().afterDeviceWork(static_cast<uint32_t>(device_));
}

void launching(const Stream& stream) {
  ManagedMemory::get().launching(stream.context()->device()->ordinal, stream.id(), stream.context()->uid());
}

void waited(Stream& stream, uint64_t place) {
  Context& context = *stream.context();
  auto& pages = ManagedMemory::get();
  if (concernsLaunches(*context.device())) {
    pages.waited(stream.id(), place);
    // What the stream ordered itself after has come to its end as well.
    if (stream.role() == Stream::Role::legacyDefault) {
      std::lock_guard lock(context.order);
      for (auto& other : context.blockingStreams)
        if (other->idle()) pages.waited(other->id(), other->completed());
    } else if (stream.blocking()) {
      pages.waited(context.legacy()->id(), stream.lastLegacyWait);
    }
  }
  afterWait();
}

void waitedByHostFunction(Stream& stream) {
  if (concernsLaunches(*stream.context()->device())) ManagedMemory::get().waited(stream.id(), stream.completed());
  afterWait();
}

void waited(const Context& context) {
  if (concernsLaunches(*context.device())) ManagedMemory::get().waitedForContext(context.uid());
  afterWait();
}

void afterWait() {
  auto& pages = ManagedMemory::get();
  if (pages.inUse() && pagesReturn()) pages.returnAllToCpu();
}

int32_t configure(Device& device, uint32_t kindMask) {
  if (!device.model.unifiedMemory || device.ordinal >= memory::kMaxManagedDevices) return CUDA_ERROR_NOT_SUPPORTED;
  if (kindMask != 0 && environment().managed == "resident") return CUDA_ERROR_NOT_SUPPORTED;
  std::lock_guard lock(mutex());
  wanted[device.ordinal] = kindMask;
  uint32_t any = 0;
  for (uint32_t mask : wanted) any |= mask;
  if (any != 0) {
    startThread();
    activate();
    static std::atomic<bool> said{false};
    if (pagesReturn() && !said.exchange(true))
      say("unified memory: without userfaultfd (not allowed here, or switched off) pages come back to the CPU whenever "
          "the program waits, so that few faults of the CPU are recorded; SONDE_MANAGED=faults leaves them where they "
          "are, and system calls that are given such a page fail with EFAULT");
  }
  ManagedMemory::get().setEvents(any, any != 0 ? +[] { sem_post(&waiting); } : nullptr);
  return CUDA_SUCCESS;
}

void drain() {
  if (!ManagedMemory::get().active()) return;
  std::lock_guard lock(drainMutex());  // keeps the order
  SondeUnifiedMemory events[64];
  for (;;) {
    const size_t n = ManagedMemory::get().takeEvents(events, std::size(events));
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) tools::reportUnifiedMemory(events[i]);
  }
}

}  // namespace sonde::softgpu::driver::managed
