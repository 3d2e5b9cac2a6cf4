// SPDX-License-Identifier: Apache-2.0
// Records about devices and about what compiling costs, against what the driver
// and the file system say.
#include <filesystem>
#include <set>
#include <string>

#include "gpu_trace.h"

namespace sonde::test {
namespace {

using GpuDeviceFacts = GpuTrace;

uint32_t attribute(CUdevice device, CUdevice_attribute which) {
  int value = -1;
  EXPECT_EQ(CUDA_SUCCESS, cuDeviceGetAttribute(&value, which, device));
  return static_cast<uint32_t>(value);
}

uint64_t profilingAttribute(CUdevice device, CUpti_DeviceAttribute which) {
  uint64_t value = 0;
  size_t size = sizeof value;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiDeviceGetAttribute(device, which, &size, &value)) << which;
  return value;
}

TEST_F(GpuDeviceFacts, DeviceHasEveryField) {
  enable({CUPTI_ACTIVITY_KIND_DEVICE});
  collector_.flush();
  const auto devices = of<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
  ASSERT_EQ(2u, devices.size());
  for (CUdevice d = 0; d < 2; ++d) {
    const CUpti_ActivityDevice5& r = devices[static_cast<size_t>(d)];
    SCOPED_TRACE(d);
    auto is = [d](uint32_t value, CUdevice_attribute which) { EXPECT_EQ(attribute(d, which), value) << which; };
    EXPECT_EQ(static_cast<uint32_t>(d), r.id);
    EXPECT_EQ(CUPTI_ACTIVITY_FLAG_DEVICE_CONCURRENT_KERNELS, r.flags);
    size_t memory = 0;
    CU(cuDeviceTotalMem(&memory, d));
    EXPECT_EQ(memory, r.globalMemorySize);
    EXPECT_EQ(670464000u, r.globalMemoryBandwidth);  // of the default model
    EXPECT_EQ(profilingAttribute(d, CUPTI_DEVICE_ATTR_GLOBAL_MEMORY_BANDWIDTH), r.globalMemoryBandwidth);
    EXPECT_EQ(4u, r.maxIPC);
    EXPECT_EQ(profilingAttribute(d, CUPTI_DEVICE_ATTR_INSTRUCTION_PER_CYCLE), r.maxIPC);
    is(r.constantMemorySize, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
    is(r.l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    is(r.numThreadsPerWarp, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
    is(r.coreClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    is(r.numMemcpyEngines, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    is(r.numMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    is(r.maxWarpsPerMultiprocessor * 32, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    is(r.maxBlocksPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    is(r.maxSharedMemoryPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    is(r.maxRegistersPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    is(r.maxRegistersPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
    is(r.maxSharedMemoryPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    is(r.maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    is(r.maxBlockDimX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
    is(r.maxBlockDimY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
    is(r.maxBlockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
    is(r.maxGridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
    is(r.maxGridDimY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
    is(r.maxGridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
    is(r.computeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    is(r.computeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    is(r.eccEnabled, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
    for (uint32_t value : {r.constantMemorySize, r.l2CacheSize, r.coreClockRate, r.numMultiprocessors, r.maxIPC,
                           r.maxRegistersPerBlock, r.maxGridDimZ}) {
      EXPECT_GT(value, 0u);
    }
    EXPECT_EQ(1, r.isCudaVisible);
    char name[128];
    CU(cuDeviceGetName(name, sizeof name, d));
    EXPECT_STREQ(name, r.name);
  }
}

TEST_F(GpuDeviceFacts, DeviceAttributesOfBothSortsAreThoseOfTheFunctions) {
  enable({CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE});
  collector_.flush();
  std::set<int> driver[2], profiling[2];
  for (const auto& a : of<CUpti_ActivityDeviceAttribute>(CUPTI_ACTIVITY_KIND_DEVICE_ATTRIBUTE)) {
    ASSERT_LT(a.deviceId, 2u);
    const auto device = static_cast<CUdevice>(a.deviceId);
    if (a.flags == CUPTI_ACTIVITY_FLAG_DEVICE_ATTRIBUTE_CUDEVICE) {
      EXPECT_TRUE(driver[device].insert(a.attribute.cu).second);
      EXPECT_EQ(attribute(device, a.attribute.cu), static_cast<uint32_t>(a.value.vInt32)) << a.attribute.cu;
    } else {
      EXPECT_EQ(CUPTI_ACTIVITY_FLAG_NONE, a.flags);
      EXPECT_TRUE(profiling[device].insert(a.attribute.cupti).second);
      EXPECT_EQ(profilingAttribute(device, a.attribute.cupti), a.value.vUint64) << a.attribute.cupti;
    }
  }
  EXPECT_GT(driver[0].size(), 100u);
  EXPECT_EQ(driver[0], driver[1]);
  EXPECT_EQ(18u, profiling[0].size());
  EXPECT_EQ(profiling[0], profiling[1]);
}

TEST_F(GpuDeviceFacts, CompilationsNameTheirFileInTheCache) {
  enable({CUPTI_ACTIVITY_KIND_JIT, CUPTI_ACTIVITY_KIND_OVERHEAD});
  // Twice the same text: compiled, then from the cache (a module's code lives as long as the module).
  const std::string text = std::string(kTracePtx) + "// JIT " + std::to_string(getpid()) + "\n";
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  uint32_t value = 1;
  void* arguments[] = {&out, &value};
  for (int round = 0; round < 2; ++round) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CU(cuModuleLoadData(&module, text.c_str()));
    CU(cuModuleGetFunction(&function, module, kFill));
    CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    CU(cuCtxSynchronize());
    CU(cuModuleUnload(module));
  }
  finish();
  const auto jits = of<CUpti_ActivityJit2>(CUPTI_ACTIVITY_KIND_JIT);
  ASSERT_GE(jits.size(), 1u);
  EXPECT_EQ(CUPTI_ACTIVITY_JIT_OPERATION_COMPILE, jits[0].jitOperationType);
  for (const auto& jit : jits) {
    EXPECT_EQ(CUPTI_ACTIVITY_JIT_ENTRY_PTX_TO_CUBIN, jit.jitEntryType);
    EXPECT_EQ(0u, jit.deviceId);
    EXPECT_LT(jit.start, jit.end);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), jit.processId);
    EXPECT_NE(0u, jit.threadId);
    if (jit.cachePath == nullptr) continue;  // a test run without a cache
    ASSERT_TRUE(std::filesystem::exists(jit.cachePath)) << jit.cachePath;
    EXPECT_EQ(std::filesystem::file_size(jit.cachePath), jit.cacheSize);
  }
  CUDA(cudaFree(out));
}

TEST_F(GpuDeviceFacts, CountingCodeIsInstrumentation) {
  enable({CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION});
  const std::string text = std::string(kTracePtx) + "// counted " + std::to_string(getpid()) + "\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CU(cuModuleLoadData(&module, text.c_str()));
  CU(cuModuleGetFunction(&function, module, kFill));
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  uint32_t value = 1;
  void* arguments[] = {&out, &value};
  CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  finish();
  size_t instrumented = 0;
  for (const auto& o : of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    if (o.overheadKind != CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION) continue;
    ++instrumented;
    EXPECT_LT(o.start, o.end);
    EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, o.objectKind);
  }
  EXPECT_EQ(1u, instrumented);
  CU(cuModuleUnload(module));
  CUDA(cudaFree(out));
}

}  // namespace
}  // namespace sonde::test
