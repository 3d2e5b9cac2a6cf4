// SPDX-License-Identifier: Apache-2.0
//
// A context for the tests, and a check that says which call failed.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

inline std::string nameOf(CUresult r) {
  const char* name = nullptr;
  cuGetErrorName(r, &name);
  return name ? name : std::to_string(static_cast<int>(r));
}

inline CUresult createContext(CUcontext* context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v4(context, nullptr, flags, device);
}

#define OK(call) ASSERT_EQ(nameOf(call), "CUDA_SUCCESS") << #call
#define FAILS(error, call) ASSERT_EQ(nameOf(call), #error) << #call

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    OK(cuInit(0));
    OK(cuDeviceGet(&device_, 0));
    OK(createContext(&context_, 0, device_));
  }
  void TearDown() override {
    if (context_) {
      EXPECT_EQ(nameOf(cuCtxDestroy(context_)), "CUDA_SUCCESS");
    }
  }
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

// Holds a stream up until it is opened: a host function that waits.
class Gate {
 public:
  CUresult hold(CUstream stream) { return cuLaunchHostFunc(stream, &Gate::wait, this); }
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  static void CUDA_CB wait(void* self) {
    auto* gate = static_cast<Gate*>(self);
    std::unique_lock lock(gate->mutex_);
    gate->changed_.wait(lock, [&] { return gate->open_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};
