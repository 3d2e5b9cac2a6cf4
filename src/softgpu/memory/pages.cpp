// SPDX-License-Identifier: Apache-2.0
#include "softgpu/memory/pages.h"

#include <sys/mman.h>
#include <unistd.h>

namespace sonde::softgpu::memory {

bool mapAt(void* where, uint64_t bytes, int protection, int flags, int fd, uint64_t offset) {
  return mmap(where, bytes, protection, flags | MAP_FIXED, fd, static_cast<off_t>(offset)) != MAP_FAILED;
}

bool hide(void* where, uint64_t bytes) {
  return mapAt(where, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

bool mapPages(uint64_t address, uint64_t bytes, Kind kind, int* keep) {
  std::byte* device = AddressSpace::get().deviceView(address);
  if (!bothViews(kind))
    return mapAt(device, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  const int fd = memfd_create("sonde-host-memory", MFD_CLOEXEC);
  if (fd < 0) return false;
  auto* host = reinterpret_cast<void*>(address);
  bool ok = ftruncate(fd, static_cast<off_t>(bytes)) == 0 &&
            mapAt(host, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd);
  if (ok && !mapAt(device, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd)) {
    hide(host, bytes);
    ok = false;
  }
  if (ok && keep)
    *keep = fd;
  else
    close(fd);  // the mappings keep the pages
  return ok;
}

void unmapPages(uint64_t address, uint64_t bytes, Kind kind) {
  hide(AddressSpace::get().deviceView(address), bytes);
  if (bothViews(kind)) hide(reinterpret_cast<void*>(address), bytes);
}

}  // namespace sonde::softgpu::memory
