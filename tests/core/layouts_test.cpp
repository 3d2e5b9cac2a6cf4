// SPDX-License-Identifier: Apache-2.0
#include "core/layouts.h"

#include <gtest/gtest.h>

#include <cstring>

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

TEST(Layouts, GlobalAccessVersionsDisagreeOnEveryField) {
  CUpti_ActivityGlobalAccess3 in;
  std::memset(&in, 0, sizeof in);
  in.kind = CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS;
  in.sourceLocatorId = 1;
  in.correlationId = 2;
  in.functionId = 3;
  in.executed = 4;
  in.pcOffset = 5;
  in.threadsExecuted = 6;
  in.l2_transactions = 7;
  in.theoreticalL2Transactions = 8;
  CUpti_ActivityGlobalAccess2 two;
  convertRecord(&in, only(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, 2), &two);
  EXPECT_EQ(3u, two.functionId);
  EXPECT_EQ(5u, two.pcOffset);
  EXPECT_EQ(6u, two.threadsExecuted);
  EXPECT_EQ(7u, two.l2_transactions);
  EXPECT_EQ(8u, two.theoreticalL2Transactions);
  EXPECT_EQ(4u, two.executed);
  CUpti_ActivityGlobalAccess one;
  convertRecord(&in, only(CUPTI_ACTIVITY_KIND_GLOBAL_ACCESS, 1), &one);
  EXPECT_EQ(5u, one.pcOffset);
  EXPECT_EQ(4u, one.executed);
  EXPECT_EQ(7u, one.l2_transactions);
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

}  // namespace
