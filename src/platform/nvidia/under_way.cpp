// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/under_way.h"

#include <unwind.h>

#include <atomic>
#include <utility>

#include "platform/nvidia/hooks.h"

namespace sonde::platform::nvidia {

struct UnderWay {
  RuntimeRange function;
  unsigned life = 0;
  bool open = false;
  SondeApiCall call{};
};

namespace {

std::atomic<unsigned> life{0};  // grows with each detaching

struct Search {
  const RuntimeRange* ranges;
  size_t count;
  const RuntimeRange* outermost = nullptr;
};

_Unwind_Reason_Code look(_Unwind_Context* context, void* data) {
  auto& search = *static_cast<Search*>(data);
  const uintptr_t at = _Unwind_GetIP(context) - 1;  // within the calling instruction
  for (size_t i = 0; i < search.count; ++i)
    if (at - search.ranges[i].begin < search.ranges[i].end - search.ranges[i].begin)
      search.outermost = &search.ranges[i];
  return _URC_NO_REASON;
}

const RuntimeRange* onStack(const RuntimeRange* ranges, size_t count) {
  Search search{ranges, count};
  _Unwind_Backtrace(look, &search);
  return search.outermost;
}

void drop(ThreadCalls& thread) {
  delete thread.underWay;
  thread.underWay = nullptr;
}

}  // namespace

void findUnderWay(const std::vector<RuntimeRange>& ranges) {
  ThreadCalls& thread = threadCalls;
  if (thread.underWay != nullptr || thread.depth != 0) return;
  const RuntimeRange* found = onStack(ranges.data(), ranges.size());
  if (found == nullptr) return;
  thread.underWay = new UnderWay{*found, life.load(), false, {}};
}

void checkUnderWay(ThreadCalls& thread) {
  UnderWay& u = *thread.underWay;
  if (u.life != life.load()) {
    if (u.open) {
      thread.inRuntime = false;
      if (--thread.depth == 0) thread.correlation = 0;
    }
    drop(thread);
    return;
  }
  if (onStack(&u.function, 1) == nullptr) {
    if (u.open) {
      thread.inRuntime = false;
      int32_t result = 0;  // what it returned is not known; the program went on
      leaveUnderWay(u.call, &result);
      if (--thread.depth == 0) thread.correlation = 0;
    }
    drop(thread);
    return;
  }
  if (u.open || flagOf(runtimeWanted[u.function.cbid]) == 0) return;
  u.open = true;
  if (thread.correlation == 0) thread.correlation = nextCorrelationId();
  ++thread.depth;
  enterUnderWay(u.call, u.function.cbid, u.function.name);
  thread.inRuntime = true;
}

void forgetUnderWay() { life.fetch_add(1); }

}  // namespace sonde::platform::nvidia
