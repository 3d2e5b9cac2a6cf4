// SPDX-License-Identifier: Apache-2.0
// Counts events of kernel launches with CUPTI's Event API: around each launch
// the event groups are on, the context is synchronised, the values are read
// and go to the spool. While anything is counted, launches go one at a time,
// so that no other kernel's work is in the values. The launch of a graph counts
// as one: its values are sums over all of its kernels.
//
//   SONDE_EVENTS           names, comma-separated; without it nothing is counted
//   SONDE_REPLAY           kernel (default), disabled, application
//   SONDE_PASS             application replay: which pass this run counts
//   SONDE_EVENT_MODE       kernel (default) or continuous
//   SONDE_EVENT_INSTANCES  1: each instance of a domain by itself
//   SONDE_EVENT_KERNELS    only kernels whose demangled name this POSIX extended expression matches
//   SONDE_EVENT_DEVICES    only these devices, comma-separated
#ifndef SONDE_CLI_COLLECTOR_COUNTING_H_
#define SONDE_CLI_COLLECTOR_COUNTING_H_

#include <regex.h>

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/collector/cupti_functions.h"
#include "cli/spool/writer.h"

namespace sonde::collector {

class Counting {
 public:
  Counting(const CuptiFunctions& cupti, spool::Writer& writer) : cupti_(cupti), writer_(writer) {}

  // Reads the environment. False with *error empty: nothing is to be counted.
  bool configure(std::string* error);
  // Makes the launches come to onDriverCall.
  CUptiResult watchLaunches(CUpti_SubscriberHandle subscriber);
  static bool isLaunch(uint32_t cbid);
  // At ENTER and EXIT of each launch, on the thread that makes it. `on`: within
  // the bounds of the profile.
  void onDriverCall(uint32_t cbid, const CUpti_CallbackData& info, bool on);

  // What could not be done, for the user; called under the counting lock.
  void (*note)(const std::string& text) = nullptr;

 private:
  enum class Replay { Kernel, Disabled, Application };
  struct Group {
    CUpti_EventGroup handle = nullptr;
    std::vector<uint32_t> events;  // string ids, in the order of the ids
    std::vector<CUpti_EventID> ids;
    uint32_t instances = 0, totalInstances = 0;
  };
  struct Context {
    uint32_t device = 0;
    bool usable = false;
    bool replay = false;        // kernel replay is on
    std::vector<Group> groups;  // those that are on during a launch
    // For launches of graphs, in continuous mode: what one pass holds.
    bool graphsKnown = false;
    std::vector<Group> graphGroups;
  };
  struct Driver {
    CUresult (*synchronize)() = nullptr;
    CUresult (*pushCurrent)(CUcontext) = nullptr;
    CUresult (*popCurrent)(CUcontext*) = nullptr;
    CUresult (*isCapturing)(CUstream, CUstreamCaptureStatus*) = nullptr;
    CUresult (*exchangeCaptureMode)(CUstreamCaptureMode*) = nullptr;
  };

  bool wanted(uint32_t cbid, const CUpti_CallbackData& info);
  bool matches(const char* mangled);
  Context& contextOf(const CUpti_CallbackData& info);
  bool setUp(CUcontext handle, Context& context);
  std::vector<CUpti_EventID> eventIds(const Context& context);
  bool addGroups(CUpti_EventGroupSet& set, const Context& context, std::vector<Group>& groups);
  bool switchGroups(const std::vector<Group>& groups, bool on);
  void readAndWrite(const Context& context, const std::vector<Group>& groups, const CUpti_CallbackData& info);
  // Before and after the launch of a graph.
  bool beginGraph(CUcontext handle, Context& context);
  void endGraph(CUcontext handle, Context& context);
  bool synchronize(CUcontext context);
  bool loadDriver();
  bool failed(const char* function, CUptiResult result);
  void noteOnce(const std::string& text);

  const CuptiFunctions& cupti_;
  spool::Writer& writer_;
  std::vector<std::string> events_;
  Replay replay_ = Replay::Kernel;
  uint32_t pass_ = 0;
  bool continuous_ = false, perInstance_ = false;
  std::optional<regex_t> kernels_;
  std::set<uint32_t> devices_;
  std::map<std::string, bool> matched_;

  std::mutex mutex_;                      // held from a launch's ENTER to its EXIT
  std::map<uint32_t, Context> contexts_;  // by context id
  Driver driver_;
  bool driverLoaded_ = false;
  uint64_t started_ = 0;
  std::string graph_;  // name of the graph that is being launched; empty: it is a kernel
  std::set<std::string> notes_;
};

}  // namespace sonde::collector

#endif  // SONDE_CLI_COLLECTOR_COUNTING_H_
