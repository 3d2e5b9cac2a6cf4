// SPDX-License-Identifier: Apache-2.0
// NVTX annotations of the application: markers, ranges, domains and names.
//
// NVTX is headers in the application; a tool puts its functions into the
// application's table of function pointers. The types below are that binary
// interface.
#ifndef SONDE_CORE_NVTX_H_
#define SONDE_CORE_NVTX_H_

#include <cstddef>
#include <cstdint>

#include "core/nvtx_payload.h"

namespace sonde::core::nvtx {

// What the application passes to the tool's initialisation.
using GetExportTable = const void* (*)(uint32_t table);

// Puts the library's functions into the caller's tables. False: the table is
// not one that this library knows. May be called for each copy of NVTX.
bool attach(GetExportTable getExportTable);

// Attributes of a marker or range.
struct EventAttributes {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;  // 1: argb
  uint32_t color;
  int32_t payloadType;  // PayloadType, or kExtendedPayload
  int32_t reserved;     // kExtendedPayload: how many
  union {
    uint64_t u64;
    int64_t i64;
    double f64;
    uint32_t u32;
    int32_t i32;
    float f32;
  } payload;
  int32_t messageType;  // MessageType
  union {
    const char* ascii;
    const wchar_t* wide;
    const void* registered;
  } message;
};
static_assert(sizeof(EventAttributes) == 48);

enum PayloadType : int32_t { kNoPayload, kUint64, kInt64, kDouble, kUint32, kInt32, kFloat };
enum MessageType : int32_t { kNoMessage, kAscii, kWide, kRegistered };
inline constexpr int32_t kColorArgb = 1;

// A domain; its address is the application's handle. nullptr: the default one.
struct Domain {
  const char* name;
  uint32_t id;
};

// A marker's text and attributes, put together from whichever call it was.
struct Event {
  const char* text = nullptr;  // interned
  const EventAttributes* attributes = nullptr;
  const PayloadData* payloads = nullptr;
  size_t payloadCount = 0;
};

const char* internWide(const wchar_t* text);
Event eventOf(const EventAttributes* attributes);

// The work behind the entry points. Thread-safe.
void mark(const Domain* domain, const Event& event);
uint64_t rangeStart(const Domain* domain, const Event& event);
void rangeEnd(const Domain* domain, uint64_t id, const Event& event = {});
// The level of the range, 0 for the outermost; pop: -1 when there is none.
int rangePush(const Domain* domain, const Event& event);
int rangePop(const Domain* domain, const Event& event = {});
const Domain* createDomain(const char* name);

enum class Named { kThread, kDevice, kContext, kStream };
// `handle`: a context or stream; `number`: a thread or device id.
void name(Named what, void* handle, uint32_t number, const char* text);

}  // namespace sonde::core::nvtx

#endif  // SONDE_CORE_NVTX_H_
