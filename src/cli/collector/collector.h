// SPDX-License-Identifier: Apache-2.0
// The collector: lives in the profiled process, asks CUPTI for activity
// records and appends them to a spool. `sonde run` configures it through the
// environment:
//
//   SONDE_SPOOL_DIR           folder for <pid>.<n>.spool; without it the collector does nothing
//   SONDE_CUPTI               libcupti to load
//   SONDE_KINDS               activity kinds by number, comma-separated
//   SONDE_FLUSH_MS            how often partly filled buffers are written (0: never)
//   SONDE_BUFFER_KB           size of a record buffer
//   SONDE_PROFILE_FROM_START  0: wait for cudaProfilerStart
//   SONDE_EVENTS …            what to count, see counting.h
//   SONDE_CHAIN_INJECTION, SONDE_CHAIN_NVTX   injection libraries that ours took the place of
#ifndef SONDE_CLI_COLLECTOR_COLLECTOR_H_
#define SONDE_CLI_COLLECTOR_COLLECTOR_H_

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cli/collector/counting.h"
#include "cli/collector/cupti_functions.h"
#include "cli/spool/writer.h"

namespace sonde::collector {

class Collector {
 public:
  // The one of this process; it is never destroyed, because other threads may
  // still deliver records while the process ends.
  static Collector& instance();

  // Idempotent. False: nothing is collected (the reason went to stderr).
  bool start();
  bool active() const { return active_.load(std::memory_order_acquire); }
  const CuptiFunctions& cupti() const { return cupti_; }

  // Delivers what is finished.
  void flush();
  // Delivers everything and writes the end block; collection goes on, in case
  // the process does (a failed exec).
  void finish(spool::EndReason reason, int32_t value);
  // In the child of a fork: forget the parent's file and threads.
  void abandon();
  bool ownProcess() const;

  // CUPTI's side.
  void requestBuffer(uint8_t** buffer, size_t* size, size_t* maxRecords);
  void completeBuffer(uint8_t* buffer, size_t validSize);
  void profilerSwitched(bool on);
  // Keeps the text of a module that is being loaded, when kind MODULE is asked for.
  void moduleLoaded(const CUpti_ModuleResourceData& module);
  void driverLaunch(uint32_t cbid, const CUpti_CallbackData& info);

 private:
  void subscribe();
  bool startLocked();
  bool openSpool(const std::string& folder);
  void enableKinds(bool on, bool things);
  void writeProcess(const char* cuptiPath);
  void note(const std::string& text);
  void apiName(uint32_t kind, uint32_t cbid);
  CUptiResult chooseUnifiedMemoryCounters();
  void location(uint64_t pc);
  void takeDropped();

  CuptiFunctions cupti_;
  spool::Writer writer_;
  std::string spoolPath_;
  Counting counting_{cupti_, writer_};
  std::mutex startMutex_;
  std::mutex finishMutex_;
  std::atomic<bool> started_{false};
  std::atomic<bool> active_{false};
  std::atomic<bool> enabled_{false};
  int pid_ = 0;
  std::vector<uint32_t> kinds_;
  size_t bufferBytes_ = size_t{1} << 20;

  std::mutex poolMutex_;
  std::vector<uint8_t*> pool_;

  // Which API functions have their name in the spool; [1]: runtime.
  std::array<std::atomic<bool>, 4096> namesSeen_[2] = {};

  std::mutex locationsMutex_;
  std::set<uint64_t> locationsSeen_;  // instructions whose place is in the spool

  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> dropped_{0};
};

// One line on the application's stderr, prefixed with ==PID==.
void message(const std::string& text);

}  // namespace sonde::collector

#endif  // SONDE_CLI_COLLECTOR_COLLECTOR_H_
