// SPDX-License-Identifier: Apache-2.0
//
// Bulk copies, tensor copies and asynchronous stores. All of them are done when
// they are issued: waiting for a group is nothing, and an mbarrier gets the
// bytes at once.
#include <cstring>

#include "softgpu/exec/bulk_job.h"
#include "softgpu/exec/cta.h"
#include "softgpu/exec/device_memory.h"
#include "softgpu/exec/faults.h"
#include "softgpu/exec/helpers.h"
#include "softgpu/exec/mbarrier.h"
#include "softgpu/exec/tensor_map.h"

namespace sonde::softgpu::exec {

namespace {

using Rows = const uint64_t (*)[kLanes];

// `bytes` of memory in one piece, of any space. Faults unless the lane may use all of them.
SONDE_DEVICE_CODE uint8_t* pieceOf(WarpState* w, uint64_t address, uint64_t bytes, uint32_t align, uint32_t lane,
                                   bool write) {
  const uint32_t only = 1u << lane;
  if (address % align)
    raiseFault(w, kErrorMisalignedAddress, only, address,
               write ? "a misaligned bulk write to" : "a misaligned bulk read of");
  const bool shared = address - w->sharedWindowBase < w->sharedWindowSize;
  if (shared) {
    const uint64_t rank = (address - w->clusterBase) >> kSharedStrideLog;
    const uint64_t offset = (address - w->clusterBase) & (kSharedStride - 1);
    if (rank < w->clusterSize && offset <= w->totalSharedBytes && bytes <= w->totalSharedBytes - offset)
      return reinterpret_cast<uint8_t*>(address + w->deviceDelta);
    raiseFault(w, kErrorIllegalAddress, only, address,
               write ? "a bulk write beyond shared memory, to" : "a bulk read beyond shared memory, of");
  }
  if (address - w->windowBase < w->windowSize && bytes <= w->windowSize - (address - w->windowBase))
    return reinterpret_cast<uint8_t*>(address + w->deviceDelta);
  const auto& allowed = w->cta->grid->request->hostAddressAllowed;
  if (address >> 32 != 0xffffffff && allowed && allowed(address, bytes)) return reinterpret_cast<uint8_t*>(address);
  if (address >> 32 == 0xffffffff) address &= 0xffffffff;
  raiseFault(w, kErrorIllegalAddress, only, address, write ? "a bulk write to" : "a bulk read of");
}

bool isShared(const WarpState* w, uint64_t address) { return address - w->sharedWindowBase < w->sharedWindowSize; }

SONDE_DEVICE_CODE void moveBytes(uint8_t* to, const uint8_t* from, uint64_t bytes) {
  // A structure, because clang takes no alignment of 1 for a vector type's own.
  struct __attribute__((packed, may_alias)) Chunk {
    uint64_t words __attribute__((vector_size(16)));
  };
  uint64_t i = 0;
  for (; i + 16 <= bytes; i += 16) *reinterpret_cast<Chunk*>(to + i) = *reinterpret_cast<const Chunk*>(from + i);
  for (; i < bytes; ++i) static_cast<volatile uint8_t*>(to)[i] = from[i];
}

// `type`s at `from` combined into memory at `to`.
SONDE_DEVICE_CODE void combine(uint8_t* to, const uint8_t* from, uint64_t bytes, bool plain, AtomicOp op,
                               ptx::ScalarType type) {
  const uint32_t each = ptx::bitsOf(type) / 8;
  for (uint64_t i = 0; i + each <= bytes; i += each) {
    uint64_t v = 0;
    for (uint32_t k = 0; k < each; ++k) v |= uint64_t{from[i + k]} << (8 * k);
    atomicOne(to + i, plain, op, type, v, 0);
  }
}

SONDE_DEVICE_CODE void signal(WarpState* w, uint64_t barrier, uint64_t bytes, uint32_t lane) {
  auto* p = reinterpret_cast<volatile uint64_t*>(pieceOf(w, barrier, 8, 8, lane, true));
  Mbarrier b(*p);
  b.bytes -= static_cast<int64_t>(bytes);
  b.settle();
  *p = b.pack();
}

// The same place in another block of the cluster.
uint64_t inBlock(const WarpState* w, uint64_t address, uint32_t rank) {
  return w->clusterBase + (uint64_t{rank} << kSharedStrideLog) + ((address - w->clusterBase) & (kSharedStride - 1));
}

SONDE_DEVICE_CODE void copyBytes(WarpState* w, const BulkJob& job, Rows rows, uint32_t l) {
  const uint64_t bytes = rows[kBulkSize][l];
  if (bytes == 0) return;  // no address matters then, as on a card
  if (bytes % 16)
    raiseFault(w, kErrorMisalignedAddress, 1u << l, bytes, "a bulk copy of a size that is not a multiple of 16:");
  const uint8_t* from = pieceOf(w, rows[kBulkFrom][l], bytes, 16, l, false);
  auto one = [&](uint64_t to, uint64_t barrier) SONDE_DEVICE_CODE {
    uint8_t* at = pieceOf(w, to, bytes, 16, l, true);
    if (job.reduces)
      combine(at, from, bytes, isShared(w, to), job.op, job.type);
    else
      moveBytes(at, from, bytes);
    if (job.signals) signal(w, barrier, bytes, l);
  };
  if (!job.multicast) {
    one(rows[kBulkTo][l], rows[kBulkBarrier][l]);
    return;
  }
  for (uint32_t blocks = rows[kBulkBlocks][l] & 0xffff; blocks; blocks &= blocks - 1) {
    const auto rank = static_cast<uint32_t>(__builtin_ctz(blocks));
    one(inBlock(w, rows[kBulkTo][l], rank), inBlock(w, rows[kBulkBarrier][l], rank));
  }
}

ptx::ScalarType elementType(uint8_t dataType) {
  using enum ptx::ScalarType;
  constexpr ptx::ScalarType types[] = {u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32, f32, f32};
  return dataType < std::size(types) ? types[dataType] : none;
}

// One row of a box between tensor and shared memory: elements from `x` on, of
// which some may lie outside the tensor.
class TensorCopy {
 public:
  SONDE_DEVICE_CODE TensorCopy(WarpState* w, const BulkJob& job, Rows rows, uint32_t lane)
      : w_(w), job_(job), lane_(lane) {
    const uint64_t at = rows[kBulkFrom][lane];
    moveBytes(reinterpret_cast<uint8_t*>(&map), pieceOf(w, at, 128, 64, lane, false), sizeof map);
    element_ = tensorElementBytes(map.dataType);
    bool known =
        map.magic == TensorMap::kMagic && map.rank > 0 && map.rank <= 5 && element_ != 0 && map.channelsPerPixel <= 256;
    for (unsigned d = 0; known && d < map.rank; ++d)
      known = map.box[d] > 0 && map.box[d] <= 256 && map.elementStride[d] > 0;
    if (!known)
      raiseFault(w, kErrorIllegalInstruction, 1u << lane, at,
                 "a tensor copy with something that is not a tensor map of cuTensorMapEncode*");
    if (job.dimensions != map.rank)
      raiseFault(w, kErrorIllegalInstruction, 1u << lane, at,
                 "a tensor copy with another number of dimensions than the tensor map has");
    if ((job.mode == TensorMode::im2col) != (map.mode == TensorMap::Mode::im2col))
      raiseFault(w, kErrorIllegalInstruction, 1u << lane, at,
                 "a tensor copy in a mode (tile or im2col) that the tensor map is not for");
  }

  // Starts writing (or reading) at this place of shared memory.
  SONDE_DEVICE_CODE void start(uint64_t shared) {
    shared_ = shared;
    if (shared % 128)
      raiseFault(w_, kErrorMisalignedAddress, 1u << lane_, shared,
                 "a tensor copy needs shared memory aligned to 128 bytes:");
  }
  // `n` elements from coordinate x; `base`: byte address of the row's element 0, `inside`: the row is in the tensor.
  SONDE_DEVICE_CODE void row(int64_t x, uint32_t n, uint64_t base, bool inside) {
    const uint32_t bytes = n * element_;
    const uint32_t span = map.swizzle == TensorMap::Swizzle::none ? 16u : 16u << static_cast<uint32_t>(map.swizzle);
    const uint32_t pitch = (bytes + span - 1) / span * span;
    uint32_t first = 0, end = 0;
    if (inside) {
      first = x < 0 ? static_cast<uint32_t>(-x < n ? -x : n) : 0;
      const int64_t room = static_cast<int64_t>(map.extent(0)) - x;
      end = room < 0 ? 0 : room < n ? static_cast<uint32_t>(room) : n;
      if (end < first) end = first;
    }
    const uint64_t at = base + static_cast<uint64_t>((x + first) * static_cast<int64_t>(element_));
    uint8_t* global = end > first ? pieceOf(w_, at, uint64_t{end - first} * element_, element_, lane_,
                                            job_.kind == BulkKind::tensorStore)
                                  : nullptr;
    if (job_.kind == BulkKind::tensorLoad) {
      for (uint32_t i = 0; i < n; ++i) fill(i);
      if (global) moveBytes(buffer_ + first * element_, global, uint64_t{end - first} * element_);
      if (map.dataType == 10 || map.dataType == 12) flush(n);
      for (uint32_t i = 0; i < bytes; i += 16) moveBytes(chunk(i, true), buffer_ + i, bytes - i < 16 ? bytes - i : 16);
    } else if (global) {
      for (uint32_t i = 0; i < bytes; i += 16) moveBytes(buffer_ + i, chunk(i, false), bytes - i < 16 ? bytes - i : 16);
      const uint8_t* from = buffer_ + first * element_;
      if (job_.reduces)
        combine(global, from, uint64_t{end - first} * element_, false, job_.op, elementType(map.dataType));
      else
        moveBytes(global, from, uint64_t{end - first} * element_);
    }
    shared_ += pitch;
    moved += bytes;
  }

  TensorMap map;
  uint64_t moved = 0;

 private:
  // 16 bytes of shared memory, where the swizzle puts them.
  SONDE_DEVICE_CODE uint8_t* chunk(uint32_t at, bool write) {
    uint64_t offset = (shared_ + at - w_->clusterBase) & (kSharedStride - 1);
    const uint64_t base = shared_ + at - offset;
    const uint64_t bits = (1u << static_cast<uint32_t>(map.swizzle)) - 1;
    offset ^= (offset >> 7 & bits) << 4;
    return pieceOf(w_, base + offset, 16, 1, lane_, write);
  }
  SONDE_DEVICE_CODE void fill(uint32_t i) {
    uint64_t v = 0;
    if (map.fillNan) switch (map.dataType) {
        case 6:
        case 9: v = 0x7fff; break;
        case 7:
        case 10:
        case 11:
        case 12: v = 0x7fffffff; break;
        case 8: v = 0x7fffffffffffffff; break;
        default: break;
      }
    for (uint32_t k = 0; k < element_; ++k) buffer_[i * element_ + k] = static_cast<uint8_t>(v >> (8 * k));
  }
  SONDE_DEVICE_CODE void flush(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i)
      if (!(buffer_[4 * i + 3] & 0x7f) && !(buffer_[4 * i + 2] & 0x80)) {
        buffer_[4 * i] = buffer_[4 * i + 1] = buffer_[4 * i + 2] = 0;
        buffer_[4 * i + 3] &= 0x80;
      }
  }

  WarpState* w_;
  const BulkJob& job_;
  uint32_t lane_, element_ = 1;
  uint64_t shared_ = 0;
  alignas(16) uint8_t buffer_[256 * 8];
};

// The rows of a box, the fastest dimension first.
SONDE_DEVICE_CODE void tiledRows(TensorCopy& copy, const int64_t* at) {
  const TensorMap& m = copy.map;
  uint32_t count[5] = {m.box[0], 1, 1, 1, 1}, i[5] = {};
  for (unsigned d = 1; d < m.rank; ++d) count[d] = (m.box[d] + m.elementStride[d] - 1u) / m.elementStride[d];
  for (;;) {
    bool inside = true;
    uint64_t base = m.address;
    for (unsigned d = 1; d < m.rank; ++d) {
      const int64_t c = at[d] + int64_t{i[d]} * m.elementStride[d];
      inside &= c >= 0 && static_cast<uint64_t>(c) < m.extent(d);
      base += static_cast<uint64_t>(c) * m.stride[d - 1];
    }
    copy.row(at[0], count[0], base, inside);
    unsigned d = 1;
    while (d < m.rank && ++i[d] == count[d]) i[d++] = 0;
    if (d >= m.rank) return;
  }
}

// tile::gather4 and scatter4: four rows of a matrix, each with a coordinate of its own.
SONDE_DEVICE_CODE void fourRows(TensorCopy& copy, const int64_t* at) {
  const TensorMap& m = copy.map;
  for (unsigned r = 1; r <= 4; ++r)
    copy.row(at[0], m.box[0], m.address + static_cast<uint64_t>(at[r]) * m.stride[0],
             at[r] >= 0 && static_cast<uint64_t>(at[r]) < m.extent(1));
}

// Pixels one after the other through the bounding box, each with all its channels.
SONDE_DEVICE_CODE void im2colRows(TensorCopy& copy, const int64_t* at, const int64_t* offsets) {
  const TensorMap& m = copy.map;
  const unsigned spatial = m.rank - 2u;
  int64_t p[5];
  for (unsigned d = 0; d < m.rank; ++d) p[d] = at[d];
  for (uint32_t n = 0; n < m.pixelsPerColumn; ++n) {
    bool inside = true;
    uint64_t base = m.address;
    for (unsigned d = 1; d < m.rank; ++d) {
      const int64_t c = p[d] + (d <= spatial ? offsets[d - 1] : 0);
      inside &= c >= 0 && static_cast<uint64_t>(c) < m.extent(d);
      base += static_cast<uint64_t>(c) * m.stride[d - 1];
    }
    copy.row(at[0], m.channelsPerPixel, base, inside);
    for (unsigned d = 1; d < m.rank; ++d) {
      if (d > spatial) {
        ++p[d];
        break;
      }
      p[d] += m.elementStride[d];
      if (p[d] < static_cast<int64_t>(m.extent(d)) + m.upperCorner[d - 1]) break;
      p[d] = m.lowerCorner[d - 1];
    }
  }
}

SONDE_DEVICE_CODE void copyTensor(WarpState* w, const BulkJob& job, Rows rows, uint32_t l) {
  TensorCopy copy(w, job, rows, l);
  int64_t at[5], offsets[3];
  for (unsigned i = 0; i < 5; ++i) at[i] = static_cast<int32_t>(rows[kBulkCoordinates + i][l]);
  for (unsigned i = 0; i < 3; ++i) offsets[i] = static_cast<int64_t>(rows[kBulkOffsets + i][l] & 0xffff);
  auto one = [&](uint64_t shared, uint64_t barrier) SONDE_DEVICE_CODE {
    copy.start(shared);
    copy.moved = 0;
    if (job.mode == TensorMode::rows4)
      fourRows(copy, at);
    else if (job.mode == TensorMode::im2col)
      im2colRows(copy, at, offsets);
    else
      tiledRows(copy, at);
    if (job.signals) signal(w, barrier, copy.moved, l);
  };
  if (!job.multicast) {
    one(rows[kBulkTo][l], rows[kBulkBarrier][l]);
    return;
  }
  for (uint32_t blocks = rows[kBulkBlocks][l] & 0xffff; blocks; blocks &= blocks - 1) {
    const auto rank = static_cast<uint32_t>(__builtin_ctz(blocks));
    one(inBlock(w, rows[kBulkTo][l], rank), inBlock(w, rows[kBulkBarrier][l], rank));
  }
}

SONDE_DEVICE_CODE void storeValues(WarpState* w, const BulkJob& job, Rows rows, uint32_t l) {
  const uint32_t each = ptx::bitsOf(job.type) / 8, bytes = each * job.count;
  const uint64_t to = rows[kBulkTo][l];
  uint8_t* at = pieceOf(w, to, bytes, bytes, l, true);
  for (uint32_t i = 0; i < job.count; ++i) {
    const uint64_t v = rows[kBulkValues + i][l];
    if (job.reduces) {
      atomicOne(at + i * each, isShared(w, to), job.op, job.type, v, 0);
      continue;
    }
    for (uint32_t k = 0; k < each; ++k)
      static_cast<volatile uint8_t*>(at)[i * each + k] = static_cast<uint8_t>(v >> (8 * k));
  }
  if (job.signals) signal(w, rows[kBulkBarrier][l], bytes, l);
}

SONDE_DEVICE_CODE void replaceField(WarpState* w, const BulkJob& job, Rows rows, uint32_t l) {
  const uint64_t address = rows[kBulkTo][l], v = rows[kBulkValues][l], index = rows[kBulkSize][l];
  uint8_t* at = pieceOf(w, address, 128, 64, l, true);
  TensorMap map;
  moveBytes(reinterpret_cast<uint8_t*>(&map), at, sizeof map);
  if (map.magic != TensorMap::kMagic)
    raiseFault(w, kErrorIllegalInstruction, 1u << l, address,
               "tensormap.replace in something that is not a tensor map of cuTensorMapEncode*");
  // The instruction's element types: as CUtensorMapDataType, but for some.
  constexpr uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};
  bool good = index < 5;
  if (good) switch (job.field) {
      case MapField::address: map.address = v; break;
      case MapField::rank: map.rank = static_cast<uint8_t>(v + 1); break;
      case MapField::box: map.box[index] = static_cast<uint16_t>(v); break;
      case MapField::extent: map.lastIndex[index] = static_cast<uint32_t>(v - 1); break;
      case MapField::stride:
        good = index < 4;
        if (good) map.stride[index] = v;
        break;
      case MapField::elementStride: map.elementStride[index] = static_cast<uint8_t>(v); break;
      case MapField::elementType:
        good = v < std::size(types);
        if (good) map.dataType = types[v];
        break;
      case MapField::interleave: good = v == 0; break;
      case MapField::swizzle:
        good = v <= 3;
        if (good) map.swizzle = static_cast<TensorMap::Swizzle>(v);
        break;
      case MapField::fill: map.fillNan = v != 0; break;
    }
  if (!good)
    raiseFault(w, kErrorIllegalInstruction, 1u << l, v, "tensormap.replace with a value that is not supported:");
  moveBytes(at, reinterpret_cast<const uint8_t*>(&map), sizeof map);
}

SONDE_DEVICE_CODE void bulk(WarpState* w, uint32_t mask, const BulkJob* job, Rows rows) {
  for (uint32_t m = mask; m; m &= m - 1) {
    const auto l = static_cast<uint32_t>(__builtin_ctz(m));
    switch (job->kind) {
      case BulkKind::copy: copyBytes(w, *job, rows, l); break;
      case BulkKind::tensorLoad:
      case BulkKind::tensorStore: copyTensor(w, *job, rows, l); break;
      case BulkKind::store: storeValues(w, *job, rows, l); break;
      case BulkKind::fill: {
        const uint64_t bytes = rows[kBulkSize][l];
        auto* at = static_cast<volatile uint8_t*>(pieceOf(w, rows[kBulkTo][l], bytes, 8, l, true));
        for (uint64_t i = 0; i < bytes; ++i) at[i] = 0;
        break;
      }
      case BulkKind::mapReplace: replaceField(w, *job, rows, l); break;
      case BulkKind::mapCopy:
        if (l == static_cast<uint32_t>(__builtin_ctz(mask)))  // the warp's together
          moveBytes(pieceOf(w, rows[kBulkTo][l], 128, 64, l, true), pieceOf(w, rows[kBulkFrom][l], 128, 64, l, false),
                    128);
        break;
    }
  }
}

}  // namespace

std::span<const jit::RuntimeSymbol> bulkHelpers() {
  static const jit::RuntimeSymbol symbols[] = {{"sonde_bulk", reinterpret_cast<void*>(&bulk)}};
  return symbols;
}

}  // namespace sonde::softgpu::exec
