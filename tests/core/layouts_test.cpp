// SPDX-License-Identifier: Apache-2.0
#include "core/layouts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

using namespace sonde::core;

namespace {

// A newest kernel record with a different number in every field.
CUpti_ActivityKernel10 kernel() {
  CUpti_ActivityKernel10 k;
  std::memset(&k, 0, sizeof k);
  k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  k.cacheConfig.config.requested = 1;
  k.cacheConfig.config.executed = 2;
  k.sharedMemoryConfig = 3;
  k.registersPerThread = 4;
  k.start = 1005;
  k.end = 1006;
  k.completed = 1007;
  k.deviceId = 8;
  k.contextId = 9;
  k.streamId = 10;
  k.gridX = 11;
  k.gridY = 12;
  k.gridZ = 13;
  k.blockX = 14;
  k.blockY = 15;
  k.blockZ = 16;
  k.staticSharedMemory = 17;
  k.dynamicSharedMemory = 18;
  k.localMemoryPerThread = 19;
  k.localMemoryTotal = 20;
  k.correlationId = 21;
  k.gridId = 22;
  k.name = "name";
  k.graphNodeId = 23;
  return k;
}

Layouts only(uint32_t kind, uint8_t version) {
  Layouts layouts;
  layouts.version[kind] = version;
  return layouts;
}

template <typename T>
T converted(uint8_t version) {
  const CUpti_ActivityKernel10 in = kernel();
  const Layouts layouts = only(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, version);
  EXPECT_EQ(sizeof(T), recordSize(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, layouts));
  unsigned char bytes[sizeof(T) + 8];
  std::memset(bytes, 0xee, sizeof bytes);
  convertRecord(&in, layouts, bytes);
  for (size_t i = sizeof(T); i < sizeof bytes; ++i) EXPECT_EQ(0xee, bytes[i]);
  T out;
  std::memcpy(&out, bytes, sizeof out);
  EXPECT_EQ(1005u, out.start);
  EXPECT_EQ(1006u, out.end);
  EXPECT_EQ(8u, out.deviceId);
  EXPECT_EQ(9u, out.contextId);
  EXPECT_EQ(10u, out.streamId);
  EXPECT_EQ(11, out.gridX);
  EXPECT_EQ(16, out.blockZ);
  EXPECT_EQ(17, out.staticSharedMemory);
  EXPECT_EQ(18, out.dynamicSharedMemory);
  EXPECT_EQ(19u, out.localMemoryPerThread);
  EXPECT_EQ(20u, out.localMemoryTotal);
  EXPECT_EQ(21u, out.correlationId);
  EXPECT_EQ(4, out.registersPerThread);
  EXPECT_STREQ("name", out.name);
  return out;
}

TEST(Layouts, KernelInEveryVersion) {
  const auto k1 = converted<CUpti_ActivityKernel>(1);
  EXPECT_EQ(1, k1.cacheConfigRequested);
  EXPECT_EQ(2, k1.cacheConfigExecuted);
  EXPECT_EQ(21u, k1.runtimeCorrelationId);
  const auto k2 = converted<CUpti_ActivityKernel2>(2);
  EXPECT_EQ(22, k2.gridId);
  EXPECT_EQ(1007u, k2.completed);
  converted<CUpti_ActivityKernel3>(3);
  converted<CUpti_ActivityKernel4>(4);
  converted<CUpti_ActivityKernel5>(5);
  converted<CUpti_ActivityKernel6>(6);
  converted<CUpti_ActivityKernel7>(7);
  converted<CUpti_ActivityKernel8>(8);
  EXPECT_EQ(23u, converted<CUpti_ActivityKernel9>(9).graphNodeId);
  EXPECT_EQ(23u, converted<CUpti_ActivityKernel10>(0).graphNodeId);
}

// A record in one of its forms, and nothing written behind it.
template <typename Old, typename New>
Old convertedTo(const New& in, uint32_t kind, uint8_t version) {
  const Layouts layouts = only(kind, version);
  EXPECT_EQ(sizeof(Old), recordSize(kind, layouts));
  unsigned char bytes[sizeof(Old) + 8];
  std::memset(bytes, 0xee, sizeof bytes);
  convertRecord(&in, layouts, bytes);
  for (size_t i = sizeof(Old); i < sizeof bytes; ++i) EXPECT_EQ(0xee, bytes[i]);
  Old out;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}

TEST(Layouts, GlobalAccessInEveryVersion) {
  constexpr uint32_t kKind = CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS;
  CUpti_ActivityGlobalAccess3 in;
  std::memset(&in, 0, sizeof in);
  in.kind = CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS;
  in.flags = static_cast<CUpti_ActivityFlag>(0x304);
  in.sourceLocatorId = 1;
  in.correlationId = 2;
  in.functionId = 3;
  in.executed = 4;
  in.pcOffset = 5;
  in.threadsExecuted = 6;
  in.l2_transactions = 7;
  in.theoreticalL2Transactions = 8;
  const auto one = convertedTo<CUpti_ActivityGlobalAccess>(in, kKind, 1);
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, one.kind);
  EXPECT_EQ(0x304u, static_cast<uint32_t>(one.flags));
  EXPECT_EQ(1u, one.sourceLocatorId);
  EXPECT_EQ(2u, one.correlationId);
  EXPECT_EQ(4u, one.executed);
  EXPECT_EQ(5u, one.pcOffset);
  EXPECT_EQ(6u, one.threadsExecuted);
  EXPECT_EQ(7u, one.l2_transactions);
  const auto two = convertedTo<CUpti_ActivityGlobalAccess2>(in, kKind, 2);
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, two.kind);
  EXPECT_EQ(0x304u, static_cast<uint32_t>(two.flags));
  EXPECT_EQ(1u, two.sourceLocatorId);
  EXPECT_EQ(2u, two.correlationId);
  EXPECT_EQ(3u, two.functionId);
  EXPECT_EQ(4u, two.executed);
  EXPECT_EQ(5u, two.pcOffset);
  EXPECT_EQ(6u, two.threadsExecuted);
  EXPECT_EQ(7u, two.l2_transactions);
  EXPECT_EQ(8u, two.theoreticalL2Transactions);
  EXPECT_EQ(0u, two.pad);
  const auto three = convertedTo<CUpti_ActivityGlobalAccess3>(in, kKind, 0);
  EXPECT_EQ(0, std::memcmp(&in, &three, sizeof in));
  // The second and the third have one size, so that only the choice tells them apart.
  EXPECT_EQ(sizeof two, sizeof three);
}

TEST(Layouts, BranchInEveryVersion) {
  constexpr uint32_t kKind = CUPTI_ACTIVITY_KIND_BRANCH;
  CUpti_ActivityBranch2 in;
  std::memset(&in, 0, sizeof in);
  in.kind = CUPTI_ACTIVITY_KIND_BRANCH;
  in.sourceLocatorId = 1;
  in.correlationId = 2;
  in.functionId = 3;
  in.pcOffset = 4;
  in.executed = 5;
  in.diverged = 6;
  in.threadsExecuted = 7;
  const auto one = convertedTo<CUpti_ActivityBranch>(in, kKind, 1);
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_BRANCH, one.kind);
  EXPECT_EQ(1u, one.sourceLocatorId);
  EXPECT_EQ(2u, one.correlationId);
  EXPECT_EQ(4u, one.pcOffset);
  EXPECT_EQ(5u, one.executed);
  EXPECT_EQ(6u, one.diverged);
  EXPECT_EQ(7u, one.threadsExecuted);
  const auto two = convertedTo<CUpti_ActivityBranch2>(in, kKind, 0);
  EXPECT_EQ(0, std::memcmp(&in, &two, sizeof in));
}

// The other records of source lines and of device-side launches have one form, the same since 6.5.
TEST(Layouts, SourceLevelRecordsOfOneForm) {
  const struct {
    uint32_t kind, size;
  } kForms[] = {{CUPTI_ACTIVITY_KIND_SOURCE_LOCATOR, 24},
                {CUPTI_ACTIVITY_KIND_SHARED_ACCESS, 56},
                {CUPTI_ACTIVITY_KIND_INSTRUCTION_EXECUTION, 48},
                {CUPTI_ACTIVITY_KIND_FUNCTION, 32},
                {CUPTI_ACTIVITY_KIND_MODULE, 24},
                {CUPTI_ACTIVITY_KIND_CDP_KERNEL, 144},
                {CUPTI_ACTIVITY_KIND_PREEMPTION, 40}};
  for (const auto& f : kForms) {
    EXPECT_EQ(f.size, newestSize(f.kind)) << kindName(f.kind);
    EXPECT_EQ(f.size, recordSize(f.kind, layouts6050())) << kindName(f.kind);
    Layouts layouts;
    std::string error;
    EXPECT_TRUE(parseLayouts(std::string(kindName(f.kind)) + "=1", &layouts, &error));
    EXPECT_FALSE(parseLayouts(std::string(kindName(f.kind)) + "=2", &layouts, &error));
  }
  EXPECT_EQ(56u, recordSize(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, layouts6050()));
  EXPECT_EQ(2, layouts6050().version[CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS]);
  EXPECT_EQ(40u, recordSize(CUPTI_ACTIVITY_KIND_BRANCH, layouts6050()));
}

TEST(Layouts, ListFromTheEnvironment) {
  Layouts layouts;
  std::string error;
  EXPECT_TRUE(parseLayouts("GLOBAL_ACCESS=2, DEVICE=1", &layouts, &error));
  EXPECT_EQ(2, layouts.version[CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS]);
  EXPECT_EQ(1, layouts.version[CUPTI_ACTIVITY_KIND_DEVICE]);
  EXPECT_EQ(sizeof(CUpti_ActivityDevice), recordSize(CUPTI_ACTIVITY_KIND_DEVICE, layouts));
  // The newest by its number is the newest.
  EXPECT_TRUE(parseLayouts("DEVICE=5", &layouts, &error));
  EXPECT_EQ(0, layouts.version[CUPTI_ACTIVITY_KIND_DEVICE]);
  EXPECT_FALSE(parseLayouts("KERNEL=11", &layouts, &error));
  EXPECT_NE(std::string::npos, error.find("no version 11")) << error;
  EXPECT_FALSE(parseLayouts("COLONEL=1", &layouts, &error));
  EXPECT_NE(std::string::npos, error.find("COLONEL")) << error;
  EXPECT_FALSE(parseLayouts("KERNEL", &layouts, &error));
  EXPECT_FALSE(parseLayouts("KERNEL=x", &layouts, &error));
}

TEST(Layouts, EverySizeIsAMultipleOfEight) {
  for (uint32_t kind = 1; kind < kKindCount; ++kind) {
    EXPECT_GT(newestSize(kind), 0u) << kindName(kind);
    EXPECT_EQ(0u, newestSize(kind) % 8) << kindName(kind);
  }
  EXPECT_EQ(0u, newestSize(0));
  EXPECT_EQ(0u, newestSize(kKindCount));
}

TEST(Layouts, The65Generation) {
  const Layouts old = layouts6050();
  EXPECT_EQ(112u, recordSize(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, old));
  EXPECT_EQ(64u, recordSize(CUPTI_ACTIVITY_KIND_MEMCPY, old));
  EXPECT_EQ(120u, recordSize(CUPTI_ACTIVITY_KIND_DEVICE, old));
  EXPECT_EQ(40u, recordSize(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER, old));
  EXPECT_EQ(40u, recordSize(CUPTI_ACTIVITY_KIND_RUNTIME, old));
}

// The fuzzers of cuptiActivityGetNextRecord begin with every kind there is.
// SONDE_WRITE_SEEDS=1 writes the seeds.
void expectSeeds(const std::string& folder, const Layouts& layouts) {
  namespace fs = std::filesystem;
  const fs::path seeds = fs::path(FUZZ_CORPUS) / folder;
  for (uint32_t kind = 0; kind < kKindCount; ++kind) {
    const uint32_t size = recordSize(kind, layouts);
    if (size == 0) continue;
    // The record with a byte of its own everywhere, and a whole one behind it.
    std::string bytes(size, static_cast<char>(kind));
    std::memcpy(bytes.data(), &kind, sizeof kind);
    const uint32_t driver = CUPTI_ACTIVITY_KIND_DRIVER;
    const size_t behind = bytes.size();
    bytes.resize(behind + recordSize(driver, layouts));
    std::memcpy(bytes.data() + behind, &driver, sizeof driver);
    const fs::path file = seeds / ("kind_" + std::to_string(kind));
    if (std::getenv("SONDE_WRITE_SEEDS") != nullptr) {
      fs::create_directories(seeds);
      std::ofstream(file, std::ios::binary) << bytes;
    }
    std::ifstream in(file, std::ios::binary);
    const std::string seed{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(bytes, seed) << file << ": write it with SONDE_WRITE_SEEDS=1";
  }
}

TEST(Layouts, TheFuzzersKnowEveryKind) {
  expectSeeds("next_record_fuzzer", Layouts{});
  expectSeeds("next_record_6050_fuzzer", layouts6050());
}

}  // namespace
