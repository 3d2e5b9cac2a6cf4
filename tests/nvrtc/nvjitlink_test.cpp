// SPDX-License-Identifier: Apache-2.0
//
// The software GPU's libnvJitLink.so.13 over its driver, and over a stand-in for the vendor's where there is LTO-IR.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

template <class F>
F* function(const char* name) {
  static void* const library = dlopen(NVJITLINK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  auto* f = library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
  EXPECT_NE(f, nullptr) << name;
  return f;
}

constexpr int kCubin = 1, kPtx = 2, kLtoIr = 3, kLibrary = 6;

constexpr const char* kCaller = R"(.version 7.8
.target sm_80
.address_size 64
.extern .func (.param .b32 out) twice(.param .b32 x);
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 21;
  {
  .param .b32 a;
  .param .b32 b;
  st.param.b32 [a], %r1;
  call.uni (b), twice, (a);
  ld.param.b32 %r2, [b];
  }
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr const char* kCallee = R"(.version 9.5
.target sm_80
.address_size 64
.visible .func (.param .b32 out) twice(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [out], %r2;
  ret;
}
)";

class NvJitLink : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* options[] = {"-arch=sm_90"};
    ASSERT_EQ(0, function<int(void**, uint32_t, const char**)>("nvJitLinkCreate")(&link_, 1, options));
  }
  void TearDown() override { EXPECT_EQ(0, function<int(void**)>("__nvJitLinkDestroy_13_0")(&link_)); }
  int add(int type, const std::string& bytes, const char* name = "input") {
    return function<int(void*, int, const void*, size_t, const char*)>("nvJitLinkAddData")(link_, type, bytes.data(),
                                                                                           bytes.size(), name);
  }
  int complete() { return function<int(void*)>("__nvJitLinkComplete_13_0")(link_); }
  std::string output() {
    size_t size = 0;
    EXPECT_EQ(0, function<int(void*, size_t*)>("nvJitLinkGetLinkedCubinSize")(link_, &size));
    std::string image(size, 0);
    EXPECT_EQ(0, function<int(void*, void*)>("nvJitLinkGetLinkedCubin")(link_, image.data()));
    return image;
  }
  std::string errors() {
    size_t size = 0;
    EXPECT_EQ(0, function<int(void*, size_t*)>("nvJitLinkGetErrorLogSize")(link_, &size));
    std::string text(size, 0);
    EXPECT_EQ(0, function<int(void*, char*)>("nvJitLinkGetErrorLog")(link_, text.data()));
    return text.c_str();
  }
  void* link_ = nullptr;
};

TEST_F(NvJitLink, TwoTextsAreLinkedWhenTheyAreLoaded) {
  ASSERT_EQ(0, add(kPtx, kCaller));
  ASSERT_EQ(0, add(kPtx, kCallee));
  ASSERT_EQ(0, add(kLibrary, "!<arch>", "/opt/lib/libcudadevrt.a"));
  ASSERT_EQ(0, complete());
  ASSERT_EQ(CUDA_SUCCESS, cuInit(0));
  CUcontext context;
  ASSERT_EQ(CUDA_SUCCESS, cuDevicePrimaryCtxRetain(&context, 0));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSetCurrent(context));
  CUmodule module;
  const std::string image = output();
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, image.data()));
  CUfunction kernel;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&kernel, module, "k"));
  CUdeviceptr p;
  ASSERT_EQ(CUDA_SUCCESS, cuMemAlloc(&p, 4));
  void* arguments[] = {&p};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  uint32_t value = 0;
  ASSERT_EQ(CUDA_SUCCESS, cuMemcpyDtoH(&value, p, 4));
  EXPECT_EQ(value, 42u);
  cuMemFree(p);
}

TEST_F(NvJitLink, OneTextComesBackAsItIs) {
  ASSERT_EQ(0, add(kPtx, kCallee));
  ASSERT_EQ(0, complete());
  EXPECT_STREQ(kCallee, output().c_str());
  size_t size = 0;
  EXPECT_EQ(0, function<int(void*, size_t*)>("nvJitLinkGetLinkedPtxSize")(link_, &size));
  EXPECT_EQ(std::strlen(kCallee) + 1, size);
}

// The stand-in joins what it is given: options, then inputs.
TEST_F(NvJitLink, LtoIrGoesThroughTheVendorsLibraryAsPtx) {
  ASSERT_EQ(0, add(kLtoIr, "IR1"));
  ASSERT_EQ(0, add(kLtoIr, "IR2"));
  ASSERT_EQ(0, complete());
  EXPECT_STREQ("-arch=sm_90 -lto -ptx IR1 IR2 ", output().c_str());
}

TEST_F(NvJitLink, WhatCannotBeLinkedIsSaid) {
  EXPECT_EQ(3, complete());
  EXPECT_NE(errors().find("nothing to link"), std::string::npos);
  EXPECT_EQ(3, add(kPtx, "hello"));
  EXPECT_NE(errors().find("no .version line"), std::string::npos);
  EXPECT_EQ(8, add(kLibrary, "!<arch>", "libmine.a"));
  EXPECT_NE(errors().find("libmine.a: only PTX and LTO-IR"), std::string::npos);
  EXPECT_EQ(0, add(kCubin,
                   "\x7f"
                   "ELF",
                   "mine.cubin"));
  EXPECT_EQ(8, complete());
  EXPECT_NE(errors().find("mine.cubin is machine code"), std::string::npos);
  void* other = nullptr;
  EXPECT_EQ(2, function<int(void**, uint32_t, const char**)>("nvJitLinkCreate")(&other, 0, nullptr));
}

}  // namespace
