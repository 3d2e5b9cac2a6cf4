// SPDX-License-Identifier: Apache-2.0
//
// Initialisation, and the devices.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/env.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/tools.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {

std::atomic<int> driverState{0};

Driver& Driver::get() {
  static Driver* driver = new Driver();  // outlives static destructors
  return *driver;
}

namespace {

std::string uuidText(const uint8_t* uuid) {
  char text[48];
  std::snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", uuid[0],
                uuid[1], uuid[2], uuid[3], uuid[4], uuid[5], uuid[6], uuid[7], uuid[8], uuid[9], uuid[10], uuid[11],
                uuid[12], uuid[13], uuid[14], uuid[15]);
  return text;
}

// The list stops at its first word that names no device, as CUDA defines.
std::vector<model::DeviceModel> visible(std::vector<model::DeviceModel> models, const std::string& list) {
  std::vector<model::DeviceModel> out;
  std::vector<size_t> taken;
  std::stringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    size_t index = models.size();
    if (word.rfind("GPU-", 0) == 0) {
      for (size_t i = 0; i < models.size(); i++)
        if (uuidText(models[i].uuid).rfind(word, 0) == 0) index = i;
    } else if (!word.empty() && word.find_first_not_of("0123456789 ") == std::string::npos) {
      index = static_cast<size_t>(std::strtoul(word.c_str(), nullptr, 10));
    }
    if (index >= models.size()) break;
    if (std::find(taken.begin(), taken.end(), index) != taken.end()) return {};
    taken.push_back(index);
    out.push_back(models[index]);
  }
  return out;
}

void loadInjection() {
  const std::string& path = environment().injection;
  if (path.empty()) return;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    say("CUDA_INJECTION64_PATH: " + std::string(dlerror()));
    return;
  }
  using Initialize = int (*)();
  auto initialize = reinterpret_cast<Initialize>(dlsym(library, "InitializeInjection"));
  if (!initialize) {
    say("CUDA_INJECTION64_PATH: " + path + " has no function InitializeInjection");
    return;
  }
  initialize();
}

}  // namespace

CUresult Driver::initialise() {
  if (driverState.load() == 2) return CUDA_ERROR_NOT_INITIALIZED;
  {
    std::lock_guard lock(mutex_);
    if (tried_) return result_;
    tried_ = true;
    try {
      auto models = model::modelsFor(environment().devices);
      if (environment().hasVisibleDevices) models = visible(std::move(models), environment().visibleDevices);
      for (auto& m : models) {
        auto* device = new Device();
        device->ordinal = static_cast<uint32_t>(devices_.size());
        device->model = std::move(m);
        device->clocks = std::make_unique<model::ClockModel>(device->model, device->ordinal);
        memory::Allocator::get().setCapacity(device->ordinal, device->model.memoryBytes);
        if (!device->model.concurrentManaged) memory::Allocator::get().setManagedArenas(false);
        devices_.push_back(device);
      }
      result_ = devices_.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
    } catch (const std::bad_alloc&) {
      say("cannot reserve the device's address range: raise the limit on virtual memory (ulimit -v)");
      result_ = CUDA_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      say(e.what());
      result_ = CUDA_ERROR_INVALID_VALUE;
    }
    if (result_ != CUDA_SUCCESS) return result_;
    pthread_atfork(nullptr, nullptr, [] {
      if (driverState.load() == 1) driverState.store(2);
    });
    driverState.store(1, std::memory_order_release);
  }
  // Outside the lock: the injected library may call the driver.
  loadInjection();
  if (tools::wants(SONDE_INTEREST_RESOURCE)) {
    SondeResource event{};
    event.size = sizeof event;
    event.event = SONDE_RESOURCE_INIT_FINISHED;
    tools::reportResource(event);
  }
  return CUDA_SUCCESS;
}

std::vector<Ref<Context>> Driver::contexts() {
  std::lock_guard lock(contextsMutex_);
  std::vector<Ref<Context>> out;
  for (Context* c : contexts_) out.emplace_back(c);
  return out;
}
void Driver::addContext(Context* context) {
  std::lock_guard lock(contextsMutex_);
  contexts_.push_back(context);
}
void Driver::removeContext(Context* context) {
  std::lock_guard lock(contextsMutex_);
  contexts_.erase(std::remove(contexts_.begin(), contexts_.end(), context), contexts_.end());
}

bool deviceAttribute(const Device& device, int attribute, int64_t& value) {
  const model::DeviceModel& m = device.model;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: value = m.maxThreadsPerBlock; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: value = m.sharedPerBlock; return true;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: value = static_cast<int64_t>(m.constantBytes); return true;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: value = 32; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: value = m.registersPerBlock; return true;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: value = int64_t{m.boostClockMHz} * 1000; return true;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: value = int64_t{m.memoryClockMHz} * 1000; return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: value = m.smCount; return true;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS: value = m.concurrentKernels; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: value = 0x10 + device.ordinal; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: value = 0; return true;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: value = 0; return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: value = static_cast<int64_t>(m.l2.bytes); return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: value = int64_t{m.maxWarpsPerSm} * 32; return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: value = m.ccMajor; return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: value = m.ccMinor; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: value = m.sharedPerSm; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: value = m.registersPerSm; return true;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY: value = m.unifiedMemory; return true;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: value = m.unifiedMemory && m.concurrentManaged; return true;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS: value = 0; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: value = m.sharedPerBlockOptin; return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: value = m.maxBlocksPerSm; return true;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: value = m.sharedReservedPerBlock; return true;
    default: break;
  }
  if (auto it = m.attributes.find(attribute); it != m.attributes.end()) {
    value = it->second;
    return true;
  }
  value = 0;
  return attribute > 0 && attribute < CU_DEVICE_ATTRIBUTE_MAX;
}

uint32_t Device::kernelClockMHz(uint64_t earlier, uint64_t nowNs) {
  constexpr uint64_t kFreshNs = 5'000'000;
  const uint64_t asked = clockAskedNs.load(std::memory_order_acquire);
  uint32_t held = heldMHz.load(std::memory_order_relaxed);
  if (!asked || nowNs - asked >= kFreshNs) {
    std::lock_guard guard(clockMutex);
    held = clocks->heldMHz();
    clocks->smClockMHz(nowNs);  // what the next milliseconds of work heat the device at
    heldMHz.store(held, std::memory_order_relaxed);
    clockAskedNs.store(nowNs, std::memory_order_release);
  }
  return held ? held : clocks->warmedMHz(earlier);
}

void Device::clocksChanged() {
  std::lock_guard guard(clockMutex);
  clockAskedNs.store(0, std::memory_order_relaxed);
}

// ------------------------------------------------------------ entry points --

namespace {

CUresult findDevice(int ordinal, Device*& device) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  device = Driver::get().device(ordinal);
  return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

DRIVER_API(cuInit)(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Driver::get().initialise();
}

DRIVER_API(cuDriverGetVersion)(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 13000;
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGet)(CUdevice* device, int ordinal) {
  Device* d;
  if (const CUresult e = findDevice(ordinal, d)) return e;
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetCount)(int* count) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<int>(Driver::get().devices().size());
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetName)(char* name, int len, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!name || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(name, static_cast<size_t>(len), "%s", d->model.name.c_str());
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceTotalMem_v2)(size_t* bytes, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *bytes = d->model.memoryBytes;
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceComputeCapability)(int* major, int* minor, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  *major = static_cast<int>(d->model.ccMajor);
  *minor = static_cast<int>(d->model.ccMinor);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetAttribute)(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  int64_t value = 0;
  if (!pi || !deviceAttribute(*d, attrib, value)) return CUDA_ERROR_INVALID_VALUE;
  *pi = static_cast<int>(value);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetProperties)(CUdevprop* prop, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!prop) return CUDA_ERROR_INVALID_VALUE;
  auto attribute = [&](int id) {
    int64_t value = 0;
    deviceAttribute(*d, id, value);
    return static_cast<int>(value);
  };
  prop->maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  for (int i = 0; i < 3; i++) {
    prop->maxThreadsDim[i] = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i);
    prop->maxGridSize[i] = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i);
  }
  prop->sharedMemPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  prop->totalConstantMemory = attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  prop->SIMDWidth = 32;
  prop->memPitch = attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  prop->regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  prop->clockRate = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  prop->textureAlign = attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetUuid_v2)(CUuuid* uuid, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(uuid->bytes, d->model.uuid, 16);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_impl(CUuuid* uuid, CUdevice dev);
DRIVER_API(cuDeviceGetUuid)(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid_v2_impl(uuid, dev); }

DRIVER_API(cuDeviceGetTexture1DLinearMaxWidth)
(size_t* maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!maxWidthInElements || (numChannels != 1 && numChannels != 2 && numChannels != 4))
    return CUDA_ERROR_INVALID_VALUE;
  int64_t value = 0;
  deviceAttribute(*d, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, value);
  *maxWidthInElements = static_cast<size_t>(value);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetPCIBusId)(char* pciBusId, int len, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!pciBusId || len <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(pciBusId, static_cast<size_t>(len), "0000:%02X:00.0", 0x10 + d->ordinal);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetByPCIBusId)(CUdevice* dev, const char* pciBusId) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!dev || !pciBusId) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(pciBusId, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
    domain = 0;
    if (std::sscanf(pciBusId, "%x:%x.%x", &bus, &device, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
  }
  Device* d = domain == 0 && device == 0 && bus >= 0x10 ? Driver::get().device(static_cast<int>(bus - 0x10)) : nullptr;
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  *dev = static_cast<CUdevice>(d->ordinal);
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceCanAccessPeer)(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  Device *d, *p;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (const CUresult e = findDevice(peerDev, p)) return e;
  if (!canAccessPeer) return CUDA_ERROR_INVALID_VALUE;
  *canAccessPeer = d != p;  // all devices lie in one address range
  return CUDA_SUCCESS;
}

DRIVER_API(cuDeviceGetP2PAttribute)(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice) {
  Device *s, *d;
  if (const CUresult e = findDevice(srcDevice, s)) return e;
  if (const CUresult e = findDevice(dstDevice, d)) return e;
  if (!value || s == d) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<int>(attrib)) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: *value = 0; return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: *value = 0; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

DRIVER_API(cuDeviceGetExecAffinitySupport)(int* pi, CUexecAffinityType type, CUdevice dev) {
  Device* d;
  if (const CUresult e = findDevice(dev, d)) return e;
  if (!pi || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  *pi = 0;
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
