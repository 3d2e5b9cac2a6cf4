// SPDX-License-Identifier: Apache-2.0
//
// Many copies in one call. They are checked all before the first is enqueued.
#include <cstdint>

#include "platform/tools_api.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/batch.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/message.h"

#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync

namespace sonde::softgpu::driver {

CUresult batchStream(CUstream hStream, Ref<Stream>& stream) {
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (stream->role() != Stream::Role::legacyDefault) return CUDA_SUCCESS;
  say("a batch of operations cannot go to the legacy default stream: create a stream for it");
  return CUDA_ERROR_INVALID_VALUE;
}

bool validIndices(const size_t* indices, size_t entries, size_t count) {
  if (!indices || entries == 0 || entries > count || indices[0] != 0) return false;
  for (size_t i = 1; i < entries; i++)
    if (indices[i] <= indices[i - 1] || indices[i] >= count) return false;
  return true;
}

namespace {

// The copies of a call, until they are enqueued.
class Batch {
 public:
  explicit Batch(Stream& stream) : stream_(stream) {}
  ~Batch() {
    for (const Item& item : items_)
      if (item.command) stream_.giveBack(item.command);
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  CopyPlan& add(CUmemcpySrcAccessOrder order) {
    items_.push_back({stream_.newCommand(CommandKind::copy), order});
    return items_.back().command->copy;
  }
  CUresult enqueue();

 private:
  struct Item {
    Command* command;
    CUmemcpySrcAccessOrder order;
  };
  bool mustWait(const CopyPlan& plan, CUmemcpySrcAccessOrder order);

  Stream& stream_;
  std::vector<Item> items_;
};

// Must the call wait for this copy? Sources that are needed during the call have been staged where that is enough.
bool Batch::mustWait(const CopyPlan& plan, CUmemcpySrcAccessOrder order) {
  if (plan.toKind == SONDE_MEMORY_PAGEABLE) return true;
  if (order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY) return false;
  if (order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL) return plan.staging.empty();
  return plan.fromKind == SONDE_MEMORY_PAGEABLE;
}

CUresult Batch::enqueue() {
  if (Capture* capture = stream_.capture.load()) {
    for (Item& item : items_) {
      item.command->copy.async = true;
      if (const CUresult e = captureCopy(*capture, stream_, std::exchange(item.command, nullptr))) return e;
    }
    return CUDA_SUCCESS;
  }
  for (Item& item : items_) {
    CopyPlan& plan = item.command->copy;
    plan.async = true;
    plan.unreachable = nullptr;
    const bool host = plan.fromKind == SONDE_MEMORY_PAGEABLE || plan.fromKind == SONDE_MEMORY_PINNED;
    const bool flat = plan.height == 1 && plan.depth == 1;
    if (item.order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL && host && flat && plan.bytes() <= kStagingBytes)
      if (!stageSource(plan)) return CUDA_ERROR_INVALID_VALUE;
  }
  bool unreachable = false;
  uint64_t waitFor = 0;
  for (Item& item : items_) {
    CopyPlan& plan = item.command->copy;
    const bool wait = mustWait(plan, item.order);
    if (wait) plan.unreachable = &unreachable;
    const uint64_t place = submit(stream_, std::exchange(item.command, nullptr));
    if (wait) waitFor = place;
  }
  if (!waitFor) return CUDA_SUCCESS;
  stream_.waitFor(waitFor);
  managed::waited(stream_, waitFor);
  if (unreachable) {
    say("a copy reaches host memory that is not there or may not be written");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return stream_.context()->error();
}

bool validOrder(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}
bool validFlags(unsigned flags) { return (flags & ~unsigned{CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE}) == 0; }

// `failed`: the copy that an error is about; SIZE_MAX: none.
CUresult copyBatch(const CUdeviceptr* dsts, const CUdeviceptr* srcs, const size_t* sizes, size_t count,
                   const CUmemcpyAttributes* attrs, const size_t* attrsIdxs, size_t numAttrs, size_t& failed,
                   CUstream hStream) {
  failed = SIZE_MAX;
  Ref<Stream> stream;
  if (const CUresult e = batchStream(hStream, stream)) return e;
  if (!dsts || !srcs || !sizes || count == 0 || !attrs || !validIndices(attrsIdxs, numAttrs, count))
    return CUDA_ERROR_INVALID_VALUE;
  Batch batch(*stream);
  size_t entry = 0;
  for (size_t i = 0; i < count; i++) {
    const CUmemcpyAttributes& a = attrs[entryOf(attrsIdxs, numAttrs, i, entry)];
    failed = i;
    if (!validOrder(a.srcAccessOrder) || !validFlags(a.flags)) return CUDA_ERROR_INVALID_VALUE;
    if (sizes[i] == 0) continue;
    CopyPlan& plan = batch.add(a.srcAccessOrder);
    if (const CUresult e = planFlat(dsts[i], Side::either, srcs[i], Side::either, sizes[i], *stream->context(), plan))
      return e;
  }
  failed = SIZE_MAX;
  return batch.enqueue();
}

// Bytes of an element of this end; 0: it is no array. False: there is no such array or type.
bool elementOf(const CUmemcpy3DOperand& end, uint32_t& bytes) {
  bytes = 0;
  if (end.type == CU_MEMCPY_OPERAND_TYPE_POINTER) return true;
  if (end.type != CU_MEMCPY_OPERAND_TYPE_ARRAY) return false;
  const Ref<Array> array = HandleTable::find<Array>(end.op.array.array);
  if (!array) return false;
  bytes = array->elementBytes;
  return true;
}

struct BoxEnd {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  CUdeviceptr address = 0;
  CUarray array = nullptr;
  size_t x = 0, y = 0, z = 0, pitch = 0, height = 0;
};

bool boxEnd(const CUmemcpy3DOperand& end, const CUextent3D& extent, size_t element, BoxEnd& out) {
  if (end.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    const auto& a = end.op.array;
    out.type = CU_MEMORYTYPE_ARRAY;
    out.array = a.array;
    out.y = a.offset.y;
    out.z = a.offset.z;
    return !__builtin_mul_overflow(a.offset.x, element, &out.x);
  }
  const auto& p = end.op.ptr;
  if ((p.rowLength && p.rowLength < extent.width) || (p.layerHeight && p.layerHeight < extent.height)) return false;
  out.address = p.ptr;
  out.height = p.layerHeight;
  return !__builtin_mul_overflow(p.rowLength, element, &out.pitch);
}

CUresult planOperation(const CUDA_MEMCPY3D_BATCH_OP& op, const Context& context, CopyPlan& plan) {
  uint32_t from, to;
  const CUextent3D& n = op.extent;
  if (!elementOf(op.src, from) || !elementOf(op.dst, to) || (from && to && from != to)) return CUDA_ERROR_INVALID_VALUE;
  if (n.width == 0 || n.height == 0 || n.depth == 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t element = from ? from : to ? to : 1;
  BoxEnd source, target;
  CUDA_MEMCPY3D box{};
  // What would overflow is more than there can be.
  size_t bytes;
  if (__builtin_mul_overflow(n.width, element, &box.WidthInBytes) ||
      __builtin_mul_overflow(box.WidthInBytes, n.height, &bytes) || __builtin_mul_overflow(bytes, n.depth, &bytes) ||
      !boxEnd(op.src, n, element, source) || !boxEnd(op.dst, n, element, target))
    return CUDA_ERROR_INVALID_VALUE;
  box.Height = n.height;
  box.Depth = n.depth;
  box.srcMemoryType = source.type;
  box.srcDevice = source.address;
  box.srcArray = source.array;
  box.srcXInBytes = source.x;
  box.srcY = source.y;
  box.srcZ = source.z;
  box.srcPitch = source.pitch;
  box.srcHeight = source.height;
  box.dstMemoryType = target.type;
  box.dstDevice = target.address;
  box.dstArray = target.array;
  box.dstXInBytes = target.x;
  box.dstY = target.y;
  box.dstZ = target.z;
  box.dstPitch = target.pitch;
  box.dstHeight = target.height;
  return planBox(box, context, plan);
}

CUresult boxBatch(size_t numOps, const CUDA_MEMCPY3D_BATCH_OP* opList, size_t& failed, unsigned long long flags,
                  CUstream hStream) {
  failed = SIZE_MAX;
  Ref<Stream> stream;
  if (const CUresult e = batchStream(hStream, stream)) return e;
  if (numOps == 0 || !opList || flags) return CUDA_ERROR_INVALID_VALUE;
  Batch batch(*stream);
  for (size_t i = 0; i < numOps; i++) {
    const CUDA_MEMCPY3D_BATCH_OP& op = opList[i];
    failed = i;
    if (!validOrder(op.srcAccessOrder) || !validFlags(op.flags)) return CUDA_ERROR_INVALID_VALUE;
    CopyPlan& plan = batch.add(op.srcAccessOrder);
    if (const CUresult e = planOperation(op, *stream->context(), plan)) return e;
  }
  failed = SIZE_MAX;
  return batch.enqueue();
}

}  // namespace

DRIVER_API(cuMemcpyBatchAsync_v2)
(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attrs, size_t* attrsIdxs,
 size_t numAttrs, CUstream hStream) {
  size_t failed;
  return copyBatch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failed, hStream);
}

// The versions of CUDA 12.8 tell which copy was at fault.
DRIVER_API(cuMemcpyBatchAsync)
(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count, CUmemcpyAttributes* attrs, size_t* attrsIdxs,
 size_t numAttrs, size_t* failIdx, CUstream hStream) {
  size_t failed;
  const CUresult result = copyBatch(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failed, hStream);
  if (result && failIdx) *failIdx = failed;
  return result;
}

DRIVER_API(cuMemcpy3DBatchAsync_v2)
(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, unsigned long long flags, CUstream hStream) {
  size_t failed;
  return boxBatch(numOps, opList, failed, flags, hStream);
}

DRIVER_API(cuMemcpy3DBatchAsync)
(size_t numOps, CUDA_MEMCPY3D_BATCH_OP* opList, size_t* failIdx, unsigned long long flags, CUstream hStream) {
  size_t failed;
  const CUresult result = boxBatch(numOps, opList, failed, flags, hStream);
  if (result && failIdx) *failIdx = failed;
  return result;
}

}  // namespace sonde::softgpu::driver
