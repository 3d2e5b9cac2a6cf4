// SPDX-License-Identifier: Apache-2.0
// The driver below the runtime: found at run time, called only through its
// documented functions, so that the runtime works on any libcuda.so.1.
#ifndef SONDE_SOFTGPU_RUNTIME_DRIVER_H_
#define SONDE_SOFTGPU_RUNTIME_DRIVER_H_

#include <cuda.h>
#include <cudaProfiler.h>
#include <driver_types.h>

#include "platform/tools_api.h"

namespace sonde::cudart {

// One pointer per driver function, named with a trailing underscore; NULL where
// the driver has no such function.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // behind functions of the runtime that are deprecated too
struct DriverTable {
#define SONDE_DRIVER_FN(name) decltype(&::name) name##_ = nullptr;
#include "softgpu/runtime/driver_functions.def"
#undef SONDE_DRIVER_FN
};
#pragma GCC diagnostic pop

// Loads the driver and initialises it, once per process; the same answer from
// then on. cudaErrorInsufficientDriver: no usable libcuda.so.1.
cudaError_t initDriver();

// The functions of the calling thread's default-stream behaviour (see
// PerThreadDefaultStream). Only after initDriver succeeded.
const DriverTable& driverTable();

// Where calls are reported, or NULL (a driver without the tools interface).
const SondeRuntimeHooks* runtimeHooks();

// An entry point of the driver by name. NULL: none.
void* driverEntryPoint(const char* name, int version, unsigned long long flags, CUdriverProcAddressQueryResult* status,
                       CUresult* result);

// The runtime's error for the driver's: the numbers are the same by design.
inline cudaError_t fromDriver(CUresult result) { return static_cast<cudaError_t>(result); }

// While one lives, "stream 0" means the thread's own default stream.
class PerThreadDefaultStream {
 public:
  PerThreadDefaultStream();
  ~PerThreadDefaultStream();
  PerThreadDefaultStream(const PerThreadDefaultStream&) = delete;
  PerThreadDefaultStream& operator=(const PerThreadDefaultStream&) = delete;
  static bool active();

 private:
  bool before_;
};

}  // namespace sonde::cudart

// Calls a driver function by its plain name and gives a cudaError_t.
#define SONDE_CU(name, ...)                                                                                    \
  ([&]() -> cudaError_t {                                                                                      \
    auto function_ = ::sonde::cudart::driverTable().name##_;                                                   \
    return function_ ? ::sonde::cudart::fromDriver(function_(__VA_ARGS__)) : cudaErrorCallRequiresNewerDriver; \
  }())

// Returns from the enclosing function unless `expression` is cudaSuccess.
#define SONDE_TRY(expression)                 \
  do {                                        \
    cudaError_t error_ = (expression);        \
    if (error_ != cudaSuccess) return error_; \
  } while (0)

#endif  // SONDE_SOFTGPU_RUNTIME_DRIVER_H_
