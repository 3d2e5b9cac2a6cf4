// SPDX-License-Identifier: Apache-2.0
// A small driver-API harness: a context, PTX texts, launches and buffers.
#pragma once

#include <cuda.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace sonde::test {

#define CU_OK(call) ASSERT_EQ(CUDA_SUCCESS, (call))
#define CUPTI_OK(call) ASSERT_EQ(CUPTI_SUCCESS, (call))

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    CU_OK(cuInit(0));
    CU_OK(cuDeviceGet(&device, 0));
    CU_OK(cuDevicePrimaryCtxRetain(&context, device));
    CU_OK(cuCtxSetCurrent(context));
  }
  void TearDown() override {
    for (CUdeviceptr p : buffers_) cuMemFree(p);
    for (auto& [text, m] : modules_) cuModuleUnload(m);
    cuDevicePrimaryCtxRelease(device);
  }

  CUdeviceptr buffer(size_t bytes, unsigned char fill = 0) {
    CUdeviceptr p = 0;
    EXPECT_EQ(CUDA_SUCCESS, cuMemAlloc(&p, bytes));
    EXPECT_EQ(CUDA_SUCCESS, cuMemsetD8(p, fill, bytes));
    buffers_.push_back(p);
    cuStreamSynchronize(nullptr);  // streams that do not wait for this one may use it
    return p;
  }
  CUfunction function(const std::string& ptx, const char* name) {
    auto [it, fresh] = modules_.try_emplace(ptx, nullptr);
    if (fresh) {
      EXPECT_EQ(CUDA_SUCCESS, cuModuleLoadData(&it->second, ptx.c_str())) << ptx;
    }
    CUfunction f = nullptr;
    EXPECT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&f, it->second, name)) << name;
    return f;
  }
  void launch(CUfunction f, unsigned grid, unsigned block, std::initializer_list<uint64_t> arguments,
              unsigned dynamicShared = 0) {
    std::vector<uint64_t> values(arguments);
    std::vector<void*> pointers;
    for (uint64_t& v : values) pointers.push_back(&v);
    ASSERT_EQ(CUDA_SUCCESS,
              cuLaunchKernel(f, grid, 1, 1, block, 1, 1, dynamicShared, stream, pointers.data(), nullptr));
    ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  }

  CUpti_EventID eventId(const char* name) {
    CUpti_EventID id = 0;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGetIdFromName(device, name, &id)) << name;
    return id;
  }

  // Values of some events of one launch: sums over all instances, collected
  // with kernel replay, so that any set fits.
  std::map<std::string, uint64_t> count(std::initializer_list<const char*> names, CUfunction f, unsigned grid,
                                        unsigned block, std::initializer_list<uint64_t> arguments) {
    std::map<std::string, uint64_t> values;
    std::vector<CUpti_EventID> ids;
    std::map<CUpti_EventID, std::string> nameOf;
    for (const char* n : names) {
      ids.push_back(eventId(n));
      nameOf[ids.back()] = n;
    }
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEnableKernelReplayMode(context));
    CUpti_EventGroupSets* sets = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetsCreate(context, ids.size() * sizeof(CUpti_EventID), ids.data(), &sets));
    if (!sets) return values;
    EXPECT_EQ(1u, sets->numSets);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetEnable(&sets->sets[0]));
    launch(f, grid, block, arguments);
    for (uint32_t g = 0; g < sets->sets[0].numEventGroups; ++g) {
      uint64_t out[64];
      CUpti_EventID outIds[64];
      size_t valueBytes = sizeof out, idBytes = sizeof outIds, got = 0;
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupReadAllEvents(sets->sets[0].eventGroups[g], CUPTI_EVENT_READ_FLAG_NONE,
                                                            &valueBytes, out, &idBytes, outIds, &got));
      for (size_t i = 0; i < got; ++i) values[nameOf[outIds[i]]] = out[i];
    }
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetDisable(&sets->sets[0]));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiEventGroupSetsDestroy(sets));
    EXPECT_EQ(CUPTI_SUCCESS, cuptiDisableKernelReplayMode(context));
    return values;
  }

  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;  // of the launches

 private:
  std::vector<CUdeviceptr> buffers_;
  std::map<std::string, CUmodule> modules_;
};

// A kernel k(.u64 p, .u64 q) whose body gets: %r1 tid, %r2 block, %r3 global
// index, %rd1 p, %rd2 q.
inline std::string kernel(const std::string& body, const std::string& declarations = "") {
  return ".version 5.0\n.target sm_35\n.address_size 64\n" + declarations +
         ".visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
         ".reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<16>; .reg .f64 %fd<8>; .reg .pred %p<8>; .reg .b16 %h<4>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
         "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
         "mad.lo.u32 %r3, %r2, %r4, %r1;\n" +
         body + "\nret;\n}\n";
}
// Instructions that the frame of kernel() executes per warp: two parameter
// loads, three moves, one mad, one ret.
inline constexpr uint64_t kFrame = 7;

}  // namespace sonde::test
