// SPDX-License-Identifier: Apache-2.0
// Versions of the record structures. The core builds every record in the newest
// form; a client that was compiled for another one gets its records converted
// as they are copied into its buffer.
#ifndef SONDE_CORE_LAYOUTS_H_
#define SONDE_CORE_LAYOUTS_H_

#include <cupti.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::core {

inline constexpr uint32_t kKindCount = CUPTI_ACTIVITY_KIND_COUNT;

// Which version of its structure each kind has, for one client. 0: the newest.
struct Layouts {
  std::array<uint8_t, kKindCount> version{};
};

// The structures of CUPTI 6.5, all kinds.
Layouts layouts6050();

// Changes `layouts` by a list like "GLOBAL_ACCESS=2,DEVICE=1" (the names are
// those of CUPTI_ACTIVITY_KIND_ without the prefix; 0 is the newest). False, and
// `*error` says what was wrong, when a name or number is unknown; the entries
// before it have taken effect.
bool parseLayouts(std::string_view list, Layouts* layouts, std::string* error);

// Size of a record of `kind` in bytes; 0 when there is no such kind.
uint32_t newestSize(uint32_t kind);
uint32_t recordSize(uint32_t kind, const Layouts& layouts);

// Writes the record at `newest` to `out` (recordSize bytes) in the layout
// chosen for its kind.
void convertRecord(const void* newest, const Layouts& layouts, void* out);

// "CONCURRENT_KERNEL"; nullptr: no such kind.
const char* kindName(uint32_t kind);

}  // namespace sonde::core

#endif  // SONDE_CORE_LAYOUTS_H_
