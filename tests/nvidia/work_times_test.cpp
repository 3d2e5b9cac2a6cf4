// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/work_times.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace sonde::platform::nvidia;

namespace {

// Round numbers, so that the sums can be checked by eye.
TimingConstants constants() {
  TimingConstants c;
  c.startAfterReturn = 2000;
  for (unsigned i = 0; i < TimingConstants::kOthers; ++i) {
    c.startAfterStamp[i] = 3000 + 100 * i;
    c.endToStamp[i] = 500 + 100 * i;
  }
  return c;
}

TimedWork launched(double reached, double stamp) {
  TimedWork w;
  w.reached = reached;
  w.stamp = stamp;
  return w;
}

TEST(WorkTimes, IdleStream) {
  std::vector<TimedStream> s(1);
  s[0].works = {launched(10'000, 22'000), launched(50'000, 62'000)};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].start, 12'000);
  EXPECT_EQ(s[0].works[0].end, 22'000);  // nothing else: stamped at once
  EXPECT_FALSE(s[0].works[0].queued);
  EXPECT_EQ(s[0].works[1].start, 52'000);
  EXPECT_EQ(s[0].works[1].end, 62'000);
  EXPECT_TRUE(s[0].haveLast);
  EXPECT_EQ(s[0].last, 62'000);
}

TEST(WorkTimes, AfterAPauseTheLaunchReturnsLate) {
  constexpr std::pair<double, double> kStarts[] = {{0, 52'000},   {25e3, 52'000}, {50e3, 51'945}, {100e3, 51'890},
                                                   {1e6, 51'750}, {3e6, 51'500},  {10e6, 51'100}, {1e9, 51'100}};
  for (const auto& [pause, start] : kStarts) {
    std::vector<TimedStream> s(1);
    s[0].works = {launched(50'000, 62'000)};
    s[0].works[0].pause = pause;
    placeWork(s, constants());
    EXPECT_NEAR(s[0].works[0].start, start, 1) << pause;
    EXPECT_EQ(s[0].works[0].end, 62'000);
  }
  std::vector<TimedStream> s(1);
  // Behind other work it does not matter when the launch returned.
  TimedWork queued = launched(11'000, 35'500);
  queued.pause = 10e6;
  s[0].works = {launched(10'000, 22'500), queued};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[1].start, 25'500);
}

TEST(WorkTimes, BusyStream) {
  std::vector<TimedStream> s(1);
  s[0].works = {launched(10'000, 22'500), launched(11'000, 35'500)};
  s[0].unfinished.assign(9, 20'000);  // launched before both stamps
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].end, 22'000);    // with ten behind it its stamp waited 500
  EXPECT_EQ(s[0].works[1].start, 25'500);  // 3000 behind the stamp before
  EXPECT_TRUE(s[0].works[1].queued);
  EXPECT_EQ(s[0].works[1].end, 35'250);  // with nine some stamps wait
}

TEST(WorkTimes, StampsBeforeLittleWorkComeAtOnce) {
  for (const unsigned waiting : {0u, 1u, 8u}) {
    std::vector<TimedStream> s(1);
    s[0].works = {launched(10'000, 22'500)};
    s[0].unfinished.assign(waiting, 20'000);
    for (int later = 0; later < 10; ++later) s[0].unfinished.push_back(22'500);  // when the stamp was there
    placeWork(s, constants());
    EXPECT_EQ(s[0].works[0].end, 22'500) << waiting;
  }
}

TEST(WorkTimes, BehindTheWorkOfAnEarlierRound) {
  std::vector<TimedStream> s(1);
  s[0].haveLast = true;
  s[0].last = 20'000;
  s[0].lastOthers = 2;
  s[0].works = {launched(10'000, 30'000)};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].start, 23'200);
}

TEST(WorkTimes, BehindAnEventOfItsOwn) {
  std::vector<TimedStream> s(1);
  TimedWork w = launched(10'000, 60'000);
  w.hasBefore = true;
  w.before = 40'000;  // the stream waited for another until then
  s[0].haveLast = true;
  s[0].last = 1'000;
  s[0].works = {w};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].start, 43'000);
}

TEST(WorkTimes, NeverEndsBeforeItStarts) {
  std::vector<TimedStream> s(1);
  s[0].works = {launched(10'000, 11'000)};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].start, 11'000);
  EXPECT_EQ(s[0].works[0].end, 11'000);
}

TEST(WorkTimes, WithoutAStamp) {
  std::vector<TimedStream> s(1);
  s[0].works = {launched(10'000, 20'000), launched(11'000, std::nan("")), launched(12'000, 40'000)};
  s[0].works[1].end = 7;
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[1].end, 7);
  EXPECT_EQ(s[0].works[2].start, 14'000);  // what came before it is not known
  EXPECT_EQ(s[0].works[2].end, 40'000);
}

// Another stream's event is stamped while the launch is on its way.
TEST(WorkTimes, ALaunchWaitsForAnotherStreamsStamp) {
  std::vector<TimedStream> s(2);
  s[0].works = {launched(90'000, 110'000)};
  s[1].works = {launched(109'000, 140'000)};  // alone: 111'000, and 60 for the busy one
  placeWork(s, constants());
  // 110'000 is later than 111'060 - 1200: taken for a stamp that waited for the launch.
  EXPECT_EQ(s[1].works[0].start, 111'060);
  s = std::vector<TimedStream>(2);
  s[0].works = {launched(90'000, 110'000)};
  s[1].works = {launched(109'300, 140'000)};  // alone: 111'360, so 110'000 came first
  placeWork(s, constants());
  EXPECT_EQ(s[1].works[0].start, 113'060);  // 3000 and 60 behind it
}

// … and an end that falls into a launch of another stream is stamped behind it.
TEST(WorkTimes, AStampWaitsForAnotherStreamsLaunch) {
  std::vector<TimedStream> s(2);
  s[0].works = {launched(90'000, 111'500)};
  s[1].works = {launched(109'000, 140'000)};  // starts at 111'060
  placeWork(s, constants());
  // One other stream is busy then: 0.2 * 600, and 0.28 * 3000 for the launch.
  EXPECT_EQ(s[0].works[0].end, 111'500 - 120 - 840);
  // Away from launches only the first part.
  s = std::vector<TimedStream>(2);
  s[0].works = {launched(90'000, 120'000)};
  s[1].works = {launched(80'000, 140'000)};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].end, 120'000 - 120);
  EXPECT_EQ(s[1].works[0].end, 140'000);  // the other stream was idle then
}

// Work of another stream that has not finished counts as busy.
TEST(WorkTimes, UnfinishedWorkOfAnotherStream) {
  std::vector<TimedStream> s(2);
  s[0].works = {launched(90'000, 120'000)};
  s[1].unfinished = {95'000};
  s[1].nextStart = 97'000;
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].end, 120'000 - 120);
  s[0] = {};
  s[0].works = {launched(90'000, 96'000)};
  placeWork(s, constants());
  EXPECT_EQ(s[0].works[0].end, 96'000);  // it came later
}

}  // namespace
