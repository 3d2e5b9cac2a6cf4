// SPDX-License-Identifier: Apache-2.0
//
// Stream capture: calls on a capturing stream become nodes of a graph.
#pragma once

#include <span>

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

class Pool;

// CUDA_SUCCESS when the stream is not being captured; otherwise the error of a
// call that may not be made on such a stream, which spoils the capture.
CUresult refuseCapturing(Stream& stream);
// The same for a call that concerns all of these streams.
CUresult refuseCapturing(std::span<const Ref<Stream>> streams);
// An error when the event's last record is part of a capture that goes on; it is spoilt.
CUresult refuseCaptured(Event& event);
// The error of using the legacy stream while a blocking stream of the context
// is being captured.
CUresult refuseImplicit(Context& context);
// A capturing stream goes away.
void abandonCapture(Stream& stream);

CUresult captureHostFunction(Capture& capture, Stream& stream, CUhostFn fn, void* user);
CUresult captureEventRecord(Capture& capture, Stream& stream, Event& event, unsigned flags);
// `handled`: the call was about a capture and is done.
CUresult captureWaitEvent(Stream& stream, Event& event, unsigned flags, bool& handled);
CUresult captureKernel(Capture& capture, Stream& stream, Command* command);
CUresult captureCopy(Capture& capture, Stream& stream, Command* command);
// The node gets the pool's properties.
CUresult captureAllocation(Capture& capture, Stream& stream, const Pool& pool, size_t bytes, CUdeviceptr* address);
CUresult captureFree(Capture& capture, Stream& stream, CUdeviceptr address);
// The operations have been checked.
CUresult captureMemoryOps(Capture& capture, Stream& stream, std::span<const CUstreamBatchMemOpParams> ops);
CUresult captureSet(Capture& capture, Stream& stream, Command* command);

}  // namespace sonde::softgpu::driver
