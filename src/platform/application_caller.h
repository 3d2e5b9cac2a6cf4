// SPDX-License-Identifier: Apache-2.0
// Where in the application is this thread? Walks the stack to the first frame
// that is neither CUDA's, the C library's nor the profiler's.
#ifndef SONDE_PLATFORM_APPLICATION_CALLER_H_
#define SONDE_PLATFORM_APPLICATION_CALLER_H_

#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace sonde::platform {

// Where the objects lie whose frames are passed over.
struct PassedObjects {
  std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
  unsigned long long changes = 0;           // the loader's count of objects that came and went
  const PassedObjects* previous = nullptr;  // another thread may still read it
};

inline void addIfPassed(const dl_phdr_info& info, PassedObjects& objects) {
  std::string_view name = info.dlpi_name != nullptr ? info.dlpi_name : "";
  name.remove_prefix(std::min(name.find_last_of('/') + 1, name.size()));
  static constexpr std::string_view kPassed[] = {"libcuda.so", "libcudart.so",  "libcupti.so",
                                                 "libc.so",    "libpthread.so", "ld-linux"};
  if (std::none_of(std::begin(kPassed), std::end(kPassed),
                   [&](std::string_view passed) { return name.substr(0, passed.size()) == passed; })) {
    return;
  }
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_LOAD) continue;
    const uintptr_t begin = info.dlpi_addr + info.dlpi_phdr[i].p_vaddr;
    low = std::min(low, begin);
    high = std::max(high, begin + info.dlpi_phdr[i].p_memsz);
  }
  if (low < high) objects.ranges.emplace_back(low, high);
}

// Any thread, without a lock of its own (a forked child may call it).
inline const PassedObjects& passedObjects() {
  static std::atomic<const PassedObjects*> newest{nullptr};
  unsigned long long changes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        *static_cast<unsigned long long*>(to) = info->dlpi_adds + info->dlpi_subs;
        return 1;
      },
      &changes);
  const PassedObjects* known = newest.load(std::memory_order_acquire);
  if (known != nullptr && known->changes == changes) return *known;
  auto* fresh = new PassedObjects;
  fresh->changes = changes;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        addIfPassed(*info, *static_cast<PassedObjects*>(to));
        return 0;
      },
      fresh);
  fresh->previous = known;
  while (!newest.compare_exchange_weak(fresh->previous, fresh, std::memory_order_acq_rel)) {
  }
  return *fresh;
}

// The address that the application's innermost call of a CUDA function returns
// to; 0: there is none on this stack.
inline uint64_t applicationCaller() {
  struct Walk {
    const PassedObjects& passed;
    uint64_t found = 0;
  } walk{passedObjects()};
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* to) {
        auto& w = *static_cast<Walk*>(to);
        const uintptr_t at = _Unwind_GetIP(frame);
        for (const auto& [low, high] : w.passed.ranges) {
          if (at >= low && at < high) return _URC_NO_REASON;
        }
        w.found = at;
        return _URC_END_OF_STACK;
      },
      &walk);
  return walk.found;
}

}  // namespace sonde::platform

#endif  // SONDE_PLATFORM_APPLICATION_CALLER_H_
