// SPDX-License-Identifier: Apache-2.0
// The clients of the tables: what each relies on is there, and each works on the
// software GPU with a real program, call by call.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "personality.h"
#include "structures.h"

namespace clients {

void PrintTo(const Personality& client, std::ostream* out) { *out << client.name; }

namespace {

const std::vector<Personality>& all() {
  static std::string error;
  static const auto& list = *new std::vector<Personality>(readPersonalities(&error));
  if (!error.empty()) throw std::runtime_error(error);
  return list;
}

std::map<std::string, std::string> coverage() {
  std::map<std::string, std::string> out;
  std::ifstream in(API_TABLES "/coverage.tsv");
  for (std::string line, name, state; std::getline(in, line);) {
    std::istringstream row(line);
    if (std::getline(row, name, '\t') && std::getline(row, state, '\t')) out[name] = state;
  }
  return out;
}

TEST(ClientTables, EveryFunctionIsExportedAndWorksWhereItMust) {
  const auto states = coverage();
  size_t functions = 0;
  for (const Personality& client : all()) {
    for (const std::string& function : client.functions()) {
      SCOPED_TRACE(client.name + ": " + function);
      ++functions;
      if (function.rfind("cu", 0) == 0) continue;  // CUDA's own
      const std::string symbol = function.rfind("Initialize", 0) == 0 ? function : "cupti" + function;
      EXPECT_NE(nullptr, dlsym(RTLD_DEFAULT, symbol.c_str()));
      bool fails = client.optional.count(function) != 0;
      for (const Step& step : client.steps) fails = fails || (step.function == function && step.result != "SUCCESS");
      auto state = states.find(symbol);
      ASSERT_NE(states.end(), state);
      if (!fails) {
        EXPECT_NE("unsupported", state->second);
      }
    }
  }
  EXPECT_GT(functions, 500u);
}

TEST(ClientTables, EveryClientIsThere) { EXPECT_EQ(42u, all().size()); }

// A structure that a client was compiled with is a prefix of what is written for it.
TEST(ClientTables, EveryStructureCanBeRead) {
  size_t structures = 0;
  for (const Personality& client : all()) {
    std::map<std::string, uint32_t> layout;
    std::istringstream list(client.layout + "," + client.generation);
    for (std::string entry; std::getline(list, entry, ',');) {
      if (entry.empty()) continue;
      layout[entry.substr(0, entry.find('='))] = static_cast<uint32_t>(std::stoul(entry.substr(entry.find('=') + 1)));
    }
    for (const auto& [kind, versions] : client.kinds) {
      for (uint32_t version : versions) {
        SCOPED_TRACE(client.name + ": " + kind + " " + std::to_string(version));
        ++structures;
        ASSERT_NE(nullptr, structureOf(kind, version));
        const uint32_t written = layout.count(kind) != 0 ? layout[kind] : newestVersion(kind);
        EXPECT_TRUE(readableAs(kind, written, version));
      }
    }
  }
  EXPECT_GT(structures, 150u);
}

// What is wrong is found: a test of the tests.
TEST(ClientTables, ATableThatIsNotTrueFails) {
  const Personality* small = nullptr;
  for (const Personality& client : all()) {
    if (client.file == "44-small-tracers") small = &client;
  }
  ASSERT_NE(nullptr, small);
  Personality changed = *small;
  changed.kinds["CONCURRENT_KERNEL"] = {2};
  EXPECT_NE(std::string::npos, play(changed).find("version 2 cannot be read"));
  changed = *small;
  changed.layout = "CONCURRENT_KERNEL=1";  // written as the first, read as the fourth
  changed.generation = "CONCURRENT_KERNEL=10";
  EXPECT_NE(std::string::npos, play(changed).find("CONCURRENT_KERNEL read as CUpti_ActivityKernel4, record 0"));
  changed = *small;
  for (Step& step : changed.steps) {
    if (step.function == "ActivityFlushAll") step.when = "ready";  // before any work
  }
  changed.steps.push_back({"after", "ActivityDisable", {"MEMCPY"}, "INVALID_KIND", 1});
  const std::string errors = play(changed);
  EXPECT_NE(std::string::npos, errors.find("ActivityDisable gives CUPTI_SUCCESS")) << errors;
}

// What the layouts cannot do is known.
TEST(ClientTables, WhatCannotBeReadIsKnown) {
  EXPECT_TRUE(readableAs("CONCURRENT_KERNEL", 10, 3));
  EXPECT_FALSE(readableAs("CONCURRENT_KERNEL", 10, 2));
  EXPECT_FALSE(readableAs("DEVICE", 5, 1));
  EXPECT_TRUE(readableAs("DEVICE", 5, 2));
  EXPECT_FALSE(readableAs("GLOBAL_ACCESS", 3, 2));
  EXPECT_TRUE(readableAs("GLOBAL_ACCESS", 2, 2));
  EXPECT_FALSE(readableAs("UNIFIED_MEMORY_COUNTER", 3, 1));
  EXPECT_TRUE(readableAs("UNIFIED_MEMORY_COUNTER", 3, 2));
  EXPECT_TRUE(readableAs("MEMCPY", 6, 1));
}

// The same in a program that knows nothing of its client. What it prints, unless all is well.
std::string inject(const Personality& client) {
  std::string command = "CUDA_INJECTION64_PATH='" CLIENT_LIBRARY "' CLIENT_TABLE='" + client.file + "'";
  if (!client.layout.empty()) command += " SONDE_RECORD_LAYOUT=" + client.layout;
  command += std::string(" '" CLIENT_PROGRAM "'") + (client.graphs ? " graphs" : "") + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen fails";
  std::string output;
  char text[256];
  while (std::fgets(text, sizeof text, pipe) != nullptr) output += text;
  const int status = pclose(pipe);
  return status == 0 ? "" : output + "exit status " + std::to_string(status) + "\n";
}

class Clients : public ::testing::TestWithParam<Personality> {};

TEST_P(Clients, WorksAsItWasCompiled) {
  if (GetParam().loads == "injected") {
    EXPECT_EQ("", inject(GetParam()));
  } else {
    EXPECT_EQ("", play(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Clients, ::testing::ValuesIn(all()), [](const auto& info) {
  std::string name = info.param.file;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace clients
