// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/installation.h"

#include <cstdlib>
#include <filesystem>

namespace sonde::cli {

namespace fs = std::filesystem;

Installation Installation::find() {
  std::error_code ec;
  Installation result;
  const char* chosen = std::getenv("SONDE_LIBDIR");
  if (chosen != nullptr && chosen[0] != 0) {
    result.libraries = fs::absolute(chosen, ec).lexically_normal().string();
  } else {
    const fs::path program = fs::read_symlink("/proc/self/exe", ec);
    result.libraries = (program.parent_path().parent_path() / "lib64").string();
  }
  const fs::path lib = result.libraries;
  result.collector = (lib / "libsonde-collector.so").string();
  result.cupti = (lib / "libcupti.so.13").string();
  result.softgpu = (lib / "softgpu").string();
  return result;
}

bool hasRealDevice() {
  std::error_code ec;
  return fs::exists("/dev/nvidiactl", ec);
}

}  // namespace sonde::cli
