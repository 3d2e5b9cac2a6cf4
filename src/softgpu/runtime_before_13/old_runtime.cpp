// SPDX-License-Identifier: Apache-2.0
//
// What differs in the runtime libraries of CUDA 12 and 11: structures that
// were smaller, parameters that came later, functions that went. Everything
// else jumps to libcudart.so.13 (forwards.py), which both may share with other
// parts of the process.
#include "softgpu/runtime_before_13/old_runtime.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "softgpu/runtime_before_13/device_properties.h"

extern "C" const char* const sonde_forward_names[] __attribute__((visibility("hidden")));
extern "C" void* sonde_forward_slots[] __attribute__((visibility("hidden")));

namespace {

void* newRuntime() {
  static void* const library = [] {
    // Beside this library, wherever the process looks otherwise.
    Dl_info self{};
    void* found = nullptr;
    if (dladdr(reinterpret_cast<void*>(&newRuntime), &self) && self.dli_fname) {
      char path[4096];
      const char* slash = std::strrchr(self.dli_fname, '/');
      const int length = slash ? static_cast<int>(slash - self.dli_fname + 1) : 0;
      if (std::snprintf(path, sizeof path, "%.*slibcudart.so.13", length, self.dli_fname) < int{sizeof path})
        found = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!found) found = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    return found;
  }();
  return library;
}

cudaError_t missing() { return cudaErrorNotSupported; }

}  // namespace

namespace sonde::cudart {

void* newFunction(const char* name) { return newRuntime() ? dlvsym(newRuntime(), name, "libcudart.so.13") : nullptr; }

}  // namespace sonde::cudart

using sonde::cudart::call;
using sonde::cudart::newFunction;

namespace {

// Before any constructor of the program that registers its code.
__attribute__((constructor(101))) void findFunctions() {
  // Every call answers NotSupported then.
  if (!newRuntime())
    std::fputs("sonde: libcudart.so.13 of the software GPU is missing beside its older forms\n", stderr);
  for (size_t i = 0; sonde_forward_names[i]; ++i) {
    void* f = newFunction(sonde_forward_names[i]);
    sonde_forward_slots[i] = f ? f : reinterpret_cast<void*>(&missing);
  }
}

cudaMemLocation locationOf(int device) {
  cudaMemLocation location{};
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}

}  // namespace

// ------------------------------------------------------------- structures --

SONDE_OLD(cudaGetDeviceProperties)(void* prop, int device) {
  if (!prop) return cudaErrorInvalidValue;
  sonde::cudart::OldDeviceProperties p;
  if (const cudaError_t e = sonde::cudart::describeDevice(device, &newFunction, p)) return e;
  std::memcpy(prop, &p, offsetof(sonde::cudart::OldDeviceProperties, hostRegisterSupported));
  return cudaSuccess;
}

SONDE_OLD(cudaGetDeviceProperties_v2)(void* prop, int device) {
  if (!prop) return cudaErrorInvalidValue;
  sonde::cudart::OldDeviceProperties p;
  if (const cudaError_t e = sonde::cudart::describeDevice(device, &newFunction, p)) return e;
  std::memcpy(prop, &p, sizeof p);
  return cudaSuccess;
}

// That of the library whose name this has, unless the user chose one.
SONDE_OLD(cudaRuntimeGetVersion)(int* version) {
  if (!version) return cudaErrorInvalidValue;
  if (std::getenv("SONDE_CUDA_VERSION")) return call<cudaError_t(int*)>("cudaRuntimeGetVersion", version);
  *version = SONDE_OLD_RUNTIME == 12 ? 12090 : 11080;
  return cudaSuccess;
}

SONDE_OLD(cudaChooseDevice)(int* device, const void* prop) {
  if (!device || !prop) return cudaErrorInvalidValue;
  *device = 0;  // the devices of the software GPU are of one kind unless configured otherwise
  return cudaSuccess;
}

SONDE_OLD(cudaPointerGetAttributes)(void* attributes, const void* ptr) {
  if (!attributes) return cudaErrorInvalidValue;
  cudaPointerAttributes now{};
  if (const cudaError_t e =
          call<cudaError_t(cudaPointerAttributes*, const void*)>("cudaPointerGetAttributes", &now, ptr))
    return e;
  std::memcpy(attributes, &now, offsetof(cudaPointerAttributes, hostPointer) + sizeof now.hostPointer);
  return cudaSuccess;
}

SONDE_OLD_11(cudaFuncGetAttributes)(void* attr, const void* func) {
  if (!attr) return cudaErrorInvalidValue;
  cudaFuncAttributes now{};
  if (const cudaError_t e = call<cudaError_t(cudaFuncAttributes*, const void*)>("cudaFuncGetAttributes", &now, func))
    return e;
  std::memcpy(attr, &now, offsetof(cudaFuncAttributes, preferredShmemCarveout) + sizeof now.preferredShmemCarveout);
  return cudaSuccess;
}

// Before 11.8 the description ended one field earlier.
SONDE_OLD_11(cudaCreateTextureObject)(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                      const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
  if (!description) return cudaErrorInvalidValue;
  cudaTextureDesc now{};
  std::memcpy(&now, description, offsetof(cudaTextureDesc, seamlessCubemap));
  return call<cudaError_t(cudaTextureObject_t*, const cudaResourceDesc*, const cudaTextureDesc*,
                          const cudaResourceViewDesc*)>("cudaCreateTextureObject", texture, resource, &now, view);
}
SONDE_OLD_11(cudaCreateTextureObject_v2)(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                         const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
  return call<cudaError_t(cudaTextureObject_t*, const cudaResourceDesc*, const cudaTextureDesc*,
                          const cudaResourceViewDesc*)>("cudaCreateTextureObject", texture, resource, description,
                                                        view);
}

// -------------------------------------------------------------- parameters --

SONDE_OLD(cudaMemAdvise)(const void* devPtr, size_t count, cudaMemoryAdvise advice, int device) {
  return call<cudaError_t(const void*, size_t, cudaMemoryAdvise, cudaMemLocation)>("cudaMemAdvise", devPtr, count,
                                                                                   advice, locationOf(device));
}
SONDE_OLD(cudaMemAdvise_v2)(const void* devPtr, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
  return call<cudaError_t(const void*, size_t, cudaMemoryAdvise, cudaMemLocation)>("cudaMemAdvise", devPtr, count,
                                                                                   advice, location);
}

namespace {
cudaError_t prefetch(const char* name, const void* devPtr, size_t count, cudaMemLocation location, unsigned flags,
                     cudaStream_t stream) {
  return call<cudaError_t(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t)>(name, devPtr, count, location,
                                                                                         flags, stream);
}
}  // namespace
SONDE_OLD(cudaMemPrefetchAsync)(const void* devPtr, size_t count, int device, cudaStream_t stream) {
  return prefetch("cudaMemPrefetchAsync", devPtr, count, locationOf(device), 0, stream);
}
SONDE_OLD(cudaMemPrefetchAsync_ptsz)(const void* devPtr, size_t count, int device, cudaStream_t stream) {
  return prefetch("cudaMemPrefetchAsync_ptsz", devPtr, count, locationOf(device), 0, stream);
}
SONDE_OLD(cudaMemPrefetchAsync_v2)(const void* devPtr, size_t count, cudaMemLocation location, unsigned flags,
                                   cudaStream_t stream) {
  return prefetch("cudaMemPrefetchAsync", devPtr, count, location, flags, stream);
}
SONDE_OLD(cudaMemPrefetchAsync_v2_ptsz)(const void* devPtr, size_t count, cudaMemLocation location, unsigned flags,
                                        cudaStream_t stream) {
  return prefetch("cudaMemPrefetchAsync_ptsz", devPtr, count, location, flags, stream);
}

SONDE_OLD(cudaEventElapsedTime_v2)(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return call<cudaError_t(float*, cudaEvent_t, cudaEvent_t)>("cudaEventElapsedTime", ms, start, end);
}

// Edges of graphs without data.
#define SONDE_EDGES(name, ...)                                                                                      \
  call<cudaError_t(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t)>( \
      #name, __VA_ARGS__)
SONDE_OLD(cudaGraphAddDependencies)(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                    size_t count) {
  return SONDE_EDGES(cudaGraphAddDependencies, graph, from, to, nullptr, count);
}
SONDE_OLD(cudaGraphAddDependencies_v2)(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                       const cudaGraphEdgeData* data, size_t count) {
  return SONDE_EDGES(cudaGraphAddDependencies, graph, from, to, data, count);
}
SONDE_OLD(cudaGraphRemoveDependencies)(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                       size_t count) {
  return SONDE_EDGES(cudaGraphRemoveDependencies, graph, from, to, nullptr, count);
}
SONDE_OLD(cudaGraphRemoveDependencies_v2)(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                          const cudaGraphEdgeData* data, size_t count) {
  return SONDE_EDGES(cudaGraphRemoveDependencies, graph, from, to, data, count);
}
#undef SONDE_EDGES

#define SONDE_GET_EDGES(...)                                                                                           \
  call<cudaError_t(cudaGraph_t, cudaGraphNode_t*, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*)>("cudaGraphGetEdges", \
                                                                                                  __VA_ARGS__)
SONDE_OLD(cudaGraphGetEdges)(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
  return SONDE_GET_EDGES(graph, from, to, nullptr, count);
}
SONDE_OLD(cudaGraphGetEdges_v2)(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* data,
                                size_t* count) {
  return SONDE_GET_EDGES(graph, from, to, data, count);
}
#undef SONDE_GET_EDGES

#define SONDE_NEIGHBOURS(name, ...) \
  call<cudaError_t(cudaGraphNode_t, cudaGraphNode_t*, cudaGraphEdgeData*, size_t*)>(#name, __VA_ARGS__)
SONDE_OLD(cudaGraphNodeGetDependencies)(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return SONDE_NEIGHBOURS(cudaGraphNodeGetDependencies, node, nodes, nullptr, count);
}
SONDE_OLD(cudaGraphNodeGetDependencies_v2)(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                           size_t* count) {
  return SONDE_NEIGHBOURS(cudaGraphNodeGetDependencies, node, nodes, data, count);
}
SONDE_OLD(cudaGraphNodeGetDependentNodes)(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
  return SONDE_NEIGHBOURS(cudaGraphNodeGetDependentNodes, node, nodes, nullptr, count);
}
SONDE_OLD(cudaGraphNodeGetDependentNodes_v2)(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                             size_t* count) {
  return SONDE_NEIGHBOURS(cudaGraphNodeGetDependentNodes, node, nodes, data, count);
}
#undef SONDE_NEIGHBOURS

#define SONDE_ADD_NODE(...)                                                                                 \
  call<cudaError_t(cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*, const cudaGraphEdgeData*, size_t, \
                   cudaGraphNodeParams*)>("cudaGraphAddNode", __VA_ARGS__)
SONDE_OLD(cudaGraphAddNode)(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                            cudaGraphNodeParams* params) {
  return SONDE_ADD_NODE(node, graph, after, nullptr, count, params);
}
SONDE_OLD(cudaGraphAddNode_v2)(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                               const cudaGraphEdgeData* data, size_t count, cudaGraphNodeParams* params) {
  return SONDE_ADD_NODE(node, graph, after, data, count, params);
}
#undef SONDE_ADD_NODE

SONDE_OLD_11(cudaGraphInstantiate)(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphNode_t* errorNode, char* log,
                                   size_t logBytes) {
  if (errorNode) *errorNode = nullptr;
  if (log && logBytes) *log = 0;
  return call<cudaError_t(cudaGraphExec_t*, cudaGraph_t, unsigned long long)>("cudaGraphInstantiate", exec, graph,
                                                                              0ull);
}
SONDE_OLD_11(cudaGraphExecUpdate)(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphNode_t* errorNode,
                                  cudaGraphExecUpdateResult* result) {
  cudaGraphExecUpdateResultInfo info{};
  const cudaError_t e = call<cudaError_t(cudaGraphExec_t, cudaGraph_t, cudaGraphExecUpdateResultInfo*)>(
      "cudaGraphExecUpdate", exec, graph, &info);
  if (errorNode) *errorNode = info.errorNode;
  if (result) *result = info.result;
  return e;
}

// The state of a capture, ever more of it from version to version.
namespace {
cudaError_t captureInfo(const char* name, cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                        cudaGraph_t* graph, const cudaGraphNode_t** nodes, const cudaGraphEdgeData** data,
                        size_t* count) {
  return call<cudaError_t(cudaStream_t, cudaStreamCaptureStatus*, unsigned long long*, cudaGraph_t*,
                          const cudaGraphNode_t**, const cudaGraphEdgeData**, size_t*)>(name, stream, status, id, graph,
                                                                                        nodes, data, count);
}
}  // namespace
SONDE_OLD(cudaStreamGetCaptureInfo)(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return captureInfo("cudaStreamGetCaptureInfo", stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
SONDE_OLD(cudaStreamGetCaptureInfo_ptsz)(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id) {
  return captureInfo("cudaStreamGetCaptureInfo_ptsz", stream, status, id, nullptr, nullptr, nullptr, nullptr);
}
SONDE_OLD(cudaStreamGetCaptureInfo_v2)(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                       cudaGraph_t* graph, const cudaGraphNode_t** nodes, size_t* count) {
  return captureInfo("cudaStreamGetCaptureInfo", stream, status, id, graph, nodes, nullptr, count);
}
SONDE_OLD(cudaStreamGetCaptureInfo_v2_ptsz)(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                                            size_t* count) {
  return captureInfo("cudaStreamGetCaptureInfo_ptsz", stream, status, id, graph, nodes, nullptr, count);
}
SONDE_OLD(cudaStreamGetCaptureInfo_v3)(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                       cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                                       const cudaGraphEdgeData** data, size_t* count) {
  return captureInfo("cudaStreamGetCaptureInfo", stream, status, id, graph, nodes, data, count);
}
SONDE_OLD(cudaStreamGetCaptureInfo_v3_ptsz)(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph, const cudaGraphNode_t** nodes,
                                            const cudaGraphEdgeData** data, size_t* count) {
  return captureInfo("cudaStreamGetCaptureInfo_ptsz", stream, status, id, graph, nodes, data, count);
}

#define SONDE_UPDATE(name, ...) \
  call<cudaError_t(cudaStream_t, cudaGraphNode_t*, const cudaGraphEdgeData*, size_t, unsigned)>(#name, __VA_ARGS__)
SONDE_OLD(cudaStreamUpdateCaptureDependencies)(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count,
                                               unsigned flags) {
  return SONDE_UPDATE(cudaStreamUpdateCaptureDependencies, stream, nodes, nullptr, count, flags);
}
SONDE_OLD(cudaStreamUpdateCaptureDependencies_ptsz)(cudaStream_t stream, cudaGraphNode_t* nodes, size_t count,
                                                    unsigned flags) {
  return SONDE_UPDATE(cudaStreamUpdateCaptureDependencies_ptsz, stream, nodes, nullptr, count, flags);
}
SONDE_OLD(cudaStreamUpdateCaptureDependencies_v2)(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                  const cudaGraphEdgeData* data, size_t count, unsigned flags) {
  return SONDE_UPDATE(cudaStreamUpdateCaptureDependencies, stream, nodes, data, count, flags);
}
SONDE_OLD(cudaStreamUpdateCaptureDependencies_v2_ptsz)(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                       const cudaGraphEdgeData* data, size_t count, unsigned flags) {
  return SONDE_UPDATE(cudaStreamUpdateCaptureDependencies_ptsz, stream, nodes, data, count, flags);
}
#undef SONDE_UPDATE

// ------------------------------------------------------- functions that went --

// ---------------------------------------------------------------- batches --
// CUDA 12.8 told which copy was at fault. The newer function does not: the driver's older one is asked, which checks
// all copies before it makes any and finds the same error again.

namespace {

template <class F>
F* driverFunction(const char* name, bool perThread) {
  void* f = nullptr;
  cudaDriverEntryPointQueryResult status{};
  call<cudaError_t(const char*, void**, unsigned, unsigned long long, cudaDriverEntryPointQueryResult*)>(
      "cudaGetDriverEntryPointByVersion", name, &f, 12080u,
      perThread ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream, &status);
  return reinterpret_cast<F*>(f);
}

cudaError_t copyBatch(const char* name, bool perThread, void** dsts, void** srcs, size_t* sizes, size_t count,
                      cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs, size_t* failIdx,
                      cudaStream_t stream) {
  const auto result =
      call<cudaError_t(void**, void**, size_t*, size_t, cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t)>(
          name, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, stream);
  if (result == cudaSuccess || !failIdx) return result;
  *failIdx = SIZE_MAX;
  using Old = int(void**, void**, size_t*, size_t, cudaMemcpyAttributes*, size_t*, size_t, size_t*, cudaStream_t);
  if (result != cudaErrorInvalidValue) return result;
  if (auto* old = driverFunction<Old>("cuMemcpyBatchAsync", perThread))
    old(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, stream);
  return result;
}

cudaError_t boxBatch(const char* name, bool perThread, size_t numOps, cudaMemcpy3DBatchOp* opList, size_t* failIdx,
                     unsigned long long flags, cudaStream_t stream) {
  const auto result = call<cudaError_t(size_t, cudaMemcpy3DBatchOp*, unsigned long long, cudaStream_t)>(
      name, numOps, opList, flags, stream);
  if (result == cudaSuccess || !failIdx) return result;
  *failIdx = SIZE_MAX;
  using Old = int(size_t, cudaMemcpy3DBatchOp*, size_t*, unsigned long long, cudaStream_t);
  if (result != cudaErrorInvalidValue) return result;
  if (auto* old = driverFunction<Old>("cuMemcpy3DBatchAsync", perThread)) old(numOps, opList, failIdx, flags, stream);
  return result;
}

}  // namespace

SONDE_OLD(cudaMemcpyBatchAsync)
(void** dsts, void** srcs, size_t* sizes, size_t count, cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
 size_t* failIdx, cudaStream_t stream) {
  return copyBatch("cudaMemcpyBatchAsync", false, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
                   stream);
}
SONDE_OLD(cudaMemcpyBatchAsync_ptsz)
(void** dsts, void** srcs, size_t* sizes, size_t count, cudaMemcpyAttributes* attrs, size_t* attrsIdxs, size_t numAttrs,
 size_t* failIdx, cudaStream_t stream) {
  return copyBatch("cudaMemcpyBatchAsync_ptsz", true, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx,
                   stream);
}
SONDE_OLD(cudaMemcpy3DBatchAsync)
(size_t numOps, cudaMemcpy3DBatchOp* opList, size_t* failIdx, unsigned long long flags, cudaStream_t stream) {
  return boxBatch("cudaMemcpy3DBatchAsync", false, numOps, opList, failIdx, flags, stream);
}
SONDE_OLD(cudaMemcpy3DBatchAsync_ptsz)
(size_t numOps, cudaMemcpy3DBatchOp* opList, size_t* failIdx, unsigned long long flags, cudaStream_t stream) {
  return boxBatch("cudaMemcpy3DBatchAsync_ptsz", true, numOps, opList, failIdx, flags, stream);
}

SONDE_OLD(cudaThreadSynchronize)() { return call<cudaError_t()>("cudaDeviceSynchronize"); }
SONDE_OLD(cudaThreadExit)() { return call<cudaError_t()>("cudaDeviceReset"); }
SONDE_OLD(cudaThreadGetLimit)(size_t* value, cudaLimit limit) {
  return call<cudaError_t(size_t*, cudaLimit)>("cudaDeviceGetLimit", value, limit);
}
SONDE_OLD(cudaThreadSetLimit)(cudaLimit limit, size_t value) {
  return call<cudaError_t(cudaLimit, size_t)>("cudaDeviceSetLimit", limit, value);
}
SONDE_OLD(cudaThreadGetCacheConfig)(cudaFuncCache* config) {
  return call<cudaError_t(cudaFuncCache*)>("cudaDeviceGetCacheConfig", config);
}
SONDE_OLD(cudaThreadSetCacheConfig)(cudaFuncCache config) {
  return call<cudaError_t(cudaFuncCache)>("cudaDeviceSetCacheConfig", config);
}
// Devices without double precision are long gone: nothing is to be converted.
SONDE_OLD(cudaSetDoubleForDevice)(double*) { return cudaSuccess; }
SONDE_OLD(cudaSetDoubleForHost)(double*) { return cudaSuccess; }
