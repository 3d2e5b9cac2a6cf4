// SPDX-License-Identifier: Apache-2.0
//
// Host-side waiting: its reports, and the rule that nothing may wait for a
// stream that is being captured.
#pragma once

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

// `kind` is a SondeSyncEvent; `stream` may be null.
void reportSync(Context& context, Stream* stream, uint32_t kind, uint64_t start, CUresult result, uint32_t eventId = 0,
                uint64_t eventSyncId = 0);
CUresult synchronizeContext(const Ref<Context>& context);

// An error when a stream capture forbids this thread an unsafe call; the
// captures it concerns are invalidated.
CUresult refuseWhileCapturing(Context& context);

}  // namespace sonde::softgpu::driver
