// SPDX-License-Identifier: Apache-2.0
// The program of the injected clients. Argument: "graphs", where they bear them.
#include <cstdio>
#include <cstring>

#include "host.h"
#include "program.h"

namespace {

clients::Truth truth;
clients::Host host = {&truth, nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) clients::Host* clientHost() {
  host.nvtxTable = clients::nvtxExportTable();
  return &host;
}

int main(int count, char** arguments) {
  const bool graphs = count > 1 && std::strcmp(arguments[1], "graphs") == 0;
  const bool right = clients::runProgram(&truth, graphs, [](const std::string& name) {
    if (host.stage != nullptr) host.stage(name.c_str());
  });
  if (host.stage == nullptr) {
    std::fprintf(stderr, "nobody was injected\n");
    return 2;
  }
  return host.stage("after") && right ? 0 : 1;
}
