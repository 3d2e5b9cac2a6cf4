// SPDX-License-Identifier: Apache-2.0
// How an exported runtime function reports itself and keeps its error.
#ifndef SONDE_SOFTGPU_RUNTIME_ENTRY_H_
#define SONDE_SOFTGPU_RUNTIME_ENTRY_H_

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "softgpu/runtime/registry.h"
#include "softgpu/runtime/state.h"

#define SONDE_CUDART_EXPORT extern "C" __attribute__((visibility("default")))

namespace sonde::cudart {

// For functions that are declared but not built; says so once per function on
// stderr, unless SONDE_QUIET is set.
cudaError_t notSupported(const char* function);

// Is anybody listening to this callback id?
inline bool listened(const SondeRuntimeHooks* hooks, uint32_t cbid) {
  return cbid < hooks->enabledCount && hooks->enabled[cbid] != 0;
}

template <typename Body>
cudaError_t callReported(const SondeRuntimeHooks* hooks, uint32_t cbid, const char* name, const void* params,
                         const char* symbol, Body body, unsigned runtime) {
  SondeApiCall report{};
  report.size = sizeof report;
  report.domain = SONDE_DOMAIN_RUNTIME;
  report.cbid = cbid;
  report.functionName = name;
  report.symbolName = symbol;
  report.params = params;
  hooks->enter(&report);
  cudaError_t result = body();
  report.returnValue = &result;
  hooks->exit(&report);
  return recordError(result, runtime);
}

template <typename Body>
cudaError_t callAs(unsigned runtime, uint32_t cbid, const char* name, const void* params, Body body) {
  const SondeRuntimeHooks* hooks = runtimeHooks();
  if (!hooks) return recordError(body(), runtime);
  if (listened(hooks, cbid)) [[unlikely]]
    return callReported(hooks, cbid, name, params, nullptr, body, runtime);
  hooks->begin();
  cudaError_t result = body();
  hooks->end();
  return recordError(result, runtime);
}

// Runs `body` as the API function `cbid`.
template <typename Body>
cudaError_t call(uint32_t cbid, const char* name, const void* params, Body body) {
  return callAs(takeRuntime(), cbid, name, params, body);
}

// The same for launches, whose report names the kernel.
template <typename Body>
cudaError_t callLaunch(uint32_t cbid, const char* name, const void* params, const void* stub, Body body) {
  const unsigned runtime = takeRuntime();
  const SondeRuntimeHooks* hooks = runtimeHooks();
  if (hooks && listened(hooks, cbid)) [[unlikely]]
    return callReported(hooks, cbid, name, params, registry().kernelName(stub), body, runtime);
  return callAs(runtime, cbid, name, params, body);
}

}  // namespace sonde::cudart

#endif  // SONDE_SOFTGPU_RUNTIME_ENTRY_H_
