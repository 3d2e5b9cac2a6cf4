// SPDX-License-Identifier: Apache-2.0
// Errors: the thread's last one, names and descriptions.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "softgpu/runtime/impl.h"

namespace sonde::cudart {
namespace {

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#define SONDE_ERROR(name, text) {name, #name, text},
#include "softgpu/runtime/errors.def"
#undef SONDE_ERROR
};

const ErrorText* find(cudaError_t code) {
  for (const ErrorText& error : kErrors)
    if (error.code == code) return &error;
  return nullptr;
}

}  // namespace

cudaError_t notSupported(const char* function) {
  static std::mutex mutex;
  static std::set<std::string> said;
  std::lock_guard lock(mutex);
  const char* quiet = std::getenv("SONDE_QUIET");
  if (said.insert(function).second && !(quiet && *quiet && *quiet != '0'))
    std::fprintf(stderr, "sonde: %s is not supported\n", function);
  return cudaErrorNotSupported;
}

}  // namespace sonde::cudart

using namespace sonde::cudart;

SONDE_CUDART_EXPORT const char* CUDARTAPI cudaGetErrorName(cudaError_t error) {
  const ErrorText* known = find(error);
  return known ? known->name : "unrecognized error code";
}

SONDE_CUDART_EXPORT const char* CUDARTAPI cudaGetErrorString(cudaError_t error) {
  const ErrorText* known = find(error);
  return known ? known->text : "unrecognized error code";
}

SONDE_CUDART_EXPORT cudaError_t CUDARTAPI cudaGetLastError(void) {
  const unsigned runtime = takeRuntime();
  cudaError_t& last = threadState().lastErrors[runtime];
  auto body = [&] {
    const cudaError_t error = last;
    last = cudaSuccess;
    return error;
  };
  const SondeRuntimeHooks* hooks = runtimeHooks();
  constexpr uint32_t kCallbackId = 10;
  if (!hooks || !listened(hooks, kCallbackId)) return body();
  cudaError_t error = callReported(hooks, kCallbackId, "cudaGetLastError", nullptr, nullptr, body, runtime);
  last = cudaSuccess;
  return error;
}

SONDE_CUDART_EXPORT cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
  const unsigned runtime = takeRuntime();
  const cudaError_t last = threadState().lastErrors[runtime];
  return callAs(runtime, 11, "cudaPeekAtLastError", nullptr, [&] { return last; });
}
