// SPDX-License-Identifier: Apache-2.0
//
// Modules and functions.
#include <algorithm>
#include <cstring>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/fatbin.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"

namespace sonde::softgpu::driver {
namespace {

CUresult load(CUmodule* out, const void* image, size_t bytes, JitOptions& options, JitLogs logs = {}) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  Ref<Module> module;
  const CUresult result = loadModule(*context, image, bytes, logs, module);
  options.deliver(logs);
  if (result) return result;
  *out = static_cast<CUmodule>(module->handle());
  return CUDA_SUCCESS;
}

CUresult findModule(CUmodule handle, Ref<Module>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Module>(handle);
  if (!out) return CUDA_ERROR_INVALID_HANDLE;
  return out->context()->error();
}

}  // namespace

DRIVER_API(cuModuleLoadData)(CUmodule* module, const void* image) {
  JitOptions none;
  return load(module, image, 0, none);
}

DRIVER_API(cuModuleLoadDataEx)
(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options, void** optionValues) {
  JitOptions jit;
  if (const CUresult e = jit.parse(numOptions, options, optionValues)) return e;
  return load(module, image, 0, jit);
}

DRIVER_API(cuModuleLoadFatBinary)(CUmodule* module, const void* fatCubin) {
  JitOptions none;
  return load(module, fatCubin, 0, none);
}

DRIVER_API(cuModuleLoad)(CUmodule* module, const char* fname) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!module || !fname) return CUDA_ERROR_INVALID_VALUE;
  std::string bytes;
  JitLogs logs;
  if (const CUresult e = readImageFile(fname, bytes, logs)) {
    say("module refused: " + logs.shown());
    return e;
  }
  JitOptions none;
  return load(module, bytes.data(), bytes.size(), none, std::move(logs));
}

DRIVER_API(cuModuleUnload)(CUmodule hmod) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  Ref<Module> module;
  if (const CUresult e = findModule(hmod, module)) return e;
  unloadModule(*module);
  return CUDA_SUCCESS;
}

DRIVER_API(cuModuleGetLoadingMode)(CUmoduleLoadingMode* mode) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!mode) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

DRIVER_API(cuModuleGetFunction)(CUfunction* hfunc, CUmodule hmod, const char* name) {
  Ref<Module> module;
  if (const CUresult e = findModule(hmod, module)) return e;
  if (!hfunc || !name) return CUDA_ERROR_INVALID_VALUE;
  const Ref<Function> function = module->function(name);
  if (!function) return CUDA_ERROR_NOT_FOUND;
  *hfunc = static_cast<CUfunction>(function->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuModuleGetFunctionCount)(unsigned int* count, CUmodule mod) {
  Ref<Module> module;
  if (const CUresult e = findModule(mod, module)) return e;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(module->program().kernels().size());
  return CUDA_SUCCESS;
}

DRIVER_API(cuModuleEnumerateFunctions)(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
  Ref<Module> module;
  if (const CUresult e = findModule(mod, module)) return e;
  if (!functions) return CUDA_ERROR_INVALID_VALUE;
  const auto n = std::min<size_t>(numFunctions, module->program().kernels().size());
  for (uint32_t i = 0; i < n; i++) functions[i] = static_cast<CUfunction>(module->function(i)->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuModuleGetGlobal_v2)(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  Ref<Module> module;
  if (const CUresult e = findModule(hmod, module)) return e;
  if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address, size;
  if (!module->global(name, address, size)) return CUDA_ERROR_NOT_FOUND;
  if (dptr) *dptr = address;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

// -------------------------------------------------------------- functions --

namespace {

CUresult attributeOf(const exec::KernelInfo& info, const Function* f, int attribute, int* value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(info.maxThreadsPerBlock); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(info.staticSharedBytes); break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(info.constBytes); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(info.localBytesPerThread); break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(info.registersPerThread); break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = static_cast<int>(info.ptxTarget); break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = static_cast<int>(info.ptxTarget); break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = f ? static_cast<int>(f->maxDynamicShared.load())
                 : static_cast<int>(49152 - std::min(49152u, info.staticSharedBytes));
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = f ? f->carveout.load() : -1; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = info.requiredCluster[0] ? 1 : 0; break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = static_cast<int>(f && f->clusterX ? f->clusterX.load() : info.requiredCluster[0]);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = static_cast<int>(f && f->clusterY ? f->clusterY.load() : info.requiredCluster[1]);
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = static_cast<int>(f && f->clusterZ ? f->clusterZ.load() : info.requiredCluster[2]);
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = f ? f->nonPortableCluster.load() : 0; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = f ? f->clusterPolicy.load() : 0; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult setAttribute(Function& f, int attribute, int value) {
  const auto& device = f.module()->context()->device()->model;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || static_cast<uint64_t>(value) + f.info().staticSharedBytes > device.sharedPerBlockOptin)
        return CUDA_ERROR_INVALID_VALUE;
      f.maxDynamicShared.store(static_cast<uint32_t>(value));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      f.carveout.store(value);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: f.clusterX.store(value); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: f.clusterY.store(value); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: f.clusterZ.store(value); return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      f.nonPortableCluster.store(value != 0);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      if (!knownClusterPolicy(value)) return CUDA_ERROR_INVALID_VALUE;
      f.clusterPolicy.store(value);
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult paramInfo(const exec::KernelInfo& info, size_t index, size_t* offset, size_t* size) {
  if (!offset || index >= info.params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.params[index].offset;
  if (size) *size = info.params[index].size;
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuFuncGetAttribute)(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  if (!pi) return CUDA_ERROR_INVALID_VALUE;
  return attributeOf(function->info(), function.get(), attrib, pi);
}

DRIVER_API(cuFuncSetAttribute)(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  return setAttribute(*function, attrib, value);
}

DRIVER_API(cuFuncSetCacheConfig)(CUfunction hfunc, CUfunc_cache config) {
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  if (static_cast<unsigned>(config) > CU_FUNC_CACHE_PREFER_EQUAL) return CUDA_ERROR_INVALID_VALUE;
  function->cacheConfig.store(config);
  return CUDA_SUCCESS;
}

DRIVER_API(cuFuncSetSharedMemConfig)(CUfunction hfunc, CUsharedconfig config) {
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  return static_cast<unsigned>(config) > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                                   : CUDA_SUCCESS;
}

DRIVER_API(cuFuncGetModule)(CUmodule* hmod, CUfunction hfunc) {
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  if (!hmod) return CUDA_ERROR_INVALID_VALUE;
  *hmod = static_cast<CUmodule>(function->module()->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuFuncGetName)(const char** name, CUfunction hfunc) {
  Ref<Function> function;
  if (const CUresult e = findFunction(hfunc, function)) return e;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = function->info().name.c_str();
  return CUDA_SUCCESS;
}

DRIVER_API(cuFuncGetParamInfo)(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  Ref<Function> function;
  if (const CUresult e = findFunction(func, function)) return e;
  return paramInfo(function->info(), paramIndex, paramOffset, paramSize);
}

DRIVER_API(cuFuncIsLoaded)(CUfunctionLoadingState* state, CUfunction function) {
  Ref<Function> f;
  if (const CUresult e = findFunction(function, f)) return e;
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  *state = f->loaded() ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}

DRIVER_API(cuFuncLoad)(CUfunction function) {
  Ref<Function> f;
  if (const CUresult e = findFunction(function, f)) return e;
  return f->load(exec::CountLevel::off);
}

// -------------------------------------------------------------- libraries --

namespace {

CUresult findLibrary(CUlibrary handle, Ref<Library>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Library>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult findKernel(CUkernel handle, Ref<Kernel>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<Kernel>(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The module of the library in the current context.
CUresult libraryModule(CUlibrary handle, Ref<Module>& module) {
  Ref<Library> library;
  if (const CUresult e = findLibrary(handle, library)) return e;
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  return library->module(*context, module);
}

}  // namespace

CUresult loadLibrary(CUlibrary* out, const void* image, size_t bytes, JitOptions& jit, JitLogs logs = {});

CUresult loadLibrary(CUlibrary* out, const void* image, size_t bytes, JitOptions& jit, JitLogs logs) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  // Without a context the first device stands for all.
  Context* current = peekContext();
  Device* device = current ? current->device() : Driver::get().devices().front();
  LoadedImage loaded = readImage(image, bytes, device->capability());
  std::shared_ptr<exec::Program> program;
  CUresult result = loaded.error;
  if (result)
    logs.fail(loaded.message);
  else
    result = makeProgram(loaded.texts, device->model, logs, program);
  jit.deliver(logs);
  if (result) {
    say("library refused: " + logs.shown());
    return result;
  }
  auto library = make<Library>(std::move(loaded.texts), std::move(program));
  if (!HandleTable::publish(library.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = static_cast<CUlibrary>(library->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryLoadData)
(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues, unsigned int numJitOptions,
 CUlibraryOption* libraryOptions, void** libraryOptionValues, unsigned int numLibraryOptions) {
  JitOptions jit;
  if (const CUresult e = jit.parse(numJitOptions, jitOptions, jitOptionsValues)) return e;
  if (numLibraryOptions && (!libraryOptions || !libraryOptionValues)) return CUDA_ERROR_INVALID_VALUE;
  return loadLibrary(library, code, 0, jit);
}

DRIVER_API(cuLibraryLoadFromFile)
(CUlibrary* library, const char* fileName, CUjit_option* jitOptions, void** jitOptionsValues,
 unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
 unsigned int numLibraryOptions) {
  JitOptions jit;
  if (const CUresult e = jit.parse(numJitOptions, jitOptions, jitOptionsValues)) return e;
  if (!fileName) return CUDA_ERROR_INVALID_VALUE;
  std::string bytes;
  JitLogs logs;
  if (const CUresult e = readImageFile(fileName, bytes, logs)) {
    jit.deliver(logs);
    say("library refused: " + logs.shown());
    return e;
  }
  return loadLibrary(library, bytes.data(), bytes.size(), jit, std::move(logs));
}

DRIVER_API(cuLibraryUnload)(CUlibrary library) {
  Ref<Library> l;
  if (const CUresult e = findLibrary(library, l)) return e;
  if (!HandleTable::retire(l.get())) return CUDA_ERROR_INVALID_HANDLE;
  l->unload();
  return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryGetKernel)(CUkernel* pKernel, CUlibrary library, const char* name) {
  Ref<Library> l;
  if (const CUresult e = findLibrary(library, l)) return e;
  if (!pKernel || !name) return CUDA_ERROR_INVALID_VALUE;
  const auto kernels = l->program().kernels();
  for (uint32_t i = 0; i < kernels.size(); i++) {
    if (kernels[i].name != name) continue;
    *pKernel = static_cast<CUkernel>(l->kernel(i)->handle());
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

DRIVER_API(cuLibraryGetKernelCount)(unsigned int* count, CUlibrary lib) {
  Ref<Library> l;
  if (const CUresult e = findLibrary(lib, l)) return e;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(l->program().kernels().size());
  return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryEnumerateKernels)(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  Ref<Library> l;
  if (const CUresult e = findLibrary(lib, l)) return e;
  if (!kernels) return CUDA_ERROR_INVALID_VALUE;
  const auto n = std::min<size_t>(numKernels, l->program().kernels().size());
  for (uint32_t i = 0; i < n; i++) kernels[i] = static_cast<CUkernel>(l->kernel(i)->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryGetModule)(CUmodule* pMod, CUlibrary library) {
  Ref<Module> module;
  if (const CUresult e = libraryModule(library, module)) return e;
  if (!pMod) return CUDA_ERROR_INVALID_VALUE;
  *pMod = static_cast<CUmodule>(module->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryGetGlobal)(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  Ref<Module> module;
  if (const CUresult e = libraryModule(library, module)) return e;
  if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address, size;
  if (!module->global(name, address, size)) return CUDA_ERROR_NOT_FOUND;
  if (dptr) *dptr = address;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

DRIVER_API(cuLibraryGetManaged)(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  Ref<Module> module;
  if (const CUresult e = libraryModule(library, module)) return e;
  if (!name || (!dptr && !bytes)) return CUDA_ERROR_INVALID_VALUE;
  uint64_t address, size;
  bool managed = false;
  if (!module->global(name, address, size, &managed) || !managed) return CUDA_ERROR_NOT_FOUND;
  if (dptr) *dptr = address;
  if (bytes) *bytes = size;
  return CUDA_SUCCESS;
}

// No device has functions that the host can call too (the attribute UNIFIED_FUNCTION_POINTERS is 0).
DRIVER_API(cuLibraryGetUnifiedFunction)(void** fptr, CUlibrary library, const char* symbol) {
  Ref<Module> module;
  if (const CUresult e = libraryModule(library, module)) return e;
  return fptr && symbol ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuKernelGetFunction)(CUfunction* pFunc, CUkernel kernel) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!pFunc) return CUDA_ERROR_INVALID_VALUE;
  Ref<Function> function;
  if (const CUresult e = kernelFunction(kernel, function)) return e;
  *pFunc = static_cast<CUfunction>(function->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuKernelGetLibrary)(CUlibrary* pLib, CUkernel kernel) {
  Ref<Kernel> k;
  if (const CUresult e = findKernel(kernel, k)) return e;
  if (!pLib) return CUDA_ERROR_INVALID_VALUE;
  *pLib = static_cast<CUlibrary>(k->library()->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuKernelGetAttribute)(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  Ref<Kernel> k;
  if (const CUresult e = findKernel(kernel, k)) return e;
  Device* device = Driver::get().device(dev);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (!pi) return CUDA_ERROR_INVALID_VALUE;
  Ref<Function> function;
  if (Context* c = peekContext(); c && c->device() == device) kernelFunction(kernel, function);
  return attributeOf(k->info(), function.get(), attrib, pi);
}

DRIVER_API(cuKernelSetAttribute)(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Driver::get().device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  Ref<Function> function;
  if (const CUresult e = kernelFunction(kernel, function)) return e;
  return setAttribute(*function, attrib, val);
}

DRIVER_API(cuKernelSetCacheConfig)(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Driver::get().device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  return cuFuncSetCacheConfig_impl(reinterpret_cast<CUfunction>(kernel), config);
}

DRIVER_API(cuKernelGetName)(const char** name, CUkernel hfunc) {
  Ref<Kernel> k;
  if (const CUresult e = findKernel(hfunc, k)) return e;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = k->info().name.c_str();
  return CUDA_SUCCESS;
}

DRIVER_API(cuKernelGetParamInfo)(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  Ref<Kernel> k;
  if (const CUresult e = findKernel(kernel, k)) return e;
  return paramInfo(k->info(), paramIndex, paramOffset, paramSize);
}

}  // namespace sonde::softgpu::driver
