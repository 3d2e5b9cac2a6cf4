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

TEST_F(GpuAllocations, RegisteredMemoryOfTheHost) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  std::vector<char> host(10000);
  CUDA(cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault));
  EXPECT_NE(cudaSuccess, cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault)) << "it is already";
  CUDA(cudaHostUnregister(host.data()));
  finish();
  const auto found = ofSize(10000);
  ASSERT_EQ(2u, found.size());
  for (const auto& r : found) {
    EXPECT_EQ(reinterpret_cast<uint64_t>(host.data()), r.address);
    EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, r.memoryKind);
    EXPECT_EQ(contextId, r.contextId);
    EXPECT_EQ(CUPTI_INVALID_STREAM_ID, r.streamId);
  }
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, found[0].memoryOperationType);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, found[1].memoryOperationType);
}

TEST_F(GpuAllocations, Arrays) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc f = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  CUDA(cudaMallocArray(&array, &f, 64, 64));
  CUDA(cudaFreeArray(array));
  // Levels of 64 x 64, 32 x 32 and 16 x 16 elements of 4 bytes.
  cudaMipmappedArray_t levels = nullptr;
  CUDA(cudaMallocMipmappedArray(&levels, &f, cudaExtent{64, 64, 0}, 3));
  CUDA(cudaFreeMipmappedArray(levels));
  finish();
  EXPECT_EQ(4u, ofSize(16384).size());
  EXPECT_EQ(2u, ofSize(4096).size());
  EXPECT_EQ(2u, ofSize(1024).size());
  for (const auto& r : of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2)) {
    EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, r.memoryKind);
    EXPECT_NE(0u, r.address);
  }
}

TEST_F(GpuAllocations, APitchedAllocationIsAllOfIt) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  CU(cuMemAllocPitch(&memory, &pitch, 100, 10, 4));
  CU(cuMemFree(memory));
  finish();
  EXPECT_EQ(512u, pitch);
  EXPECT_EQ(2u, ofSize(5120).size());
}

// What is still allocated when a context goes has no MEMORY2 record of a
// release, but for arrays of a primary context: as with the vendor's library.
TEST_F(GpuAllocations, WhatIsLeftInAContextThatGoes) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY});
  CUcontext other = nullptr;
  CU(cuCtxCreate(&other, nullptr, 0, 0));
  uint32_t id = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(other, &id));
  CUdeviceptr freed = 0, left = 0, managed = 0;
  void* pinned = nullptr;
  CU(cuMemAlloc(&freed, 1111));
  CU(cuMemAlloc(&left, 2222));
  CU(cuMemAllocManaged(&managed, 3333, CU_MEM_ATTACH_GLOBAL));
  CU(cuMemAllocHost(&pinned, 4444));
  CU(cuMemFree(freed));
  CU(cuCtxDestroy(other));
  finish();
  EXPECT_EQ(2u, ofSize(1111).size());
  for (uint64_t bytes : {2222, 3333, 4444}) {
    const auto found = ofSize(bytes);
    ASSERT_EQ(1u, found.size()) << bytes;
    EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, found[0].memoryOperationType);
  }
  // Of kind MEMORY each has its record; the end of what was not freed is unknown.
  std::map<uint64_t, CUpti_ActivityMemory> lives;
  for (const auto& r : of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY)) {
    EXPECT_EQ(id, r.contextId);
    EXPECT_TRUE(lives.emplace(r.bytes, r).second) << "twice: " << r.bytes;
  }
  ASSERT_EQ(4u, lives.size());
  EXPECT_LE(lives[1111].start, lives[1111].end);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, lives[2222].memoryKind);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, lives[3333].memoryKind);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_PINNED, lives[4444].memoryKind);
  for (uint64_t bytes : {2222, 3333, 4444}) {
    EXPECT_EQ(0u, lives[bytes].end) << bytes;
    EXPECT_NE(0u, lives[bytes].start) << bytes;
  }
  // And no other one later.
  collector_.clear();
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  EXPECT_TRUE(of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY).empty());
}

TEST_F(GpuAllocations, ADeviceThatIsReset) {
  // Of another device: the other tests hold memory and modules of the first.
  CUDA(cudaSetDevice(1));
  CUDA(cudaFree(nullptr));
  enable({CUPTI_ACTIVITY_KIND_MEMORY2, CUPTI_ACTIVITY_KIND_MEMORY, CUPTI_ACTIVITY_KIND_RUNTIME});
  void* left = nullptr;
  CUDA(cudaMalloc(&left, 2222));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc f = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  CUDA(cudaMallocArray(&array, &f, 64, 64));
  CUDA(cudaDeviceReset());
  CUDA(cudaSetDevice(0));
  finish();
  EXPECT_EQ(1u, ofSize(2222).size());
  const auto found = ofSize(16384);
  ASSERT_EQ(2u, found.size());
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, found[1].memoryOperationType);
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_ARRAY, found[1].memoryKind);
  EXPECT_EQ(found[0].address, found[1].address);
  EXPECT_EQ(1u, found[1].deviceId);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020),
            callOf(found[1].correlationId).cbid);
  std::map<uint64_t, CUpti_ActivityMemory> lives;
  for (const auto& r : of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY)) lives[r.bytes] = r;
  ASSERT_EQ(2u, lives.size());
  EXPECT_EQ(0u, lives[2222].end);
  EXPECT_LE(lives[16384].start, lives[16384].end);
  EXPECT_NE(0u, lives[16384].end);
}

// While nobody looks, memory may go and its address come again.
TEST_F(GpuAllocations, AllocationsAreForgottenWhileTheirKindIsOff) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY});
  CUdeviceptr first = 0, second = 0;
  CU(cuMemAlloc(&first, 2222));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMORY));
  CU(cuMemFree(first));
  CU(cuMemAlloc(&second, 2200));
  enable({CUPTI_ACTIVITY_KIND_MEMORY});
  CU(cuMemFree(second));
  finish();
  const auto lives = of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY);
  ASSERT_EQ(1u, lives.size());
  EXPECT_EQ(2222u, lives[0].bytes);
  EXPECT_EQ(0u, lives[0].end) << "nobody saw it go";
}

}  // namespace
}  // namespace sonde::test
