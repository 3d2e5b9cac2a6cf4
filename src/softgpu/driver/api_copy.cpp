// SPDX-License-Identifier: Apache-2.0
//
// Copies and sets.
#include "platform/tools_api.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/sync.h"

namespace sonde::softgpu::driver {
namespace {

void setEnds(CopyPlan& plan, const End& to, const End& from) {
  plan.to = to.bytes;
  plan.from = from.bytes;
  plan.toKind = to.kind;
  plan.fromKind = from.kind;
  plan.toDevice = to.device;
  plan.fromDevice = from.device;
  plan.toContext = to.contextUid;
  plan.fromContext = from.contextUid;
  plan.staging.clear();
}

}  // namespace

CUresult planFlat(uint64_t to, Side toSide, uint64_t from, Side fromSide, size_t bytes, const Context& context,
                  CopyPlan& plan) {
  End toEnd, fromEnd;
  if (const CUresult e = locate(to, bytes, toSide, context, toEnd)) return e;
  if (const CUresult e = locate(from, bytes, fromSide, context, fromEnd)) return e;
  setEnds(plan, toEnd, fromEnd);
  plan.width = bytes;
  plan.height = plan.depth = 1;
  plan.toPitch = plan.fromPitch = plan.toSlice = plan.fromSlice = bytes;
  plan.peer = false;
  return CUDA_SUCCESS;
}

namespace {

CUresult flatCopy(uint64_t to, Side toSide, uint64_t from, Side fromSide, size_t bytes, CUstream hStream,
                  bool synchronous, bool peer = false) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Context& context = *stream->context();
  if (synchronous)
    if (const CUresult e = refuseWhileCapturing(context)) return e;
  if (bytes == 0) return CUDA_SUCCESS;
  Command* command = stream->newCommand(CommandKind::copy);
  if (const CUresult e = planFlat(to, toSide, from, fromSide, bytes, context, command->copy)) {
    stream->giveBack(command);
    return e;
  }
  command->copy.peer = peer;
  return runCopy(*stream, command, synchronous);
}

uint64_t at(const void* p) { return reinterpret_cast<uint64_t>(p); }

}  // namespace

DRIVER_API(cuMemcpy)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount) {
  return flatCopy(dst, Side::either, src, Side::either, ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream) {
  return flatCopy(dst, Side::either, src, Side::either, ByteCount, hStream, false);
}
DRIVER_API(cuMemcpyHtoD_v2)(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount) {
  return flatCopy(dstDevice, Side::device, at(srcHost), Side::host, ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyDtoH_v2)(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount) {
  return flatCopy(at(dstHost), Side::host, srcDevice, Side::device, ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyDtoD_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount) {
  return flatCopy(dstDevice, Side::device, srcDevice, Side::device, ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyHtoDAsync_v2)(CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount, CUstream hStream) {
  return flatCopy(dstDevice, Side::device, at(srcHost), Side::host, ByteCount, hStream, false);
}
DRIVER_API(cuMemcpyDtoHAsync_v2)(void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return flatCopy(at(dstHost), Side::host, srcDevice, Side::device, ByteCount, hStream, false);
}
DRIVER_API(cuMemcpyDtoDAsync_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream) {
  return flatCopy(dstDevice, Side::device, srcDevice, Side::device, ByteCount, hStream, false);
}

namespace {

CUresult peerContexts(CUcontext a, CUcontext b, bool& peer) {
  const Ref<Context> first = HandleTable::find<Context>(a), second = HandleTable::find<Context>(b);
  if (!first || !second) return CUDA_ERROR_INVALID_CONTEXT;
  peer = first->device() != second->device();
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuMemcpyPeer)
(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount) {
  bool peer;
  if (const CUresult e = peerContexts(dstContext, srcContext, peer)) return e;
  return flatCopy(dstDevice, Side::device, srcDevice, Side::device, ByteCount, nullptr, true, peer);
}
DRIVER_API(cuMemcpyPeerAsync)
(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount,
 CUstream hStream) {
  bool peer;
  if (const CUresult e = peerContexts(dstContext, srcContext, peer)) return e;
  return flatCopy(dstDevice, Side::device, srcDevice, Side::device, ByteCount, hStream, false, peer);
}

// ------------------------------------------------------ two and three dims --

namespace {

struct Shape {
  uint64_t x, y, z;        // offset: bytes, rows, slices
  uint64_t pitch, height;  // of the whole area: bytes, rows (0: as large as what is copied)
};

CUresult planEnd(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, Shape& shape, uint64_t width,
                 uint64_t height, uint64_t depth, const Context& context, End& end) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    const Ref<Array> a = HandleTable::find<Array>(array);
    if (!a) return CUDA_ERROR_INVALID_VALUE;
    if (shape.x + width > a->rowBytes() || shape.y + height > a->rows() || shape.z + depth > a->slices())
      return CUDA_ERROR_INVALID_VALUE;
    shape.pitch = a->pitch;
    shape.height = a->rows();
    end.bytes = memory::Allocator::hostAccess(a->address + (shape.z * shape.height + shape.y) * shape.pitch + shape.x);
    end.kind = SONDE_MEMORY_ARRAY;
    end.device = a->context()->device()->ordinal;
    end.contextUid = a->context()->uid();
    return CUDA_SUCCESS;
  }
  if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE && type != CU_MEMORYTYPE_UNIFIED)
    return CUDA_ERROR_INVALID_VALUE;
  if (shape.pitch == 0) shape.pitch = width;
  if (shape.height == 0) shape.height = height;
  if (shape.pitch < width + shape.x && (height > 1 || depth > 1)) return CUDA_ERROR_INVALID_VALUE;
  if (depth > 1 && shape.height < height) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t base = type == CU_MEMORYTYPE_HOST ? reinterpret_cast<uint64_t>(host) : device;
  if (base == 0) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t slice = shape.pitch * shape.height;
  const uint64_t first = base + shape.z * slice + shape.y * shape.pitch + shape.x;
  const uint64_t bytes = (depth - 1) * slice + (height - 1) * shape.pitch + width;
  const Side side = type == CU_MEMORYTYPE_HOST     ? Side::host
                    : type == CU_MEMORYTYPE_DEVICE ? Side::device
                                                   : Side::either;
  return locate(first, bytes, side, context, end);
}

}  // namespace

CUresult planBox(const CUDA_MEMCPY3D& c, const Context& context, CopyPlan& plan) {
  if (c.srcLOD || c.dstLOD) return CUDA_ERROR_INVALID_VALUE;
  Shape from{c.srcXInBytes, c.srcY, c.srcZ, c.srcPitch, c.srcHeight};
  Shape to{c.dstXInBytes, c.dstY, c.dstZ, c.dstPitch, c.dstHeight};
  End fromEnd, toEnd;
  if (const CUresult e = planEnd(c.srcMemoryType, c.srcHost, c.srcDevice, c.srcArray, from, c.WidthInBytes, c.Height,
                                 c.Depth, context, fromEnd))
    return e;
  if (const CUresult e = planEnd(c.dstMemoryType, c.dstHost, c.dstDevice, c.dstArray, to, c.WidthInBytes, c.Height,
                                 c.Depth, context, toEnd))
    return e;
  setEnds(plan, toEnd, fromEnd);
  plan.width = c.WidthInBytes;
  plan.height = c.Height;
  plan.depth = c.Depth;
  plan.toPitch = to.pitch;
  plan.fromPitch = from.pitch;
  plan.toSlice = to.pitch * to.height;
  plan.fromSlice = from.pitch * from.height;
  plan.peer = false;
  return CUDA_SUCCESS;
}

namespace {

CUresult boxCopy(const CUDA_MEMCPY3D* c, CUstream hStream, bool synchronous, bool peer = false) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Context& context = *stream->context();
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  if (synchronous)
    if (const CUresult e = refuseWhileCapturing(context)) return e;
  if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0) return CUDA_SUCCESS;
  Command* command = stream->newCommand(CommandKind::copy);
  if (const CUresult e = planBox(*c, context, command->copy)) {
    stream->giveBack(command);
    return e;
  }
  command->copy.peer = peer;
  return runCopy(*stream, command, synchronous);
}

CUresult planeCopy(const CUDA_MEMCPY2D* c, CUstream hStream, bool synchronous) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = c->srcXInBytes;
  box.srcY = c->srcY;
  box.srcMemoryType = c->srcMemoryType;
  box.srcHost = c->srcHost;
  box.srcDevice = c->srcDevice;
  box.srcArray = c->srcArray;
  box.srcPitch = c->srcPitch;
  box.dstXInBytes = c->dstXInBytes;
  box.dstY = c->dstY;
  box.dstMemoryType = c->dstMemoryType;
  box.dstHost = c->dstHost;
  box.dstDevice = c->dstDevice;
  box.dstArray = c->dstArray;
  box.dstPitch = c->dstPitch;
  box.WidthInBytes = c->WidthInBytes;
  box.Height = c->Height;
  box.Depth = 1;
  return boxCopy(&box, hStream, synchronous);
}

CUresult peerBoxCopy(const CUDA_MEMCPY3D_PEER* c, CUstream hStream, bool synchronous) {
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  bool peer;
  if (const CUresult e = peerContexts(c->dstContext, c->srcContext, peer)) return e;
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = c->srcXInBytes;
  box.srcY = c->srcY;
  box.srcZ = c->srcZ;
  box.srcLOD = c->srcLOD;
  box.srcMemoryType = c->srcMemoryType;
  box.srcHost = c->srcHost;
  box.srcDevice = c->srcDevice;
  box.srcArray = c->srcArray;
  box.srcPitch = c->srcPitch;
  box.srcHeight = c->srcHeight;
  box.dstXInBytes = c->dstXInBytes;
  box.dstY = c->dstY;
  box.dstZ = c->dstZ;
  box.dstLOD = c->dstLOD;
  box.dstMemoryType = c->dstMemoryType;
  box.dstHost = c->dstHost;
  box.dstDevice = c->dstDevice;
  box.dstArray = c->dstArray;
  box.dstPitch = c->dstPitch;
  box.dstHeight = c->dstHeight;
  box.WidthInBytes = c->WidthInBytes;
  box.Height = c->Height;
  box.Depth = c->Depth;
  return boxCopy(&box, hStream, synchronous, peer);
}

}  // namespace

DRIVER_API(cuMemcpy2D_v2)(const CUDA_MEMCPY2D* pCopy) { return planeCopy(pCopy, nullptr, true); }
DRIVER_API(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D* pCopy) { return planeCopy(pCopy, nullptr, true); }
DRIVER_API(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D* pCopy, CUstream hStream) {
  return planeCopy(pCopy, hStream, false);
}
DRIVER_API(cuMemcpy3D_v2)(const CUDA_MEMCPY3D* pCopy) { return boxCopy(pCopy, nullptr, true); }
DRIVER_API(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D* pCopy, CUstream hStream) { return boxCopy(pCopy, hStream, false); }
DRIVER_API(cuMemcpy3DPeer)(const CUDA_MEMCPY3D_PEER* pCopy) { return peerBoxCopy(pCopy, nullptr, true); }
DRIVER_API(cuMemcpy3DPeerAsync)(const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream) {
  return peerBoxCopy(pCopy, hStream, false);
}

// ------------------------------------------------------------------- sets --

CUresult planFill(CUdeviceptr to, size_t pitch, uint32_t elementBytes, uint32_t value, size_t width, size_t height,
                  const Context& context, SetPlan& plan) {
  if (to % elementBytes || (height > 1 && (pitch % elementBytes || pitch < width * elementBytes)))
    return CUDA_ERROR_INVALID_VALUE;
  size_t row, bytes;
  if (__builtin_mul_overflow(width, elementBytes, &row) ||
      __builtin_mul_overflow(height ? height - 1 : 0, pitch, &bytes) || __builtin_add_overflow(bytes, row, &bytes))
    return CUDA_ERROR_INVALID_VALUE;
  plan = {};
  End end;
  if (bytes)
    if (const CUresult e = locate(to, bytes, Side::device, context, end)) return e;
  plan.to = end.bytes;
  plan.elementBytes = elementBytes;
  plan.value = value;
  plan.width = width;
  plan.height = height;
  plan.pitch = pitch;
  plan.kind = end.kind;
  return CUDA_SUCCESS;
}

namespace {

CUresult fill(CUdeviceptr to, size_t pitch, uint32_t elementBytes, uint32_t value, size_t width, size_t height,
              CUstream hStream, bool synchronous) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Context& context = *stream->context();
  if (synchronous)
    if (const CUresult e = refuseWhileCapturing(context)) return e;
  SetPlan plan;
  if (const CUresult e = planFill(to, pitch, elementBytes, value, width, height, context, plan)) return e;
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  plan.async = !synchronous;
  Command* command = stream->newCommand(CommandKind::set);
  command->set = plan;
  if (Capture* capture = stream->capture.load()) return captureSet(*capture, *stream, command);
  const uint64_t place = submit(*stream, command);
  // Only memory that the host can see makes the call wait.
  if (synchronous && plan.kind == SONDE_MEMORY_PINNED) {
    stream->waitFor(place);
    return context.error();
  }
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuMemsetD8_v2)(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill(dstDevice, N, 1, uc, N, 1, nullptr, true);
}
DRIVER_API(cuMemsetD16_v2)(CUdeviceptr dstDevice, unsigned short us, size_t N) {
  return fill(dstDevice, N * 2, 2, us, N, 1, nullptr, true);
}
DRIVER_API(cuMemsetD32_v2)(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill(dstDevice, N * 4, 4, ui, N, 1, nullptr, true);
}
DRIVER_API(cuMemsetD2D8_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height) {
  return fill(dstDevice, dstPitch, 1, uc, Width, Height, nullptr, true);
}
DRIVER_API(cuMemsetD2D16_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height) {
  return fill(dstDevice, dstPitch, 2, us, Width, Height, nullptr, true);
}
DRIVER_API(cuMemsetD2D32_v2)(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height) {
  return fill(dstDevice, dstPitch, 4, ui, Width, Height, nullptr, true);
}
DRIVER_API(cuMemsetD8Async)(CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream) {
  return fill(dstDevice, N, 1, uc, N, 1, hStream, false);
}
DRIVER_API(cuMemsetD16Async)(CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream) {
  return fill(dstDevice, N * 2, 2, us, N, 1, hStream, false);
}
DRIVER_API(cuMemsetD32Async)(CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream) {
  return fill(dstDevice, N * 4, 4, ui, N, 1, hStream, false);
}
DRIVER_API(cuMemsetD2D8Async)
(CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream) {
  return fill(dstDevice, dstPitch, 1, uc, Width, Height, hStream, false);
}
DRIVER_API(cuMemsetD2D16Async)
(CUdeviceptr dstDevice, size_t dstPitch, unsigned short us, size_t Width, size_t Height, CUstream hStream) {
  return fill(dstDevice, dstPitch, 2, us, Width, Height, hStream, false);
}
DRIVER_API(cuMemsetD2D32Async)
(CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream) {
  return fill(dstDevice, dstPitch, 4, ui, Width, Height, hStream, false);
}

}  // namespace sonde::softgpu::driver
