// SPDX-License-Identifier: Apache-2.0
#include "cli/collector/counting.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <generated_cuda_meta.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace sonde::collector {
namespace {

constexpr uint32_t kKernelLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
};
constexpr uint32_t kGraphLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
};
// On several devices at once. They only wait their turn.
constexpr uint32_t kOtherLaunches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
};

// Of the launch that this thread is in.
thread_local bool holdsLock = false;
thread_local bool counts = false;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> all;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    if (end > at) all.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

template <size_t N>
bool contains(const uint32_t (&list)[N], uint32_t cbid) {
  return std::find(std::begin(list), std::end(list), cbid) != std::end(list);
}

// The stream of a launch; false: the call names none.
bool streamOf(uint32_t cbid, const void* params, CUstream* stream) {
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      *stream = static_cast<const cuLaunchKernel_params*>(params)->hStream;
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      *stream = static_cast<const cuLaunchCooperativeKernel_params*>(params)->hStream;
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto* config = static_cast<const cuLaunchKernelEx_params*>(params)->config;
      if (config == nullptr) return false;
      *stream = config->hStream;
      return true;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      *stream = static_cast<const cuGraphLaunch_params*>(params)->hStream;
      return true;
    default: return false;
  }
}

}  // namespace

bool Counting::configure(std::string* error) {
  events_ = words(variable("SONDE_EVENTS"));
  if (events_.empty()) return false;
  if (cupti_.eventGroupSetsCreate == nullptr || cupti_.subscribe == nullptr) {
    *error = "this libcupti has no Event API, so that nothing is counted";
    return false;
  }
  const std::string replay = variable("SONDE_REPLAY");
  if (replay == "disabled") replay_ = Replay::Disabled;
  if (replay == "application") replay_ = Replay::Application;
  pass_ = static_cast<uint32_t>(std::strtoul(variable("SONDE_PASS").c_str(), nullptr, 10));
  continuous_ = variable("SONDE_EVENT_MODE") == "continuous";
  perInstance_ = variable("SONDE_EVENT_INSTANCES") == "1";
  for (const std::string& d : words(variable("SONDE_EVENT_DEVICES")))
    devices_.insert(static_cast<uint32_t>(std::strtoul(d.c_str(), nullptr, 10)));
  if (const std::string pattern = variable("SONDE_EVENT_KERNELS"); !pattern.empty()) {
    regex_t compiled;
    if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
      *error = "'" + pattern + "' is no regular expression, so that nothing is counted";
      return false;
    }
    kernels_ = compiled;
  }
  return true;
}

CUptiResult Counting::watchLaunches(CUpti_SubscriberHandle subscriber) {
  for (const auto& list : {std::vector<uint32_t>(std::begin(kKernelLaunches), std::end(kKernelLaunches)),
                           std::vector<uint32_t>(std::begin(kGraphLaunches), std::end(kGraphLaunches)),
                           std::vector<uint32_t>(std::begin(kOtherLaunches), std::end(kOtherLaunches))})
    for (const uint32_t cbid : list)
      if (const CUptiResult r = cupti_.enableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, cbid)) return r;
  return CUPTI_SUCCESS;
}

bool Counting::isLaunch(uint32_t cbid) {
  return contains(kKernelLaunches, cbid) || contains(kGraphLaunches, cbid) || contains(kOtherLaunches, cbid);
}

void Counting::onDriverCall(uint32_t cbid, const CUpti_CallbackData& info, bool on) {
  if (info.callbackSite == CUPTI_API_ENTER) {
    if (!on || holdsLock) return;
    mutex_.lock();
    holdsLock = true;
    counts = false;
    if (!wanted(cbid, info)) return;
    Context& context = contextOf(info);
    if (!context.usable || (!devices_.empty() && !devices_.contains(context.device))) return;
    // Work from before the launch must not be in its values.
    if (!synchronize(info.context)) return;
    if (graph_.empty() ? !switchGroups(context.groups, true) : !beginGraph(info.context, context)) return;
    cupti_.getTimestamp(&started_);
    counts = true;
    return;
  }
  if (!holdsLock) return;
  if (counts) {
    Context& context = contextOf(info);
    const auto* result = static_cast<const CUresult*>(info.functionReturnValue);
    // A kernel that failed makes the context useless; its values mean nothing.
    if (result != nullptr && *result == CUDA_SUCCESS && synchronize(info.context))
      readAndWrite(context, graph_.empty() ? context.groups : context.graphGroups, info);
    if (graph_.empty())
      switchGroups(context.groups, false);
    else
      endGraph(info.context, context);
  }
  holdsLock = false;
  mutex_.unlock();
}

bool Counting::wanted(uint32_t cbid, const CUpti_CallbackData& info) {
  if (contains(kOtherLaunches, cbid)) {
    noteOnce("launches on several devices were not counted");
    return false;
  }
  graph_.clear();
  if (contains(kGraphLaunches, cbid)) {
    uint32_t id = 0;
    const auto* launch = static_cast<const cuGraphLaunch_params*>(info.functionParams);
    if (cupti_.getGraphExecId == nullptr || cupti_.getGraphExecId(launch->hGraph, &id) != CUPTI_SUCCESS) id = 0;
    graph_ = "[CUDA graph " + std::to_string(id) + "]";
  }
  const char* name = graph_.empty() ? info.symbolName : graph_.c_str();
  if (info.context == nullptr || name == nullptr || !matches(name) || !loadDriver()) return false;
  CUstream stream = nullptr;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  if (driver_.isCapturing != nullptr && streamOf(cbid, info.functionParams, &stream) &&
      (driver_.isCapturing(stream, &capture) != CUDA_SUCCESS || capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
    return false;  // it goes into a graph and does not run now
  }
  return true;
}

bool Counting::matches(const char* mangled) {
  if (!kernels_) return true;
  const auto [it, isNew] = matched_.try_emplace(mangled, false);
  if (isNew) {
    int status = 0;
    char* name = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    it->second = ::regexec(&*kernels_, status == 0 && name != nullptr ? name : mangled, 0, nullptr, 0) == 0;
    std::free(name);
  }
  return it->second;
}

Counting::Context& Counting::contextOf(const CUpti_CallbackData& info) {
  const auto [it, isNew] = contexts_.try_emplace(info.contextUid);
  if (isNew) it->second.usable = setUp(info.context, it->second);
  return it->second;
}

std::vector<CUpti_EventID> Counting::eventIds(const Context& context) {
  std::vector<CUpti_EventID> ids;
  std::string missing;
  for (const std::string& name : events_) {
    CUpti_EventID id = 0;
    if (cupti_.eventGetIdFromName(static_cast<CUdevice>(context.device), name.c_str(), &id) == CUPTI_SUCCESS) {
      ids.push_back(id);
    } else {
      missing += (missing.empty() ? "" : ", ") + name;
    }
  }
  if (!missing.empty()) noteOnce("device " + std::to_string(context.device) + " does not have " + missing);
  return ids;
}

bool Counting::setUp(CUcontext handle, Context& context) {
  if (const CUptiResult r = cupti_.getDeviceId(handle, &context.device)) return failed("cuptiGetDeviceId", r);
  std::vector<CUpti_EventID> ids = eventIds(context);
  if (ids.empty()) return false;
  if (const CUptiResult r = cupti_.setEventCollectionMode(
          handle, continuous_ ? CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS : CUPTI_EVENT_COLLECTION_MODE_KERNEL))
    return failed("cuptiSetEventCollectionMode", r);
  if (replay_ == Replay::Kernel) {
    const CUptiResult r =
        cupti_.enableKernelReplayMode != nullptr ? cupti_.enableKernelReplayMode(handle) : CUPTI_ERROR_NOT_SUPPORTED;
    context.replay = r == CUPTI_SUCCESS;
    if (!context.replay) failed("cuptiEnableKernelReplayMode", r);
  }
  CUpti_EventGroupSets* sets = nullptr;
  if (const CUptiResult r = cupti_.eventGroupSetsCreate(handle, ids.size() * sizeof ids[0], ids.data(), &sets))
    return failed("cuptiEventGroupSetsCreate", r);
  const std::string passes = "{\"passes\":" + std::to_string(context.replay ? 1 : sets->numSets) + "}";
  writer_.block(spool::BlockType::Process, passes.data(), passes.size());
  for (uint32_t s = 0; s < sets->numSets; s++)
    if (context.replay || s == pass_)
      if (!addGroups(sets->sets[s], context, context.groups)) return false;
  if (!context.replay && replay_ != Replay::Application && sets->numSets > 1)
    noteOnce("device " + std::to_string(context.device) + " needs " + std::to_string(sets->numSets) +
             " passes for these events; only those of the first were counted (--replay-mode kernel or application "
             "counts all)");
  return !context.groups.empty();
}

// Kernel replay zeroes values at each kernel, so that it cannot add up those of a graph.
bool Counting::beginGraph(CUcontext handle, Context& context) {
  if (context.replay &&
      (cupti_.disableKernelReplayMode == nullptr || cupti_.disableKernelReplayMode(handle) != CUPTI_SUCCESS)) {
    noteOnce("launches of graphs were not counted: kernel replay cannot be left for them");
    return false;
  }
  if (const CUptiResult r = cupti_.setEventCollectionMode(handle, CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS)) {
    failed("launches of graphs: cuptiSetEventCollectionMode", r);
    endGraph(handle, context);
    return false;
  }
  if (!context.graphsKnown) {
    context.graphsKnown = true;
    std::vector<CUpti_EventID> ids = eventIds(context);
    CUpti_EventGroupSets* sets = nullptr;
    if (const CUptiResult r = cupti_.eventGroupSetsCreate(handle, ids.size() * sizeof ids[0], ids.data(), &sets)) {
      failed("cuptiEventGroupSetsCreate", r);
    } else {
      if (pass_ < sets->numSets && !addGroups(sets->sets[pass_], context, context.graphGroups))
        context.graphGroups.clear();
      if (replay_ != Replay::Application && sets->numSets > 1)
        noteOnce("launches of graphs need " + std::to_string(sets->numSets) +
                 " passes for these events; only those of the first were counted for them (--replay-mode application "
                 "counts all)");
    }
  }
  if (!context.graphGroups.empty() && switchGroups(context.graphGroups, true)) return true;
  endGraph(handle, context);
  return false;
}

void Counting::endGraph(CUcontext handle, Context& context) {
  switchGroups(context.graphGroups, false);
  if (!continuous_) cupti_.setEventCollectionMode(handle, CUPTI_EVENT_COLLECTION_MODE_KERNEL);
  if (context.replay) cupti_.enableKernelReplayMode(handle);
}

bool Counting::addGroups(CUpti_EventGroupSet& set, const Context& context, std::vector<Group>& groups) {
  for (uint32_t g = 0; g < set.numEventGroups; g++) {
    Group group;
    group.handle = set.eventGroups[g];
    uint32_t all = 1, events = 0;
    CUpti_EventDomainID domain = 0;
    size_t size = sizeof all;
    if (const CUptiResult r = cupti_.eventGroupSetAttribute(
            group.handle, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, size, &all))
      return failed("cuptiEventGroupSetAttribute", r);
    const auto get = [&](CUpti_EventGroupAttribute attribute, auto& value) {
      size = sizeof value;
      return cupti_.eventGroupGetAttribute(group.handle, attribute, &size, &value);
    };
    CUptiResult r = get(CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, group.instances);
    if (r == CUPTI_SUCCESS) r = get(CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, events);
    if (r == CUPTI_SUCCESS) r = get(CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID, domain);
    size = sizeof group.totalInstances;
    if (r == CUPTI_SUCCESS)
      r = cupti_.deviceGetEventDomainAttribute(static_cast<CUdevice>(context.device), domain,
                                               CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT, &size,
                                               &group.totalInstances);
    if (r != CUPTI_SUCCESS) return failed("cuptiEventGroupGetAttribute", r);
    group.ids.resize(events);
    size = events * sizeof(CUpti_EventID);
    r = cupti_.eventGroupGetAttribute(group.handle, CUPTI_EVENT_GROUP_ATTR_EVENTS, &size, group.ids.data());
    if (r != CUPTI_SUCCESS) return failed("cuptiEventGroupGetAttribute", r);
    for (const CUpti_EventID id : group.ids) {
      char name[256] = "";
      size = sizeof name - 1;
      cupti_.eventGetAttribute(id, CUPTI_EVENT_ATTR_NAME, &size, name);
      group.events.push_back(writer_.stringId(name));
    }
    groups.push_back(std::move(group));
  }
  return true;
}

bool Counting::switchGroups(const std::vector<Group>& groups, bool on) {
  for (size_t i = 0; i < groups.size(); i++) {
    const CUpti_EventGroup group = groups[i].handle;
    const CUptiResult r = on ? cupti_.eventGroupEnable(group) : cupti_.eventGroupDisable(group);
    if (r == CUPTI_SUCCESS || !on) continue;
    while (i > 0) cupti_.eventGroupDisable(groups[--i].handle);
    return failed("cuptiEventGroupEnable", r);
  }
  return true;
}

void Counting::readAndWrite(const Context& context, const std::vector<Group>& groups, const CUpti_CallbackData& info) {
  spool::CounterHeader head{};
  head.device = context.device;
  head.context = info.contextUid;
  head.correlation = info.correlationId;
  head.kernel = writer_.stringId(graph_.empty() ? info.symbolName : graph_.c_str());
  head.start = started_;
  cupti_.getTimestamp(&head.end);
  std::vector<spool::CounterEntry> entries;
  for (const Group& group : groups) {
    std::vector<uint64_t> values(group.ids.size() * group.instances);
    std::vector<CUpti_EventID> order(group.ids.size());
    size_t valueBytes = values.size() * sizeof values[0], idBytes = order.size() * sizeof order[0], got = 0;
    if (const CUptiResult r = cupti_.eventGroupReadAllEvents(group.handle, CUPTI_EVENT_READ_FLAG_NONE, &valueBytes,
                                                             values.data(), &idBytes, order.data(), &got)) {
      failed("cuptiEventGroupReadAllEvents", r);
      return;
    }
    for (size_t e = 0; e < got; e++) {
      const auto at = std::find(group.ids.begin(), group.ids.end(), order[e]) - group.ids.begin();
      if (static_cast<size_t>(at) == group.ids.size()) continue;
      const uint32_t event = group.events[static_cast<size_t>(at)];
      uint64_t sum = 0;
      bool overflow = false;
      for (uint32_t k = 0; k < group.instances; k++) {
        const uint64_t value = values[k * got + e];
        if (perInstance_) entries.push_back({event, k, value});
        overflow = overflow || value == CUPTI_EVENT_OVERFLOW;
        sum += value;
      }
      // A device may count in some of its instances only; those stand for all.
      if (group.totalInstances > group.instances && group.instances != 0)
        sum = static_cast<uint64_t>(static_cast<double>(sum) * group.totalInstances / group.instances + 0.5);
      if (!perInstance_) entries.push_back({event, spool::kAllInstances, overflow ? CUPTI_EVENT_OVERFLOW : sum});
    }
  }
  head.entries = static_cast<uint32_t>(entries.size());
  std::vector<unsigned char> payload(sizeof head + entries.size() * sizeof entries[0]);
  std::memcpy(payload.data(), &head, sizeof head);
  if (!entries.empty()) std::memcpy(payload.data() + sizeof head, entries.data(), payload.size() - sizeof head);
  writer_.flushStrings();
  if (!writer_.block(spool::BlockType::Counters, payload.data(), payload.size()))
    noteOnce("values are lost: the spool cannot be written");
}

// Also while other streams are captured, which must not notice.
bool Counting::synchronize(CUcontext context) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (driver_.exchangeCaptureMode != nullptr) driver_.exchangeCaptureMode(&mode);
  CUresult result = driver_.pushCurrent(context);
  if (result == CUDA_SUCCESS) {
    result = driver_.synchronize();
    CUcontext popped = nullptr;
    driver_.popCurrent(&popped);
  }
  if (driver_.exchangeCaptureMode != nullptr) driver_.exchangeCaptureMode(&mode);
  if (result != CUDA_SUCCESS)
    noteOnce("a launch was not counted: waiting for its context fails with error " +
             std::to_string(static_cast<int>(result)));
  return result == CUDA_SUCCESS;
}

bool Counting::loadDriver() {
  if (driverLoaded_) return driver_.popCurrent != nullptr;
  driverLoaded_ = true;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto find = [&](const char* name, auto& function) {
    if (library != nullptr)
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    return function != nullptr;
  };
  find("cuStreamIsCapturing", driver_.isCapturing);
  find("cuThreadExchangeStreamCaptureMode", driver_.exchangeCaptureMode);
  if (find("cuCtxSynchronize", driver_.synchronize) && find("cuCtxPushCurrent_v2", driver_.pushCurrent) &&
      find("cuCtxPopCurrent_v2", driver_.popCurrent))
    return true;
  driver_.popCurrent = nullptr;
  noteOnce("nothing is counted: this process's driver cannot be found");
  return false;
}

bool Counting::failed(const char* function, CUptiResult result) {
  const char* why = nullptr;
  cupti_.getResultString(result, &why);
  noteOnce(std::string("not everything is counted: ") + function + ": " + (why != nullptr ? why : "?"));
  return false;
}

void Counting::noteOnce(const std::string& text) {
  if (note != nullptr && notes_.insert(text).second) note(text);
}

}  // namespace sonde::collector
