// SPDX-License-Identifier: Apache-2.0
// What matrix_test.cpp calls from everywhere: every function of the library that
// works, and CUDA calls of every sort.
#ifndef SONDE_TESTS_CUPTI_GPU_MATRIX_H_
#define SONDE_TESTS_CUPTI_GPU_MATRIX_H_

#include <functional>
#include <string>
#include <vector>

#include "gpu_trace.h"

namespace sonde::test {

struct Function {
  std::string name;
  std::function<void()> call;
};
std::vector<Function> functions();

// What they use; set by the test.
inline CUcontext matrixContext;
inline CUpti_SubscriberHandle matrixSubscriber;
inline uint32_t* matrixMemory;
inline CUpti_EventID matrixEvent;
inline CUpti_MetricID matrixMetric;
inline CUpti_EventDomainID matrixDomain;

// Client code that they hand over.
uint64_t CUPTIAPI ownClock();
void CUPTIAPI ownChecksum(const void* image, size_t size, uint64_t* checksum);
void CUPTIAPI probing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*);

// The application's side of NVTX.
const void* nvtxExports(uint32_t id);

}  // namespace sonde::test

#endif  // SONDE_TESTS_CUPTI_GPU_MATRIX_H_
