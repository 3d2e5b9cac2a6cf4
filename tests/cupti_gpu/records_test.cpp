// SPDX-License-Identifier: Apache-2.0
// Every record that real work on the software GPU leaves.
#include <algorithm>
#include <cstring>
#include <future>
#include <set>
#include <sstream>
#include <thread>

#include "gpu_trace.h"

namespace sonde::test {
namespace {

using GpuRecords = GpuTrace;

TEST_F(GpuRecords, Kernel) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  uint32_t streamId = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(nullptr, stream, &streamId));
  ASSERT_EQ(cudaSuccess, launch(out, 3, 64, 128));
  ASSERT_EQ(cudaSuccess, launch(out, 2, 32, 0, stream));
  finish();
  uint32_t host[192];
  CUDA(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT_EQ(7u + 191, host[191]);
  const auto kernels = byCall<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(2u, kernels.size());
  const auto& a = kernels[0];
  const auto& b = kernels[1];
  cudaFuncAttributes attributes{};
  CUDA(cudaFuncGetAttributes(&attributes, &fillStub));
  for (const auto* k : {&a, &b}) {
    EXPECT_STREQ(kFill, k->name);
    EXPECT_EQ(0u, k->deviceId);
    EXPECT_EQ(contextId, k->contextId);
    EXPECT_EQ(attributes.numRegs, k->registersPerThread);
    EXPECT_GT(k->registersPerThread, 0);
    EXPECT_EQ(64, k->staticSharedMemory);
    EXPECT_EQ(1, k->gridY);
    EXPECT_EQ(1, k->gridZ);
    EXPECT_EQ(1, k->blockY);
    EXPECT_EQ(1, k->blockZ);
    EXPECT_EQ(0u, k->localMemoryPerThread);
    EXPECT_LE(k->start, k->end);
    EXPECT_EQ(k->end, k->completed);
    EXPECT_EQ(0u, k->queued);  // not asked for
    EXPECT_EQ(0u, k->submitted);
    EXPECT_EQ(0u, k->graphId);
    EXPECT_EQ(CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR, k->launchType);
    const auto& call = callOf(k->correlationId);
    EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, static_cast<int>(call.cbid));
    EXPECT_LE(call.start, k->start);
  }
  EXPECT_EQ(3, a.gridX);
  EXPECT_EQ(64, a.blockX);
  EXPECT_EQ(128, a.dynamicSharedMemory);
  EXPECT_EQ(nullStream, a.streamId);
  EXPECT_EQ(2, b.gridX);
  EXPECT_EQ(32, b.blockX);
  EXPECT_EQ(0, b.dynamicSharedMemory);
  EXPECT_EQ(streamId, b.streamId);
  EXPECT_NE(a.gridId, b.gridId);
  EXPECT_NE(a.correlationId, b.correlationId);
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(out));
}

TEST_F(GpuRecords, LatencyTimesOnRequest) {
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableLatencyTimestamps(1));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  ASSERT_EQ(cudaSuccess, launch(out, 1, 32, 0));
  finish();
  const auto kernels = byCall<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, kernels.size());
  EXPECT_GT(kernels[0].queued, 0u);
  EXPECT_LE(kernels[0].queued, kernels[0].submitted);
  EXPECT_LE(kernels[0].submitted, kernels[0].start);
  CUDA(cudaFree(out));
}

TEST_F(GpuRecords, CopiesOfAllDirections) {
  void *device = nullptr, *other = nullptr, *pinned = nullptr;
  static char pageable[8192];
  CUDA(cudaMalloc(&device, 8192));
  CUDA(cudaMalloc(&other, 8192));
  CUDA(cudaMallocHost(&pinned, 8192));
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMCPY});
  CUDA(cudaMemcpy(device, pageable, 1000, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(pageable, device, 2000, cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(other, device, 3000, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy(pageable, pinned, 4000, cudaMemcpyHostToHost));
  CUDA(cudaMemcpyAsync(device, pinned, 5000, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(pageable, device, 6000, cudaMemcpyDefault));
  finish();
  const auto copies = byCall<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  struct Expected {
    CUpti_ActivityMemcpyKind kind;
    CUpti_ActivityMemoryKind from, to;
    uint64_t bytes;
    bool async;
  };
  const auto kPageable = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, kPinned = CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
             kDevice = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  const Expected expected[] = {
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, kPageable, kDevice, 1000, false},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, kDevice, kPageable, 2000, false},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, kDevice, kDevice, 3000, false},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, kPinned, kPageable, 4000, false},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, kPinned, kDevice, 5000, true},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, kDevice, kPageable, 6000, false},
  };
  ASSERT_EQ(std::size(expected), copies.size());
  std::set<uint32_t> correlations;
  for (size_t i = 0; i < copies.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(expected[i].kind, copies[i].copyKind);
    EXPECT_EQ(expected[i].from, copies[i].srcKind);
    EXPECT_EQ(expected[i].to, copies[i].dstKind);
    EXPECT_EQ(expected[i].bytes, copies[i].bytes);
    EXPECT_EQ(expected[i].async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : CUPTI_ACTIVITY_FLAG_NONE,
              static_cast<int>(copies[i].flags));
    EXPECT_EQ(contextId, copies[i].contextId);
    EXPECT_EQ(nullStream, copies[i].streamId);
    EXPECT_EQ(0u, copies[i].deviceId);
    EXPECT_EQ(1u, copies[i].copyCount);
    EXPECT_TRUE(correlations.insert(copies[i].correlationId).second);
    const auto& call = callOf(copies[i].correlationId);
    EXPECT_LE(call.start, copies[i].start);
    EXPECT_LE(copies[i].start, copies[i].end);
    // Those to or from pageable memory are done when the call returns.
    if (!expected[i].async && expected[i].kind != CUPTI_ACTIVITY_MEMCPY_KIND_DTOD) within(copies[i], call);
  }
  CUDA(cudaFree(device));
  CUDA(cudaFree(other));
  CUDA(cudaFreeHost(pinned));
}

TEST_F(GpuRecords, CopiesOfArraysAndManagedMemory) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array = nullptr, second = nullptr;
  CUDA(cudaMallocArray(&array, &format, 64, 8, 0));
  CUDA(cudaMallocArray(&second, &format, 64, 8, 0));
  void *device = nullptr, *managed = nullptr;
  CUDA(cudaMalloc(&device, 8192));
  CUDA(cudaMallocManaged(&managed, 8192, cudaMemAttachGlobal));
  static char pageable[8192];
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMCPY});
  CUDA(cudaMemcpy2DToArray(array, 0, 0, pageable, 128, 128, 2, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy2DFromArray(pageable, 128, array, 0, 0, 128, 3, cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy2DArrayToArray(second, 0, 0, array, 0, 0, 128, 4, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy2DFromArray(device, 128, array, 0, 0, 128, 5, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, device, 128, 128, 6, cudaMemcpyDeviceToDevice));
  CUDA(cudaMemcpy(device, managed, 7000, cudaMemcpyDefault));
  finish();
  struct Expected {
    CUpti_ActivityMemcpyKind kind;
    CUpti_ActivityMemoryKind from, to;
    uint64_t bytes;
  };
  const auto kPageable = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, kArray = CUPTI_ACTIVITY_MEMORY_KIND_ARRAY,
             kDevice = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  const Expected expected[] = {
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOA, kPageable, kArray, 256},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, kArray, kPageable, 384},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOA, kArray, kArray, 512},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOD, kArray, kDevice, 640},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOA, kDevice, kArray, 768},
  };
  const auto copies = byCall<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  ASSERT_EQ(std::size(expected) + 1, copies.size());
  for (size_t i = 0; i < std::size(expected); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(expected[i].kind, copies[i].copyKind);
    EXPECT_EQ(expected[i].from, copies[i].srcKind);
    EXPECT_EQ(expected[i].to, copies[i].dstKind);
    EXPECT_EQ(expected[i].bytes, copies[i].bytes);
    EXPECT_EQ(contextId, copies[i].contextId);
    EXPECT_EQ(0u, copies[i].deviceId);
  }
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_MANAGED, copies.back().srcKind);
  EXPECT_EQ(kDevice, static_cast<int>(copies.back().dstKind));
  EXPECT_EQ(7000u, copies.back().bytes);
  CUDA(cudaFreeArray(array));
  CUDA(cudaFreeArray(second));
  CUDA(cudaFree(device));
  CUDA(cudaFree(managed));
}

TEST_F(GpuRecords, PeerCopies) {
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  ASSERT_EQ(2, devices);
  void *here = nullptr, *there = nullptr;
  CUDA(cudaMalloc(&here, 4096));
  CUDA(cudaSetDevice(1));
  CUDA(cudaMalloc(&there, 4096));
  CUcontext second = nullptr;
  CU(cuCtxGetCurrent(&second));
  uint32_t secondId = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetContextId(second, &secondId));
  CUDA(cudaSetDevice(0));
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2});
  CUDA(cudaMemcpyPeer(there, 1, here, 0, 4000));
  finish();
  EXPECT_EQ(0u, of<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY).size());
  const auto copies = of<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2);
  ASSERT_EQ(1u, copies.size());
  EXPECT_EQ(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, static_cast<int>(copies[0].copyKind));
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, static_cast<int>(copies[0].srcKind));
  EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, static_cast<int>(copies[0].dstKind));
  EXPECT_EQ(4000u, copies[0].bytes);
  EXPECT_EQ(0u, copies[0].srcDeviceId);
  EXPECT_EQ(1u, copies[0].dstDeviceId);
  EXPECT_EQ(contextId, copies[0].srcContextId);
  EXPECT_EQ(secondId, copies[0].dstContextId);
  EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyPeer_v4000, static_cast<int>(callOf(copies[0].correlationId).cbid));
  CUDA(cudaFree(here));
  CUDA(cudaFree(there));
}

TEST_F(GpuRecords, Sets) {
  void* memory = nullptr;
  CUDA(allocate(&memory, 4096));
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_MEMSET});
  CUDA(cudaMemset(memory, 0xab, 1024));
  CUDA(cudaMemsetAsync(memory, 1, 100));
  CU(cuMemsetD32(reinterpret_cast<CUdeviceptr>(memory), 0x12345678, 16));
  finish();
  const auto sets = byCall<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  ASSERT_EQ(3u, sets.size());
  EXPECT_EQ(0xabu, sets[0].value);
  EXPECT_EQ(1u, sets[1].value);
  EXPECT_EQ(0x12345678u, sets[2].value);
  EXPECT_EQ(1024u, sets[0].bytes);
  EXPECT_EQ(100u, sets[1].bytes);
  EXPECT_EQ(64u, sets[2].bytes);
  EXPECT_EQ(CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC, static_cast<int>(sets[1].flags));
  for (const auto& set : sets) {
    EXPECT_EQ(CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, static_cast<int>(set.memoryKind));
    EXPECT_EQ(nullStream, set.streamId);
    EXPECT_EQ(contextId, set.contextId);
    EXPECT_LE(callOf(set.correlationId).start, set.start);
  }
  EXPECT_EQ(CUPTI_ACTIVITY_KIND_DRIVER, callOf(sets[2].correlationId).kind);
  CUDA(cudaFree(memory));
}

TEST_F(GpuRecords, StreamsEventsAndSynchronization) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_STREAM, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
          CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
  ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityEnableCudaEventDeviceTimestamps(1));
  collector_.flush();
  const size_t before = of<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM).size();
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  uint32_t id = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetStreamId(nullptr, stream, &id));
  cudaEvent_t event = nullptr;
  CUDA(cudaEventCreate(&event));
  CUDA(cudaEventRecord(event, stream));
  CUDA(cudaEventSynchronize(event));
  CUDA(cudaStreamSynchronize(stream));
  CUDA(cudaStreamWaitEvent(stream, event, 0));
  finish();
  const auto streams = of<CUpti_ActivityStream>(CUPTI_ACTIVITY_KIND_STREAM);
  ASSERT_EQ(before + 1, streams.size());
  EXPECT_EQ(id, streams.back().streamId);
  EXPECT_EQ(contextId, streams.back().contextId);
  EXPECT_EQ(CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING, streams.back().flag);
  EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithFlags_v5000,
            static_cast<int>(callOf(streams.back().correlationId).cbid));
  const auto events = of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  ASSERT_EQ(1u, events.size());
  EXPECT_EQ(id, events[0].streamId);
  EXPECT_EQ(contextId, events[0].contextId);
  EXPECT_EQ(0u, events[0].deviceId);
  EXPECT_GE(events[0].deviceTimestamp, callOf(events[0].correlationId).start);
  const auto syncs = of<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  ASSERT_EQ(4u, syncs.size());
  EXPECT_EQ(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE, syncs[0].type);
  EXPECT_EQ(events[0].eventId, syncs[0].cudaEventId);
  EXPECT_EQ(events[0].cudaEventSyncId, syncs[0].cudaEventSyncId);
  EXPECT_EQ(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE, syncs[1].type);
  EXPECT_EQ(id, syncs[1].streamId);
  EXPECT_EQ(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT, syncs[2].type);
  EXPECT_EQ(events[0].eventId, syncs[2].cudaEventId);
  EXPECT_EQ(CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE, syncs[3].type);
  for (const auto& sync : syncs) {
    EXPECT_EQ(contextId, sync.contextId);
    EXPECT_EQ(0u, sync.returnValue);
    within(sync, callOf(sync.correlationId));
  }
  CUDA(cudaEventDestroy(event));
  CUDA(cudaStreamDestroy(stream));
}

TEST_F(GpuRecords, Graphs) {
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  ASSERT_EQ(cudaSuccess, launch(out, 1, 32, 0, stream));
  CUDA(cudaMemsetAsync(out, 3, 64, stream));
  cudaGraph_t graph = nullptr;
  CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  uint32_t execId = 0;
  ASSERT_EQ(CUPTI_SUCCESS, cuptiGetGraphExecId(exec, &execId));
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMSET});
  CUDA(cudaGraphLaunch(exec, stream));
  finish();
  const auto kernels = byCall<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const auto sets = byCall<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  ASSERT_EQ(1u, kernels.size());
  ASSERT_EQ(1u, sets.size());
  EXPECT_EQ(execId, kernels[0].graphId);
  EXPECT_EQ(execId, sets[0].graphId);
  EXPECT_NE(0u, kernels[0].graphNodeId);
  EXPECT_NE(kernels[0].graphNodeId, sets[0].graphNodeId);
  EXPECT_LE(kernels[0].end, sets[0].start);
  EXPECT_EQ(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, static_cast<int>(callOf(kernels[0].correlationId).cbid));
  EXPECT_EQ(kernels[0].correlationId, sets[0].correlationId);
  // As a whole: then its nodes have no records, though their kinds are on. Other kernels have.
  collector_.clear();
  enable({CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  CUDA(cudaGraphLaunch(exec, stream));
  ASSERT_EQ(cudaSuccess, launch(out, 2, 32, 0, stream));
  finish();
  const auto alone = of<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  ASSERT_EQ(1u, alone.size());
  EXPECT_EQ(2, alone[0].gridX);
  EXPECT_EQ(0u, of<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET).size());
  const auto whole = of<CUpti_ActivityGraphTrace2>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  ASSERT_EQ(1u, whole.size());
  EXPECT_EQ(execId, whole[0].graphId);
  EXPECT_EQ(contextId, whole[0].contextId);
  EXPECT_LE(whole[0].start, whole[0].end);
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(out));
}

TEST_F(GpuRecords, Allocations) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_MEMORY, CUPTI_ACTIVITY_KIND_MEMORY2});
  void *device = nullptr, *pinned = nullptr;
  CUDA(cudaMalloc(&device, 12345));
  CUDA(cudaMallocHost(&pinned, 4096));
  CUDA(cudaFree(device));
  CUDA(cudaFreeHost(pinned));
  finish();
  const auto both = of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  ASSERT_EQ(4u, both.size());
  const auto address = [](void* p) { return reinterpret_cast<uint64_t>(p); };
  const CUpti_ActivityMemoryKind kinds[] = {CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, CUPTI_ACTIVITY_MEMORY_KIND_PINNED};
  for (size_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(i < 2 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
              both[i].memoryOperationType);
    EXPECT_EQ(kinds[i % 2], both[i].memoryKind);
    EXPECT_EQ(address(i % 2 == 0 ? device : pinned), both[i].address);
    EXPECT_EQ(i % 2 == 0 ? 12345u : 4096u, both[i].bytes);
    const auto& call = callOf(both[i].correlationId);
    EXPECT_LE(call.start, both[i].timestamp);
    EXPECT_LE(both[i].timestamp, call.end);
  }
  const auto spans = of<CUpti_ActivityMemory>(CUPTI_ACTIVITY_KIND_MEMORY);
  ASSERT_EQ(2u, spans.size());
  EXPECT_EQ(address(device), spans[0].address);
  EXPECT_EQ(both[0].timestamp, spans[0].start);
  EXPECT_EQ(both[2].timestamp, spans[0].end);
}

TEST_F(GpuRecords, ModulesContextsAndTheCompiler) {
  enable({CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT, CUPTI_ACTIVITY_KIND_MODULE,
          CUPTI_ACTIVITY_KIND_FUNCTION, CUPTI_ACTIVITY_KIND_OVERHEAD});
  collector_.flush();
  const auto devices = of<CUpti_ActivityDevice5>(CUPTI_ACTIVITY_KIND_DEVICE);
  ASSERT_EQ(2u, devices.size());
  for (uint32_t i = 0; i < 2; ++i) {
    cudaDeviceProp properties{};
    CUDA(cudaGetDeviceProperties(&properties, static_cast<int>(i)));
    EXPECT_EQ(i, devices[i].id);
    EXPECT_STREQ(properties.name, devices[i].name);
    EXPECT_EQ(16u, devices[i].numMultiprocessors);
    EXPECT_EQ(32u, devices[i].numThreadsPerWarp);
    EXPECT_EQ(64u, devices[i].maxWarpsPerMultiprocessor);
    EXPECT_EQ(9u, devices[i].computeCapabilityMajor);
    EXPECT_EQ(properties.totalGlobalMem, devices[i].globalMemorySize);
    EXPECT_EQ(0, std::memcmp(properties.uuid.bytes, devices[i].uuid.bytes, 16));
  }
  bool seen = false;
  for (const auto& context : of<CUpti_ActivityContext3>(CUPTI_ACTIVITY_KIND_CONTEXT)) {
    if (context.contextId != contextId) continue;
    seen = true;
    EXPECT_EQ(0u, context.deviceId);
    EXPECT_EQ(nullStream, context.nullStreamId);
    EXPECT_EQ(CUPTI_ACTIVITY_COMPUTE_API_CUDA, static_cast<int>(context.computeApiKind));
  }
  EXPECT_TRUE(seen);
  const size_t modules = of<CUpti_ActivityModule>(CUPTI_ACTIVITY_KIND_MODULE).size();
  const size_t functions = of<CUpti_ActivityFunction>(CUPTI_ACTIVITY_KIND_FUNCTION).size();
  const std::string text = std::string(kTracePtx) + "// " + std::to_string(getpid()) + "\n";
  CUmodule module = nullptr;
  CU(cuModuleLoadData(&module, text.c_str()));
  CUfunction function = nullptr;
  CU(cuModuleGetFunction(&function, module, kFill));
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  uint32_t value = 1;
  void* arguments[] = {&out, &value};
  CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
  finish();
  const auto loaded = of<CUpti_ActivityModule>(CUPTI_ACTIVITY_KIND_MODULE);
  ASSERT_EQ(modules + 1, loaded.size());
  EXPECT_EQ(contextId, loaded.back().contextId);
  EXPECT_GE(loaded.back().cubinSize, text.size());
  const auto used = of<CUpti_ActivityFunction>(CUPTI_ACTIVITY_KIND_FUNCTION);
  ASSERT_EQ(functions + 1, used.size());
  EXPECT_EQ(loaded.back().id, used.back().moduleId);
  EXPECT_STREQ(kFill, used.back().name);
  size_t compilations = 0;
  for (const auto& overhead : of<CUpti_ActivityOverhead3>(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
    if (overhead.overheadKind != CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER) continue;
    ++compilations;
    EXPECT_LT(overhead.start, overhead.end);
    EXPECT_EQ(CUPTI_ACTIVITY_OBJECT_THREAD, overhead.objectKind);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), overhead.objectId.pt.processId);
  }
  EXPECT_GE(compilations, 1u);
  CU(cuModuleUnload(module));
  CUDA(cudaFree(out));
}

// Where buffers are too small to hold both, the id comes in an earlier one: of
// threads that have ended, too, and while threads that wait do each other's work.
TEST_F(GpuRecords, TheExternalIdComesInNoLaterBufferThanTheWork) {
  collector_.bufferSize = 300;  // one kernel
  enable(
      {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  uint32_t* out = nullptr;
  CUDA(allocate(&out, 4096));
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, t + 1));
      cudaStream_t stream = nullptr;
      EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(cudaSuccess, launch(out, 1, 64, 0, stream));
        if (i % 3 == 0) {
          EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
        }
        if (i % 10 == 0) {
          EXPECT_EQ(CUPTI_SUCCESS, cuptiActivityFlushAll(0));
        }
      }
      EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  finish();
  std::set<uint32_t> known;
  size_t kernels = 0, late = 0;
  for (const Record& record : collector_.records()) {
    if (record.kind() == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
      known.insert(record.as<CUpti_ActivityExternalCorrelation>().correlationId);
    } else if (record.kind() == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++kernels;
      late += 1 - known.count(record.as<CUpti_ActivityKernel10>().correlationId);
    }
  }
  EXPECT_EQ(3000u, kernels);
  EXPECT_EQ(0u, late);
  EXPECT_GE(collector_.recordsPerBuffer().size(), 3000u) << "too large for this test";
  CUDA(cudaFree(out));
}

// Tools join work to their own ids within a buffer, from its beginning on.
TEST_F(GpuRecords, WorkIsInTheBufferOfItsThreadBehindTheExternalIdOfItsCall) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
          CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET});
  size_t kernels = 0, copies = 0, sets = 0;
  collector_.onComplete = [&](uint8_t* buffer, size_t, size_t valid) {
    std::set<uint32_t> external, threads;
    CUpti_Activity* record = nullptr;
    auto joined = [&](uint32_t correlation) { EXPECT_EQ(1u, external.count(correlation)); };
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
      switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_RUNTIME: threads.insert(reinterpret_cast<CUpti_ActivityAPI*>(record)->threadId); break;
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
          external.insert(reinterpret_cast<CUpti_ActivityExternalCorrelation*>(record)->correlationId);
          break;
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
          ++kernels;
          joined(reinterpret_cast<CUpti_ActivityKernel10*>(record)->correlationId);
          break;
        case CUPTI_ACTIVITY_KIND_MEMCPY:
          ++copies;
          joined(reinterpret_cast<CUpti_ActivityMemcpy6*>(record)->correlationId);
          break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
          ++sets;
          joined(reinterpret_cast<CUpti_ActivityMemset4*>(record)->correlationId);
          break;
        default: break;
      }
    }
    EXPECT_LE(threads.size(), 1u);
  };
  auto work = [](uint64_t id) {
    uint32_t* out = nullptr;
    uint32_t host[64];
    cudaStream_t stream = nullptr;
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id));
    CUDA(allocate(&out, 4096));
    for (int i = 0; i < 20; ++i) {
      CUDA(cudaMemsetAsync(out, 0, 4096, stream));
      ASSERT_EQ(cudaSuccess, launch(out, 1, 64, 0, stream));
      CUDA(cudaMemcpyAsync(host, out, sizeof host, cudaMemcpyDeviceToHost, stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, nullptr));
    CUDA(cudaFree(out));
    CUDA(cudaStreamDestroy(stream));
  };
  // A thread that has ended leaves what is not delivered yet to another buffer: this one waits for the flush.
  std::promise<void> worked, delivered;
  std::thread other([&] {
    work(1);
    worked.set_value();
    delivered.get_future().wait();
  });
  work(2);
  worked.get_future().wait();
  collector_.flush();
  delivered.set_value();
  other.join();
  work(3);
  CUDA(cudaDeviceSynchronize());
  collector_.flush();
  collector_.onComplete = nullptr;
  EXPECT_EQ(60u, kernels);
  EXPECT_EQ(60u, copies);
  EXPECT_EQ(60u, sets);
}

TEST_F(GpuRecords, TwentyRunsAreTheSame) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
          CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_MEMORY2});
  std::string first;
  for (int run = 0; run < 20; ++run) {
    collector_.clear();
    uint32_t* out = nullptr;
    static uint32_t host[1024];
    CUDA(allocate(&out, 4096));
    CUDA(cudaMemcpy(out, host, 4096, cudaMemcpyHostToDevice));
    CUDA(cudaMemset(out, 5, 64));
    for (uint32_t i = 1; i < 5; ++i) ASSERT_EQ(cudaSuccess, launch(out, i, 32 * i, 0));
    CUDA(cudaMemcpy(host, out, 4096, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(out));
    finish();
    // By call, then by kind: all that a client can rely on.
    std::multimap<std::pair<uint32_t, uint32_t>, std::string> lines;
    uint32_t base = UINT32_MAX;
    for (const auto& [correlation, call] : calls) base = std::min(base, correlation);
    for (const Record& r : collector_.records()) {
      std::ostringstream line;
      uint32_t correlation = 0;
      switch (r.kind()) {
        case CUPTI_ACTIVITY_KIND_RUNTIME: {
          const auto& call = r.as<CUpti_ActivityAPI>();
          correlation = call.correlationId;
          line << "call " << call.cbid << ' ' << call.returnValue;
          break;
        }
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
          const auto& k = r.as<CUpti_ActivityKernel10>();
          correlation = k.correlationId;
          line << "kernel " << k.name << ' ' << k.gridX << ' ' << k.blockX << ' ' << k.streamId << ' '
               << k.registersPerThread << ' ' << k.staticSharedMemory << ' ' << k.contextId;
          break;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
          const auto& c = r.as<CUpti_ActivityMemcpy6>();
          correlation = c.correlationId;
          line << "copy " << int{c.copyKind} << ' ' << int{c.srcKind} << ' ' << int{c.dstKind} << ' ' << c.bytes << ' '
               << int{c.flags};
          break;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
          const auto& m = r.as<CUpti_ActivityMemset4>();
          correlation = m.correlationId;
          line << "set " << m.value << ' ' << m.bytes;
          break;
        }
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
          const auto& sync = r.as<CUpti_ActivitySynchronization2>();
          correlation = sync.correlationId;
          line << "sync " << sync.type << ' ' << sync.streamId;
          break;
        }
        case CUPTI_ACTIVITY_KIND_MEMORY2: {
          const auto& m = r.as<CUpti_ActivityMemory4>();
          correlation = m.correlationId;
          line << "memory " << m.memoryOperationType << ' ' << m.bytes;
          break;
        }
        default: line << "kind " << r.kind(); break;
      }
      lines.emplace(std::pair(correlation - base, r.kind()), line.str());
    }
    std::ostringstream text;
    for (const auto& [key, line] : lines) text << key.first << ' ' << line << '\n';
    if (run == 0) {
      first = text.str();
      EXPECT_NE(std::string::npos, first.find("kernel _Z4fillPjj 4 128")) << first;
    }
    EXPECT_EQ(first, text.str()) << "run " << run;
  }
}

}  // namespace
}  // namespace sonde::test
