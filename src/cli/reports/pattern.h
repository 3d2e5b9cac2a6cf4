// SPDX-License-Identifier: Apache-2.0
#ifndef SONDE_CLI_REPORTS_PATTERN_H_
#define SONDE_CLI_REPORTS_PATTERN_H_

#include <regex.h>

#include <memory>
#include <string>

namespace sonde::reports {

// A POSIX extended regular expression (std::regex recurses, and names of
// kernels can be very long). Copies share the compiled form.
class Pattern {
 public:
  // False: *error says what is wrong with it.
  bool compile(const std::string& text, std::string* error) {
    auto compiled = std::make_unique<regex_t>();
    if (const int code = ::regcomp(compiled.get(), text.c_str(), REG_EXTENDED | REG_NOSUB); code != 0) {
      char why[256] = "";
      ::regerror(code, compiled.get(), why, sizeof why);
      *error = why;
      return false;
    }
    regex_ = std::shared_ptr<regex_t>(compiled.release(), [](regex_t* r) {
      ::regfree(r);
      delete r;
    });
    return true;
  }
  bool empty() const { return regex_ == nullptr; }
  // Whether it matches somewhere in the text.
  bool matches(const std::string& text) const { return ::regexec(regex_.get(), text.c_str(), 0, nullptr, 0) == 0; }

 private:
  std::shared_ptr<regex_t> regex_;
};

}  // namespace sonde::reports

#endif  // SONDE_CLI_REPORTS_PATTERN_H_
