// SPDX-License-Identifier: Apache-2.0
//
// libnvrtc for the software GPU: the vendor's NVRTC does the compiling,
// this asks it for PTX where a program asks for machine code. A real
// architecture (sm_90) becomes the virtual one of the same number
// (compute_90), and nvrtcGetCUBIN gives the PTX, which every function that
// loads a module takes. A program finds it before the vendor's library because
// the software GPU's directory comes first on its search path; SONDE_NVRTC
// names the vendor's library where it is not found (vendor_library.h).
#include <dlfcn.h>

#include <cstring>
#include <string>
#include <vector>

#include "softgpu/nvrtc/vendor_library.h"

namespace {

using Result = int;           // nvrtcResult
using Program = struct Tag*;  // nvrtcProgram
constexpr Result kSuccess = 0;
constexpr Result kInvalidInput = 3;
constexpr Result kInternalError = 11;

void* vendorSymbol(const char* name) {
  static void* const library =
      sonde::vendor::open(SONDE_VENDOR_FILE, "SONDE_NVRTC", ", or compile the kernels beforehand (sondecc -ptx)");
  return library ? dlsym(library, name) : nullptr;
}

using sonde::vendor::virtualArchitecture;

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
