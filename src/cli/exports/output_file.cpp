// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/output_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sonde::exports {

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool OutputFile::open(const std::string& path, bool replace, std::string* error) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      *error = fmt::format("{} is a folder", path);
      return false;
    }
    if (!S_ISREG(info.st_mode)) {
      // It would be replaced, not written to.
      *error = fmt::format("{} is not a file; results go to a terminal or a pipe with --csv", path);
      return false;
    }
    if (!replace) {
      *error = fmt::format("{} exists already; -f replaces it", path);
      return false;
    }
  }
  path_ = path;
  temporary_ = fmt::format("{}.{}.tmp", path, ::getpid());
  file_ = std::fopen(temporary_.c_str(), "wbe");
  if (file_ == nullptr) {
    *error = fmt::format("cannot create {}: {}", path, std::strerror(errno));
    temporary_.clear();
    return false;
  }
  std::setvbuf(file_, nullptr, _IOFBF, 1 << 18);
  return true;
}

void OutputFile::write(std::string_view data) {
  if (failure_ == 0 && std::fwrite(data.data(), 1, data.size(), file_) != data.size()) failure_ = errno;
}

bool OutputFile::commit(std::string* error) {
  if (std::fclose(file_) != 0 && failure_ == 0) failure_ = errno;
  file_ = nullptr;
  if (failure_ == 0 && ::rename(temporary_.c_str(), path_.c_str()) != 0) failure_ = errno;
  if (failure_ != 0) {
    *error = fmt::format("cannot write {}: {}", path_, std::strerror(failure_));
    return false;
  }
  temporary_.clear();
  return true;
}

}  // namespace sonde::exports
