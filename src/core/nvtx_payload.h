// SPDX-License-Identifier: Apache-2.0
// Extended payloads of NVTX 3.1 and later: binary data with an id that says how
// it is to be read. The types below are the binary interface of that extension.
#ifndef SONDE_CORE_NVTX_PAYLOAD_H_
#define SONDE_CORE_NVTX_PAYLOAD_H_

#include <cupti.h>

#include <cstddef>
#include <cstdint>

namespace sonde::core::nvtx {

struct Domain;

// EventAttributes::payloadType of an event whose payload.u64 is the address of
// PayloadData and whose `reserved` is their number.
inline constexpr int32_t kExtendedPayload = static_cast<int32_t>(0xDFBD0009);

struct PayloadData {
  uint64_t schemaId;
  size_t size;  // SIZE_MAX: as the schema has it
  const void* payload;
};

struct SchemaEntry {
  uint64_t flags, type;
  const char *name, *description;
  uint64_t arrayOrUnionDetail, offset;
  const void *semantics, *reserved;
};
struct SchemaAttributes {
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
struct EnumAttributes {
  uint64_t fieldMask;
  const char* name;
  const EnumEntry* entries;
  size_t numEntries, sizeOfEnum;
  uint64_t schemaId;
  void* extension;
};
struct ScopeAttributes {
  size_t structSize;
  const char* path;
  uint64_t parentScope, scopeId;
};
struct EntryTypeInfo {
  uint16_t size, align;
};

// Keep copies, for as long as the process lives; a static id that is there
// already gets the new meaning. They return the id, new if none was given; 0:
// the attributes are unusable.
uint64_t registerSchema(const Domain* domain, const SchemaAttributes* attributes);
uint64_t registerEnum(const Domain* domain, const EnumAttributes* attributes);
uint64_t registerScope(const ScopeAttributes* attributes);

// The schema or enumeration of that id in the domain (CUPTI's number for it, 0:
// the default one). False: there is none; `*out` is untouched then.
bool findPayloadAttributes(uint32_t domainId, uint64_t schemaId, CUpti_NvtxExtPayloadAttr* out);

// Sizes and alignments of the predefined types, by number; the first element's
// size is the number of elements.
const EntryTypeInfo* entryTypes();

// A copy for one record. Both it and its data are from malloc, and the client
// frees them; data that no size is known of is left out (nullptr, size 0).
// nullptr: no memory.
PayloadData* copyPayload(const Domain* domain, const PayloadData& data);
// Frees what such a record carries when it goes to nobody.
void releasePayload(const CUpti_ActivityMarkerData2& record);

// Puts the library's functions into the slots of an extension module of the
// application (nvtxExtModuleInfo_t). False: not a module that is known here.
bool attachExtension(void* moduleInfo);

}  // namespace sonde::core::nvtx

#endif  // SONDE_CORE_NVTX_PAYLOAD_H_
