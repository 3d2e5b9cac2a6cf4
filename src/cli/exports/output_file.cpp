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
    if (!replace) {
      *error = fmt::format("{} exists already; -f replaces it", path);
      return false;
    }
  }
  path_ = path;
  temporary_ = fmt::format("{}.{}.tmp", path, ::getpid());
  file_ = std::fopen(temporary_.c_str(), "wbe");
  if (file_ == nullptr) {
    *error = fmt::format("cannot create {}: {}", temporary_, std::strerror(errno));
    temporary_.clear();
    return false;
  }
  std::setvbuf(file_, nullptr, _IOFBF, 1 << 18);
  return true;
}

void OutputFile::write(std::string_view data) {
  if (!failed_ && std::fwrite(data.data(), 1, data.size(), file_) != data.size()) failed_ = true;
}

bool OutputFile::commit(std::string* error) {
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (failed_ || !closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    *error = fmt::format("cannot write {}: {}", path_, std::strerror(errno));
    return false;
  }
  temporary_.clear();
  return true;
}

}  // namespace sonde::exports
