// SPDX-License-Identifier: Apache-2.0
// A spool made by hand, the same for all tests. Its events, with times in ns
// after kOrigin:
//
//   cudaMalloc        0 …   10'000   correlation 1
//   cudaMemcpy   20'000 …  140'000   correlation 2     HtoD copy  30'000 … 130'000, 4 MB on stream 7
//   cudaLaunch  150'000 …  153'000   correlation 3     saxpy     160'000 … 165'000
//     cuLaunch  150'500 …  152'500   (made by cudaLaunchKernel)
//   cudaLaunch  170'000 …  174'000   correlation 4     saxpy     180'000 … 187'000
//   cudaLaunch  190'000 …  195'000   correlation 5     scan      200'000 … 230'000, stream 13
//   cudaMemset  240'000 …  242'000   correlation 6     memset    243'000 … 244'000, 1 kB
//   cudaMemcpy  250'000 …  300'000   correlation 7     DtoH copy 260'000 … 290'000, 600 kB
//   NVTX "step" (push/pop) 100'000 … 200'000; "load" of domain "io" 5'000 … 25'000; mark "here" at 50'000
#ifndef SONDE_TESTS_CLI_SAMPLE_H_
#define SONDE_TESTS_CLI_SAMPLE_H_

#include <string>

#include "cli/spool/trace.h"

namespace sonde::test {

inline constexpr uint64_t kOrigin = 1'700'000'000'000'000'000ull;

struct SampleOptions {
  uint32_t pid = 4242;
  uint64_t dropped = 0;
  bool end = true;
  bool unfinishedKernel = false;
};

std::string sampleSpool(const SampleOptions& options = {});
Trace sampleTrace(const SampleOptions& options = {});
// Reads what must be readable.
Trace readOrDie(const std::string& content);

}  // namespace sonde::test

#endif  // SONDE_TESTS_CLI_SAMPLE_H_
