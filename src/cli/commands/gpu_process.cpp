// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/gpu_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sonde::cli {

bool Gpu::load(const GpuLibraries& libraries, std::string* error) {
  ::unsetenv("CUDA_INJECTION64_PATH");
  driver_ = dlopen(libraries.driver.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (driver_ == nullptr) {
    *error = dlerror();
    return false;
  }
  if (!libraries.cupti.empty()) {
    cupti_ = dlopen(libraries.cupti.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (cupti_ == nullptr) {
      *error = dlerror();
      return false;
    }
  }
  const auto init = driverFunction<CUresult (*)(unsigned)>("cuInit");
  const CUresult r = init != nullptr ? init(0) : CUDA_ERROR_NOT_FOUND;
  if (r != CUDA_SUCCESS) *error = fmt::format("{}: cuInit fails with error {}", libraries.driver, static_cast<int>(r));
  return r == CUDA_SUCCESS;
}

int Gpu::deviceCount() const {
  int count = 0;
  const auto get = driverFunction<CUresult (*)(int*)>("cuDeviceGetCount");
  return get != nullptr && get(&count) == CUDA_SUCCESS ? count : 0;
}

std::string Gpu::deviceName(int device) const {
  char name[256] = "";
  const auto get = driverFunction<CUresult (*)(char*, int, CUdevice)>("cuDeviceGetName");
  return get != nullptr && get(name, sizeof name, device) == CUDA_SUCCESS ? name : fmt::format("device {}", device);
}

CUcontext Gpu::context(int device, std::string* error) const {
  CUcontext context = nullptr;
  const auto retain = driverFunction<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  const CUresult r = retain != nullptr ? retain(&context, device) : CUDA_ERROR_NOT_FOUND;
  if (r == CUDA_SUCCESS) return context;
  *error = fmt::format("there is no context on device {}: driver error {}", device, static_cast<int>(r));
  return nullptr;
}

std::string Gpu::resultText(CUptiResult result) const {
  decltype(&::cuptiGetResultString) getName = nullptr;
  decltype(&::cuptiGetErrorMessage) getMessage = nullptr;
  std::string ignored;
  const char *name = nullptr, *message = nullptr;
  if (!cupti("cuptiGetResultString", getName, &ignored) || getName(result, &name) != CUPTI_SUCCESS || name == nullptr)
    return fmt::format("CUPTI error {}", static_cast<int>(result));
  if (!cupti("cuptiGetErrorMessage", getMessage, &ignored) || getMessage(result, &message) != CUPTI_SUCCESS ||
      message == nullptr)
    return name;
  return fmt::format("{} ({})", message, name);
}

bool inGpuProcess(const GpuLibraries& libraries,
                  const std::function<bool(Gpu& gpu, nlohmann::json* answer, std::string* error)>& work,
                  nlohmann::json* answer, std::string* error) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    *error = fmt::format("pipe: {}", std::strerror(errno));
    return false;
  }
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    *error = fmt::format("fork: {}", std::strerror(errno));
    ::close(ends[0]);
    ::close(ends[1]);
    return false;
  }
  if (child == 0) {
    ::close(ends[0]);
    nlohmann::json reply = {{"answer", nullptr}, {"error", nullptr}};
    std::string why;
    try {
      Gpu gpu;
      nlohmann::json result;
      if (gpu.load(libraries, &why) && work(gpu, &result, &why)) {
        reply["answer"] = std::move(result);
      } else {
        reply["error"] = why;
      }
    } catch (const std::exception& e) {
      reply["error"] = e.what();
    }
    const std::string text = reply.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (size_t at = 0; at < text.size();) {
      const ssize_t n = ::write(ends[1], text.data() + at, text.size() - at);
      if (n < 0 && errno != EINTR) break;
      if (n > 0) at += static_cast<size_t>(n);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  auto reply = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!reply.is_object()) {
    *error = WIFSIGNALED(status) ? fmt::format("{} was ended by signal {}", libraries.driver, WTERMSIG(status))
                                 : fmt::format("{} gave no answer", libraries.driver);
    return false;
  }
  if (reply["error"].is_string()) {
    *error = reply["error"].get<std::string>();
    return false;
  }
  *answer = std::move(reply["answer"]);
  return true;
}

}  // namespace sonde::cli
