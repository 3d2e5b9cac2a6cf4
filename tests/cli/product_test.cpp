// SPDX-License-Identifier: Apache-2.0
// The installed product, end to end: a CUDA program compiled by sondecc, run
// by `sonde run` on the software GPU, against what profiled.cu is known to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "process.h"

namespace sonde::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class Product : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "sonde-product-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    ASSERT_TRUE(fs::exists(PROGRAM)) << "compiled by sondecc in the build";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Outcome sonde(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string(PREFIX) + "/bin/sonde");
    return runProgram(arguments, {{"SONDE_CACHE_DIR", KERNEL_CACHE}});
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  json profile(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"run", "-f", "--no-report", "-o", file("t.json"), "--export", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.emplace_back(PROGRAM);
    const Outcome o = sonde(arguments);
    EXPECT_EQ(o.status, 0) << o.out << o.err;
    std::ifstream in(file("t.json"));
    return json::parse(in);
  }

  std::string folder_;
};

std::string column(const std::string& csv, const std::string& rowEnd, size_t column) {
  for (size_t at = 0; at < csv.size();) {
    const size_t end = csv.find('\n', at);
    const std::string line = csv.substr(at, end - at);
    at = end + 1;
    if (line.size() < rowEnd.size() || line.compare(line.size() - rowEnd.size(), rowEnd.size(), rowEnd) != 0) continue;
    size_t start = 0;
    for (size_t i = 0; i < column; i++) start = line.find(',', start) + 1;
    return line.substr(start, line.find(',', start) - start);
  }
  return "no such row";
}

// Processes that start at once compile the same kernels into one folder; what is broken there is made anew.
TEST_F(Product, ProgramsShareCompiledCode) {
  const std::string cache = file("cache");
  auto run = [&] {
    Outcome o = runProgram({std::string(PREFIX) + "/bin/sonde", "run", "--csv", "-r", "cuda_gpu_kern_sum", PROGRAM},
                           {{"SONDE_CACHE_DIR", cache}});
    EXPECT_EQ(o.status, 0) << o.err;
    EXPECT_EQ(column(o.out, ",\"fill(int*, int)\"", 2), "4");
  };
  std::vector<std::thread> processes;
  for (int i = 0; i < 4; ++i) processes.emplace_back(run);
  for (auto& p : processes) p.join();
  auto files = [&] {
    std::map<std::string, uint64_t> sizes;
    for (const auto& entry : fs::directory_iterator(cache)) {
      EXPECT_FALSE(entry.path().has_extension()) << entry.path();
      sizes[entry.path().filename()] = entry.file_size();
    }
    return sizes;
  };
  const auto made = files();
  EXPECT_GE(made.size(), 2u);
  auto nodeOf = [&](const std::string& name) {
    struct stat status{};
    EXPECT_EQ(0, ::stat((cache + "/" + name).c_str(), &status));
    return status.st_ino;
  };
  std::map<std::string, ino_t> nodes;
  for (const auto& [name, bytes] : made) nodes[name] = nodeOf(name);
  run();
  for (const auto& [name, node] : nodes) EXPECT_EQ(node, nodeOf(name));  // nothing was compiled
  for (const auto& [name, bytes] : made) fs::resize_file(cache + "/" + name, bytes / 2);
  run();
  EXPECT_EQ(made, files());
}

TEST_F(Product, SummariesCountWhatTheProgramDid) {
  const Outcome kernels = sonde({"run", "--csv", "-r", "cuda_gpu_kern_sum", PROGRAM});
  ASSERT_EQ(kernels.status, 0) << kernels.err;
  EXPECT_EQ(column(kernels.out, ",\"fill(int*, int)\"", 2), "4");
  EXPECT_EQ(column(kernels.out, ",\"void lib::scale<2>(float*, float)\"", 2), "2");
  const Outcome base = sonde({"run", "--csv", "-r", "cuda_gpu_kern_sum:base", PROGRAM});
  EXPECT_EQ(column(base.out, ",scale", 2), "2");
  const Outcome copies = sonde({"run", "--csv", "-r", "cuda_gpu_mem_size_sum", PROGRAM});
  EXPECT_EQ(column(copies.out, ",[CUDA memcpy Host-to-Device]", 0), "0.016384");
  EXPECT_EQ(column(copies.out, ",[CUDA memcpy Host-to-Device]", 1), "1");
  EXPECT_EQ(column(copies.out, ",[CUDA memcpy Device-to-Host]", 1), "2");
  EXPECT_EQ(column(copies.out, ",[CUDA memset]", 0), "0.001000");
  const Outcome calls = sonde({"run", "--csv", "-r", "cuda_api_sum", PROGRAM});
  EXPECT_EQ(column(calls.out, ",cudaLaunchKernel", 2), "6");
  EXPECT_EQ(column(calls.out, ",cudaMemcpy", 2), "3");
  EXPECT_EQ(column(calls.out, ",cudaMalloc", 2), "2");
  EXPECT_EQ(column(calls.out, ",cuLaunchKernel", 2), "no such row");  // nested in the runtime's
  for (const Outcome* o : {&kernels, &copies, &calls}) EXPECT_THAT(o->err, HasSubstr(" collected, 0 lost"));
}

TEST_F(Product, EveryKernelHasItsLaunchAndItsShape) {
  const json t = profile();
  std::map<uint64_t, json> launches;
  for (const json& c : t["api_calls"])
    if (!c["nested"].get<bool>()) launches[c["correlation"]] = c;
  int fills = 0, scales = 0;
  std::set<uint64_t> streams;
  for (const json& e : t["gpu_events"]) {
    EXPECT_LT(e["start"], e["end"]);
    ASSERT_TRUE(launches.contains(e["correlation"])) << e;
    // Work cannot begin before the call that asks for it.
    EXPECT_GE(e["start"], launches[e["correlation"]]["start"]) << e;
    if (e["type"] != "kernel") continue;
    EXPECT_EQ(launches[e["correlation"]]["name"], "cudaLaunchKernel");
    streams.insert(e["stream"].get<uint64_t>());
    if (e["name"] == "fill(int*, int)") {
      fills++;
      EXPECT_EQ(e["grid"], json({4, 1, 1}));
      EXPECT_EQ(e["block"], json({128, 1, 1}));
      EXPECT_EQ(e["dynamic_shared"], 0);
    } else {
      scales++;
      EXPECT_EQ(e["mangled_name"], "_ZN3lib5scaleILi2EEEvPff");
      EXPECT_EQ(e["grid"], json({2, 1, 1}));
      EXPECT_EQ(e["block"], json({64, 1, 1}));
      EXPECT_EQ(e["dynamic_shared"], 256);
    }
  }
  EXPECT_EQ(fills, 4);
  EXPECT_EQ(scales, 2);
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_EQ(t["lost_records"], 0);
  EXPECT_GE(t["devices"].size(), 1u);
}

TEST_F(Product, WorkOfOneStreamDoesNotOverlap) {
  std::map<uint64_t, uint64_t> until;
  for (const json& e : profile()["gpu_events"]) {
    EXPECT_GE(e["start"], until[e["stream"]]) << e;
    until[e["stream"]] = e["end"];
  }
}

TEST_F(Product, TwoRunsGiveTheSameSequence) {
  const auto sequence = [](const json& t) {
    std::vector<std::string> all;
    for (const json& c : t["api_calls"]) all.push_back(c["name"].get<std::string>() + c["correlation"].dump());
    std::map<uint64_t, std::vector<std::string>> byStream;
    for (const json& e : t["gpu_events"])
      byStream[e["stream"]].push_back(e["name"].get<std::string>() + e["correlation"].dump());
    for (const auto& [stream, names] : byStream) all.insert(all.end(), names.begin(), names.end());
    return all;
  };
  EXPECT_EQ(sequence(profile()), sequence(profile()));
}

TEST_F(Product, ProfilerStartAndStopBoundTheRecords) {
  const json t = profile({"--profile-from-start", "off"});
  ASSERT_EQ(t["gpu_events"].size(), 1u);
  EXPECT_EQ(t["gpu_events"][0]["name"], "fill(int*, int)");
  for (const json& c : t["api_calls"])
    EXPECT_THAT(c["name"].get<std::string>(), testing::Not(HasSubstr("Malloc"))) << c;
}

TEST_F(Product, NvtxRangesEncloseWhatTheyShould) {
  const json t = profile();
  std::map<std::string, json> ranges;
  for (const json& r : t["nvtx_ranges"]) ranges[r["name"]] = r;
  ASSERT_EQ(ranges.size(), 4u) << t["nvtx_ranges"];
  EXPECT_EQ(ranges["here"]["style"], "mark");
  const auto within = [](const json& inner, const json& outer) {
    return inner["start"] >= outer["start"] && inner["end"] <= outer["end"];
  };
  EXPECT_TRUE(within(ranges["inner"], ranges["launches"]));
  EXPECT_TRUE(within(ranges["launches"], ranges["all"]));
  int launches = 0, inner = 0;
  for (const json& c : t["api_calls"]) {
    EXPECT_TRUE(within(c, ranges["all"])) << c;
    if (c["name"] != "cudaLaunchKernel") continue;
    launches += within(c, ranges["launches"]);
    inner += within(c, ranges["inner"]);
    EXPECT_EQ(c["tid"], ranges["launches"]["tid"]);
  }
  EXPECT_EQ(launches, 5);
  EXPECT_EQ(inner, 2);
  EXPECT_THAT(sonde({"run", PROGRAM}).out, HasSubstr("** NVTX Range Summary (nvtx_sum)"));
}

TEST_F(Product, DevicesAndVersion) {
  const Outcome devices = sonde({"devices", "--device", "software", "--json"});
  ASSERT_EQ(devices.status, 0) << devices.err;
  EXPECT_EQ(json::parse(devices.out)["kind"], "software");
  EXPECT_THAT(sonde({"version"}).out, testing::Not(HasSubstr("missing")));
}

TEST_F(Product, TheExitStatusComesThrough) { EXPECT_EQ(sonde({"run", "-q", PROGRAM, "3"}).status, 3); }

}  // namespace
}  // namespace sonde::test
