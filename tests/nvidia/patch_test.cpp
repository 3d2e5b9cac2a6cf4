// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/patch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

extern "C" {
int driver_like(int);
int with_endbr(int);
int rip_relative(int);
int already_hooked(int);
int calls_at_once(int);
int too_short(int);
int short_branch(int);
int loops_to_entry(int);
int unaligned(int);
}

namespace sonde::platform::nvidia {
namespace {

using Function = int (*)(int);
Function original = nullptr;
std::atomic<int> hits{0};

int hook(int x) {
  ++hits;
  return 1000 + original(x);
}

struct Case {
  const char* name;
  Function function;
  int add;
};

class Hookable : public ::testing::TestWithParam<Case> {};

TEST_P(Hookable, RunsTheHookAndTheOriginalAndComesBackByteForByte) {
  const Case c = GetParam();
  uint8_t before[32];
  std::memcpy(before, reinterpret_cast<void*>(c.function), sizeof before);
  std::string why;
  auto patch = Patch::prepare(reinterpret_cast<void*>(c.function), reinterpret_cast<void*>(&hook), &why);
  ASSERT_TRUE(patch) << why;
  EXPECT_EQ(0, std::memcmp(before, reinterpret_cast<void*>(c.function), sizeof before));
  original = reinterpret_cast<Function>(patch->original());
  EXPECT_EQ(10 + c.add, original(10));  // not armed yet
  hits = 0;
  EXPECT_EQ(10 + c.add, c.function(10));
  ASSERT_TRUE(patch->arm(&why)) << why;
  EXPECT_EQ(1010 + c.add, c.function(10));
  EXPECT_EQ(1, hits);
  ASSERT_TRUE(patch->disarm(&why)) << why;
  EXPECT_EQ(10 + c.add, c.function(10));
  EXPECT_EQ(1, hits);
  EXPECT_EQ(0, std::memcmp(before, reinterpret_cast<void*>(c.function), sizeof before));
  EXPECT_EQ(10 + c.add, original(10));  // still valid
}
INSTANTIATE_TEST_SUITE_P(Entries, Hookable,
                         ::testing::Values(Case{"DriverLike", driver_like, 1}, Case{"EndBr", with_endbr, 2},
                                           Case{"RipRelative", rip_relative, 3}, Case{"Hooked", already_hooked, 4},
                                           Case{"Call", calls_at_once, 5}),
                         [](const auto& info) { return info.param.name; });

struct Refusal {
  const char* name;
  Function function;
  const char* reason;
};
class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, SaysWhyAndChangesNothing) {
  uint8_t before[16];
  std::memcpy(before, reinterpret_cast<void*>(GetParam().function), sizeof before);
  std::string why;
  EXPECT_FALSE(Patch::prepare(reinterpret_cast<void*>(GetParam().function), reinterpret_cast<void*>(&hook), &why));
  EXPECT_NE(std::string::npos, why.find(GetParam().reason)) << why;
  EXPECT_EQ(0, std::memcmp(before, reinterpret_cast<void*>(GetParam().function), sizeof before));
}
INSTANTIATE_TEST_SUITE_P(Entries, Refused,
                         ::testing::Values(Refusal{"TooShort", too_short, "ends the function"},
                                           Refusal{"ShortBranch", short_branch, "short branch"},
                                           Refusal{"OwnEntry", loops_to_entry, "own entry"},
                                           Refusal{"Unaligned", unaligned, "aligned"}),
                         [](const auto& info) { return info.param.name; });

TEST(Patch, TwoHooksOnOneFunctionEndInTheOrderTheyCame) {
  std::string why;
  static Function inner, outer;
  auto first = Patch::prepare(reinterpret_cast<void*>(driver_like),
                              reinterpret_cast<void*>(+[](int x) { return 100 + inner(x); }), &why);
  ASSERT_TRUE(first && first->arm(&why)) << why;
  inner = reinterpret_cast<Function>(first->original());
  auto second = Patch::prepare(reinterpret_cast<void*>(driver_like),
                               reinterpret_cast<void*>(+[](int x) { return 1000 + outer(x); }), &why);
  ASSERT_TRUE(second && second->arm(&why)) << why;
  outer = reinterpret_cast<Function>(second->original());
  EXPECT_EQ(1102, driver_like(1));
  EXPECT_FALSE(first->disarm(&why));
  EXPECT_NE(std::string::npos, why.find("another hook"));
  ASSERT_TRUE(second->disarm(&why));
  EXPECT_EQ(102, driver_like(1));
  ASSERT_TRUE(first->disarm(&why));
  EXPECT_EQ(2, driver_like(1));
}

TEST(Patch, ThreadsCallWhileItIsArmedAndDisarmed) {
  std::string why;
  // Its first five bytes are parts of two instructions: a thread may be
  // interrupted between them.
  auto patch = Patch::prepare(reinterpret_cast<void*>(with_endbr), reinterpret_cast<void*>(&hook), &why);
  ASSERT_TRUE(patch) << why;
  original = reinterpret_cast<Function>(patch->original());
  std::atomic<bool> stop{false};
  std::atomic<long> calls{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        const int r = with_endbr(40);
        wrong += r != 42 && r != 1042;
        ++calls;
      }
    });
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(patch->arm(&why)) << why;
    ASSERT_TRUE(patch->disarm(&why)) << why;
  }
  while (calls < 1000) std::this_thread::yield();
  stop = true;
  for (auto& t : threads) t.join();
  EXPECT_EQ(0, wrong);
}

}  // namespace
}  // namespace sonde::platform::nvidia
