// SPDX-License-Identifier: Apache-2.0
// How an application's NVTX finds this library: NVTX_INJECTION64_PATH may point
// at libcupti itself, or a tool passes its own injection on.
#include "core/nvtx.h"

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

CUptiResult initialize(void* getExportTable) {
  if (getExportTable == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "the export table function is NULL");
  if (!nvtx::attach(reinterpret_cast<nvtx::GetExportTable>(getExportTable))) {
    return fail(CUPTI_ERROR_NOT_SUPPORTED, "this NVTX has tables of another shape than versions 2 and 3");
  }
  return CUPTI_SUCCESS;
}

CUptiResult initializeExtension(void* moduleInfo) {
  if (moduleInfo == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "moduleInfo is NULL");
  if (!nvtx::attachExtension(moduleInfo)) {
    return fail(CUPTI_ERROR_NOT_SUPPORTED, "of the extensions of NVTX only payloads, version 1, are known");
  }
  return CUPTI_SUCCESS;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int InitializeInjectionNvtx(void* getExportTable) { return initialize(getExportTable) == CUPTI_SUCCESS; }
int InitializeInjectionNvtx2(void* getExportTable) { return initialize(getExportTable) == CUPTI_SUCCESS; }

CUptiResult CUPTIAPI cuptiNvtxInitialize(void* pfnGetExportTable) { return initialize(pfnGetExportTable); }
CUptiResult CUPTIAPI cuptiNvtxInitialize2(void* pfnGetExportTable) { return initialize(pfnGetExportTable); }

int InitializeInjectionNvtxExtension(void* moduleInfo) { return initializeExtension(moduleInfo) == CUPTI_SUCCESS; }
CUptiResult CUPTIAPI cuptiNvtxExtensionInitialize(void* moduleInfo) { return initializeExtension(moduleInfo); }

CUptiResult CUPTIAPI cuptiActivityGetNvtxExtPayloadAttr(uint32_t cuptiDomainId, uint64_t schemaId,
                                                        CUpti_NvtxExtPayloadAttr* payloadAttributes) {
  if (payloadAttributes == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "payloadAttributes is NULL");
  if (!nvtx::findPayloadAttributes(cuptiDomainId, schemaId, payloadAttributes)) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "domain %u has no payload schema %llu; the application registers them",
                cuptiDomainId, static_cast<unsigned long long>(schemaId));
  }
  return CUPTI_SUCCESS;
}

const void* CUPTIAPI cuptiActivityGetNvtxExtPayloadEntryTypeInfo() { return nvtx::entryTypes(); }

}  // extern "C"
#pragma GCC visibility pop
