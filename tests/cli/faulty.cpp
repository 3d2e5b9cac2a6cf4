// SPDX-License-Identifier: Apache-2.0
// What the checks of `sonde run` find: one launch of 32 threads on 128 bytes that nothing wrote. Thread l reads word l
// and writes word l + 1, the last one past the end.
#include <cuda.h>

static const char kText[] = R"(
.version 6.4
.target sm_35
.address_size 64
.visible .entry faulty(.param .u64 a)
{
    .reg .b32 %l, %v;
    .reg .b64 %at, %offset;
    mov.u32 %l, %tid.x;
    mul.wide.u32 %offset, %l, 4;
    ld.param.u64 %at, [a];
    add.s64 %at, %at, %offset;
    ld.global.u32 %v, [%at];
    st.global.u32 [%at+4], %v;
    ret;
}
)";

int main() {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction faulty;
  CUdeviceptr a;
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context) ||
      cuModuleLoadData(&module, kText) || cuModuleGetFunction(&faulty, module, "faulty") || cuMemAlloc(&a, 128))
    return 80;
  void* arguments[] = {&a};
  if (cuLaunchKernel(faulty, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr)) return 81;
  // 0: nothing was found that ends a kernel.
  return cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS ? 82 : 0;
}
