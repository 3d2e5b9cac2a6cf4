// SPDX-License-Identifier: Apache-2.0
//
// Kernel launches.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "platform/clock.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/counters.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/env.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/launch.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/tools.h"
#include "softgpu/exec/fault_text.h"

namespace sonde::softgpu::driver {
namespace {

int64_t attribute(const Device& device, int id) {
  int64_t value = 0;
  deviceAttribute(device, id, value);
  return value;
}

// `why` stays empty where the code says it all.
CUresult checkShape(const LaunchShape& shape, const Function& f, std::string& why) {
  const Device& device = *f.module()->context()->device();
  const exec::KernelInfo& info = f.info();
  const auto refuse = [&why](CUresult code, std::string text) {
    why = std::move(text);
    return code;
  };
  const auto text = [](uint64_t n) { return std::to_string(n); };
  const uint32_t grid[3] = {shape.grid.x, shape.grid.y, shape.grid.z};
  const uint32_t block[3] = {shape.block.x, shape.block.y, shape.block.z};
  for (int i = 0; i < 3; i++) {
    const auto axis = [i] { return std::string(1, static_cast<char>('x' + i)); };
    const auto within = [&](const char* what, uint32_t size, int most) {
      if (size != 0 && size <= attribute(device, most + i)) return true;
      why = std::string(what) + " is " + text(size) + " in " + axis() + ", the device allows 1 to " +
            text(static_cast<uint64_t>(attribute(device, most + i)));
      return false;
    };
    if (!within("the grid", grid[i], CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
        !within("the block", block[i], CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X))
      return CUDA_ERROR_INVALID_VALUE;
    if (info.requiredBlock[0] && info.requiredBlock[i] != block[i])
      return refuse(CUDA_ERROR_INVALID_VALUE, "the block is " + text(block[i]) + " in " + axis() +
                                                  ", the kernel requires " + text(info.requiredBlock[i]));
  }
  const uint32_t most = std::min(device.model.maxThreadsPerBlock, info.maxThreadsPerBlock);
  if (shape.block.count() > most)
    return refuse(CUDA_ERROR_INVALID_VALUE, "a block of " + text(shape.block.count()) + " threads, " +
                                                (most < device.model.maxThreadsPerBlock ? "the kernel" : "the device") +
                                                " allows " + text(most));
  // Registers refuse no launch: how many an assembler would take is only estimated.
  const auto shared = static_cast<uint64_t>(f.maxDynamicShared.load(std::memory_order_relaxed));
  if (shape.dynamicShared > shared)
    return refuse(CUDA_ERROR_INVALID_VALUE, text(shape.dynamicShared) +
                                                " bytes of dynamic shared memory, the kernel may have " + text(shared) +
                                                " (cudaFuncAttributeMaxDynamicSharedMemorySize sets it)");
  if (shape.cluster.x) {
    if (!attribute(device, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
      return refuse(CUDA_ERROR_NOT_SUPPORTED, "this model of the device has no clusters");
    const uint64_t size = shape.cluster.count();
    if (size == 0 || size > (f.nonPortableCluster.load() ? 16u : 8u)) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    if (shape.grid.x % shape.cluster.x || shape.grid.y % shape.cluster.y || shape.grid.z % shape.cluster.z)
      return refuse(CUDA_ERROR_INVALID_VALUE, "the grid is not a whole number of clusters");
  }
  if (shape.cooperative) {
    if (!attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)) return CUDA_ERROR_NOT_SUPPORTED;
    const uint64_t fit = uint64_t{exec::Engine::get().occupancy(f.module()->program(), f.index(),
                                                                static_cast<uint32_t>(shape.block.count()),
                                                                shape.dynamicShared, device.model)} *
                         (shape.sms ? shape.sms->size() : device.model.smCount);
    if (shape.grid.count() > fit)
      return refuse(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "a cooperative grid of " + text(shape.grid.count()) +
                                                                 " blocks, " + text(fit) + " are resident at once");
  }
  return CUDA_SUCCESS;
}

// Once a process: programs that look for the shape that fits ask often.
void sayRefused(const Function& f, const std::string& why) {
  static std::atomic<bool> said{false};
  if (!why.empty() && !said.exchange(true))
    say("a launch of '" + exec::shownName(f.info().name) + "' was refused: " + why);
}

}  // namespace

CUresult packParams(const exec::KernelInfo& info, void** kernelParams, void** extra, ParamBuffer& params) {
  std::byte* to = params.resize(info.paramBytes);
  if (extra) {
    if (kernelParams) return CUDA_ERROR_INVALID_VALUE;
    const void* buffer = nullptr;
    size_t bytes = 0;
    for (void** p = extra; *p != CU_LAUNCH_PARAM_END; p += 2) {
      if (p[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = p[1];
      else if (p[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
        bytes = *static_cast<size_t*>(p[1]);
      else
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (info.paramBytes && (!buffer || bytes < info.paramBytes)) return CUDA_ERROR_INVALID_VALUE;
    if (info.paramBytes) std::memcpy(to, buffer, info.paramBytes);
    return CUDA_SUCCESS;
  }
  if (info.params.empty()) return CUDA_SUCCESS;
  if (!kernelParams) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < info.params.size(); i++) {
    if (!kernelParams[i]) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(to + info.params[i].offset, kernelParams[i], info.params[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult checkLaunchShape(const Function& function, const LaunchShape& shape) {
  std::string why;
  return checkShape(shape, function, why);
}

CUresult takeClusterOf(const Function& function, LaunchShape& shape) {
  const exec::KernelInfo& info = function.info();
  if (info.requiredCluster[0]) {
    const exec::Dim3 required{info.requiredCluster[0], info.requiredCluster[1], info.requiredCluster[2]};
    if (shape.cluster.x &&
        (shape.cluster.x != required.x || shape.cluster.y != required.y || shape.cluster.z != required.z))
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    shape.cluster = required;
  } else if (!shape.cluster.x && function.clusterX.load()) {
    auto dimension = [](const std::atomic<int>& v) { return static_cast<uint32_t>(std::max(1, v.load())); };
    shape.cluster = {dimension(function.clusterX), dimension(function.clusterY), dimension(function.clusterZ)};
  }
  return CUDA_SUCCESS;
}

CUresult prepareLaunch(Function& function, LaunchShape& shape) {
  if (const CUresult e = takeClusterOf(function, shape)) return e;
  std::string why;
  if (const CUresult e = checkShape(shape, function, why)) {
    sayRefused(function, why);
    return e;
  }
  const Context& context = *function.module()->context();
  return function.load(static_cast<exec::CountLevel>(context.countLevel.load(std::memory_order_relaxed)));
}

CUresult takeAccessPolicy(const Device& device, const CUaccessPolicyWindow& window, AccessPolicy& policy) {
  int64_t largest = 0;
  deviceAttribute(device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, largest);
  const auto known = [](CUaccessProperty p) {
    return p == CU_ACCESS_PROPERTY_NORMAL || p == CU_ACCESS_PROPERTY_STREAMING || p == CU_ACCESS_PROPERTY_PERSISTING;
  };
  // Misses may not persist.
  if (window.num_bytes > static_cast<uint64_t>(largest) || !(window.hitRatio >= 0 && window.hitRatio <= 1) ||
      !known(window.hitProp) || !known(window.missProp) || window.missProp == CU_ACCESS_PROPERTY_PERSISTING)
    return CUDA_ERROR_INVALID_VALUE;
  policy = window.num_bytes != 0 ? AccessPolicy(window) : std::nullopt;
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction hFunction, const LaunchShape& shape, CUstream hStream, void** kernelParams, void** extra) {
  const tools::CallCorrelation correlation;
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Ref<Function> function;
  if (const CUresult e = findFunction(hFunction, function)) return e;
  Context& context = *stream->context();
  if (function->module()->context() != &context) return CUDA_ERROR_INVALID_HANDLE;
  LaunchShape full = shape;
  full.sms = stream->sms;
  const exec::KernelInfo& info = function->info();
  if (const CUresult e = prepareLaunch(*function, full)) return e;

  Command* command = stream->newCommand(CommandKind::kernel);
  LaunchPlan& plan = command->launch;
  if (const CUresult e = packParams(info, kernelParams, extra, plan.params)) {
    stream->giveBack(command);
    return e;
  }
  plan.function = std::move(function);
  plan.grid = full.grid;
  plan.block = full.block;
  plan.cluster = full.cluster;
  plan.dynamicShared = full.dynamicShared;
  plan.cooperative = full.cooperative;
  plan.sms = full.sms;
  plan.carveout = full.carveout;
  plan.clusterPolicy = full.clusterPolicy;
  plan.accessPolicy = full.accessPolicy ? full.accessPolicy : stream->accessPolicy();
  plan.priority = full.hasPriority ? full.priority : stream->priority();
  if (Capture* capture = stream->capture.load()) return captureKernel(*capture, *stream, command);
  command->gridId = nextGridId();
  if (tools::wants(SONDE_INTEREST_LATENCY)) command->queuedNs = platform::nowNs();
  const uint64_t place = submit(*stream, command);
  if (environment().launchBlocking) {
    stream->waitFor(place);
    return context.error();
  }
  return CUDA_SUCCESS;
}

DRIVER_API(cuLaunchKernel)
(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
 unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void** kernelParams,
 void** extra) {
  LaunchShape shape;
  shape.grid = {gridDimX, gridDimY, gridDimZ};
  shape.block = {blockDimX, blockDimY, blockDimZ};
  shape.dynamicShared = sharedMemBytes;
  return launch(f, shape, hStream, kernelParams, extra);
}

DRIVER_API(cuLaunchCooperativeKernel)
(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX,
 unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void** kernelParams) {
  LaunchShape shape;
  shape.grid = {gridDimX, gridDimY, gridDimZ};
  shape.block = {blockDimX, blockDimY, blockDimZ};
  shape.dynamicShared = sharedMemBytes;
  shape.cooperative = true;
  return launch(f, shape, hStream, kernelParams, nullptr);
}

namespace {

// An event that a launch records: when its blocks have begun, or triggered it. Here that is observed when the kernel
// has ended, which is allowed to be as late.
struct LaunchEvent {
  CUevent event;
  unsigned flags;
};

CUresult launchEvent(CUevent handle, int flags, CUstream hStream, std::vector<LaunchEvent>& out) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(handle, event)) return e;
  if (!(event->flags() & CU_EVENT_DISABLE_TIMING) || event->shared || (flags & ~CU_EVENT_RECORD_EXTERNAL))
    return CUDA_ERROR_INVALID_VALUE;
  if (event->context() != stream->context()) return CUDA_ERROR_INVALID_HANDLE;
  out.push_back({handle, static_cast<unsigned>(flags)});
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuLaunchKernelEx)(const CUlaunchConfig* config, CUfunction f, void** kernelParams, void** extra) {
  if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  LaunchShape shape;
  shape.grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
  shape.block = {config->blockDimX, config->blockDimY, config->blockDimZ};
  shape.dynamicShared = config->sharedMemBytes;
  std::vector<LaunchEvent> after;
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const CUlaunchAttribute& a = config->attrs[i];
    switch (static_cast<int>(a.id)) {
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: {
        Ref<Stream> stream;
        if (const CUresult e = resolveStream(config->hStream, stream)) return e;
        if (const CUresult e =
                takeAccessPolicy(*stream->context()->device(), a.value.accessPolicyWindow, shape.accessPolicy))
          return e;
        break;
      }
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        // Blocks of a cluster are given out in one order; records tell what was asked for.
        if (!knownClusterPolicy(a.value.clusterSchedulingPolicyPreference)) return CUDA_ERROR_INVALID_VALUE;
        shape.clusterPolicy = a.value.clusterSchedulingPolicyPreference;
        break;
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      // Grids of one stream run one after the other here, which is what an
      // overlapped secondary kernel may rely on at most.
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        if (const CUresult e =
                launchEvent(a.value.programmaticEvent.event, a.value.programmaticEvent.flags, config->hStream, after))
          return e;
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        if (const CUresult e = launchEvent(a.value.launchCompletionEvent.event, a.value.launchCompletionEvent.flags,
                                           config->hStream, after))
          return e;
        break;
      // Of streams only.
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: return CUDA_ERROR_INVALID_VALUE;
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        shape.carveout = static_cast<int32_t>(a.value.sharedMemCarveout);
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: shape.cooperative = a.value.cooperative != 0; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        shape.cluster = {a.value.clusterDim.x, a.value.clusterDim.y, a.value.clusterDim.z};
        break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        shape.hasPriority = true;
        shape.priority = a.value.priority;
        break;
      default: return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  if (const CUresult e = launch(f, shape, config->hStream, kernelParams, extra)) return e;
  for (const LaunchEvent& e : after)
    if (const CUresult r = recordEvent(e.event, config->hStream, e.flags)) return r;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
