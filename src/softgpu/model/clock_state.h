// SPDX-License-Identifier: Apache-2.0
//
// What the processes that use one software GPU share about its clocks: the lock
// in force, and who asked for auto boost to be on or off.
//
// A lock outlives the process that made it. It lives in a small file per device
// (SONDE_STATE_DIR, else $XDG_RUNTIME_DIR/sonde, else /tmp/sonde-<uid>), which is
// read and changed under an flock. A request about auto boost lasts as long as
// its process: it is a record lock on another file there, so that it can
// neither be left behind nor be anybody else's by a number that was used again.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace sonde::softgpu::model {

enum class ClockLock : uint8_t { none, base, boost, floor };

// stateFile: the file cannot be read or written, or is damaged. taken: there is
// a lock already.
enum class ClockError : uint8_t { none, notSupported, notPermitted, stateFile, taken };

class ClockState {
 public:
  // `device` names the device among those of the user, without slashes.
  explicit ClockState(const std::string& device);
  ~ClockState();
  ClockState(const ClockState&) = delete;
  ClockState& operator=(const ClockState&) = delete;

  // `owner`: the process that made the lock; 0 without one.
  ClockError read(ClockLock* lock, uint32_t* owner, std::string* message) const;
  // Makes a lock of this process, unless there is one: then `taken`. Of
  // processes that race for it one makes it.
  ClockError lock(ClockLock wanted, std::string* message);
  // Frees the lock of this process and leaves any other alone.
  ClockError unlock(std::string* message);
  // Frees the lock whoever made it, and mends a damaged file.
  ClockError reset(std::string* message);

  // Asks for auto boost to be on or off, once, until this process ends.
  ClockError requestBoost(bool on, std::string* message);
  struct Boost {
    bool enabled = true;
    std::optional<uint32_t> requester;  // nothing: nobody asked, boost is on by itself
  };
  // One request to switch it off outweighs any to switch it on.
  Boost boost() const;

  const std::string& path() const { return path_; }
  const std::string& boostPath() const { return boostPath_; }

 private:
  ClockError makeFolder(std::string* message) const;

  std::string path_, boostPath_;
  mutable std::mutex mutex_;    // of what follows
  mutable int boostFile_ = -1;  // stays open: closing any descriptor of it ends this process's requests
  std::optional<bool> boostOfThisProcess_;
  uint32_t boostProcess_ = 0;  // which process that was: a child of a fork asks for nothing
};

}  // namespace sonde::softgpu::model
