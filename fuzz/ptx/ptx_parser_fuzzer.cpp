// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: no crash, no hang. What parses must also survive the checker, the
// analyses and the linker, and print as a text that parses to the same print.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "ptx/cfg.h"
#include "ptx/check.h"
#include "ptx/link.h"
#include "ptx/liveness.h"
#include "ptx/parser.h"
#include "ptx/print.h"
#include "ptx/uniformity.h"

using namespace sonde::ptx;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto result = parse({reinterpret_cast<const char*>(data), size});
  if (!result.ok()) return 0;
  const Module& m = result.module;
  check(m);
  callGraph(m);
  for (const auto& f : m.functions) {
    const Cfg cfg(f);
    if (f.registers.size() > 4096) continue;  // the bit sets of thousands of blocks would only cost memory
    const Liveness liveness(f, cfg);
    liveness.maxLiveWords();
    const Uniformity uniformity(m, f, cfg, liveness);
  }
  const std::string once = print(m);
  const auto again = parse(once);
  if (!again.ok()) {
    std::fprintf(stderr, "%s\n%s\n", once.c_str(), format(again.diagnostics.at(0)).c_str());
    std::abort();
  }
  if (print(again.module) != once) {
    std::fprintf(stderr, "%s\n----\n%s\n", once.c_str(), print(again.module).c_str());
    std::abort();
  }
  std::vector<LinkInput> inputs;
  inputs.push_back({std::move(result.module), "a"});
  inputs.push_back({again.module, "b"});
  link(std::move(inputs));
  return 0;
}
