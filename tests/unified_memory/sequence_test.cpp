// SPDX-License-Identifier: Apache-2.0
// The record list of one small program, as a real card gives it: 1 MiB filled
// by the CPU, set by the device, one byte of each page read by the CPU.
#include "um.h"

namespace um {
namespace {

struct Line {
  uint32_t kind;
  uint64_t value;  // faults of the CPU: not compared
  uint64_t offset;
  uint32_t flags;
  bool operator==(const Line&) const = default;
};
void PrintTo(const Line& l, std::ostream* out) {
  *out << "kind " << l.kind << " value " << l.value << " at +0x" << std::hex << l.offset << std::dec << " flags "
       << l.flags;
}

class Sequence : public UnifiedMemory {
 protected:
  std::vector<Line> lines(const char* base, uint32_t kind) {
    std::vector<Line> out;
    for (const Counter& r : records(kind))
      out.push_back({kind, kind == kCpuFault ? 0 : r.value, r.address - reinterpret_cast<uint64_t>(base), r.flags});
    return out;
  }
};

TEST_F(Sequence, OneMebibyteWrittenSetAndRead) {
  char* p = managed(kMiB);
  for (size_t i = 0; i < kMiB; ++i) store(p + i, 7);
  // Each fault of a write brings as much again as is there: 64 K, 64 K, 128 K, 256 K, 512 K.
  const std::vector<Line> writes = {{kCpuFault, 0, 0x0, 2},
                                    {kCpuFault, 0, 0x10000, 2},
                                    {kCpuFault, 0, 0x20000, 2},
                                    {kCpuFault, 0, 0x40000, 2},
                                    {kCpuFault, 0, 0x80000, 2}};
  EXPECT_EQ(writes, lines(p, kCpuFault));
  EXPECT_TRUE(records(kHtoD).empty());
  forget();

  deviceFill(p, kMiB, 1);
  // Three batches of 64 pages, the third of which makes the rest worth fetching.
  const std::vector<Line> toDevice = {
      {kHtoD, 262144, 0x0, 2}, {kHtoD, 262144, 0x40000, 2}, {kHtoD, 262144, 0x80000, 2}, {kHtoD, 262144, 0xc0000, 3}};
  EXPECT_EQ(toDevice, lines(p, kHtoD));
  const std::vector<Line> deviceFaults = {
      {kGpuFault, 4, 0x0, 2}, {kGpuFault, 4, 0x40000, 2}, {kGpuFault, 4, 0x80000, 2}};
  EXPECT_EQ(deviceFaults, lines(p, kGpuFault));
  forget();

  for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(1, load(p + i));
  std::vector<Line> reads = writes;
  for (Line& l : reads) l.flags = 1;
  EXPECT_EQ(reads, lines(p, kCpuFault));
  const std::vector<Line> back = {{kDtoH, 4096, 0x0, 2},      {kDtoH, 61440, 0x1000, 3},   {kDtoH, 4096, 0x10000, 2},
                                  {kDtoH, 61440, 0x11000, 3}, {kDtoH, 4096, 0x20000, 2},   {kDtoH, 126976, 0x21000, 3},
                                  {kDtoH, 4096, 0x40000, 2},  {kDtoH, 258048, 0x41000, 3}, {kDtoH, 4096, 0x80000, 2},
                                  {kDtoH, 520192, 0x81000, 3}};
  EXPECT_EQ(back, lines(p, kDtoH));
}

// Writes to the first byte of each of n pages, in order, by one thread.
void kernelFill(char* p, uint32_t n) {
  const char* ptx = R"(
.version 8.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 p, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 5;
LOOP:
  st.global.u8 [%rd1], %r2;
  add.s64 %rd1, %rd1, 4096;
  sub.s32 %r1, %r1, 1;
  setp.gt.s32 %p1, %r1, 0;
  @%p1 bra LOOP;
  ret;
}
)";
  CUmodule module;
  CUfunction function;
  ASSERT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, ptx));
  ASSERT_EQ(CUDA_SUCCESS, cuModuleGetFunction(&function, module, "fill"));
  void* parameters[] = {&p, &n};
  ASSERT_EQ(CUDA_SUCCESS, cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  ASSERT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
}

TEST_F(Sequence, FaultsOfAKernelComePageByPage) {
  char* p = managed(kMiB);
  fill(p, kMiB, 3);
  forget();
  kernelFill(p, kMiB / kPage);
  const std::vector<Line> faults = {{kGpuFault, 1, 0x0, 2},
                                    {kGpuFault, 1, 0x10000, 2},
                                    {kGpuFault, 1, 0x20000, 2},
                                    {kGpuFault, 1, 0x40000, 2},
                                    {kGpuFault, 1, 0x80000, 2}};
  EXPECT_EQ(faults, lines(p, kGpuFault));
  uint64_t bytes = 0;
  for (const Counter& r : records(kHtoD)) bytes += r.value;
  EXPECT_EQ(kMiB, bytes);
  for (size_t i = 0; i < kMiB; i += kPage) ASSERT_EQ(5, load(p + i));
}

// The three that follow are as a card did them.
TEST_F(Sequence, AWalkBackwardsByTheCpu) {
  char* p = managed(4 * kMiB);
  const CUmemLocation gpu = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  ASSERT_EQ(CUDA_SUCCESS, cuMemPrefetchAsync_v2(reinterpret_cast<CUdeviceptr>(p), 4 * kMiB, gpu, 0, nullptr));
  ASSERT_EQ(CUDA_SUCCESS, cuCtxSynchronize());
  EXPECT_TRUE(records().empty());  // nothing had contents
  for (size_t i = kMiB; i != 0; i -= kPage) ASSERT_EQ(0, load(p + i - kPage));
  const std::vector<Line> faults = {{kCpuFault, 0, 0xff000, 1},
                                    {kCpuFault, 0, 0xef000, 1},
                                    {kCpuFault, 0, 0xdf000, 1},
                                    {kCpuFault, 0, 0xbf000, 1},
                                    {kCpuFault, 0, 0x7f000, 1}};
  EXPECT_EQ(faults, lines(p, kCpuFault));
  const std::vector<Line> down = {{kDtoH, 0xf000, 0xf0000, 3},  {kDtoH, 0x1000, 0xff000, 2},
                                  {kDtoH, 0xf000, 0xe0000, 3},  {kDtoH, 0x1000, 0xef000, 2},
                                  {kDtoH, 0x1f000, 0xc0000, 3}, {kDtoH, 0x1000, 0xdf000, 2},
                                  {kDtoH, 0x3f000, 0x80000, 3}, {kDtoH, 0x1000, 0xbf000, 2},
                                  {kDtoH, 0x7f000, 0x0, 3},     {kDtoH, 0x1000, 0x7f000, 2}};
  EXPECT_EQ(down, lines(p, kDtoH));
}

TEST_F(Sequence, APageWithinSixtyFourKibibytes) {
  char* p = managed(2 * kMiB);
  fill(p, 2 * kMiB, 1);
  forget();
  kernelFill(p + 0x48000, 1);
  EXPECT_EQ((std::vector<Line>{{kGpuFault, 1, 0x48000, 2}}), lines(p, kGpuFault));
  EXPECT_EQ((std::vector<Line>{{kHtoD, 0x8000, 0x40000, 3}, {kHtoD, 0x1000, 0x48000, 2}, {kHtoD, 0x7000, 0x49000, 3}}),
            lines(p, kHtoD));
}

// What is there already counts for how much comes along.
TEST_F(Sequence, AWalkOverABlockThatIsPartlyThere) {
  char* p = managed(2 * kMiB);
  fill(p, 2 * kMiB, 1);
  for (size_t at : {0x48000, 0x0, 0x1f0000}) kernelFill(p + at, 1);
  forget();
  kernelFill(p, 512);
  const std::vector<Line> faults = {{kGpuFault, 1, 0x10000, 2},
                                    {kGpuFault, 1, 0x20000, 2},
                                    {kGpuFault, 1, 0x50000, 2},
                                    {kGpuFault, 1, 0x80000, 2},
                                    {kGpuFault, 1, 0x100000, 2}};
  EXPECT_EQ(faults, lines(p, kGpuFault));
  uint64_t up = 0;
  for (const Counter& r : records(kHtoD)) up += r.value;
  EXPECT_EQ(2 * kMiB - 3 * 0x10000, up);
}

}  // namespace
}  // namespace um
