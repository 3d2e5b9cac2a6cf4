// SPDX-License-Identifier: Apache-2.0
#include "cli/spool/record_layout.h"

#include <cupti.h>

#define FIELD(type, member) static_cast<uint16_t>(offsetof(type, member))

namespace sonde::spool {

RecordLayout recordLayout(uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return {sizeof(CUpti_ActivityMemcpy6), {}, {FIELD(CUpti_ActivityMemcpy6, reserved0)}};
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return {sizeof(CUpti_ActivityMemcpyPtoP4), {}, {FIELD(CUpti_ActivityMemcpyPtoP4, reserved0)}};
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return {sizeof(CUpti_ActivityMemset4), {}, {FIELD(CUpti_ActivityMemset4, reserved0)}};
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return {sizeof(CUpti_ActivityKernel10),
              {FIELD(CUpti_ActivityKernel10, name)},
              {FIELD(CUpti_ActivityKernel10, reserved0), FIELD(CUpti_ActivityKernel10, pAccessPolicyWindow)}};
    case CUPTI_ACTIVITY_KIND_CDP_KERNEL:
      return {sizeof(CUpti_ActivityCdpKernel), {FIELD(CUpti_ActivityCdpKernel, name)}, {}};
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: return {sizeof(CUpti_ActivityAPI), {}, {}};
    case CUPTI_ACTIVITY_KIND_DEVICE: return {sizeof(CUpti_ActivityDevice5), {FIELD(CUpti_ActivityDevice5, name)}, {}};
    case CUPTI_ACTIVITY_KIND_CONTEXT: return {sizeof(CUpti_ActivityContext3), {}, {}};
    case CUPTI_ACTIVITY_KIND_STREAM: return {sizeof(CUpti_ActivityStream), {}, {}};
    case CUPTI_ACTIVITY_KIND_NAME: return {sizeof(CUpti_ActivityName), {FIELD(CUpti_ActivityName, name)}, {}};
    case CUPTI_ACTIVITY_KIND_MARKER:
      return {sizeof(CUpti_ActivityMarker2),
              {FIELD(CUpti_ActivityMarker2, name), FIELD(CUpti_ActivityMarker2, domain)},
              {}};
    case CUPTI_ACTIVITY_KIND_MARKER_DATA: return {sizeof(CUpti_ActivityMarkerData2), {}, {}};
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return {sizeof(CUpti_ActivityOverhead3), {}, {FIELD(CUpti_ActivityOverhead3, overheadData)}};
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return {sizeof(CUpti_ActivityCudaEvent2), {}, {FIELD(CUpti_ActivityCudaEvent2, reserved0)}};
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return {sizeof(CUpti_ActivitySynchronization2), {}, {}};
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return {sizeof(CUpti_ActivityExternalCorrelation), {}, {}};
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return {sizeof(CUpti_ActivityMemory4),
              {FIELD(CUpti_ActivityMemory4, name), FIELD(CUpti_ActivityMemory4, source)},
              {}};
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER: return {sizeof(CUpti_ActivityUnifiedMemoryCounter3), {}, {}};
    case CUPTI_ACTIVITY_KIND_ENVIRONMENT: return {sizeof(CUpti_ActivityEnvironment), {}, {}};
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return {sizeof(CUpti_ActivityGraphTrace2), {}, {FIELD(CUpti_ActivityGraphTrace2, reserved)}};
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR:
      return {sizeof(CUpti_ActivitySourceLocator), {FIELD(CUpti_ActivitySourceLocator, fileName)}, {}};
    case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS: return {sizeof(CUpti_ActivityGlobalAccess3), {}, {}};
    case CUPTI_ACTIVITY_KIND_SHARED_ACCESS: return {sizeof(CUpti_ActivitySharedAccess), {}, {}};
    case CUPTI_ACTIVITY_KIND_BRANCH: return {sizeof(CUpti_ActivityBranch2), {}, {}};
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION: return {sizeof(CUpti_ActivityInstructionExecution), {}, {}};
    case CUPTI_ACTIVITY_KIND_FUNCTION:
      return {sizeof(CUpti_ActivityFunction), {FIELD(CUpti_ActivityFunction, name)}, {}};
    default: return {};
  }
}

}  // namespace sonde::spool
