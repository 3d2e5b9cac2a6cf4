// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/clock_locks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "platform/tools_api.h"

namespace sonde::cli {
namespace {

std::string stateFolder() {
  if (const char* folder = std::getenv("SONDE_STATE_DIR"); folder != nullptr && folder[0] != 0) return folder;
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR"); folder != nullptr && folder[0] != 0)
    return std::string(folder) + "/sonde";
  return fmt::format("/tmp/sonde-{}", ::getuid());
}

// When a process began, in the kernel's own count; "gone" without such a process.
std::string startOf(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  // The name, in parentheses, can hold anything; the 20th word after it is the time.
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return "gone";
  std::istringstream words(text.substr(end + 1));
  std::string word;
  for (int i = 0; i < 20; i++) words >> word;
  return word;
}

std::string key(const std::string& kind, int device) { return fmt::format("{}:{}", kind, device); }

}  // namespace

ClockLocks::~ClockLocks() {
  if (fd_ >= 0) ::close(fd_);
}

bool ClockLocks::open(std::string* error) {
  const std::string folder = stateFolder();
  path_ = folder + "/clock-locks.json";
  ::mkdir(folder.c_str(), 0700);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
  if (fd_ < 0) {
    *error = fmt::format("{}: {} (SONDE_STATE_DIR names another folder)", path_, std::strerror(errno));
    return false;
  }
  std::string text(1 << 16, '\0');
  const ssize_t n = ::pread(fd_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  if (!text.empty()) locks_ = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (locks_.is_object()) return true;
  *error = fmt::format("{} is damaged; remove it once the clocks are as they should be", path_);
  return false;
}

bool ClockLocks::contains(const std::string& kind, int device) const { return locks_.contains(key(kind, device)); }

pid_t ClockLocks::holder(const std::string& kind, int device) const {
  const auto lock = locks_.find(key(kind, device));
  if (lock == locks_.end() || !lock->is_object()) return 0;
  const auto process = lock->value("holder", pid_t{0});
  return process != 0 && lock->value("holder_started", "") == startOf(process) ? process : 0;
}

bool ClockLocks::add(const std::string& kind, int device, const std::string& mode, pid_t holder, std::string* error) {
  auto& lock = locks_[key(kind, device)] = {{"mode", mode}};
  if (holder != 0) {
    lock["holder"] = holder;
    lock["holder_started"] = startOf(holder);
  }
  return write(error);
}

bool ClockLocks::remove(const std::string& kind, int device, std::string* error) {
  locks_.erase(key(kind, device));
  return write(error);
}

bool ClockLocks::write(std::string* error) {
  const std::string text = locks_.dump() + "\n";
  if (::pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
      ::ftruncate(fd_, static_cast<off_t>(text.size())) == 0)
    return true;
  *error = fmt::format("{}: {}", path_, std::strerror(errno));
  return false;
}

bool undoLock(const Gpu& gpu, bool software, int device, std::string* error) {
  if (software) {
    const auto find = gpu.driverFunction<SondeToolsGetPlatformFn>(SONDE_TOOLS_GET_PLATFORM_SYMBOL);
    const SondePlatform* platform = find != nullptr ? find(SONDE_TOOLS_ABI_VERSION) : nullptr;
    if (platform == nullptr || platform->size < offsetof(SondePlatform, clockReset) + sizeof platform->clockReset ||
        platform->clockReset == nullptr) {
      *error = "the software GPU's driver is of another release";
      return false;
    }
    const int32_t code = platform->clockReset(static_cast<uint32_t>(device));
    if (code != 0) *error = fmt::format("the clocks of device {} cannot be unlocked: driver error {}", device, code);
    return code == 0;
  }
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const auto function = [&]<typename F>(const char* name, F& f) {
    f = nvml != nullptr ? reinterpret_cast<F>(dlsym(nvml, name)) : nullptr;
    return f != nullptr;
  };
  int (*init)() = nullptr;
  int (*byBus)(const char*, void**) = nullptr;
  int (*reset)(void*) = nullptr;
  const auto busId = gpu.driverFunction<CUresult (*)(char*, int, CUdevice)>("cuDeviceGetPCIBusId");
  char bus[64] = "";
  void* handle = nullptr;
  if (busId == nullptr || busId(bus, sizeof bus, device) != CUDA_SUCCESS || !function("nvmlInit_v2", init) ||
      !function("nvmlDeviceGetHandleByPciBusId_v2", byBus) || !function("nvmlDeviceResetGpuLockedClocks", reset) ||
      init() != 0 || byBus(bus, &handle) != 0) {
    *error = fmt::format("NVML (libnvidia-ml.so.1) does not reach device {}", device);
    return false;
  }
  constexpr int kNoPermission = 4;
  const int code = reset(handle);
  if (code != 0)
    *error = fmt::format("the clocks of device {} cannot be unlocked: {}", device,
                         code == kNoPermission ? "run as administrator" : fmt::format("NVML error {}", code));
  return code == 0;
}

}  // namespace sonde::cli
