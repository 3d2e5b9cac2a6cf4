// SPDX-License-Identifier: Apache-2.0
//
// Which functions of the process get which hook.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "platform/nvidia/calls.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/patch.h"
#include "platform/nvidia/under_way.h"

namespace sonde::platform::nvidia {
namespace {

struct Hooked {
  std::mutex mutex;
  std::vector<std::unique_ptr<Patch>> driver, runtime;
  // Prepared trampolines stay good: a second life of the platform uses them again.
  std::vector<RuntimeRange> ranges;
  void* driverHandle = nullptr;
  bool runtimeArmed = false;
};
Hooked& hooked() {
  static Hooked& state = *new Hooked;
  return state;
}
std::atomic<unsigned long long> lastLoaded{~0ull};

bool isEssential(const char* symbol) {
  for (const char* name : {"cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuCtxCreate_v2",
                           "cuStreamCreate", "cuModuleUnload"})
    if (std::strcmp(name, symbol) == 0) return true;
  return false;
}

std::vector<Patch*> pointers(const std::vector<std::unique_ptr<Patch>>& patches) {
  std::vector<Patch*> result;
  for (const auto& p : patches) result.push_back(p.get());
  return result;
}

// Prepares hooks on those functions of `rows` that `find` knows.
template <class Find>
bool prepare(std::span<const HookRow> rows, void** originals, uint32_t newest, Find&& find,
             std::vector<std::unique_ptr<Patch>>& patches, std::string* why) {
  std::unordered_map<void*, const char*> taken;  // two names of one function get one hook
  for (const HookRow& row : rows) {
    if (row.since > newest) continue;
    void* function = find(row.symbol);
    if (function == nullptr) continue;
    if (const auto [at, fresh] = taken.emplace(function, row.symbol); !fresh) {
      debug("%s and %s are one function; it is reported as the first", at->second, row.symbol);
      continue;
    }
    std::string reason;
    auto patch = Patch::prepare(function, row.hook, &reason);
    if (!patch) {
      if (isEssential(row.symbol)) {
        *why = std::string("the driver's ") + row.symbol + " cannot be hooked: " + reason;
        return false;
      }
      debug("%s is not hooked: %s", row.symbol, reason.c_str());
      continue;
    }
    originals[row.cbid] = patch->original();
    patches.push_back(std::move(patch));
  }
  return true;
}

// ------------------------------------------------------------ the runtime --

struct Found {
  unsigned long long loads = 0;
  std::string sharedName;
};

int lookAt(dl_phdr_info* info, size_t, void* data) {
  auto& found = *static_cast<Found*>(data);
  found.loads = info->dlpi_adds;
  const char* name = info->dlpi_name != nullptr ? std::strrchr(info->dlpi_name, '/') : nullptr;
  name = name != nullptr ? name + 1 : info->dlpi_name;
  if (name != nullptr && std::strncmp(name, "libcudart.so", 12) == 0 && found.sharedName.empty())
    found.sharedName = info->dlpi_name;
  return 0;
}

struct Function {
  void* address;
  size_t size;
};

// The functions of the executable's symbol table, by name.
std::unordered_map<std::string, Function> executableFunctions() {
  std::unordered_map<std::string, Function> result;
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return result;
  struct stat status;
  void* map = MAP_FAILED;
  if (fstat(fd, &status) == 0 && status.st_size > static_cast<off_t>(sizeof(Elf64_Ehdr)))
    map = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return result;
  const auto* bytes = static_cast<const uint8_t*>(map);
  const auto size = static_cast<size_t>(status.st_size);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(bytes);
  // The executable is the first object of the list.
  uintptr_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uintptr_t*>(data) = info->dlpi_addr;
        return 1;
      },
      &base);
  if (header->e_shoff != 0 && header->e_shoff + size_t{header->e_shnum} * sizeof(Elf64_Shdr) <= size) {
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; ++i) {
      const Elf64_Shdr& s = sections[i];
      if (s.sh_type != SHT_SYMTAB || s.sh_link >= header->e_shnum || s.sh_offset + s.sh_size > size) continue;
      const Elf64_Shdr& strings = sections[s.sh_link];
      if (strings.sh_offset + strings.sh_size > size || strings.sh_size == 0) continue;
      const auto* names = reinterpret_cast<const char*>(bytes + strings.sh_offset);
      const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes + s.sh_offset);
      for (size_t k = 0; k < s.sh_size / sizeof(Elf64_Sym); ++k) {
        const Elf64_Sym& symbol = symbols[k];
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            symbol.st_name >= strings.sh_size || std::strncmp(names + symbol.st_name, "cuda", 4) != 0)
          continue;
        result.emplace(names + symbol.st_name,
                       Function{reinterpret_cast<void*>(base + symbol.st_value), symbol.st_size});
      }
    }
  }
  munmap(map, size);
  return result;
}

// Callback ids newer than the library describe functions with other parameters.
template <class Find>
uint32_t runtimeVersion(Find&& find) {
  int version = 0;
  auto* get = reinterpret_cast<int (*)(int*)>(find("cudaRuntimeGetVersion"));
  if (get == nullptr || get(&version) != 0 || version < 11000) return 0;
  return static_cast<uint32_t>(version) / 1000 >= 13 ? 999999u : static_cast<uint32_t>(version);
}

}  // namespace

bool hookDriver(void* handle, std::string* why) {
  Hooked& state = hooked();
  std::lock_guard lock(state.mutex);
  if (state.driverHandle != handle) {
    state.driver.clear();
    if (!prepare(
            driverRows(), driverOriginal, ~0u, [handle](const char* s) { return dlsym(handle, s); }, state.driver, why))
      return false;
    state.driverHandle = handle;
  }
  const char* missing = "";
  if (!resolveOwnCalls(handle, &missing)) {
    *why = std::string("the driver has no ") + missing + ": it is too old to be profiled";
    return false;
  }
  const auto patches = pointers(state.driver);
  return Patch::armAll(patches, why);
}

void hookRuntimes() {
  Found found;
  dl_iterate_phdr(lookAt, &found);
  if (lastLoaded.exchange(found.loads) == found.loads) return;
  Hooked& state = hooked();
  std::lock_guard lock(state.mutex);
  if (state.runtimeArmed) return;
  std::string why;
  auto note = [&state](const HookRow& row, const Function& function) {
    const auto begin = reinterpret_cast<uintptr_t>(function.address);
    if (runtimeOriginal[row.cbid] != nullptr)
      state.ranges.push_back({begin, begin + function.size, row.cbid, row.symbol});
  };
  if (state.runtime.empty()) {
    if (void* library =
            found.sharedName.empty() ? nullptr : dlopen(found.sharedName.c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
      auto find = [library](const char* symbol) { return dlsym(library, symbol); };
      if (const uint32_t version = runtimeVersion(find))
        prepare(runtimeRows(), runtimeOriginal, version, find, state.runtime, &why);
      for (const HookRow& row : runtimeRows()) {
        Dl_info info{};
        ElfW(Sym)* symbol = nullptr;
        void* address = find(row.symbol);
        if (address != nullptr && dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) != 0 &&
            symbol != nullptr)
          note(row, {address, symbol->st_size});
      }
    } else {
      const auto functions = executableFunctions();
      auto find = [&functions](const std::string& symbol) {
        const auto at = functions.find(symbol);
        return at == functions.end() ? nullptr : at->second.address;
      };
      if (const uint32_t version = runtimeVersion(find))
        prepare(runtimeRows(), runtimeOriginal, version, find, state.runtime, &why);
      for (const HookRow& row : runtimeRows())
        if (const auto at = functions.find(row.symbol); at != functions.end()) note(row, at->second);
    }
  }
  if (state.runtime.empty()) {
    debug("no CUDA runtime found (none loaded, and none in the executable's symbol table): driver calls only");
    return;
  }
  const auto patches = pointers(state.runtime);
  if (Patch::armAll(patches, &why)) {
    state.runtimeArmed = true;
    findUnderWay(state.ranges);
  } else {
    debug("the CUDA runtime cannot be hooked: %s", why.c_str());
    lastLoaded.store(~0ull);  // try again
  }
}

void unhook() {
  Hooked& state = hooked();
  std::lock_guard lock(state.mutex);
  std::string why;
  // Calls that name a node of a traced graph need their translation still.
  std::vector<void*> stay;
  if (tracedGraphsExist())
    for (const uint32_t cbid : tracedGraphCallbacks()) stay.push_back(driverOriginal[cbid]);
  for (auto* list : {&state.driver, &state.runtime})
    for (auto& patch : *list) {
      if (std::find(stay.begin(), stay.end(), patch->original()) != stay.end()) continue;
      if (!patch->disarm(&why)) debug("a hook stays: %s", why.c_str());
    }
  state.runtimeArmed = false;
  forgetUnderWay();
  lastLoaded.store(~0ull);
}

}  // namespace sonde::platform::nvidia
