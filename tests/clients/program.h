// SPDX-License-Identifier: Apache-2.0
// A CUDA program that does a little of everything, and keeps account of it.
#ifndef SONDE_TESTS_CLIENTS_PROGRAM_H_
#define SONDE_TESTS_CLIENTS_PROGRAM_H_

#include <functional>
#include <string>

#include "truth.h"

namespace clients {

// Calls `stage` with "ready" (device 0 has its context), "work" (before the
// first launch), "worked" (all is done, nothing is released yet) and "end" (all
// is released, before the devices are reset). False: a call failed or a result
// is wrong; the reason is printed.
bool runProgram(Truth* truth, bool graphs, const std::function<void(const std::string&)>& stage);

// NVTX, as the program's headers would have it: what a tool passes on to
// cuptiNvtxInitialize.
void* nvtxExportTable();

}  // namespace clients

#endif  // SONDE_TESTS_CLIENTS_PROGRAM_H_
