// SPDX-License-Identifier: Apache-2.0
#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "cli/spool/format.h"
#include "cli/spool/reader.h"
#include "sample.h"

namespace sonde::test {
namespace {

using spool::BlockHeader;
using spool::FileHeader;

bool read(const std::string& content, Trace& trace, std::string* error) {
  const bool good =
      spool::readSpool({reinterpret_cast<const unsigned char*>(content.data()), content.size()}, trace, error);
  trace.finish();
  return good;
}

// Where the blocks of a healthy spool begin; if asked, also where their payloads end.
std::vector<size_t> blockStarts(const std::string& content, std::vector<size_t>* payloadEnds = nullptr) {
  std::vector<size_t> starts;
  for (size_t at = sizeof(FileHeader); at < content.size();) {
    starts.push_back(at);
    BlockHeader header;
    std::memcpy(&header, content.data() + at, sizeof header);
    if (payloadEnds != nullptr) payloadEnds->push_back(at + sizeof header + header.payloadSize);
    at += sizeof header + spool::padded(header.payloadSize);
  }
  return starts;
}

TEST(Crc32, MatchesTheStandardCheckValue) {
  EXPECT_EQ(spool::crc32("123456789", 9), 0xcbf43926u);
  EXPECT_EQ(spool::crc32("", 0), 0u);
  EXPECT_EQ(spool::crc32("The quick brown fox jumps over the lazy dog", 43), 0x414fa339u);
}

TEST(Spool, EveryRecordComesBack) {
  const Trace t = sampleTrace();
  EXPECT_EQ(t.records(), 20u);
  EXPECT_EQ(t.dropped(), 0u);
  EXPECT_EQ(t.damagedBytes(), 0u);
  EXPECT_EQ(t.origin(), kOrigin);
  ASSERT_EQ(t.processes.size(), 1u);
  EXPECT_EQ(t.processes[0].pid, 4242u);
  EXPECT_EQ(t.processes[0].executable, "/opt/bin/app");
  EXPECT_THAT(t.processes[0].arguments, testing::ElementsAre("app", "-n", "3"));
  ASSERT_TRUE(t.processes[0].end.has_value());
  ASSERT_EQ(t.apiCalls.size(), 8u);
  ASSERT_EQ(t.gpuEvents.size(), 6u);
  EXPECT_EQ(t.text(t.apiCalls[0].name), "cudaMalloc_v3020");
  const GpuEvent& scan = t.gpuEvents[3];
  EXPECT_EQ(t.text(scan.name), "_ZN3lib4scanIiLi4EEEvPT_");
  EXPECT_EQ(scan.start, kOrigin + 200'000);
  EXPECT_EQ(scan.duration(), 30'000u);
  EXPECT_EQ(scan.grid[0], 16);
  EXPECT_EQ(scan.block[0], 1024);
  EXPECT_EQ(scan.stream, 13u);
  EXPECT_EQ(scan.dynamicShared, 1024u);
  ASSERT_EQ(t.devices.size(), 1u);
  EXPECT_EQ(t.text(t.devices[0].name), "Test GPU");
}

TEST(Spool, EventsAreInOrderOfStart) {
  const Trace t = sampleTrace();
  for (size_t i = 1; i < t.gpuEvents.size(); i++) EXPECT_LE(t.gpuEvents[i - 1].start, t.gpuEvents[i].start);
  for (size_t i = 1; i < t.apiCalls.size(); i++) EXPECT_LE(t.apiCalls[i - 1].start, t.apiCalls[i].start);
}

TEST(Spool, OnlyTheDriverCallWithinARuntimeCallIsNested) {
  const Trace t = sampleTrace();
  for (const ApiCall& call : t.apiCalls) EXPECT_EQ(call.nested, !call.runtime) << t.text(call.name);
}

TEST(Spool, MarkersBecomeRanges) {
  const Trace t = sampleTrace();
  ASSERT_EQ(t.ranges.size(), 3u);
  EXPECT_EQ(t.text(t.ranges[0].name), "load");
  EXPECT_EQ(t.text(t.ranges[0].domain), "io");
  EXPECT_EQ(t.ranges[0].duration(), 20'000u);
  EXPECT_EQ(t.ranges[1].style, RangeStyle::Mark);
  EXPECT_EQ(t.text(t.ranges[2].name), "step");
  EXPECT_EQ(t.ranges[2].duration(), 100'000u);
}

// A process may be killed within any write: every prefix must be readable, and
// no record that was whole may be missing.
TEST(Spool, EveryTruncationIsReadAsFarAsItGoes) {
  const std::string whole = sampleSpool();
  std::vector<size_t> ends;
  blockStarts(whole, &ends);
  uint64_t before = 0;
  for (size_t length = sizeof(FileHeader); length <= whole.size(); length++) {
    Trace t;
    std::string error;
    ASSERT_TRUE(read(whole.substr(0, length), t, &error)) << length << ": " << error;
    EXPECT_GE(t.records(), before) << length;
    before = t.records();
    // Whole: nothing after the header, or cut in the padding after a payload.
    const bool whole8 =
        std::any_of(ends.begin(), ends.end(), [&](size_t e) { return e <= length && length <= spool::padded(e); });
    EXPECT_EQ(t.damagedBytes() == 0, whole8 || length == sizeof(FileHeader)) << length;
  }
  EXPECT_EQ(before, 20u);
}

TEST(Spool, OneDamagedBlockCostsOnlyItself) {
  const std::string whole = sampleSpool();
  const auto starts = blockStarts(whole);
  for (size_t i = 0; i < starts.size(); i++) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : whole.size();
    for (const size_t offset : {size_t{0}, size_t{8}, size_t{16}, end - starts[i] - 8}) {
      std::string damaged = whole;
      damaged[starts[i] + offset] = static_cast<char>(damaged[starts[i] + offset] ^ 0x40);
      Trace t;
      std::string error;
      ASSERT_TRUE(read(damaged, t, &error)) << error;
      if (damaged[starts[i] + offset] == whole[starts[i] + offset]) continue;
      BlockHeader header;
      std::memcpy(&header, whole.data() + starts[i], sizeof header);
      // Padding after the payload is covered by no checksum and means nothing.
      if (offset >= sizeof header + header.payloadSize) continue;
      EXPECT_EQ(t.damagedBytes(), end - starts[i]) << "block " << i << ", byte " << offset;
    }
  }
}

TEST(Spool, RandomDamageNeverCrashes) {
  const std::string whole = sampleSpool();
  uint32_t random = 12345;
  const auto next = [&] { return random = random * 1664525u + 1013904223u; };
  for (int round = 0; round < 2000; round++) {
    std::string damaged = whole;
    for (int i = 0; i < 3; i++) damaged[(next() >> 8) % damaged.size()] = static_cast<char>(next() >> 16);
    Trace t;
    std::string error;
    read(damaged, t, &error);
    EXPECT_LE(t.records(), 20u);
  }
}

TEST(Spool, ConcatenatedSpoolsAreOneTrace) {
  SampleOptions other;
  other.pid = 5000;
  const Trace t = readOrDie(sampleSpool() + sampleSpool(other));
  ASSERT_EQ(t.processes.size(), 2u);
  EXPECT_EQ(t.processes[0].pid, 4242u);
  EXPECT_EQ(t.processes[1].pid, 5000u);
  EXPECT_EQ(t.records(), 40u);
  EXPECT_EQ(t.gpuEvents.size(), 12u);
  // Equal starts: the first process first.
  EXPECT_EQ(t.gpuEvents[0].process, 0u);
  EXPECT_EQ(t.gpuEvents[1].process, 1u);
}

TEST(Spool, WhatIsNoSpoolIsRefusedInWords) {
  Trace t;
  std::string error;
  EXPECT_FALSE(read("", t, &error));
  EXPECT_THAT(error, testing::HasSubstr("empty"));
  EXPECT_FALSE(read("SQLite format 3", t, &error));
  EXPECT_THAT(error, testing::HasSubstr("not a Sonde trace"));
  std::string newer = sampleSpool();
  newer[8] = 9;
  EXPECT_FALSE(read(newer, t, &error));
  EXPECT_THAT(error, testing::HasSubstr("format version 9"));
  EXPECT_FALSE(spool::readTrace("/nonexistent/x.sonde", t, &error));
  EXPECT_THAT(error, testing::HasSubstr("No such file"));
}

TEST(Spool, LossesAreCounted) {
  SampleOptions options;
  options.dropped = 17;
  options.unfinishedKernel = true;
  options.end = false;
  const Trace t = sampleTrace(options);
  EXPECT_EQ(t.dropped(), 17u);
  EXPECT_EQ(t.unfinished(), 1u);
  EXPECT_FALSE(t.processes[0].end.has_value());
}

}  // namespace
}  // namespace sonde::test
