// SPDX-License-Identifier: Apache-2.0
//
// compile_ptx [--plain] FILE…: compiles every kernel of PTX files, plain and
// counting, and prints the CPU time that each took, or why it cannot be compiled.
// Uses no cache.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "softgpu/exec/engine.h"

namespace {

double cpuMs() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace sonde::softgpu;
  setenv("SONDE_CACHE_DIR", "", 1);
  model::DeviceModel device;
  device.ccMajor = 12;
  int failed = 0;
  bool plain = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--plain") {
      plain = true;
      continue;
    }
    std::ifstream in(argv[i]);
    std::stringstream text;
    text << in.rdbuf();
    const std::string ptx = text.str();
    const std::string_view texts[] = {ptx};
    auto loaded = exec::Program::load(texts, device);
    if (!loaded.program) {
      ++failed;
      std::printf("%s: not loaded: %s\n", argv[i],
                  loaded.diagnostics.empty() ? "?" : loaded.diagnostics.front().message.c_str());
      continue;
    }
    for (uint32_t k = 0; k < loaded.program->kernels().size(); ++k) {
      for (auto level : {exec::CountLevel::off, exec::CountLevel::requests}) {
        if (plain && level != exec::CountLevel::off) break;
        const double start = cpuMs();
        const auto info = exec::Engine::get().compile(*loaded.program, k, level);
        const auto& kernel = loaded.program->kernels()[k];
        if (info.error) {
          ++failed;
          std::printf("%s: %s: %s\n", argv[i], kernel.name.c_str(), info.message.substr(0, 300).c_str());
          break;
        }
        std::printf("%s: %s%s: %.1f ms, %u registers\n", argv[i], kernel.name.c_str(),
                    level == exec::CountLevel::off ? "" : " (counting)", cpuMs() - start, kernel.registersPerThread);
      }
    }
  }
  return failed != 0;
}
