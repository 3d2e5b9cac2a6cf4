// SPDX-License-Identifier: Apache-2.0
// Records of memory: where it was asked for, in whose name, and by which object.
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "gpu_trace.h"

// Functions whose code lies between two symbols that the linker provides; each
// makes one call.
extern "C" {
extern const char __start_call_cudaMalloc[], __stop_call_cudaMalloc[];
extern const char __start_call_cudaFree[], __stop_call_cudaFree[];
extern const char __start_call_cuMemAlloc[], __stop_call_cuMemAlloc[];
extern const char __start_call_cuMemFree[], __stop_call_cuMemFree[];
extern const char __start_call_cudaMallocAsync[], __stop_call_cudaMallocAsync[];
extern const char __start_call_cudaLaunch[], __stop_call_cudaLaunch[];
}

namespace sonde::test {
namespace {

#define ALONE(name) __attribute__((noinline, section("call_" #name)))
// Keeps the call from being the function's last jump.
template <typename Result>
Result seen(Result result) {
  asm volatile("" : "+r"(result));
  return result;
}
ALONE(cudaMalloc) cudaError_t callMalloc(void** memory, size_t bytes) { return seen(cudaMalloc(memory, bytes)); }
ALONE(cudaFree) cudaError_t callFree(void* memory) { return seen(cudaFree(memory)); }
ALONE(cuMemAlloc) CUresult callMemAlloc(CUdeviceptr* memory, size_t bytes) { return seen(cuMemAlloc(memory, bytes)); }
ALONE(cuMemFree) CUresult callMemFree(CUdeviceptr memory) { return seen(cuMemFree(memory)); }
ALONE(cudaMallocAsync) cudaError_t callMallocAsync(void** memory, size_t bytes) {
  return seen(cudaMallocAsync(memory, bytes, nullptr));
}
ALONE(cudaLaunch) cudaError_t callLaunch(const void* stub, void** arguments) {
  return seen(cudaLaunchKernel(stub, dim3(1), dim3(1), arguments, 0, nullptr));
}

#define EXPECT_IN(name, pc)                                                     \
  EXPECT_TRUE((pc) > reinterpret_cast<uint64_t>(__start_call_##name) &&         \
              (pc) < reinterpret_cast<uint64_t>(__stop_call_##name))            \
      << std::hex << (pc) << " is not in the caller of " #name ", which is at " \
      << reinterpret_cast<uint64_t>(__start_call_##name)

constexpr char kVariablesPtx[] = R"(
.version 6.4
.target sm_50
.address_size 64
.visible .global .align 4 .b8 table[4000];
.visible .global .attribute(.managed) .align 4 .b8 shared_table[400];
.visible .entry nothing()
{
    ret;
}
)";
char nothingStub;

class GpuAllocations : public GpuTrace {
 protected:
  std::vector<CUpti_ActivityMemory4> ofSize(uint64_t bytes) {
    std::vector<CUpti_ActivityMemory4> found;
    for (const auto& r : of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2)) {
      if (r.bytes == bytes) found.push_back(r);
    }
    return found;
  }
  static std::string executable() { return std::filesystem::read_symlink("/proc/self/exe"); }
};

TEST_F(GpuAllocations, TheProgramCounterIsTheCallers) {
  cudaMemPool_t pool = nullptr;
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  uint64_t threshold = 4444, used = 0;
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  void* memory = nullptr;
  CUDA(callMalloc(&memory, 1111));
  CUDA(callFree(memory));
  CUdeviceptr address = 0;
  CU(callMemAlloc(&address, 2222));
  CU(callMemFree(address));
  CUDA(callMallocAsync(&memory, 3333));
  CUDA(cudaFreeAsync(memory, nullptr));
  finish();
  auto found = ofSize(1111);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, found[0].memoryOperationType);
  EXPECT_IN(cudaMalloc, found[0].PC);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, found[1].memoryOperationType);
  EXPECT_IN(cudaFree, found[1].PC);
  found = ofSize(2222);
  ASSERT_EQ(2u, found.size());
  EXPECT_IN(cuMemAlloc, found[0].PC);
  EXPECT_IN(cuMemFree, found[1].PC);
  found = ofSize(3333);
  ASSERT_EQ(2u, found.size());
  EXPECT_IN(cudaMallocAsync, found[0].PC);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL, found[0].memoryPoolConfig.memoryPoolType);
  EXPECT_EQ(threshold, found[0].memoryPoolConfig.releaseThreshold);
  EXPECT_EQ(used + 3333, found[0].memoryPoolConfig.utilizedSize);
  EXPECT_NE(0u, found[1].PC);
  for (const auto& r : of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2)) {
    EXPECT_EQ(nullptr, r.source) << "not asked for";
    EXPECT_EQ(nullptr, r.name) << "no variable";
  }
}

TEST_F(GpuAllocations, BothProgramCountersOfOneRecord) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY});
  void* memory = nullptr;
  CUDA(callMalloc(&memory, 1111));
  CUDA(callFree(memory));
  CUdeviceptr kept = 0;
  CU(callMemAlloc(&kept, 2222));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const auto records = of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY);
  size_t found = 0;
  for (const auto& r : records) {
    if (r.bytes == 1111) {
      ++found;
      EXPECT_IN(cudaMalloc, r.allocPC);
      EXPECT_IN(cudaFree, r.freePC);
    } else if (r.bytes == 2222) {
      ++found;
      EXPECT_IN(cuMemAlloc, r.allocPC);
      EXPECT_EQ(0u, r.freePC) << "not freed";
      EXPECT_EQ(0u, r.end);
    }
  }
  EXPECT_EQ(2u, found);
  CU(cuMemFree(kept));
}

TEST_F(GpuAllocations, TheSourceIsTheObjectThatAsked) {
  void* library = dlopen(ALLOCATING_LIBRARY, RTLD_NOW);
  ASSERT_NE(nullptr, library) << dlerror();
  auto* inLibrary = reinterpret_cast<int (*)(void**, size_t)>(dlsym(library, "allocateInLibrary"));
  ASSERT_NE(nullptr, inLibrary);
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableAllocationSource(1));
  void *mine = nullptr, *its = nullptr, *later = nullptr;
  CUDA(callMalloc(&mine, 1111));
  ASSERT_EQ(0, inLibrary(&its, 2222));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableAllocationSource(0));
  CUDA(callMalloc(&later, 3333));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableAllocationSource(1));
  for (void* memory : {mine, its, later}) CUDA(cudaFree(memory));
  finish();
  auto found = ofSize(1111);
  ASSERT_EQ(2u, found.size());
  ASSERT_NE(nullptr, found[0].source);
  EXPECT_EQ(executable(), found[0].source);
  EXPECT_EQ(nullptr, found[1].source) << "of a release";
  found = ofSize(2222);
  ASSERT_EQ(2u, found.size());
  ASSERT_NE(nullptr, found[0].source);
  EXPECT_TRUE(std::filesystem::equivalent(ALLOCATING_LIBRARY, found[0].source)) << found[0].source;
  Dl_info info{};
  ASSERT_NE(0, dladdr(reinterpret_cast<void*>(found[0].PC), &info));
  EXPECT_STREQ("allocateInLibrary", info.dli_sname);
  found = ofSize(3333);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(nullptr, found[0].source) << "switched off";
  dlclose(library);
}

TEST_F(GpuAllocations, VariablesOfModulesHaveTheirNames) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  CUmodule module = nullptr;
  CU(cuModuleLoadData(&module, kVariablesPtx));
  CUdeviceptr table = 0, shared = 0;
  size_t bytes = 0;
  CU(cuModuleGetGlobal(&table, &bytes, module, "table"));
  ASSERT_EQ(4000u, bytes);
  CU(cuModuleGetGlobal(&shared, &bytes, module, "shared_table"));
  CU(cuModuleUnload(module));
  finish();
  struct Expected {
    uint64_t bytes, address;
    const char* name;
    CUpti_ActivityMemoryKind kind;
  };
  for (const Expected& e : {Expected{4000, table, "table", CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC},
                            Expected{400, shared, "shared_table", CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC}}) {
    const auto found = ofSize(e.bytes);
    ASSERT_EQ(2u, found.size()) << e.name;
    for (int released = 0; released < 2; ++released) {
      EXPECT_EQ(released == 0 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                              : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
                found[released].memoryOperationType);
      EXPECT_EQ(e.address, found[released].address);
      EXPECT_EQ(e.kind, found[released].memoryKind);
      EXPECT_STREQ(e.name, found[released].name);
      EXPECT_EQ(contextId, found[released].contextId);
    }
    EXPECT_LE(found[0].timestamp, found[1].timestamp);
  }
}

// The runtime loads a module when a kernel of it is first launched: the variables
// are those of the launch.
TEST_F(GpuAllocations, VariablesOfALazilyLoadedModule) {
  FatBinary lazy(kVariablesPtx);
  lazy.kernel(&nothingStub, "nothing");
  __cudaRegisterFatBinaryEnd(lazy.handle());
  enable({CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_RUNTIME});
  void* none = nullptr;
  CUDA(callLaunch(&nothingStub, &none));
  finish();
  const auto found = ofSize(4000);
  ASSERT_EQ(1u, found.size());
  EXPECT_STREQ("table", found[0].name);
  EXPECT_IN(cudaLaunch, found[0].PC);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000),
            callOf(found[0].correlationId).cbid);
}

}  // namespace
}  // namespace sonde::test
