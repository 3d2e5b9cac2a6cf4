// SPDX-License-Identifier: Apache-2.0
#include "core/source_level.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/core.h"
#include "core/strings.h"

namespace sonde::core {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_SHARED_ACCESS,
                                         CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION};
enum Bit : uint32_t { kGlobal = 1, kShared = 2, kBranch = 4, kInstruction = 8 };
static_assert(kMaxClients * 4 <= 64);

uint32_t clamp32(uint64_t value) { return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX)); }

// Lines have one id in the process, given when they are first met; never 0.
uint32_t locatorOf(const char* file, uint32_t line) {
  static std::mutex& mutex = *new std::mutex;
  static auto& ids = *new std::map<std::pair<const char*, uint32_t>, uint32_t>;
  std::lock_guard lock(mutex);
  return ids.try_emplace({file, line}, static_cast<uint32_t>(ids.size()) + 1).first->second;
}

class Lines {
 public:
  Lines(ThreadState& thread, Client& client, const SondeWork& work)
      : launcher_(thread.recordOwner != 0 ? thread.recordOwner : thread.serial),
        client_(client),
        wanted_(client.kindOn(CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR, static_cast<CUcontext>(work.context))) {}

  // The id of the instruction's line; the client gets its record before the
  // first one that names it.
  uint32_t idOf(const SondeInstructionCount& i) {
    if (i.file == nullptr) return CUPTI_SOURCE_LOCATOR_ID_UNKNOWN;
    if (i.file != given_) {
      given_ = i.file;
      file_ = intern(i.file);
    } else if (i.line == line_ && id_ != 0) {
      return id_;
    }
    line_ = i.line;
    id_ = locatorOf(file_, i.line);
    if (wanted_) client_.reportLocator(id_, file_, i.line, launcher_);
    return id_;
  }

 private:
  const uint64_t launcher_;
  Client& client_;
  const bool wanted_;
  const char* given_ = nullptr;
  const char* file_ = nullptr;
  uint32_t line_ = 0, id_ = 0;
};

constexpr uint32_t kReads = 1, kReturns = 3, kCopies = 5;

// Size and direction; both record kinds have them at the same bits.
uint32_t accessFlags(const SondeInstructionCount& i, bool global) {
  uint32_t flags = i.accessBytes & CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_SIZE_MASK;
  if (i.access == kReads || i.access == kReturns || (global && i.access == kCopies)) {
    flags |= CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_LOAD;
  }
  return flags;
}

}  // namespace

bool isSourceLevelKind(uint32_t kind) {
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

bool platformCountsInstructions() {
  const SondePlatform* p = attachedPlatform();
  return p != nullptr && p->size >= offsetof(SondePlatform, countsInstructions) + sizeof p->countsInstructions &&
         p->countsInstructions != 0;
}

uint64_t sourceLevelWanted(const SondeWork& work) {
  uint64_t word = 0;
  for (uint32_t k = 0; k < std::size(kKinds); ++k) {
    forEachClient(wantedKinds[kKinds[k]].load(std::memory_order_relaxed), [&](Client& client) {
      if (client.kindOn(kKinds[k], static_cast<CUcontext>(work.context))) word |= uint64_t{1} << (4 * client.index + k);
    });
  }
  return word;
}

void appendSourceLevel(ThreadState& thread, Client& client, const SondeWork& work, uint32_t kinds) {
  Lines lines(thread, client, work);
  const auto* bytes = reinterpret_cast<const char*>(work.instructions);
  for (uint64_t n = 0; n < work.instructionCount; ++n, bytes += work.instructionSize) {
    const auto& i = *reinterpret_cast<const SondeInstructionCount*>(bytes);
    if ((kinds & kInstruction) != 0) {
      CUpti_ActivityInstructionExecution r{};
      r.kind = CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION;
      r.flags = static_cast<CUpti_ActivityFlag>(i.instructionClass << 1 & CUPTI_ACTIVITY_FLAG_INSTRUCTION_CLASS_MASK);
      r.sourceLocatorId = lines.idOf(i);
      r.correlationId = work.correlationId;
      r.functionId = i.functionId;
      r.pcOffset = i.pcOffset;
      r.threadsExecuted = i.threads;
      r.notPredOffThreadsExecuted = i.notPredicatedOff;
      r.executed = clamp32(i.executed);
      client.append(thread, r);
    }
    if ((kinds & kGlobal) != 0 && i.globalExecuted != 0) {
      CUpti_ActivityGlobalAccess3 r{};
      r.kind = CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS;
      r.flags = static_cast<CUpti_ActivityFlag>(
          accessFlags(i, true) | (i.cached != 0 ? uint32_t{CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_CACHED} : 0));
      r.sourceLocatorId = lines.idOf(i);
      r.correlationId = work.correlationId;
      r.functionId = i.functionId;
      r.executed = clamp32(i.globalExecuted);
      r.pcOffset = i.pcOffset;
      r.threadsExecuted = i.globalThreads;
      r.l2_transactions = i.globalTransactions;
      r.theoreticalL2Transactions = i.globalIdeal;
      client.append(thread, r);
    }
    if ((kinds & kShared) != 0 && i.sharedExecuted != 0) {
      CUpti_ActivitySharedAccess r{};
      r.kind = CUPTI_ACTIVITY_KIND_SHARED_ACCESS;
      r.flags = static_cast<CUpti_ActivityFlag>(accessFlags(i, false));
      r.sourceLocatorId = lines.idOf(i);
      r.correlationId = work.correlationId;
      r.functionId = i.functionId;
      r.pcOffset = i.pcOffset;
      r.threadsExecuted = i.sharedThreads;
      r.sharedTransactions = i.sharedTransactions;
      r.theoreticalSharedTransactions = i.sharedIdeal;
      r.executed = clamp32(i.sharedExecuted);
      client.append(thread, r);
    }
    if ((kinds & kBranch) != 0 && i.isBranch != 0) {
      CUpti_ActivityBranch2 r{};
      r.kind = CUPTI_ACTIVITY_KIND_BRANCH;
      r.sourceLocatorId = lines.idOf(i);
      r.correlationId = work.correlationId;
      r.functionId = i.functionId;
      r.pcOffset = i.pcOffset;
      r.diverged = clamp32(i.diverged);
      r.threadsExecuted = i.threads;
      r.executed = clamp32(i.executed);
      client.append(thread, r);
    }
  }
}

}  // namespace sonde::core
