// SPDX-License-Identifier: Apache-2.0
// Buffers, flushing, dropping.
#include <cstring>
#include <memory>
#include <set>
#include <thread>

#include "core/fake_driver.h"
#include "cupti/collector.h"

using testing_support::Collector;

namespace {

constexpr uint32_t kMalloc = CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020;

void makeCalls(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) fake::call(SONDE_DOMAIN_RUNTIME, kMalloc);
}

class ActivityBuffers : public ::testing::Test {
 protected:
  void SetUp() override {
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  }
  void TearDown() override { EXPECT_EQ(CUPTI_SUCCESS, cuptiFinalize()); }
  Collector& collector_ = Collector::instance();
};

size_t dropped() {
  size_t count = ~size_t{0};
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(nullptr, 0, &count));
  return count;
}

TEST_F(ActivityBuffers, ACT_009_ZeroMaxNumRecordsFillsTheBuffer) {
  collector_.bufferSize = 40 * 10 + 16;
  makeCalls(25);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{10, 10, 5}), collector_.recordsPerBuffer());
  EXPECT_EQ(0u, dropped());
}

TEST_F(ActivityBuffers, ACT_010_MaxNumRecordsLimitsBuffer) {
  collector_.maxRecords = 3;
  makeCalls(8);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{3, 3, 2}), collector_.recordsPerBuffer());
}

TEST_F(ActivityBuffers, ACT_007_NullBufferIsARefusal) {
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t* max) {
    *buffer = nullptr;
    *size = 4096;
    *max = 0;
  };
  makeCalls(5);
  collector_.flush();
  EXPECT_EQ(0u, collector_.completions);
  EXPECT_EQ(5u, dropped());
  EXPECT_EQ(0u, dropped());  // ACT-107: reading resets
}

TEST_F(ActivityBuffers, ACT_108_TooSmallABufferComesBackEmptyAndCounts) {
  alignas(8) static uint8_t tiny[39];
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t* max) {
    *buffer = tiny;
    *size = sizeof tiny;
  };
  size_t given = 0;
  collector_.onComplete = [&](uint8_t* buffer, size_t size, size_t valid) {
    EXPECT_EQ(tiny, buffer);
    EXPECT_EQ(39u, size);
    EXPECT_EQ(0u, valid);
    ++given;
  };
  makeCalls(3);
  collector_.flush();
  EXPECT_EQ(3u, given);
  EXPECT_EQ(3u, dropped());
}

TEST_F(ActivityBuffers, ACT_008_SizeIsRespectedToTheByte) {
  static uint8_t memory[40 * 4 + 24 + 16];
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
    std::memset(memory, 0xee, sizeof memory);
    *buffer = memory;
    *size = 40 * 4 + 24;
  };
  collector_.onComplete = [](uint8_t*, size_t, size_t) {
    for (size_t i = 40 * 4 + 24; i < sizeof memory; ++i) EXPECT_EQ(0xee, memory[i]) << i;
  };
  makeCalls(9);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{4, 4, 1}), collector_.recordsPerBuffer());
}

TEST_F(ActivityBuffers, ACT_012_ValidSizeWalksExactly) {
  std::vector<size_t> valid;
  collector_.onComplete = [&](uint8_t*, size_t size, size_t bytes) {
    EXPECT_EQ(64u * 1024, size);
    valid.push_back(bytes);
  };
  makeCalls(7);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{7 * 40}), valid);
}

// Tools flush only when they gave out a buffer: they must be asked for one as
// soon as there is a record, also after all buffers went back.
TEST_F(ActivityBuffers, ABufferIsAskedForByTheFirstRecord) {
  EXPECT_EQ(0u, collector_.requests);
  makeCalls(1);
  EXPECT_EQ(1u, collector_.requests);
  makeCalls(3);
  EXPECT_EQ(1u, collector_.requests);
  EXPECT_EQ(4u, collector_.flush().size());
  EXPECT_EQ(1u, collector_.requests);
  EXPECT_EQ(1u, collector_.completions);
  makeCalls(1);
  // The thread that delivers in the background may be at work, and asks then.
  while (collector_.requests < 2) std::this_thread::yield();
  EXPECT_EQ(2u, collector_.requests);
  EXPECT_EQ(5u, collector_.flush().size());
  EXPECT_EQ(2u, collector_.completions);
}

// A client that flushes, or calls CUDA, in the request callback.
TEST_F(ActivityBuffers, ARequestByARecordMayMakeRecordsAndFlush) {
  int depth = 0, requests = 0;
  bool busy = true;
  std::vector<std::unique_ptr<uint8_t[]>> given;
  collector_.onRequest = [&](uint8_t** buffer, size_t* size, size_t*) {
    EXPECT_EQ(0, depth++);
    if (busy) {
      ++requests;
      makeCalls(1);
      EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
      busy = false;
    }
    *buffer = given.emplace_back(std::make_unique<uint8_t[]>(4096)).get();
    *size = 4096;
    --depth;
  };
  makeCalls(1);
  EXPECT_EQ(1, requests);
  EXPECT_EQ(1u, collector_.completions);  // the flush within gave it back, with both records
  EXPECT_EQ(2u, collector_.records().size());
  EXPECT_EQ(0u, dropped());
}

TEST_F(ActivityBuffers, ACT_013_DroppedCountMayBeAskedInTheCompleteCallback) {
  alignas(8) static uint8_t memory[80];
  int request = 0;
  collector_.onRequest = [&](uint8_t** buffer, size_t* size, size_t*) {
    *buffer = request++ == 0 ? nullptr : memory;
    *size = sizeof memory;
  };
  std::vector<size_t> seen;
  collector_.onComplete = [&](uint8_t*, size_t, size_t) { seen.push_back(dropped()); };
  makeCalls(3);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{1}), seen);
  EXPECT_EQ(2u, collector_.records().size());
}

TEST_F(ActivityBuffers, ACT_014_TheSameMemoryMayBeOfferedAgain) {
  alignas(8) static uint8_t memory[400];
  bool out = false;
  collector_.onRequest = [&](uint8_t** buffer, size_t* size, size_t*) {
    EXPECT_FALSE(out);
    out = true;
    *buffer = memory;
    *size = sizeof memory;
  };
  collector_.onComplete = [&](uint8_t* buffer, size_t, size_t) {
    EXPECT_EQ(memory, buffer);
    out = false;
  };
  makeCalls(95);
  collector_.flush();
  EXPECT_EQ(95u, collector_.records().size());
}

TEST_F(ActivityBuffers, ACT_015_BuffersAreGlobal) {
  SondeHandle a = fake::createContext(), b = fake::createContext();
  for (SondeHandle context : {a, b}) {
    fake::setCurrent(context);
    makeCalls(1);
  }
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{2}), collector_.recordsPerBuffer());
  fake::destroyContext(a);
  fake::destroyContext(b);
}

TEST_F(ActivityBuffers, ACT_016_NoBufferBelongsToAContext) {
  CUcontext given = reinterpret_cast<CUcontext>(1);
  uint32_t stream = 1;
  static auto* context = &given;
  static auto* id = &stream;
  context = &given, id = &stream;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterCallbacks(Collector::requested,
                                                          [](CUcontext c, uint32_t s, uint8_t* buffer, size_t, size_t) {
                                                            *context = c;
                                                            *id = s;
                                                            std::free(buffer);
                                                          }));
  SondeHandle current = fake::createContext();
  makeCalls(1);
  collector_.flush();
  EXPECT_EQ(nullptr, given);
  EXPECT_EQ(0u, stream);
  fake::destroyContext(current);
}

TEST_F(ActivityBuffers, ACT_017_SizeIsWhatWasRequested) {
  collector_.bufferSize = 12344;
  size_t given = 0;
  collector_.onComplete = [&](uint8_t*, size_t size, size_t) { given = size; };
  makeCalls(1);
  collector_.flush();
  EXPECT_EQ(12344u, given);
}

TEST_F(ActivityBuffers, ACT_007_ARequestThatSetsNothingIsARefusal) {
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t* max) {
    EXPECT_EQ(nullptr, *buffer);
    EXPECT_EQ(0u, *size);
    EXPECT_EQ(0u, *max);
  };
  makeCalls(2);
  collector_.flush();
  EXPECT_EQ(2u, dropped());
}

TEST_F(ActivityBuffers, UnalignedBuffersAreFilledWhole) {
  static uint8_t memory[40 * 3 + 3];
  collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
    *buffer = memory + 3;
    *size = 40 * 3;
  };
  makeCalls(6);
  collector_.flush();
  EXPECT_EQ((std::vector<size_t>{3, 3}), collector_.recordsPerBuffer());
  for (const auto& record : collector_.records()) EXPECT_EQ(kMalloc, record.as<CUpti_ActivityAPI>().cbid);
}

TEST_F(ActivityBuffers, ACT_089_FlushAllRunsTheCompleteCallbackBeforeItReturns) {
  const auto caller = std::this_thread::get_id();
  std::thread::id completedOn;
  collector_.onComplete = [&](uint8_t*, size_t, size_t) { completedOn = std::this_thread::get_id(); };
  std::thread([] { makeCalls(3); }).join();
  makeCalls(2);
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  EXPECT_EQ(5u, collector_.records().size());
  EXPECT_EQ(caller, completedOn);
  // Nothing new: nothing more.
  const uint32_t completions = collector_.completions;
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
  EXPECT_EQ(completions, collector_.completions);
}

TEST_F(ActivityBuffers, ACT_090_FlushAllDoesNotSynchronize) {
  const uint32_t before = fake::synchronizations();
  collector_.flush();
  EXPECT_EQ(before, fake::synchronizations());
}

TEST_F(ActivityBuffers, ACT_091_ForcedFlushGivesTheUnfinishedAndLosesNothing) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  SondeHandle context = fake::createContext();
  fake::holdWork();
  fake::call(SONDE_DOMAIN_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, 0, [&] {
    fake::enqueue(context, nullptr, SONDE_WORK_KERNEL, [](SondeWork& w) {
      w.name = "slow";
      w.start = 500;
      w.end = 600;
    });
  });
  collector_.flush(0);
  EXPECT_EQ(0u, collector_.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size());
  collector_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  auto kernels = collector_.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, kernels.size());
  const auto unfinished = kernels[0].as<CUpti_ActivityKernel10>();
  EXPECT_EQ(0u, unfinished.start);  // ACT-005, ACT-106
  EXPECT_EQ(0u, unfinished.end);
  EXPECT_EQ(0u, unfinished.completed);
  EXPECT_STREQ("slow", unfinished.name);
  // Once only, and the finished form still comes.
  collector_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  EXPECT_EQ(1u, collector_.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).size());
  fake::releaseWork();
  fake::waitWork();
  collector_.flush(0);
  kernels = collector_.records(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(2u, kernels.size());
  EXPECT_EQ(500u, kernels[1].as<CUpti_ActivityKernel10>().start);
  EXPECT_EQ(unfinished.correlationId, kernels[1].as<CUpti_ActivityKernel10>().correlationId);
  fake::destroyContext(context);
}

TEST_F(ActivityBuffers, ACT_102_NextRecordStepsThroughABuffer) {
  CUpti_ActivityAPI records[3] = {};
  for (int i = 0; i < 3; ++i) {
    records[i].kind = CUPTI_ACTIVITY_KIND_RUNTIME;
    records[i].cbid = static_cast<uint32_t>(i);
  }
  auto* buffer = reinterpret_cast<uint8_t*>(records);
  CUpti_Activity* record = nullptr;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityGetNextRecord(buffer, sizeof records, &record));
    EXPECT_EQ(reinterpret_cast<CUpti_Activity*>(&records[i]), record);  // ACT-103
  }
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, sizeof records, &record));  // ACT-104
  record = nullptr;
  EXPECT_EQ(CUPTI_ERROR_MAX_LIMIT_REACHED, cuptiActivityGetNextRecord(buffer, 0, &record));
  EXPECT_EQ(nullptr, record);
}

TEST_F(ActivityBuffers, ACT_105_NextRecordErrors) {
  alignas(8) uint8_t buffer[64] = {};
  CUpti_Activity* record = nullptr;
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNextRecord(nullptr, 64, &record));
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNextRecord(buffer, 64, nullptr));
  // XV-006: an unknown kind, and a record that is cut off.
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityGetNextRecord(buffer, 64, &record));
  const uint32_t kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  std::memcpy(buffer, &kind, sizeof kind);
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityGetNextRecord(buffer, 39, &record));
  EXPECT_EQ(CUPTI_ERROR_INVALID_KIND, cuptiActivityGetNextRecord(buffer, 3, &record));
  EXPECT_EQ(nullptr, record);
  record = reinterpret_cast<CUpti_Activity*>(buffer + 64);
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNextRecord(buffer, 64, &record));
}

TEST_F(ActivityBuffers, ACT_107_ReadingTheDroppedCountResetsIt) {
  collector_.onRequest = [](uint8_t**, size_t*, size_t*) {};
  makeCalls(4);
  collector_.flush();
  EXPECT_EQ(4u, dropped());
  makeCalls(1);
  collector_.flush();
  EXPECT_EQ(1u, dropped());
}

TEST_F(ActivityBuffers, ACT_109_ContextAndStreamSelectTheOneGlobalQueue) {
  collector_.onRequest = [](uint8_t**, size_t*, size_t*) {};
  makeCalls(4);
  collector_.flush();
  size_t count = 0;
  SondeHandle context = fake::createContext();
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityGetNumDroppedRecords(static_cast<CUcontext>(context), 7, &count));
  EXPECT_EQ(4u, count);
  fake::destroyContext(context);
}

TEST_F(ActivityBuffers, ACT_110_DroppedCountNeedsAPlace) {
  EXPECT_EQ(CUPTI_ERROR_INVALID_PARAMETER, cuptiActivityGetNumDroppedRecords(nullptr, 0, nullptr));
}

TEST_F(ActivityBuffers, FlushPeriodDeliversWithoutAFlush) {
  makeCalls(3);
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityFlushPeriod(5));
  for (int i = 0; i < 2000 && collector_.records().size() < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(3u, collector_.records().size());
  EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushPeriod(0));
}

TEST_F(ActivityBuffers, RecordsMadeBeforeTheRegistrationAreKept) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
  makeCalls(3);
  collector_.start();
  EXPECT_EQ(3u, collector_.flush().size());
}

TEST_F(ActivityBuffers, AFullChunkIsDeliveredWithoutAFlush) {
  makeCalls(5000);
  for (int i = 0; i < 5000 && collector_.records().size() < 1000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(collector_.records().size(), 1000u);
  EXPECT_EQ(5000u, collector_.flush().size());
}

TEST_F(ActivityBuffers, FinalizeDeliversAndANewLifeBegins) {
  for (int life = 0; life < 50; ++life) {
    makeCalls(2);
    ASSERT_EQ(CUPTI_SUCCESS, cuptiFinalize());
    EXPECT_EQ(2u, collector_.records().size());
    makeCalls(1);  // nobody listens
    collector_.start();
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
    EXPECT_EQ(0u, collector_.flush().size());
  }
}

}  // namespace
