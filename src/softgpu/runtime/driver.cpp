// SPDX-License-Identifier: Apache-2.0
#include "softgpu/runtime/driver.h"

#include <dlfcn.h>

#include <mutex>
#include <string>
#include <string_view>

namespace sonde::cudart {
namespace {

// The driver ABI that cuda.h describes; cuGetProcAddress picks variants by it.
constexpr int kDriverAbi = CUDA_VERSION;

struct Loaded {
  void* library = nullptr;
  decltype(&::cuGetProcAddress) getProcAddress = nullptr;
  DriverTable legacy, perThread;
  const SondeRuntimeHooks* hooks = nullptr;
  cudaError_t status = cudaErrorInsufficientDriver;
};

Loaded& loaded() {
  // Never destroyed: destructors of the application may still call us.
  static Loaded& instance = *new Loaded;
  return instance;
}

thread_local bool perThreadDefault = false;

// The exported name carries the ABI that cuda.h declares; cuGetProcAddress picks
// one by version, which need not be the same (cuCtxSynchronize has since got a
// context parameter), so it comes second.
void* lookup(Loaded& driver, const char* name, const char* exportedName, bool perThread) {
  if (perThread) {
    for (const char* suffix : {"_ptsz", "_ptds"})
      if (void* address = dlsym(driver.library, (std::string(exportedName) + suffix).c_str())) return address;
  }
  if (void* address = dlsym(driver.library, exportedName)) return address;
  void* address = nullptr;
  cuuint64_t flags = perThread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  if (driver.getProcAddress && std::string_view(name) != exportedName)
    driver.getProcAddress(name, &address, kDriverAbi, flags, &status);
  return address;
}

// Two steps, so that the macro of cuda.h that adds the ABI suffix is expanded.
#define SONDE_TEXT_(name) #name
#define SONDE_TEXT(name) SONDE_TEXT_(name)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void fill(Loaded& driver, DriverTable& table, bool perThread) {
#define SONDE_DRIVER_FN(name) \
  table.name##_ = reinterpret_cast<decltype(&::name)>(lookup(driver, #name, SONDE_TEXT(name), perThread));
#include "softgpu/runtime/driver_functions.def"
#undef SONDE_DRIVER_FN
}
#pragma GCC diagnostic pop

void load(Loaded& driver) {
  driver.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver.library) return;
  driver.getProcAddress =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(driver.library, SONDE_TEXT(cuGetProcAddress)));
  fill(driver, driver.legacy, false);
  if (!driver.legacy.cuInit_) return;
  fill(driver, driver.perThread, true);
  if (CUresult result = driver.legacy.cuInit_(0); result != CUDA_SUCCESS) {
    driver.status = fromDriver(result);
    return;
  }
  if (auto hooks = reinterpret_cast<SondeToolsRuntimeFn>(dlsym(driver.library, SONDE_TOOLS_RUNTIME_SYMBOL)))
    driver.hooks = hooks(SONDE_TOOLS_ABI_VERSION);
  driver.status = cudaSuccess;
}

}  // namespace

cudaError_t initDriver() {
  static std::once_flag once;
  // A library that cuInit loads (CUDA_INJECTION64_PATH) calls from within: the driver is there for it.
  static thread_local bool loading = false;
  if (loading) return cudaSuccess;
  Loaded& driver = loaded();
  std::call_once(once, [&] {
    loading = true;
    load(driver);
    loading = false;
  });
  return driver.status;
}

const DriverTable& driverTable() { return perThreadDefault ? loaded().perThread : loaded().legacy; }

const SondeRuntimeHooks* runtimeHooks() { return initDriver() == cudaSuccess ? loaded().hooks : nullptr; }

void* driverEntryPoint(const char* name, int version, unsigned long long flags, CUdriverProcAddressQueryResult* status,
                       CUresult* result) {
  *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *result = CUDA_ERROR_NOT_FOUND;
  Loaded& driver = loaded();
  void* address = nullptr;
  if (driver.getProcAddress) *result = driver.getProcAddress(name, &address, version, flags, status);
  return address;
}

PerThreadDefaultStream::PerThreadDefaultStream() : before_(perThreadDefault) { perThreadDefault = true; }
PerThreadDefaultStream::~PerThreadDefaultStream() { perThreadDefault = before_; }
bool PerThreadDefaultStream::active() { return perThreadDefault; }

}  // namespace sonde::cudart
