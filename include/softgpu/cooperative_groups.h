/* SPDX-License-Identifier: Apache-2.0
 *
 * Cooperative groups: the block, tiles of it, the lanes that happen to be
 * together, and the whole grid of a cooperative launch.
 */
#ifndef _COOPERATIVE_GROUPS_H_
#define _COOPERATIVE_GROUPS_H_

#include "cuda_runtime.h"

#if defined(__cplusplus) && defined(__CUDA__) && defined(__clang__)

#define SONDE_CG __device__ __inline__

namespace cooperative_groups {

namespace sonde_cg {

SONDE_CG unsigned threadInBlock() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
SONDE_CG unsigned threadsInBlock() { return blockDim.x * blockDim.y * blockDim.z; }
/* The lanes below this one. */
SONDE_CG unsigned lanesBelow() {
  unsigned mask;
  __asm__("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

/* Where a cooperative launch keeps its barrier: the driver leaves the address
 * in two environment registers. */
struct GridWorkspace {
  unsigned size;
  unsigned barrier;
};
SONDE_CG GridWorkspace *gridWorkspace() {
  unsigned high, low;
  __asm__ __volatile__("mov.u32 %0, %%envreg1;" : "=r"(high));
  __asm__ __volatile__("mov.u32 %0, %%envreg2;" : "=r"(low));
  return (GridWorkspace *)((unsigned long long)high << 32 | low);
}

/* Values of any size cross lanes word by word. */
template <typename T, typename Move>
SONDE_CG T moveWords(const T &value, Move move) {
  constexpr unsigned count = (sizeof(T) + 3) / 4;
  unsigned words[count] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned i = 0; i < count; ++i) words[i] = move(words[i]);
  T result;
  __builtin_memcpy(&result, words, sizeof(T));
  return result;
}

}  // namespace sonde_cg

class thread_group;

/* ------------------------------------------------------------ the block -- */

class thread_block {
 public:
  static constexpr unsigned int _group_id = 1;
  SONDE_CG static void sync() { __syncthreads(); }
  SONDE_CG static unsigned int thread_rank() { return sonde_cg::threadInBlock(); }
  SONDE_CG static unsigned int num_threads() { return sonde_cg::threadsInBlock(); }
  SONDE_CG static unsigned int size() { return num_threads(); }
  SONDE_CG static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  SONDE_CG static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  SONDE_CG static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  SONDE_CG static dim3 group_dim() { return dim_threads(); }
  struct arrival_token {};
  SONDE_CG static arrival_token barrier_arrive() { return arrival_token(); }
  SONDE_CG static void barrier_wait(arrival_token &&) { __syncthreads(); }
  SONDE_CG static void barrier_wait() { __syncthreads(); }
};
SONDE_CG thread_block this_thread_block() { return thread_block(); }

/* -------------------------------------------------------------- the grid -- */

class grid_group {
 public:
  SONDE_CG bool is_valid() const { return sonde_cg::gridWorkspace() != nullptr; }
  /* Blocks count themselves in; the first adds what flips the top bit when all
   * have come, so that the counter needs no reset between barriers. */
  SONDE_CG void sync() const {
    sonde_cg::GridWorkspace *workspace = sonde_cg::gridWorkspace();
    if (workspace == nullptr) __trap();  // not a cooperative launch
    __syncthreads();
    if (sonde_cg::threadInBlock() == 0) {
      unsigned blocks = (unsigned)num_blocks();
      unsigned own = block_rank() == 0 ? 0x80000000u - (blocks - 1) : 1u;
      volatile unsigned *barrier = &workspace->barrier;
      __threadfence();
      unsigned before = atomicAdd(&workspace->barrier, own);
      while (((before ^ *barrier) & 0x80000000u) == 0) {
      }
      __threadfence();
    }
    __syncthreads();
  }
  SONDE_CG static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  SONDE_CG static unsigned long long block_rank() {
    return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  SONDE_CG static dim3 dim_blocks() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  SONDE_CG static dim3 group_dim() { return dim_blocks(); }
  SONDE_CG static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  SONDE_CG static unsigned long long thread_rank() {
    return block_rank() * sonde_cg::threadsInBlock() + sonde_cg::threadInBlock();
  }
  SONDE_CG static unsigned long long num_threads() { return num_blocks() * sonde_cg::threadsInBlock(); }
  SONDE_CG static unsigned long long size() { return num_threads(); }
};
SONDE_CG grid_group this_grid() { return grid_group(); }

/* ---------------------------------------------------- lanes of one warp -- */

/* Some lanes of a warp, ranked by lane number. */
class coalesced_group {
 public:
  SONDE_CG explicit coalesced_group(unsigned mask, unsigned metaRank = 0, unsigned metaSize = 1)
      : mask_(mask), metaRank_(metaRank), metaSize_(metaSize) {}
  SONDE_CG void sync() const { __syncwarp(mask_); }
  SONDE_CG unsigned int num_threads() const { return __popc(mask_); }
  SONDE_CG unsigned int size() const { return num_threads(); }
  SONDE_CG unsigned int thread_rank() const { return __popc(mask_ & sonde_cg::lanesBelow()); }
  SONDE_CG unsigned int meta_group_rank() const { return metaRank_; }
  SONDE_CG unsigned int meta_group_size() const { return metaSize_; }
  SONDE_CG unsigned lanes() const { return mask_; }

  template <typename T>
  SONDE_CG T shfl(T value, int rank) const {
    int lane = laneOf((unsigned)rank);
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_sync(mask_, w, lane); });
  }
  template <typename T>
  SONDE_CG T shfl_down(T value, unsigned delta) const {
    unsigned rank = thread_rank() + delta;
    int lane = rank < size() ? laneOf(rank) : (int)sonde_lane_id();
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_sync(mask_, w, lane); });
  }
  template <typename T>
  SONDE_CG T shfl_up(T value, unsigned delta) const {
    unsigned rank = thread_rank();
    int lane = rank >= delta ? laneOf(rank - delta) : (int)sonde_lane_id();
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_sync(mask_, w, lane); });
  }
  SONDE_CG int any(int predicate) const { return (int)(ballot(predicate) != 0); }
  SONDE_CG int all(int predicate) const { return __ballot_sync(mask_, predicate) == mask_; }
  /* By rank: bit r is the vote of the thread of rank r. */
  SONDE_CG unsigned int ballot(int predicate) const { return packed(__ballot_sync(mask_, predicate)); }
  template <typename T>
  SONDE_CG unsigned int match_any(T value) const {
    return packed(__match_any_sync(mask_, value));
  }
  template <typename T>
  SONDE_CG unsigned int match_all(T value, int &predicate) const {
    return packed(__match_all_sync(mask_, value, &predicate));
  }

 private:
  SONDE_CG int laneOf(unsigned rank) const {
    if (mask_ == 0xffffffffu) return (int)(rank & 31);
    return (int)__fns(mask_, 0, (int)rank + 1);
  }
  SONDE_CG unsigned packed(unsigned lanes) const {
    if (mask_ == 0xffffffffu) return lanes;
    unsigned result = 0, rank = 0;
    for (unsigned left = mask_; left != 0; left &= left - 1, ++rank)
      if (lanes & left & (0u - left)) result |= 1u << rank;
    return result;
  }
  unsigned mask_, metaRank_, metaSize_;
};

SONDE_CG coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

/* -------------------------------------------------------------------- tiles -- */

/* A tile of 1 to 32 threads, a power of two: part of one warp. */
template <unsigned int Size, typename ParentT = void>
class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "tiles have 1, 2, 4, 8, 16 or 32 threads");

 public:
  SONDE_CG thread_block_tile() = default;
  SONDE_CG explicit thread_block_tile(unsigned metaRank, unsigned metaSize) : metaRank_(metaRank), metaSize_(metaSize) {}
  template <typename OtherParent>
  SONDE_CG thread_block_tile(const thread_block_tile<Size, OtherParent> &other)
      : metaRank_(other.meta_group_rank()), metaSize_(other.meta_group_size()) {}
  SONDE_CG void sync() const { __syncwarp(mask()); }
  SONDE_CG static unsigned int thread_rank() { return sonde_cg::threadInBlock() & (Size - 1); }
  SONDE_CG static constexpr unsigned int num_threads() { return Size; }
  SONDE_CG static constexpr unsigned int size() { return Size; }
  SONDE_CG unsigned int meta_group_rank() const { return metaRank_; }
  SONDE_CG unsigned int meta_group_size() const { return metaSize_; }
  SONDE_CG unsigned lanes() const { return mask(); }

  template <typename T>
  SONDE_CG T shfl(T value, int rank) const {
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_sync(mask(), w, rank, (int)Size); });
  }
  template <typename T>
  SONDE_CG T shfl_down(T value, unsigned delta) const {
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_down_sync(mask(), w, delta, (int)Size); });
  }
  template <typename T>
  SONDE_CG T shfl_up(T value, unsigned delta) const {
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_up_sync(mask(), w, delta, (int)Size); });
  }
  template <typename T>
  SONDE_CG T shfl_xor(T value, unsigned lanes) const {
    return sonde_cg::moveWords(value, [&](unsigned w) { return __shfl_xor_sync(mask(), w, (int)lanes, (int)Size); });
  }
  SONDE_CG int any(int predicate) const { return __any_sync(mask(), predicate); }
  SONDE_CG int all(int predicate) const { return __all_sync(mask(), predicate); }
  SONDE_CG unsigned int ballot(int predicate) const { return __ballot_sync(mask(), predicate) >> shift() & low(); }
  template <typename T>
  SONDE_CG unsigned int match_any(T value) const {
    return __match_any_sync(mask(), value) >> shift() & low();
  }
  template <typename T>
  SONDE_CG unsigned int match_all(T value, int &predicate) const {
    return __match_all_sync(mask(), value, &predicate) >> shift() & low();
  }

 private:
  SONDE_CG static constexpr unsigned low() { return Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1; }
  SONDE_CG static unsigned shift() { return sonde_lane_id() & ~(Size - 1); }
  SONDE_CG static unsigned mask() { return low() << shift(); }
  unsigned metaRank_ = 0, metaSize_ = 1;
};

template <unsigned int Size>
SONDE_CG thread_block_tile<Size, thread_block> tiled_partition(const thread_block &) {
  return thread_block_tile<Size, thread_block>(sonde_cg::threadInBlock() / Size,
                                               (sonde_cg::threadsInBlock() + Size - 1) / Size);
}
template <unsigned int Size, unsigned int ParentSize, typename GrandParent>
SONDE_CG thread_block_tile<Size, thread_block_tile<ParentSize, GrandParent>> tiled_partition(
    const thread_block_tile<ParentSize, GrandParent> &parent) {
  static_assert(Size <= ParentSize, "a tile is no larger than what it is a part of");
  return thread_block_tile<Size, thread_block_tile<ParentSize, GrandParent>>(parent.thread_rank() / Size,
                                                                            ParentSize / Size);
}
/* Consecutive ranks of a coalesced group. */
SONDE_CG coalesced_group tiled_partition(const coalesced_group &parent, unsigned int size) {
  unsigned rank = parent.thread_rank() / size, first = rank * size, mask = 0, position = 0;
  for (unsigned left = parent.lanes(); left != 0; left &= left - 1, ++position)
    if (position >= first && position < first + size) mask |= left & (0u - left);
  return coalesced_group(mask, rank, (parent.size() + size - 1) / size);
}

/* Tiles of several warps: their barriers and exchanges go through memory that
 * the block's threads share. */
template <unsigned int MaxBlockSize = 1024>
struct block_tile_memory {
  struct Tile {
    unsigned arrived, phase;
  };
  Tile tiles[MaxBlockSize / 64 + 1];
  alignas(16) unsigned char values[(MaxBlockSize / 32 + 1) * 16];  // one for each warp
};

/* The block, with memory for tiles of more than 32 threads. */
template <unsigned int MaxBlockSize>
class sonde_block_with_memory : public thread_block {
 public:
  SONDE_CG explicit sonde_block_with_memory(block_tile_memory<MaxBlockSize> &memory) : memory_(&memory) {}
  SONDE_CG block_tile_memory<MaxBlockSize> &memory() const { return *memory_; }

 private:
  block_tile_memory<MaxBlockSize> *memory_;
};
template <unsigned int MaxBlockSize>
SONDE_CG sonde_block_with_memory<MaxBlockSize> this_thread_block(block_tile_memory<MaxBlockSize> &memory) {
  for (unsigned i = sonde_cg::threadInBlock(); i < MaxBlockSize / 64 + 1; i += sonde_cg::threadsInBlock())
    memory.tiles[i] = {0, 0};
  __syncthreads();
  return sonde_block_with_memory<MaxBlockSize>(memory);
}

template <unsigned int Size>
class sonde_wide_tile {
  static_assert(Size > 32 && Size <= 1024 && (Size & (Size - 1)) == 0, "tiles have up to 1024 threads, a power of two");

 public:
  template <unsigned int MaxBlockSize>
  SONDE_CG explicit sonde_wide_tile(block_tile_memory<MaxBlockSize> &memory) {
    metaRank_ = sonde_cg::threadInBlock() / Size;
    metaSize_ = (sonde_cg::threadsInBlock() + Size - 1) / Size;
    arrived_ = &memory.tiles[metaRank_].arrived;
    phase_ = &memory.tiles[metaRank_].phase;
    values_ = memory.values + metaRank_ * (Size / 32) * 16;
  }
  SONDE_CG void sync() const {
    __syncwarp();
    if (sonde_lane_id() == 0) {
      unsigned phase = *(volatile unsigned *)phase_;
      __threadfence_block();
      if (atomicAdd(arrived_, 1u) == Size / 32 - 1) {
        *(volatile unsigned *)arrived_ = 0;
        __threadfence_block();
        *(volatile unsigned *)phase_ = phase + 1;
      } else {
        while (*(volatile unsigned *)phase_ == phase) {
        }
      }
      __threadfence_block();
    }
    __syncwarp();
  }
  SONDE_CG static unsigned int thread_rank() { return sonde_cg::threadInBlock() & (Size - 1); }
  SONDE_CG static constexpr unsigned int num_threads() { return Size; }
  SONDE_CG static constexpr unsigned int size() { return Size; }
  SONDE_CG unsigned int meta_group_rank() const { return metaRank_; }
  SONDE_CG unsigned int meta_group_size() const { return metaSize_; }
  template <typename T>
  SONDE_CG T shfl(T value, int rank) const {
    static_assert(sizeof(T) <= 16, "tiles of several warps exchange up to 16 bytes");
    sync();
    if ((int)thread_rank() == rank) __builtin_memcpy(values_, &value, sizeof(T));
    sync();
    __builtin_memcpy(&value, values_, sizeof(T));
    return value;
  }
  SONDE_CG int any(int predicate) const { return combine((unsigned)(predicate != 0), [](unsigned a, unsigned b) { return a | b; }) != 0; }
  SONDE_CG int all(int predicate) const { return combine((unsigned)(predicate != 0), [](unsigned a, unsigned b) { return a & b; }) != 0; }
  /* One value of all threads', the same for each. */
  template <typename T, typename Operation>
  SONDE_CG T combine(T value, Operation operation) const {
    static_assert(sizeof(T) <= 16, "tiles of several warps exchange up to 16 bytes");
    for (unsigned lanes = 16; lanes > 0; lanes /= 2)
      value = operation(value, sonde_cg::moveWords(
                                   value, [&](unsigned w) { return __shfl_xor_sync(0xffffffffu, w, (int)lanes); }));
    sync();
    if (sonde_lane_id() == 0) __builtin_memcpy(values_ + thread_rank() / 32 * 16, &value, sizeof(T));
    sync();
    __builtin_memcpy(&value, values_, sizeof(T));
    for (unsigned i = 1; i < Size / 32; ++i) {
      T other;
      __builtin_memcpy(&other, values_ + 16 * i, sizeof(T));
      value = operation(value, other);
    }
    return value;
  }

 private:
  unsigned metaRank_, metaSize_;
  unsigned *arrived_, *phase_;
  unsigned char *values_;
};
/* A tile of more than 32 threads is asked for by the same name. */
template <unsigned int Size, unsigned int MaxBlockSize, bool Wide = (Size > 32)>
struct sonde_tile_of {
  using type = thread_block_tile<Size, thread_block>;
  SONDE_CG static type make(const sonde_block_with_memory<MaxBlockSize> &block) {
    return tiled_partition<Size>((const thread_block &)block);
  }
};
template <unsigned int Size, unsigned int MaxBlockSize>
struct sonde_tile_of<Size, MaxBlockSize, true> {
  using type = sonde_wide_tile<Size>;
  SONDE_CG static type make(const sonde_block_with_memory<MaxBlockSize> &block) { return type(block.memory()); }
};
template <unsigned int Size, unsigned int MaxBlockSize>
SONDE_CG typename sonde_tile_of<Size, MaxBlockSize>::type tiled_partition(
    const sonde_block_with_memory<MaxBlockSize> &block) {
  return sonde_tile_of<Size, MaxBlockSize>::make(block);
}

/* ------------------------------------------------------ any of the above -- */

/* A group whose kind is known at run time. */
class thread_group {
 public:
  SONDE_CG thread_group(const thread_block &) : mask_(0) {}
  SONDE_CG thread_group(const coalesced_group &group) : mask_(group.lanes()) {}
  template <unsigned int Size, typename ParentT>
  SONDE_CG thread_group(const thread_block_tile<Size, ParentT> &tile) : mask_(tile.lanes()) {}
  SONDE_CG void sync() const {
    if (mask_ == 0)
      __syncthreads();
    else
      __syncwarp(mask_);
  }
  SONDE_CG unsigned int thread_rank() const {
    return mask_ == 0 ? sonde_cg::threadInBlock() : __popc(mask_ & sonde_cg::lanesBelow());
  }
  SONDE_CG unsigned int num_threads() const { return mask_ == 0 ? sonde_cg::threadsInBlock() : __popc(mask_); }
  SONDE_CG unsigned int size() const { return num_threads(); }
  SONDE_CG unsigned lanes() const { return mask_; }

 private:
  unsigned mask_;  // 0: the block
};

SONDE_CG thread_group tiled_partition(const thread_group &parent, unsigned int size) {
  unsigned rank = parent.thread_rank();
  if (parent.lanes() == 0) {
    unsigned low = size >= 32 ? 0xffffffffu : (1u << size) - 1;
    return coalesced_group(low << (sonde_lane_id() & ~(size - 1)), rank / size, parent.size() / size);
  }
  return tiled_partition(coalesced_group(parent.lanes()), size);
}
SONDE_CG thread_group tiled_partition(const thread_block &parent, unsigned int size) {
  return tiled_partition(thread_group(parent), size);
}

/* The threads of a group that agree on a predicate, or on a label. */
template <typename Group>
SONDE_CG coalesced_group binary_partition(const Group &group, bool predicate) {
  unsigned yes = __ballot_sync(group.lanes(), predicate);
  return predicate ? coalesced_group(yes, 0, 2) : coalesced_group(group.lanes() & ~yes, 1, 2);
}
template <typename Group, typename Label>
SONDE_CG coalesced_group labeled_partition(const Group &group, Label label) {
  return coalesced_group(__match_any_sync(group.lanes(), label));
}

template <typename Group>
SONDE_CG void sync(const Group &group) {
  group.sync();
}
template <typename Group>
SONDE_CG auto thread_rank(const Group &group) {
  return group.thread_rank();
}
template <typename Group>
SONDE_CG auto group_size(const Group &group) {
  return group.size();
}

}  // namespace cooperative_groups

#undef SONDE_CG

#endif /* clang compiling CUDA */
#endif /* _COOPERATIVE_GROUPS_H_ */
