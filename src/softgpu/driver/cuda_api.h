// SPDX-License-Identifier: Apache-2.0
//
// cuda.h as the driver itself needs it: the plain names, none of the macros
// that map an old name to its newest version.
#pragma once

#include <cuda.h>

// An API function's implementation. gen_entries.py finds these and writes the
// exported function of the same name around each: see entries.cpp.
#define DRIVER_API(name) CUresult name##_impl
