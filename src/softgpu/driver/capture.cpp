// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/capture.h"

#include "softgpu/driver/sync.h"

namespace sonde::softgpu::driver {

// No capture can be begun yet.
CUresult refuseCapturing(Stream&) { return CUDA_SUCCESS; }
void abandonCapture(Stream&) {}
CUresult captureHostFunction(Capture&, Stream&, CUhostFn, void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult captureEventRecord(Capture&, Stream&, Event&, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult captureWaitEvent(Stream&, Event&, unsigned, bool& handled) {
  handled = false;
  return CUDA_SUCCESS;
}
CUresult captureKernel(Capture&, Stream&, Command*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult captureCopy(Capture&, Stream&, Command*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult captureSet(Capture&, Stream&, Command*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult refuseWhileCapturing(Context&) { return CUDA_SUCCESS; }

DRIVER_API(cuStreamIsCapturing)(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!captureStatus) return CUDA_ERROR_INVALID_VALUE;
  *captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

DRIVER_API(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode* mode) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!mode || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  std::swap(thread().captureMode, *mode);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
