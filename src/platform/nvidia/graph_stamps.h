// SPDX-License-Identifier: Apache-2.0
//
// Times where events cannot be: small kernels of ours in a graph write the
// device's time into a ring in the host's memory.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "platform/nvidia/objects.h"

namespace sonde::platform::nvidia {

struct StampEntry {
  uint64_t time;    // %globaltimer
  uint32_t name;    // of the stamp, with the ring's turn
  uint32_t number;  // written last; counts from 1 as long as the ring lives
};

// Given to one executable graph at a time. Its memory is never freed: a launch
// that nobody saw may still write. Its names then tell of an earlier turn.
struct StampRing {
  static constexpr uint32_t kEntries = 1 << 16, kNameBits = 20;
  CUdeviceptr counter = 0;                 // on the device
  volatile StampEntry* entries = nullptr;  // pinned, seen by both
  CUfunction kernel = nullptr;
  uint32_t turn = 0;
  uint32_t next = 1;  // number of the entry to be read next
};

// nullptr: the driver has no memory for one.
std::shared_ptr<StampRing> takeRing(Context& context);

// Adds a node that writes the stamp `name` behind others.
bool addStampNode(const StampRing& ring, CUgraph graph, std::span<const CUgraphNode> behind, uint32_t name,
                  CUgraphNode* node);

struct Stamp {
  double time;  // the device's
  uint32_t name;
};
// Takes what was written until a time, in order, leaving out earlier turns.
// Ends where the next entry is not there yet.
void readStamps(Context& context, StampRing& ring, double until, std::vector<Stamp>* stamps);

}  // namespace sonde::platform::nvidia
