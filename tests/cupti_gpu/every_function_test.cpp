// SPDX-License-Identifier: Apache-2.0
// Every function of the tables that the software GPU exports, called with all
// arguments zero: callbacks at its entry and exit with its id, name and
// parameters, an API record, and the same return value everywhere. Nothing
// may crash.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/cupti/collector.h"

namespace sonde::test {
namespace {

struct Row {
  uint32_t cbid;
  std::string symbol, params;
  bool exported;
};

std::vector<Row> table(const char* file) {
  std::vector<Row> rows;
  std::ifstream in(std::string(API_TABLES "/") + file);
  std::string line, cell;
  std::getline(in, line);
  std::map<std::string, size_t> columns;
  std::istringstream head(line);
  for (size_t i = 0; std::getline(head, cell, '\t'); ++i) columns[cell] = i;
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    while (std::getline(row, cell, '\t')) cells.push_back(cell);
    cells.resize(columns.size());
    rows.push_back({static_cast<uint32_t>(std::stoul(cells[columns["cbid"]])), cells[columns["symbol"]],
                    cells[columns["params"]], cells[columns["exported"]] == "yes"});
  }
  return rows;
}

struct Seen {
  int enters = 0, exits = 0;
  std::string name;
  const void* params = nullptr;
  uint32_t correlation = 0;
  bool sameCorrelation = true, sameSlot = true;
  int32_t result = -1;
};
std::map<uint32_t, Seen> seen;  // of one call, by id
CUpti_CallbackDomain watched;

void CUPTIAPI called(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* raw) {
  if (domain != watched) return;
  const auto& data = *static_cast<const CUpti_CallbackData*>(raw);
  Seen& s = seen[cbid];
  if (data.callbackSite == CUPTI_API_ENTER) {
    ++s.enters;
    s.name = data.functionName;
    s.params = data.functionParams;
    s.correlation = data.correlationId;
    *data.correlationData = 77000 + cbid;
  } else {
    ++s.exits;
    s.sameCorrelation = s.sameCorrelation && s.correlation == data.correlationId && s.params == data.functionParams;
    s.sameSlot = s.sameSlot && *data.correlationData == 77000 + cbid;
    if (data.functionReturnValue != nullptr) s.result = *static_cast<const int32_t*>(data.functionReturnValue);
  }
}

// A structure comes back, or a text: such functions have ids and no callbacks.
const std::set<std::string> unusual = {"cudaCreateChannelDesc", "cudaGetErrorString", "cudaGetErrorName"};
// What compilers call before main, not programs.
bool isRegistration(const std::string& symbol) { return symbol.rfind("__cuda", 0) == 0; }

using AllZero = int (*)(long, long, long, long, long, long, long, long, long, long, long, long, double, double, double,
                        double);

#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
int callWithZeros(AllZero function) {
  return function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0., 0., 0., 0.);
}

class EveryFunction : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaFree(nullptr));
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&subscriber_, called, nullptr));
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }

  // What a call may have taken away.
  void restore() {
    CUcontext context = nullptr;
    if (cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return;
    cudaSetDevice(0);
    ASSERT_EQ(cudaSuccess, cudaFree(nullptr));
  }

  void run(CUpti_CallbackDomain domain, CUpti_ActivityKind kind, const char* tableFile, void* library, size_t atLeast) {
    watched = domain;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableDomain(1, subscriber_, domain));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(kind));
    size_t calledOnes = 0;
    const std::vector<Row> rows = table(tableFile);
    // Of a function with several ids the last one is in use.
    std::map<std::string, uint32_t> last;
    for (const Row& row : rows) last[row.symbol] = row.cbid;
    for (const Row& row : rows) {
      SCOPED_TRACE(row.symbol);
      const char* name = nullptr;
      ASSERT_EQ(CUPTI_SUCCESS, cuptiGetCallbackName(domain, row.cbid, &name));
      // Also ids of functions that no longer exist can be switched.
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEnableCallback(0, subscriber_, domain, row.cbid));
      EXPECT_EQ(CUPTI_SUCCESS, cuptiEnableCallback(1, subscriber_, domain, row.cbid));
      auto* function = reinterpret_cast<AllZero>(dlsym(library, row.symbol.c_str()));
      if (!row.exported || function == nullptr || last[row.symbol] != row.cbid || unusual.count(row.symbol) != 0 ||
          isRegistration(row.symbol))
        continue;
      if (std::getenv("EVERY_FUNCTION_NAMES") != nullptr) std::fprintf(stderr, "%s\n", row.symbol.c_str());
      ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
      collector_.clear();
      seen.clear();
      const int result = callWithZeros(function);
      const Seen s = seen[row.cbid];
      seen.clear();
      ++calledOnes;
      EXPECT_EQ(1, s.enters);
      EXPECT_EQ(1, s.exits);
      if (s.enters != 1) continue;
      EXPECT_EQ(row.symbol, s.name);
      EXPECT_TRUE(s.sameCorrelation);
      EXPECT_TRUE(s.sameSlot);
      EXPECT_EQ(result, s.result);
      EXPECT_NE(0u, s.correlation);
      if (!row.params.empty() && row.params != "void") EXPECT_NE(nullptr, s.params);
      ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
      int records = 0;
      for (const auto& record : collector_.records(kind)) {
        const auto& api = record.as<CUpti_ActivityAPI>();
        if (api.cbid != row.cbid) continue;
        ++records;
        EXPECT_EQ(static_cast<uint32_t>(result), api.returnValue);
        EXPECT_EQ(s.correlation, api.correlationId);
        EXPECT_EQ(static_cast<uint32_t>(getpid()), api.processId);
        EXPECT_LE(api.start, api.end);
      }
      EXPECT_EQ(1, records);
      restore();
    }
    EXPECT_GE(calledOnes, atLeast);
    std::printf("%zu functions called\n", calledOnes);
  }
  testing_support::Collector& collector_ = testing_support::Collector::instance();
  CUpti_SubscriberHandle subscriber_ = nullptr;
};

TEST_F(EveryFunction, OfTheDriver) {
  run(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_ACTIVITY_KIND_DRIVER, "driver_functions.tsv", dlopen("libcuda.so.1", RTLD_NOW),
      445);
}

TEST_F(EveryFunction, OfTheRuntime) {
  run(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_ACTIVITY_KIND_RUNTIME, "runtime_functions.tsv",
      dlopen("libcudart.so.13", RTLD_NOW), 400);
}

}  // namespace
}  // namespace sonde::test
