// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/cache_run.h"

#include <algorithm>
#include <chrono>

namespace sonde::softgpu::exec {

namespace {

constexpr uint32_t kMostGroups = 8;
constexpr size_t kFreeModels = 4;

// Buffers of the thread for what L1 lets through.
std::vector<uint64_t>* parts() {
  thread_local std::vector<uint64_t> buffers[kMostGroups];
  for (auto& b : buffers) b.clear();
  return buffers;
}

}  // namespace

CacheRun::CacheRun(CacheModel& model, uint32_t smCount, std::span<const uint32_t> sms, uint32_t threads, bool mayWait,
                   const std::atomic<bool>& failed)
    : model_(model),
      used_(sms.empty() ? smCount : static_cast<uint32_t>(sms.size())),
      groups_(std::clamp(threads, 1u, kMostGroups)),
      mayWait_(mayWait),
      failed_(failed),
      sms_(std::make_unique<Lane[]>(used_)),
      slices_(std::make_unique<Lane[]>(groups_)) {
  for (uint32_t i = 0; i < used_; ++i) {
    sms_[i].sm = static_cast<int32_t>(sms.empty() ? i : sms[i]);
    sms_[i].place = i;
  }
  model_.reset();
}

CacheRun::~CacheRun() = default;

void CacheRun::progressed() {
  if (waiting_.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(roomMutex_);
  room_.notify_all();
}

void CacheRun::process(Lane& lane, uint64_t index, const uint64_t* entries, size_t n) {
  if (lane.sm < 0) {
    model_.throughL2(entries, n);
    return;
  }
  const auto sm = static_cast<uint32_t>(lane.sm);
  std::vector<uint64_t>* buffers = parts();
  model_.throughL1(sm, entries, n, buffers, groups_);
  for (uint32_t g = 0; g < groups_; ++g)
    inOrder(slices_[g], index * used_ + lane.place, buffers[g].data(), buffers[g].size());
}

// Processes this piece and those behind it if it is its turn and nobody is at
// work; else leaves it to whoever is, or will be.
void CacheRun::inOrder(Lane& lane, uint64_t index, const uint64_t* entries, size_t n) {
  std::unique_lock lock(lane.mutex);
  if (lane.busy || index != lane.next) {
    lane.pending.emplace(index, std::vector<uint64_t>(entries, entries + n));
    pendingBytes_.fetch_add(n * sizeof *entries, std::memory_order_relaxed);
    if (lane.busy) return;
  } else {
    lane.busy = true;
    lock.unlock();
    process(lane, index, entries, n);
    lock.lock();
    ++lane.next;
    lane.busy = false;
  }
  drain(lane, lock);
}

void CacheRun::drain(Lane& lane, std::unique_lock<std::mutex>& lock) {
  lane.busy = true;
  while (!lane.pending.empty() && lane.pending.begin()->first == lane.next) {
    auto node = lane.pending.extract(lane.pending.begin());
    lock.unlock();
    process(lane, node.key(), node.mapped().data(), node.mapped().size());
    pendingBytes_.fetch_sub(node.mapped().size() * sizeof(uint64_t), std::memory_order_relaxed);
    lock.lock();
    ++lane.next;
  }
  lane.busy = false;
  lane.idle.notify_all();
}

template <class F>
void CacheRun::outOfOrder(Lane& lane, F&& work) {
  std::unique_lock lock(lane.mutex);
  lane.idle.wait(lock, [&] { return !lane.busy; });
  lane.busy = true;
  lock.unlock();
  work();
  lock.lock();
  drain(lane, lock);
}

void CacheRun::finish(uint64_t block, CacheLog& log) {
  if (!mayWait_ && pendingBytes_.load(std::memory_order_relaxed) > kMostPending && !log.entries.empty()) {
    now(block, log);
    log.entries.clear();
  }
  inOrder(sms_[block % used_], block / used_, log.entries.data(), log.entries.size());
  log.entries.clear();
  progressed();
}

void CacheRun::now(uint64_t block, const CacheLog& log) {
  std::vector<uint64_t> buffers[kMostGroups];
  Lane& lane = sms_[block % used_];
  const auto sm = static_cast<uint32_t>(lane.sm);
  outOfOrder(lane, [&] { model_.throughL1(sm, log.entries.data(), log.entries.size(), buffers, groups_); });
  for (uint32_t g = 0; g < groups_; ++g)
    outOfOrder(slices_[g], [&] { model_.throughL2(buffers[g].data(), buffers[g].size()); });
}

bool CacheRun::first(uint64_t block) {
  for (uint32_t g = 0; g < groups_; ++g) {
    std::lock_guard lock(slices_[g].mutex);
    if (slices_[g].next != block) return false;
  }
  return true;
}

void CacheRun::flush(uint64_t block, CacheLog& log) {
  if (mayWait_ && !first(block)) {
    waiting_.fetch_add(1);
    std::unique_lock lock(roomMutex_);
    while (mayWait_ && !failed_.load(std::memory_order_relaxed) && !first(block))
      room_.wait_for(lock, std::chrono::milliseconds(2));
    waiting_.fetch_sub(1);
  }
  now(block, log);
  log.entries.clear();
}

void CacheRun::waitForRoom() {
  if (!mayWait_ || pendingBytes_.load(std::memory_order_relaxed) <= kMostPending) return;
  waiting_.fetch_add(1);
  std::unique_lock lock(roomMutex_);
  while (mayWait_ && !failed_.load(std::memory_order_relaxed) &&
         pendingBytes_.load(std::memory_order_relaxed) > kMostPending / 2)
    room_.wait_for(lock, std::chrono::milliseconds(2));
  waiting_.fetch_sub(1);
}

CachePool& CachePool::get() {
  static CachePool* pool = new CachePool();  // outlives static destructors
  return *pool;
}

std::unique_ptr<CacheModel> CachePool::take(const model::DeviceModel& device) {
  {
    std::lock_guard lock(mutex_);
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if ((*it)->fits(device)) {
        auto found = std::move(*it);
        free_.erase(it);
        return found;
      }
  }
  return std::make_unique<CacheModel>(device);
}

void CachePool::give(std::unique_ptr<CacheModel> model) {
  std::lock_guard lock(mutex_);
  if (free_.size() >= kFreeModels) free_.erase(free_.begin());
  free_.push_back(std::move(model));
}

}  // namespace sonde::softgpu::exec
