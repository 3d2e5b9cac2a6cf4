// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

CUresult createContext(Device* device, uint32_t flags, bool primary, Ref<Context>& out);
// Tells the listener of a context just created; no lock may be held.
void announceContext(Context& context);
// Tells the listener; `event` is a SondeResourceEvent.
// For contexts of every sort, green ones included; unique in the process.
uint32_t nextContextUid();
void reportStream(Stream& stream, uint32_t event);
// The primary context of a device, created when it is not active. `retain`
// counts a user.
CUresult primaryContext(Device* device, bool retain, Ref<Context>& out);

}  // namespace sonde::softgpu::driver
