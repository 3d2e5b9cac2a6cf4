// SPDX-License-Identifier: Apache-2.0
#include "core/thread_state.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "core/client.h"
#include "core/delivery.h"

namespace sonde::core {

thread_local ThreadState* tlsThreadState __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

std::mutex& registryMutex() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}
ThreadState* registry = nullptr;

void destroy(ThreadState* state) {
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    if (state->queue[i] == nullptr) continue;
    state->queue[i]->release(ThreadQueue::kThread);
    // The buffer of a thread is handed over when the thread has ended.
    Client& client = clients()[i];
    if (client.inUse() && client.perThreadBuffers.load() && client.buffers.load() != nullptr) wakeDelivery(client);
  }
  while (CallFrame* frame = state->freeFrames) {
    state->freeFrames = frame->below;
    delete frame;
  }
  delete state;
}

void unlink(ThreadState* state) {
  if (state->previous != nullptr) {
    state->previous->next = state->next;
  } else {
    registry = state->next;
  }
  if (state->next != nullptr) state->next->previous = state->previous;
}

// Runs when a thread ends. Later calls of the same thread (from destructors of
// other keys) make a new state.
void threadEnds(void* data) {
  auto* state = static_cast<ThreadState*>(data);
  {
    std::lock_guard lock(registryMutex());
    unlink(state);
  }
  tlsThreadState = nullptr;
  destroy(state);
}

pthread_key_t threadKey() {
  static const pthread_key_t key = [] {
    pthread_key_t made;
    pthread_key_create(&made, threadEnds);
    return made;
  }();
  return key;
}

}  // namespace

ThreadState* createThreadState() {
  static std::atomic<uint64_t> nextSerial{1};
  auto* state = new ThreadState;
  state->serial = nextSerial.fetch_add(1, std::memory_order_relaxed);
  state->pthreadId = static_cast<uint32_t>(pthread_self());
  state->systemId = static_cast<uint32_t>(syscall(SYS_gettid));
  {
    std::lock_guard lock(registryMutex());
    state->next = registry;
    if (registry != nullptr) registry->previous = state;
    registry = state;
  }
  pthread_setspecific(threadKey(), state);
  tlsThreadState = state;
  return state;
}

CallFrame* ThreadState::takeFrame() {
  CallFrame* frame = freeFrames;
  if (frame != nullptr) {
    freeFrames = frame->below;
  } else {
    frame = new CallFrame;
  }
  for (uint64_t& data : frame->correlationData) data = 0;
  return frame;
}

void ThreadState::giveFrame(CallFrame* frame) {
  frame->below = freeFrames;
  freeFrames = frame;
}

bool waitForClientCode(uint32_t index, int milliseconds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    bool busy = false;
    {
      std::lock_guard lock(registryMutex());
      for (ThreadState* state = registry; state != nullptr; state = state->next) {
        busy = busy || (state != tlsThreadState && state->inClient[index].load() != 0);
      }
    }
    if (!busy) return true;
    if (std::chrono::steady_clock::now() >= limit) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void lockThreads() { registryMutex().lock(); }
void unlockThreads() { registryMutex().unlock(); }

void forgetOtherThreads() {
  // What belonged to threads that do not exist here may be in the midst of a
  // change: kept, where a leak checker finds it, and not touched again.
  static ThreadState* statesOfParents = nullptr;
  ThreadState* own = tlsThreadState;
  if (own != nullptr) unlink(own);
  if (registry != nullptr) {
    ThreadState* last = registry;
    while (last->next != nullptr) last = last->next;
    last->next = statesOfParents;
    statesOfParents = registry;
  }
  registry = own;
  if (own != nullptr) {
    own->next = own->previous = nullptr;
    own->systemId = static_cast<uint32_t>(syscall(SYS_gettid));
  }
}

}  // namespace sonde::core
