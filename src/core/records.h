// SPDX-License-Identifier: Apache-2.0
// The platform's structures as activity records in their newest form. Names are
// interned; times go through the client's clock.
#ifndef SONDE_CORE_RECORDS_H_
#define SONDE_CORE_RECORDS_H_

#include <cupti.h>

#include "core/client.h"
#include "platform/tools_api.h"

namespace sonde::core {

// `kind` is KERNEL or CONCURRENT_KERNEL.
// A copy of the launch's window that lives for ever; nullptr: it has none.
const CUaccessPolicyWindow* internAccessPolicy(const SondeWork& work);
CUpti_ActivityKernel10 kernelRecord(const Client& client, const SondeWork& work, CUpti_ActivityKind kind);
// Of a kernel that a kernel launched.
CUpti_ActivityCdpKernel cdpKernelRecord(const Client& client, const SondeWork& work);
CUpti_ActivityMemcpy6 memcpyRecord(const Client& client, const SondeWork& work);
CUpti_ActivityMemcpyPtoP4 peerCopyRecord(const Client& client, const SondeWork& work);
CUpti_ActivityMemset4 memsetRecord(const Client& client, const SondeWork& work);
CUpti_ActivityCudaEvent2 cudaEventRecord(const Client& client, const SondeWork& work);
CUpti_ActivityGraphTrace2 graphRecord(const Client& client, const SondeWork& work);

CUpti_ActivitySynchronization2 synchronizationRecord(const Client& client, const SondeSync& sync);
CUpti_ActivityContext3 contextRecord(const SondePlatform& platform, const SondeResource& context);
CUpti_ActivityStream streamRecord(const SondeResource& stream);
CUpti_ActivityModule moduleRecord(const SondeResource& module);
CUpti_ActivityFunction functionRecord(const SondeResource& function);
// Where an allocation or a release was called from; 0: not known.
uint64_t pcOf(const SondeResource& memory);
// The variable whose memory it is, interned; nullptr: none's.
const char* variableName(const SondeResource& memory);
// Without an end.
CUpti_ActivityMemory memoryRecord(uint64_t address, const Client::Allocation& allocation);
CUpti_ActivityMemory4 memory2Record(const Client& client, const SondeResource& allocation);
CUpti_ActivityMemoryPool3 poolRecord(const Client& client, const SondeResource& pool);
CUpti_ActivityDevice5 deviceRecord(const SondePlatform& platform, uint32_t device);

}  // namespace sonde::core

#endif  // SONDE_CORE_RECORDS_H_
