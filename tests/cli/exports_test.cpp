// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/exports.h"

#include <cupti.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/exports/output_file.h"
#include "proto_tree.h"
#include "sample.h"

namespace sonde::exports {
namespace {

using test::kOrigin;
using test::ProtoMessage;
using test::sampleTrace;

class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "sonde-exports-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::string written(void (*write)(const Trace&, const Options&, const Sink&), const Trace& trace) {
  std::string out;
  write(trace, {}, [&](std::string_view piece) { out += piece; });
  return out;
}

// ---------------------------------------------------------------- Perfetto --

struct Perfetto {
  explicit Perfetto(const Trace& trace)
      : bytes(written(writePerfetto, trace)), packets(ProtoMessage(bytes).messages(1)) {
    for (const ProtoMessage& p : packets) {
      const ProtoMessage interned = p.message(12);
      for (const auto& e : interned.messages(2)) eventNames[e.number(1)] = e.text(2);
      for (const auto& e : interned.messages(24)) specifications[e.number(1)] = e.text(2);
      for (const auto& e : interned.messages(23)) contexts[e.number(1)] = {e.number(2), e.number(3)};
      for (const auto& e : interned.messages(1000)) kernels[e.number(1)] = {e.text(2), e.text(3)};
      for (const auto& e : interned.messages(1001)) argNames[e.number(1)] = e.text(2);
    }
  }
  std::map<std::string, uint64_t> arguments(const ProtoMessage& stage) const {
    std::map<std::string, uint64_t> all;
    for (const auto& a : stage.message(21).messages(3))
      if (a.has(4)) all[argNames.at(a.number(1))] = a.number(4);
    return all;
  }

  std::string bytes;
  std::vector<ProtoMessage> packets;
  std::map<uint64_t, std::string> eventNames, specifications, argNames;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> contexts;
  std::map<uint64_t, std::pair<std::string, std::string>> kernels;
};

TEST(Perfetto, EveryPacketHasAClockAndASequence) {
  const Perfetto p(sampleTrace());
  ASSERT_FALSE(p.packets.empty());
  for (const ProtoMessage& packet : p.packets) {
    EXPECT_EQ(packet.number(10), 1u);
    EXPECT_EQ(packet.number(58), 1u);  // REALTIME
    EXPECT_GE(packet.number(8), kOrigin);
  }
  EXPECT_EQ(p.packets[0].number(13), 3u);  // state cleared and needed
  EXPECT_EQ(p.packets[1].number(13), 2u);
  EXPECT_EQ(p.packets[0].message(6).number(2), 1u);  // primary clock
}

TEST(Perfetto, WorkOnTheGpuIsInStreamsOfContexts) {
  const Perfetto p(sampleTrace());
  std::vector<std::string> names;
  std::vector<std::string> queues;
  for (const ProtoMessage& packet : p.packets) {
    if (!packet.has(53)) continue;
    const ProtoMessage stage = packet.message(53);
    names.push_back(p.eventNames.at(stage.number(20)));
    queues.push_back(p.specifications.at(stage.number(13)));
    EXPECT_EQ(p.contexts.at(stage.number(5)), std::pair(uint64_t{4242}, uint64_t{4}));
    EXPECT_EQ(stage.number(5), 1u);  // the context's own id
    const auto args = p.arguments(stage);
    EXPECT_TRUE(args.contains("device") && args.contains("stream"));
  }
  EXPECT_THAT(names, testing::ElementsAre("[CUDA memcpy Host-to-Device]", "saxpy(int, float, float*, float*)",
                                          "saxpy(int, float, float*, float*)", "void lib::scan<int, 4>(int*)",
                                          "[CUDA memset]", "[CUDA memcpy Device-to-Host]"));
  EXPECT_THAT(queues, testing::ElementsAre("Stream 7", "Stream 7", "Stream 7", "Stream 13", "Stream 7", "Stream 7"));
}

TEST(Perfetto, AKernelHasItsLaunch) {
  const Perfetto p(sampleTrace());
  for (const ProtoMessage& packet : p.packets) {
    const ProtoMessage stage = packet.message(53);
    if (!packet.has(53) || p.eventNames.at(stage.number(20)).find("scan") == std::string::npos) continue;
    EXPECT_EQ(packet.number(8), kOrigin + 200'000);
    EXPECT_EQ(stage.number(2), 30'000u);
    EXPECT_EQ(p.specifications.at(stage.number(14)), "Kernel");
    EXPECT_EQ(p.kernels.at(stage.number(19)).first, "_ZN3lib4scanIiLi4EEEvPT_");
    const ProtoMessage launch = stage.message(21);
    EXPECT_EQ(launch.message(1).number(1), 16u);
    EXPECT_EQ(launch.message(2).number(1), 1024u);
    const auto args = p.arguments(stage);
    EXPECT_EQ(args.at("stream"), 13u);
    EXPECT_EQ(args.at("registers_per_thread"), 24u);
    EXPECT_EQ(args.at("shared_mem_dynamic"), 1024u);
    EXPECT_EQ(args.at("thread_count"), 16u * 1024u);
    return;
  }
  FAIL() << "no scan kernel";
}

TEST(Perfetto, LaunchesPointAtTheirKernels) {
  const Perfetto p(sampleTrace());
  std::map<uint64_t, uint64_t> starts;  // event id → start
  for (const ProtoMessage& packet : p.packets)
    if (packet.has(53)) starts[packet.message(53).number(1)] = packet.number(8) - kOrigin;
  std::map<uint64_t, uint64_t> arrows;  // call start → kernel start
  for (const ProtoMessage& packet : p.packets) {
    if (!packet.has(11)) continue;
    const ProtoMessage event = packet.message(11);
    for (const uint64_t id : event.message(3000).numbers(1)) arrows[packet.number(8) - kOrigin] = starts.at(id);
    if (event.has(3000)) {
      EXPECT_EQ(event.number(3001), 4u);
    }
  }
  EXPECT_EQ(arrows, (std::map<uint64_t, uint64_t>{{20'000, 30'000},
                                                  {150'000, 160'000},
                                                  {170'000, 180'000},
                                                  {190'000, 200'000},
                                                  {240'000, 243'000},
                                                  {250'000, 260'000}}));
}

TEST(Perfetto, SlicesOfEachTrackNest) {
  const Perfetto p(sampleTrace());
  std::map<uint64_t, int> depth;
  std::map<uint64_t, uint64_t> last;
  std::map<uint64_t, std::string> trackNames;
  int deepest = 0;
  for (const ProtoMessage& packet : p.packets) {
    if (packet.has(60)) {
      trackNames[packet.message(60).number(1)] = packet.message(60).text(2);
      EXPECT_TRUE(packet.message(60).has(5) || packet.message(60).has(3)) << "a track without a parent";
    }
    if (!packet.has(11)) continue;
    const ProtoMessage event = packet.message(11);
    const uint64_t track = event.number(11);
    EXPECT_TRUE(trackNames.contains(track)) << "an event before its track";
    if (event.number(9) != 3) {  // instants nest with nothing
      EXPECT_GE(packet.number(8), last[track]);
      last[track] = packet.number(8);
    }
    if (event.number(9) == 1) deepest = std::max(deepest, ++depth[track]);
    if (event.number(9) == 2) {
      EXPECT_GE(--depth[track], 0);
    }
  }
  for (const auto& [track, d] : depth) EXPECT_EQ(d, 0);
  EXPECT_EQ(deepest, 2);  // cuLaunchKernel in cudaLaunchKernel
  int nvtx = 0;
  for (const auto& [track, name] : trackNames) nvtx += name == "NVTX";
  EXPECT_EQ(nvtx, 1);
}

// No track may hold slices that cross; start/end ranges may cross.
TEST(Perfetto, RangesThatCrossLieOnTracksOfTheirOwn) {
  Trace t = sampleTrace();
  t.ranges.clear();
  const auto range = [&](uint64_t start, uint64_t end) {
    NvtxRange r;
    r.start = kOrigin + start;
    r.end = kOrigin + end;
    r.threadId = 4243;
    r.name = t.intern(std::to_string(start));
    t.ranges.push_back(r);
  };
  range(1'000, 50'000);
  range(2'000, 10'000);   // within the first
  range(20'000, 70'000);  // crosses the first
  range(60'000, 90'000);  // crosses the third alone, which is elsewhere
  const Perfetto p(t);
  std::map<uint64_t, std::string> tracks;
  std::map<std::string, std::string> trackOf;
  for (const ProtoMessage& packet : p.packets) {
    if (packet.has(60)) tracks[packet.message(60).number(1)] = packet.message(60).text(2);
    const ProtoMessage event = packet.message(11);
    if (event.text(22) == "nvtx" && event.number(9) == 1) trackOf[event.text(23)] = tracks.at(event.number(11));
  }
  EXPECT_EQ(trackOf, (std::map<std::string, std::string>{
                         {"1000", "NVTX"}, {"2000", "NVTX"}, {"20000", "NVTX start/end ranges"}, {"60000", "NVTX"}}));
}

TEST(Perfetto, CountersAndDevice) {
  const Perfetto p(sampleTrace());
  std::map<uint64_t, std::pair<uint64_t, double>> values;  // time → kernels, throughput
  std::string gpu;
  for (const ProtoMessage& packet : p.packets) {
    if (packet.has(128)) gpu = packet.message(128).message(1).text(1);
    if (!packet.has(52)) continue;
    const auto counters = packet.message(52).messages(2);
    ASSERT_EQ(counters.size(), 2u);
    values[packet.number(8) - kOrigin] = {counters[0].number(2), counters[1].real(3)};
  }
  EXPECT_EQ(gpu, "Test GPU");
  EXPECT_EQ(values.at(160'000).first, 1u);
  EXPECT_EQ(values.at(165'000).first, 0u);
  EXPECT_DOUBLE_EQ(values.at(30'000).second, 4e10);  // 4 MB in 100 us
  EXPECT_DOUBLE_EQ(values.at(130'000).second, 0);
}

// Values of a kernel stand at the kernel and on a track of each counter; those
// of a graph's launch, whose kernels are several, at the launch alone.
TEST(Perfetto, EventsAndMetricsOfKernels) {
  Trace t = sampleTrace();
  // What a string is known by is in the trace already: three names serve.
  StringId saxpy = 0;
  for (const GpuEvent& e : t.gpuEvents)
    if (t.text(e.name) == "_Z5saxpyifPfS_") saxpy = e.name;
  ASSERT_NE(saxpy, 0u);
  const StringId instructions = t.intern("inst_executed"), rate = t.intern("ipc"), graph = t.intern("[CUDA graph 2]"),
                 what = t.intern("Warp instructions executed");
  t.counterInfos[{CounterKind::Event, instructions}] = {CounterKind::Event, 1, what, 0};
  t.counterInfos[{CounterKind::Metric, rate}] = {CounterKind::Metric, CUPTI_METRIC_VALUE_KIND_DOUBLE, what, 0};
  t.shownCounters = {{CounterKind::Metric, rate}, {CounterKind::Event, instructions}};
  const auto launch = [&](uint64_t start, uint64_t end, uint32_t correlation, StringId name, uint64_t count,
                          double number) {
    CountedLaunch l;
    l.start = kOrigin + start;
    l.end = kOrigin + end;
    l.correlation = correlation;
    l.kernel = name;
    l.values = {{rate, CounterKind::Metric, spool::kAllInstances, 0, number},
                {instructions, CounterKind::Event, 0, count, 0},
                {instructions, CounterKind::Event, 1, 2 * count, 0}};
    t.launches.push_back(l);
  };
  launch(149'000, 168'000, 3, saxpy, 100, 0.5);
  launch(169'000, 188'000, 4, saxpy, 7, 0.25);
  launch(310'000, 320'000, 99, graph, 1000, 2);
  const Perfetto p(t);
  std::map<uint64_t, std::string> names;  // of counters
  std::map<std::string, std::vector<std::pair<uint64_t, double>>> tracks;
  std::vector<std::map<std::string, uint64_t>> arguments;
  std::map<std::string, std::string> slice;
  std::vector<double> rates;
  for (const ProtoMessage& packet : p.packets) {
    for (const auto& entry : packet.message(12).messages(47))
      for (const auto& spec : entry.message(2).messages(1)) names[spec.number(1)] = spec.text(2);
    if (packet.has(52) && packet.message(52).number(4) > 2 << 16)
      for (const auto& c : packet.message(52).messages(2))
        tracks[names.at(c.number(1))].emplace_back(packet.number(8) - kOrigin, c.real(3));
    if (packet.has(53) && p.eventNames.at(packet.message(53).number(20)).starts_with("saxpy")) {
      arguments.push_back(p.arguments(packet.message(53)));
      for (const auto& a : packet.message(53).message(21).messages(3))
        if (a.has(5)) {
          EXPECT_EQ(p.argNames.at(a.number(1)), "ipc");
          rates.push_back(a.real(5));
        }
    }
    const ProtoMessage event = packet.message(11);
    if (event.text(22) != "counted_launch") continue;
    slice["name"] = event.text(23);
    for (const auto& a : event.messages(4)) slice[a.text(10)] = a.has(3) ? std::to_string(a.number(3)) : a.text(6);
  }
  using Values = std::vector<std::pair<uint64_t, double>>;
  EXPECT_EQ(tracks["inst_executed"],
            (Values{{160'000, 300}, {165'000, 0}, {180'000, 21}, {187'000, 0}, {310'000, 3000}, {320'000, 0}}));
  EXPECT_EQ(tracks["ipc"],
            (Values{{160'000, 0.5}, {165'000, 0}, {180'000, 0.25}, {187'000, 0}, {310'000, 2}, {320'000, 0}}));
  ASSERT_EQ(arguments.size(), 2u);
  EXPECT_EQ(arguments[0].at("inst_executed[0]"), 100u);
  EXPECT_EQ(arguments[0].at("inst_executed[1]"), 200u);
  EXPECT_EQ(arguments[1].at("inst_executed[1]"), 14u);
  EXPECT_EQ(rates, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(slice["name"], "[CUDA graph 2]");
  EXPECT_EQ(slice["correlation"], "99");
  EXPECT_EQ(slice["inst_executed[1]"], "2000");
  EXPECT_EQ(slice["ipc"], "2");
}

// Clocks, temperature, power and fan of two devices: tracks with their names, and each value at its time.
TEST(Perfetto, EnvironmentTracks) {
  Trace t = sampleTrace();
  const auto sample = [&](uint64_t time, uint32_t device, CUpti_ActivityEnvironmentKind kind) -> EnvironmentSample& {
    EnvironmentSample e;
    e.start = e.end = kOrigin + time;
    e.device = device;
    e.kind = kind;
    return t.environment.emplace_back(e);
  };
  for (uint32_t i = 0; i < 3; i++) {
    EnvironmentSample& speed = sample(1000 * i, i % 2, CUPTI_ACTIVITY_ENVIRONMENT_SPEED);
    speed.smClockMHz = 1980 - 15 * i;
    speed.memoryClockMHz = 2619;
    sample(1000 * i + 1, i % 2, CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE).temperatureC = 40 + i;
    EnvironmentSample& power = sample(1000 * i + 2, i % 2, CUPTI_ACTIVITY_ENVIRONMENT_POWER);
    power.powerMilliwatts = 100500 + 250 * i;
    power.powerLimit = 350000;
    sample(1000 * i + 3, i % 2, CUPTI_ACTIVITY_ENVIRONMENT_COOLING).fanPercent = 20 + i;
  }
  const Perfetto p(t);
  // Descriptor → device and names by counter id; it comes with the device's first value.
  std::map<uint64_t, std::pair<uint64_t, std::map<uint64_t, std::string>>> described;
  std::map<std::string, std::vector<std::pair<uint64_t, double>>> tracks;  // "device name" → time, value
  for (const ProtoMessage& packet : p.packets) {
    for (const auto& entry : packet.message(12).messages(47)) {
      auto& [gpu, names] = described[entry.number(1)];
      gpu = entry.number(3);
      for (const auto& spec : entry.message(2).messages(1)) {
        names[spec.number(1)] = spec.text(2);
        EXPECT_FALSE(spec.text(3).empty()) << spec.text(2);
        EXPECT_EQ(spec.number(9), 1u);  // shown without being chosen
      }
    }
    if (!packet.has(52)) continue;
    const ProtoMessage event = packet.message(52);
    ASSERT_TRUE(described.contains(event.number(4)));
    const auto& [gpu, names] = described.at(event.number(4));
    EXPECT_EQ(event.number(3), gpu);
    for (const auto& counter : event.messages(2))
      if (counter.has(3))
        tracks[std::to_string(gpu) + " " + names.at(counter.number(1))].emplace_back(packet.number(8) - kOrigin,
                                                                                     counter.real(3));
  }
  using Values = std::vector<std::pair<uint64_t, double>>;
  EXPECT_EQ(tracks["0 SM clock (MHz)"], (Values{{0, 1980}, {2000, 1950}}));
  EXPECT_EQ(tracks["1 SM clock (MHz)"], (Values{{1000, 1965}}));
  EXPECT_EQ(tracks["0 Memory clock (MHz)"], (Values{{0, 2619}, {2000, 2619}}));
  EXPECT_EQ(tracks["0 Temperature (C)"], (Values{{1, 40}, {2001, 42}}));
  EXPECT_EQ(tracks["1 Temperature (C)"], (Values{{1001, 41}}));
  EXPECT_EQ(tracks["0 Power (W)"], (Values{{2, 100.5}, {2002, 101}}));
  EXPECT_EQ(tracks["1 Power (W)"], (Values{{1002, 100.75}}));
  EXPECT_EQ(tracks["0 Fan (%)"], (Values{{3, 20}, {2003, 22}}));
}

TEST(Perfetto, ALossStandsInTheTrace) {
  test::SampleOptions options;
  options.dropped = 17;
  const Perfetto p(sampleTrace(options));
  bool found = false;
  for (const ProtoMessage& packet : p.packets) found |= packet.message(11).text(23) == "17 records lost";
  EXPECT_TRUE(found);
}

TEST(Perfetto, ProtocCanDecodeIt) {
  if (std::system("protoc --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "protoc is not installed";
  Folder folder;
  std::string error;
  ASSERT_TRUE(exportTrace(Format::Perfetto, sampleTrace(), folder / "t.pftrace", {}, &error)) << error;
  const std::string command = "protoc --decode_raw < " + (folder / "t.pftrace") + " > " + (folder / "t.txt");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(folder / "t.txt");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, testing::HasSubstr("\"void lib::scan<int, 4>(int*)\""));
}

// ------------------------------------------------------------------ SQLite --

class Query {
 public:
  explicit Query(const std::string& path) {
    EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db_, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  }
  ~Query() { sqlite3_close(db_); }
  // Rows as "a|b|c".
  std::vector<std::string> operator()(const char* sql) {
    std::vector<std::string> rows;
    sqlite3_stmt* s = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql, -1, &s, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
    while (sqlite3_step(s) == SQLITE_ROW) {
      std::string row;
      for (int i = 0; i < sqlite3_column_count(s); i++) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s, i));
        row += (i != 0 ? "|" : "") + std::string(text != nullptr ? text : "NULL");
      }
      rows.push_back(row);
    }
    sqlite3_finalize(s);
    return rows;
  }

 private:
  sqlite3* db_ = nullptr;
};

TEST(Sqlite, TablesHoldTheTrace) {
  Folder folder;
  std::string error;
  ASSERT_TRUE(exportTrace(Format::Sqlite, sampleTrace(), folder / "t.sqlite", {}, &error)) << error;
  Query query(folder / "t.sqlite");
  EXPECT_THAT(query("PRAGMA integrity_check"), testing::ElementsAre("ok"));
  EXPECT_THAT(query("PRAGMA foreign_key_check"), testing::IsEmpty());
  EXPECT_THAT(
      query("SELECT name, count(*), sum(end - start) FROM api_call WHERE NOT nested GROUP BY name ORDER BY 3 DESC"),
      testing::ElementsAre("cudaMemcpy|2|170000", "cudaLaunchKernel|3|12000", "cudaMalloc|1|10000",
                           "cudaMemset|1|2000"));
  EXPECT_THAT(query("SELECT s.text, k.grid_x, k.block_x, k.stream_id FROM kernel k JOIN string s ON s.id = "
                    "k.short_name_id ORDER BY k.id"),
              testing::ElementsAre("saxpy|256|128|7", "saxpy|256|128|7", "scan|16|1024|13"));
  EXPECT_THAT(query("SELECT kind, bytes FROM memcpy ORDER BY start"),
              testing::ElementsAre("Host-to-Device|4000000", "Device-to-Host|600000"));
  EXPECT_THAT(query("SELECT style, name, domain FROM nvtx_range ORDER BY start"),
              testing::ElementsAre("PushPop|load|io", "Mark|here|", "PushPop|step|"));
  EXPECT_THAT(query("SELECT pid, executable, records, lost_records, end_reason FROM process"),
              testing::ElementsAre("4242|/opt/bin/app|20|0|exit"));
}

TEST(Sqlite, TablesAnswerQueriesWrittenForNsys) {
  Folder folder;
  std::string error;
  ASSERT_TRUE(exportTrace(Format::Sqlite, sampleTrace(), folder / "t.sqlite", {}, &error)) << error;
  Query query(folder / "t.sqlite");
  EXPECT_THAT(query("SELECT k.start, k.end, n.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds n ON n.id = "
                    "k.demangledName ORDER BY k.start"),
              testing::ElementsAre("160000|165000|saxpy(int, float, float*, float*)",
                                   "180000|187000|saxpy(int, float, float*, float*)",
                                   "200000|230000|void lib::scan<int, 4>(int*)"));
  // Launch and kernel by correlation; process and thread out of the global ids.
  EXPECT_THAT(
      query(
          "SELECT n.value, k.start - r.end, r.globalTid / 0x1000000 % 0x1000000, r.globalTid % 0x1000000 "
          "FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId "
          "AND k.globalPid = r.globalTid / 0x1000000 * 0x1000000 JOIN StringIds n ON n.id = r.nameId ORDER BY k.start"),
      testing::ElementsAre("cudaLaunchKernel_v7000|7000|4242|4243", "cudaLaunchKernel_v7000|6000|4242|4243",
                           "cudaLaunchKernel_v7000|5000|4242|4243"));
  EXPECT_THAT(query("SELECT text, eventType, end - start FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY start"),
              testing::ElementsAre("load|59|20000", "step|59|100000"));
  EXPECT_THAT(query("SELECT bytes, copyKind, srcKind, dstKind FROM CUPTI_ACTIVITY_KIND_MEMCPY ORDER BY start"),
              testing::ElementsAre("4000000|1|0|2", "600000|2|2|1"));
  EXPECT_THAT(query("SELECT o.label, o.name, f.label, t.label FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN "
                    "ENUM_CUDA_MEMCPY_OPER o ON o.id = m.copyKind JOIN ENUM_CUDA_MEM_KIND f ON f.id = m.srcKind "
                    "JOIN ENUM_CUDA_MEM_KIND t ON t.id = m.dstKind ORDER BY m.start"),
              testing::ElementsAre("Host-to-Device|CUDA_MEMCPY_KIND_HTOD|Pageable|Device",
                                   "Device-to-Host|CUDA_MEMCPY_KIND_DTOH|Device|Pinned"));
  EXPECT_THAT(query("SELECT globalPid / 0x1000000, pid, name FROM PROCESSES"),
              testing::ElementsAre("4242|4242|/opt/bin/app"));
  // Domains have numbers, and an event with each one's name.
  EXPECT_THAT(query("SELECT e.text, d.text FROM NVTX_EVENTS e LEFT JOIN NVTX_EVENTS d ON d.domainId = e.domainId AND "
                    "d.eventType = 75 WHERE e.eventType <> 75 ORDER BY e.start"),
              testing::ElementsAre("load|io", "here|NULL", "step|NULL"));
  // Scripts look for a table before they read it.
  EXPECT_THAT(query("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN "
                    "('CUPTI_ACTIVITY_KIND_KERNEL', 'CUPTI_ACTIVITY_KIND_RUNTIME', 'NVTX_EVENTS', 'StringIds', "
                    "'TARGET_INFO_GPU', 'TARGET_INFO_CUDA_DEVICE', 'TARGET_INFO_SESSION_START_TIME', "
                    "'CUDA_GPU_MEMORY_USAGE_EVENTS', 'ENUM_CUDA_DEV_MEM_EVENT_OPER')"),
              testing::ElementsAre("9"));
  EXPECT_THAT(query("SELECT name, smCount, computeMajor FROM TARGET_INFO_GPU"), testing::ElementsAre("Test GPU|4|9"));
}

// ------------------------------------------------------------- plain formats --

TEST(Chrome, IsJsonWithMatchedFlows) {
  const auto j = nlohmann::json::parse(written(writeChrome, sampleTrace()));
  std::map<std::string, int> phases;
  std::map<std::string, int> flows;
  for (const auto& e : j["traceEvents"]) {
    phases[e["ph"]]++;
    if (e["ph"] == "s") flows[e["id"]]++;
    if (e["ph"] == "f") flows[e["id"]]--;
    if (e["ph"] == "X" && e["cat"] == "kernel" && e["name"] == "void lib::scan<int, 4>(int*)") {
      EXPECT_DOUBLE_EQ(e["ts"].get<double>(), 200.0);
      EXPECT_DOUBLE_EQ(e["dur"].get<double>(), 30.0);
      EXPECT_EQ(e["args"]["block"][0], 1024);
    }
  }
  EXPECT_EQ(phases["X"], 8 + 6 + 2);
  EXPECT_EQ(phases["s"], 6);
  EXPECT_EQ(phases["i"], 1);
  for (const auto& [id, balance] : flows) EXPECT_EQ(balance, 0) << id;
}

TEST(Json, HoldsTheTrace) {
  const auto j = nlohmann::json::parse(written(writeJson, sampleTrace()));
  EXPECT_EQ(j["records"], 20);
  EXPECT_EQ(j["api_calls"].size(), 8u);
  EXPECT_EQ(j["gpu_events"].size(), 6u);
  EXPECT_EQ(j["gpu_events"][3]["mangled_name"], "_ZN3lib4scanIiLi4EEEvPT_");
  EXPECT_EQ(j["nvtx_ranges"][0]["domain"], "io");
  EXPECT_EQ(j["processes"][0]["arguments"], nlohmann::json({"app", "-n", "3"}));
}

TEST(Csv, HasOneOrderAndTheSameColumnsInEachLine) {
  const std::string csv = written(writeCsv, sampleTrace());
  std::vector<std::string> lines;
  for (size_t at = 0; at < csv.size();) {
    const size_t end = csv.find('\n', at);
    lines.push_back(csv.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(lines.size(), 1u + 8 + 6 + 3);
  for (const std::string& line : lines) {
    int commas = 0;
    bool quoted = false;
    for (const char c : line) {
      quoted ^= c == '"';
      commas += c == ',' && !quoted;
    }
    EXPECT_EQ(commas, 26) << line;
  }
  EXPECT_EQ(lines[1],
            "runtime,1700000000000000000,1700000000000010000,10000,4242,4243,1,,,,,,,,,,,,,,,,0,cudaMalloc,,,");
  EXPECT_EQ(lines[2],
            "nvtx_pushpop,1700000000000005000,1700000000000025000,20000,4242,4243,,,,,,,,,,,,,,,,,,io:load,,,");
  EXPECT_EQ(lines[4],
            "memcpy,1700000000000030000,1700000000000130000,100000,4242,,2,0,1,7,,,,,,,,,,4000000,Pageable,Device,,["
            "CUDA memcpy Host-to-Device],,,");
}

TEST(Files, AppearOnlyWhenWhole) {
  Folder folder;
  std::string error;
  {
    OutputFile file;
    ASSERT_TRUE(file.open(folder / "a", false, &error));
    file.write("half");
  }  // given up
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  {
    OutputFile file;
    ASSERT_TRUE(file.open(folder / "a", false, &error));
    file.write("whole");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    ASSERT_TRUE(file.commit(&error)) << error;
  }
  EXPECT_EQ(std::filesystem::file_size(folder / "a"), 5u);
  OutputFile again;
  EXPECT_FALSE(again.open(folder / "a", false, &error));
  EXPECT_THAT(error, testing::HasSubstr("-f"));
  EXPECT_TRUE(again.open(folder / "a", true, &error));
  OutputFile nowhere;
  EXPECT_FALSE(nowhere.open(folder / "no/such/file", false, &error));
  EXPECT_THAT(error, testing::HasSubstr("No such file"));
}

TEST(JsonString, SurvivesAnyBytes) {
  EXPECT_EQ(jsonString("a\"b\\c\n"), "\"a\\\"b\\\\c\\n\"");
  EXPECT_EQ(jsonString("\xff"), "\"\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace sonde::exports
