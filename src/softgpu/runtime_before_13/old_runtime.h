// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

// Marks a function of the older library, for forwards.py: at the start of a line.
// The assembly exports it under its own name, which here is that of the newer form.
#define SONDE_OLD(name) extern "C" __attribute__((visibility("hidden"))) cudaError_t sonde_old_##name
#define SONDE_OLD_11(name) SONDE_OLD(name)

namespace sonde::cudart {

// A function of libcudart.so.13; null: there is no such library, or function.
void* newFunction(const char* name);

template <class F, class... Args>
cudaError_t call(const char* name, Args... args) {
  auto* f = reinterpret_cast<F*>(newFunction(name));
  return f ? f(args...) : cudaErrorNotSupported;
}

}  // namespace sonde::cudart
