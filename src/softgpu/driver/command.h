// SPDX-License-Identifier: Apache-2.0
//
// One piece of work in a stream's queue. Commands are recycled per stream, so
// that a launch allocates nothing in the steady state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "softgpu/driver/cuda_api.h"
#include "softgpu/driver/handles.h"
#include "softgpu/exec/engine.h"
#include "softgpu/memory/managed/managed_memory.h"

namespace sonde::softgpu::driver {

class Stream;
class Function;
class EventRecord;

enum class CommandKind : uint8_t {
  wait,  // until another stream has come to a given place
  kernel,
  copy,
  set,
  eventRecord,
  hostFunction,
  callback,     // cuStreamAddCallback
  release,      // free memory in stream order
  memoryOp,     // cuStreamWaitValue / cuStreamWriteValue
  prefetch,     // of managed memory
  attach,       // of managed memory, to this stream, the host or all
  marker,       // nothing; a place to wait for
  conditional,  // a conditional graph node, and the setting of its values
  graphBegin,   // around the nodes of a graph launch, when somebody asks
  graphEnd,
};

// Kernel parameters, packed as the kernel's .param space wants them.
class ParamBuffer {
 public:
  std::byte* resize(size_t bytes) {
    size_ = bytes;
    if (bytes <= small_.size()) return small_.data();
    if (large_.size() < bytes) large_.resize(bytes);
    return large_.data();
  }
  std::span<const std::byte> view() const { return {size_ <= small_.size() ? small_.data() : large_.data(), size_}; }

 private:
  size_t size_ = 0;
  alignas(16) std::array<std::byte, 256> small_;
  std::vector<std::byte> large_;
};

// Multiprocessors of a device, by number, in rising order.
using SmSet = std::vector<uint32_t>;

// What a launch says of the L2 cache. There is none to steer; records tell it.
using AccessPolicy = std::optional<CUaccessPolicyWindow>;

struct LaunchPlan {
  Ref<Function> function;
  exec::Dim3 grid, block, cluster{0, 0, 0};
  uint32_t dynamicShared = 0;
  bool cooperative = false;
  int32_t priority = 0;
  int32_t carveout = -1;             // as in LaunchShape
  std::shared_ptr<const SmSet> sms;  // null: all
  AccessPolicy accessPolicy;
  int32_t clusterPolicy = -1;  // as in LaunchShape
  ParamBuffer params;
};

// A copy of up to three dimensions between addresses the host can reach.
struct CopyPlan {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, slices
  uint64_t toPitch = 0, fromPitch = 0, toSlice = 0, fromSlice = 0;
  uint32_t toKind = 0, fromKind = 0;  // SondeMemoryKind
  uint32_t toDevice = 0, fromDevice = 0, toContext = 0, fromContext = 0;
  bool peer = false;
  bool async = false;
  std::vector<std::byte> staging;  // snapshot of pageable source bytes
  // Set when one of the addresses has no memory behind it: the bool of a caller that waits. Null: nobody waits.
  bool* unreachable = nullptr;
  uint64_t bytes() const { return width * height * depth; }
};

struct SetPlan {
  std::byte* to = nullptr;
  uint32_t elementBytes = 1, value = 0;
  uint64_t width = 0, height = 1, pitch = 0;  // elements, rows, bytes
  uint32_t kind = 0;
  bool async = false;
};

struct MemoryOp {
  uint64_t address = 0, value = 0;
  uint32_t flags = 0, bytes = 4;
  bool wait = false;
};

struct PrefetchPlan {
  uint64_t address = 0, bytes = 0;
  uint8_t to = 0;  // memory::Processor
  memory::Attach attach = memory::Attach::global;
};

struct Command {
  Command* next = nullptr;
  uint64_t sequence = 0;
  CommandKind kind = CommandKind::marker;
  uint32_t correlationId = 0;
  uint32_t graphId = 0;
  uint64_t graphNodeId = 0;
  uint64_t queuedNs = 0, submittedNs = 0;
  uint64_t gridId = 0;
  uint64_t listenerWord = 0;  // the listener's note about this work
  uint64_t listenerWord2 = 0, listenerWord3 = 0;
  bool countInstructions = false;  // the listener wants a kernel's instructions
  bool announced = false;          // a listener wanted it when it was enqueued

  Ref<Stream> target;  // wait
  uint64_t targetSequence = 0;

  LaunchPlan launch;
  CopyPlan copy;
  SetPlan set;
  std::vector<MemoryOp> memoryOps;
  PrefetchPlan prefetch;
  std::function<void(Stream&)> body;  // conditional: runs on the stream's thread
  Ref<EventRecord> record;
  CUhostFn hostFunction = nullptr;
  CUstreamCallback callback = nullptr;
  void* user = nullptr;
  uint64_t address = 0;  // release

  // Drops what it refers to, before the next use.
  void recycle();
  Command();
  ~Command();
};

}  // namespace sonde::softgpu::driver
