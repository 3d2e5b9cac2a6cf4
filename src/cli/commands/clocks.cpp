// SPDX-License-Identifier: Apache-2.0
// `sonde clocks`, and `sonde run --lock-clocks`.
#include "cli/commands/clocks.h"

#include <cupti_profiler_target.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "cli/commands/clock_locks.h"
#include "cli/commands/installation.h"
#include "cli/commands/settings.h"
#include "cli/reports/reports.h"

namespace sonde::cli {
namespace {

using nlohmann::json;

const char* statusName(uint32_t status) {
  switch (status) {
    case CUPTI_CLOCK_CONTROL_STATUS_UNLOCKED: return "unlocked";
    case CUPTI_CLOCK_CONTROL_STATUS_LOCKED: return "locked";
    case CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR: return "locked to a floor";
    case CUPTI_CLOCK_CONTROL_STATUS_BOOST_ENABLED: return "boost enabled";
    case CUPTI_CLOCK_CONTROL_STATUS_BOOST_DISABLED: return "boost disabled";
    default: return "unknown";
  }
}

// The first set of environment records that CUPTI gives when they are enabled.
// Global, because the callbacks take no argument of ours.
alignas(8) uint8_t recordBuffer[1 << 16];
bool recordBufferTaken = false;
std::vector<CUpti_ActivityEnvironment> environmentRecords;
decltype(&::cuptiActivityGetNextRecord) nextRecord = nullptr;

void CUPTIAPI giveBuffer(uint8_t** buffer, size_t* size, size_t* maxRecords) {
  *buffer = recordBufferTaken ? nullptr : recordBuffer;
  *size = recordBufferTaken ? 0 : sizeof recordBuffer;
  *maxRecords = 0;
  recordBufferTaken = true;
}

void CUPTIAPI takeBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t validSize) {
  CUpti_Activity* record = nullptr;
  while (validSize != 0 && nextRecord(buffer, validSize, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_ENVIRONMENT)
      environmentRecords.push_back(*reinterpret_cast<CUpti_ActivityEnvironment*>(record));
}

void readEnvironment(const Gpu& gpu) {
  static bool done = false;
  if (done) return;
  done = true;
  decltype(&::cuptiActivityRegisterCallbacks) registerCallbacks = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush = nullptr;
  std::string ignored;
  if (!gpu.cupti("cuptiActivityRegisterCallbacks", registerCallbacks, &ignored) ||
      !gpu.cupti("cuptiActivityEnable", enable, &ignored) || !gpu.cupti("cuptiActivityDisable", disable, &ignored) ||
      !gpu.cupti("cuptiActivityFlushAll", flush, &ignored) ||
      !gpu.cupti("cuptiActivityGetNextRecord", nextRecord, &ignored))
    return;
  if (registerCallbacks(giveBuffer, takeBuffer) != CUPTI_SUCCESS ||
      enable(CUPTI_ACTIVITY_KIND_ENVIRONMENT) != CUPTI_SUCCESS)
    return;
  disable(CUPTI_ACTIVITY_KIND_ENVIRONMENT);
  flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

struct ClockApi {
  decltype(&::cuptiClockControlGetStatus) status = nullptr;
  decltype(&::cuptiClockControlLock) lock = nullptr;
  decltype(&::cuptiClockControlUnlock) unlock = nullptr;
  bool load(const Gpu& gpu, std::string* error) {
    return gpu.cupti("cuptiClockControlGetStatus", status, error) && gpu.cupti("cuptiClockControlLock", lock, error) &&
           gpu.cupti("cuptiClockControlUnlock", unlock, error);
  }
};

std::vector<int> chosen(const Gpu& gpu, const std::vector<uint32_t>& devices, std::string* error) {
  std::vector<int> all;
  for (int d = 0; d < gpu.deviceCount(); d++)
    if (devices.empty() || std::find(devices.begin(), devices.end(), static_cast<uint32_t>(d)) != devices.end())
      all.push_back(d);
  if (all.empty()) *error = devices.empty() ? "there is no device" : fmt::format("there is no device {}", devices[0]);
  return all;
}

// In the process of the lock. *external: somebody else's lock was there and stays.
bool lockHere(const Gpu& gpu, int device, const std::string& mode, bool* external, std::string* error) {
  ClockApi api;
  if (!api.load(gpu, error)) return false;
  const CUcontext context = gpu.context(device, error);
  if (context == nullptr) return false;
  CUpti_ClockControl_Status status{};
  *external = api.status(context, &status) == CUPTI_SUCCESS &&
              (status == CUPTI_CLOCK_CONTROL_STATUS_LOCKED || status == CUPTI_CLOCK_CONTROL_STATUS_LOCKED_TO_FLOOR);
  const CUptiResult r =
      api.lock(context, mode == "boost" ? CUPTI_CLOCK_CONTROL_MODE_BOOST : CUPTI_CLOCK_CONTROL_MODE_BASE);
  if (r == CUPTI_SUCCESS) return true;
  *error = fmt::format("the clocks of device {} cannot be locked to {}: {}", device, mode, gpu.resultText(r));
  if (r == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES && error->find("administrator") == std::string::npos)
    *error += mode == "boost" ? "; run as administrator, or use base" : "; run as administrator";
  return false;
}

// Around `lockIt`, which locks: the lock goes on the list first, so that one in force is never missing from it, and
// comes off again when it is none of ours. holder: see ClockLocks::add.
bool listed(ClockLocks& locks, const std::string& kind, int device, const std::string& mode, pid_t holder,
            const std::function<bool(bool* external)>& lockIt, bool* external, std::string* error) {
  const bool before = locks.contains(kind, device);
  if (!before && !locks.add(kind, device, mode, holder, error)) return false;
  std::string ignored;
  if (!lockIt(external)) {
    if (!before) locks.remove(kind, device, &ignored);
    return false;
  }
  if (*external) return before || locks.remove(kind, device, error);
  // One that is on the list and not in force any more (after a restart, say) is ours anew.
  return !before || locks.add(kind, device, mode, holder, error);
}

[[noreturn]] void holdLock(const GpuLibraries& libraries, const std::string& kind, int device, const std::string& mode,
                           int answer, int release) {
  // What a terminal sends is for the application; this process ends when ours closes its pipe.
  for (const int s : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(s, SIG_IGN);
  Gpu gpu;
  std::string error;
  bool external = false, good = false;
  bool left = false;  // by `sonde clocks lock`, or by a run that was killed
  {
    ClockLocks locks;
    good = gpu.load(libraries, &error) && locks.open(&error) &&
           listed(
               locks, kind, device, mode, ::getpid(),
               [&](bool* other) { return lockHere(gpu, device, mode, other, &error); }, &external, &error);
    left = good && external && locks.contains(kind, device) && locks.holder(kind, device) == 0;
  }
  const std::string text = !good ? "error " + error : left ? "left" : external ? "external" : "locked";
  [[maybe_unused]] const ssize_t ignored = ::write(answer, text.data(), text.size());
  ::close(answer);
  char byte;
  while (good && ::read(release, &byte, 1) < 0 && errno == EINTR) {
  }
  if (text != "locked") ::_exit(0);
  ClockApi api;
  ClockLocks locks;
  if (locks.open(&error) && api.load(gpu, &error) && api.unlock() == CUPTI_SUCCESS) locks.remove(kind, device, &error);
  ::_exit(0);
}

}  // namespace

json clockState(const Gpu& gpu, int device) {
  json state = json::object();
  ClockApi api;
  std::string ignored;
  CUpti_ClockControl_Status status{};
  CUcontext context = api.load(gpu, &ignored) ? gpu.context(device, &ignored) : nullptr;
  if (context != nullptr && api.status(context, &status) == CUPTI_SUCCESS) state["status"] = statusName(status);
  readEnvironment(gpu);
  for (const CUpti_ActivityEnvironment& e : environmentRecords) {
    if (e.deviceId != static_cast<uint32_t>(device)) continue;
    switch (e.environmentKind) {
      case CUPTI_ACTIVITY_ENVIRONMENT_SPEED: {
        state["sm_mhz"] = uint32_t{e.data.speed.smClock};
        state["memory_mhz"] = uint32_t{e.data.speed.memoryClock};
        uint32_t reasons = 0;
        std::memcpy(&reasons, &e.data.speed.clocksThrottleReasons, sizeof reasons);
        state["throttle_reasons"] = reasons;
        break;
      }
      case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE:
        state["temperature_c"] = uint32_t{e.data.temperature.gpuTemperature};
        break;
      case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
        state["power_mw"] = uint32_t{e.data.power.power};
        state["power_limit_mw"] = uint32_t{e.data.power.powerLimit};
        break;
      case CUPTI_ACTIVITY_ENVIRONMENT_COOLING: state["fan_percent"] = uint32_t{e.data.cooling.fanSpeed}; break;
      default: break;
    }
  }
  return state;
}

std::string describeClocks(const json& state) {
  std::string text = state.value("status", "state of the lock unknown");
  if (state.contains("sm_mhz"))
    text +=
        fmt::format(", SM {} MHz, memory {} MHz", state["sm_mhz"].get<uint32_t>(), state["memory_mhz"].get<uint32_t>());
  if (state.contains("temperature_c")) text += fmt::format(", {} C", state["temperature_c"].get<uint32_t>());
  if (state.contains("power_mw"))
    text += fmt::format(", {:.1f} W of {:.1f} W", state["power_mw"].get<double>() / 1000,
                        state["power_limit_mw"].get<double>() / 1000);
  if (const auto why = reports::throttleReasonNames(state.value("throttle_reasons", 0u)); !why.empty())
    text += fmt::format(" ({})", fmt::join(why, ", "));
  return text;
}

ClockHold::~ClockHold() { release(); }

void ClockHold::release() {
  for (const Holder& h : holders_) {
    ::close(h.release);
    while (::waitpid(h.process, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  holders_.clear();
}

bool ClockHold::lock(const GpuLibraries& libraries, const std::string& kind, const std::vector<uint32_t>& devices,
                     const std::string& mode, Console& console, std::string* error) {
  json numbers;
  if (!inGpuProcess(
          libraries,
          [&](Gpu& gpu, json* result, std::string* why) {
            *result = chosen(gpu, devices, why);
            return why->empty();
          },
          &numbers, error))
    return false;
  for (const json& number : numbers) {
    const int device = number.get<int>();
    int answer[2], hold[2];
    if (::pipe2(answer, O_CLOEXEC) != 0 || ::pipe2(hold, O_CLOEXEC) != 0) {
      *error = fmt::format("pipe: {}", std::strerror(errno));
      release();
      return false;
    }
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      // Also those of the earlier holders: a lock ends when no process has them open.
      for (const Holder& h : holders_) ::close(h.release);
      ::close(answer[0]);
      ::close(hold[1]);
      holdLock(libraries, kind, device, mode, answer[1], hold[0]);
    }
    ::close(answer[1]);
    ::close(hold[0]);
    std::string text;
    char buffer[1024];
    for (;;) {
      const ssize_t n = ::read(answer[0], buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    ::close(answer[0]);
    if (child > 0) holders_.push_back({child, hold[1]});
    if (text == "external" || text == "left") {
      console.info(fmt::format("the clocks of device {} are locked already; they stay as they are{}", device,
                               text == "left" ? " ('sonde clocks unlock' frees them)" : ""));
    } else if (text != "locked") {
      *error = text.compare(0, 6, "error ") == 0 ? text.substr(6) : "the process that locks the clocks gave no answer";
      release();
      return false;
    }
  }
  return true;
}

namespace {

bool lockDevice(const ClocksCommand& s, const GpuLibraries& libraries, ClockLocks& locks, int device, Console& console,
                std::string* error) {
  const auto lockIt = [&](bool* external) {
    json answer;
    const bool good = inGpuProcess(
        libraries,
        [&](Gpu& gpu, json* result, std::string* why) {
          bool other = false;
          const bool done = lockHere(gpu, device, s.mode, &other, why);
          *result = other;
          return done;
        },
        &answer, error);
    *external = good && answer.get<bool>();
    return good;
  };
  bool external = false;
  if (!listed(locks, s.device, device, s.mode, 0, lockIt, &external, error)) return false;
  console.info(
      external ? fmt::format("the clocks of device {} are locked already; they stay as they are{}", device,
                             locks.contains(s.device, device) ? " ('sonde clocks unlock' frees them)" : "")
               : fmt::format("the clocks of device {} are locked to {} until 'sonde clocks unlock'", device, s.mode));
  return true;
}

bool unlockDevice(const ClocksCommand& s, const GpuLibraries& libraries, ClockLocks& locks, int device,
                  Console& console, std::string* error) {
  json answer;
  if (!locks.contains(s.device, device)) {
    const bool known = inGpuProcess(
        libraries,
        [&](Gpu& gpu, json* result, std::string*) {
          *result = clockState(gpu, device);
          return true;
        },
        &answer, error);
    const std::string status = known ? answer.value("status", "") : "";
    console.info(status.rfind("locked", 0) == 0
                     ? fmt::format("the clocks of device {} were locked by another program; they stay so", device)
                     : fmt::format("the clocks of device {} are not locked", device));
    return true;
  }
  if (const pid_t holder = locks.holder(s.device, device)) {
    console.info(
        fmt::format("the clocks of device {} are locked by a 'sonde run' that is under way (process {}); it frees them "
                    "when it ends",
                    device, holder));
    return true;
  }
  if (!inGpuProcess(
          GpuLibraries{libraries.driver, ""},
          [&](Gpu& gpu, json*, std::string* why) { return undoLock(gpu, s.device == "software", device, why); },
          &answer, error) ||
      !locks.remove(s.device, device, error))
    return false;
  console.info(fmt::format("the clocks of device {} are unlocked", device));
  return true;
}

}  // namespace

int clocksCommand(ClocksCommand& s, Console& console) {
  const Installation here = Installation::find();
  const bool software = s.device == "software";
  const GpuLibraries libraries{software ? here.softgpu + "/libcuda.so.1" : "libcuda.so.1", here.cupti};
  std::string error;
  const auto fail = [&] {
    console.error(error);
    return kOwnFailure;
  };
  if (s.action == "status") {
    json states;
    if (!inGpuProcess(
            libraries,
            [&](Gpu& gpu, json* result, std::string* why) {
              *result = json::array();
              for (const int d : chosen(gpu, s.devices, why)) {
                json state = clockState(gpu, d);
                state["device"] = d;
                state["name"] = gpu.deviceName(d);
                result->push_back(std::move(state));
              }
              return why->empty();
            },
            &states, &error))
      return fail();
    for (const json& state : states)
      console.result(s.json ? state.dump() + "\n"
                            : fmt::format("device {} ({}): {}\n", state["device"].get<int>(),
                                          state["name"].get<std::string>(), describeClocks(state)));
    return 0;
  }
  // Which devices: one process each, because a process makes one lock.
  json numbers;
  if (!inGpuProcess(
          libraries,
          [&](Gpu& gpu, json* result, std::string* why) {
            *result = chosen(gpu, s.devices, why);
            return why->empty();
          },
          &numbers, &error))
    return fail();
  ClockLocks locks;
  if (!locks.open(&error)) return fail();
  for (const json& number : numbers) {
    const int device = number.get<int>();
    const bool good = s.action == "lock" ? lockDevice(s, libraries, locks, device, console, &error)
                                         : unlockDevice(s, libraries, locks, device, console, &error);
    if (!good) return fail();
  }
  return 0;
}

}  // namespace sonde::cli
