// SPDX-License-Identifier: Apache-2.0
#include "core/caller.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>

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

const CallerObject& ownObject() {
  static const CallerObject& own = *new CallerObject(findCaller(reinterpret_cast<const void*>(&visit)));
  return own;
}

#if defined(__x86_64__)
const unsigned char* relative(const unsigned char* after) {
  int32_t offset;
  std::memcpy(&offset, after - sizeof offset, sizeof offset);
  return after + offset;
}

// The function that a linkage stub jumps to; `code` itself when it is none.
const unsigned char* throughStub(const unsigned char* code) {
  const unsigned char* p = code;
  constexpr unsigned char kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};
  if (std::memcmp(p, kBranchTarget, sizeof kBranchTarget) == 0) p += sizeof kBranchTarget;
  if (*p == 0xf2) ++p;
  if (p[0] != 0xff || p[1] != 0x25) return code;
  const unsigned char* target;
  std::memcpy(&target, relative(p + 6), sizeof target);
  return target;
}
#endif

}  // namespace

const void* callingCode(const void* returnAddress) {
#if defined(__x86_64__)
  const auto* after = static_cast<const unsigned char*>(returnAddress);
  const unsigned char* called;
  if (after[-5] == 0xe8) {
    called = throughStub(relative(after));
  } else if (after[-6] == 0xff && after[-5] == 0x15) {
    std::memcpy(&called, relative(after), sizeof called);
  } else {
    return returnAddress;  // through a register: nothing to learn
  }
  const auto address = reinterpret_cast<uintptr_t>(called);
  const CallerObject& own = ownObject();
  if (address >= own.begin && address < own.end) return returnAddress;
  // The bytes may only have looked like a call.
  return findCaller(called).base != 0 ? called : returnAddress;
#else
  return returnAddress;
#endif
}

bool isSystemLibrary(const CallerObject& object) {
  std::string_view name = object.path;
  name.remove_prefix(std::min(name.find_last_of('/') + 1, name.size()));
  for (std::string_view system :
       {"libc.so", "ld-linux", "libpthread.so", "libstdc++.so", "libgcc_s.so", "libcuda.so", "libcudart.so"}) {
    if (name.substr(0, system.size()) == system) return true;
  }
  return false;
}

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
