// SPDX-License-Identifier: Apache-2.0
// For device test programs: counts what differs and says so.
#ifndef SONDE_TESTS_EXAMPLES_CHECK_H_
#define SONDE_TESTS_EXAMPLES_CHECK_H_

#include "../../examples/example.h"

static int failures = 0;

template <typename Got, typename Wanted>
void expectEqual(const char* what, Got got, Wanted wanted) {
  if (got == static_cast<Got>(wanted)) return;
  ++failures;
  std::printf("%s: got %.17g, wanted %.17g\n", what, static_cast<double>(got), static_cast<double>(wanted));
}

#endif  // SONDE_TESTS_EXAMPLES_CHECK_H_
