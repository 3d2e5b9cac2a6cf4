// SPDX-License-Identifier: Apache-2.0
// What the entry points share. Each checks its arguments, calls the core and
// turns the outcome into a CUptiResult; outputs are written on success only.
#ifndef SONDE_CUPTI_ENTRY_H_
#define SONDE_CUPTI_ENTRY_H_

// Makes the headers declare the functions as exported.
#ifndef CUPTI_LIB
#define CUPTI_LIB
#endif
#include <cupti.h>

#include "core/core.h"
#include "core/errors.h"

// The address that the public function returns to: the caller's identity.
#define SONDE_CALLER() __builtin_extract_return_addr(__builtin_return_address(0))

// The calling client as `name`, or return.
#define SONDE_CLIENT(name)                                                      \
  sonde::core::Client* const name = sonde::core::callingClient(SONDE_CALLER()); \
  if (name == nullptr) return CUPTI_ERROR_OUT_OF_MEMORY

#endif  // SONDE_CUPTI_ENTRY_H_
