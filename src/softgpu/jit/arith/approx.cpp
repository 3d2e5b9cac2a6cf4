// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/arith/lower.h"

namespace sonde::softgpu::jit::arith {

Value* Lower::approxSin(Value*, bool) { unsupported("not there yet"); }
Value* Lower::approxEx2(Value*) { unsupported("not there yet"); }
Value* Lower::approxLg2(Value*) { unsupported("not there yet"); }
Value* Lower::approxTanh(Value*) { unsupported("not there yet"); }
bool Lower::approximate() { return false; }
bool Lower::video() { return false; }

}  // namespace sonde::softgpu::jit::arith
