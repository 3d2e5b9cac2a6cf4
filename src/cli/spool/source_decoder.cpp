// SPDX-License-Identifier: Apache-2.0
// Source-level records, summed by instruction.
#include <cupti.h>

#include <algorithm>
#include <cstring>

#include "cli/spool/decoder.h"

namespace sonde::spool {
namespace {

template <typename R>
R as(const unsigned char* data, size_t size) {
  R r;
  std::memset(static_cast<void*>(&r), 0, sizeof r);
  std::memcpy(static_cast<void*>(&r), data, std::min(size, sizeof r));
  return r;
}

template <typename R>
uint32_t flagsOf(const R& record) {
  uint32_t v;
  std::memcpy(&v, &record.flags, sizeof v);
  return v;
}

template <typename R>
void addAccess(InstructionCounts::Memory& m, const R& r, uint64_t transactions, uint64_t ideal) {
  m.requests += r.executed;
  m.threads += r.threadsExecuted;
  m.transactions += transactions;
  m.ideal += ideal;
  m.load = (flagsOf(r) & CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_LOAD) != 0;
  m.bytes = flagsOf(r) & CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_SIZE_MASK;
}

}  // namespace

InstructionCounts& Decoder::instruction(uint32_t functionId, uint64_t pc, uint32_t locator) {
  const auto [at, isNew] = instructionAt_.try_emplace({functionId, pc}, trace_.instructions.size());
  if (isNew) {
    InstructionCounts& i = trace_.instructions.emplace_back();
    i.process = process_;
    i.functionId = functionId;
    i.pc = static_cast<uint32_t>(pc);
    i.locator = locator;
  }
  return trace_.instructions[at->second];
}

bool Decoder::sourceRecord(const unsigned char* data, size_t size) {
  uint32_t kind;
  std::memcpy(&kind, data, sizeof kind);
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR: {
      const auto r = as<CUpti_ActivitySourceLocator>(data, size);
      locators_[r.id] = {textOf(r.fileName), r.lineNumber};
      return true;
    }
    case CUPTI_ACTIVITY_KIND_FUNCTION: {
      const auto r = as<CUpti_ActivityFunction>(data, size);
      functions_[r.id] = textOf(r.name);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION: {
      const auto r = as<CUpti_ActivityInstructionExecution>(data, size);
      InstructionCounts& i = instruction(r.functionId, r.pcOffset, r.sourceLocatorId);
      i.instructionClass = (flagsOf(r) & CUPTI_ACTIVITY_FLAG_INSTRUCTION_CLASS_MASK) >> 1;
      i.executed += r.executed;
      i.threads += r.threadsExecuted;
      i.notPredicatedOff += r.notPredOffThreadsExecuted;
      return true;
    }
    case CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS: {
      const auto r = as<CUpti_ActivityGlobalAccess3>(data, size);
      addAccess(instruction(r.functionId, r.pcOffset, r.sourceLocatorId).global, r, r.l2_transactions,
                r.theoreticalL2Transactions);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_SHARED_ACCESS: {
      const auto r = as<CUpti_ActivitySharedAccess>(data, size);
      addAccess(instruction(r.functionId, r.pcOffset, r.sourceLocatorId).shared, r, r.sharedTransactions,
                r.theoreticalSharedTransactions);
      return true;
    }
    case CUPTI_ACTIVITY_KIND_BRANCH: {
      const auto r = as<CUpti_ActivityBranch2>(data, size);
      InstructionCounts& i = instruction(r.functionId, r.pcOffset, r.sourceLocatorId);
      i.branches += r.executed;
      i.diverged += r.diverged;
      i.branchThreads += r.threadsExecuted;
      return true;
    }
    default: return true;  // stored, of no use to any report
  }
}

bool Decoder::moduleTexts(std::span<const unsigned char> p) {
  for (; p.size() >= 8; p = p.subspan(8)) {
    uint32_t id, text;
    std::memcpy(&id, p.data(), sizeof id);
    std::memcpy(&text, p.data() + 4, sizeof text);
    const auto it = strings_.find(text);
    if (it == strings_.end()) return false;
    trace_.moduleTexts[{process_, trace_.intern("module_" + std::to_string(id) + ".ptx")}] = it->second;
  }
  return p.empty();
}

// Locators and functions may stand behind the records that name them: threads
// deliver independently.
void Decoder::finishInstructions() {
  for (const auto& [key, at] : instructionAt_) {
    InstructionCounts& i = trace_.instructions[at];
    if (const auto l = locators_.find(i.locator); l != locators_.end()) {
      i.file = l->second.first;
      i.line = l->second.second;
    }
    if (const auto f = functions_.find(i.functionId); f != functions_.end()) i.function = f->second;
  }
}

}  // namespace sonde::spool
