// SPDX-License-Identifier: Apache-2.0
//
// The exported functions by name and version, for cuGetProcAddress. Sorted by
// name, then legacy before per-thread, then version.
#pragma once

#include <span>

namespace sonde::softgpu::driver {

struct LookupEntry {
  const char* name;  // without version suffix
  int version;       // CUDA version that brought this signature
  bool perThread;
  void* function;
  const char* symbol;
};

std::span<const LookupEntry> lookupTable();

}  // namespace sonde::softgpu::driver
