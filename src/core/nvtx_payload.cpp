// SPDX-License-Identifier: Apache-2.0
#include "core/nvtx_payload.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/nvtx.h"
#include "core/strings.h"

namespace sonde::core::nvtx {
namespace {

// Bits of fieldMask.
enum : uint64_t {
  kSchemaStaticSize = 1u << 6,
  kSchemaId = 1u << 8,
  kSchemaExtension = 1u << 9,
  kEnumId = 1u << 5,
  kEnumExtension = 1u << 6,
};
enum : uint64_t { kSchemaStatic = 1, kTypeCString = 75, kTypeCStringUtf8 = 76 };
constexpr uint64_t kStaticIds = uint64_t{1} << 24, kDynamicIds = uint64_t{1} << 32;

struct Known {
  CUpti_NvtxExtPayloadType type;
  const void* attributes;
};
struct Registry {
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint64_t>, Known> known;  // by domain and schema id
  std::vector<Known> replaced;                           // clients may still hold their addresses
};
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

uint32_t numberOf(const Domain* domain) { return domain != nullptr ? domain->id : 0; }

uint64_t idFor(bool given, uint64_t id) {
  static std::atomic<uint64_t> next{kDynamicIds};
  return given && id >= kStaticIds && id < kDynamicIds ? id : next.fetch_add(1);
}

void keep(const Domain* domain, uint64_t id, Known known) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto [place, isNew] = r.known.try_emplace({numberOf(domain), id}, known);
  if (isNew) return;
  r.replaced.push_back(std::exchange(place->second, known));
}

// `entries`, with their texts, in memory that stays.
template <typename Entry, typename Fix>
const Entry* copyEntries(const Entry* entries, size_t count, Fix&& fix) {
  if (count == 0) return nullptr;
  auto* copy = new Entry[count];
  for (size_t i = 0; i < count; ++i) {
    copy[i] = entries[i];
    fix(copy[i]);
  }
  return copy;
}

// Size of a payload that the application left to the tool; 0: unknown.
size_t sizeOf(const Domain* domain, const PayloadData& data) {
  if (data.schemaId == kTypeCString || data.schemaId == kTypeCStringUtf8) {
    return std::strlen(static_cast<const char*>(data.payload)) + 1;
  }
  if (data.schemaId > 0 && data.schemaId < entryTypes()[0].size) return entryTypes()[data.schemaId].size;
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.known.find({numberOf(domain), data.schemaId});
  if (found == r.known.end()) return 0;
  if (found->second.type == CUPTI_NVTX_EXT_PAYLOAD_TYPE_ENUM) {
    return static_cast<const EnumAttributes*>(found->second.attributes)->sizeOfEnum;
  }
  const auto& schema = *static_cast<const SchemaAttributes*>(found->second.attributes);
  const bool fixed = schema.type == kSchemaStatic && (schema.fieldMask & kSchemaStaticSize) != 0;
  return fixed ? schema.payloadStaticSize : 0;
}

}  // namespace

uint64_t registerSchema(const Domain* domain, const SchemaAttributes* attributes) {
  if (attributes == nullptr || (attributes->entries == nullptr && attributes->numEntries != 0)) return 0;
  auto* copy = new SchemaAttributes(*attributes);
  copy->name = intern(attributes->name);
  copy->entries = copyEntries(attributes->entries, attributes->numEntries, [](SchemaEntry& entry) {
    entry.name = intern(entry.name);
    entry.description = intern(entry.description);
    entry.semantics = entry.reserved = nullptr;  // of unknown size
  });
  copy->extension = nullptr;
  copy->schemaId = idFor((attributes->fieldMask & kSchemaId) != 0, attributes->schemaId);
  copy->fieldMask = (attributes->fieldMask | kSchemaId) & ~uint64_t{kSchemaExtension};
  keep(domain, copy->schemaId, {CUPTI_NVTX_EXT_PAYLOAD_TYPE_SCHEMA, copy});
  return copy->schemaId;
}

uint64_t registerEnum(const Domain* domain, const EnumAttributes* attributes) {
  if (attributes == nullptr || (attributes->entries == nullptr && attributes->numEntries != 0)) return 0;
  auto* copy = new EnumAttributes(*attributes);
  copy->name = intern(attributes->name);
  copy->entries = copyEntries(attributes->entries, attributes->numEntries,
                              [](EnumEntry& entry) { entry.name = intern(entry.name); });
  copy->extension = nullptr;
  copy->schemaId = idFor((attributes->fieldMask & kEnumId) != 0, attributes->schemaId);
  copy->fieldMask = (attributes->fieldMask | kEnumId) & ~uint64_t{kEnumExtension};
  keep(domain, copy->schemaId, {CUPTI_NVTX_EXT_PAYLOAD_TYPE_ENUM, copy});
  return copy->schemaId;
}

uint64_t registerScope(const ScopeAttributes* attributes) {
  return attributes != nullptr ? idFor(true, attributes->scopeId) : 0;
}

bool findPayloadAttributes(uint32_t domainId, uint64_t schemaId, CUpti_NvtxExtPayloadAttr* out) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.known.find({domainId, schemaId});
  if (found == r.known.end()) return false;
  out->type = found->second.type;
  out->attributes = const_cast<void*>(found->second.attributes);
  return true;
}

const EntryTypeInfo* entryTypes() {
#define SONDE_TYPE(type) {sizeof(type), alignof(type)}
  static constexpr EntryTypeInfo kTypes[] = {
      {28, sizeof(EntryTypeInfo)},
      SONDE_TYPE(char),
      SONDE_TYPE(unsigned char),
      SONDE_TYPE(short),
      SONDE_TYPE(unsigned short),
      SONDE_TYPE(int),
      SONDE_TYPE(unsigned int),
      SONDE_TYPE(long),
      SONDE_TYPE(unsigned long),
      SONDE_TYPE(long long),
      SONDE_TYPE(unsigned long long),
      SONDE_TYPE(int8_t),
      SONDE_TYPE(uint8_t),
      SONDE_TYPE(int16_t),
      SONDE_TYPE(uint16_t),
      SONDE_TYPE(int32_t),
      SONDE_TYPE(uint32_t),
      SONDE_TYPE(int64_t),
      SONDE_TYPE(uint64_t),
      SONDE_TYPE(float),
      SONDE_TYPE(double),
      SONDE_TYPE(long double),
      SONDE_TYPE(size_t),
      SONDE_TYPE(void*),
      SONDE_TYPE(wchar_t),
      SONDE_TYPE(char8_t),
      SONDE_TYPE(char16_t),
      SONDE_TYPE(char32_t),
  };
#undef SONDE_TYPE
  static_assert(sizeof kTypes / sizeof *kTypes == 28);
  return kTypes;
}

PayloadData* copyPayload(const Domain* domain, const PayloadData& data) {
  auto* copy = static_cast<PayloadData*>(std::malloc(sizeof(PayloadData)));
  if (copy == nullptr) return nullptr;
  *copy = {data.schemaId, data.payload != nullptr ? data.size : 0, nullptr};
  if (copy->size == SIZE_MAX) copy->size = sizeOf(domain, data);
  if (copy->size == 0) return copy;
  void* bytes = std::malloc(copy->size);
  if (bytes == nullptr) {
    std::free(copy);
    return nullptr;
  }
  std::memcpy(bytes, data.payload, copy->size);
  copy->payload = bytes;
  return copy;
}

void releasePayload(const CUpti_ActivityMarkerData2& record) {
  if (record.payloadKind != CUPTI_METRIC_VALUE_KIND_NVTX_EXTENDED_PAYLOAD) return;
  auto* data = reinterpret_cast<PayloadData*>(record.payload.metricValueNvtxExtendedPayload);
  if (data == nullptr) return;
  std::free(const_cast<void*>(data->payload));
  std::free(data);
}

// ------------------------------------------------------- the application's --

namespace {

Event payloadEvent(const PayloadData* payloads, size_t count) {
  Event event;
  event.payloads = payloads;
  event.payloadCount = payloads != nullptr ? count : 0;
  return event;
}
void markPayload(const Domain* domain, const PayloadData* data, size_t count) {
  mark(domain, payloadEvent(data, count));
}
int pushPayload(const Domain* domain, const PayloadData* data, size_t count) {
  return rangePush(domain, payloadEvent(data, count));
}
int popPayload(const Domain* domain, const PayloadData* data, size_t count) {
  return rangePop(domain, payloadEvent(data, count));
}
uint64_t startPayload(const Domain* domain, const PayloadData* data, size_t count) {
  return rangeStart(domain, payloadEvent(data, count));
}
void endPayload(const Domain* domain, uint64_t id, const PayloadData* data, size_t count) {
  rangeEnd(domain, id, payloadEvent(data, count));
}
uint8_t domainIsEnabled(const Domain*) { return 1; }
uint64_t scopeRegister(const Domain*, const ScopeAttributes* attributes) { return registerScope(attributes); }

struct ModuleSegment {
  size_t segmentId, slotCount;
  intptr_t* functionSlots;
};
struct ModuleInfo {
  uint16_t nvtxVersion, structSize, moduleId, compatId;
  size_t segmentsCount;
  ModuleSegment* segments;
};
constexpr uint16_t kPayloadModule = 2, kCompatMajor = 1;

struct Slot {
  size_t number;
  intptr_t function;
};
template <typename F>
Slot slot(size_t number, F* function) {
  return {number, reinterpret_cast<intptr_t>(function)};
}

}  // namespace

bool attachExtension(void* moduleInfo) {
  const auto* module = static_cast<const ModuleInfo*>(moduleInfo);
  if (module == nullptr || module->structSize < sizeof(ModuleInfo) || module->moduleId != kPayloadModule ||
      module->compatId >> 8 != kCompatMajor || module->segmentsCount == 0 || module->segments == nullptr) {
    return false;
  }
  const ModuleSegment& segment = module->segments[0];
  if (segment.functionSlots == nullptr) return false;
  const Slot slots[] = {slot(0, registerSchema), slot(1, registerEnum),    slot(2, markPayload),
                        slot(3, pushPayload),    slot(4, popPayload),      slot(5, startPayload),
                        slot(6, endPayload),     slot(7, domainIsEnabled), slot(12, scopeRegister)};
  for (const Slot& s : slots) {
    if (s.number < segment.slotCount) segment.functionSlots[s.number] = s.function;
  }
  return true;
}

}  // namespace sonde::core::nvtx
