// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is whole: written beside it
// under a temporary name, then renamed.
#ifndef SONDE_CLI_EXPORTS_OUTPUT_FILE_H_
#define SONDE_CLI_EXPORTS_OUTPUT_FILE_H_

#include <cstdio>
#include <string>
#include <string_view>

namespace sonde::exports {

class OutputFile {
 public:
  OutputFile() = default;
  ~OutputFile();  // without commit, nothing stays behind
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // False, with a sentence in *error, when the target exists and may not be
  // replaced or is no file (a device, a pipe), or the folder cannot be written.
  bool open(const std::string& path, bool replace, std::string* error);
  void write(std::string_view data);
  const std::string& temporaryPath() const { return temporary_; }
  bool commit(std::string* error);

 private:
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
  int failure_ = 0;  // errno of the first write that failed
};

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_OUTPUT_FILE_H_
