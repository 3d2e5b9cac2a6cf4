// SPDX-License-Identifier: Apache-2.0
//
// What a device can do with atomics on a link, remote writes, and parts of itself.
#include "softgpu/driver/driver.h"
#include "softgpu/driver/message.h"

namespace sonde::softgpu::driver {
namespace {

// The host and all devices have one memory, whose atomics are the host's: all
// that a kernel can do at its own memory it can do at the others'.
CUresult atomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count) {
  if (!capabilities || !operations || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; i++)
    if (operations[i] < 0 || operations[i] >= CU_ATOMIC_OPERATION_MAX) return CUDA_ERROR_INVALID_VALUE;
  constexpr unsigned words = CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
  constexpr unsigned integers = CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED | words;
  for (unsigned i = 0; i < count; i++) {
    switch (static_cast<int>(operations[i])) {
      case CU_ATOMIC_OPERATION_INTEGER_ADD:
      case CU_ATOMIC_OPERATION_INTEGER_MIN:
      case CU_ATOMIC_OPERATION_INTEGER_MAX: capabilities[i] = integers | CU_ATOMIC_CAPABILITY_REDUCTION; break;
      case CU_ATOMIC_OPERATION_INTEGER_INCREMENT:
      case CU_ATOMIC_OPERATION_INTEGER_DECREMENT:  // of 32 bits alone in PTX
        capabilities[i] =
            CU_ATOMIC_CAPABILITY_UNSIGNED | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_REDUCTION;
        break;
      case CU_ATOMIC_OPERATION_AND:
      case CU_ATOMIC_OPERATION_OR:
      case CU_ATOMIC_OPERATION_XOR: capabilities[i] = integers | CU_ATOMIC_CAPABILITY_REDUCTION; break;
      case CU_ATOMIC_OPERATION_EXCHANGE:
      case CU_ATOMIC_OPERATION_CAS: capabilities[i] = integers | CU_ATOMIC_CAPABILITY_SCALAR_128; break;
      case CU_ATOMIC_OPERATION_FLOAT_ADD:
        capabilities[i] =
            CU_ATOMIC_CAPABILITY_SIGNED | words | CU_ATOMIC_CAPABILITY_VECTOR_32x4 | CU_ATOMIC_CAPABILITY_REDUCTION;
        break;
      default:  // min and max: of half-precision pairs and vectors only, which these masks do not name
        capabilities[i] = 0;
        break;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_API(cuDeviceGetHostAtomicCapabilities)
(unsigned int* capabilities, const CUatomicOperation* operations, unsigned int count, CUdevice dev) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Driver::get().device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  return atomicCapabilities(capabilities, operations, count);
}

DRIVER_API(cuDeviceGetP2PAtomicCapabilities)
(unsigned int* capabilities, const CUatomicOperation* operations, unsigned int count, CUdevice srcDevice,
 CUdevice dstDevice) {
  if (!driverReady()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Driver::get().device(srcDevice) || !Driver::get().device(dstDevice) || srcDevice == dstDevice)
    return CUDA_ERROR_INVALID_DEVICE;
  return atomicCapabilities(capabilities, operations, count);
}

DRIVER_API(cuFlushGPUDirectRDMAWrites)
(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
      (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER && scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
    return CUDA_ERROR_INVALID_VALUE;
  int64_t options = 0;
  deviceAttribute(*context->device(), CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, options);
  // With the attribute: a processor's fence has done it, for memory is coherent.
  if (options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) return CUDA_SUCCESS;
  say("no other device writes to this one: GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS is 0");
  return CUDA_ERROR_NOT_SUPPORTED;
}

// cuDeviceGetExecAffinitySupport says that no context has it.
DRIVER_API(cuCtxGetExecAffinity)(CUexecAffinityParam* pExecAffinity, CUexecAffinityType type) {
  Ref<Context> context;
  if (const CUresult e = currentContext(context)) return e;
  if (!pExecAffinity || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

}  // namespace sonde::softgpu::driver
