// SPDX-License-Identifier: Apache-2.0
// The functions of the Event and Metric APIs, as the tables name them. The events
// that tables may use count launches, so that their values are known.
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "player.h"

namespace clients {
namespace {

CUcontext currentContext() {
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  return context;
}
CUdevice currentDevice() {
  CUdevice device = 0;
  cuCtxGetDevice(&device);
  return device;
}

std::string nameOf(CUpti_EventID event) {
  char text[128] = {};
  size_t size = sizeof text;
  return cuptiEventGetAttribute(event, CUPTI_EVENT_ATTR_NAME, &size, text) == CUPTI_SUCCESS ? text : "";
}

}  // namespace

// DeviceGetNumEventDomains, DeviceEnumEventDomains; GetNumEventDomains, EnumEventDomains.
CUptiResult Player::eventDomains(const Step& s) {
  const bool ofDevice = s.function.rfind("Device", 0) == 0;
  uint32_t count = 0;
  CUptiResult result =
      ofDevice ? cuptiDeviceGetNumEventDomains(currentDevice(), &count) : cuptiGetNumEventDomains(&count);
  if (result != CUPTI_SUCCESS || s.function.find("Num") != std::string::npos) {
    if (result == CUPTI_SUCCESS && count == 0) wrong("no event domains");
    return result;
  }
  domains_.resize(count);
  size_t size = count * sizeof(CUpti_EventDomainID);
  result = ofDevice ? cuptiDeviceEnumEventDomains(currentDevice(), &size, domains_.data())
                    : cuptiEnumEventDomains(&size, domains_.data());
  if (size != count * sizeof(CUpti_EventDomainID)) wrong("another number of domains");
  return result;
}

// …EventDomainAttribute NAME|INSTANCE_COUNT|TOTAL_INSTANCE_COUNT|COLLECTION_METHOD, of each domain.
CUptiResult Player::eventDomainAttribute(const Step& s) {
  const std::map<std::string, CUpti_EventDomainAttribute> numbers = {
      {"NAME", CUPTI_EVENT_DOMAIN_ATTR_NAME},
      {"INSTANCE_COUNT", CUPTI_EVENT_DOMAIN_ATTR_INSTANCE_COUNT},
      {"TOTAL_INSTANCE_COUNT", CUPTI_EVENT_DOMAIN_ATTR_TOTAL_INSTANCE_COUNT},
      {"COLLECTION_METHOD", CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD}};
  const CUpti_EventDomainAttribute which = numbers.at(s.arguments.at(0));
  CUptiResult result = domains_.empty() ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
  for (CUpti_EventDomainID domain : domains_) {
    char value[256] = {};
    size_t size = which == CUPTI_EVENT_DOMAIN_ATTR_NAME ? sizeof value : 4;
    result = s.function == "EventDomainGetAttribute"
                 ? cuptiEventDomainGetAttribute(domain, which, &size, value)
                 : cuptiDeviceGetEventDomainAttribute(currentDevice(), domain, which, &size, value);
    if (result != CUPTI_SUCCESS) return result;
    if (value[0] == 0 && which != CUPTI_EVENT_DOMAIN_ATTR_COLLECTION_METHOD)
      wrong("a domain without " + s.arguments[0]);
  }
  return result;
}

CUptiResult Player::domainEvents(const Step& s) {
  CUptiResult result = domains_.empty() ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS;
  events_.clear();
  for (CUpti_EventDomainID domain : domains_) {
    uint32_t count = 0;
    result = cuptiEventDomainGetNumEvents(domain, &count);
    if (result != CUPTI_SUCCESS) return result;
    if (s.function == "EventDomainGetNumEvents") continue;
    std::vector<CUpti_EventID> events(count);
    size_t size = count * sizeof(CUpti_EventID);
    result = cuptiEventDomainEnumEvents(domain, &size, events.data());
    if (result != CUPTI_SUCCESS) return result;
    events_.insert(events_.end(), events.begin(), events.end());
  }
  return result;
}

// EventGetAttribute NAME event: finds the event among those that were enumerated.
CUptiResult Player::eventAttribute(const Step& s) {
  if (s.arguments.at(0) == "NAME" && s.arguments.size() > 1) {
    eventName_ = s.arguments[1];
    for (CUpti_EventID event : events_) {
      if (nameOf(event) != eventName_) continue;
      event_ = event;
      return CUPTI_SUCCESS;
    }
    return CUPTI_ERROR_INVALID_EVENT_NAME;
  }
  const std::map<std::string, CUpti_EventAttribute> numbers = {
      {"NAME", CUPTI_EVENT_ATTR_NAME},
      {"SHORT_DESCRIPTION", CUPTI_EVENT_ATTR_SHORT_DESCRIPTION},
      {"LONG_DESCRIPTION", CUPTI_EVENT_ATTR_LONG_DESCRIPTION},
      {"CATEGORY", CUPTI_EVENT_ATTR_CATEGORY}};
  char value[1024] = {};
  size_t size = s.arguments[0] == "CATEGORY" ? 4 : sizeof value;
  return cuptiEventGetAttribute(event_, numbers.at(s.arguments[0]), &size, value);
}

CUptiResult Player::eventFromName(const Step& s) {
  eventName_ = s.arguments.at(0);
  return cuptiEventGetIdFromName(currentDevice(), eventName_.c_str(), &event_);
}

CUptiResult Player::groupCreate(const Step& s) {
  if (s.function == "EventGroupDestroy") {
    const CUptiResult result = cuptiEventGroupDestroy(group_);
    group_ = nullptr;
    return result;
  }
  return cuptiEventGroupCreate(currentContext(), &group_, 0);
}

CUptiResult Player::groupChange(const Step& s) {
  if (s.function == "EventGroupAddEvent") return cuptiEventGroupAddEvent(group_, event_);
  if (s.function == "EventGroupRemoveEvent") return cuptiEventGroupRemoveEvent(group_, event_);
  return cuptiEventGroupRemoveAllEvents(group_);
}

CUptiResult Player::groupSetAttribute(const Step& s) {
  uint32_t all = static_cast<uint32_t>(std::stoul(s.arguments.at(0)));
  if (sets_ != nullptr) {
    CUpti_EventGroupSet& set = sets_->sets[set_];
    for (uint32_t i = 0; i < set.numEventGroups; ++i) {
      const CUptiResult result = cuptiEventGroupSetAttribute(
          set.eventGroups[i], CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof all, &all);
      if (result != CUPTI_SUCCESS) return result;
    }
    return CUPTI_SUCCESS;
  }
  return cuptiEventGroupSetAttribute(group_, CUPTI_EVENT_GROUP_ATTR_PROFILE_ALL_DOMAIN_INSTANCES, sizeof all, &all);
}

// EventGroupGetAttribute: what a reader needs, with the sets' first group where there are sets.
CUptiResult Player::groupGetAttribute(const Step&) {
  CUpti_EventGroup group = sets_ != nullptr ? sets_->sets[set_].eventGroups[0] : group_;
  uint32_t count = 0, instances = 0;
  CUpti_EventDomainID domain = 0;
  size_t size = sizeof count;
  CUptiResult result = cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &count);
  size = sizeof instances;
  if (result == CUPTI_SUCCESS) {
    result = cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &instances);
  }
  size = sizeof domain;
  if (result == CUPTI_SUCCESS) {
    result = cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENT_DOMAIN_ID, &size, &domain);
  }
  if (result == CUPTI_SUCCESS && (count == 0 || instances == 0 || domain == 0)) wrong("an empty group");
  return result;
}

CUptiResult Player::groupSwitch(const Step& s) {
  if (s.function == "EventGroupDisable") return cuptiEventGroupDisable(group_);
  blocksBefore_ = truth_.blocks, warpsBefore_ = truth_.warps, threadsBefore_ = truth_.threads;
  eventSums_.clear();
  return cuptiEventGroupEnable(group_);
}

// What the events count: since they were switched on, or of the last kernel.
std::map<std::string, uint64_t> Player::launched() const {
  if (!ofKernel_) {
    return {{"threads_launched", truth_.threads - threadsBefore_},
            {"warps_launched", truth_.warps - warpsBefore_},
            {"sm_cta_launched", truth_.blocks - blocksBefore_}};
  }
  if (truth_.records.at("KERNEL").size() == kernelsAtReset_) {
    return {{"threads_launched", 0}, {"warps_launched", 0}, {"sm_cta_launched", 0}};
  }
  const Expected& last = truth_.records.at("KERNEL").back();
  const uint64_t blocks = last.fields.at("gridX"), threads = last.fields.at("blockX");
  return {
      {"threads_launched", blocks * threads}, {"warps_launched", blocks * (threads / 32)}, {"sm_cta_launched", blocks}};
}

bool Player::readGroup(CUpti_EventGroup group, std::map<CUpti_EventID, uint64_t>* values) {
  uint32_t count = 0, instances = 0;
  size_t size = sizeof count;
  if (cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &count) != CUPTI_SUCCESS)
    return false;
  size = sizeof instances;
  if (cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &instances) != CUPTI_SUCCESS) {
    return false;
  }
  std::vector<CUpti_EventID> events(count);
  size = count * sizeof(CUpti_EventID);
  if (cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_EVENTS, &size, events.data()) != CUPTI_SUCCESS) {
    return false;
  }
  for (CUpti_EventID event : events) {
    std::vector<uint64_t> of(instances);
    size = instances * sizeof(uint64_t);
    if (cuptiEventGroupReadEvent(group, CUPTI_EVENT_READ_FLAG_NONE, event, &size, of.data()) != CUPTI_SUCCESS)
      return false;
    for (uint64_t v : of) (*values)[event] += v;
  }
  return true;
}

// EventGroupReadEvent: the event's value since the group was enabled is what was launched since.
CUptiResult Player::groupRead(const Step&) {
  std::map<CUpti_EventID, uint64_t> values;
  if (!readGroup(group_, &values)) return CUPTI_ERROR_UNKNOWN;
  const std::map<std::string, uint64_t> known = launched();
  // In continuous mode a read sets the counters back.
  eventSums_[event_] = (ofKernel_ ? 0 : eventSums_[event_]) + values[event_];
  if (eventSums_[event_] != known.at(eventName_)) {
    wrong(eventName_ + " is " + std::to_string(eventSums_[event_]) + ", not " + std::to_string(known.at(eventName_)));
  }
  return CUPTI_SUCCESS;
}

CUptiResult Player::groupReadAll(const Step& s) {
  CUpti_EventGroup group = sets_ != nullptr ? sets_->sets[set_].eventGroups[0] : group_;
  if (s.function == "EventGroupResetAllEvents") {
    blocksBefore_ = truth_.blocks, warpsBefore_ = truth_.warps, threadsBefore_ = truth_.threads;
    kernelsAtReset_ = truth_.records["KERNEL"].size();
    return cuptiEventGroupResetAllEvents(group);
  }
  uint32_t count = 0, instances = 0;
  size_t size = sizeof count;
  cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_NUM_EVENTS, &size, &count);
  size = sizeof instances;
  cuptiEventGroupGetAttribute(group, CUPTI_EVENT_GROUP_ATTR_INSTANCE_COUNT, &size, &instances);
  std::vector<uint64_t> values(size_t{count} * instances);
  std::vector<CUpti_EventID> ids(count);
  size_t valueBytes = values.size() * 8, idBytes = ids.size() * sizeof(CUpti_EventID), read = 0;
  const CUptiResult result = cuptiEventGroupReadAllEvents(group, CUPTI_EVENT_READ_FLAG_NONE, &valueBytes, values.data(),
                                                          &idBytes, ids.data(), &read);
  if (result != CUPTI_SUCCESS) return result;
  const std::map<std::string, uint64_t> known = launched();
  for (size_t e = 0; e < read; ++e) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < instances; ++i) sum += values[i * read + e];
    auto found = known.find(nameOf(ids[e]));
    // What was read before is counted no more.
    sum += ofKernel_ ? 0 : eventSums_[ids[e]];
    if (found != known.end() && found->second != sum) {
      wrong(found->first + " is " + std::to_string(sum) + ", not " + std::to_string(found->second));
    }
  }
  if (read != count) wrong("not every event was read");
  return result;
}

CUptiResult Player::groupSets(const Step& s) {
  if (s.function == "EventGroupSetsDestroy") {
    const CUptiResult result = cuptiEventGroupSetsDestroy(sets_);
    sets_ = nullptr;
    return result;
  }
  return cuptiEventGroupSetsCreate(currentContext(), sizeof event_, &event_, &sets_);
}

CUptiResult Player::groupSetSwitch(const Step& s) {
  if (s.function == "EventGroupSetDisable") return cuptiEventGroupSetDisable(&sets_->sets[set_]);
  blocksBefore_ = truth_.blocks, warpsBefore_ = truth_.warps, threadsBefore_ = truth_.threads;
  return cuptiEventGroupSetEnable(&sets_->sets[set_]);
}

CUptiResult Player::collectionMode(const Step& s) {
  ofKernel_ = s.arguments.at(0) == "KERNEL";
  return cuptiSetEventCollectionMode(currentContext(), s.arguments.at(0) == "KERNEL"
                                                           ? CUPTI_EVENT_COLLECTION_MODE_KERNEL
                                                           : CUPTI_EVENT_COLLECTION_MODE_CONTINUOUS);
}

CUptiResult Player::replayMode(const Step& s) {
  if (s.function == "EnableKernelReplayMode") return cuptiEnableKernelReplayMode(currentContext());
  if (s.function == "DisableKernelReplayMode") return cuptiDisableKernelReplayMode(currentContext());
  return cuptiKernelReplaySubscribeUpdate([](const char*, int, void*) {}, nullptr);
}

CUptiResult Player::metricList(const Step& s) {
  uint32_t count = 0;
  CUptiResult result = cuptiDeviceGetNumMetrics(currentDevice(), &count);
  if (result != CUPTI_SUCCESS || s.function == "DeviceGetNumMetrics") return result;
  std::vector<CUpti_MetricID> ids(count);
  size_t size = count * sizeof(CUpti_MetricID);
  result = cuptiDeviceEnumMetrics(currentDevice(), &size, ids.data());
  if (result == CUPTI_SUCCESS && (count == 0 || size != count * sizeof(CUpti_MetricID))) wrong("no metrics");
  return result;
}

CUptiResult Player::metricFromName(const Step& s) {
  return cuptiMetricGetIdFromName(currentDevice(), s.arguments.at(0).c_str(), &metric_);
}

CUptiResult Player::metricAttribute(const Step&) {
  CUpti_MetricValueKind kind;
  size_t size = sizeof kind;
  return cuptiMetricGetAttribute(metric_, CUPTI_METRIC_ATTR_VALUE_KIND, &size, &kind);
}

CUptiResult Player::metricEvents(const Step& s) {
  uint32_t count = 0;
  CUptiResult result = cuptiMetricGetNumEvents(metric_, &count);
  if (result != CUPTI_SUCCESS || s.function == "MetricGetNumEvents") return result;
  std::vector<CUpti_EventID> ids(count);
  size_t size = count * sizeof(CUpti_EventID);
  return cuptiMetricEnumEvents(metric_, &size, ids.data());
}

CUptiResult Player::metricSets(const Step&) {
  const CUptiResult result = cuptiMetricCreateEventGroupSets(currentContext(), sizeof metric_, &metric_, &sets_);
  if (result == CUPTI_SUCCESS && sets_->numSets != 1) wrong("a metric of several passes");
  return result;
}

// MetricGetValue VALUE: of what the enabled set counted.
CUptiResult Player::metricValue(const Step& s) {
  std::map<CUpti_EventID, uint64_t> values;
  for (uint32_t i = 0; i < sets_->sets[set_].numEventGroups; ++i) {
    if (!readGroup(sets_->sets[set_].eventGroups[i], &values)) return CUPTI_ERROR_UNKNOWN;
  }
  std::vector<CUpti_EventID> ids;
  std::vector<uint64_t> counts;
  for (const auto& [id, count] : values) {
    ids.push_back(id);
    counts.push_back(count);
  }
  CUpti_MetricValue value{};
  const CUptiResult result = cuptiMetricGetValue(currentDevice(), metric_, ids.size() * sizeof(CUpti_EventID),
                                                 ids.data(), counts.size() * 8, counts.data(), 1000000, &value);
  if (result == CUPTI_SUCCESS && std::abs(value.metricValueDouble - std::stod(s.arguments.at(0))) > 1e-9) {
    wrong("the metric is " + std::to_string(value.metricValueDouble));
  }
  return result;
}

}  // namespace clients
