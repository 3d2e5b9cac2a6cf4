// SPDX-License-Identifier: Apache-2.0
// Source-level records: every field against values worked out by hand for the
// kernels of values_test.cpp.
#include "source_level.h"

namespace sonde::test {
namespace {

// Element i of p at %rd3.
std::string address(const std::string& index, int bytes) {
  return "mul.wide.u32 %rd3, " + index + ", " + std::to_string(bytes) + "; add.u64 %rd3, %rd3, %rd1;\n";
}

TEST_F(SourceLevel, ACT_040_041_042_GlobalAccessRecords) {
  enable({CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS});
  // The frame has 6 instructions before the body; the address takes two.
  runBody(address("%r3", 8) + "ld.global.u64 %rd5, [%rd3]; ld.global.cg.u32 %r6, [%rd3];" +
          "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u16 [%rd3], %h1; red.global.add.u32 [%rd1], 1;" +
          "atom.global.add.u32 %r7, [%rd1], 1; st.global.u32 [%rd3], %r7;");
  const auto r = globals();
  ASSERT_EQ(6u, r.size());
  const struct {
    uint32_t index, flags, executed;
    uint64_t threads, transactions, ideal;
  } expected[] = {
      {8, 8 | kLoad | kCached, 32, 1024, 256, 256},  // rows of 256 bytes
      {9, 4 | kLoad, 32, 1024, 256, 128},            // every second word, not from L1
      {11, 2, 8, 256, 64, 16},                       // only block 0: 64 of each 256 bytes
      {12, 4, 32, 1024, 32, 32},                     // one word for all
      {13, 4 | kLoad, 32, 1024, 32, 32},             // an atomic that returns a value reads
      {14, 4, 32, 1024, 256, 128},
  };
  for (size_t i = 0; i < r.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(expected[i].index * 16, r[i].pcOffset);
    EXPECT_EQ(expected[i].flags, static_cast<uint32_t>(r[i].flags));
    EXPECT_EQ(expected[i].executed, r[i].executed);
    EXPECT_EQ(expected[i].threads, r[i].threadsExecuted);
    EXPECT_EQ(expected[i].transactions, r[i].l2_transactions);
    EXPECT_EQ(expected[i].ideal, r[i].theoreticalL2Transactions);
    EXPECT_NE(0u, r[i].sourceLocatorId);
    EXPECT_NE(0u, r[i].functionId);
    EXPECT_EQ(r[0].functionId, r[i].functionId);
    EXPECT_NE(0u, r[i].correlationId);
    EXPECT_EQ(r[0].correlationId, r[i].correlationId);
  }
}

TEST_F(SourceLevel, ACT_048_049_SharedAccessRecords) {
  enable({CUPTI_ACTIVITY_KIND_SHARED_ACCESS});
  // Words 8 apart: eight words in each bank that is used.
  runBody(
      "and.b32 %r5, %r1, 31; shl.b32 %r5, %r5, 5; mov.u32 %r6, s; add.u32 %r6, %r6, %r5;"
      "st.shared.u32 [%r6], %r5; setp.lt.u32 %p1, %r1, 16; @%p1 ld.shared.u64 %rd5, [%r6];",
      ".shared .align 16 .b8 s[4096];\n");
  const auto r = shared();
  ASSERT_EQ(2u, r.size());
  EXPECT_EQ(4u, static_cast<uint32_t>(r[0].flags));
  EXPECT_EQ(10u * 16, r[0].pcOffset);
  EXPECT_EQ(32u, r[0].executed);
  EXPECT_EQ(1024u, r[0].threadsExecuted);
  EXPECT_EQ(32u * 8, r[0].sharedTransactions);
  EXPECT_EQ(32u, r[0].theoreticalSharedTransactions);
  // The lower half of the first warp of each block; 16 places 8 words apart:
  // four of them share a pair of banks.
  EXPECT_EQ(8u | CUPTI_ACTIVITY_FLAG_SHARED_ACCESS_KIND_LOAD, static_cast<uint32_t>(r[1].flags));
  EXPECT_EQ(12u * 16, r[1].pcOffset);
  EXPECT_EQ(4u, r[1].executed);
  EXPECT_EQ(64u, r[1].threadsExecuted);
  EXPECT_EQ(4u * 4, r[1].sharedTransactions);
  EXPECT_EQ(4u, r[1].theoreticalSharedTransactions);
  for (const auto& s : r) {
    EXPECT_EQ(0u, s.pad);
    EXPECT_NE(0u, s.sourceLocatorId);
    EXPECT_NE(0u, s.functionId);
    EXPECT_NE(0u, s.correlationId);
  }
}

TEST_F(SourceLevel, ACT_072_BranchRecords) {
  enable({CUPTI_ACTIVITY_KIND_BRANCH});
  // Lane l goes round l + 1 times; then blocks 1 and 3 skip.
  runBody(
      "and.b32 %r5, %r1, 31;\nL: setp.eq.u32 %p1, %r5, 0; sub.u32 %r5, %r5, 1; @!%p1 bra L;"
      "and.b32 %r5, %r2, 1; setp.ne.u32 %p1, %r5, 0; @%p1 bra M; add.u32 %r6, %r3, 1; bra.uni M;\nM:");
  const auto r = branches();
  ASSERT_EQ(3u, r.size());
  EXPECT_EQ(9u * 16, r[0].pcOffset);
  EXPECT_EQ(32u * 32, r[0].executed);
  EXPECT_EQ(32u * 31, r[0].diverged);  // in the last round the one lane left falls out
  EXPECT_EQ(32u * 528, r[0].threadsExecuted);
  EXPECT_EQ(12u * 16, r[1].pcOffset);
  EXPECT_EQ(32u, r[1].executed);
  EXPECT_EQ(0u, r[1].diverged);
  EXPECT_EQ(1024u, r[1].threadsExecuted);
  EXPECT_EQ(14u * 16, r[2].pcOffset);
  EXPECT_EQ(16u, r[2].executed);  // unconditional branches are branches
  EXPECT_EQ(512u, r[2].threadsExecuted);
  for (const auto& b : r) {
    EXPECT_EQ(0u, b.pad);
    EXPECT_NE(0u, b.sourceLocatorId);
    EXPECT_NE(0u, b.functionId);
    EXPECT_NE(0u, b.correlationId);
  }
}

TEST_F(SourceLevel, ACT_045_046_050_InstructionExecutionRecords) {
  enable({CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION});
  runBody(
      "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; @%p1 add.u32 %r6, %r3, 1; cvt.rn.f32.u32 %f1, %r6;"
      "mul.f32 %f2, %f1, %f1; cvt.f64.f32 %fd1, %f2; add.f64 %fd2, %fd1, %fd1; shfl.idx.b32 %r7, %r6, 0, 31;"
      "bar.sync 0; membar.gl;");
  const auto r = instructions();
  const uint32_t classes[] = {
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONSTANT,      CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONSTANT,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_MISCELLANEOUS, CUPTI_ACTIVITY_INSTRUCTION_CLASS_MISCELLANEOUS,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_MISCELLANEOUS, CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTEGER,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTEGER,       CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTEGER,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTEGER,       CUPTI_ACTIVITY_INSTRUCTION_CLASS_BIT_CONVERSION,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_32,         CUPTI_ACTIVITY_INSTRUCTION_CLASS_BIT_CONVERSION,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_FP_64,         CUPTI_ACTIVITY_INSTRUCTION_CLASS_INTER_THREAD_COMMUNICATION,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_BARRIER,       CUPTI_ACTIVITY_INSTRUCTION_CLASS_MISCELLANEOUS,
      CUPTI_ACTIVITY_INSTRUCTION_CLASS_CONTROL_FLOW,
  };
  ASSERT_EQ(std::size(classes), r.size());
  for (uint32_t i = 0; i < r.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(i * 16, r[i].pcOffset);
    EXPECT_EQ(classes[i], classOf(r[i]));
    EXPECT_EQ(0u, static_cast<uint32_t>(r[i].flags) & ~uint32_t{CUPTI_ACTIVITY_FLAG_INSTRUCTION_CLASS_MASK});
    EXPECT_EQ(32u, r[i].executed);
    EXPECT_EQ(1024u, r[i].threadsExecuted);
    EXPECT_EQ(i == 8 ? 512u : 1024u, r[i].notPredOffThreadsExecuted);
    EXPECT_EQ(0u, r[i].pad);
    EXPECT_NE(0u, r[i].sourceLocatorId);
    EXPECT_NE(0u, r[i].functionId);
    EXPECT_NE(0u, r[i].correlationId);
  }
}

constexpr char kWithLines[] = R"(.version 5.0
.target sm_35
.address_size 64
.file 1 "/src/a.cu"
.file 2 "/src/b.h"
.func called()
{
  .loc 2 40 1
  ret;
}
.visible .entry first(.param .u64 p)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  .loc 1 10 1
  ld.param.u64 %rd1, [p];
  .loc 1 11 5
  ld.global.u32 %r1, [%rd1];
  .loc 1 11 9
  st.global.u32 [%rd1], %r1;
  .loc 1 12 1
  call called, ();
  ret;
}
.visible .entry second()
{
  .loc 1 10 1
  ret;
}
)";

TEST_F(SourceLevel, ACT_004_LocatorsOncePerFileAndLine) {
  enable({CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION, CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR});
  const CUdeviceptr p = buffer(4096);
  launch(function(kWithLines, "first"), 1, 32, {p});
  launch(function(kWithLines, "first"), 1, 32, {p});
  launch(function(kWithLines, "second"), 1, 32, {});
  const auto lines = locators();
  std::map<uint32_t, std::pair<std::string, uint32_t>> byId;
  for (const auto& l : lines) {
    EXPECT_NE(uint32_t{CUPTI_SOURCE_LOCATOR_ID_UNKNOWN}, l.id);
    EXPECT_EQ(0u, l.pad);
    EXPECT_TRUE(byId.emplace(l.id, std::pair(std::string(l.fileName), l.lineNumber)).second) << "once";
  }
  std::set<std::pair<std::string, uint32_t>> all;
  for (const auto& [id, line] : byId) EXPECT_TRUE(all.insert(line).second) << "one id for each line";
  EXPECT_EQ(all, (std::set<std::pair<std::string, uint32_t>>{
                     {"/src/a.cu", 10}, {"/src/a.cu", 11}, {"/src/a.cu", 12}, {"/src/b.h", 40}}));
  // Each locator comes before the first record that names it.
  std::set<uint32_t> seen;
  for (const auto& r : collector.records()) {
    if (r.kind() == CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR) seen.insert(r.as<CUpti_ActivitySourceLocator>().id);
    if (r.kind() == CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION) {
      EXPECT_TRUE(seen.count(r.as<CUpti_ActivityInstructionExecution>().sourceLocatorId));
    }
  }
  // Ids stay: another client's life, the same lines.
  std::map<std::pair<std::string, uint32_t>, uint32_t> before;
  for (const auto& [id, line] : byId) before[line] = id;
  CUPTI_OK(cuptiFinalize());
  collector.start();
  enable({CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION, CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR});
  launch(function(kWithLines, "first"), 1, 32, {p});
  const auto again = locators();
  ASSERT_EQ(4u, again.size());
  for (const auto& l : again) EXPECT_EQ((before[{l.fileName, l.lineNumber}]), l.id);
}

TEST_F(SourceLevel, FunctionAndModuleRecordsJoin) {
  enable({CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION, CUPTI_ACTIVITY_KIND_FUNCTION, CUPTI_ACTIVITY_KIND_MODULE,
          CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_DRIVER});
  const std::string text = std::string(kWithLines) + "// joined\n";
  launch(function(text, "first"), 1, 32, {buffer(4096)});
  const auto executed = instructions();
  ASSERT_EQ(6u, executed.size());
  std::map<uint32_t, CUpti_ActivityFunction> functions;
  for (const auto& f : of<CUpti_ActivityFunction>(CUPTI_ACTIVITY_KIND_FUNCTION)) functions[f.id] = f;
  std::map<uint32_t, CUpti_ActivityModule> modules;
  for (const auto& m : of<CUpti_ActivityModule>(CUPTI_ACTIVITY_KIND_MODULE)) modules[m.id] = m;
  const auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, kernels.size());
  std::map<std::string, int> byName;
  for (const auto& i : executed) {
    ASSERT_EQ(1u, functions.count(i.functionId));
    const auto& f = functions[i.functionId];
    ++byName[f.name];
    ASSERT_EQ(1u, modules.count(f.moduleId));
    EXPECT_EQ(f.contextId, modules[f.moduleId].contextId);
    EXPECT_EQ(text, std::string(static_cast<const char*>(modules[f.moduleId].cubin), text.size()));
    EXPECT_EQ(kernels[0].correlationId, i.correlationId);
  }
  EXPECT_EQ(byName, (std::map<std::string, int>{{"called", 1}, {"first", 5}}));
  bool launchCall = false;
  for (const auto& c : of<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER))
    launchCall |= c.correlationId == kernels[0].correlationId && c.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
  EXPECT_TRUE(launchCall);
  // The kernel first, then what its instructions did.
  std::vector<uint32_t> order;
  for (const auto& r : collector.records())
    if (r.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || r.kind() == CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION)
      order.push_back(r.kind());
  EXPECT_EQ(uint32_t{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, order.front());
  // A client that asks later learns of the functions too.
  CUPTI_OK(cuptiFinalize());
  collector.start();
  enable({CUPTI_ACTIVITY_KIND_FUNCTION});
  std::set<std::string> known;
  for (const auto& f : of<CUpti_ActivityFunction>(CUPTI_ACTIVITY_KIND_FUNCTION)) known.insert(f.name);
  EXPECT_EQ(1u, known.count("first"));
  EXPECT_EQ(1u, known.count("called"));
}

TEST_F(SourceLevel, WithoutLinesThePlaceInThePtx) {
  enable({CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR, CUPTI_ACTIVITY_KIND_MODULE});
  const std::string text =
      ".version 5.0\n.target sm_35\n.address_size 64\n.visible .entry k()\n{\n  bra.uni L;\nL:\n ret;\n}\n";
  launch(function(text, "k"), 1, 32, {});
  const auto b = branches();
  const auto l = locators();
  ASSERT_EQ(1u, b.size());
  ASSERT_EQ(1u, l.size());
  EXPECT_EQ(l[0].id, b[0].sourceLocatorId);
  EXPECT_EQ(6u, l[0].lineNumber);
  const auto m = of<CUpti_ActivityModule>(CUPTI_ACTIVITY_KIND_MODULE);
  ASSERT_FALSE(m.empty());
  EXPECT_EQ("module_" + std::to_string(m.back().id) + ".ptx", l[0].fileName);
}

TEST_F(SourceLevel, ACT_073_FormsOfTheClientsGeneration) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks_v6050(testing_support::Collector::requested,
                                                                testing_support::Collector::completed));
  enable({CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_BRANCH});
  runBody(address("%r3", 4) + "ld.global.u32 %r6, [%rd3]; bra.uni L;\nL:");
  const auto r = of<CUpti_ActivityGlobalAccess2>(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS);
  ASSERT_EQ(1u, r.size());
  EXPECT_EQ(4 | kLoad | kCached, static_cast<uint32_t>(r[0].flags));
  EXPECT_EQ(8u * 16, r[0].pcOffset);
  EXPECT_EQ(32u, r[0].executed);
  EXPECT_EQ(1024u, r[0].threadsExecuted);
  EXPECT_EQ(128u, r[0].l2_transactions);
  EXPECT_EQ(128u, r[0].theoreticalL2Transactions);
  const auto b = branches();
  ASSERT_EQ(1u, b.size());
  EXPECT_EQ(32u, b[0].executed);
}

// Of inlined code the innermost line; of line 0, and before the first .loc, the place in the PTX; of a file without
// .file as well. The sections of DWARF that compilers add do no harm.
TEST_F(SourceLevel, LinesOfEverySort) {
  enable({CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION, CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR, CUPTI_ACTIVITY_KIND_MODULE});
  const std::string text = R"(.version 7.4
.target sm_35
.address_size 64
.visible .entry k()
{
  .reg .b32 %r<2>;
  mov.u32 %r1, 0;
  .loc 1 30 1
  mov.u32 %r1, 1;
  .loc 2 20 3, function_name $L__info_string0, inlined_at 1 30 1
  mov.u32 %r1, 2;
  .loc 2 10 5, function_name $L__info_string0+6, inlined_at 2 20 3
  mov.u32 %r1, 3;
  .loc 1 0 0
  mov.u32 %r1, 4;
  .loc 3 8 1
  mov.u32 %r1, 5;
  .loc 1 30 9
  ret;
}
.file 1 "/src/every.cu"
.file 2 "/src/sort.cuh"
.section .debug_abbrev
{
.b8 1
.b8 17
}
.section .debug_info
{
.b32 8
.b8 2
}
.section .debug_str
{
$L__info_string0:
.b8 95,90,49,102,118,0
.b8 95,90,49,103,118,0
}
)";
  launch(function(text, "k"), 1, 32, {});
  std::map<uint32_t, std::pair<std::string, uint32_t>> lines;
  for (const auto& l : locators()) lines[l.id] = {l.fileName, l.lineNumber};
  const auto m = of<CUpti_ActivityModule>(CUPTI_ACTIVITY_KIND_MODULE);
  ASSERT_FALSE(m.empty());
  const std::string ptx = "module_" + std::to_string(m.back().id) + ".ptx";
  std::vector<std::pair<std::string, uint32_t>> found;
  for (const auto& i : instructions()) found.push_back(lines[i.sourceLocatorId]);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, uint32_t>>{{ptx, 7},
                                                                  {"/src/every.cu", 30},
                                                                  {"/src/sort.cuh", 20},
                                                                  {"/src/sort.cuh", 10},
                                                                  {ptx, 15},
                                                                  {ptx, 17},
                                                                  {"/src/every.cu", 30}}));
  EXPECT_EQ(6u, lines.size());  // line 30 once
}

// Run with SONDE_RECORD_LAYOUT="GLOBAL_ACCESS=1,BRANCH=1".
TEST_F(SourceLevel, FormsOfTheEnvironment) {
  if (std::getenv("SONDE_RECORD_LAYOUT") == nullptr) GTEST_SKIP() << "SONDE_RECORD_LAYOUT is not set";
  enable({CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_SHARED_ACCESS});
  runBody(address("%r3", 4) + "ld.global.u32 %r6, [%rd3]; mov.u32 %r5, s; ld.shared.u32 %r5, [%r5]; bra.uni L;\nL:",
          ".shared .align 16 .b8 s[4096];\n");
  const auto g = of<CUpti_ActivityGlobalAccess>(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS);
  ASSERT_EQ(1u, g.size());
  EXPECT_EQ(4 | kLoad | kCached, static_cast<uint32_t>(g[0].flags));
  EXPECT_EQ(8u * 16, g[0].pcOffset);
  EXPECT_EQ(32u, g[0].executed);
  EXPECT_EQ(1024u, g[0].threadsExecuted);
  EXPECT_EQ(128u, g[0].l2_transactions);
  EXPECT_NE(0u, g[0].sourceLocatorId);
  EXPECT_NE(0u, g[0].correlationId);
  const auto b = of<CUpti_ActivityBranch>(CUPTI_ACTIVITY_KIND_BRANCH);
  ASSERT_EQ(1u, b.size());
  EXPECT_EQ(11u * 16, b[0].pcOffset);
  EXPECT_EQ(32u, b[0].executed);
  EXPECT_EQ(0u, b[0].diverged);
  EXPECT_EQ(1024u, b[0].threadsExecuted);
  EXPECT_EQ(g[0].correlationId, b[0].correlationId);
  // A kind that was not named keeps its newest form.
  const auto s = shared();
  ASSERT_EQ(1u, s.size());
  EXPECT_EQ(1024u, s[0].threadsExecuted);
  EXPECT_EQ(32u, s[0].sharedTransactions);
}

TEST_F(SourceLevel, KindsOfOneContext) {
  CUPTI_OK(cuptiActivityEnableContext(context, CUPTI_ACTIVITY_KIND_BRANCH));
  runBody("bra.uni L;\nL:");
  EXPECT_EQ(1u, branches().size());
  CUcontext other = nullptr;
  CU_OK(cuCtxCreate(&other, nullptr, 0, device));
  CUmodule m = nullptr;
  CUfunction f = nullptr;
  CU_OK(cuModuleLoadData(&m, kernel("bra.uni L;\nL:").c_str()));
  CU_OK(cuModuleGetFunction(&f, m, "k"));
  launch(f, 1, 32, {0, 0});
  EXPECT_EQ(1u, branches().size());
  CU_OK(cuCtxDestroy(other));
  CU_OK(cuCtxSetCurrent(context));
  CUPTI_OK(cuptiActivityDisableContext(context, CUPTI_ACTIVITY_KIND_BRANCH));
  runBody("bra.uni L;\nL:");
  EXPECT_EQ(1u, branches().size());
}

// Two kernels that would overlap run one after the other.
TEST_F(SourceLevel, KernelsRunOneAtATime) {
  enable({CUPTI_ACTIVITY_KIND_BRANCH, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  CUfunction f =
      function(kernel("mov.u32 %r5, 100000;\nL: setp.eq.u32 %p1, %r5, 0; sub.u32 %r5, %r5, 1; @!%p1 bra L;"), "k");
  CUstream streams[2];
  uint64_t zero = 0;
  void* parameters[] = {&zero, &zero};
  for (auto& s : streams) {
    CU_OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CU_OK(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, s, parameters, nullptr));
  }
  CU_OK(cuCtxSynchronize());
  auto kernels = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(2u, kernels.size());
  if (kernels[1].start < kernels[0].start) std::swap(kernels[0], kernels[1]);
  EXPECT_LE(kernels[0].end, kernels[1].start);
  EXPECT_EQ(2u, branches().size());
  for (auto& s : streams) CU_OK(cuStreamDestroy(s));
}

}  // namespace
}  // namespace sonde::test
