// SPDX-License-Identifier: Apache-2.0
// Loads client_plugin.cpp as one more client of the library under test.
#ifndef SONDE_TESTS_CUPTI_PLUGIN_H_
#define SONDE_TESTS_CUPTI_PLUGIN_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace testing_support {

class Plugin {
 public:
  // `path`: PLUGIN_A, PLUGIN_B or PLUGIN_6050.
  Plugin(Plugin&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Plugin& operator=(Plugin&& other) noexcept {
    close();
    handle_ = std::exchange(other.handle_, nullptr);
    return *this;
  }
  explicit Plugin(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(nullptr, handle_) << dlerror();
  }
  ~Plugin() { close(); }
  void close() {
    if (handle_ != nullptr) dlclose(handle_);
    handle_ = nullptr;
  }
  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle_, name));
    EXPECT_NE(nullptr, function) << name;
    return function != nullptr ? function(arguments...) : -1;
  }
  uint32_t records(uint32_t kind) { return static_cast<uint32_t>(call("pluginRecords", kind)); }

 private:
  void* handle_;
};

}  // namespace testing_support

#endif  // SONDE_TESTS_CUPTI_PLUGIN_H_
