// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/object_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace sonde::softgpu::jit {

namespace {

struct Header {
  char magic[8];
  uint64_t metaBytes, objectBytes, check;
};
constexpr char kMagic[8] = {'S', 'O', 'N', 'D', 'E', 'O', 'B', '1'};

uint64_t checksum(std::string_view a, std::string_view b) {
  uint64_t h = 0xcbf29ce484222325u;
  for (std::string_view part : {a, b})
    for (char c : part) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace

ObjectCache& ObjectCache::get() {
  static ObjectCache* cache = [] {
    uint64_t limit = uint64_t{1} << 30;
    std::string directory;
    const char* disable = std::getenv("CUDA_CACHE_DISABLE");
    const bool enabled = disable == nullptr || std::strtol(disable, nullptr, 10) == 0;
    if (const char* dir = std::getenv("SONDE_CACHE_DIR")) {
      directory = dir;
    } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
      directory = std::string(xdg) + "/sonde";
    } else if (const char* home = std::getenv("HOME"); home && *home) {
      directory = std::string(home) + "/.cache/sonde";
    }
    if (const char* most = std::getenv("CUDA_CACHE_MAXSIZE")) {
      char* end = nullptr;
      const unsigned long long bytes = std::strtoull(most, &end, 10);
      if (end != most && *end == 0) limit = bytes;
    }
    return new ObjectCache(enabled ? directory : "", limit);
  }();
  return *cache;
}

ObjectCache::ObjectCache(std::string directory, uint64_t limit) : directory_(std::move(directory)), limit_(limit) {
  std::error_code ec;
  if (limit_ == 0) directory_.clear();
  if (directory_.empty()) return;
  std::filesystem::create_directories(directory_, ec);
  if (ec) directory_.clear();
}

const std::string& ObjectCache::buildIdentity() {
  static const std::string* identity = [] {
    auto* s = new std::string("?");
    Dl_info info{};
    struct stat st{};
    if (dladdr(reinterpret_cast<const void*>(&ObjectCache::get), &info) && info.dli_fname &&
        stat(info.dli_fname, &st) == 0)
      *s = std::to_string(st.st_size) + "." + std::to_string(st.st_mtim.tv_sec) + "." +
           std::to_string(st.st_mtim.tv_nsec);
    return s;
  }();
  return *identity;
}

bool ObjectCache::load(const std::string& key, std::string& meta, std::string& object) {
  if (directory_.empty()) return false;
  std::ifstream in(directory_ + "/" + key, std::ios::binary);
  Header h{};
  if (!in.read(reinterpret_cast<char*>(&h), sizeof h) || std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) return false;
  if (h.metaBytes > (64u << 20) || h.objectBytes > (512u << 20)) return false;
  meta.resize(h.metaBytes);
  object.resize(h.objectBytes);
  if (!in.read(meta.data(), static_cast<std::streamsize>(h.metaBytes)) ||
      !in.read(object.data(), static_cast<std::streamsize>(h.objectBytes)))
    return false;
  if (checksum(meta, object) != h.check) return false;
  utimensat(AT_FDCWD, (directory_ + "/" + key).c_str(), nullptr, 0);  // used just now
  return true;
}

// Other processes do the same at the same time: a file that is gone is gone.
void ObjectCache::makeRoom() {
  namespace fs = std::filesystem;
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t sum = 0;
  std::error_code ec;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator at(directory_, ec), end; !ec && at != end; at.increment(ec)) {
    std::error_code gone;
    const uint64_t bytes = at->file_size(gone);
    const auto used = gone ? now : at->last_write_time(gone);
    if (gone || !at->is_regular_file(gone)) continue;
    // What a process that died was writing.
    if (at->path().has_extension() && now - used > std::chrono::hours(1)) {
      fs::remove(at->path(), gone);
      continue;
    }
    entries.push_back({used, bytes, at->path()});
    sum += bytes;
  }
  if (sum <= limit_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& e : entries) {
    if (sum <= limit_ - limit_ / 8) break;
    fs::remove(e.path, ec);
    sum -= e.bytes;
  }
}

std::string ObjectCache::fileOf(const std::string& key) const {
  return directory_.empty() ? std::string() : directory_ + "/" + key;
}

uint64_t ObjectCache::fileBytes(std::string_view meta, std::string_view object) {
  return sizeof(Header) + meta.size() + object.size();
}

uint64_t ObjectCache::store(const std::string& key, std::string_view meta, std::string_view object) {
  if (directory_.empty()) return 0;
  const std::string path = fileOf(key);
  std::string temporary = path + ".XXXXXX";
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return 0;
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  h.metaBytes = meta.size();
  h.objectBytes = object.size();
  h.check = checksum(meta, object);
  bool ok = true;
  auto put = [&](const void* data, size_t n) {
    const char* p = static_cast<const char*>(data);
    while (ok && n) {
      const ssize_t w = write(fd, p, n);
      if (w <= 0)
        ok = false;
      else
        p += w, n -= static_cast<size_t>(w);
    }
  };
  put(&h, sizeof h);
  put(meta.data(), meta.size());
  put(object.data(), object.size());
  close(fd);
  if (!ok || rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return 0;
  }
  const uint64_t bytes = fileBytes(meta, object);
  if (storedSince_.fetch_add(bytes) + bytes >= limit_ / 16) {
    storedSince_.store(0);
    makeRoom();
  }
  return bytes;
}

}  // namespace sonde::softgpu::jit
