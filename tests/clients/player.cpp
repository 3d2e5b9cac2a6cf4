// SPDX-License-Identifier: Apache-2.0
#include "player.h"

#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "program.h"
#include "structures.h"

namespace clients {

const std::map<std::string, Player::Call>& Player::calls() {
  static const auto& all = *new std::map<std::string, Call>{
      {"ActivityRegisterCallbacks", &Player::registerCallbacks},
      {"ActivityRegisterCallbacks_v6050", &Player::registerCallbacks},
      {"ActivityEnable", &Player::enable},
      {"ActivityDisable", &Player::disable},
      {"ActivityEnableContext", &Player::enableContext},
      {"ActivityDisableContext", &Player::disableContext},
      {"ActivityFlushAll", &Player::flushAll},
      {"ActivityFlushPeriod", &Player::flushPeriod},
      {"ActivityGetNextRecord", &Player::nextRecord},
      {"ActivityGetNumDroppedRecords", &Player::dropped},
      {"ActivityConfigureUnifiedMemoryCounter", &Player::configureUnifiedMemory},
      {"ActivityPushExternalCorrelationId", &Player::push},
      {"ActivityPopExternalCorrelationId", &Player::pop},
      {"ActivitySetAttribute", &Player::setAttribute},
      {"ActivityGetAttribute", &Player::getAttribute},
      {"ActivityRegisterTimestampCallback", &Player::timestampCallback},
      {"ActivityEnableLatencyTimestamps", &Player::option},
      {"ActivityEnableCudaEventDeviceTimestamps", &Player::option},
      {"ActivityEnableAllSyncRecords", &Player::option},
      {"ActivityEnableLaunchAttributes", &Player::option},
      {"ActivityEnableHWTrace", &Player::option},
      {"ActivityEnableRuntimeApi", &Player::singleApi},
      {"ActivityEnableDriverApi", &Player::singleApi},
      {"ActivityConfigurePCSampling", &Player::pcSampling},
      {"ActivityEnqueueBuffer", &Player::enqueueBuffer},
      {"ActivityDequeueBuffer", &Player::dequeueBuffer},
      {"ActivityQueryBuffer", &Player::queryBuffer},
      {"Subscribe", &Player::subscribe},
      {"Unsubscribe", &Player::unsubscribe},
      {"EnableCallback", &Player::enableCallback},
      {"EnableDomain", &Player::enableDomain},
      {"EnableAllDomains", &Player::enableAllDomains},
      {"GetCallbackName", &Player::callbackName},
      {"GetTimestamp", &Player::timestamp},
      {"DeviceGetTimestamp", &Player::timestamp},
      {"GetContextId", &Player::ids},
      {"GetDeviceId", &Player::ids},
      {"GetStreamId", &Player::ids},
      {"GetStreamIdEx", &Player::ids},
      {"GetGraphId", &Player::graphIds},
      {"GetGraphExecId", &Player::graphIds},
      {"GetGraphNodeId", &Player::graphIds},
      {"GetVersion", &Player::version},
      {"GetResultString", &Player::resultString},
      {"GetErrorMessage", &Player::resultString},
      {"GetLastError", &Player::lastError},
      {"SetThreadIdType", &Player::threadIdType},
      {"GetThreadIdType", &Player::threadIdType},
      {"NvtxInitialize", &Player::nvtx},
      {"NvtxInitialize2", &Player::nvtx},
      {"InitializeInjectionNvtx2", &Player::nvtx},
      {"OpenACCInitialize", &Player::openAcc},
      {"DeviceGetChipName", &Player::chipName},
      {"GetCubinCrc", &Player::cubinCrc},
      {"GetSassToSourceCorrelation", &Player::sourceCorrelation},
      {"RegisterComputeCrcCallback", &Player::computeCrc},
      {"Finalize", &Player::finalize},
      {"cuCtxSynchronize", &Player::synchronize},
      {"DeviceGetNumEventDomains", &Player::eventDomains},
      {"DeviceEnumEventDomains", &Player::eventDomains},
      {"GetNumEventDomains", &Player::eventDomains},
      {"EnumEventDomains", &Player::eventDomains},
      {"DeviceGetEventDomainAttribute", &Player::eventDomainAttribute},
      {"EventDomainGetAttribute", &Player::eventDomainAttribute},
      {"EventDomainGetNumEvents", &Player::domainEvents},
      {"EventDomainEnumEvents", &Player::domainEvents},
      {"EventGetAttribute", &Player::eventAttribute},
      {"EventGetIdFromName", &Player::eventFromName},
      {"EventGroupCreate", &Player::groupCreate},
      {"EventGroupDestroy", &Player::groupCreate},
      {"EventGroupAddEvent", &Player::groupChange},
      {"EventGroupRemoveEvent", &Player::groupChange},
      {"EventGroupRemoveAllEvents", &Player::groupChange},
      {"EventGroupSetAttribute", &Player::groupSetAttribute},
      {"EventGroupGetAttribute", &Player::groupGetAttribute},
      {"EventGroupEnable", &Player::groupSwitch},
      {"EventGroupDisable", &Player::groupSwitch},
      {"EventGroupReadEvent", &Player::groupRead},
      {"EventGroupReadAllEvents", &Player::groupReadAll},
      {"EventGroupResetAllEvents", &Player::groupReadAll},
      {"EventGroupSetsCreate", &Player::groupSets},
      {"EventGroupSetsDestroy", &Player::groupSets},
      {"EventGroupSetEnable", &Player::groupSetSwitch},
      {"EventGroupSetDisable", &Player::groupSetSwitch},
      {"SetEventCollectionMode", &Player::collectionMode},
      {"EnableKernelReplayMode", &Player::replayMode},
      {"DisableKernelReplayMode", &Player::replayMode},
      {"KernelReplaySubscribeUpdate", &Player::replayMode},
      {"DeviceGetNumMetrics", &Player::metricList},
      {"DeviceEnumMetrics", &Player::metricList},
      {"MetricGetIdFromName", &Player::metricFromName},
      {"MetricGetAttribute", &Player::metricAttribute},
      {"MetricGetNumEvents", &Player::metricEvents},
      {"MetricEnumEvents", &Player::metricEvents},
      {"MetricCreateEventGroupSets", &Player::metricSets},
      {"MetricGetValue", &Player::metricValue},
  };
  return all;
}

Player::Player(const Personality& client, Truth* truth, void* nvtxTable)
    : client_(client), truth_(*truth), nvtxTable_(nvtxTable) {
  std::istringstream list(client.layout + "," + client.generation);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (entry.empty()) continue;
    layout_[entry.substr(0, entry.find('='))] = static_cast<uint32_t>(std::stoul(entry.substr(entry.find('=') + 1)));
  }
}

void Player::wrong(const std::string& what) {
  std::lock_guard lock(mutex_);
  errors_ += what + "\n";
}

void Player::runStep(const Step& step) {
  const std::string where = client_.file + ":" + std::to_string(step.line) + ": " + step.function;
  auto call = calls().find(step.function);
  if (call == calls().end()) return wrong(where + " is no function that tables can call");
  try {
    const CUptiResult result = (this->*call->second)(step);
    const char* text = "";
    cuptiGetResultString(result, &text);
    const std::string expected = step.result == "SUCCESS" ? "CUPTI_SUCCESS" : "CUPTI_ERROR_" + step.result;
    if (text == nullptr || expected != text) {
      const char* message = "";
      cuptiGetErrorMessage(result, &message);
      wrong(where + " gives " + (text != nullptr ? text : "no known result") + ": " + message);
    }
  } catch (const std::exception& e) {
    wrong(where + ": " + e.what());
  }
}

void Player::runSteps(const std::string& when) {
  for (const Step& step : client_.steps) {
    if (step.when == when) runStep(step);
  }
}

void Player::stage(const std::string& name) {
  if (name == "start") clockStart_ = __rdtsc();
  runSteps(name);
  if (name == "after") clockEnd_ = __rdtsc();
}

std::string Player::finish() {
  verify();
  cuptiFinalize();
  std::lock_guard lock(mutex_);
  if (!out_.empty()) errors_ += std::to_string(out_.size()) + " buffers never came back\n";
  return errors_;
}

namespace {

std::string playHere(const Personality& client) {
  if (!client.layout.empty()) setenv("SONDE_RECORD_LAYOUT", client.layout.c_str(), 1);
  std::string errors;
  for (int life = 0; life < client.lives; ++life) {
    // Callbacks may still be on their way when a life is over: nothing is freed.
    auto* truth = new Truth;
    auto* player = new Player(client, truth, nvtxExportTable());
    player->stage("start");
    if (!runProgram(truth, client.graphs, [&](const std::string& name) { player->stage(name); })) {
      errors += "the program itself fails\n";
    }
    player->stage("after");
    errors += player->finish();
  }
  return errors;
}

}  // namespace

// In a process of its own: layouts are read once, and the driver starts once.
std::string play(const Personality& client) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no process";
  if (child == 0) {
    const std::string errors = playHere(client);
    const ssize_t written = write(ends[1], errors.data(), errors.size());
    _exit(written == static_cast<ssize_t>(errors.size()) ? 0 : 3);
  }
  close(ends[1]);
  std::string errors;
  char text[4096];
  for (ssize_t n; (n = read(ends[0], text, sizeof text)) > 0;) errors.append(text, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) errors += "the client's process ends with " + std::to_string(status) + "\n";
  return errors;
}

}  // namespace clients
