// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/launcher.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "cli/commands/not_run.h"

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

[[noreturn]] void becomeApplication(const std::vector<std::string>& command,
                                    const std::map<std::string, std::string>& environment, const sigset_t& mask,
                                    int errorPipe) {
  for (const auto& [name, value] : environment)
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  // execvp hands to a shell what the kernel refuses to run.
  const std::string program = findProgram(command[0]);
  if (!program.empty() && isBinary(program))
    ::execv(program.c_str(), argv.data());
  else
    ::execvp(argv[0], argv.data());
  const int code = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(errorPipe, &code, sizeof code);
  ::_exit(127);
}

timespec toTimespec(Clock::duration d) {
  const auto ns = std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::nanoseconds>(d).count());
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

LaunchResult launch(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
                    double timeoutSeconds, const std::function<void(int pid)>& onStarted) {
  LaunchResult result;
  int errorPipe[2];
  if (::pipe2(errorPipe, O_CLOEXEC) != 0) {
    result.status = 125;
    result.error = fmt::format("pipe: {}", std::strerror(errno));
    return result;
  }
  sigset_t waited, before;
  sigemptyset(&waited);
  for (const int s : {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP}) sigaddset(&waited, s);
  ::sigprocmask(SIG_BLOCK, &waited, &before);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    result.status = 125;
    result.error = fmt::format("fork: {}", std::strerror(errno));
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return result;
  }
  if (child == 0) becomeApplication(command, environment, before, errorPipe[1]);
  ::close(errorPipe[1]);
  int code = 0;
  const bool failed = ::read(errorPipe[0], &code, sizeof code) == static_cast<ssize_t>(sizeof code);
  ::close(errorPipe[0]);
  if (failed) {
    ::waitpid(child, nullptr, 0);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    // Folders of PATH that may not be searched make execvp say EACCES of a name that is nowhere.
    const std::string program = findProgram(command[0], F_OK);
    // Of a path, EACCES may also be about a folder on the way.
    const bool missing = program.empty() && (code == ENOENT || command[0].find('/') == std::string::npos);
    result.status = missing ? 127 : 126;
    result.error = missing ? fmt::format("{}: there is no such program", command[0])
                           : fmt::format("{} cannot be run: {}", command[0],
                                         whyNotRun(program.empty() ? command[0] : program, code));
    return result;
  }
  result.started = true;
  result.pid = child;
  if (onStarted) onStarted(child);

  std::optional<Clock::time_point> deadline;
  if (timeoutSeconds > 0)
    deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeoutSeconds));
  int status = 0;
  for (;;) {
    const pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child) break;
    siginfo_t info{};
    int got = 0;
    if (deadline) {
      const timespec left = toTimespec(*deadline - Clock::now());
      got = ::sigtimedwait(&waited, &info, &left);
    } else {
      got = ::sigwaitinfo(&waited, &info);
    }
    if (got < 0 && errno == EAGAIN) {
      ::kill(child, result.timedOut ? SIGKILL : SIGTERM);
      deadline = result.timedOut ? std::optional<Clock::time_point>() : Clock::now() + std::chrono::seconds(5);
      result.timedOut = true;
    } else if (got > 0 && got != SIGCHLD) {
      // What a terminal sends goes to the whole group, the application included.
      const bool fromTerminal = (got == SIGINT || got == SIGQUIT) && info.si_code == SI_KERNEL;
      if (!fromTerminal) ::kill(child, got);
    }
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (WIFSIGNALED(status)) {
    result.signal = WTERMSIG(status);
    result.status = 128 + result.signal;
  } else {
    result.status = WEXITSTATUS(status);
  }
  return result;
}

std::string findProgram(const std::string& name, int access) {
  std::error_code ec;
  if (name.find('/') != std::string::npos) return fs::exists(name, ec) ? name : std::string();
  const char* path = std::getenv("PATH");
  std::string all = path != nullptr ? path : "/usr/bin:/bin";
  for (size_t at = 0; at <= all.size();) {
    const size_t end = std::min(all.find(':', at), all.size());
    const std::string folder = all.substr(at, end - at);
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), access) == 0 && !fs::is_directory(candidate, ec)) return candidate;
    at = end + 1;
  }
  return {};
}

std::vector<std::string> neededLibraries(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const auto read = [&](uint64_t offset, void* to, size_t size) {
    in.clear();
    in.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(in.read(static_cast<char*>(to), static_cast<std::streamsize>(size)));
  };
  Elf64_Ehdr header{};
  if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  for (size_t i = 0; i < segments.size(); i++)
    if (!read(header.e_phoff + i * header.e_phentsize, &segments[i], sizeof segments[i])) return {};
  const auto fileOffset = [&](uint64_t address) -> std::optional<uint64_t> {
    for (const Elf64_Phdr& s : segments)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    return std::nullopt;
  };
  std::vector<uint64_t> names;
  std::optional<uint64_t> strings;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= std::min<uint64_t>(s.p_filesz, 1 << 20); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry{};
      if (!read(s.p_offset + at, &entry, sizeof entry) || entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = fileOffset(entry.d_un.d_ptr);
    }
  }
  std::vector<std::string> result;
  for (const uint64_t name : names) {
    char text[256] = "";
    if (!strings) break;
    read(*strings + name, text, sizeof text - 1);
    result.emplace_back(text, strnlen(text, sizeof text));
  }
  return result;
}

}  // namespace sonde::cli
