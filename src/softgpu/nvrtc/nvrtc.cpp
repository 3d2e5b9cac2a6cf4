// SPDX-License-Identifier: Apache-2.0
//
// libnvrtc.so.13 for the software GPU: the vendor's NVRTC does the compiling,
// this asks it for PTX where a program asks for machine code. A real
// architecture (sm_90) becomes the virtual one of the same number
// (compute_90), and nvrtcGetCUBIN gives the PTX, which every function that
// loads a module takes. A program finds it before the vendor's library because
// the software GPU's directory comes first on its search path; SONDE_NVRTC
// names the vendor's library where it is not on that path.
#include <dlfcn.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Result = int;           // nvrtcResult
using Program = struct Tag*;  // nvrtcProgram
constexpr Result kSuccess = 0;
constexpr Result kInvalidInput = 3;
constexpr Result kInternalError = 11;

bool sameFile(const char* a, const char* b) {
  struct stat x{}, y{};
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

// Whether `path` is a library other than this one.
bool candidate(const std::string& path) {
  Dl_info self{};
  struct stat there{};
  if (stat(path.c_str(), &there) != 0) return false;
  return !dladdr(reinterpret_cast<void*>(&candidate), &self) || !sameFile(path.c_str(), self.dli_fname);
}

void* openVendorLibrary() {
  std::vector<std::string> places;
  if (const char* named = std::getenv("SONDE_NVRTC")) {
    places.emplace_back(named);
  } else {
    const char* path = std::getenv("LD_LIBRARY_PATH");
    std::string directories = path ? path : "";
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
      if (const char* root = std::getenv(variable)) directories += std::string(":") + root + "/lib64";
    directories += ":/usr/local/cuda/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib64";
    for (size_t at = 0; at <= directories.size();) {
      const size_t end = std::min(directories.find(':', at), directories.size());
      if (end > at) places.push_back(directories.substr(at, end - at) + "/libnvrtc.so.13");
      at = end + 1;
    }
  }
  for (const std::string& place : places)
    if (candidate(place))
      if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  std::fputs(
      "sonde: the vendor's libnvrtc.so.13 was not found; name it in SONDE_NVRTC, or compile the kernels "
      "beforehand (sondecc -ptx)\n",
      stderr);
  return nullptr;
}

void* vendorSymbol(const char* name) {
  static void* const library = openVendorLibrary();
  return library ? dlsym(library, name) : nullptr;
}

// "sm_90", "sm_90a" -> "compute_90", "compute_90a"; anything else as it is.
std::string virtualArchitecture(const std::string& name) {
  return name.compare(0, 3, "sm_") == 0 ? "compute_" + name.substr(3) : name;
}

std::string rewriteOption(const std::string& option, bool& nextIsArchitecture) {
  if (nextIsArchitecture) {
    nextIsArchitecture = false;
    return virtualArchitecture(option);
  }
  for (const char* form : {"--gpu-architecture", "-arch", "--gpu-arch"}) {
    const size_t length = std::strlen(form);
    if (option.compare(0, length, form) != 0) continue;
    if (option.size() == length) {
      nextIsArchitecture = true;
      return option;
    }
    if (option[length] == '=') return option.substr(0, length + 1) + virtualArchitecture(option.substr(length + 1));
  }
  return option;
}

template <class F, class... Args>
Result forward(const char* name, Args... args) {
  auto* f = reinterpret_cast<F*>(vendorSymbol(name));
  return f ? f(args...) : kInternalError;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
#define FORWARD(name, parameters, ...) \
  EXPORT Result name parameters { return forward<Result parameters>(#name, __VA_ARGS__); }

FORWARD(nvrtcVersion, (int* major, int* minor), major, minor)
FORWARD(nvrtcGetNumSupportedArchs, (int* count), count)
FORWARD(nvrtcGetSupportedArchs, (int* archs), archs)
FORWARD(nvrtcCreateProgram,
        (Program * program, const char* source, const char* name, int count, const char* const* headers,
         const char* const* includeNames),
        program, source, name, count, headers, includeNames)
FORWARD(nvrtcDestroyProgram, (Program * program), program)
FORWARD(nvrtcGetPTXSize, (Program program, size_t* size), program, size)
FORWARD(nvrtcGetPTX, (Program program, char* ptx), program, ptx)
FORWARD(nvrtcGetLTOIRSize, (Program program, size_t* size), program, size)
FORWARD(nvrtcGetLTOIR, (Program program, char* code), program, code)
FORWARD(nvrtcGetOptiXIRSize, (Program program, size_t* size), program, size)
FORWARD(nvrtcGetOptiXIR, (Program program, char* code), program, code)
FORWARD(nvrtcGetProgramLogSize, (Program program, size_t* size), program, size)
FORWARD(nvrtcGetProgramLog, (Program program, char* log), program, log)
FORWARD(nvrtcAddNameExpression, (Program program, const char* expression), program, expression)
FORWARD(nvrtcGetLoweredName, (Program program, const char* expression, const char** lowered), program, expression,
        lowered)
FORWARD(nvrtcSetFlowCallback, (Program program, int (*callback)(void*, void*), void* payload), program, callback,
        payload)
FORWARD(nvrtcGetPCHHeapSize, (size_t* size), size)
FORWARD(nvrtcSetPCHHeapSize, (size_t size), size)
FORWARD(nvrtcGetPCHCreateStatus, (Program program), program)
FORWARD(nvrtcGetPCHHeapSizeRequired, (Program program, size_t* size), program, size)

// What a program takes for machine code is the PTX.
EXPORT Result nvrtcGetCUBINSize(Program program, size_t* size) {
  return forward<Result(Program, size_t*)>("nvrtcGetPTXSize", program, size);
}
EXPORT Result nvrtcGetCUBIN(Program program, char* code) {
  return forward<Result(Program, char*)>("nvrtcGetPTX", program, code);
}

EXPORT Result nvrtcCompileProgram(Program program, int count, const char* const* options) {
  if (count < 0 || (count > 0 && !options)) return kInvalidInput;
  std::vector<std::string> texts;
  bool nextIsArchitecture = false;
  for (int i = 0; i < count; ++i) {
    if (!options[i]) return kInvalidInput;
    texts.push_back(rewriteOption(options[i], nextIsArchitecture));
  }
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return forward<Result(Program, int, const char* const*)>("nvrtcCompileProgram", program, count, pointers.data());
}

EXPORT const char* nvrtcGetErrorString(Result result) {
  auto* f = reinterpret_cast<const char* (*)(Result)>(vendorSymbol("nvrtcGetErrorString"));
  if (f) return f(result);
  return result == kSuccess ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}
