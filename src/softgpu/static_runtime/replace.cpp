// SPDX-License-Identifier: Apache-2.0
//
// Before the executable registers its code: each runtime function that its
// symbol table names becomes a jump to the function of that name in the
// software GPU's runtime. Nothing of the runtime in the executable runs then.
// SONDE_STATIC_RUNTIME=0 leaves it alone, =verbose tells what was done.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "softgpu/static_runtime/elf_symbols.h"

namespace sonde::static_runtime {

namespace {

constexpr size_t kJumpBytes = 14;      // jmp *0(%rip); .quad target
constexpr size_t kShortJumpBytes = 5;  // jmp to such a jump within 2 GiB
constexpr size_t kIslandBytes = 16384;

bool quiet() {
  const char* v = std::getenv("SONDE_QUIET");
  return v && *v && *v != '0';
}

// Where the executable was loaded.
uint64_t loadAddress() {
  uint64_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_addr;
        return 1;  // the first is the executable
      },
      &base);
  return base;
}

// The release whose runtime is in the executable, by what each one alone has.
const char* runtimeFor(const std::set<std::string>& names) {
  if (names.count("cudaBindTexture")) return "libcudart.so.11.0";
  if (names.count("cudaGetDeviceProperties_v2") || names.count("cudaThreadSynchronize")) return "libcudart.so.12";
  return "libcudart.so.13";
}

void* openBesideThis(const char* name) {
  Dl_info self{};
  std::string path = name;
  if (dladdr(reinterpret_cast<void*>(&openBesideThis), &self) && self.dli_fname)
    if (const char* slash = std::strrchr(self.dli_fname, '/')) path = std::string(self.dli_fname, slash + 1) + name;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void encodeJump(unsigned char* to, const void* target) {
  const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(to, jump, sizeof jump);
  std::memcpy(to + sizeof jump, &target, sizeof target);
}

// Jumps for functions that are too small to hold one: a page near the executable.
class Island {
 public:
  explicit Island(uint64_t base) {
    for (uint64_t distance = 16u << 20; distance < (1ull << 30) && !next_; distance += 16u << 20) {
      auto* hint = reinterpret_cast<void*>((base & ~uint64_t{0xfff}) + distance);
      void* p = mmap(hint, kIslandBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (p == MAP_FAILED) continue;
      if (p == hint) {
        first_ = next_ = static_cast<unsigned char*>(p);
      } else {
        munmap(p, kIslandBytes);
      }
    }
  }
  ~Island() {
    if (first_) mprotect(first_, kIslandBytes, PROT_READ | PROT_EXEC);
  }
  Island(const Island&) = delete;
  Island& operator=(const Island&) = delete;
  // Null: no room.
  const unsigned char* add(const void* target) {
    if (!next_ || next_ + 16 > first_ + kIslandBytes) return nullptr;
    encodeJump(next_, target);
    next_ += 16;
    return next_ - 16;
  }

 private:
  unsigned char* first_ = nullptr;
  unsigned char* next_ = nullptr;
};

bool writeJump(uint64_t at, uint64_t room, const void* target, Island& island) {
  unsigned char jump[kJumpBytes];
  size_t bytes = kJumpBytes;
  if (room >= kJumpBytes) {
    encodeJump(jump, target);
  } else if (room >= kShortJumpBytes) {
    const unsigned char* step = island.add(target);
    if (!step) return false;
    const auto distance = static_cast<int32_t>(reinterpret_cast<uint64_t>(step) - (at + kShortJumpBytes));
    jump[0] = 0xe9;
    std::memcpy(jump + 1, &distance, sizeof distance);
    bytes = kShortJumpBytes;
  } else {
    return false;
  }
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = at & ~(page - 1), end = (at + bytes + page - 1) & ~(page - 1);
  auto* pages = reinterpret_cast<void*>(first);
  if (mprotect(pages, end - first, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  std::memcpy(reinterpret_cast<void*>(at), jump, bytes);
  mprotect(pages, end - first, PROT_READ | PROT_EXEC);
  return true;
}

void replace() {
  const char* mode = std::getenv("SONDE_STATIC_RUNTIME");
  if (mode && std::strcmp(mode, "0") == 0) return;
  const bool verbose = mode && std::strcmp(mode, "verbose") == 0;
  const Executable program = readExecutable("/proc/self/exe");
  std::set<std::string> names;
  for (const Function& f : program.functions) names.insert(f.name);
  if (!names.count("__cudaRegisterFatBinary")) {
    // No runtime inside; or one that cannot be seen. One that comes from a library would be bound by now or later.
    const bool shared = dlsym(RTLD_DEFAULT, "__cudaRegisterFatBinary") != nullptr;
    if (program.registersCode && !program.hasSymbolTable && !shared && !quiet())
      std::fputs(
          "sonde: this program has the CUDA runtime linked into it and is stripped of its symbol table, so the runtime "
          "cannot be replaced by the software GPU's; link it with nvcc -cudart shared, or keep the symbols (no -s, "
          "no strip)\n",
          stderr);
    return;
  }
  const char* wanted = runtimeFor(names);
  void* runtime = openBesideThis(wanted);
  if (!runtime) {
    if (!quiet()) std::fprintf(stderr, "sonde: %s of the software GPU was not found: %s\n", wanted, dlerror());
    return;
  }
  const uint64_t base = program.positionIndependent ? loadAddress() : 0;
  unsigned replaced = 0, kept = 0;
  Island island(program.functions.empty() ? base : base + program.functions[0].address);
  for (const Function& f : program.functions) {
    void* target = dlvsym(runtime, f.name.c_str(), wanted);
    if (!target) continue;  // the program's own, or internal to the runtime
    if (!writeJump(base + f.address, f.bytes, target, island)) {
      ++kept;
      if (verbose) std::fprintf(stderr, "sonde: %s could not be replaced\n", f.name.c_str());
      continue;
    }
    ++replaced;
  }
  if (verbose)
    std::fprintf(stderr, "sonde: static CUDA runtime: %u functions replaced by those of %s, %u kept\n", replaced,
                 wanted, kept);
}

__attribute__((constructor)) void onLoad() { replace(); }

}  // namespace

}  // namespace sonde::static_runtime
