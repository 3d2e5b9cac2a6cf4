// SPDX-License-Identifier: Apache-2.0
// The Clock Control API of CUDA 13.4, and auto boost of 6.5.
#include "core/clocks/clock_control.h"

#include <cupti.h>
#include <cupti_profiler_target.h>

#include "core/core.h"
#include "core/errors.h"

using namespace sonde;

namespace {

core::ClockControl& clockControl() {
  static core::ClockControl* control = new core::ClockControl();  // outlives static destructors
  return *control;
}

CUptiResult report(const core::ClockControl::Outcome& outcome) {
  return outcome.code == CUPTI_SUCCESS ? CUPTI_SUCCESS : core::fail(outcome.code, "%s", outcome.message.c_str());
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiClockControlGetStatus(CUcontext ctx, CUpti_ClockControl_Status* pStatus) {
  if (!ctx) return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "ctx is NULL");
  if (!pStatus) return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "pStatus is NULL");
  const SondePlatform* platform = core::requirePlatform();
  if (!platform) return CUPTI_ERROR_UNKNOWN;
  uint32_t status = 0;
  if (CUptiResult r = report(clockControl().status(*platform, ctx, &status))) return r;
  *pStatus = static_cast<CUpti_ClockControl_Status>(status);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiClockControlLock(CUcontext ctx, CUpti_ClockControl_Mode mode) {
  if (!ctx) return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "ctx is NULL");
  if (mode != CUPTI_CLOCK_CONTROL_MODE_BASE && mode != CUPTI_CLOCK_CONTROL_MODE_BOOST)
    return core::fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is no clock control mode; use BASE (1) or BOOST (2)",
                      static_cast<int>(mode));
  const SondePlatform* platform = core::requirePlatform();
  if (!platform) return CUPTI_ERROR_UNKNOWN;
  return report(clockControl().lock(*platform, ctx, static_cast<uint32_t>(mode)));
}

CUptiResult CUPTIAPI cuptiClockControlUnlock(void) { return report(clockControl().unlock()); }

}  // extern "C"
