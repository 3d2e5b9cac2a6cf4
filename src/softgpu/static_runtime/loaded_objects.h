// SPDX-License-Identifier: Apache-2.0
//
// Tells of the shared objects of the process: those that are there, and each
// that is loaded later (Python's extension modules, plug-ins), when it is mapped
// and before its constructors run.
#pragma once

#include <cstdint>

namespace sonde::static_runtime {

using ObjectSeen = void (*)(const char* path, uint64_t loadAddress);

// Calls `seen` for every object but the executable and this library; later
// calls come from the thread that loads, inside dlopen. False: this C library
// gives no sign when it loads something. Once.
bool watchLoadedObjects(ObjectSeen seen);

}  // namespace sonde::static_runtime
