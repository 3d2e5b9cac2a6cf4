// SPDX-License-Identifier: Apache-2.0
//
// Calls that enqueue work, or order a stream after something else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "platform/nvidia/graph_trace.h"
#include "platform/nvidia/launch_facts.h"
#include "platform/nvidia/objects.h"

namespace sonde::platform::nvidia {

// Driver callback ids by what their call does.
std::span<const uint32_t> workCallbacks();
std::span<const uint32_t> orderCallbacks();
std::span<const uint32_t> eventRecordCallbacks();

// What a call's parameters say about the work (work_calls.cpp).
struct WorkCall {
  SondeWork work{};
  CUstream stream = nullptr;
  CUfunction function = nullptr;  // launches
  LaunchWishes wishes;
  CUgraphExec exec = nullptr;  // graph launches
  bool synchronous = false;    // returns when the work is done, or may
  bool orderOnly = false;
  // Copies and sets: addresses whose kind of memory is not told by the call.
  const void* source = nullptr;
  const void* destination = nullptr;
};
// False: not a call that is understood.
bool describeCall(uint32_t cbid, const void* params, WorkCall& call);

// One call, from before the driver's function to after it.
class PendingWork {
 public:
  void prepare(uint32_t cbid, bool perThread, const void* params);
  // When the call began must be known.
  bool needsBegin() const;
  void finish(int32_t result, uint64_t called, uint32_t correlation);

 private:
  WorkCall call_;
  Context* context_ = nullptr;  // nullptr: nothing to do
  Stream* stream_ = nullptr;
  CUevent before_ = nullptr, after_ = nullptr;
  bool wanted_ = false;
  uint64_t other_ = 0;
  std::shared_ptr<TracedGraph> graph_;  // a graph whose nodes have times
  std::shared_ptr<EventSet> events_;
};

// SondeInterest that asks for a kind of work.
uint64_t interestFor(uint32_t kind);
uint64_t nextGridId();
void completeKernel(SondeWork& work, const KernelInfo& kernel);
// Nodes of graphs, from their parameters.
void describeKernelNode(const CUDA_KERNEL_NODE_PARAMS& params, TracedNode& node);
void describeCopyNode(const CUDA_MEMCPY3D& params, const TracedGraph& graph, TracedNode& node);
void describeSetNode(const CUDA_MEMSET_NODE_PARAMS& params, const TracedGraph& graph, TracedNode& node);

// The work of an item; its times are left 0.
void describeItem(const Stream& stream, const Item& item, SondeWork* work);

// A stream may be capturing: some capture is under way, or was when the
// platform came.
bool mayCapture();
// The hooks are in: what was before them is not known.
void noteAttached();

// Mangled names of what is launched, for callbacks; nullptr: not a launch.
const char* launchedKernel(uint32_t cbid, const void* params);  // driver
const char* launchedStub(uint32_t cbid, const void* params);    // runtime

}  // namespace sonde::platform::nvidia
