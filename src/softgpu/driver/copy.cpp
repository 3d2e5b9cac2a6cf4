// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/copy.h"

#include "platform/tools_api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/managed.h"
#include "softgpu/driver/message.h"
#include "softgpu/exec/faults.h"

namespace sonde::softgpu::driver {
namespace {

bool isHost(uint32_t kind) { return kind == SONDE_MEMORY_PAGEABLE || kind == SONDE_MEMORY_PINNED; }

}  // namespace

CUresult locate(uint64_t address, uint64_t bytes, Side side, const Context& context, End& end) {
  const auto found = memory::Allocator::get().find(address);
  if (found) {
    if (!found->contains(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
    end.bytes = memory::Allocator::hostAccess(address);
    end.kind = toolsKind(found->kind);
    end.device = found->device;
    end.contextUid = found->contextUid ? found->contextUid : context.uid();
    const bool hidden = found->kind == memory::Kind::device || found->kind == memory::Kind::deviceStatic ||
                        found->kind == memory::Kind::reserved || found->kind == memory::Kind::imported;
    if (side == Side::host && hidden) return CUDA_ERROR_INVALID_VALUE;
    // A mapping is there for who was given access.
    if (found->kind == memory::Kind::reserved && found->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
  }
  // Not an allocation: an address of the application, unless it lies where
  // only allocations may be.
  if (side == Side::device || address == 0 || memory::AddressSpace::get().all.contains(address))
    return CUDA_ERROR_INVALID_VALUE;
  end.bytes = reinterpret_cast<std::byte*>(address);
  end.kind = SONDE_MEMORY_PAGEABLE;
  end.device = context.device()->ordinal;
  end.contextUid = context.uid();
  return CUDA_SUCCESS;
}

uint32_t copyKindOf(uint32_t from, uint32_t to, bool peer) {
  if (peer) return 10;
  const bool fromArray = from == SONDE_MEMORY_ARRAY, toArray = to == SONDE_MEMORY_ARRAY;
  if (isHost(from)) return toArray ? 3 : isHost(to) ? 9 : 1;
  if (fromArray) return toArray ? 5 : isHost(to) ? 4 : 6;
  return toArray ? 7 : isHost(to) ? 2 : 8;
}

bool stageSource(CopyPlan& plan) {
  plan.staging.resize(plan.bytes());
  const bool read = exec::touchGuarded(
      [](void* p) {
        auto& c = *static_cast<CopyPlan*>(p);
        std::memcpy(c.staging.data(), c.from, c.staging.size());
      },
      &plan, nullptr);
  if (read)
    plan.from = plan.staging.data();
  else
    say("a copy reads host memory that is not there");
  return read;
}

CUresult runCopy(Stream& stream, Command* command, bool synchronous) {
  CopyPlan& plan = command->copy;
  plan.async = !synchronous;
  plan.unreachable = nullptr;
  if (Capture* capture = stream.capture.load()) return captureCopy(*capture, stream, command);
  bool wait = synchronous;
  // Between device memories even the synchronous call only enqueues.
  if (!isHost(plan.fromKind) && !isHost(plan.toKind)) wait = false;
  if (!synchronous) {
    if (plan.toKind == SONDE_MEMORY_PAGEABLE) wait = true;
    if (plan.fromKind == SONDE_MEMORY_PAGEABLE) {
      const bool flat = plan.height == 1 && plan.depth == 1;
      if (flat && plan.bytes() <= kStagingBytes && plan.toKind != SONDE_MEMORY_PAGEABLE) {
        if (!stageSource(plan)) {
          stream.giveBack(command);
          return CUDA_ERROR_INVALID_VALUE;
        }
      } else {
        wait = true;
      }
    }
  }
  bool unreachable = false;
  if (wait) plan.unreachable = &unreachable;
  const uint64_t place = submit(stream, command);
  if (wait) {
    stream.waitFor(place);
    managed::waited(stream, place);
    if (unreachable) {
      say("a copy reaches host memory that is not there or may not be written");
      return CUDA_ERROR_INVALID_VALUE;
    }
    return stream.context()->error();
  }
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
