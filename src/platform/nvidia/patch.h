// SPDX-License-Identifier: Apache-2.0
//
// A hook at the entry of a function: the first instructions move into a
// trampoline, and a jump to the hook takes their place.
//
// Entering threads see either the old entry or the new one, never a mixture. A
// thread that was interrupted between the first instructions is waited for
// (see armAll). Disarmed code is byte for byte what it was.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sonde::platform::nvidia {

class Patch {
 public:
  // Prepares a hook on `target` without changing it. nullptr: refused; `why`
  // names the instruction or the circumstance.
  static std::unique_ptr<Patch> prepare(void* target, void* hook, std::string* why);

  // The trampoline and the stub stay mapped: a thread may be inside.
  ~Patch() { disarm(nullptr); }

  // Calling this runs the function as if there were no hook. Valid from
  // prepare() on, armed or not, also after the Patch is gone.
  void* original() const { return trampoline_; }

  // Arms patches together: while their entries are breakpoints, threads that
  // stand behind one leave, then the jumps are written. One wait for any number
  // of patches. False: `why` says what stands in the way, and none is armed
  // that was not before.
  static bool armAll(std::span<Patch* const> patches, std::string* why);
  bool arm(std::string* why) {
    Patch* self = this;
    return armAll({&self, 1}, why);
  }
  bool disarm(std::string* why);
  bool armed() const { return armed_; }

 private:
  Patch() = default;
  bool store(uint64_t bytes, std::string* why);

  friend class ArmingRound;

  uint8_t* target_ = nullptr;
  void* trampoline_ = nullptr;
  uint64_t before_ = 0, after_ = 0;
  bool oneInstruction_ = false;  // no thread can stand inside the jump's bytes
  bool armed_ = false;
};

}  // namespace sonde::platform::nvidia
