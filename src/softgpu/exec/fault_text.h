// SPDX-License-Identifier: Apache-2.0
//
// The words for a fault of device code, as a person reads them.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::softgpu::exec {

// "saxpy(int, float*)"; a name that is not C++'s stays as it is.
std::string shownName(const std::string& mangled);

// Of an address in no live allocation: "4 bytes beyond the end of an allocation
// of 4096 bytes at 0x7f…", "outside the GPU's memory (…)". Takes the allocator's
// lock: not for signal handlers.
std::string whereIs(uint64_t address);

}  // namespace sonde::softgpu::exec
