// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/reports/stats.h"
#include "sample.h"

namespace sonde::reports {
namespace {

using test::sampleTrace;

std::string text(const std::string& name, const Options& options = {}, TimeUnit unit = TimeUnit::Auto) {
  const Trace trace = sampleTrace();
  Table table;
  std::string error;
  EXPECT_TRUE(makeReport(name, trace, options, &table, &error)) << error;
  return renderText(table, {unit, false, 0});
}

std::string csv(const std::string& name, const Options& options = {}) {
  const Trace trace = sampleTrace();
  Table table;
  std::string error;
  EXPECT_TRUE(makeReport(name, trace, options, &table, &error)) << error;
  return renderCsv(table);
}

TEST(Stats, OfFourValues) {
  std::vector<uint64_t> v = {4, 1, 3, 2};
  const Stats s = computeStats(v);
  EXPECT_EQ(s.count, 4u);
  EXPECT_EQ(s.total, 10u);
  EXPECT_EQ(s.min, 1u);
  EXPECT_EQ(s.max, 4u);
  EXPECT_DOUBLE_EQ(s.average, 2.5);
  EXPECT_DOUBLE_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.deviation, std::sqrt(5.0 / 3.0));
}

TEST(Stats, OfOneAndOfNone) {
  std::vector<uint64_t> one = {7}, none;
  EXPECT_DOUBLE_EQ(computeStats(one).deviation, 0);
  EXPECT_DOUBLE_EQ(computeStats(one).median, 7);
  EXPECT_EQ(computeStats(none).count, 0u);
}

TEST(Names, Demangled) {
  EXPECT_EQ(demangle("_Z5saxpyifPfS_"), "saxpy(int, float, float*, float*)");
  EXPECT_EQ(demangle("plain_c_kernel"), "plain_c_kernel");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
}

TEST(Names, Base) {
  EXPECT_EQ(baseName("saxpy(int, float, float*, float*)"), "saxpy");
  EXPECT_EQ(baseName("void lib::scan<int, 4>(int*)"), "scan");
  EXPECT_EQ(baseName("plain_c_kernel"), "plain_c_kernel");
  EXPECT_EQ(baseName("void (anonymous namespace)::deep::k<std::less<int> >(int)"), "k");
  EXPECT_EQ(baseName("void a<int>::b<float>::c(float, int (*)(int))"), "c");
  EXPECT_EQ(baseName("Functor::operator()(int) const"), "operator()");
  EXPECT_EQ(baseName(""), "");
}

TEST(Names, ApiVersionsAreDropped) {
  EXPECT_EQ(apiName("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(apiName("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel_ptsz");
  EXPECT_EQ(apiName("cudaGetDeviceProperties_v2_v12000"), "cudaGetDeviceProperties_v2");
  EXPECT_EQ(apiName("cuMemAlloc_v2"), "cuMemAlloc_v2");
  EXPECT_EQ(apiName(""), "");
}

TEST(Formats, TimesChangeUnitWhereTheyRound) {
  EXPECT_EQ(formatTime(0, TimeUnit::Auto), "0 ns");
  EXPECT_EQ(formatTime(999, TimeUnit::Auto), "999 ns");
  EXPECT_EQ(formatTime(12.5, TimeUnit::Auto), "12.5 ns");
  EXPECT_EQ(formatTime(1000, TimeUnit::Auto), "1.000 us");
  EXPECT_EQ(formatTime(999'999, TimeUnit::Auto), "999.999 us");
  EXPECT_EQ(formatTime(999'999.6, TimeUnit::Auto), "1.000 ms");
  EXPECT_EQ(formatTime(1'234'567, TimeUnit::Auto), "1.235 ms");
  EXPECT_EQ(formatTime(61e9, TimeUnit::Auto), "61.000 s");
  EXPECT_EQ(formatTime(1'234'567, TimeUnit::Ns), "1,234,567");
  EXPECT_EQ(formatTime(1'234'567.5, TimeUnit::Ns), "1,234,567.5");
  EXPECT_EQ(formatTime(1'234'567, TimeUnit::Us), "1,234.567");
  EXPECT_EQ(formatTime(1'234'567, TimeUnit::Ms), "1.234567");
}

TEST(Formats, BytesAndCounts) {
  EXPECT_EQ(formatBytes(999), "999 B");
  EXPECT_EQ(formatBytes(1000), "1.000 kB");
  EXPECT_EQ(formatBytes(4'000'000), "4.000 MB");
  EXPECT_EQ(formatBytes(40e9), "40.000 GB");
  EXPECT_EQ(formatCount(1), "1");
  EXPECT_EQ(formatCount(1234), "1,234");
  EXPECT_EQ(formatCount(123456789), "123,456,789");
  EXPECT_EQ(csvField("plain"), "plain");
  EXPECT_EQ(csvField("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
}

// Worked out by hand from the times at the head of sample.h.
TEST(Reports, ApiSummary) {
  EXPECT_EQ(text("cuda_api_sum"), R"(** CUDA API Summary (cuda_api_sum)

 Time (%)  Total Time  Num Calls        Avg        Med        Min         Max     StdDev  Name
 --------  ----------  ---------  ---------  ---------  ---------  ----------  ---------  ----------------
     87.6  170.000 us          2  85.000 us  85.000 us  50.000 us  120.000 us  49.497 us  cudaMemcpy
      6.2   12.000 us          3   4.000 us   4.000 us   3.000 us    5.000 us   1.000 us  cudaLaunchKernel
      5.2   10.000 us          1  10.000 us  10.000 us  10.000 us   10.000 us       0 ns  cudaMalloc
      1.0    2.000 us          1   2.000 us   2.000 us   2.000 us    2.000 us       0 ns  cudaMemset

)");
}

TEST(Reports, KernelSummary) {
  EXPECT_EQ(text("cuda_gpu_kern_sum"), R"(** CUDA GPU Kernel Summary (cuda_gpu_kern_sum)

 Time (%)  Total Time  Instances        Avg        Med        Min        Max    StdDev  Name
 --------  ----------  ---------  ---------  ---------  ---------  ---------  --------  ---------------------------------
     71.4   30.000 us          1  30.000 us  30.000 us  30.000 us  30.000 us      0 ns  void lib::scan<int, 4>(int*)
     28.6   12.000 us          2   6.000 us   6.000 us   5.000 us   7.000 us  1.414 us  saxpy(int, float, float*, float*)

)");
}

TEST(Reports, MemorySummaries) {
  EXPECT_EQ(text("cuda_gpu_mem_time_sum"), R"(** CUDA GPU MemOps Summary (by Time) (cuda_gpu_mem_time_sum)

 Time (%)  Total Time  Count         Avg         Med         Min         Max  StdDev  Operation
 --------  ----------  -----  ----------  ----------  ----------  ----------  ------  ----------------------------
     76.3  100.000 us      1  100.000 us  100.000 us  100.000 us  100.000 us    0 ns  [CUDA memcpy Host-to-Device]
     22.9   30.000 us      1   30.000 us   30.000 us   30.000 us   30.000 us    0 ns  [CUDA memcpy Device-to-Host]
      0.8    1.000 us      1    1.000 us    1.000 us    1.000 us    1.000 us    0 ns  [CUDA memset]

)");
  EXPECT_EQ(text("cuda_gpu_mem_size_sum"), R"(** CUDA GPU MemOps Summary (by Size) (cuda_gpu_mem_size_sum)

      Total  Count         Avg         Med         Min         Max  StdDev  Operation
 ----------  -----  ----------  ----------  ----------  ----------  ------  ----------------------------
   4.000 MB      1    4.000 MB    4.000 MB    4.000 MB    4.000 MB     0 B  [CUDA memcpy Host-to-Device]
 600.000 kB      1  600.000 kB  600.000 kB  600.000 kB  600.000 kB     0 B  [CUDA memcpy Device-to-Host]
   1.000 kB      1    1.000 kB    1.000 kB    1.000 kB    1.000 kB     0 B  [CUDA memset]

)");
}

TEST(Reports, NvtxSummary) {
  EXPECT_EQ(csv("nvtx_sum"),
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range\n"
            "83.3,100000,1,100000.0,100000.0,100000,100000,0.0,Range,step\n"
            "16.7,20000,1,20000.0,20000.0,20000,20000,0.0,Range,io:load\n");
}

TEST(Reports, KernelSummaryAsCsvIsInNanoseconds) {
  EXPECT_EQ(csv("cuda_gpu_kern_sum:base"),
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
            "71.4,30000,1,30000.0,30000.0,30000,30000,0.0,scan\n"
            "28.6,12000,2,6000.0,6000.0,5000,7000,1414.2,saxpy\n");
}

TEST(Reports, GpuTraceAsCsv) {
  EXPECT_EQ(
      csv("cuda_gpu_trace:base"),
      "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
      "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
      "30000,100000,2,,,,,,,,,,4.000000,40000.000,Pageable,Device,Test GPU (0),1,7,[CUDA memcpy Host-to-Device]\n"
      "160000,5000,3,256,1,1,128,1,1,24,0.000000,0.001024,,,,,Test GPU (0),1,7,saxpy\n"
      "180000,7000,4,256,1,1,128,1,1,24,0.000000,0.001024,,,,,Test GPU (0),1,7,saxpy\n"
      "200000,30000,5,16,1,1,1024,1,1,24,0.000000,0.001024,,,,,Test GPU (0),1,13,scan\n"
      "243000,1000,6,,,,,,,,,,0.001000,1000.000,,Device,Test GPU (0),1,7,[CUDA memset]\n"
      "260000,30000,7,,,,,,,,,,0.600000,20000.000,Device,Pinned,Test GPU (0),1,7,[CUDA memcpy Device-to-Host]\n");
}

TEST(Reports, ApiTrace) {
  const std::string t = text("cuda_api_trace", {}, TimeUnit::Ns);
  EXPECT_THAT(
      t, testing::HasSubstr(" Start (ns)  Duration (ns)  Name              Result  CorrID   Pid   Tid  Thread Name\n"));
  EXPECT_THAT(t, testing::HasSubstr("    150,000          3,000  cudaLaunchKernel       0       3  4242  4243\n"));
  EXPECT_THAT(t, testing::Not(testing::HasSubstr("cuLaunchKernel")));
  Options all;
  all.nestedDriverCalls = true;
  EXPECT_THAT(text("cuda_api_trace", all), testing::HasSubstr("cuLaunchKernel"));
}

TEST(Reports, StartsShareOneUnit) {
  const std::string t = text("cuda_api_trace");
  EXPECT_THAT(t, testing::HasSubstr(" Start (us)    Duration  Name "));
  EXPECT_THAT(t, testing::HasSubstr("\n    150.000    3.000 us  cudaLaunchKernel "));
  EXPECT_THAT(t, testing::HasSubstr("\n      0.000   10.000 us  cudaMalloc "));
}

TEST(Reports, LaunchSummaryJoinsCallsAndKernels) {
  // saxpy: calls of 3 and 4 us; waits 160-153 = 7 and 180-174 = 6 us; runs 5 and 7 us; in all 15 and 17 us.
  EXPECT_THAT(csv("cuda_kern_exec_sum:base"),
              testing::HasSubstr("2,3500.0,4000,6500.0,7000,6000.0,7000,16000.0,cudaLaunchKernel,saxpy\n"));
}

TEST(Reports, FiltersKeepOnlyWhatMatches) {
  Options options;
  std::string error;
  ASSERT_TRUE(options.kernels.compile("^void.*scan<", &error)) << error;
  EXPECT_FALSE(Pattern().compile("scan(", &error));
  EXPECT_THAT(csv("cuda_gpu_sum", options),
              testing::AllOf(testing::HasSubstr("scan"), testing::Not(testing::HasSubstr("saxpy")),
                             testing::HasSubstr("memcpy")));
  Options device;
  device.devices = {3};
  EXPECT_THAT(csv("cuda_gpu_sum", device), testing::Not(testing::HasSubstr("scan")));
}

TEST(Reports, UnfinishedWorkIsLeftOut) {
  test::SampleOptions options;
  options.unfinishedKernel = true;
  const Trace trace = sampleTrace(options);
  EXPECT_EQ(kernelSummary(trace, {}).rows.size(), 2u);
  EXPECT_EQ(gpuTrace(trace, {}).rows.size(), 6u);
}

TEST(Reports, MistakesAreNamed) {
  Table table;
  std::string error;
  EXPECT_FALSE(makeReport("cuda_gpu_sums", {}, {}, &table, &error));
  EXPECT_THAT(error, testing::HasSubstr("cuda_gpu_kern_sum"));
  EXPECT_FALSE(makeReport("cuda_gpu_sum:short", {}, {}, &table, &error));
  EXPECT_THAT(error, testing::HasSubstr("'short'"));
}

TEST(Reports, NarrowTerminalsShortenOnlyTheLastColumn) {
  const Trace trace = sampleTrace();
  Table table;
  std::string error;
  ASSERT_TRUE(makeReport("cuda_gpu_kern_sum", trace, {}, &table, &error));
  const std::string narrow = renderText(table, {TimeUnit::Auto, false, 110});
  EXPECT_THAT(narrow, testing::HasSubstr("saxpy(int, float, f...\n"));
  for (size_t at = 0; at < narrow.size();) {
    const size_t end = narrow.find('\n', at);
    EXPECT_LE(end - at, 110u) << narrow.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace sonde::reports
