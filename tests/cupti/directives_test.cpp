// SPDX-License-Identifier: Apache-2.0
// Records of OpenACC and OpenMP: the runtime systems are played by this program.
#include <Openacc/cupti_openacc.h>
#include <Openmp/cupti_openmp.h>
#include <pthread.h>
#include <unistd.h>

#include <map>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;
using testing_support::Record;

namespace {

// OpenACC's structures, as its specification has them.
struct ProfInfo {
  int event, validBytes, version, deviceType, deviceNumber, threadId;
  ptrdiff_t async, asyncQueue;
  const char *file, *function;
  int line, endLine, functionLine, functionEndLine;
};
struct EventInfo {
  int event, validBytes, parent, implicit;
  void* tool;
  union {
    struct {
      const char* variable;
      size_t bytes;
      const void *host, *device;
    } data;
    struct {
      const char* kernel;
      size_t gangs, workers, vector;
    } launch;
  };
};
struct ApiInfo {
  int api, validBytes, deviceType, vendor;
  const void *device, *context, *async;
};
using AccCallback = void (*)(ProfInfo*, EventInfo*, ApiInfo*);

std::map<int, AccCallback> accCallbacks;
void accRegister(int event, AccCallback callback, int mode) {
  EXPECT_EQ(0, mode);
  accCallbacks[event] = callback;
}
void accUnregister(int, AccCallback, int) {}
void* accLookup(const char*) { return nullptr; }

std::map<int, void (*)()> ompCallbacks;
int ompSet(int which, void (*callback)()) {
  ompCallbacks[which] = callback;
  return 5;
}
template <typename... A>
void omp(int which, A... arguments) {
  ASSERT_EQ(1u, ompCallbacks.count(which)) << which;
  reinterpret_cast<void (*)(A...)>(ompCallbacks[which])(arguments...);
}

class Directives : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    EXPECT_EQ(
        CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE,
        cuptiOpenACCInitialize(reinterpret_cast<void*>(accRegister), nullptr, reinterpret_cast<void*>(accLookup)));
    EXPECT_TRUE(accCallbacks.empty());
    ASSERT_EQ(CUPTI_SUCCESS,
              cuptiOpenACCInitialize(reinterpret_cast<void*>(accRegister), reinterpret_cast<void*>(accUnregister),
                                     reinterpret_cast<void*>(accLookup)));
    EXPECT_EQ(25u, accCallbacks.size());
    EXPECT_EQ(0, cuptiOpenMpInitialize_v2(nullptr, 0, nullptr));
    EXPECT_EQ(0, cuptiOpenMpInitialize_v2([](const char*) -> ompt_interface_fn_t { return nullptr; }, 0, nullptr));
    ASSERT_EQ(1, cuptiOpenMpInitialize(
                     [](const char* name) {
                       return std::string(name) == "ompt_set_callback" ? reinterpret_cast<ompt_interface_fn_t>(ompSet)
                                                                       : nullptr;
                     },
                     "a runtime", 50));
  }
  void SetUp() override {
    collector_.start();
    context_ = fake::createContext();
    stream_ = fake::createStream(context_);
  }
  void TearDown() override {
    EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    fake::destroyStream(stream_);
    fake::destroyContext(context_);
  }
  void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
    for (CUpti_ActivityKind kind : kinds) ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind)) << kind;
  }
  void tell(int event, int implicit = 0) {
    prof_.event = event_.event = event;
    event_.implicit = implicit;
    accCallbacks[event](&prof_, &event_, &api_);
  }
  template <typename T>
  std::vector<T> of(CUpti_ActivityKind kind) {
    std::vector<T> out;
    for (const Record& r : collector_.records(kind)) {
      EXPECT_EQ(sizeof(T), r.words.size() * 8);
      out.push_back(r.as<T>());
    }
    return out;
  }
  ProfInfo prof_{0, sizeof(ProfInfo), 201711, 4, 1, 7, 3, 2, "file.c", "work", 10, 11, 8, 20};
  EventInfo event_{0, sizeof(EventInfo), 1, 0, nullptr, {{"x", 4096, &prof_, &event_}}};
  ApiInfo api_{1, sizeof(ApiInfo), 4, 1, nullptr, nullptr, nullptr};
  Collector& collector_ = Collector::instance();
  SondeHandle context_ = nullptr, stream_ = nullptr;
};

TEST_F(Directives, OpenAccOperationsOnData) {
  enable({CUPTI_ACTIVITY_KIND_OPENACC_DATA});
  api_.context = context_, api_.async = stream_;
  uint64_t before = 0, between = 0, after = 0;
  cuptiGetTimestamp(&before);
  tell(20);  // an upload begins
  cuptiGetTimestamp(&between);
  tell(21);
  cuptiGetTimestamp(&after);
  tell(8);             // an allocation
  tell(16), tell(17);  // of another kind
  collector_.flush();
  const auto records = of<CUpti_ActivityOpenAccData>(CUPTI_ACTIVITY_KIND_OPENACC_DATA);
  ASSERT_EQ(2u, records.size());
  EXPECT_EQ(2u, collector_.records().size());
  const auto& r = records[0];
  EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_ENQUEUE_UPLOAD, r.eventKind);
  EXPECT_EQ(CUPTI_OPENACC_CONSTRUCT_KIND_KERNELS, r.parentConstruct);
  EXPECT_EQ(201711u, r.version);
  EXPECT_EQ(0u, r.implicit);
  EXPECT_EQ(4u, r.deviceType);
  EXPECT_EQ(1u, r.deviceNumber);
  EXPECT_EQ(7u, r.threadId);
  EXPECT_EQ(3u, r.async);
  EXPECT_EQ(2u, r.asyncMap);
  EXPECT_EQ(10u, r.lineNo);
  EXPECT_EQ(11u, r.endLineNo);
  EXPECT_EQ(8u, r.funcLineNo);
  EXPECT_EQ(20u, r.funcEndLineNo);
  EXPECT_STREQ("file.c", r.srcFile);
  EXPECT_STREQ("work", r.funcName);
  EXPECT_LE(before, r.start);
  EXPECT_LE(r.start, between);
  EXPECT_LE(between, r.end);
  EXPECT_LE(r.end, after);
  uint32_t id = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(context_), &id));
  EXPECT_EQ(id, r.cuContextId);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(nullptr, static_cast<CUstream>(stream_), &id));
  EXPECT_EQ(id, r.cuStreamId);
  EXPECT_EQ(0u, r.cuDeviceId);
  EXPECT_EQ(static_cast<uint32_t>(getpid()), r.cuProcessId);
  EXPECT_EQ(static_cast<uint32_t>(pthread_self()), r.cuThreadId);
  EXPECT_EQ(4096u, r.bytes);
  EXPECT_EQ(reinterpret_cast<uint64_t>(&prof_), r.hostPtr);
  EXPECT_EQ(reinterpret_cast<uint64_t>(&event_), r.devicePtr);
  EXPECT_STREQ("x", r.varName);
  EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_ALLOC, records[1].eventKind);
  EXPECT_EQ(records[1].start, records[1].end);
  EXPECT_GT(records[1].externalId, r.externalId);
}

TEST_F(Directives, OpenAccLaunchesAndWhatIsCalledWithin) {
  enable({CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH, CUPTI_ACTIVITY_KIND_OPENACC_OTHER, CUPTI_ACTIVITY_KIND_DRIVER,
          CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  event_.launch = {"kernel", 32, 4, 128};
  tell(16);  // a compute construct
  tell(18);  // launches
  fake::call(SONDE_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  const uint32_t correlation = fake::lastCorrelation();
  tell(19);
  tell(24, 1);  // and waits
  tell(25, 1);
  tell(17);
  fake::call(SONDE_DOMAIN_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);  // by no construct
  collector_.flush();
  const auto launches = of<CUpti_ActivityOpenAccLaunch>(CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH);
  ASSERT_EQ(1u, launches.size());
  EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_ENQUEUE_LAUNCH, launches[0].eventKind);
  EXPECT_EQ(32u, launches[0].numGangs);
  EXPECT_EQ(4u, launches[0].numWorkers);
  EXPECT_EQ(128u, launches[0].vectorLength);
  EXPECT_STREQ("kernel", launches[0].kernelName);
  const auto others = of<CUpti_ActivityOpenAccOther>(CUPTI_ACTIVITY_KIND_OPENACC_OTHER);
  ASSERT_EQ(2u, others.size());
  EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_IMPLICIT_WAIT, others[0].eventKind);
  EXPECT_EQ(1u, others[0].implicit);
  EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_COMPUTE_CONSTRUCT, others[1].eventKind);
  EXPECT_LE(others[1].start, launches[0].start);
  EXPECT_LE(others[0].end, others[1].end);
  // The inner construct's id is the call's.
  const auto joins = of<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  ASSERT_EQ(1u, joins.size());
  EXPECT_EQ(CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, joins[0].externalKind);
  EXPECT_EQ(launches[0].externalId, joins[0].externalId);
  EXPECT_EQ(correlation, joins[0].correlationId);
}

TEST_F(Directives, OpenAccRuntimesOfOtherShapesDoNoHarm) {
  enable({CUPTI_ACTIVITY_KIND_OPENACC_DATA, CUPTI_ACTIVITY_KIND_OPENACC_OTHER});
  tell(13);  // an end without a beginning
  tell(14);  // a beginning without an end
  tell(10);
  tell(11);
  prof_.validBytes = 24;
  event_.validBytes = 8;
  tell(6);
  accCallbacks[1](nullptr, nullptr, nullptr);
  prof_.event = 6;
  accCallbacks[6](&prof_, nullptr, nullptr);
  prof_.event = 99;
  accCallbacks[6](&prof_, &event_, &api_);
  collector_.flush();
  const auto others = of<CUpti_ActivityOpenAccOther>(CUPTI_ACTIVITY_KIND_OPENACC_OTHER);
  ASSERT_EQ(1u, others.size());
  EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_ENTER_DATA, others[0].eventKind);
  const auto data = of<CUpti_ActivityOpenAccData>(CUPTI_ACTIVITY_KIND_OPENACC_DATA);
  ASSERT_EQ(2u, data.size());
  for (const auto& r : data) {
    EXPECT_EQ(CUPTI_OPENACC_EVENT_KIND_CREATE, r.eventKind);
    EXPECT_EQ(0u, r.version);
    EXPECT_EQ(nullptr, r.srcFile);
    EXPECT_EQ(0u, r.bytes);
    EXPECT_EQ(CUPTI_OPENACC_CONSTRUCT_KIND_UNKNOWN, r.parentConstruct);
  }
}

TEST_F(Directives, OpenMpRegionsTasksAndWaits) {
  enable({CUPTI_ACTIVITY_KIND_OPENMP});
  ompt_data_t thread{}, region{}, implicit{}, task{}, other{};
  const void* none = nullptr;
  omp(1, 1, &thread);
  omp(3, static_cast<ompt_data_t*>(nullptr), none, &region, 4u, 0, none);
  omp(7, 1, &region, &implicit, 4u, 2u, 2);
  omp(5, &implicit, none, &task, 4, 0, none);
  omp(5, &implicit, none, &other, 4, 0, none);  // never run
  omp(16, 5, 1, &region, &implicit, none);      // waits for the task
  omp(6, &implicit, 7, &task);                  // and runs it meanwhile
  omp(6, &task, 1, &implicit);
  omp(16, 5, 2, &region, &implicit, none);
  omp(16, 6, 1, &region, &implicit, none);  // a group: no record
  omp(16, 6, 2, &region, &implicit, none);
  omp(16, 2, 1, &region, &implicit, none);
  omp(16, 2, 2, &region, &implicit, none);
  omp(7, 2, static_cast<ompt_data_t*>(nullptr), &implicit, 4u, 2u, 2);
  omp(4, &region, static_cast<ompt_data_t*>(nullptr), 0, none);
  omp(2, &thread);
  collector_.flush();
  const auto records = of<CUpti_ActivityOpenMp>(CUPTI_ACTIVITY_KIND_OPENMP);
  const CUpti_OpenMpEventKind expected[] = {CUPTI_OPENMP_EVENT_KIND_TASK,         CUPTI_OPENMP_EVENT_KIND_WAIT_TASKWAIT,
                                            CUPTI_OPENMP_EVENT_KIND_WAIT_BARRIER, CUPTI_OPENMP_EVENT_KIND_TASK,
                                            CUPTI_OPENMP_EVENT_KIND_PARALLEL,     CUPTI_OPENMP_EVENT_KIND_THREAD};
  ASSERT_EQ(std::size(expected), records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(expected[i], records[i].eventKind) << i;
    EXPECT_EQ(50u, records[i].version);
    EXPECT_EQ(2u, records[i].threadId);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), records[i].cuProcessId);
    EXPECT_EQ(static_cast<uint32_t>(pthread_self()), records[i].cuThreadId);
    EXPECT_LE(records[i].start, records[i].end);
    if (i > 0) {
      EXPECT_LE(records[i - 1].end, records[i].end);
    }
  }
  EXPECT_LE(records[1].start, records[0].start);  // the task ran within the wait
  EXPECT_LE(records[0].end, records[1].end);
  EXPECT_LE(records[4].start, records[3].start);
  EXPECT_LE(records[5].start, records[4].start);
}

TEST_F(Directives, NobodyAsksNobodyIsTold) {
  ompt_data_t region{};
  const void* none = nullptr;
  tell(20);
  omp(3, static_cast<ompt_data_t*>(nullptr), none, &region, 4u, 0, none);
  enable({CUPTI_ACTIVITY_KIND_OPENACC_DATA, CUPTI_ACTIVITY_KIND_OPENMP});
  // Their beginnings were not seen.
  tell(21);
  omp(4, &region, static_cast<ompt_data_t*>(nullptr), 0, none);
  collector_.flush();
  EXPECT_TRUE(collector_.records().empty());
}

}  // namespace
