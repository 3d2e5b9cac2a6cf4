// SPDX-License-Identifier: Apache-2.0
// Source-level records: what each instruction of a kernel did, and the source
// lines that instructions come from.
#ifndef SONDE_CORE_SOURCE_LEVEL_H_
#define SONDE_CORE_SOURCE_LEVEL_H_

#include "core/client.h"
#include "platform/tools_api.h"

namespace sonde::core {

// GLOBAL_ACCESS, SHARED_ACCESS, BRANCH or INSTRUCTION_EXECUTION.
bool isSourceLevelKind(uint32_t kind);
// The attached platform counts instructions.
bool platformCountsInstructions();
// Which of them clients want of this kernel: four bits per client.
uint64_t sourceLevelWanted(const SondeWork& work);
// A client's records of a finished kernel. `kinds`: its four bits.
void appendSourceLevel(ThreadState& thread, Client& client, const SondeWork& work, uint32_t kinds);

}  // namespace sonde::core

#endif  // SONDE_CORE_SOURCE_LEVEL_H_
