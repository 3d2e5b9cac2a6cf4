// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/hooks.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "platform/clock.h"
#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/lifetimes.h"
#include "platform/nvidia/memory.h"
#include "platform/nvidia/objects.h"
#include "platform/nvidia/under_way.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {

volatile uint8_t driverWanted[kCbidCount];
volatile uint8_t runtimeWanted[kCbidCount];
volatile uint8_t driverHandling[kCbidCount];
void* driverOriginal[kCbidCount];
void* runtimeOriginal[kCbidCount];
thread_local ThreadCalls threadCalls __attribute__((tls_model("initial-exec")));

namespace {

std::atomic<uint32_t> correlations{0};

}  // namespace

uint32_t nextCorrelationId() {
  uint32_t id = correlations.fetch_add(1, std::memory_order_relaxed) + 1;
  return id != 0 ? id : nextCorrelationId();
}

namespace {

void fillContext(SondeApiCall& call) {
  if (const Context* context = currentContext()) {
    call.context = context->handle;
    call.contextUid = context->uid;
  } else {
    call.context = nullptr;
    call.contextUid = 0;
  }
}

// A hooked call while it is open: correlation and nesting.
class OpenCall {
 public:
  // `counted`: somebody will see its id.
  explicit OpenCall(bool counted) : thread_(threadCalls), outermost_(thread_.depth == 0) {
    if (counted && thread_.correlation == 0) thread_.correlation = nextCorrelationId();
    ++thread_.depth;
  }
  ~OpenCall() {
    if (--thread_.depth == 0) thread_.correlation = 0;
  }
  ThreadCalls& thread() { return thread_; }
  bool outermost() const { return outermost_; }

 private:
  ThreadCalls& thread_;
  bool outermost_;
};

void enter(SondeApiCall& call, OpenCall& open, uint32_t domain, uint32_t cbid, const char* name, const void* params) {
  call.size = sizeof call;
  call.domain = domain;
  call.cbid = cbid;
  call.functionName = name;
  call.params = params;
  call.nested = open.outermost() ? 0 : 1;
  call.correlationId = open.thread().correlation;
  fillContext(call);
  ListenerUse use;
  if (use && use->apiEnter) use->apiEnter(use->self, &call);
}

// Calls that may make, change or drop the current context.
bool changesContext(const char* name) {
  auto begins = [name](std::string_view with) { return std::strncmp(name, with.data(), with.size()) == 0; };
  if (name[2] == 'd') return begins("cudaSetDevice") || begins("cudaDeviceReset") || begins("cudaInitDevice");
  return begins("cuCtx") || begins("cuDevicePrimary");
}

void leave(SondeApiCall& call, int32_t* result) {
  call.returnValue = result;
  if (call.context == nullptr || changesContext(call.functionName)) fillContext(call);
  ListenerUse use;
  if (use && use->apiExit) use->apiExit(use->self, &call);
}

}  // namespace

int32_t driverCall(uint32_t cbid, const char* name, bool perThread, const void* params, FunctionRef<int32_t()> run) {
  ThreadCalls& thread = threadCalls;
  if (thread.inDriver) return run();
  if (thread.underWay != nullptr) [[unlikely]]
    checkUnderWay(thread);
  constexpr uint8_t kReported = kHandleWork | kHandleSync | kHandleMemory;
  const uint8_t handling = flagOf(driverHandling[cbid]);
  const bool wanted = flagOf(driverWanted[cbid]) != 0;
  OpenCall open(wanted || (handling & kReported) != 0);
  SondeApiCall call;
  if (wanted) {
    call = {};
    if (handling & kHandleWork) call.symbolName = launchedKernel(cbid, params);
    enter(call, open, SONDE_DOMAIN_DRIVER, cbid, name, params);
  }
  if (handling & kHandleMemory) beforeMemory(cbid, params);
  if (handling & kHandleLifetime) beforeLifetime(cbid, params);
  PendingWork work;
  if (handling & (kHandleWork | kHandleOrder)) work.prepare(cbid, perThread, params);
  const uint64_t started = (handling & kHandleSync) != 0 || work.needsBegin() ? platform::nowNs() : 0;
  thread.inDriver = true;
  int32_t result = handling & kHandleGraph ? graphCall(cbid, params, run) : run();
  thread.inDriver = false;
  if (handling) {
    if (handling & (kHandleWork | kHandleOrder)) work.finish(result, started, thread.correlation);
    if (handling & kHandleLifetime) afterLifetime(cbid, params, result);
    if (handling & kHandleSync) reportSync(cbid, perThread, params, result, started, thread.correlation);
    if (handling & kHandleMemory) reportMemory(cbid, perThread, params, result, thread.correlation);
  }
  if (wanted) leave(call, &result);
  return result;
}

int32_t runtimeCall(uint32_t cbid, const char* name, const void* params, FunctionRef<int32_t()> run) {
  ThreadCalls& thread = threadCalls;
  if (thread.underWay != nullptr && !thread.inDriver) [[unlikely]]
    checkUnderWay(thread);
  if (thread.inRuntime || thread.inDriver) return run();
  OpenCall open(true);
  SondeApiCall call{};
  call.symbolName = launchedStub(cbid, params);
  enter(call, open, SONDE_DOMAIN_RUNTIME, cbid, name, params);
  thread.inRuntime = true;
  int32_t result = run();
  thread.inRuntime = false;
  leave(call, &result);
  return result;
}

void enterUnderWay(SondeApiCall& call, uint32_t cbid, const char* name) {
  OpenCall open(true);                                           // the depth stays as it is: the caller's
  enter(call, open, SONDE_DOMAIN_RUNTIME, cbid, name, nullptr);  // nested: it began unseen
}

void leaveUnderWay(SondeApiCall& call, int32_t* result) { leave(call, result); }

void debug(const char* format, ...) {
  static const bool enabled = [] {
    const char* text = std::getenv("SONDE_DEBUG");
    return text != nullptr && text[0] != 0 && text[0] != '0';
  }();
  if (!enabled) return;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "sonde: %s\n", text);
}

}  // namespace sonde::platform::nvidia
