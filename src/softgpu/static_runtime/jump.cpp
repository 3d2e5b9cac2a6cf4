// SPDX-License-Identifier: Apache-2.0
#include "softgpu/static_runtime/jump.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace sonde::static_runtime {

namespace {

constexpr size_t kJumpBytes = 14;      // jmp *0(%rip); .quad target
constexpr size_t kShortJumpBytes = 5;  // jmp to such a jump within 2 GiB
constexpr size_t kMarkBytes = 12;      // movl $mark, %fs:offset
constexpr size_t kStepBytes = 32;      // a mark and a jump
constexpr size_t kIslandBytes = 32768;

void encodeJump(unsigned char* to, const void* target) {
  const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(to, jump, sizeof jump);
  std::memcpy(to + sizeof jump, &target, sizeof target);
}

}  // namespace

Island::Island(uint64_t near) {
  // Further and further away, above and below.
  constexpr int64_t kStep = 16 << 20, kMost = 1 << 30;
  for (int64_t distance = kStep; distance < kMost && !next_; distance = distance > 0 ? -distance : kStep - distance) {
    auto* hint = reinterpret_cast<void*>((near & ~uint64_t{0xfff}) + static_cast<uint64_t>(distance));
    void* p = mmap(hint, kIslandBytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED) continue;
    if (p == hint) {
      first_ = next_ = static_cast<unsigned char*>(p);
    } else {
      munmap(p, kIslandBytes);
    }
  }
}

Island::~Island() {
  if (first_) mprotect(first_, kIslandBytes, PROT_READ | PROT_EXEC);
}

const unsigned char* Island::add(const void* target, unsigned mark, int32_t markOffset) {
  if (!next_ || next_ + kStepBytes > first_ + kIslandBytes) return nullptr;
  unsigned char* at = next_;
  if (mark) {
    const unsigned char store[4] = {0x64, 0xc7, 0x04, 0x25};
    std::memcpy(at, store, sizeof store);
    std::memcpy(at + 4, &markOffset, 4);
    std::memcpy(at + 8, &mark, 4);
    at += kMarkBytes;
  }
  encodeJump(at, target);
  next_ += kStepBytes;
  return next_ - kStepBytes;
}

bool writeJump(uint64_t at, uint64_t room, const void* target, Island& island, unsigned mark, int32_t markOffset) {
  unsigned char jump[kJumpBytes];
  if (mark && room >= kJumpBytes)
    if (const unsigned char* step = island.add(target, mark, markOffset)) target = step;
  size_t bytes = kJumpBytes;
  if (room >= kJumpBytes) {
    encodeJump(jump, target);
  } else if (room >= kShortJumpBytes) {
    const unsigned char* step = island.add(target, mark, markOffset);
    if (!step) return false;
    const auto distance = static_cast<int32_t>(reinterpret_cast<uint64_t>(step) - (at + kShortJumpBytes));
    jump[0] = 0xe9;
    std::memcpy(jump + 1, &distance, sizeof distance);
    bytes = kShortJumpBytes;
  } else {
    return false;
  }
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t first = at & ~(page - 1), end = (at + bytes + page - 1) & ~(page - 1);
  auto* pages = reinterpret_cast<void*>(first);
  if (mprotect(pages, end - first, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  std::memcpy(reinterpret_cast<void*>(at), jump, bytes);
  mprotect(pages, end - first, PROT_READ | PROT_EXEC);
  return true;
}

}  // namespace sonde::static_runtime
