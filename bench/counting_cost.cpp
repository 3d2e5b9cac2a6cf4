// SPDX-License-Identifier: Apache-2.0
//
// What counting costs the kernels of a program, paired: an injection library
// (CUDA_INJECTION64_PATH) that runs each kernel again and again before it runs
// for the program, without events and with those of each depth in turn, and
// gives memory back what it held. bench/counting_cost.py runs the examples with
// it and prints a table.
//
// COUNTING_COST_OUT      file to which lines "kernel <tab> launches <tab> ns …" are appended
// COUNTING_COST_ROUNDS   measured runs of each depth (default 5); the fastest counts
// COUNTING_COST_LAUNCHES launches of each kernel that are measured (default 2)
#include <cuda.h>
#include <cupti.h>
#include <generated_cuda_meta.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr int kDepths = 4;  // none, instructions, memory requests, caches
const std::vector<const char*> kEvents[kDepths] = {
    {},
    {"inst_executed", "thread_inst_executed", "branch", "divergent_branch", "warps_launched"},
    {"inst_executed", "gld_request", "gst_request", "global_load_sectors", "shared_load_replay", "active_cycles"},
    {"inst_executed", "global_load_sectors", "l1_global_load_hit", "l2_subp0_total_read_sector_queries",
     "fb_subp0_read_sectors"}};

struct Kernel {
  int launches = 0;
  double ns[kDepths] = {};
};

std::mutex mutex;
std::map<std::string, Kernel> kernels;
std::vector<std::string> order;
std::map<CUdeviceptr, size_t> allocations;
std::map<CUcontext, std::vector<CUpti_EventGroupSet*>> sets;
thread_local bool inside = false;

[[noreturn]] void fail(const char* what, int code) {
  std::fprintf(stderr, "counting_cost: %s: %d\n", what, code);
  std::_Exit(70);
}
void check(CUresult r, const char* what) {
  if (r != CUDA_SUCCESS) fail(what, r);
}
void check(CUptiResult r, const char* what) {
  if (r != CUPTI_SUCCESS) fail(what, r);
}
#define CHECK(call) check(call, #call)

int number(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::max(1, std::atoi(value)) : otherwise;
}

// Of all threads of the process: with SONDE_THREADS=1 what one host thread works.
double cpuNow() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

const std::vector<CUpti_EventGroupSet*>& setsOf(CUcontext context) {
  std::vector<CUpti_EventGroupSet*>& list = sets[context];
  if (!list.empty()) return list;
  uint32_t device = 0;
  CHECK(cuptiGetDeviceId(context, &device));
  CHECK(cuptiEnableKernelReplayMode(context));
  for (const auto& names : kEvents) {
    std::vector<CUpti_EventID> ids;
    for (const char* name : names) {
      CUpti_EventID id = 0;
      CHECK(cuptiEventGetIdFromName(static_cast<CUdevice>(device), name, &id));
      ids.push_back(id);
    }
    CUpti_EventGroupSets* passes = nullptr;
    if (!ids.empty()) CHECK(cuptiEventGroupSetsCreate(context, ids.size() * sizeof ids[0], ids.data(), &passes));
    list.push_back(passes ? &passes->sets[0] : nullptr);
  }
  return list;
}

void measure(CUcontext context, const char* name, const cuLaunchKernel_params& p) {
  const auto [it, isNew] = kernels.try_emplace(name);
  if (isNew) order.push_back(name);
  Kernel& k = it->second;
  static const int kMost = number("COUNTING_COST_LAUNCHES", 2), kRounds = number("COUNTING_COST_ROUNDS", 5);
  if (k.launches >= kMost) return;
  k.launches++;
  const auto& list = setsOf(context);
  CHECK(cuCtxSynchronize());
  std::vector<std::vector<char>> saved;
  for (const auto& [at, bytes] : allocations) {
    saved.emplace_back(bytes);
    CHECK(cuMemcpyDtoH(saved.back().data(), at, bytes));
  }
  const auto restore = [&] {
    size_t i = 0;
    for (const auto& [at, bytes] : allocations) CHECK(cuMemcpyHtoD(at, saved[i++].data(), bytes));
    CHECK(cuCtxSynchronize());
  };
  double best[kDepths];
  std::fill(std::begin(best), std::end(best), 1e300);
  for (int round = 0; round <= kRounds; round++) {  // the first compiles
    for (int depth = 0; depth < kDepths; depth++) {
      if (list[static_cast<size_t>(depth)]) CHECK(cuptiEventGroupSetEnable(list[static_cast<size_t>(depth)]));
      const double start = cpuNow();
      CHECK(cuLaunchKernel(p.f, p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ,
                           p.sharedMemBytes, p.hStream, p.kernelParams, p.extra));
      CHECK(cuCtxSynchronize());
      if (round > 0) best[depth] = std::min(best[depth], cpuNow() - start);
      if (list[static_cast<size_t>(depth)]) CHECK(cuptiEventGroupSetDisable(list[static_cast<size_t>(depth)]));
      restore();
    }
  }
  for (int depth = 0; depth < kDepths; depth++) k.ns[depth] += best[depth];
}

void CUPTIAPI onCall(void*, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  const auto* info = static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || inside) return;
  std::lock_guard lock(mutex);
  inside = true;
  const bool enter = info->callbackSite == CUPTI_API_ENTER;
  switch (cbid) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      const auto& p = *static_cast<const cuLaunchKernel_params*>(info->functionParams);
      CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
      if (enter && cuStreamIsCapturing(p.hStream, &capture) == CUDA_SUCCESS && capture == CU_STREAM_CAPTURE_STATUS_NONE)
        measure(info->context, info->symbolName, p);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2: {
      const auto& p = *static_cast<const cuMemAlloc_v2_params*>(info->functionParams);
      if (!enter) allocations[*p.dptr] = p.bytesize;
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2: {
      const auto& p = *static_cast<const cuMemFree_v2_params*>(info->functionParams);
      if (enter) allocations.erase(p.dptr);
      break;
    }
    default: break;
  }
  inside = false;
}

void report() {
  const char* path = std::getenv("COUNTING_COST_OUT");
  std::FILE* out = path ? std::fopen(path, "a") : stdout;
  if (!out) fail(path, 0);
  for (const std::string& name : order) {
    const Kernel& k = kernels[name];
    std::fprintf(out, "%s\t%d", name.c_str(), k.launches);
    for (double ns : k.ns) std::fprintf(out, "\t%.0f", ns / k.launches);
    std::fprintf(out, "\n");
  }
  if (path) std::fclose(out);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  CUpti_SubscriberHandle subscriber = nullptr;
  CHECK(cuptiSubscribe(&subscriber, onCall, nullptr));
  for (CUpti_CallbackId cbid : {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
                                CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2})
    CHECK(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, cbid));
  std::atexit(report);
  return 1;
}
