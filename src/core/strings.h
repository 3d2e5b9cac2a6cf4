// SPDX-License-Identifier: Apache-2.0
// Strings in records outlive everything: a client may read a kernel's name long
// after its module is gone. So names are interned and never freed.
#ifndef SONDE_CORE_STRINGS_H_
#define SONDE_CORE_STRINGS_H_

#include <string_view>

namespace sonde::core {

// The one copy of `text` (NUL-terminated, valid for the life of the process);
// nullptr for nullptr. Any thread. Never returns another text than the given
// one, also when a new string lies where an earlier one lay.
const char* intern(const char* text);
const char* intern(std::string_view text);

// Around a fork.
void lockStrings();
void unlockStrings();

}  // namespace sonde::core

#endif  // SONDE_CORE_STRINGS_H_
