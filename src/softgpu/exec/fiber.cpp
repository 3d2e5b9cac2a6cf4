// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SONDE_ASAN_FIBERS 1
#include <sanitizer/common_interface_defs.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SONDE_ASAN_FIBERS 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SONDE_TSAN_FIBERS 1
#include <sanitizer/tsan_interface.h>
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SONDE_TSAN_FIBERS 1
#include <sanitizer/tsan_interface.h>
#endif
#endif

extern "C" {
void sonde_fiber_switch(void** save, void* to);
void sonde_fiber_start();
}

namespace sonde::softgpu::exec {

FiberStack::~FiberStack() {
  if (base_) munmap(base_ - getpagesize(), size_ + static_cast<size_t>(getpagesize()));
}

// A set is chosen by these many bytes' worth of an address. The step, 13 lines, meets all 64 of them.
constexpr size_t kSetsBytes = 4096, kStackStep = 13 * 64;

bool FiberStack::reserve(size_t bytes) {
  const auto page = static_cast<size_t>(getpagesize());
  bytes = (bytes + kSetsBytes + page - 1) / page * page;
  if (bytes <= size_) return true;
  if (base_) munmap(base_ - page, size_ + page);
  base_ = nullptr;
  size_ = 0;
  void* p = mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
                 -1, 0);
  if (p == MAP_FAILED) return false;
  mprotect(p, page, PROT_NONE);
  base_ = static_cast<std::byte*>(p) + page;
  size_ = bytes;
  return true;
}

void prepareFiber(Fiber& fiber, FiberStack& stack, void (*entry)(void*), void* argument, unsigned number) {
  auto* sp = reinterpret_cast<void**>(stack.top() - number * kStackStep % kSetsBytes);
  // What sonde_fiber_switch pops: r15 r14 r13 r12 rbx rbp, then the return
  // address; after it the stack is 16-byte aligned as at a function's first
  // instruction less the call.
  *--sp = nullptr;
  *--sp = nullptr;
  *--sp = reinterpret_cast<void*>(&sonde_fiber_start);
  *--sp = nullptr;                         // rbp
  *--sp = nullptr;                         // rbx
  *--sp = reinterpret_cast<void*>(entry);  // r12
  *--sp = argument;                        // r13
  *--sp = nullptr;                         // r14
  *--sp = nullptr;                         // r15
  fiber.sp = sp;
  fiber.stackBottom = stack.bottom();
  fiber.stackSize = stack.size();
  fiber.fakeStack = nullptr;
#if SONDE_TSAN_FIBERS
  // A new one each time: the last run left its frames on the old one.
  if (fiber.tsan) __tsan_destroy_fiber(fiber.tsan);
  fiber.tsan = __tsan_create_fiber(0);
#endif
}

void switchFiber(Fiber& from, Fiber& to, bool last) {
#if SONDE_TSAN_FIBERS
  if (!from.tsan) from.tsan = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
#if SONDE_ASAN_FIBERS
  __sanitizer_start_switch_fiber(last ? nullptr : &from.fakeStack, to.stackBottom, to.stackSize);
#else
  (void)last;
#endif
  sonde_fiber_switch(&from.sp, to.sp);
#if SONDE_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(from.fakeStack, nullptr, nullptr);
#endif
}

void fiberStarted(Fiber& cameFrom) {
#if SONDE_ASAN_FIBERS
  __sanitizer_finish_switch_fiber(nullptr, &cameFrom.stackBottom, &cameFrom.stackSize);
#else
  (void)cameFrom;
#endif
}

void releaseFiber(Fiber& fiber) {
#if SONDE_TSAN_FIBERS
  if (fiber.tsan) __tsan_destroy_fiber(fiber.tsan);
#endif
  fiber.tsan = nullptr;
}

}  // namespace sonde::softgpu::exec
