// SPDX-License-Identifier: Apache-2.0
//
// Events.
#include "platform/clock.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/sync.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {
namespace {

std::atomic<uint64_t> syncIds{0};

}  // namespace

CUresult findEvent(CUevent handle, Ref<Event>& event) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (thread().inHostFunction) return CUDA_ERROR_NOT_PERMITTED;
  event = HandleTable::find<Event>(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->context()->destroyed.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return event->context()->error();
}

namespace {

bool captured(Event& event) {
  std::lock_guard lock(event.captureMutex);
  return static_cast<bool>(event.capturedIn);
}

}  // namespace

Event::Event(Context* context, uint32_t flags) : Object(kType), context_(context), flags_(flags), id_(nextEventId()) {}
Event::~Event() = default;

DRIVER_API(cuEventCreate)(CUevent* phEvent, unsigned int flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!phEvent || (flags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
  auto event = make<Event>(context.get(), flags);
  if (flags & CU_EVENT_INTERPROCESS) {
    event->shared = SharedEvent::create();
    if (!event->shared) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!HandleTable::publish(event.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    std::lock_guard lock(context->objects);
    context->owned.insert(event.get());
  }
  *phEvent = static_cast<CUevent>(event->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuEventDestroy_v2)(CUevent hEvent) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  Ref<Event> event = HandleTable::find<Event>(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  {
    std::lock_guard lock(event->context()->objects);
    event->context()->owned.erase(event.get());
  }
  return HandleTable::retire(event.get()) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult recordOn(Stream& stream, Event& event, uint32_t correlation) {
  {
    std::lock_guard lock(event.captureMutex);
    event.capturedIn.reset();
    event.capturedNodes.clear();
  }
  Ref<EventRecord> record(new EventRecord());
  record->eventId = event.id();
  record->syncId = syncIds.fetch_add(1, std::memory_order_relaxed) + 1;
  record->stream = Ref<Stream>(&stream);
  if (event.shared) {
    record->shared = event.shared;
    record->sharedPlace = event.shared->record();
  }
  Command* command = stream.newCommand(CommandKind::eventRecord);
  command->record = record;
  command->correlationId = correlation;
  // The place is known only when the command is in the queue, but another
  // thread may see the event before: until then it is "not reached".
  record->sequence.store(UINT64_MAX, std::memory_order_relaxed);
  event.setLatest(record);
  record->sequence.store(submit(stream, command), std::memory_order_release);
  return CUDA_SUCCESS;
}

void waitOn(Stream& stream, Event& event, uint32_t correlation) {
  if (event.shared) {
    // The last record may be another process's: a thread of the scheduler waits for it.
    const uint64_t place = event.shared->recorded();
    if (event.shared->reached(place)) return;
    Command* command = stream.newCommand(CommandKind::conditional);
    command->correlationId = correlation;
    command->body = [shared = event.shared, place](Stream&) { shared->wait(place); };
    submit(stream, command);
    return;
  }
  const Ref<EventRecord> record = event.latest();
  if (!record || record->stream.get() == &stream || record->complete()) return;
  Command* command = stream.newCommand(CommandKind::wait);
  command->correlationId = correlation;
  command->target = record->stream;
  command->targetSequence = record->place();
  submit(stream, command);
}

CUresult recordEvent(CUevent hEvent, CUstream hStream, unsigned flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  if (event->context() != stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  if (Capture* capture = stream->capture.load()) return captureEventRecord(*capture, *stream, *event, flags);
  return recordOn(*stream, *event, 0);
}

DRIVER_API(cuEventRecord)(CUevent hEvent, CUstream hStream) { return recordEvent(hEvent, hStream, 0); }
DRIVER_API(cuEventRecordWithFlags)(CUevent hEvent, CUstream hStream, unsigned int flags) {
  return recordEvent(hEvent, hStream, flags);
}

DRIVER_API(cuEventQuery)(CUevent hEvent) {
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (captured(*event)) return CUDA_ERROR_CAPTURED_EVENT;
  if (event->shared) {
    return event->shared->reached(event->shared->recorded()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  const Ref<EventRecord> record = event->latest();
  if (!record) return CUDA_SUCCESS;
  if (!record->complete()) return CUDA_ERROR_NOT_READY;
  managed::waited(*record->stream, record->place());
  return CUDA_SUCCESS;
}

DRIVER_API(cuEventSynchronize)(CUevent hEvent) {
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (captured(*event)) return CUDA_ERROR_CAPTURED_EVENT;
  const uint64_t start = tools::wants(SONDE_INTEREST_SYNC) ? platform::nowNs() : 0;
  const Ref<EventRecord> record = event->latest();
  if (event->shared) {
    const uint64_t place = event->shared->recorded();
    // When the last record is this process's, the caller may run the stream itself.
    if (record && record->sharedPlace == place) record->stream->waitFor(record->place());
    event->shared->wait(place);
  } else if (record) {
    record->stream->waitFor(record->place());
  }
  if (record) managed::waited(*record->stream, record->place());
  const CUresult result = event->context()->error();
  if (start)
    reportSync(*event->context(), record ? record->stream.get() : nullptr, SONDE_SYNC_EVENT_SYNCHRONIZE, start, result,
               event->id(), record ? record->syncId : 0);
  return result;
}

namespace {

CUresult elapsed(float* milliseconds, CUevent hStart, CUevent hEnd) {
  Ref<Event> start, end;
  if (const CUresult e = findEvent(hStart, start)) return e;
  if (const CUresult e = findEvent(hEnd, end)) return e;
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  if (captured(*start) || captured(*end)) return CUDA_ERROR_CAPTURED_EVENT;
  const Ref<EventRecord> a = start->latest(), b = end->latest();
  if (!a || !b || ((start->flags() | end->flags()) & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_HANDLE;
  if (start->context() != end->context()) return CUDA_ERROR_INVALID_HANDLE;
  if (!a->complete() || !b->complete()) return CUDA_ERROR_NOT_READY;
  const auto difference = static_cast<int64_t>(b->timeNs.load() - a->timeNs.load());
  *milliseconds = static_cast<float>(static_cast<double>(difference) * 1e-6);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuEventElapsedTime)(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}
DRIVER_API(cuEventElapsedTime_v2)(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return elapsed(pMilliseconds, hStart, hEnd);
}

DRIVER_API(cuStreamWaitEvent)(CUstream hStream, CUevent hEvent, unsigned int flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) return CUDA_ERROR_INVALID_VALUE;
  bool handled = false;
  if (const CUresult e = captureWaitEvent(*stream, *event, flags, handled); e || handled) return e;
  const uint64_t start = tools::wants(SONDE_INTEREST_SYNC) ? platform::nowNs() : 0;
  const Ref<EventRecord> record = event->latest();
  waitOn(*stream, *event, 0);
  if (start)
    reportSync(*stream->context(), stream.get(), SONDE_SYNC_STREAM_WAIT_EVENT, start, CUDA_SUCCESS, event->id(),
               record ? record->syncId : 0);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
