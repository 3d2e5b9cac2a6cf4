// SPDX-License-Identifier: Apache-2.0
//
// What compiled code and the run-time helpers share about a running warp. The
// JIT addresses the fields by offsetof, so the struct is plain and its meaning
// is part of the object cache's version (kAbiVersion).
#pragma once

#include <cstdint>

#include "softgpu/exec/counters.h"

namespace sonde::softgpu::exec {

inline constexpr uint32_t kAbiVersion = 7;
inline constexpr uint32_t kLanes = 32;
// 20 us of everyday instructions, a fraction of a second of the slowest.
inline constexpr int32_t kTimeBudget = 1 << 16;

struct Cta;
struct CacheLog;

struct alignas(64) WarpState {
  int32_t tid[3][kLanes];
  uint32_t ctaid[3], nctaid[3], ntid[3];
  uint32_t clusterid[3], nclusterid[3], clusterCtaid[3], clusterNctaid[3];
  uint32_t clusterRank, clusterSize, explicitCluster;
  uint32_t smid, nsmid, warpid, nwarpid;
  uint64_t gridid;
  uint32_t initialMask;  // lanes that exist
  uint32_t dynamicSharedBytes, totalSharedBytes;

  uint64_t windowBase, windowSize;  // what a kernel can address
  uint64_t deviceDelta;             // address + delta = where the bytes are
  uint64_t sharedBase;              // generic address of this CTA's shared memory
  uint64_t clusterBase;             // … of the shared memory of the cluster's first CTA; the others' follow
  uint64_t sharedWindowBase, sharedWindowSize;
  uint64_t localBase;    // generic address of lane 0's local memory
  uint64_t localStride;  // to the next lane's
  uint64_t localWindowBase, localWindowSize;
  uint32_t localTop;  // first free byte of every lane's local stack
  uint32_t localLimit;
  uint64_t paramGeneric;  // generic address of the kernel's parameters

  const uint8_t* params;    // packed kernel parameters
  const uint64_t* globals;  // addresses of the program's variables
  uint64_t* counters;       // counting variant: slots of the SM at hand

  uint64_t position;   // function << 32 | instruction; set before whatever may fault
  uint32_t liveMask;   // lanes that have not left the kernel
  int32_t timeBudget;  // under a time limit: instructions of loops until the time is looked at
  Cta* cta;
  uint64_t startClock;
  uint32_t barrierScratch;
  uint64_t gridWorkspace;  // cooperative launches: device address of the grid barrier's words; else 0
  CacheLog* cacheLog;      // cache model: where accesses are logged; else null
  uint64_t localLine;      // cache model: number of the warp's first line of local memory
};

// Counter slots have one writer; monitors read them meanwhile.
inline void addCount(uint64_t* counters, RawCounter counter, uint64_t n) {
  uint64_t& value = counters[static_cast<uint32_t>(counter)];
  __atomic_store_n(&value, value + n, __ATOMIC_RELAXED);
}

// A compiled function: lanes of `mask` run it; returns the lanes that come
// back (the others have left the kernel). args and results: 32-lane words.
using WarpFunction = uint32_t (*)(WarpState* warp, uint32_t mask, void* args, void* results);

}  // namespace sonde::softgpu::exec
