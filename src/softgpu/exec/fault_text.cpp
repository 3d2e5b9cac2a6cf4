// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/fault_text.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::exec {
namespace {

constexpr uint64_t kNearNull = 65536;  // an index into nothing
constexpr uint64_t kReach = 65536;     // how far from an allocation an access may still be meant for it

}  // namespace

std::string shownName(const std::string& mangled) {
  if (!mangled.starts_with("_Z")) return mangled;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : mangled;
}

std::string whereIs(uint64_t address) {
  const memory::AddressSpace& space = memory::AddressSpace::get();
  if (address < kNearNull) return "a null pointer";
  if (!space.all.contains(address)) return "outside the GPU's memory (a pointer of the host, or not initialised)";
  // Between allocations are pages that belong to none.
  for (uint64_t back = 1; back <= kReach && address >= space.global.base + back; back += back < 4096 ? 1 : 4096)
    if (const auto a = memory::Allocator::get().find(address - back)) {
      const uint64_t beyond = address - a->end();
      return fmt::format("{} the end of an allocation of {} bytes at 0x{:x}",
                         beyond ? fmt::format("{} bytes beyond", beyond) : std::string("just beyond"), a->bytes,
                         a->address);
    }
  for (uint64_t ahead = 1; ahead <= 4096; ++ahead)
    if (const auto a = memory::Allocator::get().find(address + ahead))
      return fmt::format("{} bytes before an allocation of {} bytes at 0x{:x}", a->address - address, a->bytes,
                         a->address);
  return "where no allocation is (any more)";
}

}  // namespace sonde::softgpu::exec
