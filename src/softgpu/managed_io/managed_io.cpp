// SPDX-License-Identifier: Apache-2.0
//
// A system call cannot wait for a page that a page protection closes: it answers
// EFAULT. `sonde run` preloads these in front of libc's functions. Before the
// call they ask the software driver for the pages, as the program's own touch
// would, and record the caller as who touched them.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Set by the driver when pages of managed memory begin to have a residence.
// Answers 0 for what is no managed memory.
EXPORT int (*sondeManagedReach)(const void* data, size_t bytes, int write, const void* pc);
int (*sondeManagedReach)(const void* data, size_t bytes, int write, const void* pc) = nullptr;

namespace {

constexpr int kAttempts = 32;  // a kernel may take a page away again before the call comes to it

// The instruction that called the exported function, not the one after it.
#define CALLER (static_cast<const char*>(__builtin_return_address(0)) - 1)
#define NEXT(function) static auto* const next = reinterpret_cast<decltype(&function)>(dlsym(RTLD_NEXT, #function))

bool reach(const void* data, size_t bytes, bool write, const void* pc) {
  auto* const driver = __atomic_load_n(&sondeManagedReach, __ATOMIC_ACQUIRE);
  return driver != nullptr && bytes != 0 && driver(data, bytes, write ? 1 : 0, pc) != 0;
}

bool reach(const iovec* pieces, int count, bool write, const void* pc) {
  if (__atomic_load_n(&sondeManagedReach, __ATOMIC_ACQUIRE) == nullptr) return false;
  bool any = false;
  for (int i = 0; i < count; i++) any = reach(pieces[i].iov_base, pieces[i].iov_len, write, pc) || any;
  return any;
}

template <class Reach, class Call>
ssize_t guarded(Reach again, Call call) {
  for (int attempt = 0;; attempt++) {
    const int before = errno;
    const bool managed = again();
    errno = before;
    const ssize_t result = call();
    if (!managed || result >= 0 || errno != EFAULT || attempt == kAttempts) return result;
    errno = before;
  }
}

}  // namespace

// `into`: the call writes to the memory.
#define GUARD_BUFFER(function, data, bytes, into, ...)                                \
  {                                                                                   \
    NEXT(function);                                                                   \
    const void* const pc = CALLER;                                                    \
    return guarded([&] { return reach(data, static_cast<size_t>(bytes), into, pc); }, \
                   [&] { return next(__VA_ARGS__); });                                \
  }
#define GUARD_PIECES(function, pieces, count, into, ...)                                               \
  {                                                                                                    \
    NEXT(function);                                                                                    \
    const void* const pc = CALLER;                                                                     \
    return guarded([&] { return reach(pieces, count, into, pc); }, [&] { return next(__VA_ARGS__); }); \
  }

EXPORT ssize_t read(int fd, void* data, size_t bytes)
    GUARD_BUFFER(read, data, bytes, true, fd, data, bytes) EXPORT ssize_t write(int fd, const void* data, size_t bytes)
        GUARD_BUFFER(write, data, bytes, false, fd, data, bytes) EXPORT ssize_t
    pread(int fd, void* data, size_t bytes, off_t at)
        GUARD_BUFFER(pread, data, bytes, true, fd, data, bytes, at) EXPORT ssize_t
    pread64(int fd, void* data, size_t bytes, off64_t at)
        GUARD_BUFFER(pread64, data, bytes, true, fd, data, bytes, at) EXPORT ssize_t
    pwrite(int fd, const void* data, size_t bytes, off_t at)
        GUARD_BUFFER(pwrite, data, bytes, false, fd, data, bytes, at) EXPORT ssize_t
    pwrite64(int fd, const void* data, size_t bytes, off64_t at)
        GUARD_BUFFER(pwrite64, data, bytes, false, fd, data, bytes, at) EXPORT ssize_t
    recv(int fd, void* data, size_t bytes, int flags)
        GUARD_BUFFER(recv, data, bytes, true, fd, data, bytes, flags) EXPORT ssize_t
    send(int fd, const void* data, size_t bytes, int flags)
        GUARD_BUFFER(send, data, bytes, false, fd, data, bytes, flags) EXPORT ssize_t
    readv(int fd, const iovec* pieces, int count)
        GUARD_PIECES(readv, pieces, count, true, fd, pieces, count) EXPORT ssize_t
    writev(int fd, const iovec* pieces, int count)
        GUARD_PIECES(writev, pieces, count, false, fd, pieces, count) EXPORT ssize_t
    preadv(int fd, const iovec* pieces, int count, off_t at)
        GUARD_PIECES(preadv, pieces, count, true, fd, pieces, count, at) EXPORT ssize_t
    pwritev(int fd, const iovec* pieces, int count, off_t at)
        GUARD_PIECES(pwritev, pieces, count, false, fd, pieces, count, at)

    // Those of the C library read and write large pieces without a copy of their own.
    EXPORT size_t fread(void* data, size_t size, size_t count, FILE* file) {
  NEXT(fread);
  reach(data, size * count, true, CALLER);
  return next(data, size, count, file);
}
EXPORT size_t fread_unlocked(void* data, size_t size, size_t count, FILE* file) {
  NEXT(fread_unlocked);
  reach(data, size * count, true, CALLER);
  return next(data, size, count, file);
}
EXPORT size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  NEXT(fwrite);
  reach(data, size * count, false, CALLER);
  return next(data, size, count, file);
}
EXPORT size_t fwrite_unlocked(const void* data, size_t size, size_t count, FILE* file) {
  NEXT(fwrite_unlocked);
  reach(data, size * count, false, CALLER);
  return next(data, size, count, file);
}

// What -D_FORTIFY_SOURCE makes of them.
extern "C" {
ssize_t __read_chk(int, void*, size_t, size_t);
ssize_t __pread_chk(int, void*, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void*, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void*, size_t, size_t, int);
size_t __fread_chk(void*, size_t, size_t, size_t, FILE*);
}
EXPORT ssize_t __read_chk(int fd, void* data, size_t bytes, size_t room)
    GUARD_BUFFER(__read_chk, data, bytes, true, fd, data, bytes, room) EXPORT ssize_t
    __pread_chk(int fd, void* data, size_t bytes, off_t at, size_t room)
        GUARD_BUFFER(__pread_chk, data, bytes, true, fd, data, bytes, at, room) EXPORT ssize_t
    __pread64_chk(int fd, void* data, size_t bytes, off64_t at, size_t room)
        GUARD_BUFFER(__pread64_chk, data, bytes, true, fd, data, bytes, at, room) EXPORT ssize_t
    __recv_chk(int fd, void* data, size_t bytes, size_t room, int flags)
        GUARD_BUFFER(__recv_chk, data, bytes, true, fd, data, bytes, room, flags) EXPORT size_t
    __fread_chk(void* data, size_t room, size_t size, size_t count, FILE* file) {
  NEXT(__fread_chk);
  reach(data, size * count, true, CALLER);
  return next(data, room, size, count, file);
}
