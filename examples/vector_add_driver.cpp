// SPDX-License-Identifier: Apache-2.0
// Vector addition with the driver API alone: the kernel is PTX text that the
// driver compiles when the module is loaded. Link with -lcuda.
// Usage: vector_add_driver [--n ELEMENTS]
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const char kPtx[] = R"(
.version 6.4
.target sm_50
.address_size 64

.visible .entry vectorAdd(
    .param .u64 a,
    .param .u64 b,
    .param .u64 c,
    .param .u32 n)
{
    .reg .pred  outside;
    .reg .f32   x, y;
    .reg .b32   i, size, block, count;
    .reg .b64   at, offset;

    mov.u32         block, %ctaid.x;
    mov.u32         size, %ntid.x;
    mov.u32         i, %tid.x;
    mad.lo.s32      i, block, size, i;
    ld.param.u32    count, [n];
    setp.ge.s32     outside, i, count;
    @outside bra    done;
    mul.wide.s32    offset, i, 4;
    ld.param.u64    at, [a];
    add.s64         at, at, offset;
    ld.global.f32   x, [at];
    ld.param.u64    at, [b];
    add.s64         at, at, offset;
    ld.global.f32   y, [at];
    add.f32         x, x, y;
    ld.param.u64    at, [c];
    add.s64         at, at, offset;
    st.global.f32   [at], x;
done:
    ret;
}
)";

#define CHECK(call)                                                                            \
  do {                                                                                         \
    CUresult result_ = (call);                                                                 \
    if (result_ != CUDA_SUCCESS) {                                                             \
      const char* text_ = nullptr;                                                             \
      cuGetErrorString(result_, &text_);                                                       \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_ ? text_ : "?"); \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (0)

int main(int argc, char** argv) {
  const char* wanted = argc == 3 && std::strcmp(argv[1], "--n") == 0 ? argv[2] : argc == 1 ? "10007" : "";
  char* end = nullptr;
  const long size = std::strtol(wanted, &end, 10);
  if (end == wanted || *end != '\0' || size < 1 || size > 1 << 30) {
    std::fprintf(stderr, "usage: %s [--n ELEMENTS, from 1 to 2^30]\n", argv[0]);
    return 2;
  }
  int n = static_cast<int>(size);

  CHECK(cuInit(0));
  CUdevice device;
  CHECK(cuDeviceGet(&device, 0));
  CUcontext context;
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CUmodule module;
  CHECK(cuModuleLoadData(&module, kPtx));
  CUfunction function;
  CHECK(cuModuleGetFunction(&function, module, "vectorAdd"));

  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) {
    a[i] = 0.25f * i;
    b[i] = 1.0f - i;
  }
  const size_t bytes = n * sizeof(float);
  CUdeviceptr deviceA, deviceB, deviceC;
  CHECK(cuMemAlloc(&deviceA, bytes));
  CHECK(cuMemAlloc(&deviceB, bytes));
  CHECK(cuMemAlloc(&deviceC, bytes));
  CHECK(cuMemcpyHtoD(deviceA, a.data(), bytes));
  CHECK(cuMemcpyHtoD(deviceB, b.data(), bytes));
  CUstream stream;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* arguments[] = {&deviceA, &deviceB, &deviceC, &n};
  CHECK(cuLaunchKernel(function, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, arguments, nullptr));
  CHECK(cuMemcpyDtoHAsync(c.data(), deviceC, bytes, stream));
  CHECK(cuStreamSynchronize(stream));

  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += c[i] != a[i] + b[i];
  CHECK(cuStreamDestroy(stream));
  CHECK(cuMemFree(deviceA));
  CHECK(cuMemFree(deviceB));
  CHECK(cuMemFree(deviceC));
  CHECK(cuModuleUnload(module));
  CHECK(cuDevicePrimaryCtxRelease(device));
  std::printf("%d elements, %d wrong\nvector_add_driver: %s\n", n, wrong, wrong == 0 ? "PASS" : "FAIL");
  return wrong == 0 ? 0 : 1;
}
