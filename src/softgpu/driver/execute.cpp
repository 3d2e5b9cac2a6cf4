// SPDX-License-Identifier: Apache-2.0
//
// Running one command, and reporting it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "platform/clock.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/kernel_run.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/pool.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/check.h"
#include "softgpu/exec/faults.h"
#include "softgpu/memory/allocator.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::driver {

Command::Command() = default;
Command::~Command() = default;

void Command::recycle() {
  target.reset();
  launch.function.reset();
  launch.sms.reset();
  record.reset();
  if (body) body = nullptr;
  memoryOps.clear();
  if (!copy.staging.empty()) std::vector<std::byte>().swap(copy.staging);
  graphId = 0;
  graphNodeId = 0;
  queuedNs = submittedNs = 0;
  listenerWord = listenerWord2 = listenerWord3 = 0;
  countInstructions = false;
  announced = false;
}

namespace {

using platform::nowNs;

SondeWork describeCopy(Stream& stream, const Command& command, uint64_t start, uint64_t end) {
  const CopyPlan& p = command.copy;
  SondeWork w = workOf(stream, command, p.peer ? SONDE_WORK_MEMCPY_PEER : SONDE_WORK_MEMCPY, start, end);
  w.copyKind = copyKindOf(p.fromKind, p.toKind, p.peer);
  w.srcMemoryKind = p.fromKind;
  w.dstMemoryKind = p.toKind;
  w.bytes = p.bytes();
  w.isAsync = p.async;
  w.srcDeviceId = p.fromDevice;
  w.dstDeviceId = p.toDevice;
  w.srcContextUid = p.fromContext;
  w.dstContextUid = p.toContext;
  w.copyCount = 1;
  return w;
}

SondeWork describeSet(Stream& stream, const Command& command, uint64_t start, uint64_t end) {
  const SetPlan& p = command.set;
  SondeWork w = workOf(stream, command, SONDE_WORK_MEMSET, start, end);
  w.bytes = p.width * p.elementBytes * p.height;
  w.setValue = p.value;
  w.dstMemoryKind = p.kind;
  w.isAsync = p.async;
  return w;
}

void moveBytes(const CopyPlan& p) {
  const bool dense = (p.height == 1 || (p.toPitch == p.width && p.fromPitch == p.width)) &&
                     (p.depth == 1 || (p.toSlice == p.width * p.height && p.fromSlice == p.toSlice));
  if (dense) {
    std::memmove(p.to, p.from, p.bytes());
  } else {
    for (uint64_t z = 0; z < p.depth; z++)
      for (uint64_t y = 0; y < p.height; y++)
        std::memmove(p.to + z * p.toSlice + y * p.toPitch, p.from + z * p.fromSlice + y * p.fromPitch, p.width);
  }
}

// For the check of uninitialized memory: `bytes` as the driver reaches them.
void noteDeviceBytes(const std::byte* bytes, uint64_t count) {
  const auto& space = memory::AddressSpace::get();
  auto address = reinterpret_cast<uint64_t>(bytes);
  if (!space.global.contains(address)) address -= static_cast<uint64_t>(space.deviceDelta);
  if (space.global.contains(address)) exec::noteWritten(address, count);
}

void runCopyCommand(Stream& stream, Command& command) {
  const CopyPlan& p = command.copy;
  const uint64_t start = nowNs();
  // Memory of the application may not be there, or not be writable.
  if (p.fromKind == SONDE_MEMORY_PAGEABLE || p.toKind == SONDE_MEMORY_PAGEABLE) {
    uint64_t address = 0;
    if (!exec::touchGuarded([](void* plan) { moveBytes(*static_cast<const CopyPlan*>(plan)); },
                            const_cast<CopyPlan*>(&p), &address)) {
      if (p.unreachable)
        *p.unreachable = true;
      else
        stream.context()->fail(CUDA_ERROR_ILLEGAL_ADDRESS, "a copy reached host memory that is not there");
      return;
    }
  } else {
    moveBytes(p);
  }
  if (exec::checks().init)
    for (uint64_t z = 0; z < p.depth; z++)
      for (uint64_t y = 0; y < p.height; y++) noteDeviceBytes(p.to + z * p.toSlice + y * p.toPitch, p.width);
  const uint64_t end = nowNs();
  if (!command.announced) return;
  tools::reportWork(describeCopy(stream, command, start, end));
}

template <class T>
void fillRow(std::byte* to, uint32_t value, uint64_t n) {
  auto* p = reinterpret_cast<T*>(to);
  std::fill(p, p + n, static_cast<T>(value));
}

void runSet(Stream& stream, Command& command) {
  const SetPlan& p = command.set;
  const uint64_t start = nowNs();
  for (uint64_t y = 0; y < p.height; y++) {
    std::byte* row = p.to + y * p.pitch;
    if (p.elementBytes == 1)
      std::memset(row, static_cast<int>(p.value), p.width);
    else if (p.elementBytes == 2)
      fillRow<uint16_t>(row, p.value, p.width);
    else
      fillRow<uint32_t>(row, p.value, p.width);
    if (exec::checks().init) noteDeviceBytes(row, p.width * p.elementBytes);
  }
  const uint64_t end = nowNs();
  if (!command.announced) return;
  tools::reportWork(describeSet(stream, command, start, end));
}

void runEventRecord(Stream& stream, Command& command) {
  const uint64_t now = nowNs();
  command.record->timeNs.store(now, std::memory_order_release);
  if (command.record->shared) command.record->shared->complete(command.record->sharedPlace);
  if (!command.announced) return;
  SondeWork w = workOf(stream, command, SONDE_WORK_EVENT_RECORD, now, now);
  w.eventId = command.record->eventId;
  w.eventSyncId = command.record->syncId;
  tools::reportWork(w);
}

void runHostFunction(Stream& stream, Command& command) {
  ThreadState& state = thread();
  const uint64_t start = nowNs();
  state.inHostFunction = true;
  const CUresult error = stream.context()->error();
  if (command.kind == CommandKind::callback) {
    CUstream handle = stream.role() == Stream::Role::legacyDefault ? nullptr : static_cast<CUstream>(stream.handle());
    command.callback(handle, error, command.user);
  } else if (!error) {
    command.hostFunction(command.user);
  }
  state.inHostFunction = false;
  if (!command.announced) return;
  tools::reportWork(workOf(stream, command, SONDE_WORK_HOST_FUNCTION, start, nowNs()));
}

bool satisfied(const MemoryOp& op, uint64_t now) {
  const bool small = op.bytes == 4;
  switch (op.flags & 3u) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return small ? static_cast<int32_t>(static_cast<uint32_t>(now) - static_cast<uint32_t>(op.value)) >= 0
                   : static_cast<int64_t>(now - op.value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return now == op.value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & op.value) != 0;
    default: return small ? static_cast<uint32_t>(~(now | op.value)) != 0 : ~(now | op.value) != 0;
  }
}

// The host, another stream or a running kernel writes what is waited for. A
// context that broke or goes away ends the waiting.
void waitForWord(const Context& context, const MemoryOp& op, const std::byte* p) {
  for (unsigned tries = 0;; tries++) {
    const uint64_t now = op.bytes == 4 ? __atomic_load_n(reinterpret_cast<const uint32_t*>(p), __ATOMIC_SEQ_CST)
                                       : __atomic_load_n(reinterpret_cast<const uint64_t*>(p), __ATOMIC_SEQ_CST);
    if (satisfied(op, now) || context.error() || context.destroyed.load()) return;
    if (tries < 1000)
      __builtin_ia32_pause();
    else if (tries < 2000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));  // leaves the processor to who will write
  }
}

void runMemoryOps(Stream& stream, const Command& command) {
  for (const MemoryOp& op : command.memoryOps) {
    std::byte* p = memory::Allocator::hostAccess(op.address);
    if (op.wait) {
      waitForWord(*stream.context(), op, p);
      continue;
    }
    if (op.bytes == 4)
      __atomic_store_n(reinterpret_cast<uint32_t*>(p), static_cast<uint32_t>(op.value), __ATOMIC_SEQ_CST);
    else
      __atomic_store_n(reinterpret_cast<uint64_t*>(p), op.value, __ATOMIC_SEQ_CST);
    if (exec::checks().init) noteDeviceBytes(p, op.bytes);
  }
}

}  // namespace

void announce(Stream& stream, Command& command) {
  uint64_t bit = 0;
  SondeWork w;
  switch (command.kind) {
    case CommandKind::kernel:
      if (!tools::wants(bit = SONDE_INTEREST_KERNEL)) return;
      w = describeKernel(stream, command, 0, 0);
      break;
    case CommandKind::copy:
      if (!tools::wants(bit = SONDE_INTEREST_MEMCPY)) return;
      w = describeCopy(stream, command, 0, 0);
      break;
    case CommandKind::set:
      if (!tools::wants(bit = SONDE_INTEREST_MEMSET)) return;
      w = describeSet(stream, command, 0, 0);
      break;
    case CommandKind::eventRecord:
      if (!tools::wants(bit = SONDE_INTEREST_EVENT_RECORD)) return;
      w = workOf(stream, command, SONDE_WORK_EVENT_RECORD, 0, 0);
      w.eventId = command.record->eventId;
      w.eventSyncId = command.record->syncId;
      break;
    case CommandKind::hostFunction:
    case CommandKind::callback:
      if (!tools::wants(bit = SONDE_INTEREST_HOST_FUNCTION)) return;
      w = workOf(stream, command, SONDE_WORK_HOST_FUNCTION, 0, 0);
      break;
    case CommandKind::graphEnd:
      w = workOf(stream, command, SONDE_WORK_GRAPH, 0, 0);
      w.extraId = command.address;
      break;
    default: return;
  }
  tools::reportWorkEnqueued(w);
  command.announced = true;  // interest counts at the enqueueing
  command.listenerWord = w.listenerWord;
  command.listenerWord2 = w.listenerWord2;
  command.listenerWord3 = w.listenerWord3;
  command.countInstructions = command.kind == CommandKind::kernel && w.countInstructions != 0;
}

void execute(Stream& stream, Command& command) {
  if (tools::wants(SONDE_INTEREST_LATENCY)) command.submittedNs = nowNs();
  // After a sticky error the device does nothing more; what only marks
  // progress still happens, so that nobody waits for ever.
  const bool broken = stream.context()->error() != CUDA_SUCCESS;
  const managed::Work managedWork(*stream.context()->device(), command);
  switch (command.kind) {
    case CommandKind::kernel:
      if (!broken) runKernel(stream, command);
      break;
    case CommandKind::copy:
      if (!broken) runCopyCommand(stream, command);
      break;
    case CommandKind::set:
      if (!broken) runSet(stream, command);
      break;
    case CommandKind::eventRecord: runEventRecord(stream, command); break;
    case CommandKind::hostFunction:
    case CommandKind::callback:
      managed::waitedByHostFunction(stream);
      runHostFunction(stream, command);
      break;
    case CommandKind::release: {
      memory::Allocation was;
      if (memory::Allocator::get().release(command.address, &was) == memory::AllocError::none) poolReleased(was);
      break;
    }
    case CommandKind::memoryOp:
      if (!broken) runMemoryOps(stream, command);
      break;
    case CommandKind::conditional:
      if (!broken) command.body(stream);
      break;
    case CommandKind::graphBegin: stream.graphStartNs = nowNs(); break;
    case CommandKind::graphEnd: {
      if (!tools::wants(SONDE_INTEREST_GRAPH)) break;
      SondeWork w = workOf(stream, command, SONDE_WORK_GRAPH, stream.graphStartNs, nowNs());
      w.extraId = command.address;
      tools::reportWork(w);
      break;
    }
    case CommandKind::prefetch:
      if (!broken)
        memory::ManagedMemory::get().prefetch(command.prefetch.address, command.prefetch.bytes, command.prefetch.to);
      break;
    case CommandKind::attach:
      memory::ManagedMemory::get().attach(command.prefetch.address, command.prefetch.attach, stream.id());
      break;
    case CommandKind::marker:
    case CommandKind::wait: break;
  }
}

}  // namespace sonde::softgpu::driver
