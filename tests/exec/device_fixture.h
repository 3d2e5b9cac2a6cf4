// SPDX-License-Identifier: Apache-2.0
//
// Loads PTX, gives it device memory and runs kernels through the engine alone,
// without a driver.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "softgpu/exec/engine.h"
#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {

class DeviceMemory {
 public:
  // A page-aligned block with an unmapped page behind it, from the far end of
  // the window: the allocator works from the near one.
  static uint64_t allocate(uint64_t bytes) {
    static uint64_t end = memory::AddressSpace::get().global.end() - 4096;
    const uint64_t size = (bytes + 4095) / 4096 * 4096;
    end -= size + 4096;
    EXPECT_EQ(mprotect(memory::AddressSpace::get().deviceView(end), size, PROT_READ | PROT_WRITE), 0);
    return end;
  }
};

template <class T>
struct DeviceArray {
  uint64_t address;
  size_t count;
  explicit DeviceArray(size_t n, T fill = T{}) : address(DeviceMemory::allocate(n * sizeof(T))), count(n) {
    for (size_t i = 0; i < n; ++i) (*this)[i] = fill;
  }
  T* data() const { return reinterpret_cast<T*>(memory::AddressSpace::get().deviceView(address)); }
  T& operator[](size_t i) const { return data()[i]; }
};

struct Packer {
  std::vector<std::byte> bytes;
  template <class T>
  void put(T value) {
    const size_t at = (bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
};

inline model::DeviceModel testDevice() {
  model::DeviceModel d;
  d.id = "test";
  d.smCount = 4;
  return d;
}

class Kernels {
 public:
  explicit Kernels(std::string_view ptx, model::DeviceModel d = testDevice()) : device(std::move(d)) {
    const std::string_view texts[] = {ptx};
    auto loaded = Program::load(texts, device);
    std::string why;
    for (const auto& d : loaded.diagnostics) why += std::to_string(d.pos.line) + ": " + d.message + "\n";
    EXPECT_EQ(loaded.error, LoadError::none) << why;
    program = loaded.program;
    if (!program) return;
    std::vector<uint64_t> at;
    for (const GlobalInfo& g : program->globals()) at.push_back(DeviceMemory::allocate(g.bytes));
    globals = at;
    program->bind(at);
  }
  uint32_t index(std::string_view name) const {
    for (uint32_t i = 0; i < program->kernels().size(); ++i)
      if (program->kernels()[i].name == name) return i;
    ADD_FAILURE() << "no kernel " << name;
    return 0;
  }
  template <class... Args>
  LaunchOutcome run(std::string_view name, Dim3 grid, Dim3 block, Args... args) {
    Packer p;
    (p.put(args), ...);
    LaunchRequest r;
    r.program = program.get();
    r.kernel = index(name);
    r.grid = grid;
    r.block = block;
    r.cluster = cluster;
    r.params = p.bytes;
    r.device = &device;
    r.dynamicSharedBytes = dynamicShared;
    r.count = level;
    r.counters = level == CountLevel::off ? nullptr : &counters;
    r.cooperative = cooperative;
    r.smClockMHz = smClockMHz;
    r.monitor = level == CountLevel::off ? nullptr : monitor;
    r.instructions = sourceLevel ? &instructions : nullptr;
    r.print = [this](std::string_view s) { printed += s; };
    r.hostAddressAllowed = hostAllowed;
    return Engine::get().run(r);
  }
  uint64_t counterOf(uint32_t instance, RawCounter c) const {
    return counters.values.at(size_t{instance} * kRawCounterCount + static_cast<uint32_t>(c));
  }
  uint64_t counter(RawCounter c) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < counters.instances; ++i)
      sum += counters.values[i * kRawCounterCount + static_cast<uint32_t>(c)];
    return sum;
  }

  std::shared_ptr<Program> program;
  std::vector<uint64_t> globals;
  Dim3 cluster{0, 0, 0};
  uint32_t dynamicShared = 0;
  CountLevel level = CountLevel::off;
  CounterValues counters;
  bool sourceLevel = false;
  std::vector<InstructionCount> instructions;
  bool cooperative = false;
  std::string printed;
  std::function<bool(uint64_t, uint64_t)> hostAllowed;
  model::DeviceModel device;
  uint64_t smClockMHz = 0;
  CounterMonitor* monitor = nullptr;
};

}  // namespace sonde::softgpu::exec
