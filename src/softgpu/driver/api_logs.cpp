// SPDX-License-Identifier: Apache-2.0
//
// The driver's messages, for the program: kept in a bounded buffer, given to
// callbacks, written to a file or into memory.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <list>
#include <mutex>
#include <string>

#include "softgpu/driver/driver.h"
#include "softgpu/driver/message.h"

// What a handle points at; the program sees no more of it.
struct CUlogsCallbackEntry_st {
  CUlogsCallback function;
  void* user;
};

namespace sonde::softgpu::driver {
namespace {

constexpr size_t kMostBytes = 25600;  // as CUDA documents the buffer

struct Logs {
  std::mutex mutex;
  std::deque<std::string> lines;  // each ends with a newline
  unsigned first = 0;             // number of the first of them
  size_t bytes = 0;
  std::list<CUlogsCallbackEntry_st> callbacks;
  unsigned end() const { return first + static_cast<unsigned>(lines.size()); }
};
Logs& logs() {
  static Logs* l = new Logs();
  return *l;
}

std::string stamp() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char text[40];
  const size_t n = std::strftime(text, sizeof text, "[%H:%M:%S.", &local);
  std::snprintf(text + n, sizeof text - n, "%03ld]", now.tv_nsec / 1'000'000);
  return text;
}

constexpr const char* kTruncated = "[earlier messages are lost]\n";

// Lines from an iterator on (null: all), as one text; the iterator goes to the end. With the lock held.
std::deque<std::string> take(const CUlogIterator* from, bool& lost) {
  Logs& l = logs();
  const unsigned begin = from ? *from : 0;
  lost = begin < l.first;
  const unsigned start = std::clamp(begin, l.first, l.end());
  return {l.lines.begin() + (start - l.first), l.lines.end()};
}

}  // namespace

void logMessage(std::string_view line) {
  Logs& l = logs();
  std::string text = stamp() + " [ERROR] " + std::string(line) + "\n";
  std::list<CUlogsCallbackEntry_st> callbacks;
  {
    std::lock_guard lock(l.mutex);
    l.bytes += text.size();
    l.lines.push_back(text);
    while (l.bytes > kMostBytes && l.lines.size() > 1) {
      l.bytes -= l.lines.front().size();
      l.lines.pop_front();
      l.first++;
    }
    callbacks = l.callbacks;
  }
  text.pop_back();
  for (const auto& c : callbacks) c.function(c.user, CU_LOG_LEVEL_ERROR, text.data(), text.size());
}

DRIVER_API(cuLogsRegisterCallback)
(CUlogsCallback callbackFunc, void* userData, CUlogsCallbackHandle* callback_out) {
  if (!callbackFunc) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(logs().mutex);
  logs().callbacks.push_back({callbackFunc, userData});
  if (callback_out) *callback_out = &logs().callbacks.back();
  return CUDA_SUCCESS;
}

DRIVER_API(cuLogsUnregisterCallback)(CUlogsCallbackHandle callback) {
  std::lock_guard lock(logs().mutex);
  return std::erase_if(logs().callbacks, [&](auto& c) { return &c == callback; }) ? CUDA_SUCCESS
                                                                                  : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_API(cuLogsCurrent)(CUlogIterator* iterator_out, unsigned int flags) {
  if (!iterator_out || flags) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(logs().mutex);
  *iterator_out = logs().end();
  return CUDA_SUCCESS;
}

DRIVER_API(cuLogsDumpToFile)(CUlogIterator* iterator, const char* pathToFile, unsigned int flags) {
  if (!pathToFile || flags) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* file = std::fopen(pathToFile, "w");
  if (!file) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(logs().mutex);
  bool lost;
  const auto lines = take(iterator, lost);
  if (lost) std::fputs(kTruncated, file);
  for (const std::string& line : lines) std::fputs(line.c_str(), file);
  const bool written = std::fclose(file) == 0;
  if (!written) return CUDA_ERROR_OPERATING_SYSTEM;
  if (iterator) *iterator = logs().end();
  return CUDA_SUCCESS;
}

// The newest messages that fit, with a word at the head when some do not.
DRIVER_API(cuLogsDumpToMemory)(CUlogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  if (!buffer || !size || *size == 0 || flags) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(logs().mutex);
  bool lost;
  const auto lines = take(iterator, lost);
  const size_t room = *size - 1;
  size_t all = 0;
  for (const std::string& line : lines) all += line.size();
  const size_t head = lost || all > room ? std::strlen(kTruncated) : 0;
  size_t bytes = 0, from = lines.size();
  while (from > 0 && head + bytes + lines[from - 1].size() <= room) bytes += lines[--from].size();
  *size = 0;
  buffer[0] = 0;
  if (lines.empty()) return CUDA_SUCCESS;
  if (from == lines.size()) return CUDA_ERROR_INVALID_VALUE;
  std::string text = head ? kTruncated : "";
  for (; from < lines.size(); from++) text += lines[from];
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  *size = text.size();
  if (iterator) *iterator = logs().end();
  return CUDA_SUCCESS;
}

}  // namespace sonde::softgpu::driver
