// SPDX-License-Identifier: Apache-2.0
// The `sonde` of the build with the libraries of the build, in a folder of its
// own for all that it keeps.
#ifndef SONDE_TESTS_CLI_BUILT_PRODUCT_H_
#define SONDE_TESTS_CLI_BUILT_PRODUCT_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "process.h"

namespace sonde::test {

class BuiltProduct : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    folder_ = (fs::temp_directory_path() / "sonde-product-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    fs::create_directories(folder_ + "/lib64/softgpu");
    fs::create_directories(folder_ + "/tmp");
    fs::create_directories(folder_ + "/state");
    fs::create_symlink(COLLECTOR, folder_ + "/lib64/libsonde-collector.so");
    fs::create_symlink(CUPTI, folder_ + "/lib64/libcupti.so.13");
    fs::create_symlink(CUDA, folder_ + "/lib64/softgpu/libcuda.so.1");
    environment_["SONDE_LIBDIR"] = folder_ + "/lib64";
    environment_["TMPDIR"] = folder_ + "/tmp";
    environment_["SONDE_STATE_DIR"] = folder_ + "/state";
    environment_["SONDE_CACHE_DIR"] = folder_ + "/cache";
  }
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/tmp"));
    std::filesystem::remove_all(folder_);
  }
  Outcome sonde(std::vector<std::string> arguments, const std::function<void(pid_t)>& ready = nullptr) {
    arguments.insert(arguments.begin(), SONDE);
    return runProgram(arguments, environment_, ready);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  Environment environment_;
};

}  // namespace sonde::test

#endif  // SONDE_TESTS_CLI_BUILT_PRODUCT_H_
