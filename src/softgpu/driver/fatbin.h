// SPDX-License-Identifier: Apache-2.0
//
// What an application hands to cuModuleLoadData and friends: PTX text, a fat
// binary, the wrapper that a compiler puts around one, or machine code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "softgpu/driver/cuda_api.h"

namespace sonde::softgpu::driver {

struct LoadedImage {
  CUresult error = CUDA_SUCCESS;
  std::string message;             // what was wrong and what to do about it
  std::vector<std::string> texts;  // PTX; several are to be linked
};

// `bytes` 0: not known, the image says it itself. `capability`: 90 for 9.0.
LoadedImage readImage(const void* image, size_t bytes, uint32_t capability);

// A fat binary that holds these texts, all to be linked when it is loaded.
std::string packTexts(const std::vector<std::string>& texts, uint32_t capability);

}  // namespace sonde::softgpu::driver
