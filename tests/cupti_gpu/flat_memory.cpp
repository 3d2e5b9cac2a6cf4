// SPDX-License-Identifier: Apache-2.0
// Launches a kernel again and again, with every call and kernel recorded:
//
//     cupti_flat_memory [LAUNCHES (1000000)]
//
// Every record must come, and the process must not grow after its first tenth.
#include <cuda.h>
#include <cupti.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr char kPtx[] = R"(
.version 6.4
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
)";
// Buffers wait for their delivery when other processes have the processors; all
// records together would take more than 150 MiB.
constexpr long kMayGrowKb = 64 * 1024;

std::atomic<uint64_t> calls{0}, kernels{0}, others{0};

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* maxRecords) {
  *size = 1 << 20;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
  *maxRecords = 0;
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_DRIVER) {
      calls += reinterpret_cast<CUpti_ActivityAPI*>(record)->cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    } else {
      ++(record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ? kernels : others);
    }
  }
  std::free(buffer);
}

long residentKb() {
  long pages = 0, resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

#define REQUIRE(what)                                                                      \
  do {                                                                                     \
    if (!(what)) return std::fprintf(stderr, "line %d, failed: %s\n", __LINE__, #what), 1; \
  } while (0)

}  // namespace

int main(int argc, char** argv) {
  const uint64_t launches = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
  REQUIRE(launches >= 10);
  REQUIRE(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  REQUIRE(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS && cuCtxSetCurrent(context) == CUDA_SUCCESS);
  REQUIRE(cuModuleLoadData(&module, kPtx) == CUDA_SUCCESS);
  REQUIRE(cuModuleGetFunction(&function, module, "nothing") == CUDA_SUCCESS);
  long before = 0, most = 0;
  for (uint64_t i = 0; i < launches; ++i) {
    REQUIRE(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_SUCCESS);
    if ((i + 1) % (launches / 10) != 0) continue;
    const long now = residentKb();
    std::printf("%llu launches: %ld KiB\n", static_cast<unsigned long long>(i + 1), now);
    if (before == 0) before = now;
    if (now > most) most = now;
  }
  REQUIRE(cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  size_t dropped = 1;
  REQUIRE(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS);
  std::printf("%llu calls and %llu kernels recorded, %zu dropped\n", static_cast<unsigned long long>(calls),
              static_cast<unsigned long long>(kernels), dropped);
  REQUIRE(calls == launches && kernels == launches && others == 0 && dropped == 0);
  REQUIRE(before > 0 && most - before < kMayGrowKb);
  return 0;
}
