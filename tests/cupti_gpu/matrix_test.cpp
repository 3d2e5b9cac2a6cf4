// SPDX-License-Identifier: Apache-2.0
// Every function of the library that works, and CUDA calls of every sort, called
// from every place where a client's code runs, on the thread of the place and on
// another one that the place waits for: no lock of the driver, the runtime or
// this library is held there. A deadlock ends the program (alarm).
#include "matrix.h"

#include <cupti_pcsampling.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <fstream>
#include <set>
#include <thread>

extern "C" int InitializeInjectionNvtx2(void* getExportTable);

namespace sonde::test {
namespace {

// ------------------------------------------------- the application's NVTX --

using Slot = void (*)();
Slot nvtxCore[16];
Slot* nvtxPointers[16];
int nvtxTable(int module, Slot*** table, unsigned* count) {
  if (module != 1) return 0;
  for (int i = 0; i < 16; ++i) nvtxPointers[i] = &nvtxCore[i];
  *table = nvtxPointers;
  *count = 16;
  return 1;
}
struct {
  size_t size;
  int (*get)(int, Slot***, unsigned*);
} nvtxCallbacks = {sizeof nvtxCallbacks, nvtxTable};
}  // namespace

const void* nvtxExports(uint32_t id) { return id == 1 ? &nvtxCallbacks : nullptr; }
namespace {

void nvtxMark(const char* text) { reinterpret_cast<void (*)(const char*)>(nvtxCore[2])(text); }

uint64_t stampNow() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

// --------------------------------------------------------------- the places --

enum Place { kEnter, kExit, kResource, kSynchronize, kNvtx, kRequested, kCompleted, kClock, kChecksum, kPlaces };
const char* const placeNames[] = {"Enter",           "Exit",  "Resource", "Synchronize", "Nvtx", "BufferRequested",
                                  "BufferCompleted", "Clock", "Checksum"};

struct Probe {
  std::function<void()> call;
  Place place = kEnter;
  bool elsewhere = false;
  std::atomic<bool> armed{false};
  std::atomic<uint32_t> ran{0};

  void reached(Place where) {
    if (where != place || !armed.exchange(false)) return;
    if (elsewhere) {
      std::thread([this] {
        cuCtxSetCurrent(matrixContext);
        call();
      }).join();
    } else {
      call();
    }
    ++ran;
  }
  // Whoever came to the place gets done.
  void settle() {
    if (armed.exchange(false)) return;
    while (ran == 0) std::this_thread::yield();
  }
};
Probe probe;

}  // namespace

void CUPTIAPI probing(void*, CUpti_CallbackDomain where, CUpti_CallbackId, const void* data) {
  switch (where) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
    case CUPTI_CB_DOMAIN_RUNTIME_API:
      probe.reached(static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_ENTER ? kEnter : kExit);
      break;
    case CUPTI_CB_DOMAIN_RESOURCE: probe.reached(kResource); break;
    case CUPTI_CB_DOMAIN_SYNCHRONIZE: probe.reached(kSynchronize); break;
    case CUPTI_CB_DOMAIN_NVTX: probe.reached(kNvtx); break;
    default: break;
  }
}
uint64_t CUPTIAPI ownClock() {
  probe.reached(kClock);
  return stampNow();
}
void CUPTIAPI ownChecksum(const void*, size_t, uint64_t* checksum) {
  probe.reached(kChecksum);
  *checksum = 1;
}

namespace {

class GpuMatrix : public GpuTrace, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    GpuTrace::SetUp();
    CU(cuCtxGetCurrent(&matrixContext));
    CUDA(allocate(&matrixMemory, 4096));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiEventGetIdFromName(0, "inst_executed", &matrixEvent));
    ASSERT_EQ(CUPTI_SUCCESS, cuptiMetricGetIdFromName(0, "ipc", &matrixMetric));
    size_t bytes = sizeof matrixDomain;
    ASSERT_EQ(CUPTI_SUCCESS, cuptiDeviceEnumEventDomains(0, &bytes, &matrixDomain));
    ASSERT_EQ(1, InitializeInjectionNvtx2(reinterpret_cast<void*>(nvtxExports)));
  }
  void TearDown() override {
    GpuTrace::TearDown();
    cudaFree(matrixMemory);
  }
  // What leads to each place.
  void visit() {
    CUmodule module = nullptr;
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamCreate(&stream));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleLoadData(&module, kTracePtx));
    EXPECT_EQ(cudaSuccess, launch(matrixMemory, 1, 32, 0, stream));
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
    EXPECT_EQ(CUDA_SUCCESS, cuModuleUnload(module));
    nvtxMark("here");
    cuptiActivityFlushAll(0);
  }
};

TEST_P(GpuMatrix, EveryFunctionFromEveryPlace) {
  alarm(250);
  probe.place = static_cast<Place>(GetParam());
  for (const bool elsewhere : {false, true}) {
    for (const Function& function : functions()) {
      SCOPED_TRACE(function.name + (elsewhere ? ", on another thread" : ""));
      cuptiFinalize();
      collector_.start();
      enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
      probe.call = function.call;
      probe.elsewhere = elsewhere;
      probe.ran = 0;
      collector_.onComplete = [](uint8_t*, size_t, size_t) { probe.reached(kCompleted); };
      collector_.onRequest = [](uint8_t** buffer, size_t* size, size_t*) {
        probe.reached(kRequested);
        *size = 4096;
        *buffer = testing_support::Collector::instance().allocate(4096);
      };
      collector_.onRelease = [](uint8_t* buffer) { testing_support::Collector::instance().release(buffer); };
      if (probe.place == kClock) {
        ASSERT_EQ(CUPTI_SUCCESS, cuptiActivityRegisterTimestampCallback(ownClock));
      }
      if (probe.place == kChecksum) {
        ASSERT_EQ(CUPTI_SUCCESS, cuptiRegisterComputeCrcCallback(ownChecksum));
      }
      ASSERT_EQ(CUPTI_SUCCESS, cuptiSubscribe(&matrixSubscriber, probing, nullptr));
      ASSERT_EQ(CUPTI_SUCCESS, cuptiEnableAllDomains(1, matrixSubscriber));
      probe.armed = true;
      visit();
      probe.settle();
      EXPECT_EQ(1u, probe.ran);
    }
  }
  alarm(0);
}

INSTANTIATE_TEST_SUITE_P(Places, GpuMatrix, ::testing::Range(0, static_cast<int>(kPlaces)),
                         [](const ::testing::TestParamInfo<int>& place) { return placeNames[place.param]; });

// The list above has every function of the library that works.
TEST(GpuMatrixList, IsComplete) {
  // Ends of a client are tested by themselves (cupti_promise_tests); the rest is called by applications or by
  // compilers' runtimes.
  std::set<std::string> known = {"cuptiFinalize",
                                 "cuptiUnsubscribe",
                                 "InitializeInjectionNvtx",
                                 "InitializeInjectionNvtx2",
                                 "InitializeInjectionNvtxExtension",
                                 "cuptiNvtxExtensionInitialize",
                                 "cuptiActivityGetNvtxExtPayloadAttr",
                                 "cuptiActivityGetNvtxExtPayloadEntryTypeInfo",
                                 "cuptiOpenACCInitialize",
                                 "cuptiOpenMpInitialize",
                                 "cuptiOpenMpInitialize_v2",
                                 "cuptiActivityRegisterCallbacks_v6050"};
  for (const Function& function : functions()) known.insert(function.name);
  std::ifstream in(API_TABLES "/coverage.tsv");
  ASSERT_TRUE(in);
  std::string line;
  size_t working = 0;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const std::string name = line.substr(0, line.find('\t'));
    if (line.find("\tunsupported") != std::string::npos) continue;
    ++working;
    EXPECT_EQ(1u, known.count(name)) << name << " is not in the matrix";
  }
  EXPECT_GE(working, 100u);
}

}  // namespace
}  // namespace sonde::test
