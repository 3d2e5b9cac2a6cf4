// SPDX-License-Identifier: Apache-2.0
// Appends blocks to one spool file. Used inside the profiled process: small,
// no dependency beyond libc, one write(2) per block.
#ifndef SONDE_CLI_SPOOL_WRITER_H_
#define SONDE_CLI_SPOOL_WRITER_H_

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/spool/format.h"

namespace sonde::spool {

class Writer {
 public:
  Writer() = default;
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Creates the file (it must not exist) and writes its header. False: errno says why.
  bool open(const std::string& path, uint32_t recordAbi);
  bool isOpen() const { return fd_ >= 0; }
  // The child of a fork must not write to its parent's file.
  void abandon();

  // False: the disk is full or the like; the count of failed blocks goes up.
  bool block(BlockType type, const void* payload, size_t size);
  // The id of a text in this spool; 0 for NULL. A new text goes to the file
  // with the next flushStrings, before any block that uses it.
  uint32_t stringId(const char* text);
  bool flushStrings();

  uint64_t failedBlocks() const { return failed_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;  // file and sequence
  int fd_ = -1;
  uint32_t sequence_ = 0;
  std::vector<unsigned char> scratch_;
  std::atomic<uint64_t> failed_{0};

  std::mutex stringsMutex_;
  std::unordered_map<std::string, uint32_t> strings_;
  std::vector<unsigned char> pendingStrings_;
};

// A block for the end of a spool that no writer has open any more.
std::string encodeBlock(BlockType type, std::string_view payload);

}  // namespace sonde::spool

#endif  // SONDE_CLI_SPOOL_WRITER_H_
