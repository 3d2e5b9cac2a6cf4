// SPDX-License-Identifier: Apache-2.0
//
// Errors by name, functions by name, the profiler switches.
#include <atomic>
#include <cstring>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/lookup.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"

namespace sonde::softgpu::driver {
namespace {

struct ErrorName {
  int value;
  const char* name;
  const char* text;
};
constexpr ErrorName kErrors[] = {
#define X(name, value, text) {value, #name, text},
#include "softgpu/driver/error_names.inc"
#undef X
};

const ErrorName* findError(CUresult error) {
  for (const auto& e : kErrors)
    if (e.value == static_cast<int>(error)) return &e;
  return nullptr;
}

}  // namespace

DRIVER_API(cuGetErrorName)(CUresult error, const char** pStr) {
  if (!pStr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* e = findError(error);
  *pStr = e ? e->name : nullptr;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuGetErrorString)(CUresult error, const char** pStr) {
  if (!pStr) return CUDA_ERROR_INVALID_VALUE;
  const ErrorName* e = findError(error);
  *pStr = e ? e->text : nullptr;
  return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Tables of undocumented functions: there are none.
DRIVER_API(cuGetExportTable)(const void** ppExportTable, const CUuuid* pExportTableId) {
  if (!ppExportTable || !pExportTableId) return CUDA_ERROR_INVALID_VALUE;
  *ppExportTable = nullptr;
  // Only the vendor's runtime and libraries ask.
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    say("a part of the program wants tables of the vendor's driver that are not documented and not there: a CUDA "
        "runtime "
        "that is linked into it (start it by sonde run, or link it with -cudart shared), or a library of the vendor's");
  return CUDA_ERROR_NOT_FOUND;
}

DRIVER_API(cuProfilerStart)() {
  Ref<Context> context;
  return currentContext(context);
}
DRIVER_API(cuProfilerStop)() {
  Ref<Context> context;
  return currentContext(context);
}

namespace {

// The newest signature that is not newer than the caller knows.
CUresult lookUp(const char* symbol, void** pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (!symbol || !pfn) return CUDA_ERROR_INVALID_VALUE;
  if (flags &
      ~static_cast<cuuint64_t>(CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
    return CUDA_ERROR_INVALID_VALUE;
  const bool perThread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const LookupEntry* best = nullptr;
  bool known = false;
  for (const auto& e : lookupTable()) {
    if (std::strcmp(e.name, symbol) != 0) continue;
    known = true;
    if (e.version > version || (e.perThread && !perThread)) continue;
    if (!best || (e.perThread && !best->perThread) || (e.perThread == best->perThread && e.version >= best->version))
      best = &e;
  }
  *pfn = best ? best->function : nullptr;
  if (status)
    *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return best ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

DRIVER_API(cuGetProcAddress)(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  return lookUp(symbol, pfn, cudaVersion, flags, nullptr);
}
DRIVER_API(cuGetProcAddress_v2)
(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags, CUdriverProcAddressQueryResult* symbolStatus) {
  const CUresult result = lookUp(symbol, pfn, cudaVersion, flags, symbolStatus);
  // Since version 2 the status tells, and "not found" is an error still.
  return result;
}

}  // namespace sonde::softgpu::driver
