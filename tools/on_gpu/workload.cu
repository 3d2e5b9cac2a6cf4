// SPDX-License-Identifier: Apache-2.0
//
// A program whose kernels know their own times, and a CUPTI client in one. It
// uses whichever libcupti.so.13 the loader finds, so that two libraries can be
// compared on one card: see tools/on-gpu.
//
//   workload list        what was recorded, in a form that two libraries agree on
//   workload accuracy    kernel times against %globaltimer
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

namespace {

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

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

__global__ void empty() {}

__global__ void answer(volatile uint32_t* word, volatile uint64_t* out, uint32_t count) {
  for (uint32_t i = 1; i <= count; ++i) {
    while (*word < i) {
    }
    out[i - 1] = globaltimer();
    __threadfence_system();
  }
}

// ------------------------------------------------------------------ records --

std::mutex mutex;
std::vector<CUpti_ActivityKernel10> kernels;
std::vector<CUpti_ActivityMemcpy6> copies;
std::vector<CUpti_ActivityMemset4> sets;
std::vector<CUpti_ActivityAPI> calls;
std::vector<CUpti_ActivityGraphTrace2> graphs;
size_t counted = 0;

void requested(uint8_t** buffer, size_t* size, size_t* maximum) {
  *size = 4 << 20;
  *maximum = 0;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
}

void completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* r = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  while (cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS) {
    ++counted;
    switch (r->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel10*>(r));
        break;
      case CUPTI_ACTIVITY_KIND_MEMCPY: copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpy6*>(r)); break;
      case CUPTI_ACTIVITY_KIND_MEMSET: sets.push_back(*reinterpret_cast<CUpti_ActivityMemset4*>(r)); break;
      case CUPTI_ACTIVITY_KIND_DRIVER:
      case CUPTI_ACTIVITY_KIND_RUNTIME: calls.push_back(*reinterpret_cast<CUpti_ActivityAPI*>(r)); break;
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: graphs.push_back(*reinterpret_cast<CUpti_ActivityGraphTrace2*>(r)); break;
      default: break;
    }
  }
  std::free(buffer);
}

void enable(std::initializer_list<CUpti_ActivityKind> kinds, bool on = true) {
  for (CUpti_ActivityKind kind : kinds) CUPTI(on ? cuptiActivityEnable(kind) : cuptiActivityDisable(kind));
}

// --------------------------------------------------------------------- list --

std::string apiOf(uint32_t correlation) {
  // The outermost call: a runtime function where there is one.
  std::string driver;
  for (const auto& call : calls) {
    if (call.correlationId != correlation) continue;
    const char* name = "?";
    const bool runtime = call.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, call.cbid, &name);
    if (runtime) return name;
    driver = name;
  }
  return driver.empty() ? "none" : driver;
}

int list() {
  CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
          CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_GRAPH_TRACE});
  uint64_t* out;
  RT(cudaMalloc(&out, 1 << 20));
  void* pinned;
  RT(cudaMallocHost(&pinned, 1 << 20));
  std::vector<char> pageable(1 << 20, 1);
  uint64_t* managed;
  RT(cudaMallocManaged(&managed, 65536));
  cudaStream_t streams[3];
  RT(cudaStreamCreate(&streams[0]));
  RT(cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
  RT(cudaStreamCreateWithPriority(&streams[2], cudaStreamNonBlocking, -1));
  RT(cudaMemcpy(out, pageable.data(), 1 << 20, cudaMemcpyHostToDevice));
  RT(cudaMemcpy(out, pinned, 1000, cudaMemcpyHostToDevice));
  RT(cudaMemcpy(pageable.data(), out, 70000, cudaMemcpyDeviceToHost));
  RT(cudaMemset(out, 3, 4096));
  RT(cudaMemsetAsync(out, 4, 1 << 16, streams[1]));
  for (int i = 0; i < 6; ++i) spin<<<1 + i, 32 << (i % 3), 64 * i, streams[i % 3]>>>(out + 2 * i, 1000);
  spin<<<1, 1>>>(out, 500);
  empty<<<dim3(2, 3, 4), dim3(8, 4, 2)>>>();
  RT(cudaMemcpyAsync(pinned, out, 5000, cudaMemcpyDeviceToHost, streams[0]));
  RT(cudaMemcpyAsync(out + 1000, out, 3000, cudaMemcpyDeviceToDevice, streams[1]));
  RT(cudaMemcpy2DAsync(out, 512, pinned, 256, 200, 10, cudaMemcpyHostToDevice, streams[2]));
  RT(cudaDeviceSynchronize());
  RT(cudaMemcpy(managed, pinned, 2000, cudaMemcpyHostToDevice));
  void* arguments[] = {&out, nullptr};
  uint64_t ns = 700;
  arguments[1] = &ns;
  RT(cudaLaunchCooperativeKernel(spin, dim3(2), dim3(64), arguments, 0, streams[1]));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  RT(cudaStreamBeginCapture(streams[1], cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 4; ++i) spin<<<1, 1, 0, streams[1]>>>(out, 1000);
  RT(cudaStreamEndCapture(streams[1], &graph));
  RT(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) RT(cudaGraphLaunch(exec, streams[1]));
  RT(cudaDeviceSynchronize());
  CUPTI(cuptiActivityFlushAll(0));
  std::map<uint32_t, unsigned> numbers;
  auto streamNumber = [&](uint32_t id) { return numbers.emplace(id, numbers.size()).first->second; };
  struct Line {
    uint32_t correlation;
    std::string text;
  };
  std::vector<Line> lines;
  char text[512];
  std::sort(kernels.begin(), kernels.end(), [](auto& a, auto& b) { return a.correlationId < b.correlationId; });
  for (const auto& k : kernels) {
    std::snprintf(
        text, sizeof text,
        "KERNEL %s grid %d,%d,%d block %d,%d,%d regs %u smem %d+%d local %u launch %d stream #%u by %s times %s",
        k.name, k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, k.registersPerThread, k.staticSharedMemory,
        k.dynamicSharedMemory, k.localMemoryPerThread, k.launchType, streamNumber(k.streamId),
        apiOf(k.correlationId).c_str(), k.start < k.end ? "ok" : "BAD");
    lines.push_back({k.correlationId, text});
  }
  for (const auto& c : copies) {
    std::snprintf(text, sizeof text, "MEMCPY kind %d src %d dst %d bytes %llu flags %d by %s times %s", c.copyKind,
                  c.srcKind, c.dstKind, static_cast<unsigned long long>(c.bytes), c.flags,
                  apiOf(c.correlationId).c_str(), c.start < c.end ? "ok" : "BAD");
    lines.push_back({c.correlationId, text});
  }
  for (const auto& s : sets) {
    std::snprintf(text, sizeof text, "MEMSET value %u bytes %llu memory %d flags %d by %s times %s", s.value,
                  static_cast<unsigned long long>(s.bytes), s.memoryKind, s.flags, apiOf(s.correlationId).c_str(),
                  s.start < s.end ? "ok" : "BAD");
    lines.push_back({s.correlationId, text});
  }
  for (const auto& g : graphs) {
    std::snprintf(text, sizeof text, "GRAPH by %s times %s", apiOf(g.correlationId).c_str(),
                  g.start < g.end ? "ok" : "BAD");
    lines.push_back({g.correlationId, text});
  }
  std::stable_sort(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.correlation < b.correlation; });
  for (const auto& line : lines) std::printf("%s\n", line.text.c_str());
  // API calls: how many of each.
  std::map<std::string, unsigned> count;
  for (const auto& call : calls) {
    const char* name = "?";
    const bool runtime = call.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
    cuptiGetCallbackName(runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, call.cbid, &name);
    ++count[name];
  }
  for (const auto& [name, n] : count) std::printf("API %s %u\n", name.c_str(), n);
  return 0;
}

// ----------------------------------------------------------------- accuracy --

struct Sample {
  double host, offset;  // offset: device minus host
};
uint64_t origin;

Sample clockSample() {
  constexpr uint32_t kCount = 64;
  static uint32_t* word = nullptr;
  static uint64_t* out = nullptr;
  if (word == nullptr) {
    RT(cudaHostAlloc(&word, 4096, cudaHostAllocMapped));
    out = reinterpret_cast<uint64_t*>(word) + 32;
  }
  *word = 0;
  std::memset(out, 0, kCount * 8);
  answer<<<1, 1>>>(word, out, kCount);
  uint64_t best = ~0ull;
  Sample s{};
  for (uint32_t i = 1; i <= kCount; ++i) {
    const uint64_t a = now();
    __atomic_store_n(word, i, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&out[i - 1], __ATOMIC_SEQ_CST) == 0) {
    }
    const uint64_t b = now();
    if (i > 2 && b - a < best) {
      best = b - a;
      s.host = static_cast<double>(static_cast<int64_t>(a + best / 2 - origin));
      s.offset = static_cast<double>(static_cast<int64_t>(out[i - 1] - (a + best / 2)));
    }
  }
  RT(cudaDeviceSynchronize());
  return s;
}

struct Group {
  std::string name;
  unsigned count;
  uint64_t ns;
  Sample before, after;
};

double at(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[std::min(v.size() - 1, static_cast<size_t>(q * static_cast<double>(v.size())))];
}

int accuracy() {
  origin = now();
  CUPTI(cuptiActivityRegisterCallbacks(requested, completed));
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  constexpr unsigned kMost = 20000;
  uint64_t* out;
  RT(cudaMalloc(&out, kMost * 16));
  spin<<<1, 1>>>(out, 1000);
  clockSample();
  cudaStream_t streams[8];
  for (auto& s : streams) RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  unsigned next = 0;
  std::vector<Group> groups;
  auto group = [&](const char* name, uint64_t ns, unsigned count, auto&& body) {
    Group g{std::string(name) + " " + std::to_string(ns / 1000) + " us", count, ns, clockSample(), {}};
    for (unsigned i = 0; i < count; ++i) body(i, next++);
    RT(cudaDeviceSynchronize());
    g.after = clockSample();
    groups.push_back(g);
  };
  for (uint64_t ns : {1000, 3000, 10000, 100000, 1000000, 10000000}) {
    const unsigned n = ns >= 10000000 ? 15 : ns >= 1000000 ? 40 : 200;
    group("idle", ns, n, [&](unsigned, unsigned k) {
      spin<<<1, 1, 0, streams[0]>>>(out + 2 * k, ns);
      RT(cudaStreamSynchronize(streams[0]));
      const uint64_t until = now() + 30000;
      while (now() < until) {
      }
    });
    group("queued", ns, n, [&](unsigned, unsigned k) { spin<<<1, 1, 0, streams[0]>>>(out + 2 * k, ns); });
    group("8 streams", ns, n, [&](unsigned i, unsigned k) { spin<<<1, 1, 0, streams[i % 8]>>>(out + 2 * k, ns); });
  }
  CUPTI(cuptiActivityFlushAll(0));
  std::vector<uint64_t> truth(2 * next);
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL}, false);
  RT(cudaMemcpy(truth.data(), out, truth.size() * 8, cudaMemcpyDeviceToHost));
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<CUpti_ActivityKernel10> spins;
  for (const auto& k : kernels)
    if (std::strstr(k.name, "spin") != nullptr) spins.push_back(k);
  std::sort(spins.begin(), spins.end(), [](auto& a, auto& b) { return a.correlationId < b.correlationId; });
  if (spins.size() != next + 1) {
    std::printf("records %zu, kernels %u: lost\n", spins.size(), next + 1);
    return 1;
  }
  unsigned backwards = 0, disorder = 0;
  std::map<uint32_t, uint64_t> last;
  for (const auto& k : spins) {
    backwards += k.end < k.start;
    disorder += k.start < last[k.streamId];
    last[k.streamId] = k.end;
  }
  std::printf("%-18s %6s | %8s %8s %8s | %8s %8s %8s | %8s\n", "kernels", "n", "start", "|50%|", "|99%|", "end",
              "|50%|", "|99%|", "duration");
  size_t index = 1;
  for (const Group& g : groups) {
    std::vector<double> start, end, startSize, endSize, duration;
    for (unsigned i = 0; i < g.count; ++i, ++index) {
      const auto& k = spins[index];
      auto onHost = [&](uint64_t device) {
        // A line through the two samples; offsets are small differences.
        const double d = static_cast<double>(static_cast<int64_t>(device - origin));
        const double span = g.after.host - g.before.host;
        const double slope = (g.after.offset - g.before.offset) / span;
        return d - (g.before.offset + slope * (d - g.before.host));
      };
      const double s = static_cast<double>(static_cast<int64_t>(k.start - origin)) - onHost(truth[2 * (index - 1)]);
      const double e = static_cast<double>(static_cast<int64_t>(k.end - origin)) - onHost(truth[2 * (index - 1) + 1]);
      start.push_back(s);
      end.push_back(e);
      startSize.push_back(std::fabs(s));
      endSize.push_back(std::fabs(e));
      duration.push_back(e - s);
    }
    std::printf("%-18s %6u | %8.0f %8.0f %8.0f | %8.0f %8.0f %8.0f | %8.0f\n", g.name.c_str(), g.count, at(start, 0.5),
                at(startSize, 0.5), at(startSize, 0.99), at(end, 0.5), at(endSize, 0.5), at(endSize, 0.99),
                at(duration, 0.5));
  }
  std::printf("ends before starts: %u; starts before the end of the kernel before in the stream: %u\n", backwards,
              disorder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "list") return list();
  if (what == "accuracy") return accuracy();
  std::fprintf(stderr, "usage: workload list|accuracy\n");
  return 2;
}
