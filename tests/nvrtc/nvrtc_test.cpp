// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(NVRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  template <class F>
  F* function(const char* name) {
    return reinterpret_cast<F*>(dlsym(library_, name));
  }
  // What the compiler was given, as the program gets it back as a "cubin".
  std::string compiled(const std::vector<const char*>& options) {
    auto* compile = function<int(void*, int, const char* const*)>("nvrtcCompileProgram");
    EXPECT_EQ(compile(nullptr, static_cast<int>(options.size()), options.data()), 0);
    size_t size = 0;
    EXPECT_EQ(function<int(void*, size_t*)>("nvrtcGetCUBINSize")(nullptr, &size), 0);
    std::string text(size, '?');
    EXPECT_EQ(function<int(void*, char*)>("nvrtcGetCUBIN")(nullptr, text.data()), 0);
    EXPECT_EQ(text.back(), '\0');
    text.pop_back();
    return text;
  }
  void* library_ = nullptr;
};

TEST_F(Nvrtc, MachineCodeIsAskedForAsPtx) {
  EXPECT_EQ(compiled({"--gpu-architecture=sm_90", "-I."}), "--gpu-architecture=compute_90\n-I.\n");
  EXPECT_EQ(compiled({"-arch", "sm_86"}), "-arch\ncompute_86\n");
  EXPECT_EQ(compiled({"-arch=sm_90a"}), "-arch=compute_90a\n");
}

TEST_F(Nvrtc, OtherOptionsStay) {
  EXPECT_EQ(compiled({"-arch=compute_75", "-Dsm_90=sm_80", "--std=c++17"}),
            "-arch=compute_75\n-Dsm_90=sm_80\n--std=c++17\n");
}

TEST_F(Nvrtc, ErrorsAndNumbersAreTheCompilers) {
  const char* options[] = {"fail"};
  auto* compile = function<int(void*, int, const char* const*)>("nvrtcCompileProgram");
  EXPECT_EQ(compile(nullptr, 1, options), 6);
  EXPECT_EQ(compile(nullptr, 1, nullptr), 3);  // NVRTC_ERROR_INVALID_INPUT
  EXPECT_EQ(compile(nullptr, -1, options), 3);
  int major = 0, minor = 0;
  EXPECT_EQ(function<int(int*, int*)>("nvrtcVersion")(&major, &minor), 0);
  EXPECT_EQ(major * 10 + minor, 137);
  EXPECT_STREQ(function<const char*(int)>("nvrtcGetErrorString")(6), "stand-in");
}

}  // namespace
