// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/uvm_tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <vector>

#include "platform/clock.h"
#include "platform/nvidia/calls.h"
#include "platform/nvidia/harvester.h"
#include "platform/nvidia/hooks.h"
#include "platform/nvidia/objects.h"
#include "platform/nvidia/uvm_events.h"

namespace sonde::platform::nvidia {
namespace {

constexpr char kToolsNode[] = "/dev/nvidia-uvm-tools", kNode[] = "/dev/nvidia-uvm";

// The requests are plain numbers, without direction and size. Those of the
// queue go to the tools node, the others to the process's own node.
constexpr unsigned long kEnableEvents = 58, kDisableEvents = 59, kFlushEvents = 67, kInitQueue = 76, kUuidTable = 77;
struct InitQueue {
  uint64_t entries, count, control;
  uint8_t processor[16];
  uint32_t allProcessors, processFd, status;
};
static_assert(sizeof(InitQueue) == 56);
struct EventMask {
  uint64_t types;
  uint32_t status;
};
struct UuidTable {
  uint64_t table;
  uint32_t status;
};
struct FlushEvents {
  uint32_t status;
};

// Shared with the module: indices wrap at the number of entries.
struct Control {
  uint32_t getAhead, getBehind, putAhead, putBehind;
  uint64_t dropped[64];
};
constexpr uint32_t kEntries = 1 << 16;
constexpr uint32_t kProcessors = 257, kDevices = 32;
constexpr uint64_t kAllEvents = 0x7ffe;
constexpr useconds_t kSettleUs = 2000;

struct Tools {
  std::mutex mutex;
  std::string failure;
  uint32_t kinds[kDevices] = {};
  std::atomic<uint32_t> wanted{0};  // of all devices
  int fd = -1, processFd = -1;
  UvmEntry* entries = nullptr;
  Control* control = nullptr;
  uint64_t enabled = 0;
  uint64_t droppedTold = 0;
  uint64_t seen[64] = {};          // by type
  std::vector<uint32_t> deviceOf;  // by the module's index
  int64_t rawToReal = 0;
  UvmDecoder* decoder = nullptr;
};
Tools& tools() {
  static Tools& t = *new Tools;
  return t;
}

int64_t rawToReal() {
  timespec raw;
  const uint64_t before = nowNs();
  clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
  const uint64_t after = nowNs();
  return static_cast<int64_t>(before + (after - before) / 2) - (raw.tv_sec * 1'000'000'000 + raw.tv_nsec);
}

uint64_t deviceToHost(uint32_t device, uint64_t timer) {
  for (Context* context : liveContexts()) {
    if (context->device != device || context->dead.load()) continue;
    prepareTiming(*context);
    if (context->clock.hasAnchor()) return context->clock.toHost(context->clock.relative(timer));
  }
  return timer;  // the timer counts the same nanoseconds, a little off
}

bool openNode(Tools& t) {
  if (t.fd >= 0) return true;
  t.fd = open(kToolsNode, O_RDWR | O_CLOEXEC);
  if (t.fd >= 0) return true;
  t.failure = std::string("unified memory cannot be traced: ") + kToolsNode + ": " + std::strerror(errno);
  if (errno == ENOENT)
    t.failure += "; the module nvidia-uvm makes it (in a container, pass the device node in)";
  else if (errno == EACCES || errno == EPERM)
    t.failure += "; it must be readable and writable by the user";
  return false;
}

std::vector<int> processNodes() {
  std::vector<int> result;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return result;
  while (const dirent* entry = readdir(directory)) {
    char target[64];
    const std::string link = std::string("/proc/self/fd/") + entry->d_name;
    const ssize_t length = readlink(link.c_str(), target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    if (std::strcmp(target, kNode) == 0) result.push_back(std::atoi(entry->d_name));
  }
  closedir(directory);
  return result;
}

void readProcessors(Tools& t) {
  static uint8_t uuids[kProcessors][16];
  UuidTable request{reinterpret_cast<uint64_t>(uuids), 0};
  t.deviceOf.assign(kProcessors, 0);
  for (uint32_t p = 1; p < kProcessors; ++p) t.deviceOf[p] = p - 1;
  if (ioctl(t.processFd, kUuidTable, &request) != 0 || request.status != 0 || !own.cuDeviceGetCount ||
      !own.cuDeviceGetUuid)
    return;
  int count = 0;
  own.cuDeviceGetCount(&count);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device;
    CUuuid uuid;
    if (own.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS || own.cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
      continue;
    for (uint32_t p = 1; p < kProcessors; ++p)
      if (std::memcmp(uuids[p], uuid.bytes, 16) == 0) t.deviceOf[p] = static_cast<uint32_t>(ordinal);
  }
}

bool map(Tools& t) {
  if (t.entries != nullptr) return true;
  auto pages = [](size_t size) {
    return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  };
  void* entries = pages(kEntries * sizeof(UvmEntry));
  void* control = pages(4096);
  if (entries == MAP_FAILED || control == MAP_FAILED) return false;
  t.entries = static_cast<UvmEntry*>(entries);
  t.control = static_cast<Control*>(control);
  return true;
}

// Ties the queue to the driver's node, once there is one.
bool start(Tools& t) {
  if (t.processFd >= 0) return true;
  if (!openNode(t)) return false;
  const std::vector<int> nodes = processNodes();
  if (nodes.empty()) return true;  // the driver is not up yet
  if (!map(t)) {
    t.failure = "no memory for the queue of unified-memory events";
    return false;
  }
  uint32_t status = 0;
  for (const int node : nodes) {  // only one of them stands for an address space
    InitQueue request{};
    request.entries = reinterpret_cast<uint64_t>(t.entries);
    request.count = kEntries;
    request.control = reinterpret_cast<uint64_t>(t.control);
    request.allProcessors = 1;
    request.processFd = static_cast<uint32_t>(node);
    if (ioctl(t.fd, kInitQueue, &request) != 0) {
      t.failure = std::string("unified memory cannot be traced: this driver's ") + kToolsNode +
                  " has no queues of version 2: " + std::strerror(errno);
      return false;
    }
    status = request.status;
    if (status == 0) {
      t.processFd = node;
      break;
    }
  }
  if (t.processFd < 0) {
    char text[96];
    std::snprintf(text, sizeof text, "unified memory cannot be traced: the module refuses a queue (status %#x)",
                  status);
    t.failure = text;
    return false;
  }
  readProcessors(t);
  if (t.decoder == nullptr)
    t.decoder = new UvmDecoder(
        {[](uint64_t raw) { return static_cast<uint64_t>(static_cast<int64_t>(raw) + tools().rawToReal); },
         deviceToHost, [](uint32_t p) { return p < kProcessors ? tools().deviceOf[p] : p - 1; },
         [](const SondeUnifiedMemory& event) {
           ListenerUse use;
           if (use && use->unifiedMemory) use->unifiedMemory(use->self, &event);
         }});
  return true;
}

// Switches the events that the wanted kinds need.
bool apply(Tools& t) {
  if (t.processFd < 0) return true;
  const uint64_t events = uvmEventsFor(t.wanted.load());
  if (events == t.enabled) return true;
  EventMask off{kAllEvents & ~events, 0}, on{events, 0};
  if (ioctl(t.fd, kDisableEvents, &off) != 0 || (events != 0 && (ioctl(t.fd, kEnableEvents, &on) != 0 || on.status))) {
    t.failure = "unified memory cannot be traced: the module does not switch its events on";
    return false;
  }
  t.enabled = events;
  return true;
}

void drain(Tools& t) {
  if (t.processFd < 0) return;
  t.rawToReal = rawToReal();
  uint32_t get = t.control->getBehind;
  const uint32_t put = __atomic_load_n(&t.control->putBehind, __ATOMIC_ACQUIRE);
  while (get != put) {
    ++t.seen[t.entries[get % kEntries].words[0] & 63];
    t.decoder->decode(t.entries[get % kEntries]);
    get = (get + 1) % kEntries;
    __atomic_store_n(&t.control->getAhead, get, __ATOMIC_RELEASE);
    __atomic_store_n(&t.control->getBehind, get, __ATOMIC_RELEASE);
  }
  uint64_t dropped = 0;
  for (const uint64_t& n : t.control->dropped) dropped += n;
  if (dropped != t.droppedTold) {
    debug("%llu unified-memory events were lost: the queue was full",
          static_cast<unsigned long long>(dropped - t.droppedTold));
    t.droppedTold = dropped;
  }
}

}  // namespace

int32_t configureUnifiedMemory(uint32_t device, uint32_t kinds) {
  if (device >= kDevices) return CUDA_ERROR_INVALID_DEVICE;
  Tools& t = tools();
  {
    std::lock_guard lock(t.mutex);
    const uint32_t before = t.kinds[device];
    t.kinds[device] = kinds;
    uint32_t all = 0;
    for (const uint32_t k : t.kinds) all |= k;
    if (all != 0 && !start(t)) {
      t.kinds[device] = before;
      debug("%s", t.failure.c_str());
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (t.wanted.load() != 0 && all == 0) drain(t);
    t.wanted.store(all);
    if (!apply(t)) return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (kinds != 0) {
    startHarvester();
    wakeHarvester();
  }
  return CUDA_SUCCESS;
}

const char* unifiedMemoryFailure() {
  Tools& t = tools();
  std::lock_guard lock(t.mutex);
  return t.failure.c_str();
}

bool unifiedMemoryActive() { return tools().wanted.load(std::memory_order_relaxed) != 0; }

void unifiedMemoryDriverIsUp() {
  Tools& t = tools();
  if (t.wanted.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(t.mutex);
  if (t.processFd >= 0) return;
  if (!start(t) || !apply(t)) debug("%s", t.failure.c_str());
}

void collectUnifiedMemory(bool flush) {
  Tools& t = tools();
  if (t.wanted.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(t.mutex);
  if (t.processFd < 0 && (!start(t) || !apply(t))) return;
  // What the device has done last, maps above all, comes with the second flush.
  for (int round = 0; flush && t.processFd >= 0 && round < 2; ++round) {
    FlushEvents request{};
    if (ioctl(t.processFd, kFlushEvents, &request) != 0 || request.status != 0)
      debug("unified-memory events cannot be flushed: %s, status %#x", std::strerror(errno), request.status);
    drain(t);
    if (round == 0) usleep(kSettleUs);
  }
  drain(t);
}

void stopUnifiedMemory() {
  Tools& t = tools();
  std::lock_guard lock(t.mutex);
  for (unsigned type = 0; type < 64; ++type) {
    if (t.seen[type] != 0)
      debug("unified-memory events of type %u: %llu", type, static_cast<unsigned long long>(t.seen[type]));
    t.seen[type] = 0;
  }
  for (uint32_t& k : t.kinds) k = 0;
  t.wanted.store(0);
  // The last reference to the queue goes with the descriptor.
  if (t.fd >= 0) close(t.fd);
  t.fd = t.processFd = -1;
  t.enabled = t.droppedTold = 0;
  if (t.entries != nullptr) {
    munmap(t.entries, kEntries * sizeof(UvmEntry));
    munmap(t.control, 4096);
    t.entries = nullptr;
    t.control = nullptr;
  }
  if (t.decoder != nullptr) t.decoder->forget();
}

}  // namespace sonde::platform::nvidia
