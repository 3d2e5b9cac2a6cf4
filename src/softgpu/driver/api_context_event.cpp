// SPDX-License-Identifier: Apache-2.0
//
// Events of a whole context: recorded after all of its work so far, and waited
// for by all of its work from then on.
#include "softgpu/driver/capture.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/green.h"

namespace sonde::softgpu::driver {

CUresult cuGreenCtxRecordEvent_impl(CUgreenCtx hCtx, CUevent hEvent);
CUresult cuGreenCtxWaitEvent_impl(CUgreenCtx hCtx, CUevent hEvent);

namespace {

CUresult findContext(CUcontext handle, Ref<Context>& context) {
  if (!handle) return currentContext(context);
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  context = HandleTable::find<Context>(handle);
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  return context->destroyed.load() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : context->error();
}

}  // namespace

CUresult recordAfter(Context& context, std::span<const Ref<Stream>> streams, Event& event) {
  // A stream that nobody has a handle of waits for the others.
  auto gather = make<Stream>(&context, Stream::Role::created, CU_STREAM_NON_BLOCKING, 0);
  for (const Ref<Stream>& stream : streams) {
    if (stream->idle()) continue;
    Command* wait = gather->newCommand(CommandKind::wait);
    wait->target = stream;
    wait->targetSequence = stream->enqueued();
    gather->append(wait);
  }
  const CUresult result = recordOn(*gather, event, 0);
  context.keepUntilIdle(gather);
  return result;
}

DRIVER_API(cuCtxRecordEvent)(CUcontext hCtx, CUevent hEvent) {
  if (greenOf(hCtx)) return cuGreenCtxRecordEvent_impl(reinterpret_cast<CUgreenCtx>(hCtx), hEvent);
  Ref<Context> context;
  if (const CUresult e = findContext(hCtx, context)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (event->context() != context.get()) return CUDA_ERROR_INVALID_HANDLE;
  const auto streams = context->streams();
  if (const CUresult e = refuseCapturing(streams)) return e;
  return recordAfter(*context, streams, *event);
}

DRIVER_API(cuCtxWaitEvent)(CUcontext hCtx, CUevent hEvent) {
  if (greenOf(hCtx)) return cuGreenCtxWaitEvent_impl(reinterpret_cast<CUgreenCtx>(hCtx), hEvent);
  Ref<Context> context;
  if (const CUresult e = findContext(hCtx, context)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  const auto streams = context->streams();
  if (const CUresult e = refuseCapturing(streams)) return e;
  if (const CUresult e = refuseCaptured(*event)) return e;
  context->setGate(event->latest());
  // Asked anew: one that was made meanwhile may have missed the gate.
  for (const Ref<Stream>& stream : context->streams()) waitOn(*stream, *event, 0);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
