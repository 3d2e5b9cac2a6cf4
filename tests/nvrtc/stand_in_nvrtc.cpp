// SPDX-License-Identifier: Apache-2.0
//
// In place of the vendor's NVRTC: its "PTX" is the options that it was given,
// one a line, so that a test sees them.
#include <cstring>
#include <string>

namespace {
std::string ptx;
}

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int nvrtcCompileProgram(void*, int count, const char* const* options) {
  ptx.clear();
  for (int i = 0; i < count; ++i) ptx += std::string(options[i]) + "\n";
  return ptx.find("fail") == std::string::npos ? 0 : 6;
}
EXPORT int nvrtcGetPTXSize(void*, size_t* size) {
  *size = ptx.size() + 1;
  return 0;
}
EXPORT int nvrtcGetPTX(void*, char* out) {
  std::memcpy(out, ptx.c_str(), ptx.size() + 1);
  return 0;
}
EXPORT int nvrtcGetCUBINSize(void*, size_t* size) {
  *size = 0;
  return 0;
}
EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 7;
  return 0;
}
EXPORT const char* nvrtcGetErrorString(int result) { return result == 6 ? "stand-in" : "?"; }
