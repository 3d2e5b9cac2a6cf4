// SPDX-License-Identifier: Apache-2.0
// In the place of the vendor's libnvJitLink: its "PTX" is what it was told.
#include <cstdint>
#include <cstring>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int nvJitLinkCreate(std::string** handle, uint32_t count, const char** options) {
  *handle = new std::string;
  for (uint32_t i = 0; i < count; ++i) **handle += std::string(options[i]) + " ";
  return 0;
}
EXPORT int nvJitLinkDestroy(std::string** handle) {
  delete *handle;
  *handle = nullptr;
  return 0;
}
EXPORT int nvJitLinkAddData(std::string* handle, int, const void* data, size_t size, const char*) {
  *handle += std::string(static_cast<const char*>(data), size) + " ";
  return 0;
}
EXPORT int nvJitLinkComplete(std::string*) { return 0; }
EXPORT int nvJitLinkGetLinkedPtxSize(std::string* handle, size_t* size) {
  *size = handle->size() + 1;
  return 0;
}
EXPORT int nvJitLinkGetLinkedPtx(std::string* handle, char* ptx) {
  std::strcpy(ptx, handle->c_str());
  return 0;
}
EXPORT int nvJitLinkGetErrorLogSize(std::string*, size_t* size) {
  *size = 1;
  return 0;
}
EXPORT int nvJitLinkGetErrorLog(std::string*, char* log) {
  *log = 0;
  return 0;
}
