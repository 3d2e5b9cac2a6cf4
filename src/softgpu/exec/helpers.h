// SPDX-License-Identifier: Apache-2.0
//
// The functions that compiled code calls, by name.
#pragma once

#include <span>
#include <string_view>

#include "ptx/types.h"
#include "softgpu/exec/atomic_ops.h"
#include "softgpu/exec/warp_state.h"
#include "softgpu/jit/compiler.h"

// Device memory is the program's: its races and bounds are not ours to check.
#define SONDE_DEVICE_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

namespace sonde::softgpu::exec {

std::span<const jit::RuntimeSymbol> memoryHelpers();
std::span<const jit::RuntimeSymbol> counterHelpers();
std::span<const jit::RuntimeSymbol> warpHelpers();
std::span<const jit::RuntimeSymbol> bulkHelpers();
std::span<const jit::RuntimeSymbol> deviceFunctions();  // vprintf, malloc …: "sonde_fn_<name>"
std::span<const jit::RuntimeSymbol> launchFunctions();  // cudaLaunchDevice and the like
// All of the above.
std::span<const jit::RuntimeSymbol> allHelpers();
bool isDeviceFunction(std::string_view name);
bool isLaunchFunction(std::string_view name);

// Where the bytes of a lane's access are. space: 0 generic, 1 shared, 2 local.
// Faults when the lane may not do that.
void* resolveLane(WarpState* warp, uint32_t space, uint64_t address, uint32_t bytes, uint32_t lane, bool write);
// A fetch of a warp from a texture that reads n texels at these addresses (n > 0;
// their order is lost): one request, and each sector once.
void countTexels(WarpState* warp, uint64_t* addresses, uint32_t n);
// One atomic operation; returns the old value. plain: on memory that this host
// thread alone touches.
uint64_t atomicOne(void* at, bool plain, AtomicOp op, ptx::ScalarType type, uint64_t x, uint64_t y);

}  // namespace sonde::softgpu::exec
