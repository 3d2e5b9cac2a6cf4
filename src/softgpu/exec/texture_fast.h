// SPDX-License-Identifier: Apache-2.0
//
// The everyday reads of textures, a warp at a time: one texture for all lanes,
// one level, one to three axes. The same values, bit by bit, as lane by lane.
#pragma once

#include "softgpu/exec/texture.h"
#include "softgpu/exec/warp_state.h"

namespace sonde::softgpu::exec {

// out: four rows of 32 words, as the helper has them. False: not such a read, nothing was done.
bool sampleWarp(const WarpState& warp, const TextureJob& job, const TextureDescriptor& t, const uint32_t* words,
                uint32_t mask, uint32_t* out);

}  // namespace sonde::softgpu::exec
