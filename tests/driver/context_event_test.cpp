// SPDX-License-Identifier: Apache-2.0
//
// Events of a whole context.
#include "gpu.h"

namespace {

class ContextEventTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuStreamCreate(&a_, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b_, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event_, 0));
  }
  static void CUDA_CB count(void* n) { static_cast<std::atomic<int>*>(n)->fetch_add(1); }
  CUstream a_, b_;
  CUevent event_;
};

TEST_F(ContextEventTest, RecordsAfterEveryStream) {
  Gate first, second;
  OK(first.hold(a_));
  OK(second.hold(b_));
  OK(cuCtxRecordEvent(context_, event_));
  FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event_));
  first.open();
  OK(cuStreamSynchronize(a_));
  FAILS(CUDA_ERROR_NOT_READY, cuEventQuery(event_));
  second.open();
  OK(cuEventSynchronize(event_));
  OK(cuEventQuery(event_));
  // Waiting for the context waits for the record too.
  Gate third;
  OK(third.hold(a_));
  OK(cuCtxRecordEvent(nullptr, event_));  // the current context
  third.open();
  OK(cuCtxSynchronize());
  OK(cuEventQuery(event_));
}

TEST_F(ContextEventTest, AllStreamsWaitAlsoLaterOnes) {
  CUcontext other;
  CUevent theirs;
  CUstream source;
  OK(createContext(&other, 0, device_));
  OK(cuStreamCreate(&source, CU_STREAM_NON_BLOCKING));
  OK(cuEventCreate(&theirs, 0));
  Gate gate;
  OK(gate.hold(source));
  OK(cuEventRecord(theirs, source));
  OK(cuCtxPopCurrent(nullptr));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(context_, theirs));  // of another context
  OK(cuCtxWaitEvent(context_, theirs));
  std::atomic<int> n{0};
  CUstream later;
  OK(cuStreamCreate(&later, CU_STREAM_NON_BLOCKING));
  for (CUstream s : {a_, b_, later}) OK(cuLaunchHostFunc(s, &count, &n));
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(later));
  FAILS(CUDA_ERROR_NOT_READY, cuStreamQuery(a_));
  EXPECT_EQ(n, 0);
  gate.open();
  OK(cuCtxSynchronize());
  EXPECT_EQ(n, 3);
  OK(cuCtxDestroy(other));
}

TEST_F(ContextEventTest, CapturesAreSpoilt) {
  OK(cuStreamBeginCapture(a_, CU_STREAM_CAPTURE_MODE_RELAXED));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent(context_, event_));
  CUgraph graph;
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a_, &graph));
  OK(cuStreamBeginCapture(a_, CU_STREAM_CAPTURE_MODE_RELAXED));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxWaitEvent(context_, event_));
  FAILS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(a_, &graph));
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(context_, nullptr));
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(reinterpret_cast<CUcontext>(8), event_));
}

}  // namespace
