// SPDX-License-Identifier: Apache-2.0
#include "softgpu/jit/emit_context.h"

namespace sonde::softgpu::jit {

bool emitArithmetic(EmitContext&, const ptx::Instruction&) { return false; }

}  // namespace sonde::softgpu::jit
