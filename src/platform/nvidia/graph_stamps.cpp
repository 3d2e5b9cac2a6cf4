// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/graph_stamps.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "platform/nvidia/calibration.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {
namespace {

struct Rings {
  std::mutex mutex;
  std::unordered_map<Context*, std::vector<StampRing*>> idle;
};
Rings& rings() {
  static Rings& r = *new Rings;
  return r;
}

StampRing* makeRing(CUfunction kernel) {
  if (!own.cuMemAlloc || !own.cuMemHostAlloc || !own.cuMemFree || !own.cuMemsetD8Async || !own.cuStreamSynchronize)
    return nullptr;
  CUdeviceptr counter = 0;
  if (own.cuMemAlloc(&counter, 16) != CUDA_SUCCESS) return nullptr;
  constexpr size_t kBytes = sizeof(StampEntry) * StampRing::kEntries;
  void* memory = nullptr;
  if (own.cuMemsetD8Async(counter, 0, 16, CU_STREAM_PER_THREAD) != CUDA_SUCCESS ||
      own.cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS ||
      own.cuMemHostAlloc(&memory, kBytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS) {
    own.cuMemFree(counter);
    return nullptr;
  }
  std::fill_n(static_cast<uint8_t*>(memory), kBytes, uint8_t{0});
  auto* ring = new StampRing;
  ring->counter = counter;
  ring->entries = static_cast<volatile StampEntry*>(memory);
  ring->kernel = kernel;
  return ring;
}

}  // namespace

std::shared_ptr<StampRing> takeRing(Context& context) {
  StampRing* ring = nullptr;
  {
    std::lock_guard lock(rings().mutex);
    std::vector<StampRing*>& idle = rings().idle[&context];
    if (!idle.empty()) {
      ring = idle.back();
      idle.pop_back();
    }
  }
  if (ring == nullptr) {
    OutsideCapture outside;
    WithContext with(context.handle);
    const CUfunction kernel = with ? stampKernel(context) : nullptr;
    if (kernel == nullptr || (ring = makeRing(kernel)) == nullptr) return nullptr;
  }
  ring->turn = (ring->turn + 1) & ((1u << (32 - StampRing::kNameBits)) - 1);
  return {ring, [&context](StampRing* it) {
            if (context.dead.load()) return;  // its memory is gone
            std::lock_guard lock(rings().mutex);
            rings().idle[&context].push_back(it);
          }};
}

bool addStampNode(const StampRing& ring, CUgraph graph, std::span<const CUgraphNode> behind, uint32_t name,
                  CUgraphNode* node) {
  if (!own.cuGraphAddKernelNode || name >> StampRing::kNameBits != 0) return false;
  CUdeviceptr counter = ring.counter;
  auto entries = reinterpret_cast<CUdeviceptr>(ring.entries);
  uint32_t mask = StampRing::kEntries - 1, full = ring.turn << StampRing::kNameBits | name;
  void* params[] = {&counter, &entries, &mask, &full};
  CUDA_KERNEL_NODE_PARAMS p{};
  p.func = ring.kernel;
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = params;
  return own.cuGraphAddKernelNode(node, graph, behind.empty() ? nullptr : behind.data(), behind.size(), &p) ==
         CUDA_SUCCESS;
}

void readStamps(Context& context, StampRing& ring, double until, std::vector<Stamp>* stamps) {
  uint32_t lost = 0;
  for (;;) {
    const volatile StampEntry& entry = ring.entries[(ring.next - 1) % StampRing::kEntries];
    const uint32_t number = __atomic_load_n(&entry.number, __ATOMIC_ACQUIRE);
    const auto ahead = static_cast<int32_t>(number - ring.next);
    if (number == 0 || ahead < 0) break;  // not written yet
    if (ahead > 0) {                      // written over: the oldest that is still there
      const uint32_t oldest = number - StampRing::kEntries + 1;
      lost += oldest - ring.next;
      ring.next = oldest;
      continue;
    }
    const double time = context.clock.relative(entry.time);
    const uint32_t name = entry.name;
    if (time > until) break;
    ++ring.next;
    if (name >> StampRing::kNameBits != ring.turn) continue;
    stamps->push_back({time, name & ((1u << StampRing::kNameBits) - 1)});
  }
  if (lost != 0) debug("a graph wrote over %u stamps before they were read: some of its nodes are not recorded", lost);
}

}  // namespace sonde::platform::nvidia
