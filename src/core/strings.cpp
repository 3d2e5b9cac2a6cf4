// SPDX-License-Identifier: Apache-2.0
#include "core/strings.h"

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>

namespace sonde::core {
namespace {

// A small cache per thread, keyed by the address of the given string and
// verified by its content.
struct CacheEntry {
  const char* from;
  const char* to;
};
constexpr size_t kCacheSize = 64;
struct Cache {
  CacheEntry entries[kCacheSize] = {};
  Cache* nextFree = nullptr;
};

struct Table {
  std::shared_mutex mutex;
  std::unordered_set<std::string> texts;  // node based: addresses are stable
  std::deque<Cache> caches;
  Cache* freeCaches = nullptr;
};

// Lives for ever: clients read names while static objects are destroyed.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

// Not in the thread-local block, which has to fit into what the loader keeps
// free for libraries opened late. When a thread ends, a later one takes its
// cache over: what it says is true for all.
thread_local Cache* cache = nullptr;

// Later calls of the same thread (from destructors of other keys) take another.
void threadEnds(void* data) {
  cache = nullptr;
  Table& t = table();
  std::unique_lock lock(t.mutex);
  auto* free = static_cast<Cache*>(data);
  free->nextFree = t.freeCaches;
  t.freeCaches = free;
}

Cache* takeCache() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, threadEnds);
    return made;
  }();
  Table& t = table();
  {
    std::unique_lock lock(t.mutex);
    cache = t.freeCaches ? t.freeCaches : &t.caches.emplace_back();
    t.freeCaches = cache->nextFree;
  }
  pthread_setspecific(key, cache);
  return cache;
}

}  // namespace

const char* intern(std::string_view text) {
  Table& t = table();
  std::string key(text);
  {
    std::shared_lock lock(t.mutex);
    auto found = t.texts.find(key);
    if (found != t.texts.end()) return found->c_str();
  }
  std::unique_lock lock(t.mutex);
  return t.texts.insert(std::move(key)).first->c_str();
}

const char* intern(const char* text) {
  if (text == nullptr) return nullptr;
  Cache& mine = cache ? *cache : *takeCache();
  CacheEntry& entry = mine.entries[(reinterpret_cast<uintptr_t>(text) >> 3) % kCacheSize];
  if (entry.from == text && std::strcmp(entry.to, text) == 0) return entry.to;
  const char* kept = intern(std::string_view(text));
  entry = {text, kept};
  return kept;
}

void lockStrings() { table().mutex.lock(); }
void unlockStrings() { table().mutex.unlock(); }

}  // namespace sonde::core
