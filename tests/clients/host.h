// SPDX-License-Identifier: Apache-2.0
// What the program of the injected clients shows to the library that the driver
// loads into it.
#ifndef SONDE_TESTS_CLIENTS_HOST_H_
#define SONDE_TESTS_CLIENTS_HOST_H_

#include "truth.h"

namespace clients {

struct Host {
  Truth* truth;
  void* nvtxTable;
  // Set by the injected library; told of each stage. false after the last: something was wrong.
  bool (*stage)(const char* name);
};

}  // namespace clients

// Exported by the program.
extern "C" clients::Host* clientHost();

#endif  // SONDE_TESTS_CLIENTS_HOST_H_
