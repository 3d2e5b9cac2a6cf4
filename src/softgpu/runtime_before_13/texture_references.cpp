// SPDX-License-Identifier: Apache-2.0
//
// Texture and surface references, which went with CUDA 12: what a program
// declares and binds by the runtime, over the driver's functions for the
// references of a module. The module is that of any kernel that was registered
// by the same handle.
#include <cuda.h>
#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>

#include "softgpu/runtime_before_13/old_runtime.h"

namespace {

// As the header of CUDA 11 has it.
struct TextureReference {
  int normalized;
  int filterMode;
  int addressMode[3];
  cudaChannelFormatDesc channelDesc;
  int sRGB;
  unsigned maxAnisotropy;
  int mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
  int reserved[14];
};
static_assert(sizeof(TextureReference) == 124);

struct Registered {
  void** handle = nullptr;
  std::string name;
  bool normalizedFloat = false;  // integers are read as numbers from 0 or -1 to 1
  size_t offset = 0;             // of what is bound
  bool bound = false;
};

struct State {
  std::mutex mutex;
  std::map<void**, const void*> kernels;  // by handle: one of its kernels, as the host names it
  std::map<const void*, Registered> references;
};
State& state() {
  static State& s = *new State;  // programs unregister late
  return s;
}

template <class F>
F* driver(const char* name) {
  static void* const library = [] {
    void* loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return loaded ? loaded : dlopen("libcuda.so.1", RTLD_NOW);
  }();
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

template <class F, class... Args>
CUresult ask(const char* name, Args... args) {
  auto* f = driver<F>(name);
  return f ? f(args...) : CUDA_ERROR_NOT_SUPPORTED;
}

cudaError_t toError(CUresult r) { return static_cast<cudaError_t>(r); }  // the numbers are the same

// The current device's module that a reference is of.
cudaError_t moduleOf(const Registered& r, CUmodule& module) {
  const auto kernel = state().kernels.find(r.handle);
  if (kernel == state().kernels.end()) return cudaErrorInvalidTexture;
  cudaFunction_t function = nullptr;
  if (const cudaError_t e = sonde::cudart::call<cudaError_t(cudaFunction_t*, const void*)>("cudaGetFuncBySymbol",
                                                                                           &function, kernel->second))
    return e;
  return toError(ask<CUresult(CUmodule*, CUfunction)>("cuFuncGetModule", &module, function));
}

cudaError_t find(const void* hostVar, Registered*& r) {
  const auto it = state().references.find(hostVar);
  if (it == state().references.end()) return cudaErrorInvalidTexture;
  r = &it->second;
  return cudaSuccess;
}

cudaError_t findTexture(const void* hostVar, Registered*& r, CUtexref& ref) {
  if (const cudaError_t e = find(hostVar, r)) return e;
  CUmodule module = nullptr;
  if (const cudaError_t e = moduleOf(*r, module)) return e;
  return toError(ask<CUresult(CUtexref*, CUmodule, const char*)>("cuModuleGetTexRef", &ref, module, r->name.c_str()));
}

bool formatOf(const cudaChannelFormatDesc& d, CUarray_format& format, int& channels) {
  channels = (d.x != 0) + (d.y != 0) + (d.z != 0) + (d.w != 0);
  switch (d.f) {
    case cudaChannelFormatKindSigned:
      format = d.x == 8 ? CU_AD_FORMAT_SIGNED_INT8 : d.x == 16 ? CU_AD_FORMAT_SIGNED_INT16 : CU_AD_FORMAT_SIGNED_INT32;
      break;
    case cudaChannelFormatKindUnsigned:
      format = d.x == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
               : d.x == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                           : CU_AD_FORMAT_UNSIGNED_INT32;
      break;
    case cudaChannelFormatKindFloat: format = d.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT; break;
    default: return false;
  }
  return channels > 0 && (d.x == 8 || d.x == 16 || d.x == 32);
}

// How the reference is read, as the program's variable says now.
CUresult describe(CUtexref ref, const TextureReference& t, const Registered& r) {
  const bool integers = t.channelDesc.f != cudaChannelFormatKindFloat && !r.normalizedFloat;
  const unsigned flags = (integers ? CU_TRSF_READ_AS_INTEGER : 0u) |
                         (t.normalized ? CU_TRSF_NORMALIZED_COORDINATES : 0u) | (t.sRGB ? CU_TRSF_SRGB : 0u);
  if (const CUresult e = ask<CUresult(CUtexref, unsigned)>("cuTexRefSetFlags", ref, flags)) return e;
  for (int dim = 0; dim < 3; ++dim)
    if (const CUresult e = ask<CUresult(CUtexref, int, CUaddress_mode)>(
            "cuTexRefSetAddressMode", ref, dim, static_cast<CUaddress_mode>(t.addressMode[dim])))
      return e;
  return ask<CUresult(CUtexref, CUfilter_mode)>("cuTexRefSetFilterMode", ref, static_cast<CUfilter_mode>(t.filterMode));
}

CUresult setFormat(CUtexref ref, const cudaChannelFormatDesc& d) {
  CUarray_format format;
  int channels;
  if (!formatOf(d, format, channels)) return CUDA_ERROR_INVALID_VALUE;
  return ask<CUresult(CUtexref, CUarray_format, int)>("cuTexRefSetFormat", ref, format, channels);
}

// After binding: remembers it, or that it failed.
cudaError_t bound(Registered& r, CUresult result, size_t offset = 0) {
  r.bound = result == CUDA_SUCCESS;
  r.offset = offset;
  return toError(result);
}

}  // namespace

// ----------------------------------------------------------- registration --

SONDE_OLD_11(__cudaRegisterFunction)(void** handle, const char* hostFun, char* deviceFun, const char* deviceName,
                                     int threadLimit, void* tid, void* bid, void* blockDim, void* gridDim,
                                     int* warpSize) {
  {
    std::lock_guard lock(state().mutex);
    state().kernels.try_emplace(handle, hostFun);
  }
  using Register = void(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
  if (auto* f = reinterpret_cast<Register*>(sonde::cudart::newFunction("__cudaRegisterFunction")))
    f(handle, hostFun, deviceFun, deviceName, threadLimit, tid, bid, blockDim, gridDim, warpSize);
  return cudaSuccess;
}

SONDE_OLD_11(__cudaRegisterTexture)(void** handle, const void* hostVar, const void**, const char* deviceName, int,
                                    int normalizedFloat, int) {
  if (!hostVar || !deviceName) return cudaErrorInvalidTexture;
  std::lock_guard lock(state().mutex);
  state().references[hostVar] = {handle, deviceName, normalizedFloat != 0};
  return cudaSuccess;
}

SONDE_OLD_11(__cudaRegisterSurface)(void** handle, const void* hostVar, const void**, const char* deviceName, int,
                                    int) {
  if (!hostVar || !deviceName) return cudaErrorInvalidSurface;
  std::lock_guard lock(state().mutex);
  state().references[hostVar] = {handle, deviceName};
  return cudaSuccess;
}

// ---------------------------------------------------------------- binding --

SONDE_OLD_11(cudaBindTexture)(size_t* offset, const void* texref, const void* devPtr, const cudaChannelFormatDesc* desc,
                              size_t size) {
  if (!texref || !devPtr || !desc) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  CUtexref ref = nullptr;
  if (const cudaError_t e = findTexture(texref, r, ref)) return e;
  // The default size means: all that there is.
  CUdeviceptr base = 0;
  size_t all = 0;
  const auto address = reinterpret_cast<CUdeviceptr>(devPtr);
  if (const CUresult e =
          ask<CUresult(CUdeviceptr*, size_t*, CUdeviceptr)>("cuMemGetAddressRange_v2", &base, &all, address))
    return toError(e);
  if (size > base + all - address) size = base + all - address;
  CUresult e = setFormat(ref, *desc);
  size_t at = 0;
  if (!e) e = ask<CUresult(size_t*, CUtexref, CUdeviceptr, size_t)>("cuTexRefSetAddress_v2", &at, ref, address, size);
  if (!e && at != 0 && !offset) e = CUDA_ERROR_INVALID_VALUE;
  TextureReference t = *static_cast<const TextureReference*>(texref);
  t.channelDesc = *desc;
  t.normalized = 0;  // linear memory is fetched by whole numbers
  if (!e) e = describe(ref, t, *r);
  if (offset && !e) *offset = at;
  return bound(*r, e, at);
}

SONDE_OLD_11(cudaBindTexture2D)(size_t* offset, const void* texref, const void* devPtr,
                                const cudaChannelFormatDesc* desc, size_t width, size_t height, size_t pitch) {
  if (!texref || !devPtr || !desc) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  CUtexref ref = nullptr;
  if (const cudaError_t e = findTexture(texref, r, ref)) return e;
  CUDA_ARRAY_DESCRIPTOR d{};
  int channels;
  if (!formatOf(*desc, d.Format, channels)) return cudaErrorInvalidChannelDescriptor;
  d.Width = width;
  d.Height = height;
  d.NumChannels = static_cast<unsigned>(channels);
  CUresult e = setFormat(ref, *desc);
  if (!e)
    e = ask<CUresult(CUtexref, const CUDA_ARRAY_DESCRIPTOR*, CUdeviceptr, size_t)>(
        "cuTexRefSetAddress2D_v3", ref, &d, reinterpret_cast<CUdeviceptr>(devPtr), pitch);
  TextureReference t = *static_cast<const TextureReference*>(texref);
  t.channelDesc = *desc;
  if (!e) e = describe(ref, t, *r);
  if (offset && !e) *offset = 0;
  return bound(*r, e);
}

SONDE_OLD_11(cudaBindTextureToArray)(const void* texref, cudaArray_const_t array, const cudaChannelFormatDesc* desc) {
  if (!texref || !array || !desc) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  CUtexref ref = nullptr;
  if (const cudaError_t e = findTexture(texref, r, ref)) return e;
  CUresult e = ask<CUresult(CUtexref, CUarray, unsigned)>(
      "cuTexRefSetArray", ref, reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array)), CU_TRSA_OVERRIDE_FORMAT);
  TextureReference t = *static_cast<const TextureReference*>(texref);
  t.channelDesc = *desc;
  if (!e) e = describe(ref, t, *r);
  return bound(*r, e);
}

SONDE_OLD_11(cudaBindTextureToMipmappedArray)(const void* texref, cudaMipmappedArray_const_t array,
                                              const cudaChannelFormatDesc* desc) {
  if (!texref || !array || !desc) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  CUtexref ref = nullptr;
  if (const cudaError_t e = findTexture(texref, r, ref)) return e;
  TextureReference t = *static_cast<const TextureReference*>(texref);
  t.channelDesc = *desc;
  CUresult e = ask<CUresult(CUtexref, CUmipmappedArray, unsigned)>(
      "cuTexRefSetMipmappedArray", ref, reinterpret_cast<CUmipmappedArray>(const_cast<cudaMipmappedArray_t>(array)),
      CU_TRSA_OVERRIDE_FORMAT);
  if (!e) e = describe(ref, t, *r);
  if (!e)
    e = ask<CUresult(CUtexref, CUfilter_mode)>("cuTexRefSetMipmapFilterMode", ref,
                                               static_cast<CUfilter_mode>(t.mipmapFilterMode));
  if (!e) e = ask<CUresult(CUtexref, float)>("cuTexRefSetMipmapLevelBias", ref, t.mipmapLevelBias);
  if (!e)
    e = ask<CUresult(CUtexref, float, float)>("cuTexRefSetMipmapLevelClamp", ref, t.minMipmapLevelClamp,
                                              t.maxMipmapLevelClamp);
  return bound(*r, e);
}

SONDE_OLD_11(cudaUnbindTexture)(const void* texref) {
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  if (const cudaError_t e = find(texref, r)) return e;
  r->bound = false;
  return cudaSuccess;
}

SONDE_OLD_11(cudaGetTextureAlignmentOffset)(size_t* offset, const void* texref) {
  if (!offset) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  if (const cudaError_t e = find(texref, r)) return e;
  if (!r->bound) return cudaErrorInvalidTextureBinding;
  *offset = r->offset;
  return cudaSuccess;
}

SONDE_OLD_11(cudaGetTextureReference)(const void** texref, const void* symbol) {
  if (!texref) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  if (const cudaError_t e = find(symbol, r)) return e;
  *texref = symbol;
  return cudaSuccess;
}

SONDE_OLD_11(cudaBindSurfaceToArray)(const void* surfref, cudaArray_const_t array, const cudaChannelFormatDesc*) {
  if (!surfref || !array) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  if (find(surfref, r)) return cudaErrorInvalidSurface;
  CUmodule module = nullptr;
  if (const cudaError_t e = moduleOf(*r, module)) return e;
  CUsurfref ref = nullptr;
  CUresult e = ask<CUresult(CUsurfref*, CUmodule, const char*)>("cuModuleGetSurfRef", &ref, module, r->name.c_str());
  if (!e)
    e = ask<CUresult(CUsurfref, CUarray, unsigned)>("cuSurfRefSetArray", ref,
                                                    reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array)), 0u);
  return bound(*r, e);
}

SONDE_OLD_11(cudaGetSurfaceReference)(const void** surfref, const void* symbol) {
  if (!surfref) return cudaErrorInvalidValue;
  std::lock_guard lock(state().mutex);
  Registered* r = nullptr;
  if (find(symbol, r)) return cudaErrorInvalidSurface;
  *surfref = symbol;
  return cudaSuccess;
}
