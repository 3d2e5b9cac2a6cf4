// SPDX-License-Identifier: Apache-2.0
// cuptiGetSassToSourceCorrelation on PTX texts; no GPU is asked.
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr char kText[] = R"(.version 7.0
.target sm_70
.address_size 64
.file 1 "/src/dir/a.cu"
.file 2 "b.h"
.visible .entry k()
{
  .reg .b32 %r<2>;
  mov.u32 %r1, 1;
  .loc 1 10 1
  add.u32 %r1, %r1, 1;
  .loc 2 7 1
  ret;
  .loc 1 0 0
  ret;
}
)";

CUpti_GetSassToSourceCorrelationParams ask(const char* function, uint64_t offset) {
  CUpti_GetSassToSourceCorrelationParams p{};
  p.size = CUpti_GetSassToSourceCorrelationParamsSize;
  p.cubin = kText;
  p.cubinSize = sizeof kText;
  p.functionName = function;
  p.pcOffset = offset;
  return p;
}

TEST(SourceCorrelation, FileDirectoryAndLine) {
  auto p = ask("k", 16);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetSassToSourceCorrelation(&p));
  EXPECT_EQ(10u, p.lineNumber);
  EXPECT_STREQ("a.cu", p.fileName);
  EXPECT_STREQ("/src/dir", p.dirName);
  std::free(p.fileName);
  std::free(p.dirName);
  p = ask("k", 32);
  p.cubinSize = sizeof kText - 1;  // without the NUL
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetSassToSourceCorrelation(&p));
  EXPECT_EQ(7u, p.lineNumber);
  EXPECT_STREQ("b.h", p.fileName);
  EXPECT_STREQ("", p.dirName);
  std::free(p.fileName);
  std::free(p.dirName);
}

TEST(SourceCorrelation, WhatCannotBeAnswered) {
  const auto failsWith = [](CUptiResult expected, CUpti_GetSassToSourceCorrelationParams p, const char* why) {
    EXPECT_EQ(expected, cuptiGetSassToSourceCorrelation(&p));
    EXPECT_EQ(nullptr, p.fileName);
    EXPECT_EQ(nullptr, p.dirName);
    EXPECT_EQ(0u, p.lineNumber);
    const char* message = nullptr;
    EXPECT_EQ(CUPTI_SUCCESS, cuptiGetErrorMessage(expected, &message));
    EXPECT_NE(nullptr, std::strstr(message, why)) << message;
  };
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiGetSassToSourceCorrelation(nullptr));
  failsWith(CUPTI_ERROR_NOT_SUPPORTED, ask("k", 0), "no line information");
  failsWith(CUPTI_ERROR_NOT_SUPPORTED, ask("k", 48), "no line information");  // line 0
  failsWith(CUPTI_ERROR_INVALID_PARAMETER, ask("k", 64), "no pcOffset");
  failsWith(CUPTI_ERROR_INVALID_PARAMETER, ask("k", 8), "no pcOffset");
  failsWith(CUPTI_ERROR_INVALID_PARAMETER, ask("other", 0), "no function 'other'");
  failsWith(CUPTI_ERROR_INVALID_PARAMETER, ask(nullptr, 0), "functionName");
  auto p = ask("k", 16);
  p.size = 8;
  failsWith(CUPTI_ERROR_INVALID_PARAMETER, p, "size");
  p = ask("k", 16);
  p.cubin =
      "\x7f"
      "ELF machine code";
  p.cubinSize = 17;
  failsWith(CUPTI_ERROR_NOT_SUPPORTED, p, "machine code");
  p.cubin = "no PTX at all";
  p.cubinSize = 14;
  failsWith(CUPTI_ERROR_INVALID_MODULE, p, "PTX");
}

}  // namespace
