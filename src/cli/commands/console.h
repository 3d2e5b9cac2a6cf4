// SPDX-License-Identifier: Apache-2.0
// Where the program writes: results to stdout (or the log file), messages to
// stderr (or the log file), each with the prefix "sonde: ".
#ifndef SONDE_CLI_COMMANDS_CONSOLE_H_
#define SONDE_CLI_COMMANDS_CONSOLE_H_

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace sonde::cli {

class Console {
 public:
  Console();
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void setQuiet(bool quiet) { quiet_ = quiet; }
  // Everything goes to this file from now on.
  bool setLogFile(const std::string& path, std::string* error);

  void result(std::string_view text);
  bool resultColor() const { return resultColor_; }
  unsigned resultWidth() const;  // of the terminal; 0: no terminal

  void info(const std::string& text);  // not with --quiet
  void warning(const std::string& text);
  void error(const std::string& text);
  void flush();

 private:
  void message(const char* level, const char* color, const std::string& text);
  std::FILE* log_ = nullptr;
  bool quiet_ = false;
  bool resultColor_, messageColor_;
};

// NO_COLOR, CLICOLOR_FORCE, TERM=dumb and whether it is a terminal.
bool wantsColor(int fd);

// "%p" process id, "%h" host, "%q{VAR}" environment, "%%". False: *error says what is wrong.
bool expandPattern(const std::string& pattern, unsigned pid, std::string* out, std::string* error);
bool hasProcessPattern(const std::string& pattern);

// Failures of sonde itself; below it are the application's own codes.
inline constexpr int kOwnFailure = 125;

}  // namespace sonde::cli

#endif  // SONDE_CLI_COMMANDS_CONSOLE_H_
