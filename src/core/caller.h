// SPDX-License-Identifier: Apache-2.0
// Whose call is it? The functions of the first API generation carry no client
// handle; the client is the shared object (or executable) that makes the call.
#ifndef SONDE_CORE_CALLER_H_
#define SONDE_CORE_CALLER_H_

#include <cstdint>
#include <string>

namespace sonde::core {

// A loaded object. Code that belongs to none (made by a JIT) has base 0.
struct CallerObject {
  uintptr_t base = 0;  // identifies it
  uintptr_t begin = 0, end = 0;
  std::string path;  // empty: the executable, or no object
};

// The object that `address` lies in.
CallerObject findCaller(const void* address);

// Whose code called a public function that will return to `returnAddress`: an
// address in the calling object. That is the return address, unless the caller
// jumped to the function as the last thing it did; then the call instruction
// before the return address tells which function it was. Cheap.
const void* callingCode(const void* returnAddress);

// A library that is nobody's profiler: the C library, the loader, the driver.
// A call that seems to come from one comes from an exit handler or a thread's
// main function that ended with a jump.
bool isSystemLibrary(const CallerObject& object);

// Keeps the object mapped until the process ends, so that its callbacks can be
// called even after a dlclose. Nothing is done for the executable.
void pinCaller(const CallerObject& object);

}  // namespace sonde::core

#endif  // SONDE_CORE_CALLER_H_
