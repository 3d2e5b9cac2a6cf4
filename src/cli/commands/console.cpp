// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/console.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace sonde::cli {

bool wantsColor(int fd) {
  const auto set = [](const char* name) {
    const char* v = std::getenv(name);
    return v != nullptr && v[0] != 0;
  };
  if (set("NO_COLOR")) return false;
  const char* force = std::getenv("CLICOLOR_FORCE");
  if (force != nullptr && force[0] != 0 && std::strcmp(force, "0") != 0) return true;
  const char* term = std::getenv("TERM");
  return ::isatty(fd) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

Console::Console() : resultColor_(wantsColor(STDOUT_FILENO)), messageColor_(wantsColor(STDERR_FILENO)) {
  auto logger = std::make_shared<spdlog::logger>("sonde", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern("sonde: %v");
  spdlog::set_default_logger(std::move(logger));
}

Console::~Console() {
  if (log_ != nullptr) std::fclose(log_);
}

bool Console::setLogFile(const std::string& path, std::string* error) {
  log_ = std::fopen(path.c_str(), "we");
  if (log_ == nullptr) {
    *error = fmt::format("cannot create the log file {}: {}", path, std::strerror(errno));
    return false;
  }
  resultColor_ = messageColor_ = false;
  return true;
}

void Console::result(std::string_view text) {
  std::FILE* to = log_ != nullptr ? log_ : stdout;
  std::fwrite(text.data(), 1, text.size(), to);
}

unsigned Console::resultWidth() const {
  if (log_ != nullptr || ::isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void Console::flush() { std::fflush(log_ != nullptr ? log_ : stdout); }

void Console::message(const char* level, const char* color, const std::string& text) {
  if (log_ != nullptr) {
    fmt::print(log_, "sonde: {}{}\n", level, text);
    return;
  }
  flush();  // so that the two streams appear in order on a terminal
  if (messageColor_ && color[0] != 0) {
    spdlog::default_logger_raw()->info("{}{}\x1b[0m{}", color, level, text);
  } else {
    spdlog::default_logger_raw()->info("{}{}", level, text);
  }
}

void Console::info(const std::string& text) {
  if (!quiet_) message("", "", text);
}
void Console::warning(const std::string& text) { message("warning: ", "\x1b[1;33m", text); }
void Console::error(const std::string& text) { message("error: ", "\x1b[1;31m", text); }

bool hasProcessPattern(const std::string& pattern) {
  for (size_t i = 0; i + 1 < pattern.size(); i++) {
    if (pattern[i] != '%') continue;
    if (pattern[i + 1] == 'p') return true;
    i++;
  }
  return false;
}

bool expandPattern(const std::string& pattern, unsigned pid, std::string* out, std::string* error) {
  out->clear();
  for (size_t i = 0; i < pattern.size(); i++) {
    if (pattern[i] != '%') {
      *out += pattern[i];
      continue;
    }
    const char what = i + 1 < pattern.size() ? pattern[++i] : 0;
    if (what == 'p') {
      *out += std::to_string(pid);
    } else if (what == '%') {
      *out += '%';
    } else if (what == 'h') {
      char host[256] = "";
      ::gethostname(host, sizeof host - 1);
      *out += host;
    } else if (what == 'q' && i + 1 < pattern.size() && pattern[i + 1] == '{') {
      const size_t close = pattern.find('}', i);
      if (close == std::string::npos) {
        *error = fmt::format("'{}': %q{{ has no }}", pattern);
        return false;
      }
      const std::string name = pattern.substr(i + 2, close - i - 2);
      const char* value = std::getenv(name.c_str());
      if (value == nullptr) {
        *error = fmt::format("'{}': the environment has no variable {}", pattern, name);
        return false;
      }
      *out += value;
      i = close;
    } else {
      *error = fmt::format("'{}': after % may stand p, h, q{{VARIABLE}} or %", pattern);
      return false;
    }
  }
  return true;
}

}  // namespace sonde::cli
