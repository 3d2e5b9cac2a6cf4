// SPDX-License-Identifier: Apache-2.0
// A client of the source-level kinds, and what the sums over its records must equal.
#pragma once

#include <algorithm>
#include <set>

#include "gpu.h"
#include "tests/cupti/collector.h"

namespace sonde::test {

inline constexpr CUpti_ActivityKind kKinds[] = {CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_SHARED_ACCESS,
                                                CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION,
                                                CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR};
inline constexpr uint32_t kLoad = CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_LOAD,
                          kCached = CUPTI_ACTIVITY_FLAG_GLOBAL_ACCESS_KIND_CACHED;

inline uint32_t classOf(const CUpti_ActivityInstructionExecution& r) {
  return (static_cast<uint32_t>(r.flags) & CUPTI_ACTIVITY_FLAG_INSTRUCTION_CLASS_MASK) >> 1;
}

class SourceLevel : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    collector.start();
  }
  void TearDown() override {
    Gpu::TearDown();
    cuptiFinalize();
  }
  void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
    for (CUpti_ActivityKind k : kinds) ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(k)) << k;
  }
  void enableAll() {
    for (CUpti_ActivityKind k : kKinds) ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(k)) << k;
  }
  template <class T>
  std::vector<T> of(CUpti_ActivityKind kind) {
    std::vector<T> out;
    for (const auto& r : collector.flush())
      if (r.kind() == kind) out.push_back(r.as<T>());
    return out;
  }
  auto globals() { return of<CUpti_ActivityGlobalAccess3>(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS); }
  auto shared() { return of<CUpti_ActivitySharedAccess>(CUPTI_ACTIVITY_KIND_SHARED_ACCESS); }
  auto branches() { return of<CUpti_ActivityBranch2>(CUPTI_ACTIVITY_KIND_BRANCH); }
  auto instructions() { return of<CUpti_ActivityInstructionExecution>(CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION); }
  auto locators() { return of<CUpti_ActivitySourceLocator>(CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR); }
  void runBody(const std::string& body, const std::string& declarations = "", unsigned grid = 4, unsigned block = 256) {
    launch(function(kernel(body, declarations), "k"), grid, block, {buffer(1 << 20), buffer(1 << 20)});
  }

  testing_support::Collector& collector = testing_support::Collector::instance();
};

// Sums over a launch's records, under the names of the events that count the same. A child's records are among them.
class SourceSums : public SourceLevel {
 protected:
  using Values = std::map<std::string, uint64_t>;
  static constexpr std::initializer_list<const char*> kEvents = {"inst_executed",
                                                                 "thread_inst_executed",
                                                                 "not_predicated_off_thread_inst_executed",
                                                                 "branch",
                                                                 "divergent_branch",
                                                                 "gld_request",
                                                                 "gst_request",
                                                                 "global_load_sectors",
                                                                 "global_store_sectors",
                                                                 "atom_count",
                                                                 "gred_count",
                                                                 "atom_thread_count",
                                                                 "gred_thread_count",
                                                                 "shared_load",
                                                                 "shared_store",
                                                                 "shared_atom",
                                                                 "shared_load_replay",
                                                                 "shared_store_replay",
                                                                 "global_load_bytes",
                                                                 "global_store_bytes",
                                                                 "shared_load_bytes",
                                                                 "shared_store_bytes",
                                                                 "thread_inst_integer",
                                                                 "thread_inst_fp_32",
                                                                 "thread_inst_fp_64",
                                                                 "thread_inst_bit_convert",
                                                                 "thread_inst_control",
                                                                 "thread_inst_compute_ld_st",
                                                                 "thread_inst_inter_thread_communication",
                                                                 "thread_inst_misc",
                                                                 "l1_shared_load_transactions",
                                                                 "l1_shared_store_transactions"};

  Values sums() {
    Values s;
    for (const char* event : kEvents) s[event] = 0;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> classes;  // by function and place
    for (const auto& r : instructions()) {
      s["inst_executed"] += r.executed;
      s["thread_inst_executed"] += r.threadsExecuted;
      s["not_predicated_off_thread_inst_executed"] += r.notPredOffThreadsExecuted;
      classes[{r.functionId, r.pcOffset}] = classOf(r);
      if (const char* event = eventOf(classOf(r))) s[event] += r.notPredOffThreadsExecuted;
    }
    for (const auto& r : branches()) {
      s["branch"] += r.executed;
      s["divergent_branch"] += r.diverged;
      EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONTROL_FLOW}, (classes[{r.functionId, r.pcOffset}]));
    }
    for (const auto& r : globals()) {
      const bool load = (r.flags & kLoad) != 0;
      const uint64_t bytes = r.threadsExecuted * (static_cast<uint32_t>(r.flags) & 255);
      EXPECT_LE(r.theoreticalL2Transactions, r.l2_transactions);
      if (classes[{r.functionId, r.pcOffset}] == CUPTI_ACTIVITY_INSTRUCTION_CLASS_GLOBAL_ATOMIC) {
        s[load ? "atom_count" : "gred_count"] += r.executed;
        s[load ? "atom_thread_count" : "gred_thread_count"] += r.threadsExecuted;
        continue;
      }
      s[load ? "gld_request" : "gst_request"] += r.executed;
      s[load ? "global_load_sectors" : "global_store_sectors"] += r.l2_transactions;
      s[load ? "global_load_bytes" : "global_store_bytes"] += bytes;
    }
    for (const auto& r : shared()) {
      const bool load = (r.flags & kLoad) != 0;
      const uint32_t recordClass = classes[{r.functionId, r.pcOffset}];
      EXPECT_LE(r.theoreticalSharedTransactions, r.sharedTransactions);
      if (recordClass == CUPTI_ACTIVITY_INSTRUCTION_CLASS_SHARED_ATOMIC ||
          recordClass == CUPTI_ACTIVITY_INSTRUCTION_CLASS_GLOBAL_ATOMIC) {  // the class of generic atomics
        s["shared_atom"] += r.executed;
        continue;
      }
      s[load ? "shared_load" : "shared_store"] += r.executed;
      s[load ? "l1_shared_load_transactions" : "l1_shared_store_transactions"] += r.sharedTransactions;
      s[load ? "shared_load_replay" : "shared_store_replay"] += r.sharedTransactions - r.theoreticalSharedTransactions;
      s[load ? "shared_load_bytes" : "shared_store_bytes"] +=
          r.threadsExecuted * (static_cast<uint32_t>(r.flags) & 255);
    }
    return s;
  }
  // Records and events of one launch.
  void expectSumsOf(CUfunction f, unsigned grid, unsigned block, std::initializer_list<uint64_t> arguments) {
    collector.clear();
    const Values events = count(kEvents, f, grid, block, arguments);
    ASSERT_EQ(kEvents.size(), events.size());
    const Values records = sums();
    for (const auto& [event, value] : events) EXPECT_EQ(value, records.at(event)) << event;
    EXPECT_NE(0u, records.at("inst_executed"));
  }

 private:
  static const char* eventOf(uint32_t recordClass) {
    switch (recordClass) {
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_32: return "thread_inst_fp_32";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_64: return "thread_inst_fp_64";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTEGER: return "thread_inst_integer";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_BIT_CONVERSION: return "thread_inst_bit_convert";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONTROL_FLOW: return "thread_inst_control";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_GLOBAL:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_SHARED:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_LOCAL:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_GENERIC:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONSTANT:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_GLOBAL_ATOMIC:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_SHARED_ATOMIC: return "thread_inst_compute_ld_st";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTER_THREAD_COMMUNICATION: return "thread_inst_inter_thread_communication";
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_BARRIER:
      case CUPTI_ACTIVITY_INSTRUCTION_CLASS_MISCELLANEOUS: return "thread_inst_misc";
      default: ADD_FAILURE() << "class " << recordClass; return nullptr;
    }
  }
};

}  // namespace sonde::test
