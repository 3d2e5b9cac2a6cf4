// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sonde::softgpu::driver {

// Waits until no other thread runs a function of the listener.
void waitForListenerUse();

}  // namespace sonde::softgpu::driver
