// SPDX-License-Identifier: Apache-2.0
#include "core/caller.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

namespace sonde::core {
namespace {

struct Search {
  uintptr_t address;
  CallerObject found;
};

int visit(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  uintptr_t low = UINTPTR_MAX, high = 0;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    const uintptr_t end = begin + header.p_memsz;
    low = std::min(low, begin);
    high = std::max(high, end);
    inside = inside || (search.address >= begin && search.address < end);
  }
  if (!inside) return 0;
  search.found = {low, low, high, info->dlpi_name != nullptr ? info->dlpi_name : ""};
  return 1;
}

}  // namespace

CallerObject findCaller(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(visit, &search);
  return search.found;
}

void pinCaller(const CallerObject& object) {
  if (object.path.empty()) return;
  // The handle is kept on purpose.
  dlopen(object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace sonde::core
