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

// Call this first. `usage` names each option and its value, "[--n ELEMENTS]
// [--steps COUNT]": --help prints it, and what it does not name ends the program.
inline void checkArguments(int argc, char** argv, const char* what, const char* usage) {
  const char* slash = std::strrchr(argv[0], '/');
  const char* program = slash ? slash + 1 : argv[0];
  for (int i = 1; i < argc; i += 2) {
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
      std::printf("%s\nusage: %s %s\n", what, program, usage);
      std::exit(0);
    }
    const size_t length = std::strlen(argv[i]);
    const char* known = argv[i][0] == '-' && std::strchr(argv[i], ' ') == nullptr ? usage : nullptr;
    while (known && (known = std::strstr(known, argv[i])) != nullptr && (known[-1] != '[' || known[length] != ' '))
      ++known;
    if (!known) {
      std::fprintf(stderr, "%s: there is no option '%s'\nusage: %s %s\n", program, argv[i], program, usage);
      std::exit(2);
    }
    if (i + 1 == argc) {
      std::fprintf(stderr, "%s: a value must follow %s\nusage: %s %s\n", program, argv[i], program, usage);
      std::exit(2);
    }
  }
}

// The integer after `--name`, or `fallback`. Anything outside of [least, most]
// ends the program with a message. Sizes beyond 2^30 would overflow an int.
inline int option(int argc, char** argv, const char* name, int fallback, int least = 1, int most = 1 << 30) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) != 0) continue;
    char* end = nullptr;
    const long value = std::strtol(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0' || value < least || value > most) {
      std::fprintf(stderr, "%s wants a whole number from %d to %d, not '%s'\n", name, least, most, argv[i + 1]);
      std::exit(2);
    }
    return static_cast<int>(value);
  }
  return fallback;
}

// The text after `--name`, or `fallback`.
inline const char* textOption(int argc, char** argv, const char* name, const char* fallback) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) return argv[i + 1];
  return fallback;
}

// The larger error; one that is no number stays.
inline double larger(double worst, double error) { return error <= worst || worst != worst ? worst : error; }

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
