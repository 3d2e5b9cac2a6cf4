// SPDX-License-Identifier: Apache-2.0
// NVTX: the tables of an application are filled, and its calls become records
// and callbacks. The application's side is played by this program.
#include <cstring>
#include <string>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

extern "C" int InitializeInjectionNvtx2(void* getExportTable);

using testing_support::Collector;

namespace {

using Slot = void (*)();
Slot core[16], cuda[9], runtime[7], domains[16], sync[7];
uint32_t toldVersion = 0;

Slot* pointers[5][16];

int getModuleFunctionTable(int module, Slot*** table, unsigned* count) {
  struct Known {
    int module;
    Slot* slots;
    unsigned count;
  };
  static const Known known[] = {{1, core, 16}, {2, cuda, 9}, {4, runtime, 7}, {5, domains, 16}, {6, sync, 7}};
  for (int i = 0; i < 5; ++i) {
    if (known[i].module != module) continue;
    for (unsigned j = 0; j < known[i].count; ++j) pointers[i][j] = &known[i].slots[j];
    *table = pointers[i];
    *count = known[i].count;
    return 1;
  }
  return 0;
}

struct CallbackTable {
  size_t size;
  int (*get)(int, Slot***, unsigned*);
} callbackTable = {sizeof(CallbackTable), getModuleFunctionTable};
struct VersionTable {
  size_t size;
  uint32_t version, reserved;
  void (*set)(uint32_t);
} versionTable = {sizeof(VersionTable), 3, 0, [](uint32_t version) { toldVersion = version; }};

const void* getExportTable(uint32_t id) {
  if (id == 1) return &callbackTable;
  return id == 3 ? &versionTable : nullptr;
}

// Attributes of an event, as NVTX 3 has them.
struct Attributes {
  uint16_t version = 3, size = 48;
  uint32_t category = 0;
  int32_t colorType = 0;
  uint32_t color = 0;
  int32_t payloadType = 0, reserved = 0;
  union {
    uint64_t u;
    double d;
    int32_t i;
  } payload{};
  int32_t messageType = 0;
  const void* message = nullptr;
};
static_assert(sizeof(Attributes) == 48);

template <typename R, typename... A>
R app(Slot slot, A... arguments) {
  return reinterpret_cast<R (*)(A...)>(slot)(arguments...);
}

class Nvtx : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(1, InitializeInjectionNvtx2(reinterpret_cast<void*>(getExportTable))); }
  void SetUp() override {
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }
  CUpti_ActivityMarker2 marker(size_t i) {
    const auto records = collector_.records(CUPTI_ACTIVITY_KIND_MARKER);
    EXPECT_LT(i, records.size());
    return records.at(i).as<CUpti_ActivityMarker2>();
  }
  Collector& collector_ = Collector::instance();
};

TEST_F(Nvtx, AttachFillsEveryTable) {
  EXPECT_EQ(3u, toldVersion);
  for (int i = 1; i < 16; ++i) EXPECT_NE(nullptr, core[i]) << i;
  for (int i = 1; i < 16; ++i) EXPECT_NE(nullptr, domains[i]) << i;
  for (int i = 1; i < 9; ++i) EXPECT_NE(nullptr, cuda[i]) << i;
  EXPECT_EQ(0, InitializeInjectionNvtx2(nullptr));
}

// The flags decide what a marker is, not its kind.
TEST_F(Nvtx, ACT_074_OneKindForInstantsAndTheEndsOfRanges) {
  app<void>(core[2], "instant");
  const uint64_t range = app<uint64_t>(core[5], "range");
  app<void>(core[7], range);
  collector_.flush();
  ASSERT_EQ(3u, collector_.records(CUPTI_ACTIVITY_KIND_MARKER).size());
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, marker(0).flags);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_START, marker(1).flags);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_END, marker(2).flags);
  EXPECT_EQ(marker(1).id, marker(2).id);
}

TEST_F(Nvtx, ACT_035_MarksAreInstantaneous) {
  uint64_t before, after;
  cuptiGetTimestamp(&before);
  app<void>(core[2], "here");
  cuptiGetTimestamp(&after);
  collector_.flush();
  const auto& m = marker(0);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, m.flags);
  EXPECT_STREQ("here", m.name);
  EXPECT_EQ(nullptr, m.domain);
  EXPECT_LE(before, m.timestamp);
  EXPECT_LE(m.timestamp, after);
  EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, m.objectKind);
  EXPECT_EQ(static_cast<uint32_t>(pthread_self()), m.objectId.pt.threadId);
}

TEST_F(Nvtx, ACT_036_ACT_037_RangesStartAndEndUnderOneId) {
  EXPECT_EQ(0, app<int>(core[9], "outer"));
  EXPECT_EQ(1, app<int>(core[9], "inner"));
  EXPECT_EQ(1, app<int>(core[11]));
  EXPECT_EQ(0, app<int>(core[11]));
  EXPECT_EQ(-1, app<int>(core[11]));  // nothing is open
  collector_.flush();
  EXPECT_EQ(4u, collector_.records().size());
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_START, marker(0).flags);
  EXPECT_STREQ("inner", marker(1).name);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_END, marker(2).flags);
  const uint32_t outer = marker(0).id, inner = marker(1).id;
  EXPECT_NE(outer, inner);
  EXPECT_EQ(inner, marker(2).id);
  EXPECT_EQ(outer, marker(3).id);
}

TEST_F(Nvtx, StartEndRangesMayEndOnAnotherThread) {
  const auto id = app<uint64_t>(core[5], "long");
  std::thread([id] { app<void>(core[7], id); }).join();
  app<void>(core[7], id);  // ended already
  collector_.flush();
  ASSERT_EQ(2u, collector_.records().size());
  EXPECT_EQ(id, marker(0).id);
  EXPECT_EQ(id, marker(1).id);
}

TEST_F(Nvtx, ACT_067_MarkerDataIsOptional) {
  Attributes a;
  a.category = 7;
  a.colorType = 1;
  a.color = 0xff00ff00;
  a.payloadType = 3;
  a.payload.d = 2.5;
  a.messageType = 1;
  a.message = "coloured";
  app<void>(core[1], &a);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER_DATA));
  app<void>(core[1], &a);
  a.colorType = 0;
  a.payloadType = 5;
  a.payload.i = -4;
  app<void>(core[1], &a);
  collector_.flush();
  const auto data = collector_.records(CUPTI_ACTIVITY_KIND_MARKER_DATA);
  ASSERT_EQ(2u, data.size());
  const auto& first = data[0].as<CUpti_ActivityMarkerData2>();
  EXPECT_EQ(marker(1).id, first.id);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB, first.flags);  // ACT-039
  EXPECT_EQ(0xff00ff00u, first.color);
  EXPECT_EQ(7u, first.category);
  EXPECT_EQ(CUPTI_METRIC_VALUE_KIND_DOUBLE, first.payloadKind);
  EXPECT_EQ(2.5, first.payload.metricValueDouble);
  const auto& second = data[1].as<CUpti_ActivityMarkerData2>();
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE, second.flags);  // ACT-038
  EXPECT_EQ(CUPTI_METRIC_VALUE_KIND_INT64, second.payloadKind);
  EXPECT_EQ(-4, second.payload.metricValueInt64);
}

TEST_F(Nvtx, DomainsAndRegisteredStrings) {
  const auto* domain = app<const void*>(domains[12], "library");
  EXPECT_EQ(domain, app<const void*>(domains[12], "library"));
  const auto* text = app<const void*>(domains[10], domain, "registered");
  Attributes a;
  a.messageType = 3;
  a.message = text;
  EXPECT_EQ(0, app<int>(domains[4], domain, &a));
  EXPECT_EQ(0, app<int>(core[9], "default domain"));  // a stack of its own
  EXPECT_EQ(0, app<int>(domains[5], domain));
  app<void>(domains[14], domain);
  collector_.flush();
  EXPECT_STREQ("registered", marker(0).name);
  EXPECT_STREQ("library", marker(0).domain);
  EXPECT_EQ(nullptr, marker(1).domain);
  EXPECT_STREQ("library", marker(2).domain);
  EXPECT_EQ(marker(0).id, marker(2).id);
  app<int>(core[11]);
}

TEST_F(Nvtx, WideTextBecomesUtf8) {
  app<void>(core[3], L"f\u00fcr \u4e16 \U0001F600");
  collector_.flush();
  EXPECT_STREQ("f\xc3\xbcr \xe4\xb8\x96 \xf0\x9f\x98\x80", marker(0).name);
}

TEST_F(Nvtx, ARangeWhoseStartWasNotRecordedHasNoEnd) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MARKER));
  app<int>(core[9], "before");
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
  app<int>(core[11]);
  EXPECT_EQ(0u, collector_.flush().size());
}

TEST_F(Nvtx, NamesOfThreadsDevicesContextsAndStreams) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NAME));
  SondeHandle context = fake::createContext();
  SondeHandle stream = fake::createStream(context);
  app<void>(core[14], uint32_t{1234}, "worker");
  app<void>(cuda[1], 0, "gpu");
  app<void>(cuda[3], context, "main context");
  app<void>(runtime[3], stream, "copies");
  const auto records = collector_.flush();
  ASSERT_EQ(4u, records.size());
  const auto& thread = records[0].as<CUpti_ActivityName>();
  EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, thread.objectKind);
  EXPECT_EQ(1234u, thread.objectId.pt.threadId);
  EXPECT_STREQ("worker", thread.name);
  EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_DEVICE, records[1].as<CUpti_ActivityName>().objectKind);
  uint32_t id;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(static_cast<CUcontext>(context), &id));
  EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_CONTEXT, records[2].as<CUpti_ActivityName>().objectKind);
  EXPECT_EQ(id, records[2].as<CUpti_ActivityName>().objectId.dcs.contextId);
  const auto& named = records[3].as<CUpti_ActivityName>();
  EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_STREAM, named.objectKind);
  EXPECT_EQ(14u, named.objectId.dcs.streamId);
  EXPECT_STREQ("copies", named.name);
  fake::destroyStream(stream);
  fake::destroyContext(context);
}

struct Called {
  CUpti_CallbackId cbid;
  std::string function;
  const void* first;
  bool returned;
};
std::vector<Called> called;

TEST_F(Nvtx, CallbacksSeeFunctionAndParameters) {
  called.clear();
  CUpti_SubscriberHandle subscriber;
  ASSERT_EQ(CUPTI_SUCCESS,
            cuptiSubscribe(
                &subscriber,
                [](void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
                  EXPECT_EQ(CUPTI_CB_DOMAIN_NVTX, domain);
                  const auto* d = static_cast<const CUpti_NvtxData*>(data);
                  called.push_back({cbid, d->functionName, *static_cast<const void* const*>(d->functionParams),
                                    d->functionReturnValue != nullptr});
                },
                nullptr));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_NVTX));
  const char* text = "pushed";
  app<int>(core[9], text);
  app<int>(core[11]);
  const auto* domain = app<const void*>(domains[12], "d");
  ASSERT_EQ(3u, called.size());
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_CBID_NVTX_nvtxRangePushA), called[0].cbid);
  EXPECT_EQ("nvtxRangePushA", called[0].function);
  EXPECT_EQ(text, called[0].first);
  EXPECT_TRUE(called[0].returned);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_CBID_NVTX_nvtxRangePop), called[1].cbid);
  EXPECT_EQ(static_cast<CUpti_CallbackId>(CUPTI_CBID_NVTX_nvtxDomainCreateA), called[2].cbid);
  EXPECT_NE(nullptr, domain);
}

}  // namespace
