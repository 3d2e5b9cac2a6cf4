// SPDX-License-Identifier: Apache-2.0
//
// Programs and CUPTI clients in one whose output two libraries have to agree on;
// see tools/on-gpu.
//
//   features nodes     kernels, copies and sets of graphs, updated and enabled in all ways; times on stderr
//   features uncopied  a graph that the driver does not copy (it allocates memory)
//   features conditional  graphs whose nodes run when the device says so; times on stderr
//   features unified   counters of unified memory
//   features attach    the first CUPTI call comes when work is in flight
//   features devices   two devices at once
//   features green     streams of a green context
//   features environment  what NVML tells of the device
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "check.h"

namespace {

__device__ uint64_t globaltimer() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

__global__ void spin(uint64_t* out, uint64_t ns) {
  const uint64_t start = globaltimer();
  uint64_t t = start;
  while (t < start + ns) t = globaltimer();
  out[0] = start;
  out[1] = t;
}

__global__ void touch(char* p, size_t n, size_t step, bool write) {
  int sum = 0;
  for (size_t i = (blockIdx.x * blockDim.x + threadIdx.x) * step; i < n; i += step * gridDim.x * blockDim.x) {
    if (write) {
      p[i] = 1;
    } else {
      sum += p[i];
    }
  }
  if (sum == -1) p[0] = 0;
}

std::mutex mutex;
std::vector<CUpti_ActivityKernel10> kernels;
std::vector<CUpti_ActivityMemcpy6> copies;
std::vector<CUpti_ActivityMemset4> sets;
std::vector<CUpti_ActivityUnifiedMemoryCounter3> counters;
std::vector<CUpti_ActivityEnvironment> environments;

void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 4 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* r = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  while (cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS) {
    switch (r->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel10*>(r));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY: copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpy6*>(r)); break;
      case CUPTI_ACTIVITY_KIND_MEMSET: sets.push_back(*reinterpret_cast<CUpti_ActivityMemset4*>(r)); break;
      case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
        counters.push_back(*reinterpret_cast<CUpti_ActivityUnifiedMemoryCounter3*>(r));
        break;
      case CUPTI_ACTIVITY_KIND_ENVIRONMENT:
        environments.push_back(*reinterpret_cast<CUpti_ActivityEnvironment*>(r));
        break;
      default: break;
    }
  }
  std::free(buffer);
}

void start() {
  CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
  CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
}

// ------------------------------------------------------------------- nodes --

double percentile(std::vector<double> v, double p) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[std::min(v.size() - 1, static_cast<size_t>(p * v.size()))];
}

void print() {
  auto order = [](const auto& a, const auto& b) {
    return a.correlationId != b.correlationId ? a.correlationId < b.correlationId : a.graphNodeId < b.graphNodeId;
  };
  std::stable_sort(kernels.begin(), kernels.end(), order);
  std::stable_sort(copies.begin(), copies.end(), order);
  std::stable_sort(sets.begin(), sets.end(), order);
  std::map<uint32_t, size_t> launches;
  auto launch = [&](uint32_t correlation) { return launches.emplace(correlation, launches.size()).first->second; };
  for (const auto& k : kernels)
    std::printf("KERNEL launch %zu node %u grid %d block %d %s\n", launch(k.correlationId),
                static_cast<unsigned>(k.graphNodeId), k.gridX, k.blockX, k.start < k.end ? "ok" : "BAD");
  for (const auto& c : copies)
    // Its bytes are not compared: the vendor's library tells those of before a change of the node.
    std::printf("MEMCPY launch %zu node %u kind %d src %d dst %d\n", launch(c.correlationId),
                static_cast<unsigned>(c.graphNodeId), c.copyKind, c.srcKind, c.dstKind);
  for (const auto& s : sets)
    // Nor is the value: there the vendor's library says 0.
    std::printf("MEMSET launch %zu node %u bytes %llu\n", launch(s.correlationId), static_cast<unsigned>(s.graphNodeId),
                static_cast<unsigned long long>(s.bytes));
}

int nodes() {
  start();
  uint64_t* out;
  RT(cudaMalloc(&out, 1 << 20));
  cudaStream_t stream, side;
  RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  RT(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  // Made by hand, and changed through the nodes of the graph.
  cudaGraph_t graph;
  RT(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t set, a, b, copy;
  cudaMemsetParams setParams = {};
  setParams.dst = out + 1000, setParams.value = 5, setParams.elementSize = 4, setParams.width = 256,
  setParams.height = 1;
  RT(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &setParams));
  uint64_t ns = 2000;
  void* params[] = {&out, &ns};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(spin);
  kernel.gridDim = dim3(2), kernel.blockDim = dim3(32), kernel.kernelParams = params;
  RT(cudaGraphAddKernelNode(&a, graph, &set, 1, &kernel));
  kernel.gridDim = dim3(3);
  RT(cudaGraphAddKernelNode(&b, graph, &a, 1, &kernel));
  RT(cudaGraphAddMemcpyNode1D(&copy, graph, &b, 1, out + 2000, out, 4096, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec;
  RT(cudaGraphInstantiate(&exec, graph, 0));
  RT(cudaGraphLaunch(exec, stream));
  kernel.gridDim = dim3(7);
  RT(cudaGraphExecKernelNodeSetParams(exec, b, &kernel));
  RT(cudaGraphNodeSetEnabled(exec, a, 0));
  RT(cudaGraphLaunch(exec, stream));
  RT(cudaGraphNodeSetEnabled(exec, a, 1));
  RT(cudaGraphExecMemcpyNodeSetParams1D(exec, copy, out + 2000, out, 512, cudaMemcpyDeviceToDevice));
  RT(cudaGraphLaunch(exec, stream));
  RT(cudaStreamSynchronize(stream));
  // Captured, with a branch; updated with another capture.
  auto capture = [&](unsigned grid) {
    cudaGraph_t made;
    cudaEvent_t fork, join;
    RT(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    RT(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    RT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    spin<<<grid, 32, 0, stream>>>(out, 1000);
    RT(cudaEventRecord(fork, stream));
    RT(cudaStreamWaitEvent(side, fork, 0));
    spin<<<grid + 1, 32, 0, side>>>(out + 8, 3000);
    spin<<<grid + 2, 32, 0, stream>>>(out + 16, 3000);
    RT(cudaEventRecord(join, side));
    RT(cudaStreamWaitEvent(stream, join, 0));
    spin<<<grid + 3, 32, 0, stream>>>(out + 24, 1000);
    RT(cudaStreamEndCapture(stream, &made));
    return made;
  };
  cudaGraphExec_t captured;
  RT(cudaGraphInstantiate(&captured, capture(10), 0));
  for (int i = 0; i < 3; ++i) RT(cudaGraphLaunch(captured, stream));
  cudaGraphExecUpdateResultInfo info;
  RT(cudaGraphExecUpdate(captured, capture(20), &info));
  RT(cudaGraphLaunch(captured, stream));
  // Child graphs, changed through a node of theirs and as a whole.
  cudaGraph_t innermost, inner, outer, replacement;
  for (cudaGraph_t* g : {&innermost, &inner, &outer}) RT(cudaGraphCreate(g, 0));
  auto addSpin = [&](cudaGraph_t to, const cudaGraphNode_t* after, unsigned grid) {
    cudaGraphNode_t node;
    kernel.gridDim = dim3(grid);
    RT(cudaGraphAddKernelNode(&node, to, after, after != nullptr ? 1 : 0, &kernel));
    return node;
  };
  addSpin(innermost, nullptr, 33);
  cudaGraphNode_t deep, child;
  const cudaGraphNode_t second = addSpin(inner, nullptr, 32), first = addSpin(outer, nullptr, 31);
  RT(cudaGraphAddChildGraphNode(&deep, inner, &second, 1, innermost));
  addSpin(inner, &deep, 34);
  RT(cudaGraphAddChildGraphNode(&child, outer, &first, 1, inner));
  addSpin(outer, &child, 35);
  cudaGraphExec_t nested;
  RT(cudaGraphInstantiate(&nested, outer, 0));
  for (int i = 0; i < 2; ++i) RT(cudaGraphLaunch(nested, stream));
  cudaGraph_t part;
  RT(cudaGraphChildGraphNodeGetGraph(child, &part));
  cudaGraphNode_t partNodes[3];
  size_t partCount = 3;
  RT(cudaGraphGetNodes(part, partNodes, &partCount));
  kernel.gridDim = dim3(42);
  RT(cudaGraphExecKernelNodeSetParams(nested, partNodes[0], &kernel));
  RT(cudaGraphLaunch(nested, stream));
  RT(cudaGraphClone(&replacement, inner));
  RT(cudaGraphGetNodes(replacement, partNodes, &partCount));
  kernel.gridDim = dim3(54);
  RT(cudaGraphKernelNodeSetParams(partNodes[2], &kernel));
  RT(cudaGraphExecChildGraphNodeSetParams(nested, child, replacement));
  RT(cudaGraphLaunch(nested, stream));
  RT(cudaStreamSynchronize(stream));
  CUPTI(cuptiActivityFlushAll(0));
  print();
  // Times: a line of kernels that know their own.
  kernels.clear();
  constexpr int kLine = 60, kRounds = 5;
  RT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kLine; ++i) spin<<<1, 1, 0, stream>>>(out + 2 * i, i % 3 == 0 ? 1000 : i % 3 == 1 ? 5000 : 30000);
  RT(cudaStreamEndCapture(stream, &graph));
  RT(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<uint64_t> truth(kRounds * 2 * kLine);
  for (int r = 0; r < kRounds; ++r) {
    RT(cudaGraphLaunch(exec, stream));
    RT(cudaStreamSynchronize(stream));
    RT(cudaMemcpy(&truth[static_cast<size_t>(r) * 2 * kLine], out, 16 * kLine, cudaMemcpyDeviceToHost));
  }
  CUPTI(cuptiActivityFlushAll(0));
  std::sort(kernels.begin(), kernels.end(), [](auto& x, auto& y) { return x.start < y.start; });
  std::fprintf(stderr, "line of %d nodes, %d launches: %zu kernels\n", kLine, kRounds, kernels.size());
  if (kernels.size() != kLine * kRounds) return 1;
  // The clocks' distance is not known here: spans within a launch are compared.
  std::vector<double> starts, durations;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const size_t first = i / kLine * kLine;
    starts.push_back(static_cast<double>(kernels[i].start - kernels[first].start) -
                     static_cast<double>(truth[2 * i] - truth[2 * first]));
    durations.push_back(static_cast<double>(kernels[i].end - kernels[i].start) -
                        static_cast<double>(truth[2 * i + 1] - truth[2 * i]));
  }
  std::fprintf(stderr, "start since the first, minus the kernels' own: 1%% %.0f 50%% %.0f 99%% %.0f ns\n",
               percentile(starts, 0.01), percentile(starts, 0.5), percentile(starts, 0.99));
  std::fprintf(stderr, "duration minus the kernels' own: 1%% %.0f 50%% %.0f 99%% %.0f ns\n",
               percentile(durations, 0.01), percentile(durations, 0.5), percentile(durations, 0.99));
  return 0;
}

// Graphs that the driver does not copy: that their nodes ran.
int uncopied() {
  start();
  cudaStream_t stream;
  RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  uint64_t* memory;
  RT(cudaMalloc(&memory, 4096));
  RT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  uint64_t* allocated;
  RT(cudaMallocAsync(&allocated, 4096, stream));
  spin<<<61, 32, 0, stream>>>(allocated, 1000);
  RT(cudaMemsetAsync(allocated, 1, 512, stream));
  RT(cudaMemcpyAsync(memory, allocated, 512, cudaMemcpyDeviceToDevice, stream));
  RT(cudaFreeAsync(allocated, stream));
  spin<<<62, 32, 0, stream>>>(memory, 1000);
  RT(cudaStreamEndCapture(stream, &graph));
  RT(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 2; ++i) RT(cudaGraphLaunch(exec, stream));
  RT(cudaStreamSynchronize(stream));
  CUPTI(cuptiActivityFlushAll(0));
  for (const auto& k : kernels) std::printf("KERNEL grid %d block %d\n", k.gridX, k.blockX);
  for (const auto& c : copies)
    std::printf("MEMCPY kind %d bytes %llu\n", c.copyKind, static_cast<unsigned long long>(c.bytes));
  for (const auto& s : sets) std::printf("MEMSET bytes %llu\n", static_cast<unsigned long long>(s.bytes));
  return 0;
}

// Counts down; the condition holds until it is 0.
__global__ void countDown(cudaGraphConditionalHandle handle, unsigned* left) {
  if (*left > 0) --*left;
  cudaGraphSetConditional(handle, *left);
}

// Bodies that run once, not at all, several times, and within each other.
int conditional() {
  start();
  cudaStream_t stream;
  RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  uint64_t* out;
  unsigned* left;
  RT(cudaMalloc(&out, 4096));
  RT(cudaMalloc(&left, 4));
  uint64_t ns = 2000;
  void* params[] = {&out, &ns};
  auto addSpin = [&](cudaGraph_t to, const cudaGraphNode_t* after, unsigned grid) {
    cudaGraphNode_t node;
    cudaKernelNodeParams kernel = {};
    kernel.func = reinterpret_cast<void*>(spin);
    kernel.gridDim = dim3(grid), kernel.blockDim = dim3(1), kernel.kernelParams = params;
    RT(cudaGraphAddKernelNode(&node, to, after, after != nullptr ? 1 : 0, &kernel));
    return node;
  };
  auto addCondition = [&](cudaGraph_t to, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
                          cudaGraphConditionalNodeType type, unsigned bodies, cudaGraphNode_t* node) {
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = handle, p.conditional.type = type, p.conditional.size = bodies;
    RT(cudaGraphAddNode(node, to, &after, nullptr, 1, &p));
    return p.conditional.phGraph_out;
  };
  auto addCount = [&](cudaGraph_t to, cudaGraphNode_t after, cudaGraphConditionalHandle handle) {
    cudaGraphNode_t node;
    void* arguments[] = {&handle, &left};
    cudaKernelNodeParams kernel = {};
    kernel.func = reinterpret_cast<void*>(countDown);
    kernel.gridDim = dim3(1), kernel.blockDim = dim3(1), kernel.kernelParams = arguments;
    RT(cudaGraphAddKernelNode(&node, to, &after, 1, &kernel));
    return node;
  };
  auto run = [&](const char* what, cudaGraph_t graph, unsigned count, int launches) {
    kernels.clear(), copies.clear(), sets.clear();
    cudaGraphExec_t exec;
    RT(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < launches; ++i) {
      RT(cudaMemcpyAsync(left, &count, 4, cudaMemcpyHostToDevice, stream));
      RT(cudaGraphLaunch(exec, stream));
      RT(cudaStreamSynchronize(stream));
    }
    CUPTI(cuptiActivityFlushAll(0));
    std::printf("%s\n", what);
    // In bodies the vendor's library tells sets and copies as the kernels that the driver makes of them, and gives all
    // of them correlation id 0: kernels of the program are compared.
    std::map<std::pair<unsigned, int>, unsigned> ran;
    for (const auto& k : kernels)
      if (std::strstr(k.name, "spin") != nullptr || std::strstr(k.name, "countDown") != nullptr)
        ++ran[{static_cast<unsigned>(k.graphNodeId), k.gridX}];
    size_t bad = 0;
    for (const auto& k : kernels) bad += k.start >= k.end;
    for (const auto& [node, n] : ran) std::printf("KERNEL node %u grid %d x %u\n", node.first, node.second, n);
    std::printf("%zu without times\n", bad);
    for (const auto& k : kernels)
      std::fprintf(stderr, "%s: grid %d node %llx start %lld duration %lld\n", what, k.gridX,
                   static_cast<unsigned long long>(k.graphNodeId), static_cast<long long>(k.start - kernels[0].start),
                   static_cast<long long>(k.end - k.start));
  };
  for (const auto& [what, type, first] :
       {std::tuple{"if taken", cudaGraphCondTypeIf, 1u}, std::tuple{"if not taken", cudaGraphCondTypeIf, 0u},
        std::tuple{"while", cudaGraphCondTypeWhile, 1u}, std::tuple{"switch", cudaGraphCondTypeSwitch, 1u}}) {
    cudaGraph_t graph;
    RT(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle;
    RT(cudaGraphConditionalHandleCreate(&handle, graph, first, cudaGraphCondAssignDefault));
    cudaGraphNode_t node, inner;
    const cudaGraphNode_t before = addSpin(graph, nullptr, 70);
    const unsigned bodies = type == cudaGraphCondTypeSwitch ? 3 : 1;
    cudaGraph_t* body = addCondition(graph, before, handle, type, bodies, &node);
    addSpin(graph, &node, 79);
    for (unsigned b = 0; b < bodies; ++b) {
      inner = addSpin(body[b], nullptr, 71 + b);
      cudaGraphNode_t set, copy;
      cudaMemsetParams p = {};
      p.dst = out + 100, p.elementSize = 4, p.width = 16, p.height = 1;
      RT(cudaGraphAddMemsetNode(&set, body[b], &inner, 1, &p));
      RT(cudaGraphAddMemcpyNode1D(&copy, body[b], &set, 1, out + 200, out, 128, cudaMemcpyDeviceToDevice));
      if (type == cudaGraphCondTypeWhile) addCount(body[b], copy, handle);
    }
    run(what, graph, 3, 2);
  }
  // A condition within a condition's body.
  cudaGraph_t graph;
  RT(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle outer, handle;
  RT(cudaGraphConditionalHandleCreate(&outer, graph, 1, cudaGraphCondAssignDefault));
  RT(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNode_t node;
  cudaGraph_t* body = addCondition(graph, addSpin(graph, nullptr, 80), outer, cudaGraphCondTypeIf, 1, &node);
  cudaGraph_t* loop = addCondition(body[0], addSpin(body[0], nullptr, 81), handle, cudaGraphCondTypeWhile, 1, &node);
  addCount(loop[0], addSpin(loop[0], nullptr, 82), handle);
  run("nested", graph, 2, 2);
  return 0;
}

// ----------------------------------------------------------------- unified --

int unified() {
  CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  std::vector<CUpti_ActivityUnifiedMemoryCounterConfig> config;
  for (int kind = 1; kind <= 8; ++kind) {
    CUpti_ActivityUnifiedMemoryCounterConfig c{};
    c.scope = CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_SCOPE_PROCESS_SINGLE_DEVICE;
    c.kind = static_cast<CUpti_ActivityUnifiedMemoryCounterKind>(kind);
    c.enable = 1;
    config.push_back(c);
  }
  CUPTI(cuptiActivityConfigureUnifiedMemoryCounter(config.data(), static_cast<uint32_t>(config.size())));
  CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
  constexpr size_t kSmall = 1 << 20, kLarge = 4 << 20;
  char *p, *q, *w;
  RT(cudaMallocManaged(&p, kSmall));
  RT(cudaMallocManaged(&q, kLarge));
  RT(cudaMallocManaged(&w, 2 << 20));
  // Where a migration is split, and how faults fall into batches, differs from
  // run to run; what was moved altogether and which pages faulted does not.
  struct Sum {
    unsigned long long bytes = 0;
    unsigned records = 0, badTimes = 0;
    std::map<std::string, unsigned> faults;
  };
  char* section = nullptr;
  auto collect = [&](const char* what) {
    RT(cudaDeviceSynchronize());
    CUPTI(cuptiActivityFlushAll(1));
    std::map<int, Sum> sums;
    for (const auto& c : counters) {
      Sum& sum = sums[c.counterKind];
      sum.bytes += c.value;
      ++sum.records;
      sum.badTimes += c.end != 0 && c.end < c.start;
      char text[64];
      std::snprintf(text, sizeof text, "%#llx access %u",
                    static_cast<unsigned long long>(c.address - reinterpret_cast<uintptr_t>(section)), c.flags);
      if (c.counterKind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT) ++sum.faults[text];
    }
    for (const auto& [kind, sum] : sums) {
      std::printf("%s: kind %d:", what, kind);
      if (kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_CPU_PAGE_FAULT_COUNT) {
        for (const auto& [text, n] : sum.faults) std::printf(" %s x %u;", text.c_str(), n);
      } else if (kind == CUPTI_ACTIVITY_UNIFIED_MEMORY_COUNTER_KIND_GPU_PAGE_FAULT) {
        std::printf(" seen");
        std::fprintf(stderr, "%s: %u batches of device faults\n", what, sum.records);
      } else {
        std::printf(" %llu bytes", sum.bytes);
        std::fprintf(stderr, "%s: kind %d: %u records\n", what, kind, sum.records);
      }
      std::printf("%s\n", sum.badTimes != 0 ? " BAD TIMES" : "");
    }
    counters.clear();
  };
  section = p;
  for (size_t i = 0; i < kSmall; ++i) static_cast<volatile char*>(p)[i] = 1;
  RT(cudaMemset(p, 1, kSmall));
  RT(cudaDeviceSynchronize());
  int sum = 0;
  for (size_t i = 0; i < kSmall; i += 4096) sum += static_cast<volatile char*>(p)[i];
  collect("memset");
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
  section = q;
  std::memset(q, 1, kLarge);
  RT(cudaMemPrefetchAsync(q, kLarge, device, 0, nullptr));
  RT(cudaDeviceSynchronize());
  RT(cudaMemPrefetchAsync(q, kLarge, host, 0, nullptr));
  collect("prefetch");
  touch<<<1, 32>>>(q, kLarge, 65536, true);
  collect("kernel writes");
  for (size_t i = 0; i < kLarge; i += 4096) static_cast<volatile char*>(q)[i] = 2;
  collect("host writes");
  section = w;
  RT(cudaMemAdvise(w, 2 << 20, cudaMemAdviseSetPreferredLocation, host));
  for (size_t i = 0; i < 2 << 20; i += 4096) static_cast<volatile char*>(w)[i] = 2;
  touch<<<1, 32>>>(w, 2 << 20, 65536, false);
  collect("stays on the host");
  CUPTI(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER));
  collect("after that");
  CUPTI(cuptiFinalize());
  return sum == 0;
}

// ------------------------------------------------------------------ attach --

int attach() {
  uint64_t* out;
  RT(cudaMalloc(&out, 1 << 20));
  cudaStream_t streams[4];
  for (auto& s : streams) RT(cudaStreamCreate(&s));
  std::atomic<bool> stop{false};
  std::atomic<unsigned> launched{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      while (!stop.load()) {
        spin<<<1, 1, 0, streams[t]>>>(out + 16 * t, 3000);
        if (++launched % 64 == 0) RT(cudaStreamSynchronize(streams[t]));
      }
    });
  while (launched.load() < 5000) std::this_thread::yield();
  spin<<<1, 1, 0, streams[0]>>>(out, 2000000);  // in flight when the library comes
  start();
  const unsigned from = launched.load();
  while (launched.load() < from + 5000) std::this_thread::yield();
  stop.store(true);
  for (auto& t : threads) t.join();
  // What is launched from here on is counted exactly.
  RT(cudaDeviceSynchronize());
  CUPTI(cuptiActivityFlushAll(0));
  const size_t before = kernels.size();
  for (int i = 0; i < 1000; ++i) spin<<<5, 1, 0, streams[i % 4]>>>(out + 16 * (i % 4), 1000);
  RT(cudaDeviceSynchronize());
  CUPTI(cuptiActivityFlushAll(0));
  size_t exact = 0, bad = 0;
  std::map<uint32_t, uint64_t> last;
  std::stable_sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.start < b.start; });
  for (const auto& k : kernels) {
    exact += k.gridX == 5;
    bad += k.start >= k.end || k.start < last[k.streamId];
    last[k.streamId] = k.end;
  }
  std::printf("while it attached: %s; after that %zu of 1000; out of order %zu; streams %zu\n",
              before >= 5000 ? "all" : "MISSING", exact, bad, last.size());
  CUPTI(cuptiFinalize());
  for (int i = 0; i < 100; ++i) spin<<<1, 1, 0, streams[i % 4]>>>(out, 1000);
  RT(cudaDeviceSynchronize());
  std::printf("goes on after cuptiFinalize\n");
  return 0;
}

// ----------------------------------------------------------------- devices --

int devices() {
  int count = 0;
  RT(cudaGetDeviceCount(&count));
  if (count < 2) {
    std::printf("one device only\n");
    return 0;
  }
  start();
  uint64_t* out[2];
  cudaStream_t streams[2];
  for (int d = 0; d < 2; ++d) {
    RT(cudaSetDevice(d));
    RT(cudaMalloc(&out[d], 1 << 20));
    RT(cudaStreamCreate(&streams[d]));
  }
  std::vector<std::thread> threads;
  for (int d = 0; d < 2; ++d)
    threads.emplace_back([&, d] {
      RT(cudaSetDevice(d));
      for (int i = 0; i < 200; ++i) spin<<<d + 1, 1, 0, streams[d]>>>(out[d], 5000);
      RT(cudaStreamSynchronize(streams[d]));
    });
  for (auto& t : threads) t.join();
  RT(cudaMemcpyPeerAsync(out[1], 1, out[0], 0, 65536, streams[1]));
  RT(cudaMemcpyAsync(out[0], out[1], 4096, cudaMemcpyDefault, streams[1]));
  for (int d = 0; d < 2; ++d) {
    RT(cudaSetDevice(d));
    RT(cudaDeviceSynchronize());
  }
  CUPTI(cuptiActivityFlushAll(0));
  std::map<uint32_t, unsigned> byDevice;
  std::map<uint32_t, uint64_t> last;
  size_t bad = 0, wrong = 0;
  std::stable_sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.start < b.start; });
  for (const auto& k : kernels) {
    ++byDevice[k.deviceId];
    wrong += static_cast<uint32_t>(k.gridX) != k.deviceId + 1 || k.contextId != k.deviceId + 1;
    bad += k.start >= k.end || k.start < last[k.streamId];
    last[k.streamId] = k.end;
  }
  std::printf("kernels on 0: %u, on 1: %u; wrong device or context %zu; out of order %zu\n", byDevice[0], byDevice[1],
              wrong, bad);
  return 0;
}

// ------------------------------------------------------------------- green --

#define CU(call)                                                     \
  do {                                                               \
    const CUresult result_ = (call);                                 \
    if (result_ != CUDA_SUCCESS) {                                   \
      std::fprintf(stderr, "%s failed (%d)\n", #call, (int)result_); \
      std::exit(1);                                                  \
    }                                                                \
  } while (0)

int green() {
  start();
  uint64_t* out;
  RT(cudaMalloc(&out, 4096));
  CUdevResource all{}, part{}, rest{};
  CU(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned groups = 1;
  CU(cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 16));
  CUdevResourceDesc description;
  CU(cuDevResourceGenerateDesc(&description, &part, 1));
  CUgreenCtx context;
  CU(cuGreenCtxCreate(&context, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CUstream stream;
  CU(cuGreenCtxStreamCreate(&stream, context, CU_STREAM_NON_BLOCKING, 0));
  for (int i = 0; i < 5; ++i) spin<<<1 + i, 32, 0, stream>>>(out, 2000);
  RT(cudaMemsetAsync(out, 0, 1024, stream));
  RT(cudaStreamSynchronize(stream));
  CUPTI(cuptiActivityFlushAll(0));
  std::stable_sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.start < b.start; });
  for (const auto& k : kernels) std::printf("KERNEL grid %d %s\n", k.gridX, k.start < k.end ? "ok" : "BAD");
  for (const auto& m : sets)
    std::printf("MEMSET bytes %llu %s\n", static_cast<unsigned long long>(m.bytes), m.start < m.end ? "ok" : "BAD");
  CU(cuStreamDestroy(stream));
  CU(cuGreenCtxDestroy(context));
  return 0;
}

// ------------------------------------------------------------- environment --

// Which kinds come, and whether their values can be: they are others each time.
int environment() {
  CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  RT(cudaFree(nullptr));
  CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_ENVIRONMENT));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  RT(cudaDeviceSynchronize());
  CUPTI(cuptiActivityFlushAll(0));
  std::map<int, bool> kinds;
  for (const auto& e : environments) {
    bool good = true;
    switch (e.environmentKind) {
      case CUPTI_ACTIVITY_ENVIRONMENT_SPEED: good = e.data.speed.smClock > 100 && e.data.speed.memoryClock > 100; break;
      case CUPTI_ACTIVITY_ENVIRONMENT_TEMPERATURE: good = e.data.temperature.gpuTemperature < 120; break;
      case CUPTI_ACTIVITY_ENVIRONMENT_POWER:
        good = e.data.power.power > 1000 && e.data.power.power < 1500000 && e.data.power.powerLimit > 50000;
        break;
      default: break;
    }
    const auto at = kinds.emplace(e.environmentKind, true).first;
    at->second = at->second && good;
  }
  for (const auto& [kind, good] : kinds) std::printf("ENVIRONMENT kind %d %s\n", kind, good ? "ok" : "BAD");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "nodes") return nodes();
  if (what == "uncopied") return uncopied();
  if (what == "conditional") return conditional();
  if (what == "green") return green();
  if (what == "environment") return environment();
  if (what == "unified") return unified();
  if (what == "attach") return attach();
  if (what == "devices") return devices();
  std::fprintf(stderr, "usage: features nodes|uncopied|conditional|unified|attach|devices|green|environment\n");
  return 2;
}
