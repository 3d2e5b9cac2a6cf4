// SPDX-License-Identifier: Apache-2.0
//
// Stacks that one host thread switches between. Not thread-safe: a fiber stays
// on the thread that started it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonde::softgpu::exec {

// A stack with a guard page below. Kept by its owner and reused.
class FiberStack {
 public:
  FiberStack() = default;
  ~FiberStack();
  FiberStack(const FiberStack&) = delete;
  FiberStack& operator=(const FiberStack&) = delete;
  bool reserve(size_t bytes);  // false: no memory
  std::byte* top() const { return base_ + size_; }
  std::byte* bottom() const { return base_; }
  size_t size() const { return size_; }

 private:
  std::byte* base_ = nullptr;
  size_t size_ = 0;
};

// One flow of control. The scheduler's own (the thread's stack) is a Fiber as
// well, filled in by the first switch away from it.
struct Fiber {
  void* sp = nullptr;
  // For the sanitizers.
  const void* stackBottom = nullptr;
  size_t stackSize = 0;
  void* fakeStack = nullptr;
  void* tsan = nullptr;
};

// Makes `fiber` start at entry(argument) on the stack; entry must not return.
// Fibers that take turns should have different numbers: the first frames of all
// stacks would compete for the same few sets of the processor's first cache.
void prepareFiber(Fiber& fiber, FiberStack& stack, void (*entry)(void*), void* argument, unsigned number = 0);
// Leaves `from` and goes on with `to`. `last`: from will never run again.
void switchFiber(Fiber& from, Fiber& to, bool last = false);
// To be called first thing in a fiber's entry.
void fiberStarted(Fiber& cameFrom);
void releaseFiber(Fiber& fiber);

}  // namespace sonde::softgpu::exec
