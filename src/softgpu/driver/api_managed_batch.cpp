// SPDX-License-Identifier: Apache-2.0
//
// Many prefetches and discards of managed memory in one call.
#include "softgpu/driver/batch.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/message.h"

namespace sonde::softgpu::driver {
namespace {

// All devices must be able to fault, not only those that take part.
bool allConcurrent() {
  for (Device* device : Driver::get().devices())
    if (!device->model.concurrentManaged) {
      say("batches of prefetches and discards need concurrent managed access on every device; device " +
          std::to_string(device->ordinal) + " has none");
      return false;
    }
  return true;
}

// Null locations: discards alone. What is discarded may be read as anything until it is written: it stays as it is.
CUresult managedBatch(const CUdeviceptr* dptrs, const size_t* sizes, size_t count, const CUmemLocation* locations,
                      const size_t* indices, size_t numLocations, unsigned long long flags, CUstream hStream) {
  Ref<Stream> stream;
  if (const CUresult e = batchStream(hStream, stream)) return e;
  if (!dptrs || !sizes || count == 0 || flags) return CUDA_ERROR_INVALID_VALUE;
  if (!allConcurrent()) return CUDA_ERROR_INVALID_DEVICE;
  std::vector<PrefetchPlan> plans(count);
  size_t entry = 0;
  for (size_t i = 0; i < count; i++) {
    const CUmemLocation* location = locations ? &locations[entryOf(indices, numLocations, i, entry)] : nullptr;
    if (const CUresult e = managed::planPrefetch(dptrs[i], sizes[i], location, *stream->context(), plans[i])) return e;
  }
  if (const CUresult e = refuseCapturing(*stream)) return e;
  for (const PrefetchPlan& plan : plans) {
    Command* command = stream->newCommand(locations ? CommandKind::prefetch : CommandKind::marker);
    command->prefetch = plan;
    submit(*stream, command);
    if (!locations) break;  // one marker keeps the place of all
  }
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuMemPrefetchBatchAsync)
(CUdeviceptr* dptrs, size_t* sizes, size_t count, CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
 size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
  if (!prefetchLocs || !validIndices(prefetchLocIdxs, numPrefetchLocs, count)) return CUDA_ERROR_INVALID_VALUE;
  return managedBatch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

DRIVER_API(cuMemDiscardBatchAsync)
(CUdeviceptr* dptrs, size_t* sizes, size_t count, unsigned long long flags, CUstream hStream) {
  return managedBatch(dptrs, sizes, count, nullptr, nullptr, 0, flags, hStream);
}

DRIVER_API(cuMemDiscardAndPrefetchBatchAsync)
(CUdeviceptr* dptrs, size_t* sizes, size_t count, CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
 size_t numPrefetchLocs, unsigned long long flags, CUstream hStream) {
  if (!prefetchLocs || !validIndices(prefetchLocIdxs, numPrefetchLocs, count)) return CUDA_ERROR_INVALID_VALUE;
  return managedBatch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream);
}

}  // namespace sonde::softgpu::driver
