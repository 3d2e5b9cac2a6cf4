// SPDX-License-Identifier: Apache-2.0
// A program with managed memory whose faults and transfers are known:
//
//   once       1 MiB: written by the CPU (5 faults: 64, 64, 128, 256, 512 KiB),
//              each page written by kernel `bump` (5 faults, 1 MiB to the device),
//              one byte of each page read by the CPU (5 faults, 1 MiB back)
//   pingpong   one page, CPU and kernel in turn, six times
//   readonly   64 KiB written once, then read by kernel and CPU in turn, four times
//   static     64 KiB of a managed variable of the module: written, bumped, read
//   room       6 MiB written and bumped on a device with room for 4
//   noroom     1 MiB written and bumped on a device without room
//   far        64 KiB that the device may reach over to, bumped three times
//   io         64 KiB that are read from a file, bumped, written to it and read again
//   prefetch   like once, with cuMemPrefetchAsync both ways: no faults after the first 5
#include <cuda.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr size_t kPage = 4096;

constexpr const char* kPtx = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .global .attribute(.managed) .align 4096 .b8 area[65536];
.visible .entry bump(.param .u64 p, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 9;
LOOP:
  st.global.u8 [%rd1], %r2;
  add.s64 %rd1, %rd1, 4096;
  sub.s32 %r1, %r1, 1;
  setp.gt.s32 %p1, %r1, 0;
  @%p1 bra LOOP;
  ret;
}
.visible .entry look(.param .u64 p, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r3, 0;
LOOP:
  ld.global.u8 %r2, [%rd1];
  add.s32 %r3, %r3, %r2;
  add.s64 %rd1, %rd1, 4096;
  sub.s32 %r1, %r1, 1;
  setp.gt.s32 %p1, %r1, 0;
  @%p1 bra LOOP;
  setp.eq.s32 %p1, %r3, 1;
  @%p1 trap;
  ret;
}
)";

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "managed: %s answered %d\n", what, result);
  std::exit(1);
}

// Plain symbols with lines of their own.
__attribute__((noinline)) void writePages(volatile char* p, size_t bytes) {
  for (size_t i = 0; i < bytes; i += kPage) p[i] = 7;  // the faulting line of writes
}
__attribute__((noinline)) int readPages(const volatile char* p, size_t bytes) {
  int sum = 0;
  for (size_t i = 0; i < bytes; i += kPage) sum += p[i];  // the faulting line of reads
  return sum;
}

// Their system calls are what touches the pages.
__attribute__((noinline)) bool fromFile(char* p, size_t bytes, std::FILE* file) {
  std::rewind(file);
  return std::fread(p, 1, bytes, file) == bytes;
}
__attribute__((noinline)) bool toFile(const char* p, size_t bytes, std::FILE* file) {
  return pwrite(fileno(file), p, bytes, 0) == static_cast<ssize_t>(bytes);
}
__attribute__((noinline)) bool inPieces(char* p, size_t bytes, std::FILE* file) {
  const iovec pieces[] = {{p, 10}, {p + 10, bytes - 10}};
  return lseek(fileno(file), 0, SEEK_SET) == 0 && readv(fileno(file), pieces, 2) == static_cast<ssize_t>(bytes);
}

CUfunction bump, look;

void run(CUfunction function, CUdeviceptr p, size_t bytes) {
  uint32_t n = static_cast<uint32_t>(bytes / kPage);
  void* parameters[] = {&p, &n};
  check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
  check(cuCtxSynchronize(), "cuCtxSynchronize");
}

// Leaves `bytes` of the device for managed memory.
void leave(size_t bytes) {
  size_t free = 0, total = 0;
  CUdeviceptr filler = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  check(cuMemAlloc(&filler, free - bytes), "cuMemAlloc");
}

}  // namespace

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "once";
  CUcontext context;
  CUmodule module;
  check(cuInit(0), "cuInit");
  check(cuCtxCreate_v4(&context, nullptr, 0, 0), "cuCtxCreate");
  check(cuModuleLoadData(&module, kPtx), "cuModuleLoadData");
  check(cuModuleGetFunction(&bump, module, "bump"), "cuModuleGetFunction");
  check(cuModuleGetFunction(&look, module, "look"), "cuModuleGetFunction");
  const size_t bytes = std::strcmp(how, "pingpong") == 0 ? kPage
                       : std::strcmp(how, "readonly") == 0 || std::strcmp(how, "static") == 0 ||
                               std::strcmp(how, "far") == 0 || std::strcmp(how, "io") == 0
                           ? 16 * kPage
                       : std::strcmp(how, "room") == 0 ? 6 * 256 * kPage
                                                       : 256 * kPage;
  CUdeviceptr p = 0;
  if (std::strcmp(how, "room") == 0) leave(4 * 256 * kPage);
  if (std::strcmp(how, "noroom") == 0) leave(0);
  const bool variable = std::strcmp(how, "static") == 0;
  if (variable)
    check(cuModuleGetGlobal(&p, nullptr, module, "area"), "cuModuleGetGlobal");
  else
    check(cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
  auto* host = reinterpret_cast<volatile char*>(p);
  const CUmemLocation gpu = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}, cpu = {CU_MEM_LOCATION_TYPE_HOST, {0}};
  int sum = 0, expected = 0;
  if (std::strcmp(how, "pingpong") == 0) {
    for (int i = 0; i < 6; ++i) {
      writePages(host, bytes);
      run(bump, p, bytes);
    }
    sum = readPages(host, bytes);
    expected = 9;
  } else if (std::strcmp(how, "readonly") == 0) {
    writePages(host, bytes);
    for (int i = 0; i < 4; ++i) {
      run(look, p, bytes);
      sum += readPages(host, bytes);
    }
    expected = 4 * 16 * 7;
  } else if (std::strcmp(how, "room") == 0 || std::strcmp(how, "noroom") == 0) {
    writePages(host, bytes);
    run(bump, p, bytes);
  } else if (std::strcmp(how, "far") == 0) {
    writePages(host, bytes);
    check(cuMemAdvise_v2(p, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu), "cuMemAdvise");
    for (int i = 0; i < 3; ++i) run(bump, p, bytes);
  } else if (std::strcmp(how, "io") == 0) {
    char* memory = reinterpret_cast<char*>(p);
    std::FILE* file = std::tmpfile();
    for (size_t i = 0; file && i < bytes; ++i) std::fputc(3, file);
    bool right = file && fromFile(memory, bytes, file);
    run(bump, p, bytes);
    right = right && toFile(memory, bytes, file);
    run(bump, p, bytes);
    right = right && inPieces(memory, bytes, file);
    for (size_t i = 0; i < bytes; i += kPage) sum += memory[i] + memory[i + 1];
    if (!right) std::perror("managed: io");
    expected = right ? 16 * (9 + 3) : -1;
  } else {
    const bool prefetch = std::strcmp(how, "prefetch") == 0;
    writePages(host, bytes);
    if (prefetch) check(cuMemPrefetchAsync_v2(p, bytes, gpu, 0, nullptr), "cuMemPrefetchAsync");
    run(bump, p, bytes);
    if (prefetch) check(cuMemPrefetchAsync_v2(p, bytes, cpu, 0, nullptr), "cuMemPrefetchAsync");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    sum = readPages(host, bytes);
    expected = static_cast<int>(bytes / kPage) * 9;
  }
  if (!variable) check(cuMemFree(p), "cuMemFree");
  if (sum != expected) std::fprintf(stderr, "managed: %d instead of %d\n", sum, expected);
  return sum == expected ? 0 : 1;
}
