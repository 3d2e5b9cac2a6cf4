// SPDX-License-Identifier: Apache-2.0
//
// What each host thread carries, and the list of all of them.
#include "softgpu/driver/threads.h"

#include <pthread.h>

#include <algorithm>
#include <thread>

#include "softgpu/driver/capture.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/green.h"

namespace sonde::softgpu::driver {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<ThreadState*> threads;
  pthread_key_t key;
  Registry() {
    // A key and not a C++ destructor: it runs after those of the application's
    // thread_local objects, which may still call the driver.
    pthread_key_create(&key, [](void* state) { Registry::get().remove(static_cast<ThreadState*>(state)); });
  }
  static Registry& get() {
    static Registry* registry = new Registry();
    return *registry;
  }
  void remove(ThreadState* state);
};

__attribute__((tls_model("initial-exec"))) thread_local ThreadState* mine = nullptr;

void Registry::remove(ThreadState* state) {
  {
    std::lock_guard lock(mutex);
    threads.erase(std::remove(threads.begin(), threads.end(), state), threads.end());
  }
  mine = nullptr;
  // The thread's default streams end with it once their work is done.
  for (auto& [uid, stream] : state->perThreadStreams)
    if (!stream->context()->destroyed.load()) stream->context()->removeStream(stream.get());
  delete state;
}

ThreadState& create() {
  auto* state = new ThreadState();
  Registry& registry = Registry::get();
  pthread_setspecific(registry.key, state);
  std::lock_guard lock(registry.mutex);
  registry.threads.push_back(state);
  mine = state;
  return *state;
}

}  // namespace

ThreadState& thread() { return mine ? *mine : create(); }

void waitForListenerUse() {
  ThreadState& self = thread();
  Registry& registry = Registry::get();
  for (;;) {
    bool busy = false;
    {
      std::lock_guard lock(registry.mutex);
      for (ThreadState* state : registry.threads)
        if (state != &self && state->inListener.load(std::memory_order_seq_cst) != 0) busy = true;
    }
    if (!busy) return;
    std::this_thread::yield();
  }
}

Context* peekContext() {
  ThreadState& state = thread();
  return state.contexts.empty() ? nullptr : state.contexts.back().context.get();
}

CUresult currentContext(Ref<Context>& context) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  ThreadState& state = thread();
  if (state.inHostFunction) return CUDA_ERROR_NOT_PERMITTED;
  if (state.contexts.empty() || !state.contexts.back().context) return CUDA_ERROR_INVALID_CONTEXT;
  Context* current = state.contexts.back().context.get();
  if (current->destroyed.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const CUresult error = current->error()) return error;
  context = Ref<Context>(current);
  return CUDA_SUCCESS;
}

CUresult resolveStream(CUstream handle, Ref<Stream>& stream) {
  const bool perThread = thread().perThreadDefault;
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Ref<Context> context;
    if (const CUresult error = currentContext(context)) return error;
    if (GreenContext* green = currentGreen()) {
      if (green->destroyed.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
      stream = green->defaultStream();
      return stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    const bool legacy = handle == CU_STREAM_LEGACY || (handle == nullptr && !perThread);
    if (legacy)
      if (const CUresult error = refuseImplicit(*context)) return error;
    stream = legacy ? context->legacy() : context->perThread();
    return CUDA_SUCCESS;
  }
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (thread().inHostFunction) return CUDA_ERROR_NOT_PERMITTED;
  Ref<Stream> found = HandleTable::find<Stream>(handle);
  if (!found || found->destroyed.load()) return CUDA_ERROR_INVALID_HANDLE;
  if (found->context()->destroyed.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (found->green && static_cast<GreenContext*>(found->green.get())->destroyed.load())
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (const CUresult error = found->context()->error()) return error;
  stream = std::move(found);
  return CUDA_SUCCESS;
}

namespace {
std::atomic<uint32_t> correlations{0}, events{0}, streamIds{12};
std::atomic<uint64_t> grids{0};
}  // namespace

uint32_t nextCorrelationId() {
  uint32_t id;
  do id = correlations.fetch_add(1, std::memory_order_relaxed) + 1;
  while (id == 0);
  return id;
}
uint32_t currentCorrelation() {
  ThreadState& state = thread();
  if (state.correlation != 0) return state.correlation;
  const uint32_t id = nextCorrelationId();
  if (state.apiDepth || state.runtimeDepth) state.correlation = id;
  return id;
}
uint64_t nextGridId() { return grids.fetch_add(1, std::memory_order_relaxed) + 1; }
uint32_t nextEventId() { return events.fetch_add(1, std::memory_order_relaxed) + 1; }
uint32_t nextStreamId() { return streamIds.fetch_add(1, std::memory_order_relaxed) + 1; }

}  // namespace sonde::softgpu::driver
