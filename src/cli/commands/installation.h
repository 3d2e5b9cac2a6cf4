// SPDX-License-Identifier: Apache-2.0
// Where the other parts of the product lie.
#ifndef SONDE_CLI_COMMANDS_INSTALLATION_H_
#define SONDE_CLI_COMMANDS_INSTALLATION_H_

#include <string>

namespace sonde::cli {

struct Installation {
  std::string libraries;  // lib64
  std::string collector;  // libsonde-collector.so
  std::string cupti;      // libcupti.so.13
  std::string softgpu;    // folder of the software GPU's libcuda.so.1 and libcudart.so.13

  // Beside the running program (../lib64), or where SONDE_LIBDIR says.
  static Installation find();
};

// A driver of NVIDIA's with a card behind it.
bool hasRealDevice();

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_INSTALLATION_H_
