// SPDX-License-Identifier: Apache-2.0
//
// A program of the driver API that runs one kernel of a PTX file: what it is told when the kernel is faulty.
//     driver_faults FILE THREADS [VALUE]
// The kernel is 'k', of an array of 4 KiB and a value. The status is 0, or 3 where a call failed.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

static bool failed(const char* call, CUresult r) {
  const char* name = nullptr;
  cuGetErrorName(r, &name);
  std::printf("%s %s\n", call, name ? name : "unknown");
  return r != CUDA_SUCCESS;
}

int main(int argc, char** argv) {
  if (argc < 3) return 64;
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::ifstream file(argv[1]);
  const std::string ptx((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto threads = static_cast<unsigned>(std::atoi(argv[2]));
  unsigned long long value = argc > 3 ? std::strtoull(argv[3], nullptr, 0) : 0;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr array, more;
  unsigned results[4] = {};
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
    return 65;
  if (value == ~0ull && failed("allocate", cuMemAlloc(&array, 1ull << 50))) return 3;
  if (failed("load", cuModuleLoadData(&module, ptx.c_str()))) return 3;
  if (cuModuleGetFunction(&kernel, module, "k") || cuMemAlloc(&array, 4096) || cuMemsetD8(array, 0, 4096)) return 66;
  void* arguments[] = {&array, &value};
  if (failed("launch", cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr))) return 3;
  bool bad = failed("synchronize", cuCtxSynchronize());
  bad |= failed("copy", cuMemcpyDtoH(results, array, sizeof results));
  bad |= failed("allocate", cuMemAlloc(&more, 16));
  std::printf("%x %x %x %x\n", results[0], results[1], results[2], results[3]);
  return bad ? 3 : 0;
}
