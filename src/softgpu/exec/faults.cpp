// SPDX-License-Identifier: Apache-2.0
#include "softgpu/exec/faults.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <csignal>
#include <cstdlib>
#include <mutex>

#include "softgpu/exec/program_impl.h"
#include "softgpu/memory/address_space.h"

namespace sonde::softgpu::exec {

namespace {

struct sigaction previousSegv, previousBus;
std::atomic<FaultHook> faultHook{nullptr};
uint64_t spaceBegin = 0, spaceEnd = 0, deviceBegin = 0;

thread_local uint64_t faultAddress = 0;
thread_local bool faultWrite = false;
thread_local std::jmp_buf* guarded = nullptr;

[[noreturn]] void afterGuardedFault() { _longjmp(*guarded, 1); }

// The faulting instruction "calls" this: on the warp's own stack, as if from
// the code that faulted.
[[noreturn]] void afterFault() {
  Cta* cta = currentCta;
  uint64_t address = faultAddress;
  if (address >= deviceBegin && address < spaceEnd) address -= deviceBegin - spaceBegin;
  raiseFault(cta->running, kErrorIllegalAddress, 0, address, faultWrite ? kWriteTo : kReadOf);
}

// A handler that came after this one and calls it for what it does not know
// would be called again from here, for ever. Such a call is about the same
// signal frame, further down its stack. A handler may also leave with a jump, so
// that nothing can be reset after it; the next signal, on the same frame by
// chance, then starts where this one did.
struct Chained {
  void* context;
  uintptr_t depth;
};
thread_local Chained chained = {nullptr, 0};

void chain(int number, siginfo_t* info, void* context, uintptr_t depth) {
  struct sigaction& previous = number == SIGSEGV ? previousSegv : previousBus;
  if (context == chained.context && depth < chained.depth) {
    struct sigaction fatal{};
    fatal.sa_handler = SIG_DFL;
    sigaction(number, &fatal, nullptr);
    return;
  }
  chained = {context, depth};
  const struct sigaction now = previous;
  const bool function = (now.sa_flags & SA_SIGINFO) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
  if (function) {
    if ((now.sa_flags & SA_RESETHAND) != 0) {  // for this once
      previous.sa_flags = 0;
      previous.sa_handler = SIG_DFL;
    }
    if ((now.sa_flags & SA_SIGINFO) != 0)
      now.sa_sigaction(number, info, context);
    else
      now.sa_handler(number);
    return;
  }
  const bool sent = info->si_code <= 0;  // by kill() and the like: no access faults again
  if (now.sa_handler == SIG_IGN && sent) return;
  // The default, also for an access that is ignored (the system insists): put it
  // back and let the access fault again.
  struct sigaction fatal{};
  fatal.sa_handler = SIG_DFL;
  sigaction(number, &fatal, nullptr);
  if (sent) raise(number);
}

void onFault(int number, siginfo_t* info, void* context) {
  const int savedErrno = errno;
  auto* uc = static_cast<ucontext_t*>(context);
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  const bool write = (uc->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  const bool ours = info->si_code > 0 && address >= spaceBegin && address < spaceEnd;
  Cta* cta = currentCta;
  if (ours)
    if (FaultHook hook = faultHook.load(std::memory_order_acquire)) {
      const auto pc = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RIP]);
      const int device = cta && cta->running ? static_cast<int>(cta->grid->request->deviceOrdinal) : -1;
      if (hook(address, write, pc, device)) {
        errno = savedErrno;
        return;
      }
    }
  const bool inKernel = cta && cta->running;
  if ((inKernel || guarded) && info->si_code > 0) {
    faultAddress = address;
    faultWrite = write;
    auto sp = static_cast<uint64_t>(uc->uc_mcontext.gregs[REG_RSP]);
    sp = ((sp - 1024) & ~uint64_t{63}) - 8;  // clear of a red zone, aligned as after a call
    uc->uc_mcontext.gregs[REG_RSP] = static_cast<greg_t>(sp);
    uc->uc_mcontext.gregs[REG_RIP] =
        static_cast<greg_t>(reinterpret_cast<uint64_t>(inKernel ? &afterFault : &afterGuardedFault));
    errno = savedErrno;
    return;
  }
  chain(number, info, context, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
  errno = savedErrno;
}

struct sigaction handlerAction() {
  struct sigaction action{};
  action.sa_sigaction = &onFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  return action;
}

struct AlternateStack {
  void* memory = nullptr;
  size_t bytes = 64 * 1024;
  AlternateStack() {
    stack_t now{};
    if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return;  // somebody's is there already
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      memory = nullptr;
      return;
    }
    stack_t s{};
    s.ss_sp = memory;
    s.ss_size = bytes;
    sigaltstack(&s, nullptr);
  }
  ~AlternateStack() {
    if (!memory) return;
    stack_t s{};
    s.ss_flags = SS_DISABLE;
    sigaltstack(&s, nullptr);
    munmap(memory, bytes);
  }
};

}  // namespace

void setFaultHook(FaultHook hook) { faultHook.store(hook, std::memory_order_release); }

void prepareThreadForFaults() {
  static std::once_flag once;
  std::call_once(once, [] {
    const auto& space = memory::AddressSpace::get();
    spaceBegin = space.all.base;
    deviceBegin = space.all.base + static_cast<uint64_t>(space.deviceDelta);
    spaceEnd = deviceBegin + space.all.size;
    const struct sigaction action = handlerAction();
    sigaction(SIGSEGV, &action, &previousSegv);
    sigaction(SIGBUS, &action, &previousBus);
  });
  thread_local AlternateStack stack;
  (void)stack;
}

bool touchGuarded(void (*touch)(void*), void* argument, uint64_t* address) {
  prepareThreadForFaults();
  std::jmp_buf here;
  std::jmp_buf* const before = guarded;
  if (_setjmp(here) == 0) {
    guarded = &here;
    touch(argument);
    guarded = before;
    return true;
  }
  guarded = before;
  if (address) *address = faultAddress;
  return false;
}

void reassertFaultHandlers() {
  static std::mutex& mutex = *new std::mutex;
  for (int number : {SIGSEGV, SIGBUS}) {
    const auto ours = [](const struct sigaction& a) { return (a.sa_flags & SA_SIGINFO) && a.sa_sigaction == &onFault; };
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) != 0 || ours(now)) continue;
    std::lock_guard lock(mutex);  // another thread may do the same
    if (sigaction(number, nullptr, &now) != 0 || ours(now)) continue;
    (number == SIGSEGV ? previousSegv : previousBus) = now;
    struct sigaction action = handlerAction();
    sigaction(number, &action, nullptr);
  }
}

void keepFaultHandlers(uint64_t now) {
  static std::atomic<uint64_t> last{0};
  const uint64_t before = last.load(std::memory_order_relaxed);
  if (now - before < kHandlersKeptNs && now >= before) return;
  last.store(now, std::memory_order_relaxed);
  reassertFaultHandlers();
}

void leaveWarp(WarpState* warp) {
  Cta& cta = *warp->cta;
  cta.dead = true;
  if (cta.fibers) {
    WarpControl& c = cta.control[warp->warpid];
    c.status = WarpStatus::done;
    switchFiber(c.fiber, cta.scheduler, true);
    __builtin_unreachable();  // nobody switches back to a warp that left
  }
  _longjmp(cta.escape, 1);
}

void raiseFault(WarpState* warp, int32_t error, uint32_t lanes, uint64_t address, const char* what) {
  Cta& cta = *warp->cta;
  recordFault(*cta.grid, *warp, error, lanes, address, what);
  leaveWarp(warp);
}

}  // namespace sonde::softgpu::exec
