// SPDX-License-Identifier: Apache-2.0
#include "core/work.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "core/core.h"
#include "core/delivery.h"
#include "core/records.h"
#include "core/source_level.h"
#include "core/strings.h"

namespace sonde::core {
namespace {

uint32_t on(const Client& client, const SondeWork& work, uint32_t kind) {
  return client.kindOn(kind, static_cast<CUcontext>(work.context)) ? kind : 0;
}

bool isCdp(const SondeWork& work) { return work.kind == SONDE_WORK_KERNEL && work.parentGridId != 0; }

// The kind of record that the client wants of the work; 0: none.
uint32_t wantedKind(const Client& client, const SondeWork& work) {
  // A graph that is one record shows nothing of its nodes.
  if (work.graphId != 0 && work.kind != SONDE_WORK_GRAPH && on(client, work, CUPTI_ACTIVITY_KIND_GRAPH_TRACE) != 0) {
    return 0;
  }
  switch (work.kind) {
    case SONDE_WORK_KERNEL:
      if (on(client, work, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      return isCdp(work) ? 0 : on(client, work, CUPTI_ACTIVITY_KIND_KERNEL);
    case SONDE_WORK_MEMCPY: return on(client, work, CUPTI_ACTIVITY_KIND_MEMCPY);
    case SONDE_WORK_MEMCPY_PEER: return on(client, work, CUPTI_ACTIVITY_KIND_MEMCPY2);
    case SONDE_WORK_MEMSET: return on(client, work, CUPTI_ACTIVITY_KIND_MEMSET);
    case SONDE_WORK_EVENT_RECORD: return on(client, work, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    case SONDE_WORK_GRAPH: return on(client, work, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    default: return 0;
  }
}

// Clients that may want work of this sort.
uint32_t candidates(const SondeWork& work) {
  auto mask = [](uint32_t kind) { return wantedKinds[kind].load(std::memory_order_relaxed); };
  switch (work.kind) {
    case SONDE_WORK_KERNEL: return mask(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) | mask(CUPTI_ACTIVITY_KIND_KERNEL);
    case SONDE_WORK_MEMCPY: return mask(CUPTI_ACTIVITY_KIND_MEMCPY);
    case SONDE_WORK_MEMCPY_PEER: return mask(CUPTI_ACTIVITY_KIND_MEMCPY2);
    case SONDE_WORK_MEMSET: return mask(CUPTI_ACTIVITY_KIND_MEMSET);
    case SONDE_WORK_EVENT_RECORD: return mask(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    case SONDE_WORK_GRAPH: return mask(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
    default: return 0;
  }
}

// listenerWord: two bits per client (0 not wanted, 1 wanted, 2 wanted as
// KERNEL, 3 wanted without times: no room in the device buffers), above them the number of the work among the
// unfinished; bit 63 says that it was decided at the enqueueing.
constexpr uint64_t kDecided = uint64_t{1} << 63;
constexpr unsigned kNumberShift = 2 * kMaxClients;
constexpr uint64_t kWantedMask = (uint64_t{1} << kNumberShift) - 1;
constexpr uint64_t kNumberMask = (kDecided - 1) >> kNumberShift;

enum How : uint64_t { kUnwanted = 0, kWanted = 1, kAsKernel = 2, kUntimed = 3 };

// Takes a slot of the client's device buffers.
uint64_t reserveRoom(Client& client, const SondeWork& work, uint64_t how) {
  if (isCdp(work)) {
    if (how == kWanted && client.deviceBuffers.takeCdp(work.contextUid)) return kWanted;
    if (how == kWanted) {
      std::lock_guard lock(client.deliveryMutex);
      ++client.dropped;
    }
    return kUnwanted;
  }
  // Kernels of kind KERNEL always have their times.
  return client.deviceBuffers.take(work.contextUid, how == kAsKernel) ? how : uint64_t{kUntimed};
}

void returnRoom(Client& client, const SondeWork& work) {
  if (isCdp(work)) {
    client.deviceBuffers.releaseCdp(work.contextUid);
  } else if (client.deviceBuffers.release(work.contextUid)) {
    wakeDelivery(client);
  }
}

uint64_t decide(const SondeWork& work, bool enqueueing) {
  uint64_t word = 0;
  forEachClient(candidates(work), [&](Client& client) {
    const uint32_t kind = wantedKind(client, work);
    if (kind == 0) return;
    uint64_t how = kind == CUPTI_ACTIVITY_KIND_KERNEL ? kAsKernel : kWanted;
    if (enqueueing) how = reserveRoom(client, work, how);
    word |= how << (2 * client.index);
  });
  return word;
}

void append(ThreadState& thread, Client& client, const SondeWork& work, bool asKernel) {
  switch (work.kind) {
    case SONDE_WORK_KERNEL:
      if (isCdp(work)) {
        client.append(thread, cdpKernelRecord(client, work));
        break;
      }
      client.append(
          thread,
          kernelRecord(client, work, asKernel ? CUPTI_ACTIVITY_KIND_KERNEL : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
      break;
    case SONDE_WORK_MEMCPY: client.append(thread, memcpyRecord(client, work)); break;
    case SONDE_WORK_MEMCPY_PEER: client.append(thread, peerCopyRecord(client, work)); break;
    case SONDE_WORK_MEMSET: client.append(thread, memsetRecord(client, work)); break;
    case SONDE_WORK_EVENT_RECORD: client.append(thread, cudaEventRecord(client, work)); break;
    case SONDE_WORK_GRAPH: client.append(thread, graphRecord(client, work)); break;
    default: break;
  }
}

struct Unfinished {
  SondeWork work;
  uint32_t reported;  // clients that got the unfinished form
};

// Several tables, so that launching threads seldom meet.
struct Table {
  std::mutex mutex;
  std::map<uint64_t, Unfinished> work;  // by number: in the order of enqueueing
};
constexpr unsigned kTables = 16;
Table& tableOf(uint64_t number) {
  static Table* const tables = new Table[kTables];
  return tables[number % kTables];
}
std::atomic<uint64_t> nextNumber{1};
static_assert(sizeof(std::pair<uint64_t, Unfinished>) + 4 * sizeof(void*) <= DeviceBuffers::kSlotBytes);

// Some client has a slot for it: not all are without or untimed.
bool hasRoom(uint64_t word) {
  constexpr uint64_t kLow = kWantedMask / 3;
  return ((word ^ word >> 1) & kLow) != 0;
}

// listenerWord3: the serial of the thread that launched the work, and above it how many lives clients had begun by
// then.
constexpr unsigned kLifeShift = 40;
constexpr uint32_t kLifeMask = (1u << (64 - kLifeShift)) - 1;
std::atomic<uint32_t> lives{0};

uint64_t launcherOf(const SondeWork& work) { return work.listenerWord3 & ((uint64_t{1} << kLifeShift) - 1); }

// Enqueued in the life that the client lives, and not in an earlier one.
bool ofThisLife(const Client& client, const SondeWork& work) {
  if (work.listenerWord3 == 0) return true;  // the platform does not know
  const auto then = static_cast<uint32_t>(work.listenerWord3 >> kLifeShift);
  return ((then - client.life.load(std::memory_order_relaxed)) & kLifeMask) <= kLifeMask / 2;
}

// With a buffer for each thread, records of work go to that of the thread which
// launched it.
void noteLauncher(SondeWork& work, uint64_t word) {
  if (work.size < offsetof(SondeWork, listenerWord3) + sizeof work.listenerWord3) return;
  ThreadState& thread = threadState();
  work.listenerWord3 = thread.serial | uint64_t{lives.load(std::memory_order_acquire) & kLifeMask} << kLifeShift;
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    const bool wanted = (word >> (2 * i) & 3) != 0 || (work.listenerWord2 >> (4 * i) & 15) != 0;
    if (wanted && clients()[i].perThreadBuffers.load(std::memory_order_relaxed)) clients()[i].haveQueue(thread);
  }
}

}  // namespace

uint32_t newLife() { return (lives.fetch_add(1, std::memory_order_acq_rel) + 1) & kLifeMask; }

void workEnqueued(void*, SondeWork* work) {
  uint64_t word = decide(*work, true);
  if (work->kind == SONDE_WORK_KERNEL && platformCountsInstructions()) {
    work->listenerWord2 = sourceLevelWanted(*work);
    work->countInstructions = work->listenerWord2 != 0;
  }
  if ((word & kWantedMask) != 0 || work->listenerWord2 != 0) noteLauncher(*work, word);
  if (hasRoom(word)) {
    const uint64_t number = nextNumber.fetch_add(1, std::memory_order_relaxed) % kNumberMask + 1;
    word |= number << kNumberShift;
    if (platformKeepsPending()) {
      work->listenerWord = word | kDecided;
      return;
    }
    Unfinished unfinished{};
    std::memcpy(&unfinished.work, work, std::min<size_t>(work->size, sizeof unfinished.work));
    unfinished.work.name = intern(work->name);
    unfinished.work.accessPolicy = internAccessPolicy(*work);
    unfinished.work.start = unfinished.work.end = 0;
    unfinished.work.listenerWord = word & kWantedMask;
    Table& table = tableOf(number);
    std::lock_guard lock(table.mutex);
    table.work.emplace(number, unfinished);
  }
  work->listenerWord = word | kDecided;
}

void workCompleted(void*, const SondeWork* work) {
  const bool noted = work->size >= offsetof(SondeWork, listenerWord) + sizeof work->listenerWord &&
                     (work->listenerWord & kDecided) != 0;
  const uint64_t word = noted ? work->listenerWord & ~kDecided : decide(*work, false);
  const bool sourceLevel = noted &&
                           work->size >= offsetof(SondeWork, instructionCount) + sizeof work->instructionCount &&
                           work->instructionCount != 0;
  const bool knowsLauncher = noted && work->size >= offsetof(SondeWork, listenerWord3) + sizeof work->listenerWord3 &&
                             work->listenerWord3 != 0;
  const uint64_t instructions = sourceLevel ? work->listenerWord2 : 0;
  if ((word & kWantedMask) == 0 && instructions == 0) return;
  if (noted && word >> kNumberShift != 0 && !platformKeepsPending()) {
    const uint64_t number = word >> kNumberShift;
    Table& table = tableOf(number);
    std::lock_guard lock(table.mutex);
    table.work.erase(number);
  }
  ThreadState& thread = threadState();
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    const uint32_t how = (word >> (2 * i)) & 3;
    const auto kinds = static_cast<uint32_t>(instructions >> (4 * i) & 15);
    Client& client = clients()[i];
    if ((how == kUnwanted && kinds == 0) || !client.inUse()) continue;
    if (knowsLauncher && !ofThisLife(client, *work)) continue;
    const uint64_t owner = knowsLauncher && launcherOf(*work) != thread.serial ? launcherOf(*work) : 0;
    // Known to whoever sees the record.
    client.haveQueue(thread);
    if (ThreadQueue* queue = thread.queue[i]) queue->ofDevice.store(true, std::memory_order_release);
    thread.recordOwner = owner;
    if (how == kUnwanted) {
      // The kernel itself is not recorded.
    } else if (how == kUntimed) {
      SondeWork untimed = *work;
      untimed.start = untimed.end = untimed.queued = untimed.submitted = 0;
      append(thread, client, untimed, false);
    } else {
      append(thread, client, *work, how == kAsKernel);
      thread.recordOwner = 0;  // client code may run now
      if (client.needsBuffer.load(std::memory_order_relaxed)) [[unlikely]]
        offerBuffer(client, thread);
      if (noted) returnRoom(client, *work);
    }
    thread.recordOwner = owner;
    if (kinds != 0) appendSourceLevel(thread, client, *work, kinds);
    thread.recordOwner = 0;
  }
}

void trackAllocation(ThreadState& thread, Client& client, const SondeResource& event) {
  if (event.memoryOp == 1) {
    std::lock_guard lock(client.reportedMutex);
    client.allocations[event.address] = {client.toClientTime(event.time),
                                         event.bytes,
                                         event.memoryKind,
                                         event.deviceId,
                                         event.contextUid,
                                         pcOf(event),
                                         variableName(event),
                                         false};
    return;
  }
  Client::Allocation made;
  {
    std::lock_guard lock(client.reportedMutex);
    auto found = client.allocations.find(event.address);
    if (found == client.allocations.end()) return;  // made before the kind was on
    made = found->second;
    client.allocations.erase(found);
  }
  CUpti_ActivityMemory record = memoryRecord(event.address, made);
  record.end = client.toClientTime(event.time);
  record.freePC = pcOf(event);
  client.append(thread, record);
}

void allocationsGo(ThreadState& thread, Client& client, uint32_t contextUid) {
  std::map<uint64_t, Client::Allocation> left;
  {
    std::lock_guard lock(client.reportedMutex);
    std::erase_if(client.allocations, [&](const auto& entry) {
      if (contextUid != 0 && entry.second.contextUid != contextUid) return false;
      if (!entry.second.reported) left.insert(entry);
      return true;
    });
  }
  for (const auto& [address, allocation] : left) client.append(thread, memoryRecord(address, allocation));
}

void reportUnfinished(Client& client) {
  ThreadState& thread = threadState();
  const uint32_t bit = 1u << client.index;
  std::map<uint64_t, SondeWork> found;
  if (platformKeepsPending()) {
    struct Visit {
      Client& client;
      std::map<uint64_t, SondeWork>& found;
      std::lock_guard<std::mutex> lock;
      std::set<uint64_t> still;
    } visit{client, found, std::lock_guard<std::mutex>(client.reportedMutex), {}};
    attachedPlatform()->pendingWork(
        [](void* self, const SondeWork* work) {
          auto& v = *static_cast<Visit*>(self);
          const uint64_t how = (work->listenerWord >> (2 * v.client.index)) & 3;
          if (how == kUnwanted || how == kUntimed || !ofThisLife(v.client, *work)) return;
          const uint64_t number = (work->listenerWord & ~kDecided) >> kNumberShift;
          v.still.insert(number);
          if (v.client.unfinishedReported.count(number) == 0) v.found.emplace(number, *work);
        },
        &visit);
    client.unfinishedReported.swap(visit.still);
  }
  for (unsigned i = 0; i < kTables; ++i) {
    Table& table = tableOf(i);
    std::lock_guard lock(table.mutex);
    for (auto& [number, unfinished] : table.work) {
      const uint64_t how = (unfinished.work.listenerWord >> (2 * client.index)) & 3;
      if (how == kUnwanted || how == kUntimed || !ofThisLife(client, unfinished.work)) continue;
      if ((unfinished.reported & bit) != 0) continue;
      unfinished.reported |= bit;
      found.emplace(number, unfinished.work);
    }
  }
  for (const auto& [number, work] : found) {
    append(thread, client, work, ((work.listenerWord >> (2 * client.index)) & 3) == 2);
  }
  std::map<uint64_t, Client::Allocation> live;
  {
    std::lock_guard lock(client.reportedMutex);
    for (auto& [address, allocation] : client.allocations) {
      if (allocation.reported) continue;
      allocation.reported = true;
      live.emplace(address, allocation);
    }
  }
  for (const auto& [address, allocation] : live) client.append(thread, memoryRecord(address, allocation));
}

void lockWork() {
  for (unsigned i = 0; i < kTables; ++i) tableOf(i).mutex.lock();
}
void unlockWork() {
  for (unsigned i = kTables; i-- > 0;) tableOf(i).mutex.unlock();
}
void forgetWork() {
  for (unsigned i = 0; i < kTables; ++i) tableOf(i).work.clear();
}

}  // namespace sonde::core
