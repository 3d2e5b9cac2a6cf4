// SPDX-License-Identifier: Apache-2.0
//
// What runs before what. A gate (a host function that waits) holds a stream
// up; what is not ordered behind it completes all the same.
#include "gpu.h"

namespace {

using OrderTest = Gpu;

void CUDA_CB increment(void* p) { static_cast<std::atomic<int>*>(p)->fetch_add(1); }

TEST_F(OrderTest, LaunchingDoesNotWait) {
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
  Gate gate;
  std::atomic<int> n{0};
  OK(gate.hold(s));
  for (int i = 0; i < 100; i++) OK(cuLaunchHostFunc(s, increment, &n));
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
  EXPECT_EQ(n, 0);
  gate.open();
  OK(cuStreamSynchronize(s));
  EXPECT_EQ(n, 100);
  OK(cuStreamQuery(s));
  OK(cuStreamDestroy(s));
}

TEST_F(OrderTest, TheContextWaitsForAStreamThatWasDestroyedBusy) {
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  Gate gate;
  std::atomic<int> n{0};
  OK(gate.hold(s));
  for (int i = 0; i < 1000; i++) OK(cuLaunchHostFunc(s, increment, &n));
  OK(cuStreamDestroy(s));
  gate.open();
  OK(cuCtxSynchronize());
  EXPECT_EQ(n, 1000);
}

TEST_F(OrderTest, StreamsAreIndependent) {
  CUstream a, b;
  OK(cuStreamCreate(&a, CU_STREAM_DEFAULT));
  OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
  Gate gate;
  std::atomic<int> n{0};
  OK(gate.hold(a));
  OK(cuLaunchHostFunc(b, increment, &n));
  OK(cuStreamSynchronize(b));
  EXPECT_EQ(n, 1);
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(a));
  gate.open();
  OK(cuStreamSynchronize(a));
}

TEST_F(OrderTest, TwoHostFunctionsMayWaitForEachOther) {
  CUstream a, b;
  OK(cuStreamCreate(&a, CU_STREAM_DEFAULT));
  OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
  Gate gate;
  OK(gate.hold(a));
  OK(cuLaunchHostFunc(b, [](void* g) { static_cast<Gate*>(g)->open(); }, &gate));
  OK(cuStreamSynchronize(a));
  OK(cuStreamSynchronize(b));
}

TEST_F(OrderTest, EventOrdersAcrossStreams) {
  CUstream a, b;
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  CUevent e;
  OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  OK(cuEventQuery(e));  // never recorded: nothing to wait for
  Gate gate;
  std::atomic<int> n{0};
  OK(gate.hold(a));
  OK(cuEventRecord(e, a));
  OK(cuStreamWaitEvent(b, e, 0));
  OK(cuLaunchHostFunc(b, increment, &n));
  FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(e));
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(b));
  EXPECT_EQ(n, 0);
  gate.open();
  OK(cuStreamSynchronize(b));
  EXPECT_EQ(n, 1);
  OK(cuEventQuery(e));
}

TEST_F(OrderTest, WaitIsForTheRecordThatWasLastAtTheCall) {
  CUstream a, b;
  OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  CUevent e;
  OK(cuEventCreate(&e, 0));
  OK(cuEventRecord(e, a));
  OK(cuEventSynchronize(e));
  OK(cuStreamWaitEvent(b, e, 0));
  Gate gate;
  OK(gate.hold(a));
  OK(cuEventRecord(e, a));
  OK(cuStreamSynchronize(b));  // waits for the first record only
  gate.open();
  OK(cuEventSynchronize(e));
}

TEST_F(OrderTest, LegacyDefaultStreamWaitsForBlockingStreams) {
  CUstream blocking, free;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  Gate gate;
  std::atomic<int> legacy{0}, other{0};
  OK(gate.hold(blocking));
  OK(cuLaunchHostFunc(nullptr, increment, &legacy));
  OK(cuLaunchHostFunc(free, increment, &other));
  OK(cuStreamSynchronize(free));
  EXPECT_EQ(other, 1);
  EXPECT_EQ(legacy, 0);
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
  gate.open();
  OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(legacy, 1);
}

TEST_F(OrderTest, BlockingStreamsWaitForTheLegacyDefaultStream) {
  CUstream blocking, free;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  OK(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  Gate gate;
  std::atomic<int> a{0}, b{0};
  OK(gate.hold(nullptr));
  OK(cuLaunchHostFunc(blocking, increment, &a));
  OK(cuLaunchHostFunc(free, increment, &b));
  OK(cuStreamSynchronize(free));
  EXPECT_EQ(b, 1);
  EXPECT_EQ(a, 0);
  gate.open();
  OK(cuStreamSynchronize(blocking));
  EXPECT_EQ(a, 1);
}

TEST_F(OrderTest, DestroyedStreamStillHoldsTheLegacyOneBack) {
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
  Gate gate;
  std::atomic<int> n{0}, m{0};
  OK(gate.hold(s));
  OK(cuLaunchHostFunc(s, increment, &m));
  OK(cuStreamDestroy(s));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(s));
  OK(cuLaunchHostFunc(nullptr, increment, &n));
  EXPECT_EQ(n, 0);
  gate.open();
  OK(cuStreamSynchronize(nullptr));
  EXPECT_EQ(n, 1);
  EXPECT_EQ(m, 1);
}

TEST_F(OrderTest, PerThreadStreamsOfTwoThreadsAreIndependent) {
  Gate gate;
  std::atomic<int> n{0};
  OK(gate.hold(CU_STREAM_PER_THREAD));
  std::thread other([&] {
    ASSERT_EQ(nameOf(cuCtxSetCurrent(context_)), "CUDA_SUCCESS");
    ASSERT_EQ(nameOf(cuLaunchHostFunc(CU_STREAM_PER_THREAD, increment, &n)), "CUDA_SUCCESS");
    ASSERT_EQ(nameOf(cuStreamSynchronize(CU_STREAM_PER_THREAD)), "CUDA_SUCCESS");
  });
  other.join();
  EXPECT_EQ(n, 1);
  gate.open();
  OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_F(OrderTest, HostFunctionsMayNotCallTheDriver) {
  struct Seen {
    CUresult result = CUDA_SUCCESS;
  } seen;
  OK(cuLaunchHostFunc(
      nullptr,
      [](void* p) {
        CUdeviceptr d;
        static_cast<Seen*>(p)->result = cuMemAlloc(&d, 16);
      },
      &seen));
  OK(cuStreamSynchronize(nullptr));
  FAILS(CUDA_ERROR_NOT_PERMITTED, seen.result);
}

TEST_F(OrderTest, CallbackGetsStreamAndStatus) {
  struct Seen {
    CUstream stream = nullptr;
    CUresult status = CUDA_ERROR_UNKNOWN;
  } seen;
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
  OK(cuStreamAddCallback(
      s, [](CUstream stream, CUresult status, void* p) { *static_cast<Seen*>(p) = {stream, status}; }, &seen, 0));
  OK(cuStreamSynchronize(s));
  EXPECT_EQ(seen.stream, s);
  EXPECT_EQ(seen.status, CUDA_SUCCESS);
}

TEST_F(OrderTest, ElapsedTime) {
  CUevent a, b, never, untimed;
  OK(cuEventCreate(&a, 0));
  OK(cuEventCreate(&b, 0));
  OK(cuEventCreate(&never, 0));
  OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  Gate gate;
  OK(cuEventRecord(a, s));
  OK(gate.hold(s));
  OK(cuEventRecord(b, s));
  float ms = -1;
  FAILS(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, a, b));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, a, never));
  OK(cuEventSynchronize(a));
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(5)) {
  }
  gate.open();
  OK(cuEventSynchronize(b));
  OK(cuEventElapsedTime(&ms, a, b));
  EXPECT_GE(ms, 5.0f);
  OK(cuEventRecord(untimed, s));
  OK(cuEventSynchronize(untimed));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, a, untimed));
}

TEST_F(OrderTest, ManyThreadsManyStreams) {
  constexpr int kThreads = 8, kRounds = 200;
  std::atomic<int> n{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&, t] {
      ASSERT_EQ(nameOf(cuCtxSetCurrent(context_)), "CUDA_SUCCESS");
      CUstream s;
      CUevent e;
      CUdeviceptr p;
      ASSERT_EQ(cuStreamCreate(&s, t % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT), CUDA_SUCCESS);
      ASSERT_EQ(cuEventCreate(&e, 0), CUDA_SUCCESS);
      ASSERT_EQ(cuMemAlloc(&p, 4096), CUDA_SUCCESS);
      for (int i = 0; i < kRounds; i++) {
        ASSERT_EQ(cuMemsetD32Async(p, static_cast<unsigned>(i), 1024, s), CUDA_SUCCESS);
        ASSERT_EQ(cuEventRecord(e, s), CUDA_SUCCESS);
        ASSERT_EQ(cuStreamWaitEvent(nullptr, e, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuLaunchHostFunc(i % 3 ? s : nullptr, increment, &n), CUDA_SUCCESS);
        unsigned value = 0;
        if (i % 16 == 0) {
          ASSERT_EQ(cuMemcpyDtoHAsync(&value, p + 4092, 4, s), CUDA_SUCCESS);
          ASSERT_EQ(value, static_cast<unsigned>(i));
        }
      }
      ASSERT_EQ(cuStreamSynchronize(s), CUDA_SUCCESS);
      ASSERT_EQ(cuMemFree(p), CUDA_SUCCESS);
      ASSERT_EQ(cuEventDestroy(e), CUDA_SUCCESS);
      ASSERT_EQ(cuStreamDestroy(s), CUDA_SUCCESS);
    });
  for (auto& t : threads) t.join();
  OK(cuCtxSynchronize());
  EXPECT_EQ(n, kThreads * kRounds);
}

TEST_F(OrderTest, StreamIds) {
  CUstream a, b;
  OK(cuStreamCreate(&a, 0));
  OK(cuStreamCreate(&b, 0));
  unsigned long long legacy, first, second;
  OK(cuStreamGetId(nullptr, &legacy));
  OK(cuStreamGetId(a, &first));
  OK(cuStreamGetId(b, &second));
  EXPECT_EQ(second, first + 1);
  EXPECT_NE(legacy, first);
  OK(cuStreamDestroy(a));
  OK(cuStreamDestroy(b));
}

TEST_F(OrderTest, AttributesOfStreamsAreKept) {
  CUstream a, b;
  OK(cuStreamCreate(&a, 0));
  OK(cuStreamCreate(&b, 0));
  CUstreamAttrValue value{};
  OK(cuStreamGetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_AUTO);
  value.syncPolicy = CU_SYNC_POLICY_YIELD;
  OK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  int memory = 0;
  CUstreamAttrValue window{};
  window.accessPolicyWindow = {&memory, 4, 0.75f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING};
  OK(cuStreamSetAttribute(a, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window));
  OK(cuStreamCopyAttributes(b, a));
  value = {};
  OK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
  EXPECT_EQ(value.syncPolicy, CU_SYNC_POLICY_YIELD);
  OK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
  EXPECT_EQ(value.accessPolicyWindow.base_ptr, &memory);
  EXPECT_EQ(value.accessPolicyWindow.num_bytes, 4u);
  EXPECT_EQ(value.accessPolicyWindow.hitRatio, 0.75f);
  // What is no window is refused, and the one from before stays.
  int largest = 0;
  OK(cuDeviceGetAttribute(&largest, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
  for (const CUaccessPolicyWindow& bad :
       {CUaccessPolicyWindow{&memory, static_cast<size_t>(largest) + 1, 0, CU_ACCESS_PROPERTY_NORMAL,
                             CU_ACCESS_PROPERTY_NORMAL},
        CUaccessPolicyWindow{&memory, 4, 1.5f, CU_ACCESS_PROPERTY_NORMAL, CU_ACCESS_PROPERTY_NORMAL},
        CUaccessPolicyWindow{&memory, 4, 0, CU_ACCESS_PROPERTY_NORMAL, CU_ACCESS_PROPERTY_PERSISTING}}) {
    CUstreamAttrValue wrong{};
    wrong.accessPolicyWindow = bad;
    EXPECT_EQ(cuStreamSetAttribute(b, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &wrong), CUDA_ERROR_INVALID_VALUE);
  }
  OK(cuStreamGetAttribute(b, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
  EXPECT_EQ(value.accessPolicyWindow.num_bytes, 4u);
  OK(cuStreamDestroy(a));
  OK(cuStreamDestroy(b));
}

}  // namespace
