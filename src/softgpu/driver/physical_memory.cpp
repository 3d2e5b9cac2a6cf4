// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/physical_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>

#include "softgpu/driver/message.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {
namespace {

// The file's name says whose memory it is: the device's number follows.
constexpr char kName[] = "sonde-device-memory-";

using FileId = std::pair<dev_t, ino_t>;
struct Files {
  std::mutex mutex;
  std::map<FileId, PhysicalMemory*> byId;
};
Files& files() {
  static Files* f = new Files();
  return *f;
}

bool fileId(int descriptor, FileId& id, uint64_t* bytes) {
  struct stat s;
  if (fstat(descriptor, &s) != 0) return false;
  id = {s.st_dev, s.st_ino};
  if (bytes) *bytes = static_cast<uint64_t>(s.st_size);
  return true;
}

// The device of a memory file; -1: it is none.
int deviceOf(int descriptor) {
  char link[64] = {};
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  if (readlink(path.c_str(), link, sizeof link - 1) < 0) return -1;
  const std::string text(link), prefix = std::string("/memfd:") + kName;
  if (text.rfind(prefix, 0) != 0) return -1;
  const size_t end = text.find_first_not_of("0123456789", prefix.size());
  return end == prefix.size() ? -1 : std::atoi(text.c_str() + prefix.size());
}

}  // namespace

PhysicalMemory::PhysicalMemory(int fd, uint64_t size, const CUmemAllocationProp& props, bool imported)
    : Object(kType), descriptor(fd), bytes(size), properties(props), imported_(imported) {
  FileId id;
  if (!fileId(fd, id, nullptr)) return;
  std::lock_guard lock(files().mutex);
  files().byId[id] = this;
}

PhysicalMemory::~PhysicalMemory() {
  {
    FileId id;
    std::lock_guard lock(files().mutex);
    if (fileId(descriptor, id, nullptr))
      if (auto it = files().byId.find(id); it != files().byId.end() && it->second == this) files().byId.erase(it);
  }
  close(descriptor);
  if (!imported_) memory::Allocator::get().refund(static_cast<uint32_t>(properties.location.id), bytes);
}

Ref<PhysicalMemory> PhysicalMemory::create(uint64_t bytes, const CUmemAllocationProp& properties) {
  const int fd = memfd_create((kName + std::to_string(properties.location.id)).c_str(), MFD_CLOEXEC);
  if (fd < 0) return {};
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    return {};
  }
  return Ref<PhysicalMemory>(new PhysicalMemory(fd, bytes, properties, false));
}

Ref<PhysicalMemory> PhysicalMemory::import(int fd) {
  FileId id;
  uint64_t bytes = 0;
  const int device = deviceOf(fd);
  if (device < 0 || !Driver::get().device(device) || !fileId(fd, id, &bytes)) return {};
  Ref<PhysicalMemory> known;
  {
    // Where this process has it under a handle it is the same memory. Otherwise (only mappings are left, or it is
    // just going away) another object for the same file does as well.
    std::lock_guard lock(files().mutex);
    if (const auto it = files().byId.find(id); it != files().byId.end())
      if ((known = HandleTable::find<PhysicalMemory>(it->second->handle())) && known.get() == it->second) return known;
  }
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return {};
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return Ref<PhysicalMemory>(new PhysicalMemory(own, bytes, properties, true));
}

int PhysicalMemory::share() const { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

CUresult PhysicalMemory::addHandle(CUmemGenericAllocationHandle* handle) {
  std::lock_guard lock(mutex_);
  if (handles_ == 0 && !HandleTable::publish(this)) return CUDA_ERROR_OUT_OF_MEMORY;
  handles_++;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(Object::handle());
  return CUDA_SUCCESS;
}

bool PhysicalMemory::dropHandle() {
  std::lock_guard lock(mutex_);
  if (handles_ == 0) return false;
  return --handles_ > 0 || HandleTable::retire(this);
}

CUresult findMemory(CUmemGenericAllocationHandle handle, Ref<PhysicalMemory>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<PhysicalMemory>(reinterpret_cast<void*>(handle));
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ------------------------------------------------------------ entry points --

DRIVER_API(cuMemExportToShareableHandle)
(void* shareableHandle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType handleType,
 unsigned long long flags) {
  Ref<PhysicalMemory> memory;
  if (const CUresult e = findMemory(handle, memory)) return e;
  if (!shareableHandle || flags) return CUDA_ERROR_INVALID_VALUE;
  if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    say("memory can be shared as a POSIX file descriptor only");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (!(memory->properties.requestedHandleTypes & handleType)) {
    say("this memory was made without the handle type in requestedHandleTypes: it cannot be shared");
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int fd = memory->share();
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareableHandle) = fd;
  return CUDA_SUCCESS;
}

// The descriptor is passed in the pointer's place, and stays the caller's.
DRIVER_API(cuMemImportFromShareableHandle)
(CUmemGenericAllocationHandle* handle, void* osHandle, CUmemAllocationHandleType shHandleType) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    say("memory can be shared as a POSIX file descriptor only");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(osHandle));
  const Ref<PhysicalMemory> memory = PhysicalMemory::import(fd);
  if (!memory) {
    say("descriptor " + std::to_string(fd) + " is not memory that cuMemExportToShareableHandle gave");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return memory->addHandle(handle);
}

}  // namespace sonde::softgpu::driver
