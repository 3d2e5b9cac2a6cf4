// SPDX-License-Identifier: Apache-2.0
//
// The driver's side of managed memory with a residence: when it begins, what
// streams do about it, and how its events reach the listener.
//
// SONDE_MANAGED=resident  every page is open to both sides, always
//               faults    pages have a residence from the first allocation on
//               auto      … from the first time somebody asks for the counters
//                         of unified memory (the default). On a device whose
//                         kernels cannot fault: like faults
#pragma once

#include "softgpu/driver/command.h"
#include "softgpu/driver/driver.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::driver::managed {

// Checks a prefetch to a location, or (null) a range that is discarded.
CUresult planPrefetch(uint64_t address, size_t count, const CUmemLocation* location, const Context& context,
                      PrefetchPlan& plan);
// Whether the host has this node of memory.
bool hostNodeExists(int id);
// Before a managed allocation is made.
void beforeAllocation(const Device& device);
// Around a command, on the thread that runs it.
class Work {
 public:
  Work(Device& device, const Command& command);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  int device_ = -1;  // where it is announced
};
// Around the enqueueing of a kernel.
inline bool concernsLaunches(const Device& device) {
  return !device.model.concurrentManaged && memory::ManagedMemory::get().inUse();
}
void launching(const Stream& stream);
// The program has waited for a stream up to this place, or for a whole context.
void waited(Stream& stream, uint64_t place);
void waited(const Context& context);
// A function of the program runs next in this stream: what came before it is over.
void waitedByHostFunction(Stream& stream);
// The program has waited for the device (part of `waited`). Where a system call cannot wait for a
// page (no userfaultfd) the pages come back to the CPU now, unless the user
// insists on faults: a program may pass any managed pointer to the system then.
void afterWait();
// The listener's choice of counters. A CUresult.
int32_t configure(Device& device, uint32_t kindMask);
// Hands waiting events to the listener.
void drain();

}  // namespace sonde::softgpu::driver::managed
