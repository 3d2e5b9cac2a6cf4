// SPDX-License-Identifier: Apache-2.0
//
// Kernels that the engine's benchmarks run, and how to run them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/exec/engine.h"

namespace sonde::bench {

// Device memory, filled with 1s; never given back.
uint64_t allocate(uint64_t bytes);

// Beyond the levels there are: counts for each instruction.
inline constexpr auto kSourceLevel = static_cast<softgpu::exec::CountLevel>(4);

// The kernels' program on the default device.
class Kernels {
 public:
  static Kernels& get();
  template <class... A>
  softgpu::exec::CounterValues run(const char* name, softgpu::exec::Dim3 grid, softgpu::exec::Dim3 block,
                                   softgpu::exec::CountLevel level, A... args) {
    std::vector<std::byte> params;
    [[maybe_unused]] auto put = [&](auto v) {
      const size_t at = (params.size() + sizeof v - 1) / sizeof v * sizeof v;
      params.resize(at + sizeof v);
      std::memcpy(params.data() + at, &v, sizeof v);
    };
    (put(args), ...);
    return launch(name, grid, block, level, params);
  }

 private:
  Kernels();
  softgpu::exec::CounterValues launch(const char* name, softgpu::exec::Dim3 grid, softgpu::exec::Dim3 block,
                                      softgpu::exec::CountLevel level, const std::vector<std::byte>& params);

  softgpu::model::DeviceModel device_;
  std::shared_ptr<softgpu::exec::Program> program_;
};

}  // namespace sonde::bench
