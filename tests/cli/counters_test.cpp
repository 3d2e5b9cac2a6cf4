// SPDX-License-Identifier: Apache-2.0
// Events and metrics from the command line, against what counted.cpp is known
// to do (the numbers stand there).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "process.h"

namespace sonde::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Counters : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "sonde-counters-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    fs::create_directories(folder_ + "/lib64/softgpu");
    fs::create_directories(folder_ + "/tmp");
    fs::create_symlink(COLLECTOR, folder_ + "/lib64/libsonde-collector.so");
    fs::create_symlink(CUPTI, folder_ + "/lib64/libcupti.so.13");
    fs::create_symlink(CUDA, folder_ + "/lib64/softgpu/libcuda.so.1");
    environment_["SONDE_LIBDIR"] = folder_ + "/lib64";
    environment_["TMPDIR"] = folder_ + "/tmp";
    environment_["SONDE_STATE_DIR"] = folder_ + "/state";
    environment_["SONDE_CACHE_DIR"] = folder_ + "/cache";
  }
  void TearDown() override {
    EXPECT_TRUE(fs::is_empty(folder_ + "/tmp"));
    fs::remove_all(folder_);
  }
  Outcome sonde(std::vector<std::string> arguments, void (*ready)(pid_t) = nullptr) {
    arguments.insert(arguments.begin(), SONDE);
    return runProgram(arguments, environment_, ready);
  }
  // Of `run -q --csv`: what is printed.
  std::string csv(std::vector<std::string> options, const std::string& how = "") {
    options.insert(options.begin(), {"run", "-q", "--csv"});
    options.emplace_back(COUNTED);
    if (!how.empty()) options.push_back(how);
    const Outcome o = sonde(options);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.out;
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
  Environment environment_;
};

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
  const Outcome run =
      sonde({"run", "-o", file("t"), "--export", "sonde,json", "-e", "warps_launched", "-m", "inst_per_warp", COUNTED});
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

TEST_F(Counters, MovingClocksAreSaid) {
  EXPECT_THAT(sonde({"run", "-e", "elapsed_cycles_sm", COUNTED}).err,
              HasSubstr("sonde: warning: the clocks of device 0 moved freely, and the values of elapsed_cycles_sm "
                        "depend on them"));
  EXPECT_THAT(sonde({"run", "-e", "warps_launched", "-m", "inst_per_warp", COUNTED}).err, Not(HasSubstr("clocks")));
}

// ------------------------------------------------------------------ clocks --

std::string clockStatus(const std::string& jsonLine) { return json::parse(jsonLine)["status"].get<std::string>(); }

TEST_F(Counters, ALockStaysUntilUnlockFreesIt) {
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "unlocked");
  const Outcome lock = sonde({"clocks", "lock", "--mode", "boost"});
  EXPECT_EQ(lock.status, 0) << lock.err;
  EXPECT_THAT(lock.err, HasSubstr("the clocks of device 0 are locked to boost until 'sonde clocks unlock'"));
  const json locked = json::parse(sonde({"clocks", "status", "--json"}).out);
  EXPECT_EQ(locked["status"], "locked");
  EXPECT_THAT(sonde({"clocks", "lock"}).err, HasSubstr("locked already"));
  // Still at the boost clock: the second lock changed nothing.
  EXPECT_EQ(json::parse(sonde({"clocks", "status", "--json"}).out)["sm_mhz"], locked["sm_mhz"]);
  // A run's own lock is none then, and its end frees nothing.
  EXPECT_EQ(sonde({"run", "-q", "--no-report", "--lock-clocks", "base", COUNTED}).status, 0);
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "locked");
  const Outcome unlock = sonde({"clocks", "unlock"});
  EXPECT_EQ(unlock.status, 0) << unlock.err;
  EXPECT_THAT(unlock.err, HasSubstr("the clocks of device 0 are unlocked"));
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "unlocked");
  EXPECT_THAT(sonde({"clocks", "unlock"}).err, HasSubstr("are not locked"));
}

TEST_F(Counters, SomebodyElsesLockIsLeftAlone) {
  fs::create_directories(folder_ + "/state");
  std::ofstream(folder_ + "/state/clocks-default-0") << "sonde-clocks 1 base 1\n";
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "locked");
  const Outcome unlock = sonde({"clocks", "unlock"});
  EXPECT_EQ(unlock.status, 0);
  EXPECT_THAT(unlock.err, HasSubstr("were locked by another program; they stay so"));
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "locked");
}

TEST_F(Counters, OnlyTheDevicesNamedAreLocked) {
  environment_["SONDE_DEVICES"] = "default,kepler";
  EXPECT_EQ(sonde({"clocks", "lock", "--device", "1"}).status, 0);
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json", "--device", "0"}).out), "unlocked");
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json", "--device", "1"}).out), "locked");
  EXPECT_EQ(sonde({"clocks", "unlock"}).status, 0);
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json", "--device", "1"}).out), "unlocked");
  EXPECT_EQ(sonde({"clocks", "lock", "--device", "2"}).status, 125);
}

TEST_F(Counters, RunLocksClocksAndFreesThemHoweverItEnds) {
  const Outcome o = sonde({"run", "--lock-clocks", "base", "-e", "elapsed_cycles_sm", COUNTED});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.err, Not(HasSubstr("moved freely")));
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "unlocked");
  // Locked clocks make cycles repeat exactly.
  const auto cycles = [&] { return csv({"--lock-clocks", "base", "-e", "elapsed_cycles_sm"}); };
  EXPECT_EQ(cycles(), cycles());
  EXPECT_EQ(sonde({"run", "-q", "--lock-clocks", "base", COUNTED, "abort"}).status, 128 + SIGABRT);
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "unlocked");
  EXPECT_EQ(
      sonde({"run", "-q", "--lock-clocks", "base", COUNTED, "sleep"}, [](pid_t pid) { ::kill(pid, SIGTERM); }).status,
      128 + SIGTERM);
  EXPECT_EQ(clockStatus(sonde({"clocks", "status", "--json"}).out), "unlocked");
}

TEST_F(Counters, EnvironmentOfALockedDevice) {
  ASSERT_EQ(sonde({"clocks", "lock", "--mode", "boost"}).status, 0);
  const json d = json::parse(sonde({"devices", "--device", "software", "--json"}).out);
  const Outcome o = sonde(
      {"run", "-q", "-o", file("t"), "--export", "json,perfetto", "--environment", "--environment-ms", "5", COUNTED});
  EXPECT_EQ(sonde({"clocks", "unlock"}).status, 0);
  ASSERT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("(environment_sum)"), HasSubstr("Clocks held by set clocks (% of samples)")));
  std::ifstream in(file("t.json"));
  size_t speeds = 0;
  const json t = json::parse(in);
  for (const json& e : t["environment"]) {
    if (!e.contains("sm_clock_mhz")) continue;
    EXPECT_EQ(e["sm_clock_mhz"], d["clocks"]["sm_mhz"]);
    speeds++;
  }
  EXPECT_GE(speeds, 2u);  // at the start and at the end at least
}

TEST_F(Counters, DevicesTellClocksAndLimits) {
  const json d = json::parse(sonde({"devices", "--device", "software", "--json"}).out);
  EXPECT_EQ(d["limits"]["warp_size"], 32);
  EXPECT_EQ(d["limits"]["max_threads_per_block"], 1024);
  EXPECT_EQ(d["clocks"]["status"], "unlocked");
  EXPECT_GT(d["clocks"]["sm_mhz"], 0);
  EXPECT_GT(d["clocks"]["power_limit_mw"], d["clocks"]["power_mw"]);
  EXPECT_THAT(sonde({"devices", "--device", "software"}).out,
              AllOf(HasSubstr("clocks: unlocked, SM "), HasSubstr("limits: 32 threads a warp, 1,024 threads a block")));
}

}  // namespace
}  // namespace sonde::test
