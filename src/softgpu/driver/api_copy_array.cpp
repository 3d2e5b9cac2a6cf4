// SPDX-License-Identifier: Apache-2.0
//
// Copies between flat memory and the first row of an array, counted in bytes.
#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/sync.h"

namespace sonde::softgpu::driver {
namespace {

struct Place {
  CUmemorytype type;
  const void* host = nullptr;
  CUdeviceptr device = 0;
  CUarray array = nullptr;
  size_t offset = 0;
};

Place hostPlace(const void* p) { return {CU_MEMORYTYPE_HOST, p}; }
Place devicePlace(CUdeviceptr p) { return {CU_MEMORYTYPE_DEVICE, nullptr, p}; }
Place arrayPlace(CUarray a, size_t offset) { return {CU_MEMORYTYPE_ARRAY, nullptr, 0, a, offset}; }

CUresult copyRow(const Place& to, const Place& from, size_t bytes, CUstream hStream, bool synchronous) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Context& context = *stream->context();
  if (synchronous)
    if (const CUresult e = refuseWhileCapturing(context)) return e;
  for (const Place* p : {&to, &from})
    if (p->type == CU_MEMORYTYPE_ARRAY && !HandleTable::find<Array>(p->array)) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == 0) return CUDA_SUCCESS;
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = from.type;
  c.srcHost = from.host;
  c.srcDevice = from.device;
  c.srcArray = from.array;
  c.srcXInBytes = from.offset;
  c.dstMemoryType = to.type;
  c.dstHost = const_cast<void*>(to.host);
  c.dstDevice = to.device;
  c.dstArray = to.array;
  c.dstXInBytes = to.offset;
  c.WidthInBytes = bytes;
  c.Height = c.Depth = 1;
  Command* command = stream->newCommand(CommandKind::copy);
  if (const CUresult e = planBox(c, context, command->copy)) {
    stream->giveBack(command);
    return e;
  }
  return runCopy(*stream, command, synchronous);
}

}  // namespace

DRIVER_API(cuMemcpyHtoA_v2)(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount) {
  return copyRow(arrayPlace(dstArray, dstOffset), hostPlace(srcHost), ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyAtoH_v2)(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copyRow(hostPlace(dstHost), arrayPlace(srcArray, srcOffset), ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyDtoA_v2)(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount) {
  return copyRow(arrayPlace(dstArray, dstOffset), devicePlace(srcDevice), ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyAtoD_v2)(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copyRow(devicePlace(dstDevice), arrayPlace(srcArray, srcOffset), ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyAtoA_v2)
(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount) {
  return copyRow(arrayPlace(dstArray, dstOffset), arrayPlace(srcArray, srcOffset), ByteCount, nullptr, true);
}
DRIVER_API(cuMemcpyHtoAAsync_v2)
(CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount, CUstream hStream) {
  return copyRow(arrayPlace(dstArray, dstOffset), hostPlace(srcHost), ByteCount, hStream, false);
}
DRIVER_API(cuMemcpyAtoHAsync_v2)
(void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream) {
  return copyRow(hostPlace(dstHost), arrayPlace(srcArray, srcOffset), ByteCount, hStream, false);
}

}  // namespace sonde::softgpu::driver
