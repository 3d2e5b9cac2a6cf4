// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/patch.h"

#include <dirent.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "platform/nvidia/decoder.h"

namespace sonde::platform::nvidia {
namespace {

constexpr size_t kJumpBytes = 5;   // E9 rel32
constexpr size_t kSlotBytes = 64;  // trampoline (≤ 40) and stub (14)
constexpr size_t kStubOffset = 48;
constexpr size_t kChunkBytes = 1 << 16;

struct Mapping {
  uintptr_t begin, end;
  int protection;
};

std::vector<Mapping> mappings() {
  std::vector<Mapping> result;
  FILE* f = std::fopen("/proc/self/maps", "re");
  if (!f) return result;
  char line[512];
  while (std::fgets(line, sizeof line, f)) {
    uintptr_t begin, end;
    char p[5];
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, p) != 3) continue;
    result.push_back(
        {begin, end, (p[0] == 'r' ? PROT_READ : 0) | (p[1] == 'w' ? PROT_WRITE : 0) | (p[2] == 'x' ? PROT_EXEC : 0)});
  }
  std::fclose(f);
  return result;
}

bool reaches(uintptr_t from, uintptr_t to) {
  const int64_t d = static_cast<int64_t>(to - from);
  return d >= std::numeric_limits<int32_t>::min() + 4096 && d <= std::numeric_limits<int32_t>::max() - 4096;
}

// Hands out slots in executable memory that a 32-bit jump from `near` reaches.
// Slots are never given back: a thread may be executing one.
class SlotAllocator {
 public:
  uint8_t* take(uintptr_t near) {
    std::lock_guard lock(mutex_);
    for (Chunk& c : chunks_)
      if (c.used + kSlotBytes <= kChunkBytes && reaches(near, c.base) && reaches(near, c.base + kChunkBytes)) {
        c.used += kSlotBytes;
        return reinterpret_cast<uint8_t*>(c.base + c.used - kSlotBytes);
      }
    const uintptr_t base = mapNear(near);
    if (!base) return nullptr;
    chunks_.push_back({base, kSlotBytes});
    return reinterpret_cast<uint8_t*>(base);
  }
  bool write(uint8_t* slot, const uint8_t* bytes, size_t n) {
    std::lock_guard lock(mutex_);
    for (const Chunk& c : chunks_) {
      const uintptr_t offset = reinterpret_cast<uintptr_t>(slot) - c.base;
      if (offset >= kChunkBytes) continue;
      // A page with code that runs must stay executable: RWX for the moment of
      // the write, on pages that hold nothing but our own stubs.
      if (mprotect(reinterpret_cast<void*>(c.base), kChunkBytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
      std::memcpy(slot, bytes, n);
      return mprotect(reinterpret_cast<void*>(c.base), kChunkBytes, PROT_READ | PROT_EXEC) == 0;
    }
    return false;
  }

 private:
  struct Chunk {
    uintptr_t base;
    size_t used;
  };
  static uintptr_t mapNear(uintptr_t near) {
    // The closest free gap on either side.
    const std::vector<Mapping> maps = mappings();
    std::vector<uintptr_t> candidates;
    uintptr_t previousEnd = 0x10000;
    for (const Mapping& m : maps) {
      if (m.begin >= previousEnd + kChunkBytes) {
        candidates.push_back(m.begin - kChunkBytes);
        candidates.push_back((previousEnd + 0xffff) & ~uintptr_t{0xffff});
      }
      previousEnd = m.end;
    }
    uintptr_t best = 0;
    auto distance = [&](uintptr_t a) { return a > near ? a - near : near - a; };
    for (int attempt = 0; attempt < 8; ++attempt) {
      best = 0;
      for (uintptr_t c : candidates)
        if (c && reaches(near, c) && reaches(near, c + kChunkBytes) && (!best || distance(c) < distance(best)))
          best = c;
      if (!best) return 0;
      void* p = mmap(reinterpret_cast<void*>(best), kChunkBytes, PROT_READ | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (p == reinterpret_cast<void*>(best)) return best;
      if (p != MAP_FAILED) munmap(p, kChunkBytes);  // a kernel that ignores the flag
      for (uintptr_t& c : candidates)
        if (c == best) c = 0;  // somebody was quicker
    }
    return 0;
  }
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
};

SlotAllocator& slots() {
  static SlotAllocator* s = new SlotAllocator();
  return *s;
}

std::string at(const uint8_t* target, size_t offset) {
  char text[96];
  std::snprintf(text, sizeof text, "instruction at +%zu (%02x %02x %02x %02x)", offset, target[offset],
                target[offset + 1], target[offset + 2], target[offset + 3]);
  return text;
}

std::mutex& patchMutex() {
  static std::mutex* m = new std::mutex();
  return *m;
}

void put32(uint8_t* where, int64_t value) {
  const int32_t v = static_cast<int32_t>(value);
  std::memcpy(where, &v, sizeof v);
}

}  // namespace

std::unique_ptr<Patch> Patch::prepare(void* function, void* hook, std::string* why) {
  auto* target = static_cast<uint8_t*>(function);
  const uintptr_t address = reinterpret_cast<uintptr_t>(target);
  if (address % 8 != 0) {
    *why = "the function is not aligned to 8 bytes, so that its entry cannot be replaced in one store";
    return nullptr;
  }
  uint8_t* slot = slots().take(address);
  if (!slot) {
    *why = "no free memory within 2 GiB of the function";
    return nullptr;
  }
  uint8_t code[kSlotBytes];
  std::memset(code, 0xcc, sizeof code);
  size_t moved = 0, firstLength = 0;
  while (moved < kJumpBytes) {
    DecodedInstruction i;
    std::string reason;
    if (!decodeInstruction(target + moved, 16, &i, &reason)) {
      *why = at(target, moved) + ": " + reason;
      return nullptr;
    }
    if (i.relativeSize != 0 && i.relativeSize != 4) {
      *why = at(target, moved) + " is a short branch and cannot move";
      return nullptr;
    }
    if (i.endsFlow && moved + i.length < kJumpBytes) {
      *why = at(target, moved) + " ends the function before there is room for a jump";
      return nullptr;
    }
    std::memcpy(code + moved, target + moved, i.length);
    if (i.relativeSize == 4) {
      const uintptr_t meant = address + moved + i.length + static_cast<uintptr_t>(i.relative);
      // A branch into the moved bytes would land in the middle of the jump.
      if (meant > address && meant < address + kJumpBytes) {
        *why = at(target, moved) + " refers to the function's own entry";
        return nullptr;
      }
      const uintptr_t end = reinterpret_cast<uintptr_t>(slot) + moved + i.length;
      if (!reaches(end, meant)) {
        *why = at(target, moved) + " refers to a place that the trampoline cannot reach";
        return nullptr;
      }
      put32(code + moved + i.relativeOffset, static_cast<int64_t>(meant - end));
    }
    moved += i.length;
    if (firstLength == 0) firstLength = i.length;
  }
  code[moved] = 0xe9;
  put32(code + moved + 1, static_cast<int64_t>(address + moved - (reinterpret_cast<uintptr_t>(slot) + moved + 5)));
  // jmp [rip+0]; .quad hook
  const uint8_t indirect[6] = {0xff, 0x25, 0, 0, 0, 0};
  std::memcpy(code + kStubOffset, indirect, sizeof indirect);
  std::memcpy(code + kStubOffset + 6, &hook, sizeof hook);
  if (!slots().write(slot, code, sizeof code)) {
    *why = "the system forbids executable memory that was written";
    return nullptr;
  }
  std::unique_ptr<Patch> patch(new Patch());
  patch->target_ = target;
  patch->oneInstruction_ = firstLength >= kJumpBytes;
  patch->trampoline_ = slot;
  std::memcpy(&patch->before_, target, 8);
  uint8_t entry[8];
  std::memcpy(entry, target, 8);
  entry[0] = 0xe9;
  put32(entry + 1, static_cast<int64_t>(reinterpret_cast<uintptr_t>(slot) + kStubOffset - (address + kJumpBytes)));
  std::memcpy(&patch->after_, entry, 8);
  return patch;
}

namespace {
// What the process had mapped when a round of stores began; empty: look anew.
// Guarded by patchMutex.
std::vector<Mapping>& roundMappings() {
  static std::vector<Mapping>& maps = *new std::vector<Mapping>;
  return maps;
}
}  // namespace

// Callers hold the lock of all patching: protections of one page must not be
// changed by two.
bool Patch::store(uint64_t bytes, std::string* why) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(target_);
  const uintptr_t page = address & ~uintptr_t{4095};
  int protection = -1;
  const std::vector<Mapping>& round = roundMappings();
  for (const Mapping& m : round.empty() ? mappings() : round)
    if (m.begin <= address && address < m.end) protection = m.protection;
  if (protection < 0) {
    // The library was unloaded: nothing is left to restore.
    if (why) *why = "the function is not mapped any more";
    return false;
  }
  if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
    if (why) *why = "the system forbids changing code";
    return false;
  }
  // One store, with all before it done. Not __atomic_store_n: ThreadSanitizer follows that, and takes code for memory
  // that nobody writes to.
  asm volatile("xchgq %0, %1" : "+r"(bytes), "+m"(*reinterpret_cast<uint64_t*>(target_)) : : "memory");
  mprotect(reinterpret_cast<void*>(page), 4096, protection);
  // Other cores drop what they fetched of the old code.
  static const bool registered =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
  if (registered) syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
  return true;
}

// Arms patches in one round: entries become breakpoints, threads inside leave,
// the jumps are written.
class ArmingRound {
 public:
  static bool run(std::span<Patch* const> patches, std::string* why) {
    std::vector<Patch*> fresh;
    for (Patch* p : patches) {
      if (p->armed_) continue;
      uint64_t now;
      std::memcpy(&now, p->target_, 8);
      if (now != p->before_) {
        if (why) *why = "the entry of a function was changed by somebody else meanwhile";
        return false;
      }
      fresh.push_back(p);
    }
    std::vector<Patch*> delicate;
    for (Patch* p : fresh)
      if (!p->oneInstruction_) delicate.push_back(p);
    if (fresh.size() > 1) roundMappings() = mappings();
    struct Forget {
      ~Forget() { roundMappings().clear(); }
    } forget;
    bool ok = delicate.empty() || breakAndWait(delicate, why);
    size_t done = 0;
    while (ok && done < fresh.size() && (ok = fresh[done]->store(fresh[done]->after_, why)))
      fresh[done++]->armed_ = true;
    if (!ok)
      for (Patch* p : fresh) {
        p->store(p->before_, nullptr);
        p->armed_ = false;
      }
    return ok;
  }

 private:
  static bool breakAndWait(const std::vector<Patch*>& patches, std::string* why) {
    // They stay for good, for a handler may be reading them at any time.
    for (Patch* p : patches) {
      const Known* latest = known_.load(std::memory_order_relaxed);
      const Known* k = latest;
      while (k && (k->target != p->target_ || k->trampoline != p->trampoline_)) k = k->earlier;
      if (!k) known_.store(new Known{p->target_, p->trampoline_, latest}, std::memory_order_release);
    }
    struct sigaction current = {};
    sigaction(SIGTRAP, nullptr, &current);
    if (current.sa_sigaction != onTrap) {
      // It stays for good: a trap may be on its way when the round is over.
      struct sigaction action = {};
      action.sa_sigaction = onTrap;
      action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK;
      previous_ = current;
      sigaction(SIGTRAP, &action, nullptr);
    }
    for (Patch* p : patches)
      if (!p->store((p->before_ & ~uint64_t{0xff}) | 0xcc, why)) return false;
    return waitForThreads(why);
  }

  static void onTrap(int number, siginfo_t* info, void* context) {
    auto& rip = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
    for (const Known* k = known_.load(std::memory_order_acquire); k; k = k->earlier) {
      if (rip != static_cast<greg_t>(reinterpret_cast<uintptr_t>(k->target) + 1)) continue;
      // Is the breakpoint still there? Otherwise what replaced it is to run.
      const bool stands = __atomic_load_n(k->target, __ATOMIC_ACQUIRE) == 0xcc;
      rip = static_cast<greg_t>(stands ? reinterpret_cast<uintptr_t>(k->trampoline) + kStubOffset
                                       : reinterpret_cast<uintptr_t>(k->target));
      return;
    }
    if (previous_.sa_flags & SA_SIGINFO) {
      if (previous_.sa_sigaction) previous_.sa_sigaction(number, info, context);
    } else if (previous_.sa_handler != SIG_DFL && previous_.sa_handler != SIG_IGN) {
      previous_.sa_handler(number);
    } else if (previous_.sa_handler == SIG_DFL) {
      // Not ours: let it do what it would have done.
      signal(SIGTRAP, SIG_DFL);
      raise(SIGTRAP);
    }
  }

  struct ThreadTime {
    char state = '?';
    uint64_t ran = 0;  // ns on a processor
  };
  static bool threadTime(pid_t tid, ThreadTime* out) {
    char path[64], text[512];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE* f = std::fopen(path, "re");
    if (!f) return false;
    const size_t n = std::fread(text, 1, sizeof text - 1, f);
    std::fclose(f);
    text[n] = 0;
    const char* name = std::strrchr(text, ')');  // the name may hold anything
    unsigned long user = 0, system = 0;
    if (!name ||
        std::sscanf(name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &out->state, &user, &system) != 3)
      return true;
    // Coarse, but kernels without scheduler statistics have nothing finer.
    out->ran = (user + system) * (1'000'000'000ull / static_cast<unsigned long>(sysconf(_SC_CLK_TCK)));
    std::snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    if ((f = std::fopen(path, "re"))) {
      uint64_t ran = 0;
      if (std::fscanf(f, "%" SCNu64, &ran) == 1) out->ran = ran;
      std::fclose(f);
    }
    return true;
  }

  // A thread has left the first bytes of a function when it is asleep in the
  // kernel (it got there by a call) or when it has run for a while since the
  // breakpoints stand.
  static bool waitForThreads(std::string* why) {
    constexpr uint64_t kEnoughNs = 20'000;
    const pid_t self = static_cast<pid_t>(syscall(SYS_gettid));
    std::map<pid_t, uint64_t> waiting;
    if (DIR* tasks = opendir("/proc/self/task")) {
      while (const dirent* e = readdir(tasks)) {
        const pid_t tid = std::atoi(e->d_name);
        ThreadTime t;
        if (tid > 0 && tid != self && threadTime(tid, &t) && t.state != 'S' && t.state != 'D' && t.state != 'Z')
          waiting[tid] = t.ran;
      }
      closedir(tasks);
    }
    for (int round = 0; !waiting.empty(); ++round) {
      if (round == 5000) {
        if (why)
          *why = "thread " + std::to_string(waiting.begin()->first) + " stands still at an unknown place; try again";
        return false;
      }
      usleep(1000);
      for (auto it = waiting.begin(); it != waiting.end();) {
        ThreadTime t;
        const bool left = !threadTime(it->first, &t) || t.state == 'S' || t.state == 'D' || t.state == 'Z' ||
                          t.ran >= it->second + kEnoughNs;
        it = left ? waiting.erase(it) : std::next(it);
      }
    }
    return true;
  }

  struct Known {
    uint8_t* target;
    void* trampoline;
    const Known* earlier;
  };
  static inline std::atomic<const Known*> known_{nullptr};  // the latest; added under patchMutex
  static inline struct sigaction previous_ = {};
};

bool Patch::armAll(std::span<Patch* const> patches, std::string* why) {
  std::lock_guard lock(patchMutex());
  return ArmingRound::run(patches, why);
}

bool Patch::disarm(std::string* why) {
  std::lock_guard lock(patchMutex());
  if (!armed_) return true;
  uint64_t now;
  std::memcpy(&now, target_, 8);
  if (now != after_) {
    if (why) *why = "another hook was put on top of ours; it stays";
    return false;
  }
  armed_ = !store(before_, why);
  return !armed_;
}

}  // namespace sonde::platform::nvidia
