// SPDX-License-Identifier: Apache-2.0
//
// Records what a real card computes: record --ptx FORMS prints a kernel for each
// form that make_forms.py listed; record FORMS KERNELS OUTPUT runs them (as PTX,
// or assembled by ptxas) with the driver API and writes the results to OUTPUT.
// record --matrix does the same for make_matrix.py. See README.md beside it.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "../../tests/jit_arith/golden_kernels.h"
#include "../../tests/jit_arith/inputs.h"
#include "../../tests/matrix/matrix_inputs.h"

using namespace sonde::test;

namespace {

template <class F>
F symbol(void* library, const char* name) {
  auto f = reinterpret_cast<F>(dlsym(library, name));
  if (!f) {
    std::fprintf(stderr, "no %s in the driver\n", name);
    std::exit(1);
  }
  return f;
}

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--ptx") {
    std::ifstream list(argv[2]);
    std::printf("%s", goldenModuleHeader().c_str());
    size_t number = 0;
    for (std::string line; std::getline(list, line);) std::printf("%s", goldenKernel(number++, line).c_str());
    return 0;
  }
  const bool matrix = argc > 1 && std::string(argv[1]) == "--matrix";
  if (matrix) {
    ++argv;
    --argc;
  }
  if (argc != 4) {
    std::fprintf(stderr, "usage: record --ptx FORMS | record [--matrix] FORMS KERNELS OUTPUT\n");
    return 2;
  }
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) {
    std::fprintf(stderr, "no driver: %s\n", dlerror());
    return 1;
  }
  using Pointer = unsigned long long;
  const auto init = symbol<int (*)(unsigned)>(cuda, "cuInit");
  const auto deviceGet = symbol<int (*)(int*, int)>(cuda, "cuDeviceGet");
  const auto retain = symbol<int (*)(void**, int)>(cuda, "cuDevicePrimaryCtxRetain");
  const auto setCurrent = symbol<int (*)(void*)>(cuda, "cuCtxSetCurrent");
  const auto load = symbol<int (*)(void**, const void*)>(cuda, "cuModuleLoadData");
  const auto function = symbol<int (*)(void**, void*, const char*)>(cuda, "cuModuleGetFunction");
  const auto allocate = symbol<int (*)(Pointer*, size_t)>(cuda, "cuMemAlloc_v2");
  const auto toDevice = symbol<int (*)(Pointer, const void*, size_t)>(cuda, "cuMemcpyHtoD_v2");
  const auto toHost = symbol<int (*)(void*, Pointer, size_t)>(cuda, "cuMemcpyDtoH_v2");
  const auto launch = symbol<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                     void**, void**)>(cuda, "cuLaunchKernel");
  const auto synchronize = symbol<int (*)()>(cuda, "cuCtxSynchronize");

  int device = 0;
  void *context = nullptr, *module = nullptr;
  check(init(0), "cuInit");
  check(deviceGet(&device, 0), "cuDeviceGet");
  check(retain(&context, device), "cuDevicePrimaryCtxRetain");
  check(setCurrent(context), "cuCtxSetCurrent");
  std::ifstream kernels(argv[2], std::ios::binary);
  std::string image((std::istreambuf_iterator<char>(kernels)), std::istreambuf_iterator<char>());
  image.push_back('\0');
  check(load(&module, image.data()), "cuModuleLoadData");

  constexpr size_t kMax = 4096;
  Pointer in = 0, out = 0;
  check(allocate(&in, kMax * kSlots * 8), "cuMemAlloc");
  check(allocate(&out, kMax * kSlots * 8), "cuMemAlloc");

  std::ifstream forms(argv[1]);
  std::ofstream result(argv[3], std::ios::binary);
  size_t number = 0;
  for (std::string line; matrix && std::getline(forms, line); ++number) {
    const MatrixForm form = parseMatrixForm(line);
    std::vector<uint32_t> words;
    for (unsigned test = 0; test < kMatrixTests; ++test) {
      const std::vector<uint32_t> one = matrixInputs(line, test);
      words.insert(words.end(), one.begin(), one.end());
    }
    unsigned inBytes = static_cast<unsigned>(words.size()) * 4 / kMatrixTests, outBytes = form.words(3) * 4;
    check(toDevice(in, words.data(), words.size() * 4), "cuMemcpyHtoD");
    void* f = nullptr;
    check(function(&f, module, ("f" + std::to_string(number)).c_str()), line.c_str());
    void* arguments[] = {&in, &out, &inBytes, &outBytes};
    check(launch(f, kMatrixTests, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), line.c_str());
    check(synchronize(), line.c_str());
    std::vector<char> results(outBytes * kMatrixTests);
    check(toHost(results.data(), out, results.size()), "cuMemcpyDtoH");
    result.write(results.data(), static_cast<std::streamsize>(results.size()));
  }
  for (std::string line; std::getline(forms, line); ++number) {
    const std::vector<Slots> inputs = goldenInputs(line);
    const auto n = static_cast<unsigned>(inputs.size());
    std::vector<uint64_t> words(n * kSlots), results(n * kSlots, 0);
    for (unsigned i = 0; i < n; ++i)
      for (unsigned s = 0; s < kSlots; ++s) words[s * n + i] = inputs[i][s];
    check(toDevice(in, words.data(), words.size() * 8), "cuMemcpyHtoD");
    check(toDevice(out, results.data(), results.size() * 8), "cuMemcpyHtoD");
    void* f = nullptr;
    check(function(&f, module, ("f" + std::to_string(number)).c_str()), line.c_str());
    unsigned count = n;
    void* arguments[] = {&in, &out, &count};
    check(launch(f, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr), line.c_str());
    check(synchronize(), line.c_str());
    check(toHost(results.data(), out, results.size() * 8), "cuMemcpyDtoH");
    auto write = [&](unsigned slot, unsigned bytes) {
      for (unsigned i = 0; i < n; ++i) result.write(reinterpret_cast<const char*>(&results[slot * n + i]), bytes);
    };
    for (const GoldenOperand& o : goldenOperands(line))
      if (o.name < 'a') write(static_cast<unsigned>(o.name - 'D'), goldenBytes(o.kind));
    if (goldenWritesCarry(line)) write(6, 1);
  }
  std::printf("%zu forms recorded\n", number);
  return 0;
}
