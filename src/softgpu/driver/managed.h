// SPDX-License-Identifier: Apache-2.0
//
// The driver's side of managed memory with a residence: when it begins, what
// streams do about it, and how its events reach the listener.
//
// SONDE_MANAGED=resident  every page is open to both sides, always
//               faults    pages have a residence from the first allocation on
//               auto      … from the first time somebody asks for the counters
//                         of unified memory (the default)
#pragma once

#include "softgpu/driver/command.h"
#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver::managed {

// Before a managed allocation is made.
void beforeAllocation();
// Before a command runs, on the thread that runs it.
void beforeWork(Device& device, const Command& command);
// The program has waited for the device. Where a system call cannot wait for a
// page (no userfaultfd) the pages come back to the CPU now, unless the user
// insists on faults: a program may pass any managed pointer to the system then.
void afterWait();
// The listener's choice of counters. A CUresult.
int32_t configure(Device& device, uint32_t kindMask);
// Hands waiting events to the listener.
void drain();

}  // namespace sonde::softgpu::driver::managed
