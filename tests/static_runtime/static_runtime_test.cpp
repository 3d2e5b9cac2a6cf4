// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace {

std::string run(const std::string& program, const std::string& environment) {
  const std::string command =  // LD_PRELOAD is parted at spaces, a folder's name may have some
      "LD_LIBRARY_PATH='" LIBRARIES "' LD_PRELOAD=" REPLACEMENT " " + environment + " " + program + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char buffer[256];
  while (pipe && std::fgets(buffer, sizeof buffer, pipe)) out += buffer;
  EXPECT_EQ(pipe ? pclose(pipe) : -1, 0);
  return out;
}

TEST(StaticRuntime, IsReplacedByTheSoftwareGpus) {
  EXPECT_EQ(run("'" PROGRAM "'", ""), "malloc 0\nmemset 0\nmemcpy 0\nbyte 9\ncount 0 1\nown 42\n");
}

TEST(StaticRuntime, IsLeftAloneWhenAsked) {
  EXPECT_EQ(run("'" PROGRAM "'", "SONDE_STATIC_RUNTIME=0"), "malloc 77\nbyte 0\ncount 77 0\nown 42\n");
}

TEST(StaticRuntime, TellsWhatItDid) {
  const std::string text = run("'" PROGRAM "'", "SONDE_STATIC_RUNTIME=verbose");
  EXPECT_NE(
      text.find("static CUDA runtime in the executable: 5 functions replaced by those of libcudart.so.13, 0 kept"),
      std::string::npos)
      << text;
}

TEST(StaticRuntime, ThatIsStrippedIsToldHowToRelink) {
  const std::string text = run("'" STRIPPED "'", "");
  EXPECT_NE(text.find("-cudart shared"), std::string::npos) << text;
  EXPECT_NE(text.find("malloc 77"), std::string::npos) << text;
  EXPECT_EQ(run("'" STRIPPED "'", "SONDE_QUIET=1").find("-cudart shared"), std::string::npos);
}

// What is loaded later, before its constructors run.
TEST(StaticRuntime, InASharedObjectIsReplacedWhenItIsLoaded) {
  EXPECT_EQ(run("'" LOADER "' '" LIBRARY "'", ""),
            "constructor 1\nmalloc 0\nmemset 0\nmemcpy 0\nbyte 9\ncount 0 1\nown 42\n");
  EXPECT_EQ(run("'" LOADER "' '" LIBRARY "'", "SONDE_STATIC_RUNTIME=0"),
            "constructor 0\nmalloc 77\nbyte 0\ncount 77 0\nown 42\n");
}

// Its constructors run before main, and before those of an ordinary preloaded library.
TEST(StaticRuntime, InALibraryThatTheProgramIsLinkedWithIsReplaced) {
  EXPECT_EQ(run("'" LINKED "'", ""), "constructor 1\nmalloc 0\nmemset 0\nmemcpy 0\nbyte 9\ncount 0 1\nown 42\n");
  EXPECT_EQ(run("'" LINKED "'", "SONDE_STATIC_RUNTIME=0"), "constructor 0\nmalloc 77\nbyte 0\ncount 77 0\nown 42\n");
}

// Exported functions have names in a stripped object too; hidden ones have none.
TEST(StaticRuntime, InAStrippedObjectIsReplacedWhereItIsExported) {
  EXPECT_EQ(run("'" LOADER "' '" EXPORTING "'", ""),
            "constructor 1\nmalloc 0\nmemset 0\nmemcpy 0\nbyte 9\ncount 0 1\nown 42\n");
  const std::string text = run("'" LOADER "' '" HIDING "'", "SONDE_STATIC_RUNTIME=verbose");
  EXPECT_NE(text.find("hiding.so has the CUDA runtime linked into it and is stripped"), std::string::npos) << text;
  EXPECT_NE(text.find("malloc 77"), std::string::npos) << text;
}

// 101: no such device.
TEST(StaticRuntime, EachRuntimeHasItsLastError) { EXPECT_EQ(run("'" TWO "'", ""), "101 0 101 101 0 101 0\n"); }

TEST(StaticRuntime, OtherProgramsAreNotTouched) { EXPECT_EQ(run("/bin/echo hello", ""), "hello\n"); }

}  // namespace
