// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace sonde::test {

// The PTX that this machine's CUDA compiler makes of a file; empty without one.
inline std::string compileCuda(const std::string& source) {
  const char* path = std::getenv("CUDA_PATH");
  const std::string nvcc = std::string(path ? path : "/usr/local/cuda") + "/bin/nvcc";
  const std::string out = testing::TempDir() + "/sonde_cuda_" + std::to_string(getpid()) + ".ptx";
  const std::string command = nvcc + " -arch=compute_90 -ptx -o " + out + " " + source + " > /dev/null 2>&1";
  if (std::system(command.c_str()) != 0) return {};
  std::ifstream file(out);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::remove(out.c_str());
  return text;
}

}  // namespace sonde::test
