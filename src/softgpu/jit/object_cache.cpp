// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/object_cache.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

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
  static ObjectCache* cache = new ObjectCache();
  return *cache;
}

ObjectCache::ObjectCache() {
  namespace fs = std::filesystem;
  std::error_code ec;
  if (const char* dir = std::getenv("SONDE_CACHE_DIR")) {
    if (!*dir) return;
    directory_ = dir;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    directory_ = std::string(xdg) + "/sonde";
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    directory_ = std::string(home) + "/.cache/sonde";
  } else {
    return;
  }
  fs::create_directories(directory_, ec);
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
  return checksum(meta, object) == h.check;
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
  if (ok && rename(temporary.c_str(), path.c_str()) == 0) return fileBytes(meta, object);
  unlink(temporary.c_str());
  return 0;
}

}  // namespace sonde::softgpu::jit
