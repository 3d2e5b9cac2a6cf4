// SPDX-License-Identifier: Apache-2.0
#include "core/strings.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>

namespace sonde::core {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::unordered_set<std::string> texts;  // node based: addresses are stable
};

// Lives for ever: clients read names while static objects are destroyed.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

// A small cache per thread, keyed by the address of the given string and
// verified by its content.
struct CacheEntry {
  const char* from;
  const char* to;
};
constexpr size_t kCacheSize = 64;
// On the heap, one per thread that names anything: the library's thread-local
// block has to fit into what the loader keeps free for libraries opened late.
// Never freed, because a thread names things until its very end.
thread_local CacheEntry* cache = nullptr;

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
  if (cache == nullptr) cache = new CacheEntry[kCacheSize]();
  CacheEntry& entry = cache[(reinterpret_cast<uintptr_t>(text) >> 3) % kCacheSize];
  if (entry.from == text && std::strcmp(entry.to, text) == 0) return entry.to;
  const char* kept = intern(std::string_view(text));
  entry = {text, kept};
  return kept;
}

void lockStrings() { table().mutex.lock(); }
void unlockStrings() { table().mutex.unlock(); }

}  // namespace sonde::core
