// SPDX-License-Identifier: Apache-2.0
// What every example needs: an error check that says where, option parsing, and
// the verdict line with the exit status.
#ifndef SONDE_EXAMPLES_EXAMPLE_H_
#define SONDE_EXAMPLES_EXAMPLE_H_

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t error_ = (call);                                                                        \
    if (error_ != cudaSuccess) {                                                                        \
      std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_), \
                   cudaGetErrorString(error_));                                                         \
      std::exit(1);                                                                                     \
    }                                                                                                   \
  } while (0)

// The integer after `--name`, or `fallback`. Anything below `least` ends the
// program with a message.
inline long option(int argc, char** argv, const char* name, long fallback, long least = 1) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) != 0) continue;
    char* end = nullptr;
    long value = std::strtol(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0' || value < least) {
      std::fprintf(stderr, "%s wants a whole number of at least %ld, not '%s'\n", name, least, argv[i + 1]);
      std::exit(2);
    }
    return value;
  }
  return fallback;
}

// The text after `--name`, or `fallback`.
inline const char* textOption(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  return fallback;
}

// A small generator with the same sequence everywhere (xorshift32).
struct Random {
  unsigned state;
  explicit Random(unsigned seed) : state(seed ? seed : 1) {}
  unsigned next() {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  }
  float unit() { return static_cast<float>(next() >> 8) * (1.0f / 16777216.0f); }  // [0, 1)
};

// Prints the verdict and gives main its exit status.
inline int verdict(const char* name, bool ok) {
  std::printf("%s: %s\n", name, ok ? "PASS" : "FAIL");
  return ok ? 0 : 1;
}

#endif  // SONDE_EXAMPLES_EXAMPLE_H_
