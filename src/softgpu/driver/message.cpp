// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/message.h"

#include <unistd.h>

#include <string>

#include "softgpu/driver/env.h"

namespace sonde::softgpu::driver {

void say(std::string_view line) {
  logMessage(line);
  if (environment().quiet) return;
  std::string text = "sonde: ";
  text += line;
  text += '\n';
  // One write, so that lines of several threads do not mix.
  [[maybe_unused]] const auto written = ::write(2, text.data(), text.size());
}

void sayVerbose(std::string_view line) {
  if (environment().verbose) say(line);
}

}  // namespace sonde::softgpu::driver
