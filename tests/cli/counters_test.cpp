// SPDX-License-Identifier: Apache-2.0
// Events and metrics from the command line, against what counted.cpp is known
// to do (the numbers stand there).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "built_product.h"
#include "proto_tree.h"

namespace sonde::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Counters : public BuiltProduct {
 protected:
  // Of `run -q --csv`: what is printed.
  std::string csv(std::vector<std::string> options, const std::string& how = "") {
    options.insert(options.begin(), {"run", "-q", "--csv"});
    options.emplace_back(COUNTED);
    if (!how.empty()) options.push_back(how);
    const Outcome o = sonde(options);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  }
};

// Rows as "a|b".
std::string sqlite(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  std::string out;
  const auto row = [](void* to, int n, char** values, char**) {
    for (int i = 0; i < n; ++i)
      *static_cast<std::string*>(to) += std::string(i ? "|" : "") + (values[i] ? values[i] : "NULL");
    *static_cast<std::string*>(to) += "\n";
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, sql, row, &out, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
  return out;
}

constexpr const char* kAdd = "Sonde Software GPU (0),add,2,";
constexpr const char* kTouch = "Sonde Software GPU (0),touch,1,";

TEST_F(Counters, EventsOfEachKernel) {
  EXPECT_EQ(csv({"--names", "base", "-e", "warps_launched,inst_executed", "-e", "gld_request,global_load_sectors"}),
            std::string("Device,Kernel,Invocations,Event Name,Event Description,Min,Max,Avg,Total\n") +  //
                kAdd + "warps_launched,Warps launched,32,32,32.000000,64\n" +                            //
                kAdd + "inst_executed,Warp instructions executed,512,512,512.000000,1024\n" +            //
                kAdd + "gld_request,Global load requests,64,64,64.000000,128\n" +                        //
                kAdd + "global_load_sectors,Global load sectors,256,256,256.000000,512\n" +              //
                kTouch + "warps_launched,Warps launched,4,4,4.000000,4\n" +                              //
                kTouch + "inst_executed,Warp instructions executed,24,24,24.000000,24\n" +               //
                kTouch + "gld_request,Global load requests,0,0,0.000000,0\n" +                           //
                kTouch + "global_load_sectors,Global load sectors,0,0,0.000000,0\n");
}

TEST_F(Counters, MetricsOfEachKernel) {
  // 512 instructions of 32 warps; 64 requests of 4 sectors; 1024 additions.
  const std::string out = csv(
      {"--names", "base", "-m", "inst_per_warp,gld_transactions_per_request,gld_efficiency", "-m", "flop_count_sp"});
  EXPECT_THAT(out, AllOf(HasSubstr("Device,Kernel,Invocations,Metric Name,Metric Description,Min,Max,Avg\n"),
                         HasSubstr("add,2,inst_per_warp,Instructions per warp,16.000000,16.000000,16.000000\n"),
                         HasSubstr("request,4.000000,4.000000,4.000000\n"),
                         HasSubstr("add,2,gld_efficiency,Global load efficiency,100.000000,100.000000,100.000000\n"),
                         HasSubstr("add,2,flop_count_sp,Single-precision operations,1024,1024,1024.000000\n"),
                         HasSubstr("touch,1,inst_per_warp,Instructions per warp,6.000000,6.000000,6.000000\n")));
  // The events behind them were not asked for.
  EXPECT_THAT(out, Not(HasSubstr("Event Name")));
}

TEST_F(Counters, TextTablesHaveUnits) {
  const Outcome o = sonde({"run", "-q", "-e", "warps_launched", "-m", "gld_efficiency", COUNTED});
  EXPECT_THAT(o.out, AllOf(HasSubstr("** CUDA Event Results (cuda_event_sum)"),
                           HasSubstr("** CUDA Metric Results (cuda_metric_sum)"), HasSubstr("100.00%"),
                           HasSubstr("add(float const*, float const*, float*)"), Not(HasSubstr("cuda_api_sum"))));
}

TEST_F(Counters, OneRowForEachLaunch) {
  const std::string out = csv({"--names", "base", "--print-gpu-trace", "-e", "inst_executed", "-m", "inst_per_warp"});
  std::istringstream lines(out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "Start (ns),Device,Ctx,Strm,CorrId,Kernel,inst_per_warp,inst_executed");
  std::vector<std::string> ends;
  while (std::getline(lines, line)) ends.push_back(line.substr(line.find(",Sonde") + 1));
  ASSERT_EQ(ends.size(), 3u) << out;
  for (std::string& e : ends) e = e.substr(0, 22) + e.substr(e.rfind(',', e.rfind(',', e.rfind(',') - 1) - 1));
  EXPECT_EQ(ends[0], "Sonde Software GPU (0),add,16.000000,512");
  EXPECT_EQ(ends[1], "Sonde Software GPU (0),add,16.000000,512");
  EXPECT_EQ(ends[2], "Sonde Software GPU (0),touch,6.000000,24");
}

TEST_F(Counters, InstancesOfADomainAddUpToTheTotal) {
  const std::string out = csv({"--names", "base", "--kernels", "^add", "--aggregate-mode", "off", "-e",
                               "warps_launched", "-m", "inst_per_warp"});
  EXPECT_THAT(out, HasSubstr("Device,Kernel,Invocations,Instance,Event Name,"));
  uint64_t sum = 0, rows = 0;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(",warps_launched,") == std::string::npos) continue;
    sum += std::stoull(line.substr(line.rfind(',') + 1));
    rows++;
  }
  EXPECT_EQ(sum, 64u);
  EXPECT_GT(rows, 4u);
  // Each multiprocessor has one block of 8 warps.
  EXPECT_THAT(out, HasSubstr("add,2,0,warps_launched,Warps launched,8,8,8.000000,16\n"));
}

TEST_F(Counters, KernelsAndDevicesSayWhatIsCounted) {
  environment_["SONDE_DEVICES"] = "default,default";
  const std::string touch = csv({"--names", "base", "--kernels", "touch\\(int", "-e", "warps_launched"});
  EXPECT_THAT(touch, AllOf(HasSubstr("touch,1,warps_launched"), Not(HasSubstr("add"))));
  EXPECT_THAT(csv({"--devices", "0", "-e", "warps_launched"}), HasSubstr("touch"));
  EXPECT_THAT(csv({"--devices", "1", "-e", "warps_launched"}), Not(HasSubstr("touch")));
  const Outcome none = sonde({"run", "--devices", "7", "-e", "warps_launched", COUNTED});
  EXPECT_EQ(none.status, 125);
  EXPECT_THAT(none.err, HasSubstr("there is no device 7"));
}

TEST_F(Counters, EachReplayModeGivesTheSameCounts) {
  const std::string events = "all";
  // Cycles are among them.
  ASSERT_EQ(sonde({"clocks", "lock"}).status, 0);
  const std::string kernel = csv({"--kernels", "touch", "-e", events});
  EXPECT_GT(std::count(kernel.begin(), kernel.end(), '\n'), 100);
  EXPECT_EQ(csv({"--kernels", "touch", "-e", events, "--replay-mode", "application"}), kernel);
  const Outcome o =
      sonde({"run", "-q", "--csv", "--kernels", "touch", "-e", events, "--replay-mode", "disabled", COUNTED});
  EXPECT_THAT(o.err, HasSubstr("passes for these events; only those of the first were counted"));
  EXPECT_LT(std::count(o.out.begin(), o.out.end(), '\n'), std::count(kernel.begin(), kernel.end(), '\n'));
  // What it did count is right.
  std::istringstream lines(o.out);
  for (std::string line; std::getline(lines, line);) EXPECT_THAT(kernel, HasSubstr(line + "\n"));
}

TEST_F(Counters, MetricsOverSeveralRunsOfTheApplication) {
  const std::vector<std::string> options = {"--names", "base", "-m", "all", "--kernels", "^add"};
  std::vector<std::string> again = options;
  again.insert(again.end(), {"--replay-mode", "application"});
  const std::string out = csv(again);
  EXPECT_THAT(out, AllOf(HasSubstr("add,2,inst_per_warp,Instructions per warp,16.000000,"),
                         HasSubstr("add,2,flop_count_sp,Single-precision operations,1024,1024,")));
  const std::string atOnce = csv(options);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), std::count(atOnce.begin(), atOnce.end(), '\n'));
}

TEST_F(Counters, ContinuousModeCountsTheSame) {
  EXPECT_THAT(csv({"--names", "base", "--event-collection-mode", "continuous", "-e", "inst_executed"}),
              AllOf(HasSubstr("add,2,inst_executed,Warp instructions executed,512,512,"),
                    HasSubstr("touch,1,inst_executed,Warp instructions executed,24,24,")));
}

TEST_F(Counters, LaunchesOfGraphsCountAsOne) {
  for (const char* mode : {"kernel", "disabled", "application"}) {
    const std::string out =
        csv({"--names", "base", "--replay-mode", mode, "-e", "warps_launched,inst_executed", "-m", "inst_per_warp"},
            "graph");
    // 32 warps of 16 and 4 of 6 instructions.
    EXPECT_THAT(out, HasSubstr("graph 2],2,warps_launched,Warps launched,36,36,36.000000,72\n")) << mode;
    EXPECT_THAT(out, HasSubstr("graph 2],2,inst_executed,Warp instructions executed,536,536,536.000000,1072\n"));
    EXPECT_THAT(out, HasSubstr("graph 2],2,inst_per_warp,Instructions per warp,14.888889,14.888889,14.888889\n"));
    // The kernels before it are as ever.
    EXPECT_THAT(out, HasSubstr("add,2,inst_executed,Warp instructions executed,512,512,512.000000,1024\n"));
    EXPECT_THAT(out, HasSubstr("touch,1,warps_launched,Warps launched,4,4,4.000000,4\n"));
  }
  // More events than one pass holds.
  const Outcome all = sonde({"run", "-q", "--csv", "-e", "all", COUNTED, "graph"});
  EXPECT_THAT(all.err, HasSubstr("passes for these events; only those of the first were counted for them"));
  EXPECT_THAT(csv({"--kernels", "graph", "-e", "warps_launched"}, "graph"),
              AllOf(HasSubstr("graph 2],2,"), Not(HasSubstr("add"))));
}

TEST_F(Counters, PerfettoHasThem) {
  const Outcome run =
      sonde({"run", "-o", file("t"), "--export", "perfetto,chrome", "-e", "warps_launched", COUNTED, "graph"});
  ASSERT_EQ(run.status, 0) << run.err;
  std::ifstream in(file("t.pftrace"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::map<uint64_t, std::string> args;
  std::vector<uint64_t> atKernels;
  std::vector<double> track;
  std::string ofGraphs;
  for (const ProtoMessage& packet : ProtoMessage(bytes).messages(1)) {
    for (const auto& e : packet.message(12).messages(1001)) args[e.number(1)] = e.text(2);
    for (const auto& a : packet.message(53).message(21).messages(3))
      if (args[a.number(1)] == "warps_launched") atKernels.push_back(a.number(4));
    if (packet.message(52).number(4) > 2 << 16) track.push_back(packet.message(52).messages(2)[0].real(3));
    for (const auto& a : packet.message(11).messages(4))
      if (a.text(10) == "warps_launched") ofGraphs += std::to_string(a.number(3)) + " ";
  }
  EXPECT_EQ(atKernels, (std::vector<uint64_t>{32, 32, 4}));
  EXPECT_EQ(track, (std::vector<double>{32, 0, 32, 0, 4, 0, 36, 0, 36, 0}));
  EXPECT_EQ(ofGraphs, "36 36 ");
  // Chrome's format: not at the first kernel of the graph.
  std::ifstream chromeFile(file("t.chrome.json"));
  std::vector<std::pair<std::string, int>> counted;
  const json chrome = json::parse(chromeFile);
  for (const json& e : chrome["traceEvents"])
    if (e.contains("args") && e["args"].contains("counters"))
      counted.emplace_back(e["name"].get<std::string>().substr(0, 5), e["args"]["counters"]["warps_launched"]);
  EXPECT_EQ(counted, (std::vector<std::pair<std::string, int>>{
                         {"add(f", 32}, {"add(f", 32}, {"touch", 4}, {"[CUDA", 36}, {"[CUDA", 36}}));
}

TEST_F(Counters, AnAbortedOrKilledProgramLeavesItsCounts) {
  const Outcome aborted = sonde({"run", "-q", "--csv", "--names", "base", "-e", "inst_executed", COUNTED, "abort"});
  EXPECT_EQ(aborted.status, 128 + SIGABRT);
  EXPECT_THAT(aborted.out, HasSubstr("touch,1,inst_executed,Warp instructions executed,24,24,24.000000,24\n"));
  const Outcome killed = sonde({"run", "-q", "--csv", "--names", "base", "-e", "inst_executed", COUNTED, "sleep"},
                               [](pid_t pid) { ::kill(pid, SIGTERM); });
  EXPECT_EQ(killed.status, 128 + SIGTERM);
  EXPECT_THAT(killed.out, HasSubstr("touch,1,inst_executed,Warp instructions executed,24,24,24.000000,24\n"));
}

TEST_F(Counters, FilesKeepThem) {
  const Outcome run = sonde({"run", "-o", file("t"), "--export", "sonde,json,sqlite,csv", "-e", "warps_launched", "-m",
                             "inst_per_warp", COUNTED});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(sonde({"report", file("t.sonde")}).out, run.out);
  std::ifstream in(file("t.json"));
  const json t = json::parse(in);
  ASSERT_EQ(t["counted_launches"].size(), 3u);
  const json& first = t["counted_launches"][0];
  EXPECT_EQ(first["mangled_name"], "_Z3addPKfS0_Pf");
  json values = json::object();
  for (const json& v : first["values"]) values[v.value("event", v.value("metric", ""))] = v["value"];
  EXPECT_EQ(values["warps_launched"], 32);
  EXPECT_EQ(values["inst_per_warp"], 16);
  ASSERT_EQ(sonde({"export", file("t.sonde"), "--export", "chrome", "-o", file("chrome")}).status, 0);
  std::ifstream chromeFile(file("chrome.json"));
  const json chrome = json::parse(chromeFile);
  std::vector<json> counted;
  for (const json& e : chrome["traceEvents"])
    if (e.contains("args") && e["args"].contains("counters")) counted.push_back(e);
  ASSERT_EQ(counted.size(), 3u);
  EXPECT_EQ(counted[0]["name"], "add(float const*, float const*, float*)");
  EXPECT_EQ(counted[0]["args"]["counters"]["warps_launched"], 32);
  EXPECT_EQ(counted[0]["args"]["counters"]["inst_per_warp"], 16);
  std::ifstream csvFile(file("t.csv"));
  const std::string lines{std::istreambuf_iterator<char>(csvFile), {}};
  EXPECT_THAT(lines, AllOf(HasSubstr(",Name,Address,Faults,Cause,Counter,Instance,Value\n"),
                           HasSubstr("\"add(float const*, float const*, float*)\",,,,warps_launched,,32\n"),
                           HasSubstr("\"add(float const*, float const*, float*)\",,,,inst_per_warp,,16\n")));
  EXPECT_EQ(sqlite(file("t.sqlite"),
                   "SELECT s.text, v.value FROM counter_value v JOIN counted_launch l ON l.id = v.launch_id "
                   "JOIN string s ON s.id = l.name_id WHERE v.name = 'warps_launched' AND v.instance IS NULL "
                   "ORDER BY l.id"),
            "add(float const*, float const*, float*)|32\nadd(float const*, float const*, float*)|32\n"
            "touch(int*)|4\n");
  EXPECT_EQ(sqlite(file("t.sqlite"), "SELECT kind, shown FROM counter WHERE name = 'inst_per_warp'"), "metric|1\n");
}

TEST_F(Counters, UnknownNamesAnswerWithTheNearest) {
  const Outcome event = sonde({"run", "-e", "warp_launched", COUNTED, "sleep"});
  EXPECT_EQ(event.status, 125);
  EXPECT_THAT(event.err, HasSubstr("there is no event 'warp_launched'; the nearest are warps_launched, "));
  const Outcome metric = sonde({"run", "-m", "branch_eficiency", COUNTED, "sleep"});
  EXPECT_EQ(metric.status, 125);
  EXPECT_THAT(metric.err, HasSubstr("there is no metric 'branch_eficiency'; the nearest are branch_efficiency, "));
  EXPECT_THAT(sonde({"run", "-e", "ipc", COUNTED}).err, HasSubstr("'ipc' is a metric: -m ipc"));
}

TEST_F(Counters, QueriesListEachDevice) {
  environment_["SONDE_DEVICES"] = "default,kepler";
  const Outcome text = sonde({"run", "--query-events"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("Device 0 ("), HasSubstr("Device 1 ("), HasSubstr("  Domain sm:\n"),
                              HasSubstr("    warps_launched ")));
  EXPECT_THAT(sonde({"run", "--query-events", "--csv"}).out,
              AllOf(testing::StartsWith("Device,Device Name,Domain,Event Name,Description\n0,"),
                    HasSubstr(",sm,warps_launched,Warps launched\n"), HasSubstr("\n1,")));
  std::istringstream lines(sonde({"run", "--query-metrics", "--json", "--devices", "1"}).out);
  size_t metrics = 0;
  bool ipc = false;
  for (std::string line; std::getline(lines, line); metrics++) {
    const json m = json::parse(line);
    EXPECT_EQ(m["device"], 1);
    EXPECT_FALSE(m["description"].get<std::string>().empty());
    EXPECT_FALSE(m["events"].empty());
    ipc = ipc || m["metric"] == "ipc";
  }
  EXPECT_GE(metrics, 40u);
  EXPECT_TRUE(ipc);
}

}  // namespace
}  // namespace sonde::test
