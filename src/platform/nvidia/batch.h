// SPDX-License-Identifier: Apache-2.0
//
// The oldest work of a stream, read from its queue and from its events.
#pragma once

#include "platform/nvidia/objects.h"
#include "platform/nvidia/work_times.h"

namespace sonde::platform::nvidia {

constexpr size_t kBatch = 1024;  // finished items of a stream in one round

// Some items of a stream, and how far they are.
struct Batch {
  Stream* stream;
  std::vector<Item> items;  // up to kCounted more than kBatch: work that waits
  size_t finished = 0;
  int32_t status = 0;  // of the last one, when its event tells of an error
};
// Items finish in order: finds the first that has not. Asks the driver.
void findFinished(Context& context, Batch& batch);

// When launches of a context returned.
class Returns {
 public:
  Returns(const Context& context, const std::vector<Batch>& batches);
  // From the launch before to this one; 0: there was none.
  double pauseBefore(uint64_t returned) const;

 private:
  std::vector<uint64_t> times_;
};

// What placeWork() has to know of a stream.
TimedStream readTimes(const Context& context, const TimingConstants& constants, const Returns& returns,
                      const Batch& batch);

}  // namespace sonde::platform::nvidia
