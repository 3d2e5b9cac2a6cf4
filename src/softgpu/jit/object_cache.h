// SPDX-License-Identifier: Apache-2.0
//
// Compiled code on disk, shared by processes: one file for each key, written
// aside and renamed, so that a reader sees all of it or nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::softgpu::jit {

class ObjectCache {
 public:
  // $SONDE_CACHE_DIR, else $XDG_CACHE_HOME/sonde, else ~/.cache/sonde; set but
  // empty SONDE_CACHE_DIR: no cache.
  static ObjectCache& get();
  // Names the build that made the code: another one never reuses it.
  static const std::string& buildIdentity();

  bool load(const std::string& key, std::string& meta, std::string& object);
  // Failures are silent: 0. Otherwise the file's size.
  uint64_t store(const std::string& key, std::string_view meta, std::string_view object);
  std::string fileOf(const std::string& key) const;  // empty: no cache
  static uint64_t fileBytes(std::string_view meta, std::string_view object);

 private:
  ObjectCache();
  std::string directory_;
};

}  // namespace sonde::softgpu::jit
