// SPDX-License-Identifier: Apache-2.0
//
// What our own small kernels tell about a device's clocks.
#pragma once

#include "platform/nvidia/device_clock.h"
#include "platform/nvidia/objects.h"
#include "platform/nvidia/work_times.h"

namespace sonde::platform::nvidia {

// Measures, in the context: the constants of its device (once per device), an
// anchor event and the distance of the clocks. Takes a few milliseconds on an
// idle device. Never fails: without results the defaults stay and times come
// from the host's clock.
void calibrate(Context& context);

// A fresh anchor and a fresh sample of the distance, about 50 µs on an idle
// device; gives up when the device has no room for 20 ms.
void recalibrate(Context& context);

const TimingConstants& timingOf(uint32_t device);

// The kernel behind StampRing; nullptr: it cannot be had.
CUfunction stampKernel(Context& context);

// In a graph: from a stamp to the start of the work behind it, and from the end
// of work to the stamp behind it, ns. Defaults: an H200.
struct StampDelays {
  double start = 1400, end = 1400;
  bool measured = false;
};
// Measured when a context is asked for the first time.
StampDelays stampDelays(Context& context);

}  // namespace sonde::platform::nvidia
