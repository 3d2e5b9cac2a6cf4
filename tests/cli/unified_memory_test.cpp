// SPDX-License-Identifier: Apache-2.0
// `sonde run --unified-memory-profiling`, against what managed.cpp is known to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process.h"
#include "proto_tree.h"

namespace sonde::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// The number of the line of managed.cpp that holds this text.
std::string lineOf(const std::string& text) {
  std::ifstream in(SOURCE);
  std::string line;
  for (int number = 1; std::getline(in, line); number++)
    if (line.find(text) != std::string::npos) return "managed.cpp:" + std::to_string(number);
  return "no such line";
}

class Unified : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "sonde-um-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    fs::create_directories(folder_ + "/lib64/softgpu");
    fs::create_symlink(COLLECTOR, folder_ + "/lib64/libsonde-collector.so");
    fs::create_symlink(CUPTI, folder_ + "/lib64/libcupti.so.13");
    fs::create_symlink(CUDA, folder_ + "/lib64/softgpu/libcuda.so.1");
    fs::create_symlink(MANAGED_IO, folder_ + "/lib64/softgpu/libsonde-managed-io.so");
    environment_["SONDE_LIBDIR"] = folder_ + "/lib64";
    environment_["SONDE_CACHE_DIR"] = folder_ + "/cache";
    environment_["SONDE_THRASHING_LAPSE_MS"] = "60000";  // the machine may be busy
  }
  void TearDown() override { fs::remove_all(folder_); }
  Outcome run(std::vector<std::string> options, const std::string& how = "once") {
    options.insert(options.begin(), {SONDE, "run", "-q", "--unified-memory-profiling", "per-process-device"});
    options.insert(options.end(), {MANAGED, how});
    return runProgram(options, environment_);
  }
  std::string csv(const std::string& report, const std::string& how = "once") {
    const Outcome o = run({"--csv", "-r", report}, how);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  }
  // Fields of the line that ends in `end`; times are left out by the caller.
  static std::vector<std::string> row(const std::string& csv, const std::string& end) {
    std::istringstream in(csv);
    std::string line;
    while (std::getline(in, line)) {
      if (line.size() < end.size() || line.compare(line.size() - end.size(), end.size(), end) != 0) continue;
      std::vector<std::string> fields;
      std::istringstream parts(line);
      for (std::string field; std::getline(parts, field, ',');) fields.push_back(field);
      return fields;
    }
    ADD_FAILURE() << "no line ends in " << end << " in\n" << csv;
    return std::vector<std::string>(32);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  Environment environment_;
};

TEST_F(Unified, TransfersAndFaultsByDevice) {
  const std::string out = csv("um_profile_sum");
  for (const char* way : {"Host-to-Device", "Device-to-Host"}) {
    const auto r = row(out, std::string(",Sonde Software GPU (0),") + way);
    EXPECT_EQ(r[0], "10") << way;        // five regions, of each the faulting page and the rest
    EXPECT_EQ(r[1], "0.104858") << way;  // MB
    EXPECT_EQ(r[2], "0.004096") << way;
    EXPECT_EQ(r[3], "0.520192") << way;
    EXPECT_EQ(r[4], "1.048576") << way;
    EXPECT_GT(std::stoull(r[5]), 0u) << way;
  }
  EXPECT_EQ(row(out, ",GPU page fault groups")[0], "5");
  EXPECT_EQ(row(out, ",CPU,CPU page faults")[0], "10");
}

TEST_F(Unified, CpuFaultsNameTheirFunctionAndLine) {
  const std::string out = csv("um_cpu_page_faults_sum");
  for (const auto& [function, line, reads, writes] :
       {std::tuple("writePages", lineOf("the faulting line of writes"), "0", "5"),
        std::tuple("readPages", lineOf("the faulting line of reads"), "5", "0")}) {
    std::istringstream in(out);
    std::string found;
    for (std::string text; std::getline(in, text);)
      if (text.find(function) != std::string::npos) found = text;
    EXPECT_THAT(found, HasSubstr(std::string("50.0,5,") + reads + "," + writes + ",5,managed+0x")) << out;
    EXPECT_THAT(found, HasSubstr("," + line + ",")) << out;
  }
}

TEST_F(Unified, GpuFaultsNameTheirKernel) {
  const auto r = row(csv("um_gpu_page_faults_sum"), ",Sonde Software GPU (0),bump");
  EXPECT_EQ(r[0], "100.0");
  EXPECT_EQ(r[2], "5");
  EXPECT_EQ(r[3], "5");
  EXPECT_EQ(r[4], "0");  // reads
  EXPECT_EQ(r[5], "5");
}

TEST_F(Unified, TotalsAndPages) {
  const std::string totals = csv("um_total_sum");
  EXPECT_THAT(totals, HasSubstr("\n1.048576,1.048576,0.000000,10,5,0x"));
  const std::string pages = csv("um_sum:rows=0");
  EXPECT_EQ(std::count(pages.begin(), pages.end(), '\n'), 11);  // ten addresses
  const std::string three = csv("um_sum:rows=3");
  EXPECT_EQ(std::count(three.begin(), three.end(), '\n'), 4);
  EXPECT_THAT(three, HasSubstr("81000,0.520192,0.520192,0,0,"));  // the largest first
  const std::string causes = csv("um_cause_sum");
  EXPECT_EQ(row(causes, ",Host-to-Device,Coherence")[2], "5");
  EXPECT_EQ(row(causes, ",Host-to-Device,Prefetch")[2], "5");
  EXPECT_EQ(row(causes, ",Device-to-Host,Prefetch")[1], "1.028096");  // 251 pages
}

TEST_F(Unified, AdviceHasItsNumbers) {
  const Outcome o = run({"-r", "um_advice"});
  EXPECT_EQ(o.status, 0) << o.err;
  std::string text = o.out;
  for (size_t at; (at = text.find("\n   ")) != std::string::npos;) text.replace(at, 4, " ");
  EXPECT_THAT(text, HasSubstr("(1.049 MB): 1.049 MB came to GPU 0 in 10 transfers after 5 fault groups in bump"));
  EXPECT_THAT(text, HasSubstr("cudaMemPrefetchAsync of these bytes to GPU 0"));
  EXPECT_THAT(text, HasSubstr("1.049 MB came back to the CPU in 10 transfers after 5 faults in "));
  EXPECT_THAT(text, HasSubstr(lineOf("the faulting line of reads")));
  EXPECT_THAT(csv("um_advice"), HasSubstr("prefetch to the GPU,0x"));
}

TEST_F(Unified, ThrashingNamesWhoFights) {
  const std::string out = csv("um_thrashing_sum", "pingpong");
  const auto r = row(out, ",\"CPU, GPU 0\"");
  EXPECT_EQ(r[1], "0.004096");
  EXPECT_EQ(r[2], "1");  // detected once
  EXPECT_EQ(r[3], "5");
  EXPECT_EQ(r[4], "5");
  const std::string advice = csv("um_advice", "pingpong");
  EXPECT_THAT(advice, HasSubstr("ping-pong,0x"));
  EXPECT_THAT(advice, HasSubstr("20.480 kB to the GPU and 20.480 kB back for 4.096 kB"));
  EXPECT_THAT(advice, Not(HasSubstr("prefetch to")));
}

TEST_F(Unified, WhatIsOnlyReadIsToBeReadMostly) {
  const std::string advice = csv("um_advice", "readonly");
  EXPECT_THAT(advice, HasSubstr("read-mostly,0x"));
  EXPECT_THAT(advice, HasSubstr("cudaMemAdviseSetReadMostly"));
  EXPECT_THAT(advice, HasSubstr("if nothing writes to it from then on"));  // the kernel might, after its first access
  EXPECT_THAT(advice, HasSubstr("in all for 65.536 kB"));
}

// The text of a report without its line breaks.
std::string flat(std::string text) {
  for (size_t at; (at = text.find("\n   ")) != std::string::npos;) text.replace(at, 4, " ");
  return text;
}

TEST_F(Unified, OversubscriptionIsAdvisedOfWithWhatWasEvicted) {
  // Room for two of the three blocks of 2 MiB: the first one goes when the third comes.
  const Outcome o = run({"-r", "um_advice", "-r", "um_cause_sum"}, "room");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(flat(o.out), HasSubstr("(6.291 MB): 2.097 MB were evicted to make room on the GPU, 2.097 MB of them "
                                     "different pages."));
  EXPECT_THAT(o.out, HasSubstr("Eviction"));
  EXPECT_THAT(o.out, Not(HasSubstr("reaches over")));
}

TEST_F(Unified, ADeviceWithoutRoomIsAdvisedOf) {
  const Outcome o = run({"-r", "um_advice", "-r", "um_trace"}, "noroom");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(flat(o.out), HasSubstr("(1.049 MB): the GPU reaches over to 1.049 MB in the CPU's memory because it has "
                                     "no room and nothing to evict."));
  EXPECT_THAT(o.out, HasSubstr("Out of memory"));
  EXPECT_THAT(o.out, Not(HasSubstr("evicted")));
  // 16 maps of 64 KiB, from the device to the CPU's memory.
  const std::string trace = csv("um_trace", "noroom");
  size_t maps = 0;
  for (size_t at = 0; (at = trace.find(",GPU 0,CPU,Out of memory,Remote map", at)) != std::string::npos; at++) maps++;
  EXPECT_EQ(maps, 16u) << trace;
}

TEST_F(Unified, FarAccessesAreAdvisedOf) {
  environment_["SONDE_ACCESS_COUNTERS"] = "32";  // reached with the second kernel's last page
  const Outcome o = run({"-r", "um_advice", "-r", "um_cause_sum"}, "far");
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(flat(o.out), HasSubstr("(65.536 kB): 65.536 kB moved to the GPU because it reached over to them often."));
  EXPECT_THAT(o.out, HasSubstr("Access counters"));
  EXPECT_THAT(o.out, Not(HasSubstr("prefetch to the GPU")));
}

TEST_F(Unified, ManagedVariablesAreManagedMemory) {
  const std::string out = csv("um_profile_sum", "static");
  for (const char* way : {"Host-to-Device", "Device-to-Host"}) {
    const auto r = row(out, std::string(",Sonde Software GPU (0),") + way);
    EXPECT_EQ(r[0], "2") << way;  // the faulting page and the rest
    EXPECT_EQ(r[4], "0.065536") << way;
  }
  EXPECT_EQ(row(out, ",GPU page fault groups")[0], "1");
  // It has its initial value from the CPU when the module is loaded: only the read faults.
  EXPECT_EQ(row(out, ",CPU,CPU page faults")[0], "1");
  EXPECT_THAT(csv("um_cpu_page_faults_sum", "static"), HasSubstr(lineOf("the faulting line of reads")));
}

// Without userfaultfd too: by the functions that `sonde run` preloads.
TEST_F(Unified, SystemCallsReachManagedMemory) {
  EXPECT_EQ(run({}, "io").status, 0);
  environment_["SONDE_USERFAULTFD"] = "0";
  const Outcome o = run({"--csv", "-r", "um_cpu_page_faults_sum"}, "io");
  EXPECT_EQ(o.status, 0) << o.err;
  for (const char* function : {"fromFile", "toFile", "inPieces"}) EXPECT_THAT(o.out, HasSubstr(function));
  environment_["SONDE_MANAGED"] = "faults";
  EXPECT_EQ(run({}, "io").status, 0);
  // Without those functions nothing faults, and nothing fails.
  environment_.erase("SONDE_MANAGED");
  const Outcome none = run({"--preload", "off", "--csv", "-r", "um_profile_sum"}, "io");
  EXPECT_EQ(none.status, 0) << none.err;
  EXPECT_THAT(none.out, Not(HasSubstr("CPU page faults")));
  EXPECT_THAT(none.err, HasSubstr("SONDE_MANAGED=faults"));
  EXPECT_THAT(o.err, Not(HasSubstr("SONDE_MANAGED=faults")));
}

// As far as the CPU's faults are concerned one is as good as the other.
TEST_F(Unified, FaultsAreTheSameWithoutUserfaultfd) {
  environment_["SONDE_USERFAULTFD"] = "0";
  const std::string out = csv("um_profile_sum");
  EXPECT_EQ(row(out, ",GPU page fault groups")[0], "5");
  EXPECT_EQ(row(out, ",CPU,CPU page faults")[0], "10");
  EXPECT_THAT(csv("um_cpu_page_faults_sum"), HasSubstr(lineOf("the faulting line of reads")));
}

TEST_F(Unified, AProgramThatPrefetchesNeedsNoAdvice) {
  EXPECT_EQ(csv("um_advice", "prefetch"), "Pattern,Virtual Address,Size (MB),Moved (MB),Advice\n");
}

TEST_F(Unified, TheExportsHoldTheRecords) {
  const Outcome o = run({"--no-report", "-f", "-o", file("t"), "--export", "perfetto,sqlite,csv,json,sonde"});
  ASSERT_EQ(o.status, 0) << o.err;

  std::ifstream in(file("t.json"));
  const json j = json::parse(in);
  std::map<std::string, uint64_t> counts;
  uint64_t up = 0;
  for (const auto& u : j["unified_memory"]) {
    counts[u["name"].get<std::string>()]++;
    if (u["kind"] == 1) up += u["value"].get<uint64_t>();
    if (u["kind"] == 3) {
      EXPECT_THAT(u["source_file"].get<std::string>(), HasSubstr("managed.cpp"));
      EXPECT_GT(u["source_line"].get<int>(), 0);
    }
  }
  EXPECT_EQ(counts["CPU page fault"], 10u);
  EXPECT_EQ(counts["GPU page fault"], 5u);
  EXPECT_EQ(counts["Migration Host-to-Device"], 10u);
  EXPECT_EQ(up, 1u << 20);

  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file("t.sqlite").c_str(), &db), SQLITE_OK);
  const auto ask = [&](const char* sql) {
    sqlite3_stmt* s = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &s, nullptr), SQLITE_OK) << sql;
    const int64_t value = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    sqlite3_finalize(s);
    return value;
  };
  EXPECT_EQ(ask("SELECT sum(value) FROM unified_memory WHERE kind = 2"), 1 << 20);
  EXPECT_EQ(ask("SELECT count(*) FROM unified_memory WHERE flags_name = 'Coherence'"), 10);
  EXPECT_EQ(ask("SELECT count(*) FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS WHERE CpuInstruction LIKE '%readPages%' AND "
                "sourceLine > 0"),
            5);
  EXPECT_EQ(ask("SELECT sum(numberOfPageFaults) FROM CUDA_UM_GPU_PAGE_FAULT_EVENTS WHERE deviceId = 0"), 5);
  sqlite3_close(db);

  std::ifstream csvIn(file("t.csv"));
  std::string line;
  uint64_t lines = 0;
  while (std::getline(csvIn, line)) lines += line.compare(0, 15, "unified_memory,") == 0;
  EXPECT_EQ(lines, 35u);

  // Perfetto: tracks by name, slices with bytes and cause, the level of bytes.
  std::ifstream trace(file("t.pftrace"), std::ios::binary);
  std::stringstream bytes;
  bytes << trace.rdbuf();
  const std::string content = bytes.str();
  std::map<uint64_t, std::string> tracks;
  std::map<std::string, uint64_t> begins, sum;
  std::vector<int64_t> level;
  const ProtoMessage root(content);
  for (const auto& packet : root.messages(1)) {
    if (packet.has(60)) tracks[packet.message(60).number(1)] = packet.message(60).text(2);
    if (!packet.has(11)) continue;
    const ProtoMessage event = packet.message(11);
    const std::string track = tracks[event.number(11)];
    if (track.compare(0, 15, "Unified memory:") != 0) continue;
    if (event.number(9) == 4) level.push_back(static_cast<int64_t>(event.number(30)));
    if (event.number(9) != 1 && event.number(9) != 3) continue;
    begins[track]++;
    for (const auto& a : event.messages(4))
      if (a.text(10) == "bytes") sum[track] += a.number(3);
  }
  EXPECT_EQ(begins["Unified memory: CPU page faults"], 10u);
  EXPECT_EQ(begins["Unified memory: GPU 0 page faults"], 5u);
  EXPECT_EQ(begins["Unified memory: GPU 0 Host-to-Device"], 10u);
  EXPECT_EQ(sum["Unified memory: GPU 0 Host-to-Device"], 1u << 20);
  EXPECT_EQ(sum["Unified memory: GPU 0 Device-to-Host"], 1u << 20);
  ASSERT_FALSE(level.empty());
  EXPECT_EQ(*std::max_element(level.begin(), level.end()), 1 << 20);
  EXPECT_EQ(level.back(), 0);

  // The trace file has the names of the code in it.
  const Outcome report =
      runProgram({SONDE, "report", file("t.sonde"), "--csv", "-r", "um_cpu_page_faults_sum"}, environment_);
  EXPECT_THAT(report.out, HasSubstr(lineOf("the faulting line of writes")));
}

TEST_F(Unified, OffIsTheDefaultAndAHintSaysSo) {
  const Outcome o = runProgram({SONDE, "run", MANAGED}, environment_);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("--unified-memory-profiling per-process-device"));
  EXPECT_THAT(o.out, Not(HasSubstr("um_profile_sum")));
  const Outcome bad = runProgram({SONDE, "run", "--unified-memory-profiling", "sometimes", MANAGED}, environment_);
  EXPECT_EQ(bad.status, 125);
  EXPECT_THAT(bad.err + bad.out, HasSubstr("per-process-device"));
}

}  // namespace
}  // namespace sonde::test
