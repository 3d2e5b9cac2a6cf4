// SPDX-License-Identifier: Apache-2.0
//
// Compiled code on disk, shared by processes: one file for each key, written
// aside and renamed, so that a reader sees all of it or nothing. What was not
// used for longest goes when there is too much.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::softgpu::jit {

class ObjectCache {
 public:
  // $SONDE_CACHE_DIR, else $XDG_CACHE_HOME/sonde, else ~/.cache/sonde; set but
  // empty SONDE_CACHE_DIR, or CUDA_CACHE_DISABLE=1: no cache. CUDA_CACHE_MAXSIZE:
  // its limit in bytes (1 GiB).
  static ObjectCache& get();
  // `directory` empty: no cache. It is made when it is not there.
  ObjectCache(std::string directory, uint64_t limit);
  // Names the build that made the code: another one never reuses it.
  static const std::string& buildIdentity();

  bool load(const std::string& key, std::string& meta, std::string& object);
  // Failures are silent: 0. Otherwise the file's size.
  uint64_t store(const std::string& key, std::string_view meta, std::string_view object);
  std::string fileOf(const std::string& key) const;  // empty: no cache
  static uint64_t fileBytes(std::string_view meta, std::string_view object);

 private:
  void makeRoom();
  std::string directory_;
  const uint64_t limit_;
  std::atomic<uint64_t> storedSince_{~uint64_t{0} / 2};  // bytes since the sizes were looked at; at first: too many
};

}  // namespace sonde::softgpu::jit
