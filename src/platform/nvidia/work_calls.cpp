// SPDX-License-Identifier: Apache-2.0
//
// What each function that enqueues work says of it. The variants of a function
// for per-thread streams have the same parameter structure.
#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <algorithm>

#include "platform/nvidia/graph_ids.h"
#include "platform/nvidia/work.h"

namespace sonde::platform::nvidia {
namespace {

template <class Params>
const Params& as(const void* params) {
  return *static_cast<const Params*>(params);
}

const void* pointer(CUdeviceptr address) { return reinterpret_cast<const void*>(address); }

// ---------------------------------------------------------------- launches --

template <class P>
void launch(const P& p, WorkCall& c) {
  c.work.kind = SONDE_WORK_KERNEL;
  c.function = p.f;
  c.stream = p.hStream;
  const uint32_t grid[3] = {p.gridDimX, p.gridDimY, p.gridDimZ};
  const uint32_t block[3] = {p.blockDimX, p.blockDimY, p.blockDimZ};
  std::copy_n(grid, 3, c.work.grid);
  std::copy_n(block, 3, c.work.block);
  c.work.dynamicSharedMemory = p.sharedMemBytes;
}

bool launchEx(const cuLaunchKernelEx_params& p, WorkCall& c) {
  if (p.config == nullptr) return false;
  const CUlaunchConfig& config = *p.config;
  c.work.kind = SONDE_WORK_KERNEL;
  c.function = p.f;
  c.stream = config.hStream;
  const uint32_t grid[3] = {config.gridDimX, config.gridDimY, config.gridDimZ};
  const uint32_t block[3] = {config.blockDimX, config.blockDimY, config.blockDimZ};
  std::copy_n(grid, 3, c.work.grid);
  std::copy_n(block, 3, c.work.block);
  c.work.dynamicSharedMemory = config.sharedMemBytes;
  for (unsigned i = 0; config.attrs != nullptr && i < config.numAttrs; ++i) {
    const CUlaunchAttribute& a = config.attrs[i];
    switch (static_cast<int>(a.id)) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: c.work.launchType = a.value.cooperative != 0 ? 1 : 0; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        c.work.cluster[0] = a.value.clusterDim.x;
        c.work.cluster[1] = a.value.clusterDim.y;
        c.work.cluster[2] = a.value.clusterDim.z;
        break;
      case CU_LAUNCH_ATTRIBUTE_PRIORITY: c.work.priority = a.value.priority; break;
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: c.wishes.window = &a.value.accessPolicyWindow; break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        c.wishes.clusterPolicy = a.value.clusterSchedulingPolicyPreference;
        break;
      default: break;
    }
  }
  return true;
}

// ------------------------------------------------------------------ copies --

void copy(WorkCall& c, const void* to, const void* from, uint64_t bytes, CUstream stream, bool async) {
  c.work.kind = SONDE_WORK_MEMCPY;
  c.destination = to;
  c.source = from;
  c.work.bytes = bytes;
  c.stream = stream;
  c.work.isAsync = async;
  c.synchronous = !async;
}

uint32_t kindOf(CUmemorytype type) {
  return type == CU_MEMORYTYPE_ARRAY    ? SONDE_MEMORY_ARRAY
         : type == CU_MEMORYTYPE_DEVICE ? SONDE_MEMORY_DEVICE
                                        : SONDE_MEMORY_UNKNOWN;
}

// An address to ask about, or nullptr where the kind says it all.
const void* askAbout(CUmemorytype type, const void* host, CUdeviceptr device) {
  switch (type) {
    case CU_MEMORYTYPE_ARRAY: return nullptr;
    case CU_MEMORYTYPE_HOST: return host;
    default: return pointer(device);
  }
}

template <class Shape>
void shapedCopy(WorkCall& c, const Shape& s, uint64_t bytes, CUstream stream, bool async) {
  copy(c, askAbout(s.dstMemoryType, s.dstHost, s.dstDevice), askAbout(s.srcMemoryType, s.srcHost, s.srcDevice), bytes,
       stream, async);
  c.work.dstMemoryKind = kindOf(s.dstMemoryType);
  c.work.srcMemoryKind = kindOf(s.srcMemoryType);
}

void set(WorkCall& c, CUdeviceptr to, uint32_t value, uint64_t bytes, CUstream stream, bool async) {
  c.work.kind = SONDE_WORK_MEMSET;
  c.destination = pointer(to);
  c.work.setValue = value;
  c.work.bytes = bytes;
  c.stream = stream;
  c.work.isAsync = async;  // the plain functions, too, return before it is done
}

}  // namespace

#define CBID(name) CUPTI_DRIVER_TRACE_CBID_##name
#define PTDS(name) \
  case CBID(name): \
  case CBID(name##_ptds)
#define PTSZ(name) \
  case CBID(name): \
  case CBID(name##_ptsz)

bool describeCall(uint32_t cbid, const void* params, WorkCall& c) {
  switch (cbid) {
    PTSZ(cuLaunchKernel) : launch(as<cuLaunchKernel_params>(params), c);
    return true;
    PTSZ(cuLaunchCooperativeKernel) : launch(as<cuLaunchCooperativeKernel_params>(params), c);
    c.work.launchType = 1;
    return true;
    PTSZ(cuLaunchKernelEx) : return launchEx(as<cuLaunchKernelEx_params>(params), c);
    case CBID(cuLaunch):
    case CBID(cuLaunchGrid):
    case CBID(cuLaunchGridAsync): {
      c.work.kind = SONDE_WORK_KERNEL;
      c.function = as<cuLaunch_params>(params).f;
      std::fill_n(c.work.grid, 3, 1u);
      std::fill_n(c.work.block, 3, 1u);  // set by a call before; the driver does not tell
      if (cbid == CBID(cuLaunch)) return true;
      const auto& p = as<cuLaunchGridAsync_params>(params);
      c.work.grid[0] = static_cast<uint32_t>(p.grid_width);
      c.work.grid[1] = static_cast<uint32_t>(p.grid_height);
      if (cbid == CBID(cuLaunchGridAsync)) c.stream = p.hStream;
      return true;
    }
      PTSZ(cuGraphLaunch) : {
        const auto& p = as<cuGraphLaunch_params>(params);
        c.work.kind = SONDE_WORK_GRAPH;
        c.exec = p.hGraph;
        c.work.graphId = graphExecIdOf(p.hGraph);
        c.work.extraId = c.work.graphId;
        c.stream = p.hStream;
        return true;
      }

      PTDS(cuMemcpy) : {
        const auto& p = as<cuMemcpy_params>(params);
        copy(c, pointer(p.dst), pointer(p.src), p.ByteCount, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpyAsync) : {
        const auto& p = as<cuMemcpyAsync_params>(params);
        copy(c, pointer(p.dst), pointer(p.src), p.ByteCount, p.hStream, true);
        return true;
      }
      PTDS(cuMemcpyHtoD_v2) : {
        const auto& p = as<cuMemcpyHtoD_v2_params>(params);
        copy(c, pointer(p.dstDevice), p.srcHost, p.ByteCount, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpyHtoDAsync_v2) : {
        const auto& p = as<cuMemcpyHtoDAsync_v2_params>(params);
        copy(c, pointer(p.dstDevice), p.srcHost, p.ByteCount, p.hStream, true);
        return true;
      }
      PTDS(cuMemcpyDtoH_v2) : {
        const auto& p = as<cuMemcpyDtoH_v2_params>(params);
        copy(c, p.dstHost, pointer(p.srcDevice), p.ByteCount, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpyDtoHAsync_v2) : {
        const auto& p = as<cuMemcpyDtoHAsync_v2_params>(params);
        copy(c, p.dstHost, pointer(p.srcDevice), p.ByteCount, p.hStream, true);
        return true;
      }
      PTDS(cuMemcpyDtoD_v2) : {
        const auto& p = as<cuMemcpyDtoD_v2_params>(params);
        copy(c, pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpyDtoDAsync_v2) : {
        const auto& p = as<cuMemcpyDtoDAsync_v2_params>(params);
        copy(c, pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, p.hStream, true);
        return true;
      }
      PTDS(cuMemcpyDtoA_v2) : {
        const auto& p = as<cuMemcpyDtoA_v2_params>(params);
        copy(c, nullptr, pointer(p.srcDevice), p.ByteCount, nullptr, false);
        c.work.dstMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTDS(cuMemcpyAtoD_v2) : {
        const auto& p = as<cuMemcpyAtoD_v2_params>(params);
        copy(c, pointer(p.dstDevice), nullptr, p.ByteCount, nullptr, false);
        c.work.srcMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTDS(cuMemcpyHtoA_v2) : {
        const auto& p = as<cuMemcpyHtoA_v2_params>(params);
        copy(c, nullptr, p.srcHost, p.ByteCount, nullptr, false);
        c.work.dstMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTDS(cuMemcpyAtoH_v2) : {
        const auto& p = as<cuMemcpyAtoH_v2_params>(params);
        copy(c, p.dstHost, nullptr, p.ByteCount, nullptr, false);
        c.work.srcMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTDS(cuMemcpyAtoA_v2) : {
        const auto& p = as<cuMemcpyAtoA_v2_params>(params);
        copy(c, nullptr, nullptr, p.ByteCount, nullptr, false);
        c.work.srcMemoryKind = c.work.dstMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTSZ(cuMemcpyHtoAAsync_v2) : {
        const auto& p = as<cuMemcpyHtoAAsync_v2_params>(params);
        copy(c, nullptr, p.srcHost, p.ByteCount, p.hStream, true);
        c.work.dstMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTSZ(cuMemcpyAtoHAsync_v2) : {
        const auto& p = as<cuMemcpyAtoHAsync_v2_params>(params);
        copy(c, p.dstHost, nullptr, p.ByteCount, p.hStream, true);
        c.work.srcMemoryKind = SONDE_MEMORY_ARRAY;
        return true;
      }
      PTDS(cuMemcpy2D_v2) : PTDS(cuMemcpy2DUnaligned_v2) : {
        const CUDA_MEMCPY2D* s = as<cuMemcpy2D_v2_params>(params).pCopy;
        if (s == nullptr) return false;
        shapedCopy(c, *s, s->WidthInBytes * s->Height, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpy2DAsync_v2) : {
        const auto& p = as<cuMemcpy2DAsync_v2_params>(params);
        if (p.pCopy == nullptr) return false;
        shapedCopy(c, *p.pCopy, p.pCopy->WidthInBytes * p.pCopy->Height, p.hStream, true);
        return true;
      }
      PTDS(cuMemcpy3D_v2) : {
        const CUDA_MEMCPY3D* s = as<cuMemcpy3D_v2_params>(params).pCopy;
        if (s == nullptr) return false;
        shapedCopy(c, *s, s->WidthInBytes * s->Height * s->Depth, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpy3DAsync_v2) : {
        const auto& p = as<cuMemcpy3DAsync_v2_params>(params);
        if (p.pCopy == nullptr) return false;
        shapedCopy(c, *p.pCopy, p.pCopy->WidthInBytes * p.pCopy->Height * p.pCopy->Depth, p.hStream, true);
        return true;
      }
      PTDS(cuMemcpyPeer) : {
        const auto& p = as<cuMemcpyPeer_params>(params);
        copy(c, pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, nullptr, false);
        return true;
      }
      PTSZ(cuMemcpyPeerAsync) : {
        const auto& p = as<cuMemcpyPeerAsync_params>(params);
        copy(c, pointer(p.dstDevice), pointer(p.srcDevice), p.ByteCount, p.hStream, true);
        return true;
      }

#define SET(name, value, bytes)                             \
  PTDS(name##_v2) : {                                       \
    const auto& p = as<name##_v2_params>(params);           \
    set(c, p.dstDevice, p.value, (bytes), nullptr, false);  \
    return true;                                            \
  }                                                         \
  PTSZ(name##Async) : {                                     \
    const auto& p = as<name##Async_params>(params);         \
    set(c, p.dstDevice, p.value, (bytes), p.hStream, true); \
    return true;                                            \
  }
      SET(cuMemsetD8, uc, p.N)
      SET(cuMemsetD16, us, p.N * 2)
      SET(cuMemsetD32, ui, p.N * 4)
      SET(cuMemsetD2D8, uc, p.Width * p.Height)
      SET(cuMemsetD2D16, us, p.Width * p.Height * 2)
      SET(cuMemsetD2D32, ui, p.Width * p.Height * 4)
#undef SET

      PTSZ(cuEventRecord) : PTSZ(cuEventRecordWithFlags) : {
        const auto& p = as<cuEventRecord_params>(params);
        c.work.kind = SONDE_WORK_EVENT_RECORD;
        c.work.eventId = objectId(p.hEvent);
        c.stream = p.hStream;
        return true;
      }

      // The stream is the first parameter …
      PTSZ(cuStreamWaitEvent)
          : PTSZ(cuLaunchHostFunc) : PTSZ(cuStreamWaitValue32_v2) : PTSZ(cuStreamWaitValue64_v2) : c.orderOnly = true;
      c.stream = as<cuStreamWaitEvent_params>(params).hStream;
      return true;
      // … or elsewhere.
      PTSZ(cuMemcpyBatchAsync_v2) : c.orderOnly = true;
      c.stream = as<cuMemcpyBatchAsync_v2_params>(params).hStream;
      return true;
      PTSZ(cuMemcpy3DBatchAsync_v2) : c.orderOnly = true;
      c.stream = as<cuMemcpy3DBatchAsync_v2_params>(params).hStream;
      return true;
    default: return false;
  }
}

#define BOTH_PTDS(name) CBID(name), CBID(name##_ptds)
#define BOTH_PTSZ(name) CBID(name), CBID(name##_ptsz)

std::span<const uint32_t> workCallbacks() {
  static constexpr uint32_t list[] = {BOTH_PTSZ(cuLaunchKernel),
                                      BOTH_PTSZ(cuLaunchCooperativeKernel),
                                      BOTH_PTSZ(cuLaunchKernelEx),
                                      CBID(cuLaunch),
                                      CBID(cuLaunchGrid),
                                      CBID(cuLaunchGridAsync),
                                      BOTH_PTSZ(cuGraphLaunch),
                                      BOTH_PTDS(cuMemcpy),
                                      BOTH_PTSZ(cuMemcpyAsync),
                                      BOTH_PTDS(cuMemcpyHtoD_v2),
                                      BOTH_PTSZ(cuMemcpyHtoDAsync_v2),
                                      BOTH_PTDS(cuMemcpyDtoH_v2),
                                      BOTH_PTSZ(cuMemcpyDtoHAsync_v2),
                                      BOTH_PTDS(cuMemcpyDtoD_v2),
                                      BOTH_PTSZ(cuMemcpyDtoDAsync_v2),
                                      BOTH_PTDS(cuMemcpyDtoA_v2),
                                      BOTH_PTDS(cuMemcpyAtoD_v2),
                                      BOTH_PTDS(cuMemcpyHtoA_v2),
                                      BOTH_PTDS(cuMemcpyAtoH_v2),
                                      BOTH_PTDS(cuMemcpyAtoA_v2),
                                      BOTH_PTSZ(cuMemcpyHtoAAsync_v2),
                                      BOTH_PTSZ(cuMemcpyAtoHAsync_v2),
                                      BOTH_PTDS(cuMemcpy2D_v2),
                                      BOTH_PTDS(cuMemcpy2DUnaligned_v2),
                                      BOTH_PTSZ(cuMemcpy2DAsync_v2),
                                      BOTH_PTDS(cuMemcpy3D_v2),
                                      BOTH_PTSZ(cuMemcpy3DAsync_v2),
                                      BOTH_PTDS(cuMemcpyPeer),
                                      BOTH_PTSZ(cuMemcpyPeerAsync),
                                      BOTH_PTDS(cuMemsetD8_v2),
                                      BOTH_PTDS(cuMemsetD16_v2),
                                      BOTH_PTDS(cuMemsetD32_v2),
                                      BOTH_PTDS(cuMemsetD2D8_v2),
                                      BOTH_PTDS(cuMemsetD2D16_v2),
                                      BOTH_PTDS(cuMemsetD2D32_v2),
                                      BOTH_PTSZ(cuMemsetD8Async),
                                      BOTH_PTSZ(cuMemsetD16Async),
                                      BOTH_PTSZ(cuMemsetD32Async),
                                      BOTH_PTSZ(cuMemsetD2D8Async),
                                      BOTH_PTSZ(cuMemsetD2D16Async),
                                      BOTH_PTSZ(cuMemsetD2D32Async)};
  return list;
}

std::span<const uint32_t> orderCallbacks() {
  static constexpr uint32_t list[] = {BOTH_PTSZ(cuStreamWaitEvent),      BOTH_PTSZ(cuLaunchHostFunc),
                                      BOTH_PTSZ(cuStreamWaitValue32_v2), BOTH_PTSZ(cuStreamWaitValue64_v2),
                                      BOTH_PTSZ(cuMemcpyBatchAsync_v2),  BOTH_PTSZ(cuMemcpy3DBatchAsync_v2)};
  return list;
}

std::span<const uint32_t> eventRecordCallbacks() {
  static constexpr uint32_t list[] = {BOTH_PTSZ(cuEventRecord), BOTH_PTSZ(cuEventRecordWithFlags)};
  return list;
}

}  // namespace sonde::platform::nvidia
