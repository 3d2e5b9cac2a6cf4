// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/clock_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sonde::softgpu::model {
namespace {

// The byte of the file on which each sort of boost request is a record lock.
constexpr off_t kBoostOff = 0, kBoostOn = 1;

std::string folder() {
  if (const char* dir = std::getenv("SONDE_STATE_DIR"); dir && *dir) return dir;
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir && *dir) return std::string(dir) + "/sonde";
  return "/tmp/sonde-" + std::to_string(getuid());
}

uint32_t self() { return static_cast<uint32_t>(getpid()); }

struct Name {
  ClockLock lock;
  const char* text;
};
constexpr Name kNames[] = {
    {ClockLock::none, "none"}, {ClockLock::base, "base"}, {ClockLock::boost, "boost"}, {ClockLock::floor, "floor"}};

// An open file with an flock on it.
class LockedFile {
 public:
  LockedFile(const std::string& path, bool write)
      : fd_(open(path.c_str(), (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (fd_ < 0) return;
    while (flock(fd_, write ? LOCK_EX : LOCK_SH) != 0) {
      if (errno == EINTR) continue;
      const int why = errno;
      close(fd_);
      fd_ = -1;
      errno = why;
      return;
    }
  }
  ~LockedFile() {
    if (fd_ >= 0) close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Contents {
  ClockLock lock = ClockLock::none;
  uint32_t owner = 0;
};

// False: nothing that this library wrote. An empty file was made, but never locked.
bool parse(int fd, Contents* contents) {
  char text[128] = {};
  const ssize_t n = pread(fd, text, sizeof text - 1, 0);
  if (n == 0) return true;
  char mode[16] = {};
  unsigned owner = 0;
  if (n < 0 || std::sscanf(text, "sonde-clocks 1 %15s %u", mode, &owner) != 2) return false;
  for (const Name& name : kNames) {
    if (std::strcmp(mode, name.text) != 0) continue;
    if (name.lock != ClockLock::none) *contents = {name.lock, owner};
    return true;
  }
  return false;
}

bool write(int fd, const Contents& contents) {
  char text[128];
  const int n = std::snprintf(text, sizeof text, "sonde-clocks 1 %s %u\n",
                              kNames[static_cast<size_t>(contents.lock)].text, contents.owner);
  // In this order the file is never without its first line, wherever we are killed.
  return pwrite(fd, text, static_cast<size_t>(n), 0) == n && ftruncate(fd, n) == 0;
}

ClockError cannot(const char* what, const std::string& path, std::string* message) {
  *message = std::string("cannot ") + what + " the clock state " + path + ": " + std::strerror(errno) +
             " (SONDE_STATE_DIR names another folder)";
  return ClockError::stateFile;
}

ClockError damaged(const std::string& path, std::string* message) {
  *message = "the clock state " + path + " is damaged; remove the file to unlock the clocks";
  return ClockError::stateFile;
}

}  // namespace

ClockState::ClockState(const std::string& device)
    : path_(folder() + "/clocks-" + device), boostPath_(folder() + "/boost-" + device) {}

ClockState::~ClockState() {
  if (boostFile_ >= 0) close(boostFile_);
}

ClockError ClockState::makeFolder(std::string* message) const {
  const std::string directory = path_.substr(0, path_.rfind('/'));
  if (mkdir(directory.c_str(), 0700) == 0 || errno == EEXIST) return ClockError::none;
  *message = "cannot make " + directory + " for the clock state: " + std::strerror(errno) +
             " (SONDE_STATE_DIR names another folder)";
  return ClockError::stateFile;
}

ClockError ClockState::read(ClockLock* lock, uint32_t* owner, std::string* message) const {
  Contents contents;
  const LockedFile file(path_, false);
  if (file.fd() < 0 && errno != ENOENT) return cannot("read", path_, message);
  if (file.fd() >= 0 && !parse(file.fd(), &contents)) return damaged(path_, message);
  *lock = contents.lock;
  *owner = contents.owner;
  return ClockError::none;
}

ClockError ClockState::lock(ClockLock wanted, std::string* message) {
  if (const ClockError e = makeFolder(message); e != ClockError::none) return e;
  const LockedFile file(path_, true);
  Contents contents;
  if (file.fd() < 0) return cannot("write", path_, message);
  if (!parse(file.fd(), &contents)) return damaged(path_, message);
  if (contents.lock != ClockLock::none) {
    *message = "process " + std::to_string(contents.owner) + " has locked the clocks";
    return ClockError::taken;
  }
  return write(file.fd(), {wanted, self()}) ? ClockError::none : cannot("write", path_, message);
}

ClockError ClockState::unlock(std::string* message) {
  Contents contents;
  // Looked at first without the right to write, so that nothing is made where there is no lock.
  {
    const LockedFile file(path_, false);
    if (file.fd() < 0 && errno == ENOENT) return ClockError::none;
  }
  const LockedFile file(path_, true);
  if (file.fd() < 0) return cannot("write", path_, message);
  if (!parse(file.fd(), &contents)) return damaged(path_, message);
  if (contents.lock == ClockLock::none || contents.owner != self()) return ClockError::none;
  return write(file.fd(), {}) ? ClockError::none : cannot("write", path_, message);
}

ClockError ClockState::reset(std::string* message) {
  if (const ClockError e = makeFolder(message); e != ClockError::none) return e;
  const LockedFile file(path_, true);
  return file.fd() >= 0 && write(file.fd(), {}) ? ClockError::none : cannot("write", path_, message);
}

ClockError ClockState::requestBoost(bool on, std::string* message) {
  if (const ClockError e = makeFolder(message); e != ClockError::none) return e;
  std::lock_guard guard(mutex_);
  if (boostFile_ < 0) boostFile_ = open(boostPath_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct flock request{};
  request.l_type = F_RDLCK;
  request.l_whence = SEEK_SET;
  request.l_start = on ? kBoostOn : kBoostOff;
  request.l_len = 1;
  if (boostFile_ < 0 || fcntl(boostFile_, F_SETLK, &request) != 0) return cannot("write", boostPath_, message);
  boostOfThisProcess_ = on;
  boostProcess_ = self();
  return ClockError::none;
}

ClockState::Boost ClockState::boost() const {
  std::lock_guard guard(mutex_);
  if (boostFile_ < 0) boostFile_ = open(boostPath_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (boostFile_ < 0) return {};
  const bool asked = boostOfThisProcess_ && boostProcess_ == self();
  for (const bool on : {false, true}) {
    if (asked && *boostOfThisProcess_ == on) return {on, self()};
    struct flock other{};
    other.l_type = F_WRLCK;  // in the way of which is any request
    other.l_whence = SEEK_SET;
    other.l_start = on ? kBoostOn : kBoostOff;
    other.l_len = 1;
    if (fcntl(boostFile_, F_GETLK, &other) == 0 && other.l_type != F_UNLCK)
      return {on, other.l_pid > 0 ? static_cast<uint32_t>(other.l_pid) : 0};  // 0: of another pid namespace
  }
  return {};
}

}  // namespace sonde::softgpu::model
