// SPDX-License-Identifier: Apache-2.0
#include "softgpu/model/clock_model.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sonde::softgpu::model {
namespace {

constexpr double kAmbientC = 30;
constexpr double kHotC = 88;            // full power ends here
constexpr double kSlowdownC = 85;       // hardware slowdown
constexpr double kThermalSeconds = 20;  // time constant of the heat sink
constexpr double kLoadSeconds = 0.05;   // how fast the load average follows
constexpr uint64_t kIdleAfterNs = 500'000'000;
constexpr uint32_t kClockStepMHz = 15;

// CUpti_EnvironmentClocksThrottleReason.
constexpr uint32_t kGpuIdle = 0x1, kUserClocks = 0x2, kPowerCap = 0x4, kHwSlowdown = 0x8;

std::string stateDirectory() {
  if (const char* dir = std::getenv("SONDE_STATE_DIR"); dir && *dir) return dir;
  if (const char* dir = std::getenv("XDG_RUNTIME_DIR"); dir && *dir) return std::string(dir) + "/sonde";
  return "/tmp/sonde-" + std::to_string(getuid());
}

const char* nameOf(ClockLock lock) {
  switch (lock) {
    case ClockLock::base: return "base";
    case ClockLock::boost: return "boost";
    case ClockLock::floor: return "floor";
    case ClockLock::none: break;
  }
  return "none";
}

// An open file with an flock on it.
class LockedFile {
 public:
  LockedFile(const std::string& path, bool write)
      : fd_(open(path.c_str(), (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (fd_ < 0) return;
    while (flock(fd_, write ? LOCK_EX : LOCK_SH) != 0)
      if (errno != EINTR) break;
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

}  // namespace

ClockModel::ClockModel(const DeviceModel& model, uint32_t index) : model_(model), temperature_(kAmbientC + 5) {
  // A model from a file has the file's path as its id.
  std::string name = "clocks-" + model.id + "-" + std::to_string(index);
  std::replace(name.begin(), name.end(), '/', '_');
  statePath_ = stateDirectory() + "/" + name;
  auto text = [&](const char* key) {
    const auto it = model.strings.find(key);
    return it == model.strings.end() ? std::string() : it->second;
  };
  auto fact = [&](const char* key, double otherwise) {
    const auto it = model.facts.find(key);
    return it == model.facts.end() ? otherwise : it->second;
  };
  const std::string control = text("clock_control");
  rights_ = control == "mig"            ? ClockRights::none
            : control == "unprivileged" ? ClockRights::unprivileged
                                        : ClockRights::full;
  powerLimitWatts_ = fact("power_limit_watts", 300);
  idleWatts_ = fact("idle_watts", 30);
}

ClockError ClockModel::readState(State* state, std::string* message) const {
  *state = {};
  LockedFile file(statePath_, false);
  if (file.fd() < 0) {
    if (errno == ENOENT) return ClockError::none;
    *message = "cannot read the clock state " + statePath_ + ": " + std::strerror(errno);
    return ClockError::stateFile;
  }
  char text[128] = {};
  const ssize_t n = read(file.fd(), text, sizeof text - 1);
  char mode[16] = {};
  unsigned owner = 0;
  if (n <= 0) return ClockError::none;  // made, but never locked
  if (std::sscanf(text, "sonde-clocks 1 %15s %u", mode, &owner) != 2) {
    *message = "the clock state " + statePath_ + " is damaged; remove the file to unlock the clocks";
    return ClockError::stateFile;
  }
  for (ClockLock lock : {ClockLock::base, ClockLock::boost, ClockLock::floor})
    if (std::strcmp(mode, nameOf(lock)) == 0) *state = {lock, owner};
  return ClockError::none;
}

ClockError ClockModel::writeState(const State& state, std::string* message) const {
  const std::string directory = statePath_.substr(0, statePath_.rfind('/'));
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    *message = "cannot make " + directory + " for the clock state: " + std::strerror(errno);
    return ClockError::stateFile;
  }
  LockedFile file(statePath_, true);
  char text[128];
  const int n = std::snprintf(text, sizeof text, "sonde-clocks 1 %s %u\n", nameOf(state.lock), state.owner);
  if (file.fd() < 0 || ftruncate(file.fd(), 0) != 0 || pwrite(file.fd(), text, static_cast<size_t>(n), 0) != n) {
    *message = "cannot write the clock state " + statePath_ + ": " + std::strerror(errno);
    return ClockError::stateFile;
  }
  return ClockError::none;
}

ClockError ClockModel::lockState(ClockLock* lock, uint32_t* owner, std::string* message) {
  State state;
  if (const ClockError e = readState(&state, message); e != ClockError::none) return e;
  *lock = state.lock;
  *owner = state.owner;
  return ClockError::none;
}

ClockError ClockModel::lock(ClockLock wanted, std::string* message) {
  if (rights_ == ClockRights::none) {
    *message = "clocks of a partitioned device cannot be locked from here";
    return ClockError::notSupported;
  }
  if (wanted == ClockLock::boost && rights_ == ClockRights::unprivileged) {
    *message = "locking to boost clocks needs rights that this process lacks";
    return ClockError::notPermitted;
  }
  return writeState({wanted, static_cast<uint32_t>(getpid())}, message);
}

ClockError ClockModel::unlock(std::string* message) { return writeState({}, message); }

void ClockModel::autoBoost(bool* enabled, uint32_t* pid) {
  const char* request = std::getenv("CUDA_AUTO_BOOST");
  *enabled = !(request && std::strcmp(request, "0") == 0);
  *pid = request ? static_cast<uint32_t>(getpid()) : 0;
}

uint32_t ClockModel::steps(double mhz) const { return static_cast<uint32_t>(mhz / kClockStepMHz) * kClockStepMHz; }

uint32_t ClockModel::currentClock(ClockLock lock, uint32_t* reasons) const {
  *reasons = 0;
  if (lock == ClockLock::base) return *reasons = kUserClocks, model_.baseClockMHz;
  if (lock == ClockLock::boost) return *reasons = kUserClocks, model_.boostClockMHz;
  if (lastNs_ > busyUntilNs_ + kIdleAfterNs || busyUntilNs_ == 0) {
    *reasons = kGpuIdle;
    return lock == ClockLock::floor ? model_.baseClockMHz : model_.idleClockMHz;
  }
  // Leakage grows with temperature and costs clock steps.
  const double range = model_.boostClockMHz - model_.baseClockMHz;
  double mhz = model_.boostClockMHz - range * 0.6 * std::clamp((temperature_ - 40) / (kHotC - 40), 0.0, 1.0);
  if (load_ > 0.9) {
    *reasons |= kPowerCap;
    mhz -= range * 0.2 * (load_ - 0.9) / 0.1;
  }
  if (temperature_ > kSlowdownC) {
    *reasons |= kHwSlowdown;
    mhz = std::min(mhz, model_.boostClockMHz / 2.0);
  }
  return std::max(steps(mhz), model_.idleClockMHz);
}

void ClockModel::advance(uint64_t nowNs) {
  if (lastNs_ == 0) lastNs_ = nowNs;
  if (nowNs <= lastNs_) return;
  const double seconds = static_cast<double>(nowNs - lastNs_) * 1e-9;
  lastNs_ = nowNs;
  load_ *= std::exp(-seconds / kLoadSeconds);
  const double target = kAmbientC + 5;
  temperature_ = target + (temperature_ - target) * std::exp(-seconds / kThermalSeconds);
}

uint32_t ClockModel::smClockMHz(uint64_t nowNs) {
  State state;
  std::string ignored;
  (void)readState(&state, &ignored);  // a damaged file counts as unlocked
  std::lock_guard guard(mutex_);
  advance(nowNs);
  // Work is what ends idleness.
  busyUntilNs_ = std::max(busyUntilNs_, nowNs);
  uint32_t reasons = 0;
  return currentClock(state.lock, &reasons);
}

void ClockModel::workDone(uint64_t nowNs, uint64_t cycles, uint32_t atMHz) {
  std::lock_guard guard(mutex_);
  advance(nowNs);
  const double seconds = static_cast<double>(cycles) / (atMHz ? atMHz * 1e6 : 1e9);
  load_ = std::min(1.0, load_ + seconds / kLoadSeconds);
  const double target = kAmbientC + (kHotC - kAmbientC) * load_;
  temperature_ += (target - temperature_) * (1 - std::exp(-seconds / kThermalSeconds));
  busyUntilNs_ = std::max(busyUntilNs_, nowNs);
}

ClockSample ClockModel::sample(uint64_t nowNs) {
  State state;
  std::string ignored;
  (void)readState(&state, &ignored);
  std::lock_guard guard(mutex_);
  advance(nowNs);
  ClockSample s;
  s.smClockMHz = currentClock(state.lock, &s.throttleReasons);
  s.memoryClockMHz = (s.throttleReasons & kGpuIdle) ? model_.memoryClockMHz / 4 : model_.memoryClockMHz;
  s.temperatureC = static_cast<uint32_t>(std::lround(temperature_));
  s.fanPercent = static_cast<uint32_t>(std::clamp((temperature_ - kAmbientC) * 1.7, 20.0, 100.0));
  const double watts = idleWatts_ + (powerLimitWatts_ - idleWatts_) * load_ * s.smClockMHz / model_.boostClockMHz;
  s.powerMilliwatts = static_cast<uint32_t>(watts * 1000);
  s.powerLimitMilliwatts = static_cast<uint32_t>(powerLimitWatts_ * 1000);
  return s;
}

}  // namespace sonde::softgpu::model
