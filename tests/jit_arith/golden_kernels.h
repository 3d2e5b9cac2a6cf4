// SPDX-License-Identifier: Apache-2.0
//
// PTX kernels for the golden forms, for a card (tools/golden) and for the
// engine alike.
#pragma once

#include <cstddef>
#include <string>

namespace sonde::test {

std::string goldenModuleHeader();
// A kernel f<number>(in, out, count): thread i of `count` reads its operands at
// in[slot * count + i], 64 bits each, and writes results to out likewise.
std::string goldenKernel(size_t number, const std::string& line);

}  // namespace sonde::test
