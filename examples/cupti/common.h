/* SPDX-License-Identifier: Apache-2.0
 * What the example clients share: error checks, and a kernel as PTX text. */
#ifndef SONDE_EXAMPLES_CUPTI_COMMON_H_
#define SONDE_EXAMPLES_CUPTI_COMMON_H_

#include <cuda.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_CU(call)                                                      \
  do {                                                                      \
    CUresult result_ = (call);                                              \
    if (result_ != CUDA_SUCCESS) {                                          \
      const char* text_ = NULL;                                             \
      cuGetErrorString(result_, &text_);                                    \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_); \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

#define CHECK_CUPTI(call)                                                                                   \
  do {                                                                                                      \
    CUptiResult result_ = (call);                                                                           \
    if (result_ != CUPTI_SUCCESS) {                                                                         \
      const char* text_ = NULL;                                                                             \
      cuptiGetErrorMessage(result_, &text_);                                                                \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, text_ ? text_ : "no such result code"); \
      exit(1);                                                                                              \
    }                                                                                                       \
  } while (0)

/* c[i] = a[i] + b[i], rounds times. */
static const char* const kAddPtx =
    ".version 7.0\n.target sm_35\n.address_size 64\n"
    ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 rounds)\n"
    "{\n"
    "  .reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;\n"
    "  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r5, [rounds];\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "  mul.wide.u32 %rd4, %r4, 4;\n"
    "  add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;\n"
    "again:\n"
    "  ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; st.global.f32 [%rd7], %f3;\n"
    "  sub.u32 %r5, %r5, 1; setp.ne.u32 %p, %r5, 0;\n"
    "  @%p bra again;\n"
    "  ret;\n"
    "}\n";

#define BLOCKS 64
#define THREADS 256
#define ELEMENTS (BLOCKS * THREADS)

typedef struct Work {
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr a, b, c;
} Work;

static inline Work prepareWork(CUdevice device) {
  Work w;
  CHECK_CU(cuCtxCreate(&w.context, NULL, 0, device));
  CHECK_CU(cuModuleLoadData(&w.module, kAddPtx));
  CHECK_CU(cuModuleGetFunction(&w.function, w.module, "add"));
  CHECK_CU(cuMemAlloc(&w.a, ELEMENTS * sizeof(float)));
  CHECK_CU(cuMemAlloc(&w.b, ELEMENTS * sizeof(float)));
  CHECK_CU(cuMemAlloc(&w.c, ELEMENTS * sizeof(float)));
  CHECK_CU(cuMemsetD32(w.a, 0x3f800000, ELEMENTS)); /* 1.0f */
  CHECK_CU(cuMemsetD32(w.b, 0x40000000, ELEMENTS)); /* 2.0f */
  return w;
}

static inline void launchWork(Work* w, unsigned rounds) {
  void* arguments[] = {&w->a, &w->b, &w->c, &rounds};
  CHECK_CU(cuLaunchKernel(w->function, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL));
}

static inline void finishWork(Work* w) {
  float first = 0;
  CHECK_CU(cuMemcpyDtoH(&first, w->c, sizeof first));
  if (first != 3.0f) {
    fprintf(stderr, "the kernel computed %g instead of 3\n", first);
    exit(1);
  }
  CHECK_CU(cuMemFree(w->a));
  CHECK_CU(cuMemFree(w->b));
  CHECK_CU(cuMemFree(w->c));
  CHECK_CU(cuModuleUnload(w->module));
  CHECK_CU(cuCtxDestroy(w->context));
}

#endif /* SONDE_EXAMPLES_CUPTI_COMMON_H_ */
