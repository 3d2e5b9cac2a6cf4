// SPDX-License-Identifier: Apache-2.0
//
// Recording events and waiting for them. `correlation` 0: of the running call.
#pragma once

#include <span>

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

CUresult findEvent(CUevent handle, Ref<Event>& event);
// As cuEventRecordWithFlags.
CUresult recordEvent(CUevent handle, CUstream stream, unsigned flags);
CUresult recordOn(Stream& stream, Event& event, uint32_t correlation);
void waitOn(Stream& stream, Event& event, uint32_t correlation);
// The event is reached when all that these streams hold now is done.
CUresult recordAfter(Context& context, std::span<const Ref<Stream>> streams, Event& event);

}  // namespace sonde::softgpu::driver
