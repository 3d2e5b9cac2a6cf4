// SPDX-License-Identifier: Apache-2.0
//
// Compiled code on disk: what processes share, what is broken, and its limit.
#include "softgpu/jit/object_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sonde::softgpu::jit {
namespace {

namespace fs = std::filesystem;

class ObjectCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "sonde-cache-XXXXXX").string();
    ASSERT_NE(nullptr, mkdtemp(folder_.data()));
  }
  void TearDown() override { fs::remove_all(folder_); }
  static std::string textOf(int key, size_t bytes) {
    std::string text(bytes, 0);
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(static_cast<size_t>(key) * 31 + i * 7);
    return text;
  }
  static bool has(ObjectCache& cache, int key, size_t bytes) {
    std::string meta, object;
    return cache.load("key" + std::to_string(key), meta, object) && meta == textOf(key, 100) &&
           object == textOf(key + 1, bytes);
  }
  static void put(ObjectCache& cache, int key, size_t bytes) {
    cache.store("key" + std::to_string(key), textOf(key, 100), textOf(key + 1, bytes));
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  std::string folder_;
};

TEST_F(ObjectCacheTest, ProcessesThatWriteTheSameKeysSeeWholeFilesOnly) {
  constexpr int kProcesses = 6, kRounds = 60, kKeys = 5;
  constexpr size_t kBytes = 300000;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ObjectCache cache(folder_, 1 << 30);
      for (int i = 0; i < kRounds; ++i) {
        const int key = (i * 7 + p) % kKeys;
        std::string meta, object;
        if (cache.load("key" + std::to_string(key), meta, object)) {
          if (meta != textOf(key, 100) || object != textOf(key + 1, kBytes)) _exit(1);
        }
        put(cache, key, kBytes);
        if (!has(cache, key, kBytes)) _exit(2);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(0, WEXITSTATUS(status));
  }
  EXPECT_EQ(static_cast<size_t>(kKeys), files());  // nothing half written is left
}

TEST_F(ObjectCacheTest, BrokenFilesAreNoneAndAreReplaced) {
  ObjectCache cache(folder_, 1 << 30);
  const std::string path = folder_ + "/key1";
  auto whole = [&] {
    put(cache, 1, 1000);
    return has(cache, 1, 1000);
  };
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{7}, uint64_t{31}, uint64_t{500}}) {
    ASSERT_TRUE(whole());
    fs::resize_file(path, bytes);
    EXPECT_FALSE(has(cache, 1, 1000)) << bytes;
  }
  for (const int place : {0, 9, 17, 25, 40, 700}) {  // each field of the head, and both parts
    ASSERT_TRUE(whole());
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(place);
    const char c = static_cast<char>(file.get() ^ 0x40);
    file.seekp(place);
    file.put(c);
    file.close();
    EXPECT_FALSE(has(cache, 1, 1000)) << place;
  }
  EXPECT_TRUE(whole());
  fs::remove(path);
  fs::create_directory(path);  // cannot be replaced
  put(cache, 1, 1000);
  EXPECT_FALSE(has(cache, 1, 1000));
  EXPECT_EQ(1u, files());
}

TEST_F(ObjectCacheTest, WhatWasNotUsedForLongestGoesWhenThereIsTooMuch) {
  constexpr size_t kBytes = 10000;
  ObjectCache first(folder_, 1 << 30);
  for (int key = 0; key < 10; ++key) put(first, key, kBytes);
  auto age = [&](const std::string& name, int hours) {
    fs::last_write_time(folder_ + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  for (int key = 0; key < 10; ++key) age("key" + std::to_string(key), 20 - key);
  EXPECT_TRUE(has(first, 0, kBytes));  // the oldest file, but used now
  std::ofstream(folder_ + "/key3.a1b2c3") << "half";
  std::ofstream(folder_ + "/key4.d4e5f6") << "somebody writes it";
  age("key3.a1b2c3", 2);

  ObjectCache second(folder_, 60000);
  put(second, 10, kBytes);
  EXPECT_TRUE(has(second, 10, kBytes));
  EXPECT_TRUE(has(second, 0, kBytes));
  for (int key = 1; key < 7; ++key) EXPECT_FALSE(has(second, key, kBytes)) << key;
  for (int key = 7; key < 10; ++key) EXPECT_TRUE(has(second, key, kBytes)) << key;
  EXPECT_FALSE(fs::exists(folder_ + "/key3.a1b2c3"));
  EXPECT_TRUE(fs::exists(folder_ + "/key4.d4e5f6"));
}

TEST_F(ObjectCacheTest, WithoutAFolderOrRoomNothingIsKept) {
  ObjectCache none("", 1 << 30), zero(folder_, 0);
  for (ObjectCache* cache : {&none, &zero}) {
    put(*cache, 1, 10);
    EXPECT_FALSE(has(*cache, 1, 10));
  }
  EXPECT_EQ(0u, files());
}

}  // namespace
}  // namespace sonde::softgpu::jit
