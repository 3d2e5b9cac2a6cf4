// SPDX-License-Identifier: Apache-2.0
//
// Tensor maps for bulk tensor copies, in the software GPU's own encoding
// (exec/tensor_map.h).
#include <cstring>

#include "softgpu/driver/driver.h"
#include "softgpu/exec/tensor_map.h"

namespace sonde::softgpu::driver {
namespace {

using exec::TensorMap;

// What tiled and im2col maps have in common.
CUresult describeTensor(TensorMap& map, const CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank,
                        const void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                        const cuuint32_t* elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (!to || reinterpret_cast<uintptr_t>(to) % 64 || !extents || !elementStrides || (rank > 1 && !strides))
    return CUDA_ERROR_INVALID_VALUE;
  if (rank < 1 || rank > 5 || static_cast<unsigned>(type) > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B ||
      static_cast<unsigned>(interleave) > CU_TENSOR_MAP_INTERLEAVE_32B ||
      static_cast<unsigned>(swizzle) > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B ||
      static_cast<unsigned>(promotion) > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
      static_cast<unsigned>(fill) > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
    return CUDA_ERROR_INVALID_VALUE;
  // Not there yet: interleaved layouts, types below a byte, swizzles of other grains than 16 bytes.
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B ||
      exec::tensorElementBytes(static_cast<uint8_t>(type)) == 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  const auto at = reinterpret_cast<uint64_t>(address);
  if (at == 0 || at % 16) return CUDA_ERROR_INVALID_VALUE;
  const bool integer = type <= CU_TENSOR_MAP_DATA_TYPE_INT64;
  if (integer && fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) return CUDA_ERROR_INVALID_VALUE;
  map.dataType = static_cast<uint8_t>(type);
  map.rank = static_cast<uint8_t>(rank);
  map.swizzle = static_cast<TensorMap::Swizzle>(swizzle);
  map.fillNan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  map.address = at;
  for (cuuint32_t d = 0; d < rank; d++) {
    if (extents[d] == 0 || extents[d] > uint64_t{1} << 32 || elementStrides[d] == 0 || elementStrides[d] > 8)
      return CUDA_ERROR_INVALID_VALUE;
    map.lastIndex[d] = static_cast<uint32_t>(extents[d] - 1);
    map.elementStride[d] = static_cast<uint8_t>(elementStrides[d]);
    if (d == 0) continue;
    const uint64_t stride = strides[d - 1];
    if (stride == 0 || stride % 16 || stride >= uint64_t{1} << 40) return CUDA_ERROR_INVALID_VALUE;
    map.stride[d - 1] = stride;
  }
  return CUDA_SUCCESS;
}

// The innermost row of a box in shared memory.
CUresult checkRow(const TensorMap& map, uint64_t elements) {
  const uint64_t bytes = elements * exec::tensorElementBytes(map.dataType);
  if (bytes % 16) return CUDA_ERROR_INVALID_VALUE;
  if (map.swizzle != TensorMap::Swizzle::none && bytes > 16u << static_cast<unsigned>(map.swizzle))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

void write(CUtensorMap* to, const TensorMap& map) {
  std::memset(to, 0, sizeof *to);
  std::memcpy(to, &map, sizeof map);
}

}  // namespace

DRIVER_API(cuTensorMapEncodeTiled)
(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void* globalAddress,
 const cuuint64_t* globalDim, const cuuint64_t* globalStrides, const cuuint32_t* boxDim,
 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
 CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  if (!boxDim) return CUDA_ERROR_INVALID_VALUE;
  TensorMap map;
  if (const CUresult e = describeTensor(map, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                                        globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill))
    return e;
  for (cuuint32_t d = 0; d < tensorRank; d++) {
    if (boxDim[d] == 0 || boxDim[d] > 256) return CUDA_ERROR_INVALID_VALUE;
    map.box[d] = static_cast<uint16_t>(boxDim[d]);
  }
  if (const CUresult e = checkRow(map, map.box[0])) return e;
  write(tensorMap, map);
  return CUDA_SUCCESS;
}

DRIVER_API(cuTensorMapEncodeIm2col)
(CUtensorMap* tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void* globalAddress,
 const cuuint64_t* globalDim, const cuuint64_t* globalStrides, const int* pixelBoxLowerCorner,
 const int* pixelBoxUpperCorner, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
 const cuuint32_t* elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
 CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
  if (!pixelBoxLowerCorner || !pixelBoxUpperCorner || tensorRank < 3) return CUDA_ERROR_INVALID_VALUE;
  TensorMap map;
  if (const CUresult e = describeTensor(map, tensorMap, tensorDataType, tensorRank, globalAddress, globalDim,
                                        globalStrides, elementStrides, interleave, swizzle, l2Promotion, oobFill))
    return e;
  if (channelsPerPixel == 0 || channelsPerPixel > 256 || pixelsPerColumn == 0 || pixelsPerColumn > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  const int most = tensorRank == 3 ? 32768 : tensorRank == 4 ? 128 : 16;
  for (cuuint32_t d = 0; d + 2 < tensorRank; d++) {
    for (const int corner : {pixelBoxLowerCorner[d], pixelBoxUpperCorner[d]})
      if (corner < -most || corner >= most) return CUDA_ERROR_INVALID_VALUE;
    map.lowerCorner[d] = static_cast<int16_t>(pixelBoxLowerCorner[d]);
    map.upperCorner[d] = static_cast<int16_t>(pixelBoxUpperCorner[d]);
  }
  map.mode = TensorMap::Mode::im2col;
  map.channelsPerPixel = static_cast<uint16_t>(channelsPerPixel);
  map.pixelsPerColumn = static_cast<uint16_t>(pixelsPerColumn);
  if (const CUresult e = checkRow(map, channelsPerPixel)) return e;
  write(tensorMap, map);
  return CUDA_SUCCESS;
}

DRIVER_API(cuTensorMapReplaceAddress)(CUtensorMap* tensorMap, void* globalAddress) {
  const auto at = reinterpret_cast<uint64_t>(globalAddress);
  if (!tensorMap || at == 0 || at % 16) return CUDA_ERROR_INVALID_VALUE;
  TensorMap map;
  std::memcpy(static_cast<void*>(&map), tensorMap, sizeof map);
  if (map.magic != TensorMap::kMagic) return CUDA_ERROR_INVALID_VALUE;
  map.address = at;
  write(tensorMap, map);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
