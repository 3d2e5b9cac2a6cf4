// SPDX-License-Identifier: Apache-2.0
// A program with managed memory whose faults and transfers are known:
//
//   once       1 MiB: written by the CPU (5 faults: 64, 64, 128, 256, 512 KiB),
//              each page written by kernel `bump` (5 faults, 1 MiB to the device),
//              one byte of each page read by the CPU (5 faults, 1 MiB back)
//   pingpong   one page, CPU and kernel in turn, six times
//   readonly   64 KiB written once, then read by kernel and CPU in turn, four times
//   prefetch   like once, with cuMemPrefetchAsync both ways: no faults after the first 5
#include <cuda.h>

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

CUfunction bump, look;

void run(CUfunction function, CUdeviceptr p, size_t bytes) {
  uint32_t n = static_cast<uint32_t>(bytes / kPage);
  void* parameters[] = {&p, &n};
  check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
  check(cuCtxSynchronize(), "cuCtxSynchronize");
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
  const size_t bytes = std::strcmp(how, "pingpong") == 0   ? kPage
                       : std::strcmp(how, "readonly") == 0 ? 16 * kPage
                                                           : 256 * kPage;
  CUdeviceptr p = 0;
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
  } else {
    const bool prefetch = std::strcmp(how, "prefetch") == 0;
    writePages(host, bytes);
    if (prefetch) check(cuMemPrefetchAsync_v2(p, bytes, gpu, 0, nullptr), "cuMemPrefetchAsync");
    run(bump, p, bytes);
    if (prefetch) check(cuMemPrefetchAsync_v2(p, bytes, cpu, 0, nullptr), "cuMemPrefetchAsync");
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    sum = readPages(host, bytes);
    expected = 256 * 9;
  }
  check(cuMemFree(p), "cuMemFree");
  if (sum != expected) std::fprintf(stderr, "managed: %d instead of %d\n", sum, expected);
  return sum == expected ? 0 : 1;
}
