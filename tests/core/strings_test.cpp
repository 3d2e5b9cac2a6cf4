// SPDX-License-Identifier: Apache-2.0
#include "core/strings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

using sonde::core::intern;

TEST(Intern, OneCopyPerText) {
  char a[] = "_Z6saxpyfPfS_i";
  char b[] = "_Z6saxpyfPfS_i";
  EXPECT_EQ(intern(a), intern(b));
  EXPECT_NE(a, intern(a));
  EXPECT_EQ(nullptr, intern(static_cast<const char*>(nullptr)));
}

TEST(Intern, NoStaleNameAtAReusedAddress) {
  char text[8] = "first";
  const char* first = intern(text);
  std::strcpy(text, "second");
  const char* second = intern(text);
  EXPECT_STREQ("first", first);
  EXPECT_STREQ("second", second);
}

// Of threads that come and go, each is given what an earlier one has learnt.
TEST(Intern, ThreadsHandOnWhatTheyKnow) {
  char text[8];
  for (const char* now : {"alpha", "beta", "alpha", "gamma"}) {
    std::strcpy(text, now);
    std::thread([&] { EXPECT_STREQ(now, intern(text)); }).join();
  }
  EXPECT_EQ(intern("gamma"), intern(text));
}
