// SPDX-License-Identifier: Apache-2.0
// The same walk with the record structures of 6.5.
#define CUPTI_RECORD_ABI 6050
#include "next_record_fuzzer.cpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return cuptiActivityRegisterCallbacks([](uint8_t** buffer, size_t*, size_t*) { *buffer = nullptr; },
                                        [](CUcontext, uint32_t, uint8_t*, size_t, size_t) {});
}
