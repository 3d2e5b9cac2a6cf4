// SPDX-License-Identifier: Apache-2.0
//
// No header of a runtime here: types and offsets are those of CUDA 11 and 12.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace {

class OldRuntime : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    node_ = GetParam() == 12 ? "libcudart.so.12" : "libcudart.so.11.0";
    library_ = dlopen(GetParam() == 12 ? RUNTIME_12 : RUNTIME_11, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  template <class F>
  F* function(const char* name) {
    void* f = dlvsym(library_, name, node_);
    EXPECT_NE(f, nullptr) << name;
    return reinterpret_cast<F*>(f);
  }
  int attribute(int which) {
    int value = -1;
    EXPECT_EQ(function<int(int*, int, int)>("cudaDeviceGetAttribute")(&value, which, 0), 0);
    return value;
  }
  void* library_ = nullptr;
  const char* node_ = "";
};

int intAt(const std::vector<char>& bytes, size_t offset) {
  int v;
  std::memcpy(&v, &bytes[offset], sizeof v);
  return v;
}

TEST_P(OldRuntime, MemoryGoesAround) {
  void* p = nullptr;
  ASSERT_EQ(function<int(void**, size_t)>("cudaMalloc")(&p, 16), 0);
  const int in[4] = {1, 2, 3, 4};
  int out[4] = {};
  auto* copy = function<int(void*, const void*, size_t, int)>("cudaMemcpy");
  EXPECT_EQ(copy(p, in, 16, 1), 0);
  EXPECT_EQ(copy(out, p, 16, 2), 0);
  EXPECT_EQ(out[3], 4);
  EXPECT_EQ(function<int(void*)>("cudaFree")(p), 0);
}

// cudaDeviceProp of CUDA 11 ends where that of 12 goes on, after reservedSharedMemPerBlock.
TEST_P(OldRuntime, DevicePropertiesHaveTheOldLayout) {
  constexpr size_t kMaxThreadsPerBlock = 320, kClockRate = 348, kMajor = 360, kMultiProcessorCount = 388;
  constexpr size_t kEndOf11 = 728, kEndOf12 = 1032;
  std::vector<char> bytes(2048, '\x5a');
  ASSERT_EQ(function<int(void*, int)>("cudaGetDeviceProperties")(bytes.data(), 0), 0);
  EXPECT_GT(std::strlen(bytes.data()), 3u);
  EXPECT_EQ(intAt(bytes, kMaxThreadsPerBlock), attribute(1));
  EXPECT_EQ(intAt(bytes, kClockRate), attribute(13));
  EXPECT_EQ(intAt(bytes, kMajor), attribute(75));
  EXPECT_EQ(intAt(bytes, kMultiProcessorCount), attribute(16));
  for (size_t i = kEndOf11; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], '\x5a') << i;
  if (GetParam() < 12) return;
  ASSERT_EQ(function<int(void*, int)>("cudaGetDeviceProperties_v2")(bytes.data(), 0), 0);
  EXPECT_EQ(intAt(bytes, kMultiProcessorCount), attribute(16));
  EXPECT_NE(bytes[kEndOf11], '\x5a');  // hostRegisterSupported
  for (size_t i = kEndOf12; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], '\x5a') << i;
}

TEST_P(OldRuntime, TheVersionIsThatOfItsName) {
  int version = 0;
  ASSERT_EQ(function<int(int*)>("cudaRuntimeGetVersion")(&version), 0);
  EXPECT_EQ(version, GetParam() == 12 ? 12090 : 11080);
}

TEST_P(OldRuntime, PointerAttributesEndWhereTheyEnded) {
  void* p = nullptr;
  ASSERT_EQ(function<int(void**, size_t)>("cudaMalloc")(&p, 16), 0);
  std::vector<char> bytes(256, '\x5a');
  ASSERT_EQ(function<int(void*, const void*)>("cudaPointerGetAttributes")(bytes.data(), p), 0);
  EXPECT_EQ(intAt(bytes, 0), 2);  // device memory
  EXPECT_EQ(intAt(bytes, 4), 0);  // of device 0
  void* device;
  std::memcpy(&device, &bytes[8], sizeof device);
  EXPECT_EQ(device, p);
  for (size_t i = 24; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], '\x5a') << i;
}

TEST_P(OldRuntime, DevicesAreNumbersInManagedMemoryCalls) {
  void* p = nullptr;
  ASSERT_EQ(function<int(void**, size_t, unsigned)>("cudaMallocManaged")(&p, 4096, 1), 0);
  EXPECT_EQ(function<int(const void*, size_t, int, int)>("cudaMemAdvise")(p, 4096, 3, 0), 0);
  auto* prefetch = function<int(const void*, size_t, int, void*)>("cudaMemPrefetchAsync");
  EXPECT_EQ(prefetch(p, 4096, 0, nullptr), 0);
  EXPECT_EQ(prefetch(p, 4096, -1, nullptr), 0);  // cudaCpuDeviceId
  EXPECT_NE(prefetch(p, 4096, 99, nullptr), 0);
  EXPECT_EQ(function<int()>("cudaThreadSynchronize")(), 0);
}

TEST_P(OldRuntime, EdgesOfGraphsHaveNoData) {
  void *graph = nullptr, *a = nullptr, *b = nullptr;
  ASSERT_EQ(function<int(void**, unsigned)>("cudaGraphCreate")(&graph, 0), 0);
  auto* add = function<int(void**, void*, void* const*, size_t)>("cudaGraphAddEmptyNode");
  ASSERT_EQ(add(&a, graph, nullptr, 0), 0);
  ASSERT_EQ(add(&b, graph, nullptr, 0), 0);
  ASSERT_EQ(function<int(void*, void* const*, void* const*, size_t)>("cudaGraphAddDependencies")(graph, &a, &b, 1), 0);
  size_t count = 4;
  void *from[4] = {}, *to[4] = {};
  ASSERT_EQ(function<int(void*, void**, void**, size_t*)>("cudaGraphGetEdges")(graph, from, to, &count), 0);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(from[0], a);
  EXPECT_EQ(to[0], b);
  void* nodes[4] = {};
  count = 4;
  ASSERT_EQ(function<int(void*, void**, size_t*)>("cudaGraphNodeGetDependencies")(b, nodes, &count), 0);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(nodes[0], a);
  void* exec = nullptr;
  if (GetParam() == 12) {
    EXPECT_EQ(function<int(void**, void*, unsigned long long)>("cudaGraphInstantiate")(&exec, graph, 0), 0);
  } else {
    void* bad = &exec;
    char log[8] = "x";
    EXPECT_EQ(function<int(void**, void*, void**, char*, size_t)>("cudaGraphInstantiate")(&exec, graph, &bad, log, 8),
              0);
    EXPECT_EQ(bad, nullptr);
    EXPECT_STREQ(log, "");
  }
}

TEST_P(OldRuntime, SharesItsStateWithTheNewRuntime) {
  void* current = dlopen(RUNTIME_13, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(current, nullptr);
  void* p = nullptr;
  ASSERT_EQ(function<int(void**, size_t)>("cudaMalloc")(&p, 16), 0);
  auto* release = reinterpret_cast<int (*)(void*)>(dlsym(current, "cudaFree"));
  EXPECT_EQ(release(p), 0);
}

// CUDA 12.8: the place of the copy at fault comes back, before the stream.
TEST_P(OldRuntime, BatchesOfCopiesTellWhichFailed) {
  if (GetParam() != 12) GTEST_SKIP() << "since CUDA 12.8";
  struct Attributes {
    int order, sourceType, sourceId, targetType, targetId;
    unsigned flags;
  } how{2, 0, 0, 0, 0, 0};  // the source is read during the call
  char* p = nullptr;
  void* stream = nullptr;
  ASSERT_EQ(function<int(char**, size_t)>("cudaMalloc")(&p, 16), 0);
  ASSERT_EQ(function<int(void**, unsigned)>("cudaStreamCreateWithFlags")(&stream, 1), 0);
  char in[16] = "0123456789abcde", out[16] = {};
  void *dsts[] = {p + 8, p}, *srcs[] = {in, in + 8};
  size_t sizes[] = {8, 8}, zero = 0, failed = 7;
  auto* batch = function<int(void**, void**, size_t*, size_t, Attributes*, size_t*, size_t, size_t*, void*)>(
      "cudaMemcpyBatchAsync");
  ASSERT_EQ(batch(dsts, srcs, sizes, 2, &how, &zero, 1, &failed, stream), 0);
  EXPECT_EQ(failed, 7u);
  ASSERT_EQ(function<int(void*)>("cudaStreamSynchronize")(stream), 0);
  ASSERT_EQ(function<int(void*, const void*, size_t, int)>("cudaMemcpy")(out, p, 16, 2), 0);
  EXPECT_EQ(std::string(out, 8), std::string("89abcde\0", 8));
  EXPECT_EQ(std::string(out + 8, 8), "01234567");
  sizes[1] = 64;  // beyond the allocation
  EXPECT_EQ(batch(dsts, srcs, sizes, 2, &how, &zero, 1, &failed, stream), 1);
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(batch(dsts, srcs, sizes, 2, &how, &zero, 3, &failed, stream), 1);
  EXPECT_EQ(failed, SIZE_MAX);
  EXPECT_EQ(function<int(void*)>("cudaStreamDestroy")(stream), 0);
  EXPECT_EQ(function<int(void*)>("cudaFree")(p), 0);
}

INSTANTIATE_TEST_SUITE_P(Releases, OldRuntime, testing::Values(11, 12),
                         [](const auto& i) { return "Cuda" + std::to_string(i.param); });

}  // namespace
