// SPDX-License-Identifier: Apache-2.0
// What the hooks of a vendor's driver add to a call, measured on the software
// driver behind the same symbols: a runtime call and a launch, with nothing
// recorded, and with records of calls and of kernels.
#include <benchmark/benchmark.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <cstdlib>

namespace {

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxNumRecords) {
  *size = 8u << 20;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
  *maxNumRecords = 0;
}
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { std::free(buffer); }

template <CUpti_ActivityKind... kinds>
void enable(const benchmark::State&) {
  cuptiActivityRegisterCallbacks(requested, completed);
  (cuptiActivityEnable(kinds), ...);
}
void finalize(const benchmark::State&) { cuptiFinalize(); }

void getDevice(benchmark::State& state) {
  int device;
  for (auto _ : state) cudaGetDevice(&device);
}
BENCHMARK(getDevice)->Name("cudaGetDevice/not_attached");
BENCHMARK(getDevice)
    ->Name("cudaGetDevice/kernels")
    ->Setup(enable<CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL>)
    ->Teardown(finalize);
BENCHMARK(getDevice)->Name("cudaGetDevice/runtime")->Setup(enable<CUPTI_ACTIVITY_KIND_RUNTIME>)->Teardown(finalize);
BENCHMARK(getDevice)
    ->Name("cudaGetDevice/runtime_driver")
    ->Setup(enable<CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER>)
    ->Teardown(finalize);

CUfunction emptyKernel() {
  static const char* const text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry empty() { ret; }\n";
  CUmodule module;
  CUfunction function;
  if (cuModuleLoadData(&module, text) != CUDA_SUCCESS ||
      cuModuleGetFunction(&function, module, "empty") != CUDA_SUCCESS)
    std::abort();
  return function;
}

void launch(benchmark::State& state) {
  const CUfunction function = emptyKernel();
  int count = 0;
  for (auto _ : state) {
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    if (++count % 1024 == 0) {
      state.PauseTiming();
      cuCtxSynchronize();
      state.ResumeTiming();
    }
  }
}
BENCHMARK(launch)->Name("cuLaunchKernel/not_attached");
BENCHMARK(launch)
    ->Name("cuLaunchKernel/kernels")
    ->Setup(enable<CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL>)
    ->Teardown(finalize);
BENCHMARK(launch)
    ->Name("cuLaunchKernel/kernels_driver")
    ->Setup(enable<CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER>)
    ->Teardown(finalize);

}  // namespace

int main(int argc, char** argv) {
  setenv("SONDE_PLATFORM", "nvidia", 0);
  cudaFree(nullptr);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
