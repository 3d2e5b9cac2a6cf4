// SPDX-License-Identifier: Apache-2.0
//
// From an API call's arguments to a plan for a copy or a set.
#pragma once

#include "softgpu/driver/driver.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

class Array;

// SondeMemoryKind of an allocation's kind.
uint32_t toolsKind(memory::Kind kind);
CUresult toResult(memory::AllocError error);
// `released`: or allocated.
void reportMemory(Context& context, const memory::Allocation& a, bool released, uint32_t streamId, bool async);
void reportArray(const Array& array, bool released);

// Linear memory of a context, reported to tools.
CUresult allocateIn(Context& context, memory::Kind kind, size_t bytes, uint32_t flags, uint64_t& address);

// Waits for all work on a device.
void settleDevice(uint32_t device);

enum class Side : uint8_t { host, device, either };

// One end of a copy: which bytes, and what kind of memory they lie in.
struct End {
  std::byte* bytes = nullptr;
  uint32_t kind = 0;  // SondeMemoryKind
  uint32_t device = 0;
  uint32_t contextUid = 0;
};
// Checks that [address, address + bytes) is memory of the wanted side.
CUresult locate(uint64_t address, uint64_t bytes, Side side, const Context& context, End& end);

// From the parameters of the API to a plan; nothing is enqueued.
CUresult planBox(const CUDA_MEMCPY3D& copy, const Context& context, CopyPlan& plan);
// A row of bytes.
CUresult planFlat(uint64_t to, Side toSide, uint64_t from, Side fromSide, size_t bytes, const Context& context,
                  CopyPlan& plan);
CUresult planFill(CUdeviceptr to, size_t pitch, uint32_t elementBytes, uint32_t value, size_t width, size_t height,
                  const Context& context, SetPlan& plan);

// Enqueues a planned copy with the rules of synchronous and pageable copies.
CUresult runCopy(Stream& stream, Command* command, bool synchronous);

// Takes a snapshot of the source, a flat copy's, so that the caller may do with it what it likes. False: there is
// no memory there.
bool stageSource(CopyPlan& plan);
// Sources up to this size are snapshot at the call; larger ones are copied before the call returns.
inline constexpr uint64_t kStagingBytes = 64u << 10;

// CUpti_ActivityMemcpyKind for these two kinds of memory.
uint32_t copyKindOf(uint32_t from, uint32_t to, bool peer);

}  // namespace sonde::softgpu::driver
