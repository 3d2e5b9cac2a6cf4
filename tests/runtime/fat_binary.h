// SPDX-License-Identifier: Apache-2.0
// Registers a PTX text with the runtime as compiled code would, so that the
// tests need no CUDA compiler.
#ifndef SONDE_TESTS_RUNTIME_FAT_BINARY_H_
#define SONDE_TESTS_RUNTIME_FAT_BINARY_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
void __cudaRegisterManagedVar(void**, void**, char*, const char*, int, size_t, int, int);
char __cudaInitModule(void**);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
}

namespace sonde::test {

// The 24 bytes that compiled code hands to __cudaRegisterFatBinary, and the
// container behind them. kind 1 is PTX, 2 an ELF image.
class FatBinary {
 public:
  explicit FatBinary(const std::string& payload, uint16_t kind = 1) {
    std::string padded = payload + '\0';
    padded.resize((padded.size() + 7) / 8 * 8);
    append<uint32_t>(0xba55ed50);
    append<uint16_t>(1);
    append<uint16_t>(16);
    append<uint64_t>(80 + padded.size());
    append<uint16_t>(kind);
    append<uint16_t>(0x0101);
    append<uint32_t>(80);
    append<uint64_t>(padded.size());
    append<uint32_t>(0);   // not compressed
    append<uint32_t>(64);  // options are at 64
    append<uint16_t>(4);   // PTX 6.4
    append<uint16_t>(6);
    append<uint32_t>(50);
    append<uint64_t>(0);  // no name
    append<uint64_t>(0x11);
    append<uint64_t>(0);
    append<uint64_t>(0);
    append<uint32_t>(72);  // the options: no text
    append<uint32_t>(0);
    append<uint64_t>(0);
    bytes_.insert(bytes_.end(), padded.begin(), padded.end());
    wrapper_ = {0x466243b1, 1, bytes_.data(), nullptr};
    handle_ = __cudaRegisterFatBinary(&wrapper_);
  }
  ~FatBinary() { __cudaUnregisterFatBinary(handle_); }
  FatBinary(const FatBinary&) = delete;
  FatBinary& operator=(const FatBinary&) = delete;

  void kernel(const void* stub, const char* name) {
    __cudaRegisterFunction(handle_, static_cast<const char*>(stub), const_cast<char*>(name), name, -1, nullptr, nullptr,
                           nullptr, nullptr, nullptr);
  }
  void variable(void* shadow, const char* name, size_t size, bool constant) {
    __cudaRegisterVar(handle_, static_cast<char*>(shadow), const_cast<char*>(name), name, 0, size, constant, 0);
  }
  void** handle() { return handle_; }

 private:
  template <typename T>
  void append(T value) {
    const char* at = reinterpret_cast<const char*>(&value);
    bytes_.insert(bytes_.end(), at, at + sizeof value);
  }
  struct Wrapper {
    uint32_t magic, version;
    const void* data;
    const void* filename;
  };
  std::vector<char> bytes_;
  Wrapper wrapper_;
  void** handle_;
};

}  // namespace sonde::test

#endif  // SONDE_TESTS_RUNTIME_FAT_BINARY_H_
