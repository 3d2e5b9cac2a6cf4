// SPDX-License-Identifier: Apache-2.0
//
// Lines for the user on stderr: "sonde: …". SONDE_QUIET=1 silences them there.
#pragma once

#include <string_view>

namespace sonde::softgpu::driver {

// Quiet or not, the line also goes to the program's own logs (cuLogs…).
void say(std::string_view line);
void sayVerbose(std::string_view line);  // only when verbose
// To the logs alone; by say.
void logMessage(std::string_view line);

}  // namespace sonde::softgpu::driver
