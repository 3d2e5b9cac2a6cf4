// SPDX-License-Identifier: Apache-2.0
// The program whose source lines the tests look at. One launch of scale, 2 blocks of 64 threads, 4 warps:
//
//   line 3   4 instructions of each warp
//   line 4   3, one of them a branch at which the odd threads leave
//   line 5   4 with the 16 even threads; a store of 4 bytes a thread, 64 bytes apart: 16 sectors, 2 would do
//   line 7   1
//
// and one of plain, 1 warp, 2 instructions, whose PTX has no lines. With the word gaps, one launch of gaps instead,
// 1 warp: 3 instructions of no line, 1 of line 20, 1 of line 22, and of line 3 of a header 2, one of them a store of a
// row of words.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

static const char kScale[] = R"(
.version 6.4
.target sm_35
.address_size 64
.file 1 "kernels/sourced.cu"
.visible .entry _Z5scalePf(.param .u64 a)
{
    .reg .pred %p;
    .reg .f32 %x;
    .reg .b32 %i, %size, %block, %odd;
    .reg .b64 %at, %offset;
    .loc 1 3 1
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.s32 %i, %block, %size, %i;
    .loc 1 4 1
    and.b32 %odd, %i, 1;
    setp.eq.s32 %p, %odd, 1;
    @%p bra end;
    .loc 1 5 1
    mul.wide.s32 %offset, %i, 32;
    ld.param.u64 %at, [a];
    add.s64 %at, %at, %offset;
    st.global.u32 [%at], %i;
end:
    .loc 1 7 1
    ret;
}
)";
static const char kPlain[] = R"(
.version 6.4
.target sm_35
.address_size 64
.visible .entry plain()
{
    bar.sync 0;
    ret;
}
)";

static const char kGaps[] = R"(
.version 6.4
.target sm_35
.address_size 64
.file 1 "kernels/sourced.cu"
.file 2 "kernels/part.h"
.visible .entry gaps(.param .u64 a)
{
    .reg .b32 %i;
    .reg .b64 %at, %offset;
    ld.param.u64 %at, [a];
    .loc 1 20 1
    mov.u32 %i, %tid.x;
    .loc 1 0 1
    cvta.to.global.u64 %at, %at;
    mul.wide.u32 %offset, %i, 4;
    .loc 2 3 1, function_name $L__info_string0, inlined_at 1 21 1
    add.s64 %at, %at, %offset;
    st.global.u32 [%at], %i;
    .loc 1 22 1
    ret;
}
.section .debug_str
{
$L__info_string0:
.b8 95,90,49,102,118,0
}
)";

// Two blocks, each of which launches leaf<<<1, 32>>>.
static const char kNested[] = R"(
.version 7.0
.target sm_35
.address_size 64
.file 1 "kernels/nested.cu"
.extern .func (.param .b64 r) cudaGetParameterBuffer (.param .b64 a, .param .b64 s);
.extern .func (.param .b32 r) cudaLaunchDevice (.param .b64 f, .param .b64 p, .param .align 4 .b8 g[12],
                                                .param .align 4 .b8 b[12], .param .b32 s, .param .b64 t);
.visible .entry leaf()
{
    .loc 1 4 1
    ret;
}
.visible .entry nested(.param .u64 a)
{
    .reg .b64 %kernel, %buffer;
    .loc 1 8 1
    mov.u64 %kernel, leaf;
    {
    .param .b64 a; .param .b64 s; .param .b64 q;
    st.param.b64 [a], 8; st.param.b64 [s], 0;
    call.uni (q), cudaGetParameterBuffer, (a, s);
    ld.param.b64 %buffer, [q];
    }
    {
    .param .b64 f; .param .b64 p; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 t;
    .param .b32 q;
    st.param.b64 [f], %kernel; st.param.b64 [p], %buffer;
    st.param.b32 [g], 1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
    st.param.b32 [b], 32; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
    st.param.b32 [s], 0; st.param.b64 [t], 0;
    call.uni (q), cudaLaunchDevice, (f, p, g, b, s, t);
    }
    .loc 1 9 1
    ret;
}
)";

#define CHECK(call)                                                                          \
  do {                                                                                       \
    if (const CUresult result = (call); result != CUDA_SUCCESS) {                            \
      std::fprintf(stderr, "%d: %s: error %d\n", __LINE__, #call, static_cast<int>(result)); \
      std::exit(80);                                                                         \
    }                                                                                        \
  } while (0)

int main(int argc, char** argv) {
  CHECK(cuInit(0));
  CUdevice device;
  CUcontext context;
  CUmodule withLines, without;
  CUfunction scale, plain;
  CUdeviceptr a;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&withLines, kScale));
  CHECK(cuModuleGetFunction(&scale, withLines, "_Z5scalePf"));
  CHECK(cuMemAlloc(&a, 128 * 32));
  void* arguments[] = {&a};
  const bool isGaps = argc > 1 && std::strcmp(argv[1], "gaps") == 0;
  if (isGaps || (argc > 1 && std::strcmp(argv[1], "nested") == 0)) {
    CUmodule module;
    CUfunction kernel;
    CHECK(cuModuleLoadData(&module, isGaps ? kGaps : kNested));
    CHECK(cuModuleGetFunction(&kernel, module, argv[1]));
    CHECK(cuLaunchKernel(kernel, isGaps ? 1 : 2, 1, 1, isGaps ? 32 : 1, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cuCtxSynchronize());
    return 0;
  }
  CHECK(cuLaunchKernel(scale, 2, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  if (argc == 1) {
    CHECK(cuModuleLoadData(&without, kPlain));
    CHECK(cuModuleGetFunction(&plain, without, "plain"));
    CHECK(cuLaunchKernel(plain, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  CHECK(cuCtxSynchronize());
  return 0;
}
