// SPDX-License-Identifier: Apache-2.0
// Streams, events and stream capture: the handles are the driver's own.
#include "softgpu/runtime/impl.h"

namespace sonde::cudart::impl {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* pStream, unsigned int flags) {
  if (!pStream) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamCreate, pStream, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t* pStream) {
  return impl::cudaStreamCreateWithFlags(pStream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* pStream, unsigned int flags, int priority) {
  if (!pStream) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamCreateWithPriority, pStream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return cudaErrorInvalidResourceHandle;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamDestroy, stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamSynchronize, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamQuery, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamWaitEvent, stream, event, flags);
}

namespace {

struct StreamCallback {
  cudaStreamCallback_t function;
  void* data;
};

void runStreamCallback(CUstream stream, CUresult status, void* data) {
  StreamCallback callback = *static_cast<StreamCallback*>(data);
  delete static_cast<StreamCallback*>(data);
  callback.function(stream, fromDriver(status), callback.data);
}

}  // namespace

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                  unsigned int flags) {
  if (!callback || flags != 0) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  auto* boxed = new StreamCallback{callback, userData};
  cudaError_t status = SONDE_CU(cuStreamAddCallback, stream, runStreamCallback, boxed, flags);
  if (status != cudaSuccess) delete boxed;
  return status;
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int* flags) {
  if (!flags) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamGetFlags, hStream, flags);
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int* priority) {
  if (!priority) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamGetPriority, hStream, priority);
}

cudaError_t cudaStreamGetId(cudaStream_t hStream, unsigned long long* streamId) {
  if (!streamId) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamGetId, hStream, streamId);
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int* device) {
  if (!device) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamGetDevice, hStream, device);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* devPtr, size_t length, unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamAttachMemAsync, stream, devicePointer(devPtr), length, flags);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t dst, cudaStream_t src) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamCopyAttributes, dst, src);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t hStream, cudaStreamAttrID attr, cudaStreamAttrValue* value_out) {
  if (!value_out) return cudaErrorInvalidValue;
  static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue));
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamGetAttribute, hStream, static_cast<CUstreamAttrID>(attr),
                  reinterpret_cast<CUstreamAttrValue*>(value_out));
}

cudaError_t cudaStreamSetAttribute(cudaStream_t hStream, cudaStreamAttrID attr, const cudaStreamAttrValue* value) {
  if (!value) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamSetAttribute, hStream, static_cast<CUstreamAttrID>(attr),
                  reinterpret_cast<const CUstreamAttrValue*>(value));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuCtxGetStreamPriorityRange, leastPriority, greatestPriority);
}

// ------------------------------------------------------------------ capture

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamBeginCapture, stream, static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                          enum cudaStreamCaptureMode mode) {
  static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamBeginCaptureToGraph, stream, graph, dependencies,
                  reinterpret_cast<const CUgraphEdgeData*>(dependencyData), numDependencies,
                  static_cast<CUstreamCaptureMode>(mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamEndCapture, stream, pGraph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* pCaptureStatus) {
  if (!pCaptureStatus) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  SONDE_TRY(SONDE_CU(cuStreamIsCapturing, stream, &status));
  *pCaptureStatus = static_cast<cudaStreamCaptureStatus>(status);
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* captureStatus_out,
                                     unsigned long long* id_out, cudaGraph_t* graph_out,
                                     const cudaGraphNode_t** dependencies_out, const cudaGraphEdgeData** edgeData_out,
                                     size_t* numDependencies_out) {
  if (!captureStatus_out) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0;
  SONDE_TRY(SONDE_CU(cuStreamGetCaptureInfo, stream, &status, &id, graph_out, dependencies_out,
                     reinterpret_cast<const CUgraphEdgeData**>(edgeData_out), numDependencies_out));
  *captureStatus_out = static_cast<cudaStreamCaptureStatus>(status);
  if (id_out) *id_out = id;
  return cudaSuccess;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                                unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuStreamUpdateCaptureDependencies, stream, dependencies,
                  reinterpret_cast<const CUgraphEdgeData*>(dependencyData), numDependencies, flags);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  if (!mode) return cudaErrorInvalidValue;
  SONDE_TRY(initDriver());
  auto exchanged = static_cast<CUstreamCaptureMode>(*mode);
  SONDE_TRY(SONDE_CU(cuThreadExchangeStreamCaptureMode, &exchanged));
  *mode = static_cast<cudaStreamCaptureMode>(exchanged);
  return cudaSuccess;
}

// ------------------------------------------------------------------- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  if (!event) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventCreate, event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return impl::cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventRecord, event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventRecordWithFlags, event, stream, flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventQuery, event);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventSynchronize, event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventDestroy, event);
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (!ms) return cudaErrorInvalidValue;
  SONDE_TRY(ensureContext());
  return SONDE_CU(cuEventElapsedTime, ms, start, end);
}

}  // namespace sonde::cudart::impl
