// SPDX-License-Identifier: Apache-2.0
//
// Sharing device memory, events and memory pools with other processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/ipc.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/pool.h"
#include "softgpu/driver/sync.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {

using memory::Allocation;
using memory::Allocator;
using memory::Kind;

namespace {

struct Opened {
  uint64_t address = 0;
  uint32_t users = 0;
};
struct OpenedHandles {
  std::mutex mutex;
  std::map<std::pair<uint64_t, uint64_t>, Opened> byFile;  // (inode, offset)
};
OpenedHandles& openedHandles() {
  static OpenedHandles* all = new OpenedHandles();
  return *all;
}

// The handle of an allocation. Its pages move once: nothing may be using them.
CUresult shareMemory(Context& context, const Allocation& allocation, IpcKind kind, void* out) {
  settleDevice(allocation.device);
  memory::SharedPages pages;
  switch (Allocator::get().share(allocation.address, pages)) {
    case memory::AllocError::none: break;
    case memory::AllocError::outOfMemory: return CUDA_ERROR_OUT_OF_MEMORY;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  IpcHandle handle = describeFile(kind, pages.fd, allocation.device);
  handle.offset = pages.offset;
  handle.bytes = allocation.bytes;
  handle.id = allocation.pool;
  std::memset(out, 0, CU_IPC_HANDLE_SIZE);
  std::memcpy(out, &handle, sizeof handle);
  return context.error();
}

CUresult importMemory(Context& context, const IpcHandle& handle, uint64_t pool, uint64_t& address) {
  if (!Driver::get().device(static_cast<int>(handle.device))) return CUDA_ERROR_INVALID_DEVICE;
  const int fd = openFile(handle);
  if (fd < 0) {
    say("an IPC handle of process " + std::to_string(handle.process) +
        " cannot be opened: that process has ended or freed the memory, or belongs to another user");
    return CUDA_ERROR_MAP_FAILED;
  }
  Allocation request;
  request.bytes = handle.bytes;
  request.device = handle.device;
  request.contextUid = context.uid();
  request.contextHandle = reinterpret_cast<uint64_t>(context.handle());
  request.pool = pool;
  const auto error = Allocator::get().importPages(fd, handle.offset, request);
  close(fd);  // the mapping keeps the pages
  if (error == memory::AllocError::invalidValue) return CUDA_ERROR_INVALID_VALUE;
  if (error != memory::AllocError::none) return CUDA_ERROR_MAP_FAILED;
  address = request.address;
  return CUDA_SUCCESS;
}

// Does the address still hold what was imported there?
bool stillImported(uint64_t address) {
  const auto found = Allocator::get().find(address);
  return found && found->address == address && found->kind == Kind::imported;
}

}  // namespace

DRIVER_API(cuIpcGetMemHandle)(CUipcMemHandle* pHandle, CUdeviceptr dptr) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pHandle) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult e = refuseWhileCapturing(*context)) return e;
  const auto found = Allocator::get().find(dptr);
  // Memory of pools has handles of its own.
  if (!found || found->kind != Kind::device || found->pool || found->releasing) return CUDA_ERROR_INVALID_VALUE;
  return shareMemory(*context, *found, IpcKind::memory, pHandle);
}

DRIVER_API(cuIpcOpenMemHandle_v2)(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  IpcHandle what;
  std::memcpy(&what, &handle, sizeof what);
  if (!recognised(what, IpcKind::memory)) return CUDA_ERROR_INVALID_VALUE;
  // The process that has the memory uses it as it is.
  if (what.process == static_cast<uint32_t>(getpid())) return CUDA_ERROR_INVALID_CONTEXT;
  OpenedHandles& all = openedHandles();
  std::lock_guard lock(all.mutex);
  Opened& opened = all.byFile[{what.inode, what.offset}];
  if (opened.users == 0 || !stillImported(opened.address)) {
    opened = {};
    if (const CUresult e = importMemory(*context, what, 0, opened.address)) {
      all.byFile.erase({what.inode, what.offset});
      return e;
    }
  }
  opened.users++;
  *pdptr = opened.address;
  return CUDA_SUCCESS;
}

DRIVER_API(cuIpcOpenMemHandle)(CUdeviceptr* pdptr, CUipcMemHandle handle, unsigned int Flags) {
  return cuIpcOpenMemHandle_v2_impl(pdptr, handle, Flags);
}

DRIVER_API(cuIpcCloseMemHandle)(CUdeviceptr dptr) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  OpenedHandles& all = openedHandles();
  std::lock_guard lock(all.mutex);
  for (auto it = all.byFile.begin(); it != all.byFile.end(); ++it) {
    if (it->second.address != dptr || !stillImported(dptr)) continue;
    if (--it->second.users) return CUDA_SUCCESS;
    for (auto& each : Driver::get().contexts()) each->synchronize();  // work of any context may use it
    Allocator::get().release(dptr);
    all.byFile.erase(it);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// ------------------------------------------------------------------ events --

DRIVER_API(cuIpcGetEventHandle)(CUipcEventHandle* pHandle, CUevent event) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pHandle) return CUDA_ERROR_INVALID_VALUE;
  const Ref<Event> found = HandleTable::find<Event>(event);
  if (!found || !found->shared) return CUDA_ERROR_INVALID_HANDLE;
  IpcHandle handle = describeFile(IpcKind::event, found->shared->descriptor(), found->context()->device()->ordinal);
  std::memset(pHandle, 0, sizeof *pHandle);
  std::memcpy(pHandle, &handle, sizeof handle);
  return CUDA_SUCCESS;
}

DRIVER_API(cuIpcOpenEventHandle)(CUevent* phEvent, CUipcEventHandle handle) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!phEvent) return CUDA_ERROR_INVALID_VALUE;
  IpcHandle what;
  std::memcpy(&what, &handle, sizeof what);
  if (!recognised(what, IpcKind::event)) return CUDA_ERROR_INVALID_VALUE;
  if (what.process == static_cast<uint32_t>(getpid())) return CUDA_ERROR_INVALID_CONTEXT;
  auto event = make<Event>(context.get(), CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
  event->shared = SharedEvent::open(what);
  if (!event->shared) return CUDA_ERROR_MAP_FAILED;
  if (!HandleTable::publish(event.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  {
    std::lock_guard lock(context->objects);
    context->owned.insert(event.get());
  }
  *phEvent = static_cast<CUevent>(event->handle());
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------- pools --

DRIVER_API(cuMemPoolExportToShareableHandle)
(void* handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType, unsigned long long flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<Pool> found = HandleTable::find<Pool>(pool);
  if (!found || !handle_out || flags || found->importedFrom) return CUDA_ERROR_INVALID_VALUE;
  if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !found->shareable) return CUDA_ERROR_INVALID_VALUE;
  const int fd = memfd_create("sonde-memory-pool", MFD_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  IpcHandle handle = describeFile(IpcKind::pool, -1, found->device()->ordinal);
  handle.id = reinterpret_cast<uint64_t>(found->handle());
  if (pwrite(fd, &handle, sizeof handle, 0) != static_cast<ssize_t>(sizeof handle)) {
    close(fd);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *static_cast<int*>(handle_out) = fd;
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolImportFromShareableHandle)
(CUmemoryPool* pool_out, void* handle, CUmemAllocationHandleType handleType, unsigned long long flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  IpcHandle what{};
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  if (pread(fd, &what, sizeof what, 0) != static_cast<ssize_t>(sizeof what) || !recognised(what, IpcKind::pool))
    return CUDA_ERROR_INVALID_VALUE;
  Device* device = Driver::get().device(static_cast<int>(what.device));
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  auto pool = make<Pool>(device, false);
  pool->importedFrom = what.process;
  pool->importedId = what.id;
  if (!HandleTable::publish(pool.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *pool_out = static_cast<CUmemoryPool>(pool->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuMemPoolExportPointer)(CUmemPoolPtrExportData* shareData_out, CUdeviceptr ptr) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  static_assert(sizeof(CUmemPoolPtrExportData) == CU_IPC_HANDLE_SIZE);
  const auto found = Allocator::get().find(ptr);
  if (!shareData_out || !found || found->kind != Kind::device || found->releasing) return CUDA_ERROR_INVALID_VALUE;
  const Ref<Pool> pool = HandleTable::find<Pool>(reinterpret_cast<void*>(found->pool));
  if (!pool || !pool->shareable) return CUDA_ERROR_INVALID_VALUE;
  return shareMemory(*context, *found, IpcKind::poolMemory, shareData_out);
}

DRIVER_API(cuMemPoolImportPointer)
(CUdeviceptr* ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData* shareData) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  const Ref<Pool> found = HandleTable::find<Pool>(pool);
  if (!ptr_out || !shareData || !found || !found->importedFrom) return CUDA_ERROR_INVALID_VALUE;
  IpcHandle what;
  std::memcpy(&what, shareData, sizeof what);
  if (!recognised(what, IpcKind::poolMemory) || what.process != found->importedFrom || what.id != found->importedId)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t address = 0;
  if (const CUresult e = importMemory(*context, what, reinterpret_cast<uint64_t>(found->handle()), address)) return e;
  found->used.fetch_add(what.bytes);
  *ptr_out = address;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
