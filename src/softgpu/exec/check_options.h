// SPDX-License-Identifier: Apache-2.0
//
// Which mistakes of kernels are looked for besides those that always end them.
// SONDE_CHECK: memory, race, init, sync, with commas; `sonde run --memcheck` and
// its like set it. Read once.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace sonde::softgpu::exec {

struct CheckOptions {
  bool memory = false;  // each access lies within one allocation
  bool race = false;    // accesses to shared memory have a barrier between them
  bool init = false;    // nothing is read from device memory that nobody wrote
  bool sync = false;    // barriers are reached by all threads that they name
  bool any() const { return memory || race || init || sync; }
};

inline const CheckOptions& checks() {
  static const CheckOptions options = [] {
    CheckOptions o;
    if (const char* text = std::getenv("SONDE_CHECK")) {
      auto has = [text](const char* word) {
        const size_t n = std::strlen(word);
        for (const char* p = text; (p = std::strstr(p, word)); p += n)
          if ((p == text || p[-1] == ',') && (p[n] == 0 || p[n] == ',')) return true;
        return false;
      };
      o.memory = has("memory");
      o.race = has("race");
      o.init = has("init");
      o.sync = has("sync");
    }
    return o;
  }();
  return options;
}

// What compiled code tells about an access, in one word.
enum class CheckedAccess : uint32_t { read = 0, write = 1, atomic = 2 };
constexpr uint32_t checkWord(uint32_t space, CheckedAccess kind, uint32_t bytes) {
  return space | static_cast<uint32_t>(kind) << 4 | bytes << 8;
}

}  // namespace sonde::softgpu::exec
