// SPDX-License-Identifier: Apache-2.0
//
// Streams that wait for, and write, values in memory.
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {
namespace {

CUresult memoryOperation(Stream& stream, CUdeviceptr address, uint64_t value, unsigned flags, uint32_t bytes,
                         bool wait) {
  if (address % bytes) return CUDA_ERROR_INVALID_VALUE;
  // Ordering of remote writes is always kept here, so these flags say nothing more.
  const unsigned known = wait ? 3u | CU_STREAM_WAIT_VALUE_FLUSH : unsigned{CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER};
  if (flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  End end;
  if (const CUresult e = locate(address, bytes, Side::device, *stream.context(), end)) return e;
  if (stream.capture.load()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Command* command = stream.newCommand(CommandKind::memoryOp);
  command->memoryOp = {address, value, flags, bytes, wait};
  submit(stream, command);
  return CUDA_SUCCESS;
}

CUresult memoryOperation(CUstream hStream, CUdeviceptr address, uint64_t value, unsigned flags, uint32_t bytes,
                         bool wait) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  return memoryOperation(*stream, address, value, flags, bytes, wait);
}

}  // namespace

DRIVER_API(cuStreamWaitValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return memoryOperation(stream, addr, value, flags, 4, true);
}
DRIVER_API(cuStreamWaitValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return memoryOperation(stream, addr, value, flags, 8, true);
}
DRIVER_API(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags) {
  return memoryOperation(stream, addr, value, flags, 4, false);
}
DRIVER_API(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags) {
  return memoryOperation(stream, addr, value, flags, 8, false);
}

DRIVER_API(cuStreamBatchMemOp_v2)
(CUstream hStream, unsigned int count, CUstreamBatchMemOpParams* paramArray, unsigned int flags) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!paramArray || count == 0 || count > 256 || flags) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++) {
    const CUstreamBatchMemOpParams& p = paramArray[i];
    CUresult e = CUDA_SUCCESS;
    switch (static_cast<int>(p.operation)) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        e = memoryOperation(*stream, p.waitValue.address, p.waitValue.value, p.waitValue.flags, 4, true);
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        e = memoryOperation(*stream, p.waitValue.address, p.waitValue.value64, p.waitValue.flags, 8, true);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        e = memoryOperation(*stream, p.writeValue.address, p.writeValue.value, p.writeValue.flags, 4, false);
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        e = memoryOperation(*stream, p.writeValue.address, p.writeValue.value64, p.writeValue.flags, 8, false);
        break;
      case CU_STREAM_MEM_OP_BARRIER:
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: break;
      default: e = CUDA_ERROR_INVALID_VALUE;
    }
    if (e) return e;
  }
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
