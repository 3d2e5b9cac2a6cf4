// SPDX-License-Identifier: Apache-2.0
// The program whose events the tests count; all is known of it:
//
//   add   4 blocks of 256 threads, twice: 32 warps, 1024 threads. Each warp executes 16 instructions, with two loads
//         and one store of 4 bytes a thread: 2 x 32 load requests, 32 store requests, of 4 sectors each
//   touch 2 blocks of 64 threads, once:    4 warps of 6 instructions, one store each
//
//   counted [abort | kill | throw | sleep | graph]
//
// With "graph", add and touch once more, twice, as one graph.
#include <cuda.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>

static const char kPtx[] = R"(
.version 6.4
.target sm_35
.address_size 64
.visible .entry _Z3addPKfS0_Pf(.param .u64 a, .param .u64 b, .param .u64 c)
{
    .reg .f32 %x, %y;
    .reg .b32 %i, %size, %block;
    .reg .b64 %at, %offset;
    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.s32 %i, %block, %size, %i;
    mul.wide.s32 %offset, %i, 4;
    ld.param.u64 %at, [a];
    add.s64 %at, %at, %offset;
    ld.global.f32 %x, [%at];
    ld.param.u64 %at, [b];
    add.s64 %at, %at, %offset;
    ld.global.f32 %y, [%at];
    add.f32 %x, %x, %y;
    ld.param.u64 %at, [c];
    add.s64 %at, %at, %offset;
    st.global.f32 [%at], %x;
    ret;
}
.visible .entry _Z5touchPi(.param .u64 p)
{
    .reg .b32 %i;
    .reg .b64 %at, %offset;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %offset, %i, 4;
    ld.param.u64 %at, [p];
    add.s64 %at, %at, %offset;
    st.global.u32 [%at], %i;
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
  CUmodule module;
  CUfunction add, touch;
  CUdeviceptr a, b, c;
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, kPtx));
  CHECK(cuModuleGetFunction(&add, module, "_Z3addPKfS0_Pf"));
  CHECK(cuModuleGetFunction(&touch, module, "_Z5touchPi"));
  for (CUdeviceptr* p : {&a, &b, &c}) CHECK(cuMemAlloc(p, 4096));
  CHECK(cuMemsetD32(a, 0x3f800000, 1024));
  CHECK(cuMemsetD32(b, 0x40000000, 1024));
  void* ofAdd[] = {&a, &b, &c};
  void* ofTouch[] = {&a};
  for (int i = 0; i < 2; i++) CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, nullptr, ofAdd, nullptr));
  CHECK(cuLaunchKernel(touch, 2, 1, 1, 64, 1, 1, 0, nullptr, ofTouch, nullptr));
  float sum[1024];
  CHECK(cuMemcpyDtoH(sum, c, sizeof sum));
  for (const float x : sum)
    if (x != 3.0f) return 81;
  const char* how = argc > 1 ? argv[1] : "";
  if (std::strcmp(how, "abort") == 0) std::abort();
  if (std::strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (std::strcmp(how, "graph") == 0) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK(cuLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, stream, ofAdd, nullptr));
    CHECK(cuLaunchKernel(touch, 2, 1, 1, 64, 1, 1, 0, stream, ofTouch, nullptr));
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < 2; i++) CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuStreamSynchronize(stream));
  }
  if (std::strcmp(how, "throw") == 0) throw std::runtime_error("nobody catches this");
  if (std::strcmp(how, "sleep") == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // not longer than whoever started it
    std::puts("ready");
    std::fflush(stdout);
    for (;;) pause();
  }
  return 0;
}
