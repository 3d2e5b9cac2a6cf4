// SPDX-License-Identifier: Apache-2.0
// Extended payloads of NVTX: schemas and enumerations that an application
// registers, and data that comes with its markers. The application's side of
// the extension is played by this program.
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

// As a client declares them: no header does.
extern "C" {
int InitializeInjectionNvtxExtension(void* moduleInfo);
int InitializeInjectionNvtx2(void* getExportTable);
CUptiResult CUPTIAPI cuptiNvtxExtensionInitialize(void* moduleInfo);
CUptiResult CUPTIAPI cuptiActivityGetNvtxExtPayloadAttr(uint32_t, uint64_t, CUpti_NvtxExtPayloadAttr*);
const void* CUPTIAPI cuptiActivityGetNvtxExtPayloadEntryTypeInfo(void);
}

using testing_support::Collector;

namespace {

// The application's types, as NVTX 3.2 has them.
struct PayloadData {
  uint64_t schemaId;
  size_t size;
  const void* payload;
};
struct SchemaEntry {
  uint64_t flags, type;
  const char *name, *description;
  uint64_t arrayOrUnionDetail, offset;
  const void *semantics, *reserved;
};
struct Schema {
  uint64_t fieldMask;
  const char* name;
  uint64_t type, flags;
  const SchemaEntry* entries;
  size_t numEntries, payloadStaticSize, packAlign;
  uint64_t schemaId;
  void* extension;
};
struct EnumEntry {
  const char* name;
  uint64_t value;
  int8_t isFlag;
};
struct Enumeration {
  uint64_t fieldMask;
  const char* name;
  const EnumEntry* entries;
  size_t numEntries, sizeOfEnum;
  uint64_t schemaId;
  void* extension;
};
static_assert(sizeof(SchemaEntry) == 64 && sizeof(Schema) == 80 && sizeof(EnumEntry) == 24 &&
              sizeof(Enumeration) == 56);

intptr_t slots[63];
struct Segment {
  size_t id = 0, count = 63;
  intptr_t* functions = slots;
} segment;
struct Module {
  uint16_t version = 3, size = 40, id = 2, compat = 0x0104;
  size_t segments = 1;
  Segment* segment = &::segment;
  void* getExportFunction = nullptr;
  const void* info = nullptr;
};
static_assert(sizeof(Module) == 40);

template <typename R, typename... A>
R app(int number, A... arguments) {
  return reinterpret_cast<R (*)(A...)>(slots[number])(arguments...);
}

// Of the core interface only domains and marks with attributes.
using CoreSlot = void (*)();
CoreSlot core[16], domains[16];
CoreSlot* corePointers[16];
CoreSlot* domainPointers[16];
int moduleTable(int module, CoreSlot*** table, unsigned* count) {
  if (module != 1 && module != 5) return 0;
  *table = module == 1 ? corePointers : domainPointers;
  for (int i = 0; i < 16; ++i) (*table)[i] = module == 1 ? &core[i] : &domains[i];
  *count = 16;
  return 1;
}
struct {
  size_t size = 16;
  int (*get)(int, CoreSlot***, unsigned*) = moduleTable;
} coreTable;
const void* exportTable(uint32_t id) { return id == 1 ? &coreTable : nullptr; }

struct Attributes {
  uint16_t version = 3, size = 48;
  uint32_t category = 0;
  int32_t colorType = 0;
  uint32_t color = 0;
  uint32_t payloadType = 0xDFBD0009;
  int32_t count = 1;
  const PayloadData* payload = nullptr;
  int32_t messageType = 1;
  const char* message = "event";
};
static_assert(sizeof(Attributes) == 48);

struct Point {
  int a;
  double b;
};

class NvtxPayload : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Module module;
    ASSERT_EQ(1, InitializeInjectionNvtxExtension(&module));
    ASSERT_EQ(1, InitializeInjectionNvtx2(reinterpret_cast<void*>(exportTable)));
  }
  void SetUp() override {
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER_DATA));
    domain_ = reinterpret_cast<const void* (*)(const char*)>(domains[12])("payloads");
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }

  uint64_t registerPoint(const void* domain, uint64_t staticId = 0) {
    std::string name = "Point", a = "a", b = "b";  // gone when the call has returned
    const SchemaEntry entries[] = {{0, 5, a.c_str(), "the first", 0, 0, nullptr, nullptr},
                                   {0, 20, b.c_str(), nullptr, 0, 8, nullptr, nullptr}};
    Schema schema{};
    schema.fieldMask = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 6 | (staticId != 0 ? 1u << 8 : 0);
    schema.name = name.c_str();
    schema.type = 1;
    schema.entries = entries;
    schema.numEntries = 2;
    schema.payloadStaticSize = sizeof(Point);
    schema.schemaId = staticId;
    return app<uint64_t>(0, domain, &schema);
  }
  void markEx(const Attributes& a, const void* domain) {
    reinterpret_cast<void (*)(const void*, const Attributes*)>(domains[1])(domain, &a);
  }
  // The record's payload, which is then freed as a client does it.
  struct Payload {
    uint64_t schemaId;
    size_t size;
    std::string bytes;
  };
  Payload take(const CUpti_ActivityMarkerData2& record) {
    EXPECT_EQ(CUPTI_METRIC_VALUE_KIND_NVTX_EXTENDED_PAYLOAD, record.payloadKind);
    auto* data = reinterpret_cast<PayloadData*>(record.payload.metricValueNvtxExtendedPayload);
    if (data == nullptr) return {};
    Payload payload{data->schemaId, data->size, {}};
    if (data->payload != nullptr) payload.bytes.assign(static_cast<const char*>(data->payload), data->size);
    std::free(const_cast<void*>(data->payload));
    std::free(data);
    return payload;
  }
  std::vector<CUpti_ActivityMarkerData2> data() {
    collector_.flush();
    std::vector<CUpti_ActivityMarkerData2> out;
    for (const auto& r : collector_.records(CUPTI_ACTIVITY_KIND_MARKER_DATA)) {
      out.push_back(r.as<CUpti_ActivityMarkerData2>());
    }
    return out;
  }
  std::vector<CUpti_ActivityMarker2> markers() {
    std::vector<CUpti_ActivityMarker2> out;
    for (const auto& r : collector_.records(CUPTI_ACTIVITY_KIND_MARKER)) out.push_back(r.as<CUpti_ActivityMarker2>());
    return out;
  }
  Collector& collector_ = Collector::instance();
  const void* domain_ = nullptr;
};

TEST_F(NvtxPayload, AttachFillsTheSlotsOfThePayloadModule) {
  for (int number : {0, 1, 2, 3, 4, 5, 6, 7, 12}) EXPECT_NE(0, slots[number]) << number;
  EXPECT_EQ(0, slots[8]);
  EXPECT_EQ(1, app<uint8_t>(7, domain_));
  Module other;
  other.id = 3;
  EXPECT_EQ(0, InitializeInjectionNvtxExtension(&other));
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiNvtxExtensionInitialize(&other));
  other.id = 2;
  other.compat = 0x0201;
  EXPECT_EQ(CUPTI_ERROR_NOT_SUPPORTED, cuptiNvtxExtensionInitialize(&other));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiNvtxExtensionInitialize(nullptr));
  EXPECT_EQ(0, InitializeInjectionNvtxExtension(nullptr));
  // A program with an older header has fewer slots.
  intptr_t few[4] = {};
  Segment small{0, 3, few};
  Module old;
  old.segment = &small;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiNvtxExtensionInitialize(&old));
  EXPECT_NE(0, few[2]);
  EXPECT_EQ(0, few[3]);
}

TEST_F(NvtxPayload, AMarkersPayloadIsACopyThatTheClientOwns) {
  const uint64_t id = registerPoint(domain_);
  EXPECT_GE(id, uint64_t{1} << 32);
  Point point{7, 1.5};
  const PayloadData payload{id, sizeof point, &point};
  Attributes a;
  a.category = 3;
  a.colorType = 1;
  a.color = 0xff112233;
  a.payload = &payload;
  markEx(a, domain_);
  point = {0, 0};
  const auto records = data();
  ASSERT_EQ(1u, records.size());
  ASSERT_EQ(1u, markers().size());
  EXPECT_EQ(markers()[0].id, records[0].id);
  EXPECT_STREQ("event", markers()[0].name);
  EXPECT_EQ(3u, records[0].category);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB, records[0].flags);
  EXPECT_EQ(0xff112233u, records[0].color);
  const Payload got = take(records[0]);
  EXPECT_EQ(id, got.schemaId);
  ASSERT_EQ(sizeof(Point), got.bytes.size());
  Point copy;
  std::memcpy(&copy, got.bytes.data(), sizeof copy);
  EXPECT_EQ(7, copy.a);
  EXPECT_EQ(1.5, copy.b);
  // The domain's number leads to the schema.
  CUpti_NvtxExtPayloadAttr attr{sizeof attr, 9, nullptr};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNvtxExtPayloadAttr(records[0].cuptiDomainId, id, &attr));
  EXPECT_EQ(static_cast<uint32_t>(CUPTI_NVTX_EXT_PAYLOAD_TYPE_SCHEMA), attr.type);
  const auto& schema = *static_cast<const Schema*>(attr.attributes);
  EXPECT_STREQ("Point", schema.name);
  EXPECT_EQ(1u, schema.type);
  EXPECT_EQ(sizeof(Point), schema.payloadStaticSize);
  EXPECT_EQ(id, schema.schemaId);
  ASSERT_EQ(2u, schema.numEntries);
  EXPECT_STREQ("a", schema.entries[0].name);
  EXPECT_STREQ("the first", schema.entries[0].description);
  EXPECT_EQ(5u, schema.entries[0].type);
  EXPECT_STREQ("b", schema.entries[1].name);
  EXPECT_EQ(8u, schema.entries[1].offset);
}

// It could not know that they are its to free.
TEST_F(NvtxPayload, AClientOf65GetsNoExtendedPayloads) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks_v6050(Collector::requested, Collector::completed));
  const uint64_t id = registerPoint(domain_);
  Point point{7, 1.5};
  const PayloadData payload{id, sizeof point, &point};
  Attributes a;
  a.category = 3;
  a.payload = &payload;
  markEx(a, domain_);
  collector_.flush();
  const auto records = collector_.records(CUPTI_ACTIVITY_KIND_MARKER_DATA);
  ASSERT_EQ(1u, records.size());
  EXPECT_EQ(sizeof(CUpti_ActivityMarkerData), records[0].words.size() * 8);
  const auto& data = records[0].as<CUpti_ActivityMarkerData>();
  EXPECT_EQ(3u, data.category);
  EXPECT_NE(CUPTI_METRIC_VALUE_KIND_NVTX_EXTENDED_PAYLOAD, data.payloadKind);
  EXPECT_EQ(0u, data.payload.metricValueUint64);
}

TEST_F(NvtxPayload, SchemasBelongToTheirDomain) {
  const uint64_t kStatic = (1u << 24) + 5;
  EXPECT_EQ(kStatic, registerPoint(domain_, kStatic));
  EXPECT_EQ(kStatic, registerPoint(nullptr, kStatic));
  const EnumEntry values[] = {{"off", 0, 0}, {"on", 1, 1}};
  Enumeration e{1u << 1 | 1u << 2 | 1u << 3 | 1u << 4, "Switch", values, 2, 4, 0, nullptr};
  const uint64_t id = app<uint64_t>(1, static_cast<const void*>(nullptr), &e);
  CUpti_NvtxExtPayloadAttr attr{sizeof attr, 9, &attr};
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNvtxExtPayloadAttr(0, id, &attr));
  EXPECT_EQ(static_cast<uint32_t>(CUPTI_NVTX_EXT_PAYLOAD_TYPE_ENUM), attr.type);
  const auto& found = *static_cast<const Enumeration*>(attr.attributes);
  EXPECT_STREQ("Switch", found.name);
  ASSERT_EQ(2u, found.numEntries);
  EXPECT_EQ(4u, found.sizeOfEnum);
  EXPECT_STREQ("on", found.entries[1].name);
  EXPECT_EQ(1u, found.entries[1].value);
  EXPECT_EQ(1, found.entries[1].isFlag);
  attr = {sizeof attr, 9, &attr};
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNvtxExtPayloadAttr(12345, id, &attr));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNvtxExtPayloadAttr(0, 99, &attr));
  EXPECT_EQ(9u, attr.type);
  EXPECT_EQ(&attr, attr.attributes);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNvtxExtPayloadAttr(0, id, nullptr));
  EXPECT_EQ(0u, app<uint64_t>(0, domain_, static_cast<const Schema*>(nullptr)));
}

TEST_F(NvtxPayload, MarksAndRangesOfTheExtension) {
  const uint64_t id = registerPoint(domain_);
  const Point points[] = {{1, 0.5}, {2, 0.25}};
  const PayloadData payloads[] = {{id, sizeof(Point), &points[0]}, {id, sizeof(Point), &points[1]}};
  const size_t one = 1, two = 2;
  app<void>(2, domain_, payloads, one);
  EXPECT_EQ(0, app<int>(3, domain_, payloads, two));
  EXPECT_EQ(0, app<int>(4, domain_, payloads + 1, one));
  const auto range = app<uint64_t>(5, domain_, payloads, one);
  app<void>(6, domain_, range, static_cast<const PayloadData*>(nullptr), size_t{0});
  const auto records = data();
  const auto marks = markers();
  ASSERT_EQ(5u, marks.size());
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, marks[0].flags);
  EXPECT_STREQ("payloads", marks[0].domain);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_START, marks[1].flags);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_END, marks[2].flags);
  EXPECT_EQ(marks[1].id, marks[2].id);
  EXPECT_EQ(range, marks[3].id);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MARKER_END, marks[4].flags);
  // The push has two payloads: two records with its id.
  const uint32_t ids[] = {marks[0].id, marks[1].id, marks[1].id, marks[1].id, marks[3].id};
  const int firsts[] = {1, 1, 2, 2, 1};
  ASSERT_EQ(5u, records.size());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(ids[i], records[i].id) << i;
    const Payload got = take(records[i]);
    ASSERT_EQ(sizeof(Point), got.bytes.size());
    EXPECT_EQ(0, std::memcmp(&points[firsts[i] - 1], got.bytes.data(), sizeof(int)));
  }
}

TEST_F(NvtxPayload, TheSizeMayBeLeftToTheLibrary) {
  const uint64_t id = registerPoint(domain_);
  const Point point{9, 3};
  const int number = 77;
  const PayloadData payloads[] = {{id, SIZE_MAX, &point},
                                  {5, SIZE_MAX, &number},
                                  {75, SIZE_MAX, "a text"},
                                  {4711, SIZE_MAX, &point},  // nobody knows
                                  {id, 16, nullptr}};
  app<void>(2, domain_, payloads, size_t{5});
  const auto records = data();
  ASSERT_EQ(5u, records.size());
  const size_t sizes[] = {sizeof(Point), sizeof(int), 7, 0, 0};
  for (size_t i = 0; i < 5; ++i) {
    const Payload got = take(records[i]);
    EXPECT_EQ(sizes[i], got.size) << i;
    EXPECT_EQ(sizes[i], got.bytes.size()) << i;
    if (i == 1) {
      EXPECT_EQ(0, std::memcmp(&number, got.bytes.data(), 4));
    } else if (i == 2) {
      EXPECT_STREQ("a text", got.bytes.c_str());
    }
  }
}

// Leak checkers see whether what nobody gets is freed.
TEST_F(NvtxPayload, PayloadsThatNobodyGetsAreFreed) {
  const uint64_t id = registerPoint(domain_);
  const Point point{1, 2};
  const PayloadData payload{id, sizeof point, &point};
  collector_.onRequest = [](uint8_t**, size_t*, size_t*) {};
  for (int i = 0; i < 5; ++i) app<void>(2, domain_, &payload, size_t{1});
  collector_.flush();
  size_t dropped = 0;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  EXPECT_EQ(10u, dropped);  // marker and data
  ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  // No buffer callbacks at all.
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER));
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MARKER_DATA));
  app<void>(2, domain_, &payload, size_t{1});
}

TEST_F(NvtxPayload, TypesHaveTheirSizesAndAlignments) {
  const auto* types = static_cast<const uint16_t(*)[2]>(cuptiActivityGetNvtxExtPayloadEntryTypeInfo());
  ASSERT_NE(nullptr, types);
  EXPECT_EQ(28, types[0][0]);
  EXPECT_EQ(4, types[0][1]);
  const int sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 4, 1, 2, 4};
  for (int i = 1; i < 28; ++i) {
    EXPECT_EQ(sizes[i - 1], types[i][0]) << i;
    EXPECT_EQ(sizes[i - 1], types[i][1]) << i;
  }
}

TEST_F(NvtxPayload, ManyThreadsRegisterAndMark) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const uint64_t id = registerPoint(domain_);
        const Point point{i, 1};
        const PayloadData payload{id, sizeof point, &point};
        app<void>(2, domain_, &payload, size_t{1});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto records = data();
  EXPECT_EQ(400u, records.size());
  for (const auto& record : records) {
    CUpti_NvtxExtPayloadAttr attr{sizeof attr, 0, nullptr};
    const Payload got = take(record);
    EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNvtxExtPayloadAttr(record.cuptiDomainId, got.schemaId, &attr));
  }
}

}  // namespace
