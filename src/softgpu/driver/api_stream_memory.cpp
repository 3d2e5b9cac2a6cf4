// SPDX-License-Identifier: Apache-2.0
//
// Streams that wait for, and write, values in memory.
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory_op.h"

#undef cuStreamBatchMemOp
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64

namespace sonde::softgpu::driver {
namespace {

bool can(const Context& context, int attribute) {
  int64_t value = 0;
  return deviceAttribute(*context.device(), attribute, value) && value != 0;
}

CUresult planWord(const Context& context, CUdeviceptr address, uint64_t value, unsigned flags, uint32_t bytes,
                  bool wait, MemoryOp& op) {
  // Ordering of remote writes is always kept here, so the flags about it say nothing more.
  const unsigned known = wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH : unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER};
  if ((flags & ~known) || address % bytes) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 8 && !can(context, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)) return CUDA_ERROR_NOT_SUPPORTED;
  if (wait) {
    if ((flags & 3u) == CU_STREAM_WAIT_VALUE_NOR && !can(context, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR))
      return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & CU_STREAM_WAIT_VALUE_FLUSH) && !can(context, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES))
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  End end;
  if (const CUresult e = locate(address, bytes, Side::device, context, end)) return e;
  if (end.kind == SONDE_MEMORY_MANAGED || end.kind == SONDE_MEMORY_MANAGED_STATIC) return CUDA_ERROR_INVALID_VALUE;
  op = {address, bytes == 4 ? static_cast<uint32_t>(value) : value, flags, bytes, wait};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult planMemoryOps(std::span<const CUstreamBatchMemOpParams> ops, const Context& context,
                       std::vector<MemoryOp>& plan) {
  std::vector<MemoryOp> made;
  for (const CUstreamBatchMemOpParams& p : ops) {
    MemoryOp op;
    CUresult e = CUDA_SUCCESS;
    switch (static_cast<int>(p.operation)) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        e = planWord(context, p.waitValue.address, p.waitValue.value, p.waitValue.flags, 4, true, op);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        e = planWord(context, p.waitValue.address, p.waitValue.value64, p.waitValue.flags, 8, true, op);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        e = planWord(context, p.writeValue.address, p.writeValue.value, p.writeValue.flags, 4, false, op);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        e = planWord(context, p.writeValue.address, p.writeValue.value64, p.writeValue.flags, 8, false, op);
        break;
      case CU_STREAM_MEM_OP_BARRIER:
        if (p.memoryBarrier.flags & ~unsigned{CU_STREAM_MEMORY_BARRIER_TYPE_GPU}) return CUDA_ERROR_INVALID_VALUE;
        continue;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        if (p.flushRemoteWrites.flags) return CUDA_ERROR_INVALID_VALUE;
        if (!can(context, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES)) return CUDA_ERROR_NOT_SUPPORTED;
        continue;
      default: return CUDA_ERROR_INVALID_VALUE;
    }
    if (e) return e;
    made.push_back(op);
  }
  plan = std::move(made);
  return CUDA_SUCCESS;
}

namespace {

CUresult enqueue(CUstream hStream, std::span<const CUstreamBatchMemOpParams> ops) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  std::vector<MemoryOp> plan;
  if (const CUresult e = planMemoryOps(ops, *stream->context(), plan)) return e;
  if (Capture* capture = stream->capture.load()) return captureMemoryOps(*capture, *stream, ops);
  Command* command = stream->newCommand(CommandKind::memoryOp);
  command->memoryOps = std::move(plan);
  submit(*stream, command);
  return CUDA_SUCCESS;
}

CUresult wait(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags, bool wide) {
  CUstreamBatchMemOpParams p{};
  p.waitValue.operation = wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
  p.waitValue.address = address;
  p.waitValue.value64 = value;
  p.waitValue.flags = flags;
  return enqueue(stream, {&p, 1});
}

CUresult write(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags, bool wide) {
  CUstreamBatchMemOpParams p{};
  p.writeValue.operation = wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  p.writeValue.address = address;
  p.writeValue.value64 = value;
  p.writeValue.flags = flags;
  return enqueue(stream, {&p, 1});
}

CUresult batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams* ops, unsigned flags) {
  if (!ops || count == 0 || count >= kMemoryOpLimit || flags) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(stream, {ops, count});
}

// The functions of CUDA 8 and 9 have attributes of their own.
CUresult firstVersion(CUstream hStream, int attribute) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  return can(*stream->context(), attribute) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
constexpr int kFirst32 = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1;
constexpr int kFirst64 = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1;

}  // namespace

DRIVER_API(cuStreamWaitValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return wait(stream, addr, value, flags, false);
}
DRIVER_API(cuStreamWaitValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return wait(stream, addr, value, flags, true);
}
DRIVER_API(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return write(stream, addr, value, flags, false);
}
DRIVER_API(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return write(stream, addr, value, flags, true);
}
DRIVER_API(cuStreamBatchMemOp_v2)
(CUstream hStream, unsigned int count, CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  return batch(hStream, count, paramArray, flags);
}

DRIVER_API(cuStreamWaitValue32)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  if (const CUresult e = firstVersion(stream, kFirst32)) return e;
  return wait(stream, addr, value, flags, false);
}
DRIVER_API(cuStreamWaitValue64)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  if (const CUresult e = firstVersion(stream, kFirst64)) return e;
  return wait(stream, addr, value, flags, true);
}
DRIVER_API(cuStreamWriteValue32)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  if (const CUresult e = firstVersion(stream, kFirst32)) return e;
  return write(stream, addr, value, flags, false);
}
DRIVER_API(cuStreamWriteValue64)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  if (const CUresult e = firstVersion(stream, kFirst64)) return e;
  return write(stream, addr, value, flags, true);
}
DRIVER_API(cuStreamBatchMemOp)
(CUstream hStream, unsigned int count, CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  if (const CUresult e = firstVersion(hStream, kFirst32)) return e;
  return batch(hStream, count, paramArray, flags);
}

}  // namespace sonde::softgpu::driver
