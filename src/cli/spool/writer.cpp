// SPDX-License-Identifier: Apache-2.0
#include "cli/spool/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sonde::spool {
namespace {

bool writeAll(int fd, const unsigned char* p, size_t n) {
  while (n > 0) {
    const ssize_t done = ::write(fd, p, n);
    if (done < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    p += done;
    n -= static_cast<size_t>(done);
  }
  return true;
}

void append(std::vector<unsigned char>& to, const void* data, size_t size) {
  const size_t at = to.size();
  to.resize(at + size);
  if (size != 0) std::memcpy(to.data() + at, data, size);
}

}  // namespace

Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
}

bool Writer::open(const std::string& path, uint32_t recordAbi) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  // Programs close or reuse the low numbers without asking.
  if (const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, 200); high >= 0) {
    ::close(fd);
    fd = high;
  }
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof kFileMagic);
  header.version = kVersion;
  header.headerSize = sizeof header;
  header.recordAbi = recordAbi;
  header.pid = static_cast<uint32_t>(::getpid());
  if (!writeAll(fd, reinterpret_cast<const unsigned char*>(&header), sizeof header)) {
    ::close(fd);
    return false;
  }
  std::lock_guard lock(mutex_);
  fd_ = fd;
  return true;
}

void Writer::abandon() {
  // Called in a forked child, where a lock may be held by a thread that does
  // not exist there: no locking.
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string encodeBlock(BlockType type, std::string_view payload) {
  BlockHeader header{};
  header.magic = kBlockMagic;
  header.type = static_cast<uint16_t>(type);
  header.payloadSize = static_cast<uint32_t>(payload.size());
  header.payloadCrc = crc32(payload.data(), payload.size());
  header.sequence = UINT32_MAX;
  header.headerCrc = crc32(&header, offsetof(BlockHeader, headerCrc));
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out += payload;
  out.resize(sizeof header + padded(payload.size()));
  return out;
}

bool Writer::block(BlockType type, const void* payload, size_t size) {
  if (size > kMaxPayload) {
    failed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  std::lock_guard lock(mutex_);
  if (fd_ < 0) return false;
  BlockHeader header{};
  header.magic = kBlockMagic;
  header.type = static_cast<uint16_t>(type);
  header.payloadSize = static_cast<uint32_t>(size);
  header.payloadCrc = crc32(payload, size);
  header.sequence = sequence_++;
  header.headerCrc = crc32(&header, offsetof(BlockHeader, headerCrc));
  scratch_.clear();
  append(scratch_, &header, sizeof header);
  append(scratch_, payload, size);
  scratch_.resize(sizeof header + padded(size));
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  if (!writeAll(fd_, scratch_.data(), scratch_.size())) {
    // Half a block helps nobody, and without it a full disk still takes the small block that says what was lost.
    const int why = errno;
    if (end >= 0 && ::ftruncate(fd_, end) != 0) {
      // The reader skips what is damaged.
    }
    errno = why;
    failed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  return true;
}

uint32_t Writer::stringId(const char* text) {
  if (text == nullptr) return 0;
  std::lock_guard lock(stringsMutex_);
  const auto [it, isNew] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size() + 1));
  if (isNew) {
    const uint32_t head[2] = {it->second, static_cast<uint32_t>(it->first.size())};
    append(pendingStrings_, head, sizeof head);
    append(pendingStrings_, it->first.data(), it->first.size());
    pendingStrings_.resize(padded(pendingStrings_.size()));
  }
  return it->second;
}

bool Writer::flushStrings() {
  std::lock_guard lock(stringsMutex_);
  if (pendingStrings_.empty()) return true;
  const bool ok = block(BlockType::Strings, pendingStrings_.data(), pendingStrings_.size());
  pendingStrings_.clear();
  return ok;
}

}  // namespace sonde::spool
