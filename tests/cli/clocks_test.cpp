// SPDX-License-Identifier: Apache-2.0
// `sonde clocks`, `sonde run --lock-clocks`, `--environment` and `sonde devices`
// on the software GPU, and on its stand-in for a card: the software driver in
// the place of the vendor's, behind hooks, and a stand-in for NVML.
#include <dirent.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "built_product.h"
#include "proto_tree.h"

namespace sonde::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string contents(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<pid_t> childrenOf(pid_t process) {
  std::istringstream in(
      contents("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children"));
  return {std::istream_iterator<pid_t>(in), {}};
}

// Whether it becomes true within a minute.
bool soon(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class Clocks : public BuiltProduct {
 protected:
  json clocks(const std::string& device = "0") {
    const Outcome o = sonde({"clocks", "status", "--json", "--device", device});
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? json::parse(o.out) : json::object();
  }
  std::string status(const std::string& device = "0") { return clocks(device).value("status", ""); }
  // The state of device 0, as any process sees it.
  std::string state() const { return contents(folder_ + "/state/clocks-default-0"); }
  bool locked() const { return state().rfind("sonde-clocks 1 base ", 0) == 0; }
  void external(const std::string& mode) const {
    std::ofstream(folder_ + "/state/clocks-default-0") << "sonde-clocks 1 " << mode << " 1\n";
  }
  json list() const { return json::parse(contents(folder_ + "/state/clock-locks.json"), nullptr, false); }
};

TEST_F(Clocks, ALockStaysUntilUnlockFreesIt) {
  EXPECT_EQ(status(), "unlocked");
  const Outcome lock = sonde({"clocks", "lock", "--mode", "boost"});
  EXPECT_EQ(lock.status, 0) << lock.err;
  EXPECT_THAT(lock.err, HasSubstr("the clocks of device 0 are locked to boost until 'sonde clocks unlock'"));
  json now = clocks();
  EXPECT_EQ(now["status"], "locked");
  EXPECT_EQ(now["sm_mhz"], 1980);
  EXPECT_THAT(sonde({"clocks", "lock"}).err, HasSubstr("locked already; they stay as they are ('sonde clocks unlock'"));
  EXPECT_EQ(clocks()["sm_mhz"], 1980);  // the second lock changed nothing
  // A run's own lock is none then, and its end frees nothing.
  const Outcome run = sonde({"run", "--no-report", "--lock-clocks", "base", COUNTED});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("locked already; they stay as they are ('sonde clocks unlock' frees them)"));
  EXPECT_EQ(status(), "locked");
  const Outcome unlock = sonde({"clocks", "unlock"});
  EXPECT_EQ(unlock.status, 0) << unlock.err;
  EXPECT_THAT(unlock.err, HasSubstr("the clocks of device 0 are unlocked"));
  EXPECT_EQ(status(), "unlocked");
  EXPECT_THAT(sonde({"clocks", "unlock"}).err, HasSubstr("are not locked"));
  // The default is base.
  EXPECT_EQ(sonde({"clocks", "lock"}).status, 0);
  EXPECT_EQ(clocks()["sm_mhz"], 1095);
  EXPECT_THAT(sonde({"clocks", "status"}).out,
              StartsWith("device 0 (Sonde Software GPU): locked, SM 1095 MHz, memory 2619 MHz, 35 C, 60.0 W of 350.0 W"
                         " (set clocks)\n"));
}

TEST_F(Clocks, SomebodyElsesLockIsLeftAlone) {
  for (const char* mode : {"base", "floor"}) {
    external(mode);
    const std::string before = state();
    EXPECT_THAT(status(), StartsWith("locked"));
    const Outcome unlock = sonde({"clocks", "unlock"});
    EXPECT_EQ(unlock.status, 0);
    EXPECT_THAT(unlock.err, HasSubstr("were locked by another program; they stay so"));
    EXPECT_THAT(sonde({"clocks", "lock"}).err, AllOf(HasSubstr("locked already"), Not(HasSubstr("unlock"))));
    EXPECT_EQ(sonde({"run", "-q", "--no-report", "--lock-clocks", "base", COUNTED}).status, 0);
    EXPECT_EQ(sonde({"clocks", "unlock"}).status, 0);
    EXPECT_EQ(state(), before);
    EXPECT_EQ(list(), json::object());
  }
}

TEST_F(Clocks, OnlyTheDevicesNamedAreLocked) {
  environment_["SONDE_DEVICES"] = "default,kepler";
  EXPECT_EQ(sonde({"clocks", "lock", "--device", "1"}).status, 0);
  EXPECT_EQ(status("0"), "unlocked");
  EXPECT_EQ(status("1"), "locked");
  EXPECT_EQ(clocks("1")["sm_mhz"], 745);
  EXPECT_EQ(sonde({"clocks", "unlock"}).status, 0);
  EXPECT_EQ(status("1"), "unlocked");
  EXPECT_EQ(sonde({"clocks", "lock", "--device", "2"}).status, 125);
  // Without a word about devices: all.
  EXPECT_EQ(sonde({"clocks", "lock"}).status, 0);
  EXPECT_EQ(status("0"), "locked");
  EXPECT_EQ(status("1"), "locked");
}

TEST_F(Clocks, ErrorsSayWhatToDo) {
  external("x");
  EXPECT_THAT(sonde({"clocks", "lock"}).err,
              AllOf(HasSubstr("the clock state " + folder_ + "/state/clocks-default-0 is damaged; remove the file"),
                    HasSubstr("the clocks of device 0 cannot be locked to base")));
  EXPECT_EQ(list(), json::object());  // no lock, no entry
  EXPECT_THAT(sonde({"clocks", "status"}).out, HasSubstr("state of the lock unknown, SM 345 MHz"));
  std::ofstream(folder_ + "/state/clock-locks.json") << "rubbish";
  const Outcome damaged = sonde({"clocks", "unlock"});
  EXPECT_EQ(damaged.status, 125);
  EXPECT_THAT(damaged.err, HasSubstr("clock-locks.json is damaged"));
  environment_["SONDE_STATE_DIR"] = "/proc/sonde";
  EXPECT_THAT(sonde({"clocks", "lock"}).err, HasSubstr("(SONDE_STATE_DIR names another folder)"));
  EXPECT_EQ(sonde({"run", "--lock-clocks", "base", COUNTED}).status, 125);
  EXPECT_EQ(sonde({"clocks", "hold"}).status, 125);
  EXPECT_EQ(sonde({"clocks", "lock", "--mode", "turbo"}).status, 125);
}

TEST_F(Clocks, WithoutRightsBoostIsRefusedAndBaseIsNot) {
  environment_["SONDE_DEVICES"] = UNPRIVILEGED;
  const Outcome boost = sonde({"clocks", "lock", "--mode", "boost"});
  EXPECT_EQ(boost.status, 125);
  EXPECT_THAT(boost.err,
              HasSubstr("run as administrator, or lock to base clocks (CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)"));
  EXPECT_EQ(status(), "unlocked");
  EXPECT_EQ(sonde({"clocks", "lock", "--mode", "base"}).status, 0);
  EXPECT_EQ(status(), "locked");
  EXPECT_EQ(sonde({"clocks", "unlock"}).status, 0);
  const Outcome run = sonde({"run", "--lock-clocks", "boost", COUNTED});
  EXPECT_EQ(run.status, 125);  // the application was not run
  EXPECT_THAT(run.err, AllOf(HasSubstr("cannot be locked to boost"), Not(HasSubstr("profiling"))));
  environment_["SONDE_DEVICES"] = PARTITIONED;
  const Outcome mig = sonde({"clocks", "lock"});
  EXPECT_EQ(mig.status, 125);
  EXPECT_THAT(mig.err, HasSubstr("device 0 has no clock control (partitioned devices have none)"));
}

// ---------------------------------------------------------- run --lock-clocks --

// However the application or sonde ends, the clocks are free afterwards.
TEST_F(Clocks, RunLocksAndFreesHoweverTheApplicationEnds) {
  const std::pair<const char*, int> kEnds[] = {
      {"", 0}, {"abort", 128 + SIGABRT}, {"throw", 128 + SIGABRT}, {"kill", 128 + SIGKILL}};
  for (const auto& [how, end] : kEnds) {
    EXPECT_EQ(sonde({"run", "-q", "--no-report", "--lock-clocks", "base", COUNTED, how}).status, end) << how;
    EXPECT_EQ(state(), "sonde-clocks 1 none 0\n") << how;
    EXPECT_EQ(list(), json::object()) << how;
    fs::remove(folder_ + "/state/clocks-default-0");
  }
  EXPECT_EQ(sonde({"run", "-q", "--lock-clocks", "base", "--timeout", "0.2", COUNTED, "sleep"}).status, 128 + SIGTERM);
  EXPECT_EQ(state(), "sonde-clocks 1 none 0\n");
  EXPECT_EQ(sonde({"run", "-q", "--lock-clocks", "base", "/no/such/program"}).status, 127);
  EXPECT_EQ(state(), "sonde-clocks 1 none 0\n");
}

TEST_F(Clocks, RunLocksAndFreesWhenSondeIsToldToStop) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    bool during = false;
    const Outcome o = sonde({"run", "-q", "--lock-clocks", "base", COUNTED, "sleep"}, [&](pid_t pid) {
      during = locked();
      // It says so, and leaves the lock to the run that has it.
      EXPECT_THAT(sonde({"clocks", "unlock"}).err, HasSubstr("are locked by a 'sonde run' that is under way"));
      EXPECT_TRUE(locked());
      ::kill(pid, number);
    });
    EXPECT_TRUE(during);
    EXPECT_EQ(o.status, 128 + number);
    EXPECT_EQ(state(), "sonde-clocks 1 none 0\n") << number;
    EXPECT_EQ(list(), json::object());
  }
}

TEST_F(Clocks, RunFreesWhenSondeIsKilled) {
  const Outcome o = sonde({"run", "-q", "--lock-clocks", "base", COUNTED, "sleep"}, [&](pid_t pid) {
    EXPECT_TRUE(locked());
    ::kill(pid, SIGKILL);
  });
  EXPECT_EQ(o.status, 1000 + SIGKILL);
  EXPECT_TRUE(soon([&] { return state() == "sonde-clocks 1 none 0\n" && list() == json::object(); })) << state();
  fs::remove_all(folder_ + "/tmp");
  fs::create_directory(folder_ + "/tmp");
}

// Also the process that holds the lock is killed, as when a container ends: then it is on the list.
TEST_F(Clocks, UnlockFreesWhatARunThatWasKilledLeft) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sonde({"run", "-q", "--lock-clocks", "base", COUNTED, "sleep"}, [&](pid_t pid) {
    const std::vector<pid_t> children = childrenOf(pid);
    EXPECT_EQ(children.size(), 2u);  // the application and the holder
    EXPECT_TRUE(locked());
    const pid_t holder = list()["software:0"].value("holder", 0);
    EXPECT_EQ(std::count(children.begin(), children.end(), holder), 1);
    ::kill(holder, SIGKILL);
    ::kill(pid, SIGKILL);
  });
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  EXPECT_TRUE(locked());
  const Outcome again = sonde({"run", "--no-report", "--lock-clocks", "base", COUNTED});
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr("locked already; they stay as they are ('sonde clocks unlock' frees them)"));
  EXPECT_TRUE(locked());
  EXPECT_THAT(sonde({"clocks", "unlock"}).err, HasSubstr("the clocks of device 0 are unlocked"));
  EXPECT_EQ(state(), "sonde-clocks 1 none 0\n");
  fs::remove_all(folder_ + "/tmp");
  fs::create_directory(folder_ + "/tmp");
}

TEST_F(Clocks, LockedClocksMakeCyclesRepeat) {
  const auto run = [&] { return sonde({"run", "--csv", "--lock-clocks", "base", "-e", "elapsed_cycles_sm", COUNTED}); };
  const Outcome o = run();
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.err, Not(HasSubstr("moved freely")));
  EXPECT_EQ(o.out, run().out);
  EXPECT_EQ(status(), "unlocked");
  EXPECT_THAT(
      sonde({"run", "-e", "elapsed_cycles_sm", COUNTED}).err,
      HasSubstr("sonde: warning: the clocks of device 0 moved freely, and the values of elapsed_cycles_sm "
                "depend on them: launches of one kernel can differ. --lock-clocks base holds the clocks still"));
  EXPECT_THAT(sonde({"run", "-e", "warps_launched", "-m", "inst_per_warp", COUNTED}).err, Not(HasSubstr("the clocks")));
}

// -------------------------------------------------------------- environment --

TEST_F(Clocks, EnvironmentOfALockedDevice) {
  ASSERT_EQ(sonde({"clocks", "lock", "--mode", "boost"}).status, 0);
  // Long enough for some samples.
  const Outcome o = sonde({"run", "-q", "-o", file("t"), "--export", "sonde,json,perfetto", "--environment",
                           "--environment-ms", "5", "--timeout", "0.5", COUNTED, "sleep"});
  ASSERT_EQ(o.status, 128 + SIGTERM) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("(environment_sum)"), HasSubstr("SM clock (MHz)"), HasSubstr("Power limit (W)"),
                           HasSubstr("Clocks held by set clocks (% of samples)")));
  EXPECT_THAT(o.err, Not(HasSubstr("moved")));
  // With the summary as comma-separated values: every sample was at the locked clock.
  std::map<std::string, std::vector<std::string>> rows;
  std::istringstream lines(sonde({"report", "-q", "--csv", "-r", "environment_sum", file("t.sonde")}).out);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells;
    std::istringstream of(line);
    for (std::string cell; std::getline(of, cell, ',');) cells.push_back(cell);
    if (cells.size() >= 4) rows[cells[1]] = cells;
  }
  const auto& sm = rows["SM clock (MHz)"];
  ASSERT_EQ(sm.size(), 6u);
  const long samples = std::stol(sm[2]);
  EXPECT_GE(samples, 10);
  EXPECT_EQ(std::vector(sm.begin() + 3, sm.end()), (std::vector<std::string>{"1980.0", "1980.0", "1980.0"}));
  EXPECT_EQ(rows["Power limit (W)"][3], "350.0");
  EXPECT_EQ(rows["Clocks held by set clocks (% of samples)"][3], "100.0");
  EXPECT_EQ(std::stol(rows["Temperature (C)"][2]), samples);
  EXPECT_EQ(std::stol(rows["Fan (%)"][2]), samples);

  const json t = json::parse(contents(file("t.json")));
  size_t speeds = 0;
  for (const json& e : t["environment"]) {
    if (!e.contains("sm_clock_mhz")) continue;
    EXPECT_EQ(e["sm_clock_mhz"], 1980);
    EXPECT_EQ(e["memory_clock_mhz"], 2619);
    speeds++;
  }
  EXPECT_EQ(speeds, static_cast<size_t>(samples));

  // The counter tracks have the same number of values.
  const std::string trace = contents(file("t.pftrace"));
  std::map<uint64_t, std::vector<double>> values;
  std::map<uint64_t, std::string> names;
  for (const ProtoMessage& packet : ProtoMessage(trace).messages(1)) {
    for (const auto& entry : packet.message(12).messages(47))
      for (const auto& spec : entry.message(2).messages(1)) names[spec.number(1)] = spec.text(2);
    for (const auto& counter : packet.message(52).messages(2)) values[counter.number(1)].push_back(counter.real(3));
  }
  for (const auto& [id, name] : names)
    if (name == "SM clock (MHz)") {
      EXPECT_EQ(values[id], std::vector<double>(static_cast<size_t>(samples), 1980.0));
    }
  EXPECT_EQ(std::count_if(names.begin(), names.end(), [](auto& n) { return n.second == "SM clock (MHz)"; }), 1);
}

TEST_F(Clocks, WithoutEnvironmentNothingIsSampled) {
  const Outcome o = sonde({"run", "-o", file("t"), "--export", "json", COUNTED});
  EXPECT_EQ(o.status, 0);
  EXPECT_THAT(o.out, Not(HasSubstr("environment_sum")));
  EXPECT_TRUE(json::parse(contents(file("t.json")))["environment"].empty());
}

// ------------------------------------------------------------------ devices --

TEST_F(Clocks, DevicesTellClocksModelAndLimits) {
  environment_["SONDE_DEVICES"] = "default,kepler";
  std::istringstream lines(sonde({"devices", "--device", "software", "--json"}).out);
  std::vector<json> devices;
  for (std::string line; std::getline(lines, line);) devices.push_back(json::parse(line));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0]["name"], "Sonde Software GPU");
  EXPECT_EQ(devices[0]["compute_capability"], "9.0");
  EXPECT_EQ(devices[0]["core_clock_khz"], 1'980'000);
  EXPECT_EQ(devices[0]["memory_clock_khz"], 2'619'000);
  EXPECT_EQ(devices[0]["limits"]["warp_size"], 32);
  EXPECT_EQ(devices[0]["limits"]["max_threads_per_block"], 1024);
  EXPECT_EQ(devices[0]["clocks"], (json{{"status", "unlocked"},
                                        {"sm_mhz", 345},
                                        {"memory_mhz", 654},
                                        {"temperature_c", 35},
                                        {"power_mw", 60000},
                                        {"power_limit_mw", 350000},
                                        {"fan_percent", 20},
                                        {"throttle_reasons", 1}}));
  EXPECT_EQ(devices[1]["compute_capability"], "3.5");
  EXPECT_EQ(devices[1]["core_clock_khz"], 875'000);
  EXPECT_THAT(sonde({"devices", "--device", "software"}).out,
              AllOf(HasSubstr("Sonde Software GPU"), HasSubstr("1980 MHz"),
                    HasSubstr("clocks: unlocked, SM 345 MHz, memory 654 MHz, 35 C, 60.0 W of 350.0 W (idle)"),
                    HasSubstr("limits: 32 threads a warp, 1,024 threads a block")));
}

// ------------------------------------------------- a card, as far as one can --

class RealClocks : public Clocks {
 protected:
  void SetUp() override {
    Clocks::SetUp();
    card_ = folder_ + "/card";
    environment_["LD_LIBRARY_PATH"] = std::string(NVML_FOLDER) + ":" + folder_ + "/lib64/softgpu";
    environment_["SONDE_PLATFORM"] = "nvidia";
    environment_["NVML_STAND_IN"] = card_;
    // Nothing is locked before it is known that no card can be behind it: the
    // stand-in alone has this much power, and reports the lock in its file.
    std::ofstream(card_) << "777-777";
    const json d = json::parse(sonde({"devices", "--device", "real", "--json"}).out, nullptr, false);
    ASSERT_TRUE(d.is_object());
    ASSERT_EQ(d["clocks"]["power_mw"], 123456);
    ASSERT_EQ(d["clocks"]["sm_mhz"], 777);
    fs::remove(card_);
  }
  Outcome clocksCommand(std::vector<std::string> words) {
    words.insert(words.begin(), "clocks");
    words.insert(words.end(), {"--kind", "real"});
    return sonde(words);
  }
  std::string card_;
};

TEST_F(RealClocks, StatusLockAndUnlock) {
  const json before = json::parse(clocksCommand({"status", "--json"}).out);
  EXPECT_EQ(before["status"], "unlocked");
  EXPECT_EQ(before["sm_mhz"], 1200);
  EXPECT_EQ(before["memory_mhz"], 2600);
  EXPECT_EQ(before["temperature_c"], 41);
  EXPECT_EQ(before["power_limit_mw"], 700000);
  EXPECT_EQ(clocksCommand({"lock"}).status, 0);
  EXPECT_EQ(contents(card_), "4294967041-4294967041");  // the rated clock, by name
  EXPECT_EQ(json::parse(clocksCommand({"status", "--json"}).out)["status"], "locked");
  EXPECT_THAT(clocksCommand({"lock", "--mode", "boost"}).err, HasSubstr("locked already"));
  EXPECT_EQ(contents(card_), "4294967041-4294967041");
  EXPECT_THAT(clocksCommand({"unlock"}).err, HasSubstr("the clocks of device 0 are unlocked"));
  EXPECT_FALSE(fs::exists(card_));
  EXPECT_EQ(clocksCommand({"lock", "--mode", "boost"}).status, 0);
  EXPECT_EQ(contents(card_), "1965-1965");
  EXPECT_EQ(clocksCommand({"unlock"}).status, 0);
  EXPECT_FALSE(fs::exists(card_));
  EXPECT_THAT(clocksCommand({"unlock"}).err, HasSubstr("are not locked"));
  EXPECT_FALSE(fs::exists(folder_ + "/state/clocks-default-0"));  // the software GPU's state is another
}

TEST_F(RealClocks, AnotherProgramsLockStays) {
  std::ofstream(card_) << "1500-1500";
  EXPECT_THAT(clocksCommand({"unlock"}).err, HasSubstr("were locked by another program; they stay so"));
  EXPECT_EQ(clocksCommand({"lock"}).status, 0);
  EXPECT_EQ(clocksCommand({"unlock"}).status, 0);
  EXPECT_EQ(contents(card_), "1500-1500");
}

TEST_F(RealClocks, Refusals) {
  environment_["NVML_DENY"] = "1";
  Outcome o = clocksCommand({"lock"});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("run as administrator"));
  environment_.erase("NVML_DENY");
  EXPECT_EQ(clocksCommand({"lock"}).status, 0);
  environment_["NVML_DENY"] = "1";
  o = clocksCommand({"unlock"});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("the clocks of device 0 cannot be unlocked: run as administrator"));
  environment_.erase("NVML_DENY");
  EXPECT_EQ(clocksCommand({"unlock"}).status, 0);  // it was still on the list
  EXPECT_FALSE(fs::exists(card_));
  environment_["NVML_MIG"] = "1";
  o = clocksCommand({"lock"});
  EXPECT_EQ(o.status, 125);
  EXPECT_THAT(o.err, HasSubstr("CUPTI_ERROR_NOT_SUPPORTED"));
  std::ofstream(card_) << "1500-1500";
  EXPECT_EQ(clocksCommand({"lock"}).status, 0);  // locked from outside is enough
}

TEST_F(RealClocks, RunLocksTheCardAndFreesIt) {
  std::string during;
  const Outcome o = sonde({"run", "-q", "--device", "real", "--lock-clocks", "base", COUNTED, "sleep"}, [&](pid_t pid) {
    during = contents(card_);
    ::kill(pid, SIGINT);
  });
  EXPECT_EQ(o.status, 128 + SIGINT) << o.err;
  EXPECT_EQ(during, "4294967041-4294967041");
  EXPECT_FALSE(fs::exists(card_));
  EXPECT_EQ(sonde({"run", "-q", "--no-report", "--device", "real", "--lock-clocks", "boost", COUNTED, "kill"}).status,
            128 + SIGKILL);
  EXPECT_FALSE(fs::exists(card_));
}

TEST_F(RealClocks, EnvironmentComesFromNvml) {
  environment_["NVML_REASONS"] = "4";
  const Outcome o =
      sonde({"run", "-q", "--csv", "-r", "environment_sum", "--device", "real", "--environment", COUNTED});
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("SM clock (MHz),"), HasSubstr(",1200.0,1200.0,1200.0\n"),
                           HasSubstr(",123.5,123.5,123.5\n"), HasSubstr(",41.0,41.0,41.0\n"),
                           HasSubstr("Clocks held by power cap (% of samples),")));
}

}  // namespace
}  // namespace sonde::test
