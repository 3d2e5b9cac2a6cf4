// SPDX-License-Identifier: Apache-2.0
//
// What a CUtensorMap holds on the software GPU: an encoding of our own, which
// the driver's cuTensorMapEncode* write and bulk tensor copies read.
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

struct TensorMap {
  static constexpr uint32_t kMagic = 0x50414d54;  // "TMAP"
  enum class Mode : uint8_t { tiled, im2col };
  enum class Swizzle : uint8_t { none, b32, b64, b128 };

  uint32_t magic = kMagic;
  uint8_t dataType = 0;  // CUtensorMapDataType
  uint8_t rank = 0;      // 1 to 5, fastest dimension first
  Mode mode = Mode::tiled;
  Swizzle swizzle = Swizzle::none;
  bool fillNan = false;  // outside the tensor; else zero
  uint8_t elementStride[5] = {1, 1, 1, 1, 1};
  uint16_t box[5] = {1, 1, 1, 1, 1};  // tiled
  uint32_t lastIndex[5] = {};         // extent - 1
  uint64_t address = 0;
  uint64_t stride[4] = {};                           // bytes, of dimensions 1 to 4
  int16_t lowerCorner[3] = {}, upperCorner[3] = {};  // im2col, of the dimensions between channel and image
  uint16_t channelsPerPixel = 0, pixelsPerColumn = 0;

  uint64_t extent(unsigned dimension) const { return uint64_t{lastIndex[dimension]} + 1; }
};
static_assert(sizeof(TensorMap) <= 128);

// Of a CUtensorMapDataType; 0: one that the software GPU does not have.
constexpr uint32_t tensorElementBytes(uint8_t dataType) {
  switch (dataType) {
    case 0: return 1;
    case 1:
    case 6:
    case 9: return 2;
    case 2:
    case 3:
    case 7:
    case 10:
    case 11:
    case 12: return 4;
    case 4:
    case 5:
    case 8: return 8;
    default: return 0;
  }
}

}  // namespace sonde::softgpu::exec
