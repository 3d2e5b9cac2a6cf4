// SPDX-License-Identifier: Apache-2.0
//
// The vendor's compiler libraries, behind the ones of the software GPU that
// have their names.
#pragma once

#include <string>
#include <string_view>

namespace sonde::vendor {

// Opens the library of this file name that is not the caller's own: what the
// environment variable `variable` names, or else from LD_LIBRARY_PATH, Python's
// wheels (beside an extension module that is loaded), CUDA_HOME, CUDA_PATH and
// the usual places. Null: said on stderr, with `advice`. Thread-safe.
void* open(const char* file, const char* variable, const char* advice);

// "sm_90", "sm_90a" -> "compute_90", "compute_90a"; anything else as it is.
std::string virtualArchitecture(std::string_view name);

}  // namespace sonde::vendor
