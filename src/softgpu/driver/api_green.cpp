// SPDX-License-Identifier: Apache-2.0
//
// Parts of a device, and green contexts on them.
#include <algorithm>
#include <cstring>

#include "softgpu/driver/capture.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/message.h"

namespace sonde::softgpu::driver {

CUresult cuDevicePrimaryCtxRetain_impl(CUcontext* pctx, CUdevice dev);
CUresult cuDevicePrimaryCtxRelease_v2_impl(CUdevice dev);

namespace {

constexpr uint32_t kMagic = 0x50474e53;
constexpr uint32_t kMostSms = 384;

// What a CUdevResource carries for us in the bytes that belong to the driver.
struct Hidden {
  uint32_t magic = 0;
  int32_t device = 0;
  uint64_t split = 0;  // of the call that made it; 0: all of a device or of a context
  uint64_t mask[kMostSms / 64] = {};
};
static_assert(sizeof(Hidden) <= sizeof(CUdevResource::_internal_padding));

Hidden hiddenOf(const CUdevResource& r) {
  Hidden h;
  std::memcpy(&h, r._internal_padding, sizeof h);
  return h;
}

SmSet smsOf(const Hidden& h) {
  SmSet sms;
  for (uint32_t i = 0; i < kMostSms; i++)
    if (h.mask[i / 64] >> (i % 64) & 1) sms.push_back(i);
  return sms;
}

// How finely a device can be divided.
struct Grain {
  uint32_t least, step;
};
Grain grainOf(const Device& device, bool alone) {
  switch (device.model.ccMajor) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6: return {1, 1};
    case 7: return {2, 2};
    case 8: return {4, 2};
    default: return alone ? Grain{2, 2} : Grain{8, 8};
  }
}

CUdevResource resourceOf(const Device& device, const SmSet& sms, uint64_t split) {
  CUdevResource r{};
  if (sms.empty()) return r;  // of no type
  Hidden h;
  h.magic = kMagic;
  h.device = static_cast<int32_t>(device.ordinal);
  h.split = split;
  for (uint32_t sm : sms) h.mask[sm / 64] |= uint64_t{1} << (sm % 64);
  std::memcpy(r._internal_padding, &h, sizeof h);
  const Grain grain = grainOf(device, false);
  r.type = CU_DEV_RESOURCE_TYPE_SM;
  r.sm.smCount = static_cast<unsigned>(sms.size());
  r.sm.minSmPartitionSize = grain.least;
  r.sm.smCoscheduledAlignment = grain.step;
  return r;
}

// A resource that a function of this file made.
CUresult check(const CUdevResource* r, Hidden& h) {
  if (!r) return CUDA_ERROR_INVALID_VALUE;
  if (r->type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  h = hiddenOf(*r);
  const Device* device = h.magic == kMagic ? Driver::get().device(h.device) : nullptr;
  if (!device || smsOf(h).size() != r->sm.smCount || smsOf(h).back() >= device->model.smCount)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult wholeOf(const Device& device, CUdevResource* resource, CUdevResourceType type,
                 const std::shared_ptr<const SmSet>& part) {
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (device.model.smCount > kMostSms) return CUDA_ERROR_NOT_SUPPORTED;
  SmSet sms;
  if (part)
    sms = *part;
  else
    for (uint32_t i = 0; i < device.model.smCount; i++) sms.push_back(i);
  *resource = resourceOf(device, sms, 0);
  return CUDA_SUCCESS;
}

// A descriptor lives as long as the process: no function of CUDA destroys one.
class ResourceDescriptor final : public Object {
 public:
  static constexpr Type kType = Type::resourceDescriptor;
  ResourceDescriptor(int device, SmSet sms)
      : Object(kType), device(device), sms(std::make_shared<SmSet>(std::move(sms))) {}
  const int device;
  const std::shared_ptr<const SmSet> sms;
};

CUresult findGreen(CUgreenCtx handle, Ref<GreenContext>& out) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  out = HandleTable::find<GreenContext>(handle);
  if (!out) return CUDA_ERROR_INVALID_CONTEXT;
  if (out->primary()->destroyed.load()) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return out->primary()->error();
}

}  // namespace

DRIVER_API(cuDeviceGetDevResource)(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Device* d = Driver::get().device(device);
  return d ? wholeOf(*d, resource, type, nullptr) : CUDA_ERROR_INVALID_DEVICE;
}

DRIVER_API(cuCtxGetDevResource)(CUcontext hCtx, CUdevResource* resource, CUdevResourceType type) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (const Ref<GreenContext> green = greenOf(hCtx))
    return wholeOf(*green->primary()->device(), resource, type, green->sms());
  const Ref<Context> context = HandleTable::find<Context>(hCtx);
  return context ? wholeOf(*context->device(), resource, type, nullptr) : CUDA_ERROR_INVALID_CONTEXT;
}

DRIVER_API(cuGreenCtxGetDevResource)(CUgreenCtx hCtx, CUdevResource* resource, CUdevResourceType type) {
  Ref<GreenContext> green;
  if (const CUresult e = findGreen(hCtx, green)) return e;
  return wholeOf(*green->primary()->device(), resource, type, green->sms());
}

DRIVER_API(cuDevSmResourceSplitByCount)
(CUdevResource* result, unsigned int* nbGroups, const CUdevResource* input, CUdevResource* remaining,
 unsigned int useFlags, unsigned int minCount) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  constexpr unsigned known =
      CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
  if (!nbGroups || (useFlags & ~known)) return CUDA_ERROR_INVALID_VALUE;
  Hidden h;
  if (const CUresult e = check(input, h)) return e;
  if (h.split) {
    say("what a split gave can be split again only as the resource of a green context made of it");
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  }
  const Device& device = *Driver::get().device(h.device);
  const SmSet sms = smsOf(h);
  if (minCount > sms.size()) return CUDA_ERROR_INVALID_VALUE;
  Grain grain = grainOf(device, useFlags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
  if (useFlags & CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE) {
    if (device.model.ccMajor < 9) return CUDA_ERROR_INVALID_VALUE;
    grain.least = std::max(grain.least, 8u);
  }
  const uint32_t size = std::max((minCount + grain.step - 1) / grain.step * grain.step, grain.least);
  const auto possible = static_cast<unsigned>(sms.size() / size);
  if (possible == 0) {
    say("a group of " + std::to_string(minCount) + " multiprocessors takes " + std::to_string(size) +
        ", of which the resource has only " + std::to_string(sms.size()));
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  }
  if (!result) {
    *nbGroups = possible;
    return CUDA_SUCCESS;
  }
  static std::atomic<uint64_t> splits{0};
  const uint64_t split = splits.fetch_add(1) + 1;
  const unsigned n = std::min(*nbGroups, possible);
  auto from = sms.begin();
  for (unsigned i = 0; i < n; i++, from += size) result[i] = resourceOf(device, {from, from + size}, split);
  if (remaining) *remaining = resourceOf(device, {from, sms.end()}, split);
  *nbGroups = n;
  return CUDA_SUCCESS;
}

DRIVER_API(cuDevResourceGenerateDesc)
(CUdevResourceDesc* phDesc, CUdevResource* resources, unsigned int nbResources) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!phDesc || !resources || nbResources == 0) return CUDA_ERROR_INVALID_VALUE;
  Hidden first;
  SmSet all;
  for (unsigned i = 0; i < nbResources; i++) {
    Hidden h;
    if (const CUresult e = check(&resources[i], h)) return e;
    if (i == 0) first = h;
    if (i > 0 && (h.device != first.device || h.split != first.split || h.split == 0))
      return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    const SmSet sms = smsOf(h);
    all.insert(all.end(), sms.begin(), sms.end());
  }
  std::sort(all.begin(), all.end());
  if (std::adjacent_find(all.begin(), all.end()) != all.end()) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  auto made = make<ResourceDescriptor>(first.device, std::move(all));
  if (!HandleTable::publish(made.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  *phDesc = static_cast<CUdevResourceDesc>(made->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGreenCtxCreate)(CUgreenCtx* phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Driver::get().device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  const Ref<ResourceDescriptor> what = HandleTable::find<ResourceDescriptor>(desc);
  if (!phCtx || !what || what->device != dev || flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  CUcontext primary;
  if (const CUresult e = cuDevicePrimaryCtxRetain_impl(&primary, dev)) return e;
  auto green = make<GreenContext>(HandleTable::find<Context>(primary), what->sms);
  if (!HandleTable::publish(green.get())) {
    cuDevicePrimaryCtxRelease_v2_impl(dev);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (const CUresult e = green->announce()) {
    HandleTable::retire(green.get());
    cuDevicePrimaryCtxRelease_v2_impl(dev);
    return e;
  }
  *phCtx = static_cast<CUgreenCtx>(green->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGreenCtxDestroy)(CUgreenCtx hCtx) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  const Ref<GreenContext> green = HandleTable::find<GreenContext>(hCtx);
  if (!green || green->destroyed.exchange(true)) return CUDA_ERROR_INVALID_CONTEXT;
  green->retire();
  auto& stack = thread().contexts;
  if (!stack.empty() && stack.back().green.get() == green.get()) stack.pop_back();
  HandleTable::retire(green.get());
  if (!green->primary()->destroyed.load())
    cuDevicePrimaryCtxRelease_v2_impl(static_cast<CUdevice>(green->primary()->device()->ordinal));
  return CUDA_SUCCESS;
}

DRIVER_API(cuCtxFromGreenCtx)(CUcontext* pContext, CUgreenCtx hCtx) {
  Ref<GreenContext> green;
  if (const CUresult e = findGreen(hCtx, green)) return e;
  if (!pContext) return CUDA_ERROR_INVALID_VALUE;
  *pContext = static_cast<CUcontext>(green->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuGreenCtxGetId)(CUgreenCtx greenCtx, unsigned long long* greenCtxId) {
  Ref<GreenContext> green;
  if (greenCtx) {
    if (const CUresult e = findGreen(greenCtx, green)) return e;
  } else {
    Ref<Context> context;
    if (const CUresult e = currentContext(context)) return e;
    green = Ref<GreenContext>(currentGreen());
    if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (!greenCtxId) return CUDA_ERROR_INVALID_VALUE;
  *greenCtxId = green->id();
  return CUDA_SUCCESS;
}

DRIVER_API(cuGreenCtxStreamCreate)(CUstream* phStream, CUgreenCtx greenCtx, unsigned int flags, int priority) {
  Ref<GreenContext> green;
  if (const CUresult e = findGreen(greenCtx, green)) return e;
  if (!phStream || flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  Ref<Stream> stream;
  if (const CUresult e = green->createStream(flags, priority, stream)) return e;
  *phStream = static_cast<CUstream>(stream->handle());
  return CUDA_SUCCESS;
}

DRIVER_API(cuStreamGetGreenCtx)(CUstream hStream, CUgreenCtx* phCtx) {
  Ref<Stream> stream;
  if (const CUresult e = resolveStream(hStream, stream)) return e;
  if (!phCtx) return CUDA_ERROR_INVALID_VALUE;
  *phCtx = stream->green ? static_cast<CUgreenCtx>(stream->green->handle()) : nullptr;
  return CUDA_SUCCESS;
}

DRIVER_API(cuGreenCtxRecordEvent)(CUgreenCtx hCtx, CUevent hEvent) {
  Ref<GreenContext> green;
  if (const CUresult e = findGreen(hCtx, green)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (event->context() != green->primary()) return CUDA_ERROR_INVALID_HANDLE;
  const auto streams = green->streams();
  if (const CUresult e = refuseCapturing(streams)) return e;
  return recordAfter(*green->primary(), streams, *event);
}

DRIVER_API(cuGreenCtxWaitEvent)(CUgreenCtx hCtx, CUevent hEvent) {
  Ref<GreenContext> green;
  if (const CUresult e = findGreen(hCtx, green)) return e;
  Ref<Event> event;
  if (const CUresult e = findEvent(hEvent, event)) return e;
  if (const CUresult e = refuseCapturing(green->streams())) return e;
  if (const CUresult e = refuseCaptured(*event)) return e;
  green->setGate(event->latest());
  for (const Ref<Stream>& stream : green->streams()) waitOn(*stream, *event, 0);
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
