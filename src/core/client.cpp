// SPDX-License-Identifier: Apache-2.0
#include "core/client.h"

#include <cstdlib>
#include <utility>

#include "core/caller.h"
#include "core/core.h"
#include "core/delivery.h"
#include "core/errors.h"
#include "core/pass.h"
#include "core/work.h"

namespace sonde::core {
namespace {

// Defaults of CUPTI 13.0, by CUpti_ActivityAttribute.
constexpr uint64_t kAttributeDefaults[kAttributeCount] = {
    3200000, 8388608, 250, 25000, 250, 0, 3, 3, 0, 1, 16777216,
};

bool singleClient() {
  static const bool single = [] {
    const char* text = std::getenv("SONDE_SINGLE_CLIENT");
    return text != nullptr && text[0] != 0 && text[0] != '0';
  }();
  return single;
}

// What a client has unless it asks for something else.
const Layouts* startLayouts() {
  static const Layouts* const chosen = [] {
    auto* layouts = new Layouts;
    if (const char* list = std::getenv("SONDE_RECORD_LAYOUT")) {
      std::string error;
      if (!parseLayouts(list, layouts, &error)) warn("SONDE_RECORD_LAYOUT: %s", error.c_str());
    }
    return layouts;
  }();
  return chosen;
}

// Gives the slot a new life for the object. The registry lock is held.
void begin(Client& client, const CallerObject& object) {
  client.base = object.base;
  client.begin.store(object.begin);
  client.end.store(object.end);
  client.manual6050 = false;
  for (uint32_t domain = 0; domain < kDomainCount; ++domain) client.callbackOn[domain].assign(cbidCount(domain), 0);
  for (uint32_t domain = 1; domain <= 2; ++domain) client.apiRecordOn[domain].assign(cbidCount(domain), 0);
  client.kinds = client.anyKinds = 0;
  client.contexts = nullptr;
  client.clock = nullptr;
  client.systemThreadIds = false;
  client.latencyTimestamps = client.eventTimestamps = client.allSyncRecords = false;
  for (auto& kinds : client.unifiedMemory) kinds = 0;
  client.unifiedMemoryOfAll = 0;
  client.launchAttributes = false;
  client.allocationSource = false;
  client.buffers = nullptr;
  client.flushPeriodMs = 0;
  client.computeCrc = nullptr;
  client.enqueued.clear();
  client.nextSample = 0;
  for (uint32_t i = 0; i < kAttributeCount; ++i) client.attributes[i] = kAttributeDefaults[i];
  client.deviceBuffers.reset();
  client.applyAttributes();
  client.layouts.store(startLayouts());
  {
    std::lock_guard lock(client.reportedMutex);
    client.reported.clear();
    client.allocations.clear();
    client.unfinishedReported.clear();
    client.locators.clear();
  }
  client.life.store(newLife());
  client.generation.fetch_add(1);
}

Client* findByBase(uintptr_t base) {
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    if (clients()[i].inUse() && clients()[i].base == base) return &clients()[i];
  }
  return nullptr;
}

Client* onlyClient() {
  Client* only = nullptr;
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    if (!clients()[i].inUse()) continue;
    if (only != nullptr) return nullptr;
    only = &clients()[i];
  }
  return only;
}

Client* findClient(const void* returnAddress, bool create) {
  ThreadState& thread = threadState();
  const void* code = singleClient() ? nullptr : callingCode(returnAddress);
  const auto address = reinterpret_cast<uintptr_t>(code);
  if (address >= thread.callerBegin && address < thread.callerEnd) {
    Client& client = clients()[thread.callerClient];
    if (client.generation.load(std::memory_order_acquire) == thread.callerGeneration) return &client;
  }
  CallerObject object;
  if (singleClient()) {
    object.end = UINTPTR_MAX;
  } else {
    object = findCaller(code);
  }
  Client* client;
  {
    std::lock_guard lock(registryMutex());
    client = findByBase(object.base);
  }
  if (client == nullptr && (!create || isSystemLibrary(object))) {
    client = onlyClient();
    if (client != nullptr || !create) return client;
  }
  if (client == nullptr) {
    // From now on its callbacks must stay callable.
    pinCaller(object);
    std::lock_guard lock(registryMutex());
    client = findByBase(object.base);
    for (uint32_t i = 0; client == nullptr && i < kMaxClients; ++i) {
      if (clients()[i].inUse()) continue;
      client = &clients()[i];
      begin(*client, object);
    }
    if (client == nullptr) return nullptr;
  }
  thread.callerBegin = object.begin;
  thread.callerEnd = object.end;
  thread.callerClient = client->index;
  thread.callerGeneration = client->generation.load(std::memory_order_acquire);
  return client;
}

}  // namespace

Client* clients() {
  static Client* const slots = [] {
    auto* made = new Client[kMaxClients];
    for (uint32_t i = 0; i < kMaxClients; ++i) made[i].index = i;
    return made;
  }();
  return slots;
}

Client* callingClient(const void* returnAddress) {
  Client* client = findClient(returnAddress, true);
  if (client == nullptr) {
    fail(CUPTI_ERROR_OUT_OF_MEMORY, "%u clients use this library already; one must call cuptiFinalize first",
         kMaxClients);
  }
  return client;
}

Client* existingClient(const void* returnAddress) { return findClient(returnAddress, false); }

void finalizeClient(Client* client) {
  if (client == nullptr || !client->inUse()) return;
  const uint32_t generation = client->generation.load();
  client->flushPeriodMs = 0;
  client->computeCrc = nullptr;
  {
    std::lock_guard lock(registryMutex());
    client->subscription.store(nullptr);
    client->kinds = client->anyKinds = 0;
    client->contexts = nullptr;
    for (auto& table : client->callbackOn) table.assign(table.size(), 0);
    for (auto& table : client->apiRecordOn) table.assign(table.size(), 0);
  }
  updateWanted();
  waitForClientCode(client->index, 1000);
  deliver(*client, Deliver::kEverything);
  uint32_t expected = generation;
  if (!client->generation.compare_exchange_strong(expected, generation + 1)) return;  // another thread did
  client->buffers.store(nullptr);
  discardQueues(*client);
}

void Client::applyAttributes() {
  deviceBuffers.configure({attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE],
                           attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP],
                           attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT],
                           attributes[CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE]});
  perThreadBuffers.store(attributes[CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER] != 0);
  // CUPTI 6.5 has no such attribute and leaves the bytes alone.
  clearBuffers.store(attributes[CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER] == 0 && !manual6050);
}

bool Client::reportOnce(uint32_t kind, uint32_t id) {
  std::lock_guard lock(reportedMutex);
  return reported.insert(uint64_t{kind} << 32 | id).second;
}

void Client::reportLocator(uint32_t id, const char* file, uint32_t line, uint64_t launcher) {
  std::lock_guard lock(reportedMutex);
  if (!reported.insert(uint64_t{CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR} << 32 | id).second) return;
  Locator locator{};
  locator.record.kind = CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR;
  locator.record.id = id;
  locator.record.lineNumber = line;
  locator.record.fileName = file;
  locator.launcher = launcher;
  locators.push_back(locator);
}

void Client::forgetReported(uint32_t kind, uint32_t id) {
  std::lock_guard lock(reportedMutex);
  reported.erase(uint64_t{kind} << 32 | id);
}

ThreadQueue* Client::openQueue(ThreadState& thread, uint32_t g) {
  const bool tell = (kinds.load(std::memory_order_relaxed) & kindBit(CUPTI_ACTIVITY_KIND_OVERHEAD)) != 0;
  const uint64_t start = tell ? now() : 0;
  auto* queue = new (std::nothrow) ThreadQueue;
  if (queue == nullptr) {
    std::lock_guard lock(deliveryMutex);
    ++dropped;
    return nullptr;
  }
  if (thread.queue[index] != nullptr) thread.queue[index]->release(ThreadQueue::kThread);
  queue->thread = thread.serial;
  thread.queue[index] = queue;
  thread.queueGeneration[index] = g;
  std::unique_lock lock(deliveryMutex);
  if ((g & 1) == 0 || generation.load() != g) {
    // The client has ended: nobody will read this queue.
    queue->release(ThreadQueue::kClient);
    return queue;
  }
  if (lastQueue != nullptr) {
    lastQueue->next = queue;
  } else {
    queues = queue;
  }
  lastQueue = queue;
  queueOfThread[thread.serial] = queue;
  lock.unlock();
  if (tell) {
    const uint64_t owner = std::exchange(thread.recordOwner, 0);
    reportOverhead(*this, thread, CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, start);
    thread.recordOwner = owner;
  }
  return queue;
}

void Client::requestDelivery() { wakeDelivery(*this); }

void ClientClock::sample(uint64_t* platform, uint64_t* client) const {
  // Whoever is preempted between the readings would be wrong by that: the closest pair counts.
  constexpr uint64_t kClose = 300;  // ns
  uint64_t best = UINT64_MAX;
  for (int tries = 0; tries < 10 && best > kClose; ++tries) {
    const uint64_t before = now();
    const uint64_t reading = function_();
    const uint64_t gap = now() - before;
    if (gap >= best) continue;
    best = gap;
    *platform = before + gap / 2;
    *client = reading;
  }
}

ClientClock::ClientClock(CUpti_TimestampCallbackFunc function) : function_(function) { sample(&platform0_, &client0_); }

uint64_t ClientClock::convert(uint64_t time) {
  if (time == 0) return 0;
  constexpr uint64_t kRefresh = 10'000'000;  // ns between samples
  uint64_t platform0, client0, platform1, client1;
  {
    std::lock_guard lock(mutex_);
    platform0 = platform0_, client0 = client0_, platform1 = platform1_, client1 = client1_;
  }
  // The line through two readings is as good as they are far apart: until then each time is sampled anew. Client code
  // runs without the lock; two threads may sample at once.
  if (platform1 == 0 || time > platform1 + (platform1 - platform0 < kRefresh ? 0 : kRefresh)) {
    do {
      sample(&platform1, &client1);
    } while (platform1 < platform0 + 100'000);
    std::lock_guard lock(mutex_);
    if (platform1 > platform1_) platform1_ = platform1, client1_ = client1;
    platform1 = platform1_, client1 = client1_;
  }
  const auto delta = static_cast<__int128>(static_cast<int64_t>(time - platform1));
  const auto slope = static_cast<__int128>(static_cast<int64_t>(client1 - client0));
  return client1 +
         static_cast<uint64_t>(static_cast<int64_t>(delta * slope / static_cast<int64_t>(platform1 - platform0)));
}

}  // namespace sonde::core
