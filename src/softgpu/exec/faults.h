// SPDX-License-Identifier: Apache-2.0
//
// Faults of device code: from the helpers (raiseFault in cta.h) and from the
// pages themselves (SIGSEGV, SIGBUS).
#pragma once

#include <cstdint>

#include "softgpu/exec/cta.h"

namespace sonde::softgpu::exec {

inline constexpr int32_t kErrorOutOfMemory = 2;
inline constexpr int32_t kErrorIllegalAddress = 700;
inline constexpr int32_t kErrorTimeout = 702;
inline constexpr int32_t kErrorAssert = 710;
inline constexpr int32_t kErrorIllegalInstruction = 715;
inline constexpr int32_t kErrorMisalignedAddress = 716;
inline constexpr int32_t kErrorInvalidPc = 718;
inline constexpr int32_t kErrorLaunchFailed = 719;

// What was done at an address that has no memory, for raiseFault.
inline constexpr char kWriteTo[] = "a write to";
inline constexpr char kReadOf[] = "a read of";

// Managed memory: called in the signal handler when an access in the address
// space (host view or device view) faults; true: the page is there now, try
// again. `address` is the faulting one, `pc` the instruction's, `device` the
// ordinal of the device whose kernel did it (-1: no kernel). Only
// async-signal-safe things.
using FaultHook = bool (*)(uint64_t address, bool write, uint64_t pc, int device);
void setFaultHook(FaultHook hook);

// The application may have installed handlers of its own since: puts these
// back in front of them. Theirs still get every fault that is not ours.
void reassertFaultHandlers();
// The same before a kernel at this time (ns), unless it was done so shortly before: asking the system costs as much as
// an empty kernel.
inline constexpr uint64_t kHandlersKeptNs = 20'000;
void keepFaultHandlers(uint64_t now);

// Installs the handlers (once) and this thread's alternate stack.
void prepareThreadForFaults();

// Runs touch(argument), which must have no destructors to run; false, and the
// address, when it met memory that is not there. Installs the handlers.
bool touchGuarded(void (*touch)(void*), void* argument, uint64_t* address);

// Leaves the warp and ends its block without a fault of its own.
[[noreturn]] void leaveWarp(WarpState* warp);

}  // namespace sonde::softgpu::exec
