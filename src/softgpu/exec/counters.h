// SPDX-License-Identifier: Apache-2.0
//
// The raw counters of the software GPU. Each is counted per SM (instance = SM)
// unless the comment says otherwise; events and metrics are defined on them in
// the device models. "Instruction" is a PTX instruction; "warp instruction" is
// one that at least one lane of a warp executes.
//
// A warp-level memory instruction makes one request when at least one lane
// that is not predicated off executes it. A sector is an aligned 32-byte piece,
// a line an aligned 128-byte piece, of the address space.
#pragma once

#include <cstdint>

namespace sonde::softgpu::exec {

// clang-format off
#define SONDE_RAW_COUNTERS(X)                                                                        \
  /* launches */                                                                                     \
  X(blocks_launched)                                                                                 \
  X(warps_launched)                                                                                  \
  X(threads_launched)                                                                                \
  /* execution */                                                                                    \
  X(inst_executed)                /* warp instructions */                                            \
  X(inst_issued)                  /* warp instructions plus replays by the cost model */             \
  X(thread_inst_executed)         /* lanes active, predicated-off ones included */                   \
  X(thread_inst_not_pred_off)     /* lanes active and not predicated off */                          \
  X(branch)                       /* warp-level branch instructions (bra, brx), predicated or not */ \
  X(divergent_branch)             /* of these, both ways taken by lanes of the warp */               \
  X(barrier_sync)                 /* warp-level barrier instructions */                              \
  X(active_cycles)                /* cost model: cycles with a resident warp */                      \
  X(active_warps)                 /* cost model: resident warps summed over active cycles */         \
  X(elapsed_cycles)               /* cost model: cycles from launch to end, each SM the same */      \
  /* by class, in thread instructions not predicated off */                                          \
  X(flop_sp_add) X(flop_sp_mul) X(flop_sp_fma) X(flop_sp_special)                                    \
  X(flop_dp_add) X(flop_dp_mul) X(flop_dp_fma)                                                       \
  X(flop_hp_add) X(flop_hp_mul) X(flop_hp_fma)                                                       \
  X(inst_integer) X(inst_bit_convert) X(inst_control) X(inst_compute_ld_st) X(inst_misc)             \
  X(inst_fp_32) X(inst_fp_64) X(inst_fp_16) X(inst_inter_thread)                                     \
  /* global memory (generic accesses that hit global memory included) */                             \
  X(global_load_requests) X(global_store_requests)                                                   \
  X(global_load_sectors) X(global_store_sectors)       /* distinct sectors per request, summed */    \
  X(global_load_lines) X(global_store_lines)           /* distinct lines per request, summed */      \
  X(global_load_bytes) X(global_store_bytes)           /* asked for by lanes */                      \
  X(gld_inst_8bit) X(gld_inst_16bit) X(gld_inst_32bit) X(gld_inst_64bit) X(gld_inst_128bit) /* threads */ \
  X(gst_inst_8bit) X(gst_inst_16bit) X(gst_inst_32bit) X(gst_inst_64bit) X(gst_inst_128bit)          \
  X(global_atom_requests) X(global_red_requests)                                                     \
  X(global_atom_sectors) X(global_red_sectors)                                                       \
  X(global_atom_threads) X(global_red_threads)                                                       \
  /* shared memory */                                                                                \
  X(shared_load_requests) X(shared_store_requests) X(shared_atom_requests)                           \
  X(shared_load_wavefronts) X(shared_store_wavefronts) /* passes over the banks */                   \
  X(shared_load_bank_conflicts) X(shared_store_bank_conflicts) /* wavefronts beyond the ideal */     \
  X(shared_load_bytes) X(shared_store_bytes)                                                         \
  /* local memory */                                                                                 \
  X(local_load_requests) X(local_store_requests)                                                     \
  X(local_load_sectors) X(local_store_sectors)                                                       \
  /* constant and texture */                                                                         \
  X(const_load_requests) X(tex_requests) X(tex_sectors)                                              \
  /* caches; only when SONDE cache counting is on. L2 and DRAM instances are slices, not SMs. */     \
  X(l1_global_load_hit) X(l1_global_load_miss) X(l1_local_load_hit) X(l1_local_load_miss)            \
  X(l1_local_store_hit) X(l1_local_store_miss) X(tex_hit) X(tex_miss)                                \
  X(l2_read_sector_queries) X(l2_read_sector_hits) X(l2_read_sector_misses)                          \
  X(l2_write_sector_queries) X(l2_write_sector_hits) X(l2_write_sector_misses)                       \
  X(l2_atomic_queries) X(dram_read_sectors) X(dram_write_sectors)                                    \
  /* pmevent */                                                                                      \
  X(prof_trigger_00) X(prof_trigger_01) X(prof_trigger_02) X(prof_trigger_03)                        \
  X(prof_trigger_04) X(prof_trigger_05) X(prof_trigger_06) X(prof_trigger_07)                        \
  /* device-side launches */                                                                         \
  X(device_launches)
// clang-format on

enum class RawCounter : uint32_t {
#define SONDE_RAW_COUNTER_ENUM(name) name,
  SONDE_RAW_COUNTERS(SONDE_RAW_COUNTER_ENUM)
#undef SONDE_RAW_COUNTER_ENUM
      count_,
};
inline constexpr uint32_t kRawCounterCount = static_cast<uint32_t>(RawCounter::count_);

// What a counting run has to count. Each level includes those before it.
enum class CountLevel : uint8_t {
  off,
  instructions,  // execution, classes, launches
  requests,      // + memory requests, sectors, bank conflicts
  caches,        // + the cache model
};

}  // namespace sonde::softgpu::exec
