// SPDX-License-Identifier: Apache-2.0
// The client that a table describes, at work: its state between calls.
#ifndef SONDE_TESTS_CLIENTS_PLAYER_H_
#define SONDE_TESTS_CLIENTS_PLAYER_H_

#include <cupti.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "personality.h"
#include "truth.h"

namespace clients {

class Player {
 public:
  // The program's account, and its NVTX.
  Player(const Personality& client, Truth* truth, void* nvtxTable);
  // "start", what the program says (runProgram), "after".
  void stage(const std::string& name);
  // After the last stage: what was wrong.
  std::string finish();

 private:
  using Call = CUptiResult (Player::*)(const Step&);
  static const std::map<std::string, Call>& calls();

  // What a kind's records must be: those of truth_ from `from` on, up to the last flush.
  struct Kind {
    bool on = false, ever = false;
    size_t from = 0, until = 0;
    std::map<std::string, uint64_t> sumsFrom;
  };
  struct Watch {
    std::map<std::string, uint32_t> from, until;  // of truth_.calls
    std::string underWay;                         // when it was switched on
    bool wholeDomain = false;
    bool on = false;
  };

  void wrong(const std::string& what);
  void runSteps(const std::string& when);
  void runStep(const Step& step);

  // calls_activity.cpp
  CUptiResult registerCallbacks(const Step&);
  CUptiResult enable(const Step&);
  CUptiResult disable(const Step&);
  CUptiResult enableContext(const Step&);
  CUptiResult disableContext(const Step&);
  CUptiResult flushAll(const Step&);
  CUptiResult flushPeriod(const Step&);
  CUptiResult nextRecord(const Step&);
  CUptiResult dropped(const Step&);
  CUptiResult configureUnifiedMemory(const Step&);
  CUptiResult push(const Step&);
  CUptiResult pop(const Step&);
  CUptiResult setAttribute(const Step&);
  CUptiResult getAttribute(const Step&);
  CUptiResult timestampCallback(const Step&);
  CUptiResult option(const Step&);
  CUptiResult singleApi(const Step&);
  CUptiResult pcSampling(const Step&);
  CUptiResult enqueueBuffer(const Step&);
  CUptiResult dequeueBuffer(const Step&);
  CUptiResult queryBuffer(const Step&);

  // calls_callbacks.cpp
  CUptiResult subscribe(const Step&);
  CUptiResult unsubscribe(const Step&);
  CUptiResult enableCallback(const Step&);
  CUptiResult enableDomain(const Step&);
  CUptiResult enableAllDomains(const Step&);
  CUptiResult callbackName(const Step&);
  CUptiResult timestamp(const Step&);
  CUptiResult ids(const Step&);
  CUptiResult graphIds(const Step&);
  CUptiResult version(const Step&);
  CUptiResult resultString(const Step&);
  CUptiResult lastError(const Step&);
  CUptiResult threadIdType(const Step&);
  CUptiResult nvtx(const Step&);
  CUptiResult chipName(const Step&);
  CUptiResult cubinCrc(const Step&);
  CUptiResult sourceCorrelation(const Step&);
  CUptiResult computeCrc(const Step&);
  CUptiResult finalize(const Step&);
  CUptiResult synchronize(const Step&);
  CUptiResult openAcc(const Step&);

  // calls_events.cpp
  CUptiResult eventDomains(const Step&);
  CUptiResult eventDomainAttribute(const Step&);
  CUptiResult domainEvents(const Step&);
  CUptiResult eventAttribute(const Step&);
  CUptiResult eventFromName(const Step&);
  CUptiResult groupCreate(const Step&);
  CUptiResult groupChange(const Step&);
  CUptiResult groupSetAttribute(const Step&);
  CUptiResult groupGetAttribute(const Step&);
  CUptiResult groupSwitch(const Step&);
  CUptiResult groupRead(const Step&);
  CUptiResult groupReadAll(const Step&);
  CUptiResult groupSets(const Step&);
  CUptiResult groupSetSwitch(const Step&);
  CUptiResult collectionMode(const Step&);
  CUptiResult replayMode(const Step&);
  CUptiResult metricList(const Step&);
  CUptiResult metricFromName(const Step&);
  CUptiResult metricAttribute(const Step&);
  CUptiResult metricEvents(const Step&);
  CUptiResult metricSets(const Step&);
  CUptiResult metricValue(const Step&);
  std::map<std::string, uint64_t> launched() const;
  bool readGroup(CUpti_EventGroup group, std::map<CUpti_EventID, uint64_t>* values);

  static void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* maxRecords);
  static void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid);
  static void CUPTIAPI called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data);
  void request(uint8_t** buffer, size_t* size);
  void complete(uint8_t* buffer, size_t size, size_t valid);
  void walk(uint8_t* buffer, size_t valid);
  void callback(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data);

  // check.cpp
  void verify();
  void verifyKind(const std::string& kind, const Kind& state);
  void verifyExact(const std::string& kind, uint32_t version, const std::vector<const void*>& records,
                   const std::vector<Expected>& expected);
  void verifyContains(const std::string& kind, uint32_t version, const std::vector<const void*>& records,
                      const std::vector<Expected>& expected);
  bool matches(const std::string& kind, uint32_t version, const void* record, const Expected& expected,
               std::string* why);
  void verifySums(const std::string& kind, const Kind& state, const std::vector<const void*>& records);
  void verifyTimes();
  void verifyExternal();
  void verifyCallbacks();
  uint32_t writtenVersion(const std::string& kind) const;
  std::vector<const void*> recordsOf(const std::string& kind) const;

  const Personality& client_;
  Truth& truth_;
  void* const nvtxTable_;
  std::map<std::string, uint32_t> layout_;

  std::mutex mutex_;
  std::string errors_;
  std::vector<std::vector<uint64_t>> records_;
  std::map<uint8_t*, size_t> out_;  // buffers that the library has
  bool finalized_ = false;

  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::map<std::string, Kind> kinds_;
  std::map<std::string, Watch> watches_;                         // by "RUNTIME_API.cudaMalloc" or "RUNTIME_API"
  std::map<std::string, std::pair<uint32_t, uint32_t>> called_;  // entries and exits
  std::set<std::string> silenced_;                               // functions without records
  std::set<uint64_t> pushed_;
  bool ownClock_ = false, systemThreads_ = false;
  uint64_t clockStart_ = 0, clockEnd_ = 0;
  uint32_t minorBuffers_ = 0;

  // Within a callback.
  const CUpti_CallbackData* call_ = nullptr;
  const CUpti_ResourceData* resource_ = nullptr;

  // Events.
  std::vector<CUpti_EventDomainID> domains_;
  std::vector<CUpti_EventID> events_;
  CUpti_EventID event_ = 0;
  std::string eventName_;
  CUpti_EventGroup group_ = nullptr;
  CUpti_EventGroupSets* sets_ = nullptr;
  uint32_t set_ = 0;
  CUpti_MetricID metric_ = 0;
  size_t kernelsAtReset_ = 0;
  bool ofKernel_ = true;  // the mode, as it is at first: values are the last kernel's
  uint32_t blocksBefore_ = 0, warpsBefore_ = 0, threadsBefore_ = 0;  // when the group was enabled
  std::map<CUpti_EventID, uint64_t> eventSums_;
};

// The name behind a prefix of an enumerator: number of CUPTI_CB_DOMAIN_<name> …; throws std::out_of_range.
CUpti_CallbackDomain domainNumber(const std::string& name);
uint32_t callbackNumber(CUpti_CallbackDomain domain, const std::string& name);
std::string callbackText(CUpti_CallbackDomain domain, uint32_t cbid, const char* function);

}  // namespace clients

#endif  // SONDE_TESTS_CLIENTS_PLAYER_H_
