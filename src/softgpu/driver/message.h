// SPDX-License-Identifier: Apache-2.0
//
// Lines for the user on stderr: "sonde: …". SONDE_QUIET=1 silences them.
#pragma once

#include <string_view>

namespace sonde::softgpu::driver {

void say(std::string_view line);         // unless quiet
void sayVerbose(std::string_view line);  // only when verbose

}  // namespace sonde::softgpu::driver
