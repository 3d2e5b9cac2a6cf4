// SPDX-License-Identifier: Apache-2.0
//
// Contract between compiled code and the helper for bulk copies, tensor copies
// and asynchronous stores (part of kAbiVersion).
#pragma once

#include <cstdint>

#include "ptx/types.h"
#include "softgpu/exec/atomic_ops.h"

namespace sonde::softgpu::exec {

enum class BulkKind : uint8_t {
  copy,         // `size` bytes
  tensorLoad,   // a box of a tensor into shared memory
  tensorStore,  // … and back
  store,        // st.async: values of registers
  fill,         // st.bulk: zeros
  mapReplace,   // tensormap.replace: `field` of a tensor map
  mapCopy,      // tensormap.cp_fenceproxy
};
enum class TensorMode : uint8_t { tile, rows4, im2col };  // rows4: tile::gather4, tile::scatter4
enum class MapField : uint8_t {
  address,
  rank,
  box,
  extent,
  stride,
  elementStride,
  elementType,
  interleave,
  swizzle,
  fill,
};

struct BulkJob {
  BulkKind kind = BulkKind::copy;
  bool signals = false;    // an mbarrier counts the bytes
  bool multicast = false;  // to the blocks named by a mask
  bool reduces = false;    // `op` instead of a plain write
  AtomicOp op = AtomicOp::add;
  ptx::ScalarType type = ptx::ScalarType::none;  // of copies that reduce and of stores
  uint8_t count = 1;                             // values of a store
  uint8_t dimensions = 0;
  TensorMode mode = TensorMode::tile;
  MapField field = MapField::address;
};

// Rows of 32 64-bit words; addresses are generic.
enum BulkRow : uint32_t {
  kBulkTo,
  kBulkFrom,  // or the tensor map
  kBulkSize,
  kBulkBarrier,
  kBulkBlocks,       // mask of ranks
  kBulkCoordinates,  // 5
  kBulkOffsets = kBulkCoordinates + 5,
  kBulkValues = kBulkOffsets + 3,  // 4
  kBulkRows = kBulkValues + 4,
};

}  // namespace sonde::softgpu::exec
