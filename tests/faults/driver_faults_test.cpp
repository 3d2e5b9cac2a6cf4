// SPDX-License-Identifier: Apache-2.0
// Faults in PTX that a program gives to the driver: the code, the logs, the lines on stderr, and what `sonde run` makes
// of it.
#include <cuda.h>
#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <fstream>

#include "built_product.h"

namespace sonde::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// The kernel's own lines begin with the 10th.
std::string kernelWith(const std::string& lines) {
  return ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 v)\n{\n"
         "  .reg .b32 %r<9>;  .reg .b64 %a<9>;  .reg .pred %p<3>;\n\n"
         "  ld.param.u64 %a1, [p];\n  ld.param.u64 %a2, [v];\n" +
         lines + "  ret;\n}\n";
}

std::string nameOf(CUresult r) {
  const char* name = nullptr;
  cuGetErrorName(r, &name);
  return name ? name : "unknown";
}

// What one way of giving PTX to the driver leads to.
struct Refusal {
  std::string code, log, shown;
};

enum class Way { moduleData, moduleFile, fatBinary, linkData, linkFile, libraryData, libraryFile };

class PtxRefused : public testing::Test {
 protected:
  void SetUp() override {
    CUdevice device;
    ASSERT_EQ(nameOf(cuInit(0)), "CUDA_SUCCESS");
    ASSERT_EQ(nameOf(cuDeviceGet(&device, 0)), "CUDA_SUCCESS");
    ASSERT_EQ(nameOf(cuDevicePrimaryCtxRetain(&context_, device)), "CUDA_SUCCESS");
    ASSERT_EQ(nameOf(cuCtxSetCurrent(context_)), "CUDA_SUCCESS");
    path_ = testing::TempDir() + "sonde_faults_" + std::to_string(::getpid()) + ".ptx";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Refusal give(Way way, const std::string& ptx, size_t logBytes = 2000) {
    std::ofstream(path_, std::ios::binary) << ptx;
    std::vector<char> log(logBytes + 1, '#');
    std::array options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(logBytes)};
    CUmodule module;
    CUlibrary library;
    CUlinkState link = nullptr;
    CUresult r = CUDA_SUCCESS;
    testing::internal::CaptureStderr();
    switch (way) {
      case Way::moduleData: r = cuModuleLoadDataEx(&module, ptx.c_str(), 2, options.data(), values.data()); break;
      case Way::fatBinary: r = cuModuleLoadFatBinary(&module, ptx.c_str()); break;
      case Way::moduleFile: r = cuModuleLoad(&module, path_.c_str()); break;
      case Way::libraryData:
        r = cuLibraryLoadData(&library, ptx.c_str(), options.data(), values.data(), 2, nullptr, nullptr, 0);
        break;
      case Way::libraryFile:
        r = cuLibraryLoadFromFile(&library, path_.c_str(), options.data(), values.data(), 2, nullptr, nullptr, 0);
        break;
      case Way::linkData:
      case Way::linkFile: {
        EXPECT_EQ(nameOf(cuLinkCreate(2, options.data(), values.data(), &link)), "CUDA_SUCCESS");
        void* text = const_cast<char*>(ptx.c_str());
        r = way == Way::linkFile
                ? cuLinkAddFile(link, CU_JIT_INPUT_PTX, path_.c_str(), 0, nullptr, nullptr)
                : cuLinkAddData(link, CU_JIT_INPUT_PTX, text, ptx.size() + 1, "solver.ptx", 0, nullptr, nullptr);
        void* image = nullptr;
        size_t bytes = 0;
        if (r == CUDA_SUCCESS) r = cuLinkComplete(link, &image, &bytes);
        break;
      }
    }
    Refusal refusal{nameOf(r), "", testing::internal::GetCapturedStderr()};
    EXPECT_EQ(log[logBytes], '#');
    if (log[0] != '#') refusal.log = log.data();
    if (link) {
      EXPECT_EQ(nameOf(cuLinkDestroy(link)), "CUDA_SUCCESS");
    }
    return refusal;
  }

  CUcontext context_ = nullptr;
  std::string path_;
};

// Whichever way the text comes: line, column, what was expected, and what stands there.
TEST_F(PtxRefused, SyntaxErrorByEveryWay) {
  const std::string ptx = kernelWith("  add.s32 %r1, %r2 1;\n");
  const std::string where = " line 10, column 20; error: expected ',' or ';' after the operand, found '1'\n";
  const std::string quoted = "    add.s32 %r1, %r2 1;\n                     ^\n";
  struct Case {
    Way way;
    std::string what, begin;
    bool hasLog;
  };
  for (const Case& c :
       {Case{Way::moduleData, "module", "ptx", true}, Case{Way::fatBinary, "module", "ptx", false},
        Case{Way::moduleFile, "module", "ptx '" + path_ + "'", false},
        Case{Way::linkData, "link input", "ptx 'solver.ptx'", true},
        Case{Way::linkFile, "link input", "ptx '" + path_ + "'", true}, Case{Way::libraryData, "library", "ptx", true},
        Case{Way::libraryFile, "library", "ptx '" + path_ + "'", true}}) {
    const Refusal r = give(c.way, ptx);
    EXPECT_EQ(r.code, "CUDA_ERROR_INVALID_PTX") << c.what;
    EXPECT_EQ(r.shown, "sonde: " + c.what + " refused: " + c.begin + where + quoted);
    if (c.hasLog) {
      EXPECT_EQ(r.log, c.begin + where) << c.what;
    }
  }
}

TEST_F(PtxRefused, UnknownNames) {
  struct Case {
    const char *line, *says;
  };
  for (const Case& c :
       {Case{"  ad.s32 %r1, %r2, 1;\n", "line 10, column 3; error: unknown instruction 'ad'; did you mean 'add'?"},
        Case{"  frobnicate.s32 %r1, %r2;\n", "line 10, column 3; error: unknown instruction 'frobnicate'"},
        Case{"  add.s33 %r1, %r2, 1;\n", "line 10, column 6; error: unknown modifier '.s33' of 'add'"},
        Case{"  add.s32 %r1, %q2, 1;\n", "line 10, column 16; error: undefined register '%q2'"},
        Case{"  bra AWAY;\n", "line 10, column 7; error: undefined label 'AWAY'"},
        Case{"  add.s32 %r1, %a2, 1;\n", "expects a value of type .s32, found '%a2' of type .b64"}}) {
    const Refusal r = give(Way::libraryData, kernelWith(c.line));
    EXPECT_EQ(r.code, "CUDA_ERROR_INVALID_PTX") << c.line;
    EXPECT_THAT(r.log, HasSubstr(c.says));
  }
}

TEST_F(PtxRefused, WhatIsNoPtx) {
  for (const char* text : {"", "some words", "#!/bin/sh\n"}) {
    const Refusal r = give(Way::moduleData, text);
    EXPECT_EQ(r.code, "CUDA_ERROR_INVALID_IMAGE");
    EXPECT_EQ(r.log, "the image is neither PTX (no .version line), nor a fat binary, nor machine code\n");
  }
  EXPECT_EQ(give(Way::moduleFile, "").shown, "sonde: module refused: '" + path_ + "' is empty, or no file\n");
  const Refusal words = give(Way::libraryFile, "some words");
  EXPECT_THAT(words.log, StartsWith("ptx '" + path_ + "'; error: the image is neither PTX"));
  const Refusal end =
      give(Way::moduleData, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u64 p");
  EXPECT_EQ(end.log, "ptx line 4, column 32; error: expected ')' after the parameters, found the end of the text\n");

  CUmodule module;
  testing::internal::CaptureStderr();
  EXPECT_EQ(nameOf(cuModuleLoad(&module, "/no/such.ptx")), "CUDA_ERROR_FILE_NOT_FOUND");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "sonde: module refused: cannot open '/no/such.ptx': No such file or directory\n");
}

TEST_F(PtxRefused, TooNewForTheDevice) {
  const Refusal version = give(Way::libraryData, "// text\n  .version 99.0\n.target sm_70\n.address_size 64\n");
  EXPECT_EQ(version.code, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
  EXPECT_EQ(version.log, "ptx line 2, column 3; error: PTX version 99.0 is newer than 9.x\n");
  const Refusal target = give(Way::libraryData, ".version 7.0\n.target sm_999\n.address_size 64\n");
  EXPECT_EQ(target.code, "CUDA_ERROR_NO_BINARY_FOR_GPU");
  EXPECT_THAT(target.log,
              StartsWith("ptx line 2, column 1; error: target sm_999 is above the device's compute capability"));
}

// Only the whole link can tell that a symbol is nowhere.
TEST_F(PtxRefused, AMissingSymbolWhenTheLinkIsComplete) {
  const std::string ptx = kernelWith("  call away;\n");
  const std::string declared =
      ".version 7.0\n.target sm_70\n.address_size 64\n.extern .func away;\n" + ptx.substr(ptx.find(".visible"));
  for (const Way way : {Way::linkData, Way::moduleData, Way::libraryData}) {
    const Refusal r = give(way, declared);
    EXPECT_EQ(r.code, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND");
    EXPECT_THAT(r.log, HasSubstr("error: 'away' is declared but defined nowhere\n"));
    EXPECT_THAT(r.shown, AllOf(StartsWith("sonde: "), HasSubstr(" refused: "), HasSubstr("'away'")));
  }
}

TEST_F(PtxRefused, ALogThatIsTooShortIsCut) {
  const Refusal r = give(Way::moduleData, kernelWith("  ad.s32 %r1, %r2, 1;\n"), 12);
  EXPECT_EQ(r.log, "ptx line 10");
}

// After a refusal the rest of the link is as it was.
TEST_F(PtxRefused, ALinkGoesOnWithoutTheBadInput) {
  CUlinkState link;
  ASSERT_EQ(nameOf(cuLinkCreate(0, nullptr, nullptr, &link)), "CUDA_SUCCESS");
  std::string bad = kernelWith("  ad.s32 %r1, %r2, 1;\n"), good = kernelWith("");
  testing::internal::CaptureStderr();
  EXPECT_EQ(nameOf(cuLinkAddData(link, CU_JIT_INPUT_PTX, bad.data(), bad.size() + 1, "a", 0, nullptr, nullptr)),
            "CUDA_ERROR_INVALID_PTX");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              StartsWith("sonde: link input refused: ptx 'a' line 10, column 3"));
  EXPECT_EQ(nameOf(cuLinkAddData(link, CU_JIT_INPUT_PTX, good.data(), good.size() + 1, "b", 0, nullptr, nullptr)),
            "CUDA_SUCCESS");
  void* image = nullptr;
  CUmodule module;
  EXPECT_EQ(nameOf(cuLinkComplete(link, &image, nullptr)), "CUDA_SUCCESS");
  EXPECT_EQ(nameOf(cuModuleLoadData(&module, image)), "CUDA_SUCCESS");
  EXPECT_EQ(nameOf(cuLinkDestroy(link)), "CUDA_SUCCESS");
}

// Kernels that go wrong, in a program of their own under `sonde run`.
class FaultyKernel : public BuiltProduct {
 protected:
  Outcome run(const std::string& lines, std::vector<std::string> arguments) {
    std::ofstream(file("k.ptx")) << kernelWith(lines);
    std::vector<std::string> words{"run", "-q", DRIVER_FAULTS, file("k.ptx")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return sonde(words);
  }
};

std::string fails(const std::string& code) {
  return "load CUDA_SUCCESS\nlaunch CUDA_SUCCESS\nsynchronize " + code + "\ncopy " + code + "\nallocate " + code +
         "\n0 0 0 0\n";
}

constexpr char kStore[] = "  add.u64 %a3, %a1, %a2;\n  st.global.u32 [%a3], 7;\n";

TEST_F(FaultyKernel, StoreBeyondTheEnd) {
  const Outcome o = run(kStore, {"1", "4104"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.out, StartsWith(fails("CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_THAT(o.err,
              MatchesRegex("sonde: a write to 0x[0-9a-f]+, 8 bytes beyond the end of an allocation of 4096 bytes at "
                           "0x[0-9a-f]+: kernel 'k', block .0,0,0., [a-z ]*thread .0,0,0., PTX line 11\n"));
  // What was recorded until then is reported: the launch, and no lost record.
  EXPECT_THAT(o.out, AllOf(HasSubstr("cuLaunchKernel"), HasSubstr("CUDA memset")));
}

TEST_F(FaultyKernel, StoreNowhere) {
  const Outcome o = run(kStore, {"1", "0x1000000000"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.out, StartsWith(fails("CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_THAT(o.err, HasSubstr(", where no allocation is (any more): kernel 'k', block (0,0,0), "));
}

TEST_F(FaultyKernel, MisalignedStore) {
  const Outcome o = run(kStore, {"1", "2"});
  EXPECT_THAT(o.out, StartsWith(fails("CUDA_ERROR_MISALIGNED_ADDRESS")));
  EXPECT_THAT(o.err, HasSubstr("sonde: a misaligned write to 0x"));
}

// No error on a GPU: all bits are set.
TEST_F(FaultyKernel, DivisionOfIntegersByZero) {
  const Outcome o =
      run("  cvt.u32.u64 %r1, %a2;\n  mov.u32 %r2, 7;\n  div.s32 %r3, %r2, %r1;\n  rem.s32 %r4, %r2, %r1;\n"
          "  div.u32 %r5, %r2, %r1;\n  rem.u32 %r6, %r2, %r1;\n  st.global.v4.u32 [%a1], {%r3, %r4, %r5, %r6};\n",
          {"1", "0"});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("synchronize CUDA_SUCCESS\ncopy CUDA_SUCCESS\nallocate CUDA_SUCCESS\n"
                               "ffffffff ffffffff ffffffff ffffffff\n"));
  EXPECT_EQ(o.err, "");
}

TEST_F(FaultyKernel, BarrierThatNeverEnds) {
  const Outcome o =
      run("  mov.u32 %r1, %tid.x;\n  setp.lt.u32 %p1, %r1, 32;\n  @%p1 bra LOW;\n  bar.sync 2, 64;\n  bra END;\n"
          "LOW:\n  bar.sync 1, 64;\nEND:\n",
          {"64"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.out, StartsWith(fails("CUDA_ERROR_LAUNCH_TIMEOUT")));
  EXPECT_THAT(
      o.err, HasSubstr("sonde: deadlock: barrier 1 has 32 of 64 threads; waiting warps: 0 (PTX line 16); barrier 2 has "
                       "32 of 64 threads; waiting warps: 1 (PTX line 13): kernel 'k', block (0,0,0)"));
}

TEST_F(FaultyKernel, Trap) {
  const Outcome o = run("  trap;\n", {"1"});
  EXPECT_THAT(o.out, StartsWith(fails("CUDA_ERROR_LAUNCH_FAILED")));
  EXPECT_THAT(o.err, HasSubstr("sonde: a trap instruction: kernel 'k', block (0,0,0), thread (0,0,0), PTX line 10\n"));
}

TEST_F(FaultyKernel, AnAllocationLargerThanTheDevice) {
  const Outcome o = run("", {"1", "0xffffffffffffffff"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.out, StartsWith("allocate CUDA_ERROR_OUT_OF_MEMORY\n"));
  EXPECT_THAT(o.err,
              MatchesRegex("sonde: an allocation of 1125899906842624 bytes was refused: device 0 has [0-9]+ bytes, "
                           "[0-9]+ of them free\n"));
}

TEST_F(FaultyKernel, ALaunchThatIsTooLarge) {
  const Outcome o = run("", {"2048"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.out, StartsWith("load CUDA_SUCCESS\nlaunch CUDA_ERROR_INVALID_VALUE\n"));
  EXPECT_THAT(o.err,
              HasSubstr("sonde: a launch of 'k' was refused: the block is 2048 in x, the device allows 1 to 1024\n"));
}

TEST_F(FaultyKernel, ASyntaxErrorUnderSonde) {
  const Outcome o = run("  add.s32 %r1, %r2 1;\n", {"1"});
  EXPECT_EQ(o.status, 3);
  EXPECT_THAT(o.out, StartsWith("load CUDA_ERROR_INVALID_PTX\n"));
  EXPECT_THAT(o.err, StartsWith("sonde: module refused: ptx line 10, column 20; error: expected ',' or ';'"));
  EXPECT_THAT(o.err, Not(HasSubstr("lost")));
}

}  // namespace
}  // namespace sonde::test
