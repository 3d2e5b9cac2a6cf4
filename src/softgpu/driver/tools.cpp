// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/tools.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/threads.h"

namespace sonde::softgpu::driver::tools {

volatile uint8_t driverEnabled[kCallbackBytes];
volatile uint8_t runtimeEnabled[kCallbackBytes];
std::atomic<uint64_t> interest{0};

namespace {

std::atomic<const SondeListener*> listener{nullptr};
std::mutex attachMutex;

// Detach orders its look at all threads against theirs at the listener with a
// barrier on every thread of the process, so that calls need none. Where the
// kernel has no such barrier, they make their own.
std::atomic<bool> fenced{true};
bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

// Holds the listener in place while one of its functions runs: detach waits
// until no thread is inside, except its own. The count is its thread's alone.
class ListenerUse {
 public:
  ListenerUse() : state_(thread()) {
    state_.inListener.store(state_.inListener.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (fenced.load(std::memory_order_relaxed)) [[unlikely]]
      std::atomic_thread_fence(std::memory_order_seq_cst);
    else
      std::atomic_signal_fence(std::memory_order_seq_cst);
    listener_ = listener.load(std::memory_order_seq_cst);
  }
  ~ListenerUse() {
    state_.inListener.store(state_.inListener.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  const SondeListener* operator->() const { return listener_; }
  explicit operator bool() const { return listener_ != nullptr; }

 private:
  ThreadState& state_;
  const SondeListener* listener_;
};

}  // namespace

#define SONDE_TELL(function, argument)                            \
  do {                                                            \
    if (!listener.load(std::memory_order_relaxed)) return;        \
    ListenerUse use;                                              \
    if (use && use->function) use->function(use->self, argument); \
  } while (0)

void reportWork(const SondeWork& work) { SONDE_TELL(workCompleted, &work); }
void reportWorkEnqueued(SondeWork& work) { SONDE_TELL(workEnqueued, &work); }
void reportResource(const SondeResource& event) { SONDE_TELL(resource, &event); }
void reportSync(const SondeSync& event) { SONDE_TELL(synchronized, &event); }
void reportOverhead(const SondeOverhead& event) { SONDE_TELL(overhead, &event); }

void reportPreemption(const SondePreemption& event) { SONDE_TELL(preempted, &event); }
void reportUnifiedMemory(const SondeUnifiedMemory& event) { SONDE_TELL(unifiedMemory, &event); }

void reportContextFailed(void* context, uint32_t uid, int32_t error, const char* message) {
  ListenerUse use;
  if (use && use->contextFailed) use->contextFailed(use->self, context, uid, error, message);
}

namespace {

void enterCall(SondeApiCall& call, bool& outermost) {
  ThreadState& state = thread();
  outermost = state.apiDepth == 0 && state.runtimeDepth == 0;
  call.nested = outermost ? 0 : 1;
  if (outermost) state.correlation = 0;
  if (state.correlation == 0) state.correlation = nextCorrelationId();
  call.correlationId = state.correlation;
  state.apiDepth++;
  if (const ReportedContext now = reportedCurrent(); now.uid != 0) {
    call.context = now.handle;
    call.contextUid = now.uid;
  }
  ListenerUse use;
  if (use && use->apiEnter) use->apiEnter(use->self, &call);
}

void exitCall(SondeApiCall& call, bool outermost) {
  ThreadState& state = thread();
  // The call may have made or changed the current context.
  if (const ReportedContext now = reportedCurrent(); now.uid != 0) {
    call.context = now.handle;
    call.contextUid = now.uid;
  }
  {
    ListenerUse use;
    if (use && use->apiExit) use->apiExit(use->self, &call);
  }
  state.apiDepth--;
  if (outermost) state.correlation = 0;
}

}  // namespace

ApiScope::ApiScope(uint32_t cbid, const char* name, const void* params, const char* symbol) {
  call.size = sizeof call;
  call.domain = SONDE_DOMAIN_DRIVER;
  call.cbid = cbid;
  call.functionName = name;
  call.symbolName = symbol;
  call.params = params;
  enterCall(call, outermost_);
}

ApiScope::~ApiScope() = default;

CUresult ApiScope::exit(CUresult result) {
  call.returnValue = &result;
  exitCall(call, outermost_);
  return result;
}

CallCorrelation::CallCorrelation() : alone_(wants(SONDE_INTEREST_OVERHEAD)) {
  if (!alone_) [[likely]]
    return;
  ThreadState& state = thread();
  alone_ = state.apiDepth == 0 && state.runtimeDepth == 0;
  if (!alone_) return;
  state.correlation = 0;
  state.apiDepth++;
}

CallCorrelation::~CallCorrelation() {
  if (!alone_) [[likely]]
    return;
  ThreadState& state = thread();
  state.apiDepth--;
  state.correlation = 0;
}

// ------------------------------------------------------------- the runtime --

namespace {

void runtimeBegin() {
  ThreadState& state = thread();
  if (state.runtimeDepth++ == 0 && state.apiDepth == 0) state.correlation = 0;
}

void runtimeEnd() {
  ThreadState& state = thread();
  if (state.runtimeDepth == 0) return;
  if (--state.runtimeDepth == 0 && state.apiDepth == 0) state.correlation = 0;
}

void runtimeEnter(SondeApiCall* call) {
  ThreadState& state = thread();
  const bool outermost = state.runtimeDepth == 0 && state.apiDepth == 0;
  runtimeBegin();
  call->size = sizeof *call;
  call->domain = SONDE_DOMAIN_RUNTIME;
  call->nested = outermost ? 0 : 1;
  if (state.correlation == 0) state.correlation = nextCorrelationId();
  call->correlationId = state.correlation;
  if (const ReportedContext now = reportedCurrent(); now.uid != 0) {
    call->context = now.handle;
    call->contextUid = now.uid;
  }
  ListenerUse use;
  if (use && use->apiEnter) use->apiEnter(use->self, call);
}

void runtimeExit(SondeApiCall* call) {
  if (const ReportedContext now = reportedCurrent(); now.uid != 0) {
    call->context = now.handle;
    call->contextUid = now.uid;
  }
  {
    ListenerUse use;
    if (use && use->apiExit) use->apiExit(use->self, call);
  }
  runtimeEnd();
}

const SondeRuntimeHooks runtimeHooks = {
    sizeof(SondeRuntimeHooks), runtimeEnabled, kCallbackBytes, runtimeEnter, runtimeExit, runtimeBegin, runtimeEnd,
};

// The id is given when it is first needed, so that calls which neither enqueue
// work nor have a listener cost nothing.
int32_t attach(const SondeListener* who) {
  if (!who || who->size < sizeof(SondeListener)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(attachMutex);
  if (listener.load()) return CUDA_ERROR_ALREADY_ACQUIRED;
  fenced.store(!membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), std::memory_order_relaxed);
  listener.store(who, std::memory_order_seq_cst);
  return CUDA_SUCCESS;
}

}  // namespace

int32_t attachListener(const SondeListener* who) { return attach(who); }

void detachListener() {
  std::lock_guard lock(attachMutex);
  interest.store(0);
  for (uint32_t i = 0; i < kCallbackBytes; i++) {
    __atomic_store_n(&driverEnabled[i], uint8_t{0}, __ATOMIC_RELAXED);
    __atomic_store_n(&runtimeEnabled[i], uint8_t{0}, __ATOMIC_RELAXED);
  }
  listener.store(nullptr, std::memory_order_seq_cst);
  // A forked child may have to ask anew.
  if (!fenced.load(std::memory_order_relaxed) && !membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
      membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  waitForListenerUse();
}

}  // namespace sonde::softgpu::driver::tools

extern "C" {

__attribute__((visibility("default"))) const SondePlatform* sondeToolsGetPlatform(uint32_t abiVersion) {
  return abiVersion == SONDE_TOOLS_ABI_VERSION ? sonde::softgpu::driver::tools::platform() : nullptr;
}

__attribute__((visibility("default"))) const SondeRuntimeHooks* sondeToolsRuntime(uint32_t abiVersion) {
  return abiVersion == SONDE_TOOLS_ABI_VERSION ? &sonde::softgpu::driver::tools::runtimeHooks : nullptr;
}
}
