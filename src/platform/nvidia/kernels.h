// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sonde::platform::nvidia {

// PTX of the calibration kernels (see kernels.cpp).
extern const char kCalibrationPtx[];

}  // namespace sonde::platform::nvidia
