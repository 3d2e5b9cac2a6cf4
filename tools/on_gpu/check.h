// SPDX-License-Identifier: Apache-2.0
//
// Calls that have to succeed: else where and why, and the program ends.
#pragma once

#include <cuda_runtime.h>
#include <cupti.h>

#include <cstdio>
#include <cstdlib>

#define RT(call)                                                                                 \
  do {                                                                                           \
    const cudaError_t e = (call);                                                                \
    if (e != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e)); \
      std::exit(1);                                                                              \
    }                                                                                            \
  } while (0)
#define CUPTI(call)                                                                       \
  do {                                                                                    \
    const CUptiResult e = (call);                                                         \
    if (e != CUPTI_SUCCESS) {                                                             \
      const char *name = "", *text = "";                                                  \
      cuptiGetResultString(e, &name);                                                     \
      cuptiGetErrorMessage(e, &text);                                                     \
      std::fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, name, text); \
      std::exit(1);                                                                       \
    }                                                                                     \
  } while (0)
