// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/objects.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "platform/nvidia/calls.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/launch_facts.h"
#include "platform/nvidia/lifetimes.h"

namespace sonde::platform::nvidia {
namespace {

// The first null stream is 7 and the first stream of the application 13, as
// tools know them.
constexpr uint32_t kFirstNullStream = 7, kFirstStream = 13;

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<CUcontext, Context*> contexts;
  std::vector<Context*> gone;           // a thread may still hold one
  std::unordered_set<CUcontext> reset;  // primary ones that are gone and may still be current
  uint32_t lastContext = 0;
  std::atomic<uint32_t> nextStream{kFirstStream};

  std::shared_mutex kernelMutex;
  std::unordered_map<CUfunction, const KernelInfo*> kernels;
  std::deque<KernelInfo> kernelInfos;  // for good: threads and records hold pointers to those of unloaded modules too
  std::unordered_map<CUmodule, uint32_t> modules;
  std::unordered_set<std::string> texts;
  uint32_t lastModule = 0, lastFunction = 0;

  std::mutex objectMutex;
  std::unordered_map<void*, uint32_t> objects;
  uint32_t lastObject = 0;
};
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

// Grows when a handle may have changed its meaning: what threads remember ends.
std::atomic<uint32_t> generation{1};

constexpr size_t kStreamsRemembered = 16, kKernelsRemembered = 64;  // powers of two

struct Remembered {
  uint32_t generation = 0;
  CUcontext contextHandle = nullptr;
  Context* context = nullptr;
  struct {
    CUstream handle;
    Context* context;
    Stream* stream;
  } streams[kStreamsRemembered] = {};
  struct {
    CUfunction function;
    const KernelInfo* kernel;
  } kernels[kKernelsRemembered] = {};
  void forget(uint32_t now) {
    contextHandle = nullptr;
    context = nullptr;
    for (auto& s : streams) s = {};
    for (auto& k : kernels) k = {};
    generation = now;
  }

  // Events that this thread will record next.
  Context* eventContext = nullptr;
  std::vector<CUevent> events;
  void giveEventsBack() {
    if (eventContext != nullptr && !eventContext->dead.load()) eventContext->giveEvents(events);
    events.clear();
    eventContext = nullptr;
  }
  ~Remembered() { giveEventsBack(); }
};

size_t placeOf(const void* handle, size_t places) {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return (bits >> 4 ^ bits >> 12 ^ bits >> 20) & (places - 1);
}
thread_local Remembered* remembered __attribute__((tls_model("initial-exec"))) = nullptr;

Remembered& memory() {
  if (remembered == nullptr) {
    // Freed by the thread's end.
    static thread_local struct Owner {
      Remembered* it = new Remembered;
      ~Owner() {
        remembered = nullptr;
        delete it;
      }
    } owner;
    remembered = owner.it;
  }
  const uint32_t now = generation.load(std::memory_order_acquire);
  if (remembered->generation != now) remembered->forget(now);
  return *remembered;
}

uint64_t threadKey() {
  static std::atomic<uint64_t> next{1};
  static thread_local uint64_t key = next.fetch_add(1);
  return key;
}

}  // namespace

CUevent Context::takeEvent() {
  {
    std::lock_guard lock(eventMutex);
    if (!events.empty()) {
      CUevent event = events.back();
      events.pop_back();
      return event;
    }
  }
  OutsideCapture outside;
  WithContext with(handle);
  CUevent first = nullptr;
  for (int i = 0; i < 32; ++i) {
    CUevent event;
    if (own.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) break;
    if (first == nullptr) {
      first = event;
    } else {
      giveEvent(event);
    }
  }
  return first;
}

void Context::stockEvents(size_t least, size_t n) {
  {
    std::lock_guard lock(eventMutex);
    if (events.size() >= least) return;
    n -= events.size();
  }
  OutsideCapture outside;
  WithContext with(handle);
  std::vector<CUevent> made;
  made.reserve(n);
  for (CUevent event; made.size() < n && with && own.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS;)
    made.push_back(event);
  giveEvents(made);
}

CUevent takeThreadEvent(Context& context) {
  Remembered& m = memory();
  if (m.eventContext != &context) {
    m.giveEventsBack();
    m.eventContext = &context;
  }
  if (m.events.empty()) {
    context.takeEvents(64, &m.events);
    if (m.events.empty()) return nullptr;
  }
  const CUevent event = m.events.back();
  m.events.pop_back();
  return event;
}

void Context::giveEvents(const std::vector<CUevent>& some) {
  std::lock_guard lock(eventMutex);
  events.insert(events.end(), some.begin(), some.end());
}

void Context::takeEvents(size_t n, std::vector<CUevent>* out) {
  CUevent first = takeEvent();  // makes some where there are none
  if (first == nullptr) return;
  out->push_back(first);
  std::lock_guard lock(eventMutex);
  const size_t more = std::min(n - 1, events.size());
  out->insert(out->end(), events.end() - static_cast<ptrdiff_t>(more), events.end());
  events.resize(events.size() - more);
}

void Context::giveEvent(CUevent event) {
  if (event == nullptr) return;
  std::lock_guard lock(eventMutex);
  events.push_back(event);
}

namespace {

// Told without a hook: the context may be older than those.
bool isPrimary(CUcontext handle, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  if (!own.cuDevicePrimaryCtxGetState || own.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS ||
      !active)
    return false;
  CUcontext primary = nullptr;
  if (!own.cuDevicePrimaryCtxRetain || own.cuDevicePrimaryCtxRetain(&primary, device) != CUDA_SUCCESS) return false;
  own.cuDevicePrimaryCtxRelease(device);
  return primary == handle;
}

}  // namespace

Context* findContext(CUcontext handle, bool create) {
  if (handle == nullptr) return nullptr;
  Registry& r = registry();
  {
    std::shared_lock lock(r.mutex);
    if (const auto at = r.contexts.find(handle); at != r.contexts.end()) return at->second;
  }
  if (!create) return nullptr;
  {
    std::unique_lock lock(r.mutex);
    r.reset.erase(handle);
  }
  CUdevice device = 0;
  {
    WithContext with(handle);
    if (!with || own.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  }
  const bool primary = isPrimary(handle, device);
  bool fresh = false;
  std::unique_lock lock(r.mutex);
  Context*& context = r.contexts[handle];
  if (context == nullptr) {
    context = new Context;
    context->handle = handle;
    context->device = static_cast<uint32_t>(device);
    context->primary.store(primary);
    int clusters = 0;
    context->launchesClusters =
        own.cuDeviceGetAttribute &&
        own.cuDeviceGetAttribute(&clusters, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device) == CUDA_SUCCESS && clusters;
    context->uid = ++r.lastContext;
    fresh = true;
  }
  Context* result = context;
  lock.unlock();
  if (fresh) reportContext(*result);
  return result;
}

bool wasReset(CUcontext handle) {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  return r.reset.count(handle) != 0;
}

Context* currentContext(bool create) {
  CUcontext handle = nullptr;
  if (!own.cuCtxGetCurrent || own.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || handle == nullptr) return nullptr;
  Remembered& m = memory();
  if (m.contextHandle != handle) {
    m.context = findContext(handle, create || !wasReset(handle));
    m.contextHandle = m.context != nullptr ? handle : nullptr;
  }
  return m.context;
}

std::vector<Context*> liveContexts() {
  Registry& r = registry();
  std::shared_lock lock(r.mutex);
  std::vector<Context*> result;
  for (const auto& [handle, context] : r.contexts) result.push_back(context);
  return result;
}

Stream* rememberedStream(const Context& context, CUstream handle) {
  const auto& known = memory().streams[placeOf(handle, kStreamsRemembered)];
  return known.handle == handle && known.context == &context ? known.stream : nullptr;
}

Stream* findStream(Context& context, CUstream handle, bool perThread) {
  uint64_t thread = 0;
  if (handle == nullptr) handle = perThread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_PER_THREAD) thread = threadKey();
  auto& known = memory().streams[placeOf(handle, kStreamsRemembered)];
  if (known.handle == handle && known.context == &context) return known.stream;
  const bool legacy = handle == CU_STREAM_LEGACY;
  Stream* found = nullptr;
  {
    std::lock_guard lock(context.streamMutex);
    for (Stream* s : context.streams)
      if (s->handle == handle && s->thread == thread && !s->dead.load()) found = s;
    if (found == nullptr) {
      found = new Stream;
      found->handle = handle;
      found->context = &context;
      found->legacy = legacy;
      found->thread = thread;
      found->id = legacy && context.uid == 1 ? kFirstNullStream : registry().nextStream.fetch_add(1);
      unsigned flags = 0;
      if (!legacy && own.cuStreamGetFlags && own.cuStreamGetFlags(handle, &flags) == CUDA_SUCCESS)
        found->blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
      // Asking for the null stream's might disturb a capture.
      if (!legacy) found->window.store(windowOfStream(handle));
      if (own.cuStreamGetPriority) own.cuStreamGetPriority(handle, &found->priority);
      context.streams.push_back(found);
    }
  }
  known = {handle, &context, found};
  return found;
}

uint32_t newStreamId() { return registry().nextStream.fetch_add(1); }

std::vector<Stream*> liveStreams(Context& context) {
  std::lock_guard lock(context.streamMutex);
  return context.streams;
}

void forgetContext(CUcontext handle) {
  Registry& r = registry();
  std::unique_lock lock(r.mutex);
  const auto at = r.contexts.find(handle);
  if (at == r.contexts.end()) return;
  Context* context = at->second;
  context->dead.store(true);
  if (context->primary.load()) r.reset.insert(handle);
  r.gone.push_back(context);
  r.contexts.erase(at);
  {
    // Thousands, which went with the context; programs reset devices again and again.
    std::lock_guard events(context->eventMutex);
    context->events = {};
  }
  generation.fetch_add(1, std::memory_order_release);
}

void forgetStream(CUstream handle) {
  for (Context* context : liveContexts()) {
    std::lock_guard lock(context->streamMutex);
    for (Stream* s : context->streams)
      if (s->handle == handle) s->dead.store(true);  // its last work is still to be reported
  }
  generation.fetch_add(1, std::memory_order_release);
}

const char* keep(const char* text) {
  Registry& r = registry();
  std::unique_lock lock(r.kernelMutex);
  return r.texts.emplace(text).first->c_str();
}

uint32_t moduleId(CUmodule module) {
  Registry& r = registry();
  std::unique_lock lock(r.kernelMutex);
  uint32_t& id = r.modules[module];
  if (id == 0) id = ++r.lastModule;
  return id;
}

// All but the function's id.
KernelInfo askKernel(CUfunction function) {
  KernelInfo info;
  const char* name = nullptr;
  CUfunction real = function;
  // Where a function is expected a kernel of a library may stand.
  if (!own.cuFuncGetName || own.cuFuncGetName(&name, function) != CUDA_SUCCESS) {
    name = nullptr;
    auto* kernel = reinterpret_cast<CUkernel>(function);
    if (own.cuKernelGetName && own.cuKernelGetName(&name, kernel) != CUDA_SUCCESS) name = nullptr;
    if (own.cuKernelGetFunction) own.cuKernelGetFunction(&real, kernel);
  }
  info.name = keep(name != nullptr ? name : "unknown");
  auto attribute = [real](CUfunction_attribute which) {
    int value = 0;
    if (own.cuFuncGetAttribute) own.cuFuncGetAttribute(&value, which, real);
    return static_cast<uint32_t>(value);
  };
  // What a thread occupies, as profilers of these cards tell it: registers are
  // handed out in eights, 16 at least.
  info.registers = std::max((attribute(CU_FUNC_ATTRIBUTE_NUM_REGS) + 7) / 8 * 8, 16u);
  info.staticShared = attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  info.localPerThread = attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  CUmodule module = nullptr;
  if (own.cuFuncGetModule && own.cuFuncGetModule(&module, real) == CUDA_SUCCESS) info.moduleId = moduleId(module);
  info.real = real;
  constexpr CUfunction_attribute kCluster[3] = {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
                                                CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
                                                CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH};
  for (int i = 0; i < 3; ++i) info.cluster[i] = attribute(kCluster[i]);
  if (info.cluster[0] != 0)
    for (uint32_t& n : info.cluster) n = std::max(n, 1u);
  info.maxDynamicShared = attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  info.clusterPolicy = static_cast<int32_t>(attribute(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE));
  return info;
}

const KernelInfo& kernelInfo(CUfunction function) {
  auto& known = memory().kernels[placeOf(function, kKernelsRemembered)];
  if (known.kernel != nullptr && known.function == function) return *known.kernel;
  Registry& r = registry();
  const KernelInfo* found = nullptr;
  {
    std::shared_lock lock(r.kernelMutex);
    if (const auto at = r.kernels.find(function); at != r.kernels.end()) found = at->second;
  }
  if (found == nullptr) {
    KernelInfo info = askKernel(function);
    std::unique_lock lock(r.kernelMutex);
    const KernelInfo*& place = r.kernels[function];
    if (place == nullptr) {
      info.functionId = ++r.lastFunction;
      place = &r.kernelInfos.emplace_back(info);
    }
    found = place;
  }
  known = {function, found};
  return *found;
}

void kernelChanged(CUfunction function) {
  Registry& r = registry();
  const CUfunction real = askKernel(function).real;
  std::vector<std::pair<CUfunction, uint32_t>> known;  // handles of the kernel, and their ids
  {
    std::shared_lock lock(r.kernelMutex);
    for (const auto& [handle, info] : r.kernels)
      if (handle == function || info->real == real) known.emplace_back(handle, info->functionId);
  }
  for (const auto& [handle, id] : known) {
    KernelInfo info = askKernel(handle);
    info.functionId = id;
    std::unique_lock lock(r.kernelMutex);
    if (const auto at = r.kernels.find(handle); at != r.kernels.end()) at->second = &r.kernelInfos.emplace_back(info);
  }
  generation.fetch_add(1, std::memory_order_release);
}

void forgetKernels() {
  Registry& r = registry();
  std::unique_lock lock(r.kernelMutex);
  r.kernels.clear();
  r.modules.clear();
  generation.fetch_add(1, std::memory_order_release);
}

uint32_t objectId(void* handle) {
  Registry& r = registry();
  std::lock_guard lock(r.objectMutex);
  uint32_t& id = r.objects[handle];
  if (id == 0) id = ++r.lastObject;
  return id;
}

void forgetObject(void* handle) {
  Registry& r = registry();
  std::lock_guard lock(r.objectMutex);
  r.objects.erase(handle);
}

}  // namespace sonde::platform::nvidia
