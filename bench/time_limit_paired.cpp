// SPDX-License-Identifier: Apache-2.0
//
// time_limit_paired [ROUNDS]: what SONDE_KERNEL_TIMEOUT costs kernels. Two processes, with and without it, run each
// kernel in turn; the CPU time of each run, their ratio pair by pair. Set SONDE_THREADS=1.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "exec_kernels.h"

namespace sonde::bench {
namespace {

using softgpu::exec::CountLevel;

double cpuMs() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

struct Case {
  const char* name;
  void (*run)();
};

constexpr uint32_t kN = 4u << 20, kSide = 512, kStarts = 256u << 10, kKeys = 1u << 20;

const Case kCases[] = {
    {"empty kernel, one warp, 1000 launches",
     [] {
       for (int i = 0; i < 1000; ++i) Kernels::get().run("empty", {1}, {32}, CountLevel::off);
     }},
    {"empty kernel, 10 000 blocks", [] { Kernels::get().run("empty", {10000}, {256}, CountLevel::off); }},
    {"vector addition, 4 Mi",
     [] {
       static const uint64_t a = allocate(4u * kN), b = allocate(4u * kN), c = allocate(4u * kN);
       Kernels::get().run("vadd", {kN / 256}, {256}, CountLevel::off, a, b, c, kN);
     }},
    {"matrix product 512",
     [] {
       static const uint64_t a = allocate(4u * kSide * kSide), b = allocate(4u * kSide * kSide),
                             c = allocate(4u * kSide * kSide);
       Kernels::get().run("matmul", {kSide / 16, kSide / 16}, {16, 16}, CountLevel::off, a, b, c, kSide);
     }},
    {"Collatz, 256 Ki",
     [] {
       static const uint64_t out = allocate(4u * kStarts);
       Kernels::get().run("collatz", {kStarts / 256}, {256}, CountLevel::off, out);
     }},
    {"merge sort of tiles, 1 Mi keys",
     [] {
       static const uint64_t in = allocate(4u * kKeys), out = allocate(4u * kKeys);
       Kernels::get().run("mergesort", {kKeys / 512}, {256}, CountLevel::off, in, out, 512u);
     }},
};

// Runs the cases whose numbers it reads, and answers with their times.
struct Worker {
  int to = -1, from = -1;
  pid_t pid = 0;
  explicit Worker(bool limited) {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) std::abort();
    pid = fork();
    if (pid != 0) {
      close(in[0]);
      close(out[1]);
      to = in[1];
      from = out[0];
      return;
    }
    close(in[1]);
    close(out[0]);
    if (limited)
      setenv("SONDE_KERNEL_TIMEOUT", "600", 1);
    else
      unsetenv("SONDE_KERNEL_TIMEOUT");
    size_t which = 0;
    while (read(in[0], &which, sizeof which) == sizeof which) {
      const double start = cpuMs();
      kCases[which].run();
      const double ms = cpuMs() - start;
      if (write(out[1], &ms, sizeof ms) != sizeof ms) break;
    }
    _exit(0);
  }
  double run(size_t which) const {
    double ms = 0;
    if (write(to, &which, sizeof which) != sizeof which || read(from, &ms, sizeof ms) != sizeof ms) std::abort();
    return ms;
  }
};

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<size_t>(q * static_cast<double>(v.size() - 1))];
}

}  // namespace
}  // namespace sonde::bench

int main(int argc, char** argv) {
  using namespace sonde::bench;
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 25;
  const Worker without(false), with(true);
  std::printf("%-40s %10s %10s %8s %16s\n", "CPU time, ms: medians", "no limit", "limit", "ratio", "10 % to 90 %");
  for (size_t c = 0; c < std::size(kCases); ++c) {
    std::vector<double> plain, limited, ratio;
    without.run(c);
    with.run(c);
    for (int r = 0; r < rounds; ++r) {
      double a = 0, b = 0;
      if (r % 2) {
        a = without.run(c);
        b = with.run(c);
      } else {
        b = with.run(c);
        a = without.run(c);
      }
      plain.push_back(a);
      limited.push_back(b);
      ratio.push_back(b / a);
    }
    std::printf("%-40s %10.2f %10.2f %8.3f %8.2f to %.2f\n", kCases[c].name, quantile(plain, 0.5),
                quantile(limited, 0.5), quantile(ratio, 0.5), quantile(ratio, 0.1), quantile(ratio, 0.9));
  }
  // The second has the first one's pipe open too.
  close(with.to);
  close(without.to);
  while (wait(nullptr) > 0) {
  }
}
