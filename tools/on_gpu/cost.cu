// SPDX-License-Identifier: Apache-2.0
//
// What a launch and a runtime call cost the host in this process, ns (median):
//
//   cost -                            nobody profiles
//   cost LIBCUPTI kernels|calls|all   with this library recording kernels,
//                                     runtime calls, or both and driver calls
//
// The library is opened at run time: a process that is not profiled has none.
#include <cuda_runtime.h>
#include <cupti.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

__global__ void empty() {}

namespace {

void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 8 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::malloc(*size));
}
void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) { std::free(buffer); }

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "cost: %s failed (%d)\n", what, result);
  std::exit(1);
}

double now() {
  return static_cast<double>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Median over rounds, ns for each of `batch` calls; `after` is not measured.
template <class Call, class After>
double cost(int rounds, int batch, Call&& call, After&& after) {
  std::vector<double> costs;
  for (int r = 0; r < rounds; ++r) {
    const double begin = now();
    for (int i = 0; i < batch; ++i) call();
    costs.push_back((now() - begin) / batch);
    after();
  }
  std::nth_element(costs.begin(), costs.begin() + rounds / 2, costs.end());
  return costs[rounds / 2];
}

void enable(const char* path, const std::string& what) {
  void* library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "cost: %s\n", dlerror());
    std::exit(1);
  }
  auto* registerCallbacks =
      reinterpret_cast<decltype(&cuptiActivityRegisterCallbacks)>(dlsym(library, "cuptiActivityRegisterCallbacks"));
  auto* activate = reinterpret_cast<decltype(&cuptiActivityEnable)>(dlsym(library, "cuptiActivityEnable"));
  check(registerCallbacks == nullptr || activate == nullptr, "finding the functions of the library");
  check(registerCallbacks(requested, completed), "cuptiActivityRegisterCallbacks");
  if (what != "calls") check(activate(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  if (what != "kernels") check(activate(CUPTI_ACTIVITY_KIND_RUNTIME), "cuptiActivityEnable");
  if (what == "all") check(activate(CUPTI_ACTIVITY_KIND_DRIVER), "cuptiActivityEnable");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (std::strcmp(argv[1], "-") != 0) enable(argv[1], argc > 2 ? argv[2] : "all");
  check(cudaFree(nullptr), "cudaFree");
  empty<<<1, 1>>>();
  check(cudaDeviceSynchronize(), "a kernel");
  auto launch = [] { empty<<<1, 1>>>(); };
  auto wait = [] { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); };
  int device = 0;
  auto call = [&] { cudaGetDevice(&device); };
  cost(10, 250, launch, wait);  // what is made at first use is made
  const double launches = cost(60, 250, launch, wait);
  cost(10, 2000, call, [] {});
  const double calls = cost(60, 2000, call, [] {});
  std::printf("%.0f %.0f\n", launches, calls);
  return 0;
}
