// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/batch.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "platform/nvidia/calls.h"

namespace sonde::platform::nvidia {

void findFinished(Context& context, Batch& b) {
  auto isDone = [&](size_t i) {
    if (context.dead.load()) return true;
    // An item without an event is as far as the one before it.
    while (b.items[i].after == nullptr) {
      if (i == 0) return true;
      --i;
    }
    const CUresult r = own.cuEventQuery(b.items[i].after);
    if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY) b.status = r;
    return r != CUDA_ERROR_NOT_READY;
  };
  size_t low = 0, high = std::min(b.items.size(), kBatch);  // done below low, not done from high on
  if (high > 0 && isDone(high - 1)) low = high;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (isDone(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  b.finished = low;
}

namespace {

double reached(const Context& context, const Item& item) {
  return context.clock.toDevice(item.synchronous ? item.called : item.returned);
}

TimedWork timed(const Context& context, const Item& item) {
  TimedWork w;
  w.synchronous = item.synchronous;
  w.reached = reached(context, item);
  w.hasBefore = item.before != nullptr;
  if (item.before != nullptr) context.clock.deviceTime(item.before, &w.before);
  return w;
}

}  // namespace

Returns::Returns(const Context& context, const std::vector<Batch>& batches) {
  if (context.lastReturn != 0) times_.push_back(context.lastReturn);
  for (const Batch& b : batches)
    for (const Item& item : b.items) times_.push_back(item.returned);
  std::sort(times_.begin(), times_.end());
}

double Returns::pauseBefore(uint64_t returned) const {
  const auto at = std::lower_bound(times_.begin(), times_.end(), returned);
  return at == times_.begin() ? 0 : static_cast<double>(returned - *std::prev(at));
}

TimedStream readTimes(const Context& context, const TimingConstants& c, const Returns& returns, const Batch& b) {
  TimedStream s;
  s.haveLast = b.stream->haveLast;
  s.last = b.stream->lastStamp;
  s.lastOthers = b.stream->lastOthers;
  s.works.reserve(b.finished);
  for (size_t i = 0; i < b.finished; ++i) {
    TimedWork& w = s.works.emplace_back(timed(context, b.items[i]));
    w.pause = returns.pauseBefore(b.items[i].returned);
    w.stamp = std::numeric_limits<double>::quiet_NaN();
    double stamp;
    if (b.items[i].after != nullptr && !context.dead.load() && context.clock.deviceTime(b.items[i].after, &stamp))
      w.stamp = stamp;
  }
  if (b.finished < b.items.size()) {
    const TimedWork next = timed(context, b.items[b.finished]);
    double before = next.before;
    if (!next.hasBefore && b.finished > 0) before = s.works.back().stamp;
    if (!next.hasBefore && b.finished == 0 && s.haveLast) before = s.last;
    for (size_t i = b.finished; i < std::min(b.items.size(), b.finished + kCounted); ++i)
      s.unfinished.push_back(reached(context, b.items[i]));
    s.nextStart = next.reached + c.startAfterReturn;
    if (before == before) s.nextStart = std::max(s.nextStart, before + c.startAfterStamp[0]);
  }
  return s;
}

}  // namespace sonde::platform::nvidia
