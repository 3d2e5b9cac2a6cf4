// SPDX-License-Identifier: Apache-2.0
//
// Streams and host functions.
#include <algorithm>

#include "platform/clock.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/sync.h"
#include "softgpu/driver/tools.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

void reportSync(Context& context, Stream* stream, uint32_t kind, uint64_t start, CUresult result, uint32_t eventId,
                uint64_t eventSyncId) {
  SondeSync sync{};
  sync.size = sizeof sync;
  sync.kind = kind;
  const ReportedContext name = stream ? reported(*stream) : ReportedContext{context.handle(), context.uid()};
  sync.context = name.handle;
  sync.contextUid = name.uid;
  sync.stream = stream ? stream->handle() : nullptr;
  sync.streamId = stream ? stream->id() : 0xffffffffu;
  sync.eventId = eventId;
  sync.correlationId = currentCorrelation();
  sync.start = start;
  sync.end = platform::nowNs();
  sync.eventSyncId = eventSyncId;
  sync.returnValue = result;
  tools::reportSync(sync);
}

namespace {

CUresult createStream(CUstream* phStream, unsigned flags, int priority) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!phStream || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING))) return CUDA_ERROR_INVALID_VALUE;
  priority = std::clamp(priority, -5, 0);
  if (GreenContext* green = currentGreen()) {
    Ref<Stream> made;
    if (const CUresult e = green->createStream(flags, priority, made)) return e;
    *phStream = static_cast<CUstream>(made->handle());
    return CUDA_SUCCESS;
  }
  auto stream = make<Stream>(context.get(), Stream::Role::created, flags, priority);
  if (!HandleTable::publish(stream.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  context->addStream(stream.get());
  reportStream(*stream, SONDE_RESOURCE_STREAM_CREATED);
  *phStream = static_cast<CUstream>(stream->handle());
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuStreamCreate)(CUstream* phStream, unsigned int flags) { return createStream(phStream, flags, 0); }

DRIVER_API(cuStreamCreateWithPriority)(CUstream* phStream, unsigned int flags, int priority) {
  return createStream(phStream, flags, priority);
}

DRIVER_API(cuStreamDestroy_v2)(CUstream hStream) {
  if (!hStream || hStream == CU_STREAM_LEGACY || hStream == CU_STREAM_PER_THREAD) return CUDA_ERROR_INVALID_HANDLE;
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  Ref<Stream> stream = HandleTable::find<Stream>(hStream);
  if (!stream || stream->role() != Stream::Role::created) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->green && static_cast<GreenContext*>(stream->green.get())->destroyed.load())
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (stream->destroyed.exchange(true)) return CUDA_ERROR_INVALID_HANDLE;
  reportStream(*stream, SONDE_RESOURCE_STREAM_DESTROY_STARTING);
  abandonCapture(*stream);
  // Its work goes on; the object lives until that is done.
  stream->context()->removeStream(stream.get());
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetPriority)(CUstream hStream, int* priority) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority();
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetFlags)(CUstream hStream, unsigned int* flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags();
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetId)(CUstream hStream, unsigned long long* streamId) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!streamId) return CUDA_ERROR_INVALID_VALUE;
  *streamId = stream->id();
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetCtx)(CUstream hStream, CUcontext* pctx) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!pctx) return CUDA_ERROR_INVALID_VALUE;
  *pctx = static_cast<CUcontext>(stream->green ? stream->green->handle() : stream->context()->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetCtx_v2)(CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!pCtx) return CUDA_ERROR_INVALID_VALUE;
  *pCtx = static_cast<CUcontext>(stream->context()->handle());
  if (pGreenCtx) *pGreenCtx = stream->green ? static_cast<CUgreenCtx>(stream->green->handle()) : nullptr;
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetDevice)(CUstream hStream, CUdevice* device) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = static_cast<CUdevice>(stream->context()->device()->ordinal);
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamQuery)(CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (const CUresult e = refuseCapturing(*stream)) return e;
  // The legacy stream is done when all that it orders itself after is done.
  if (!stream->idle()) return CUDA_ERROR_NOT_READY;
  if (stream->role() == Stream::Role::legacyDefault) {
    std::lock_guard lock(stream->context()->order);
    for (auto& other : stream->context()->blockingStreams)
      if (!other->idle()) return CUDA_ERROR_NOT_READY;
  }
  managed::waited(*stream, stream->completed());
  return stream->context()->error();
}

DRIVER_API(cuStreamSynchronize)(CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (const CUresult e = refuseCapturing(*stream)) return e;
  const uint64_t start = tools::wants(SONDE_INTEREST_SYNC) ? platform::nowNs() : 0;
  Context& context = *stream->context();
  stream->drain();
  if (stream->role() == Stream::Role::legacyDefault) {
    std::vector<Ref<Stream>> others;
    {
      std::lock_guard lock(context.order);
      others = context.blockingStreams;
    }
    for (auto& other : others) other->drain();
  }
  managed::waited(*stream, ~uint64_t{0} - 1);
  const CUresult result = context.error();
  if (start) reportSync(context, stream.get(), SONDE_SYNC_STREAM_SYNCHRONIZE, start, result);
  return result;
}

DRIVER_API(cuStreamAddCallback)(CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!callback || flags) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuseCapturing(*stream)) return e;
  Command* command = stream->newCommand(CommandKind::callback);
  command->callback = callback;
  command->user = userData;
  submit(*stream, command);
  return CUDA_SUCCESS;
}

DRIVER_API(cuLaunchHostFunc)(CUstream hStream, CUhostFn fn, void* userData) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  if (Capture* capture = stream->capture.load()) return captureHostFunction(*capture, *stream, fn, userData);
  Command* command = stream->newCommand(CommandKind::hostFunction);
  command->hostFunction = fn;
  command->user = userData;
  submit(*stream, command);
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamAttachMemAsync)(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
    return CUDA_ERROR_INVALID_VALUE;
  // The default stream is all streams: nothing can be its alone.
  if (flags == CU_MEM_ATTACH_SINGLE && stream->role() != Stream::Role::created) return CUDA_ERROR_INVALID_VALUE;
  const auto found = memory::Allocator::get().find(dptr);
  const bool whole = found && found->kind == memory::Kind::managed
                         ? found->address == dptr && (length == 0 || length == found->bytes)
                         : memory::ManagedMemory::get().attachable(dptr, length);
  if (!dptr || !whole) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuseCapturing(*stream)) return e;
  Command* command = stream->newCommand(CommandKind::attach);
  command->prefetch = {dptr, length, 0,
                       flags == CU_MEM_ATTACH_HOST     ? memory::Attach::host
                       : flags == CU_MEM_ATTACH_SINGLE ? memory::Attach::single
                                                       : memory::Attach::global};
  submit(*stream, command);
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamCopyAttributes)(CUstream dst, CUstream src) {
  Ref<Stream> d, s;
  if (const CUresult e = resolveStream(dst, d)) return e;
  if (const CUresult e = resolveStream(src, s)) return e;
  if (d->context() != s->context()) return CUDA_ERROR_INVALID_VALUE;
  d->setAccessPolicy(s->accessPolicy());
  d->syncPolicy.store(s->syncPolicy.load());
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetAttribute)(CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!value_out) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(attr)) {
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: value_out->priority = stream->priority(); return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      value_out->syncPolicy = stream->syncPolicy.load();
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value_out->accessPolicyWindow = stream->accessPolicy().value_or(CUaccessPolicyWindow{});
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

DRIVER_API(cuStreamSetAttribute)(CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(attr)) {
    // Hints: they change how fast, never what.
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
      stream->syncPolicy.store(value->syncPolicy);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
      AccessPolicy policy;
      if (const CUresult e = takeAccessPolicy(*stream->context()->device(), value->accessPolicyWindow, policy))
        return e;
      stream->setAccessPolicy(policy);
      return CUDA_SUCCESS;
    }
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace sonde::softgpu::driver
