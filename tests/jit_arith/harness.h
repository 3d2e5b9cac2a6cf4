// SPDX-License-Identifier: Apache-2.0
//
// Compiles single PTX instructions with emitArithmetic and runs them on given
// operands: as scalars and as 32 lanes, for the host and for an AVX2 machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "inputs.h"

namespace sonde::test {

// An instruction as text: `mnemonic` as in PTX, operands separated by blanks.
// Inputs are a … f, outputs D, E, F, G (slots 0, 1, 2, 3), `_` a sink, #n an
// integer (#0f3f800000 an f32), {a,b} a vector, D|E a pair, !a a negated
// predicate, -a a minus, a.b2 a selector. The carry flag is input slot 6 and
// output slot 6.
struct Form {
  std::string mnemonic;
  std::string operands;
};

enum class Machine : uint8_t { hostVector, hostScalar, avx2Vector, avx2Scalar };
inline constexpr Machine kMachines[] = {Machine::hostVector, Machine::hostScalar, Machine::avx2Vector,
                                        Machine::avx2Scalar};
const char* name(Machine m);

// Compiled code: reads in[slot * 32 + lane], writes out likewise.
using Code = void (*)(const uint64_t* in, uint64_t* out);
// Throws std::runtime_error when the instruction is not lowered.
Code compile(const Form& form, Machine machine);
// Runs all inputs through one machine's code.
std::vector<Slots> run(const Form& form, Machine machine, const std::vector<Slots>& inputs);

// What the reference says: the result slots of one lane.
using Reference = std::function<Slots(const Slots& in)>;
// Compares, on every machine, the results with the reference; the first few
// differences become test failures. `equal` compares one slot's value.
using Equal = std::function<bool(uint64_t got, uint64_t want)>;
void check(const Form& form, const std::vector<Slots>& inputs, const Reference& reference,
           const Equal& equal = nullptr);

}  // namespace sonde::test
