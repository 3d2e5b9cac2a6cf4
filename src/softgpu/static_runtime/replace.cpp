// SPDX-License-Identifier: Apache-2.0
//
// Before the executable or a shared object registers its code: each runtime function that its symbol table names
// becomes a jump to the function of that name in the software GPU's runtime. Nothing of the runtime inside runs then.
// This library is initialised before all others (-z initfirst), so that objects which the program was linked with
// are in time as well as those it loads later.
// SONDE_STATIC_RUNTIME=0 leaves it alone, =verbose tells what was done.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "softgpu/static_runtime/elf_symbols.h"
#include "softgpu/static_runtime/jump.h"
#include "softgpu/static_runtime/loaded_objects.h"

namespace sonde::static_runtime {

namespace {

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

// Which runtime a thread calls, for libcudart (sonde_cudart_marks): each that was linked into an object has a last
// error of its own. Written by the jumps, at a place that is the same in each thread.
__attribute__((tls_model("initial-exec"))) thread_local unsigned runtimeMark = 0;
unsigned* markOfThread() { return &runtimeMark; }
int32_t markOffset() {
  uint64_t threadPointer = 0;
  __asm__("mov %%fs:0, %0" : "=r"(threadPointer));
  return static_cast<int32_t>(reinterpret_cast<int64_t>(&runtimeMark) - static_cast<int64_t>(threadPointer));
}
unsigned runtimes = 0;

// Functions that neither have nor ask for an error leave the mark to the next.
bool concernsErrors(const std::string& name) {
  return name.compare(0, 2, "__") != 0
             ? name != "cudaGetErrorName" && name != "cudaGetErrorString" && name != "cudaCreateChannelDesc"
             : name == "__cudaLaunchKernel" || name == "__cudaLaunchKernel_ptsz" ||
                   name == "__cudaPopCallConfiguration" || name == "__cudaInitModule";
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

bool verbose() {
  const char* mode = std::getenv("SONDE_STATIC_RUNTIME");
  return mode && std::strcmp(mode, "verbose") == 0;
}

// Replaces the runtime inside one file of the process. False: there is none that can be seen.
bool replaceIn(const char* path, const Executable& program, uint64_t base) {
  std::set<std::string> names;
  for (const Function& f : program.functions) names.insert(f.name);
  if (!names.count("__cudaRegisterFatBinary")) return false;
  const char* wanted = runtimeFor(names);
  void* runtime = openBesideThis(wanted);
  if (!runtime) {
    if (!quiet()) std::fprintf(stderr, "sonde: %s of the software GPU was not found: %s\n", wanted, dlerror());
    return true;
  }
  unsigned mark = 0;
  if (void* newest = openBesideThis("libcudart.so.13"))
    if (void* marks = dlsym(newest, "sonde_cudart_marks")) {
      reinterpret_cast<void (*)(unsigned* (*)())>(marks)(&markOfThread);
      mark = ++runtimes;
    }
  unsigned replaced = 0, kept = 0;
  Island island(program.functions.empty() ? base : base + program.functions[0].address);
  for (const Function& f : program.functions) {
    void* target = dlvsym(runtime, f.name.c_str(), wanted);
    if (!target) continue;  // the program's own, or internal to the runtime
    if (!writeJump(base + f.address, f.bytes, target, island, concernsErrors(f.name) ? mark : 0, markOffset())) {
      ++kept;
      if (verbose()) std::fprintf(stderr, "sonde: %s could not be replaced\n", f.name.c_str());
      continue;
    }
    ++replaced;
  }
  if (verbose())
    std::fprintf(stderr, "sonde: static CUDA runtime in %s: %u functions replaced by those of %s, %u kept\n", path,
                 replaced, wanted, kept);
  return true;
}

void sayStripped(const char* what) {
  if (quiet()) return;
  std::fprintf(stderr,
               "sonde: %s has the CUDA runtime linked into it and is stripped of its symbol table, so the runtime "
               "cannot be replaced by the software GPU's; link it with nvcc -cudart shared, or keep the symbols (no "
               "-s, no strip)\n",
               what);
}

// The software GPU's own libraries lie beside this one.
bool isOurs(const char* path) {
  Dl_info self{};
  struct stat mine{}, theirs{};
  if (!dladdr(reinterpret_cast<void*>(&isOurs), &self) || !self.dli_fname) return false;
  const auto folder = [](const char* file) {
    const char* slash = std::strrchr(file, '/');
    return slash ? std::string(file, slash + 1) : std::string("./");
  };
  return stat(folder(self.dli_fname).c_str(), &mine) == 0 && stat(folder(path).c_str(), &theirs) == 0 &&
         mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

// A shared object may have a runtime of its own as well, or be one: found by its path and not by its name, or under
// another name, as wheels bring it.
void objectSeen(const char* path, uint64_t base) {
  if (isOurs(path)) return;
  const Executable object = readExecutable(path);
  // Libraries of the vendor's that are stripped do not run anyway; who asks is told of them.
  if (!replaceIn(path, object, base) && verbose() && object.registersCode && !object.hasSymbolTable &&
      !object.importsRuntime)
    sayStripped(path);
}

void replace() {
  const char* mode = std::getenv("SONDE_STATIC_RUNTIME");
  if (mode && std::strcmp(mode, "0") == 0) return;
  const Executable program = readExecutable("/proc/self/exe");
  if (!replaceIn("the executable", program, program.positionIndependent ? loadAddress() : 0)) {
    // No runtime inside; or one that cannot be seen. One that comes from a library would be bound by now or later.
    const bool shared = dlsym(RTLD_DEFAULT, "__cudaRegisterFatBinary") != nullptr;
    if (program.registersCode && !program.hasSymbolTable && !shared) sayStripped("this program");
  }
  watchLoadedObjects(&objectSeen);
}

// The C library has not been initialised either; until it is, it does not know the environment.
__attribute__((constructor)) void onLoad(int, char**, char** environment) {
  if (!environ) environ = environment;
  replace();
}

}  // namespace

}  // namespace sonde::static_runtime
