// SPDX-License-Identifier: Apache-2.0
// A source written for CUDA 12: names have the parameters and reach the
// symbols that they had there.
#define SONDE_CUDA_SOURCE_VERSION 12000
#include <cuda.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

namespace {

unsigned int flagsSeen = 0;
cudaMemLocation locationSeen = {};
cudaStream_t streamSeen = nullptr;
const cudaGraphEdgeData* edgesSeen = reinterpret_cast<const cudaGraphEdgeData*>(1);

}  // namespace

extern "C" {
CUresult cuCtxCreate_v2(CUcontext*, unsigned int flags, CUdevice device) {
  return flagsSeen = flags * 100 + static_cast<unsigned int>(device), CUDA_SUCCESS;
}
CUresult cuCtxDestroy_v2(CUcontext) { return CUDA_ERROR_NOT_SUPPORTED; }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation location) {
  return locationSeen = location, cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation location, unsigned int, cudaStream_t stream) {
  return locationSeen = location, streamSeen = stream, cudaSuccess;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t*, const cudaGraphNode_t*,
                                     const cudaGraphEdgeData* edges, size_t) {
  return edgesSeen = edges, cudaSuccess;
}
}

namespace {

TEST(SourceOf12, ContextCreationHasThreeParameters) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxCreate(&context, 3, 1), CUDA_SUCCESS);
  EXPECT_EQ(flagsSeen, 301u);
  EXPECT_EQ(cuCtxDestroy(context), CUDA_ERROR_NOT_SUPPORTED);  // other names are as ever
}

TEST(SourceOf12, PlacesAreDevices) {
  EXPECT_EQ(cudaMemAdvise(nullptr, 0, cudaMemAdviseSetPreferredLocation, 2), cudaSuccess);
  EXPECT_EQ(locationSeen.type, cudaMemLocationTypeDevice);
  EXPECT_EQ(locationSeen.id, 2);
  const auto stream = reinterpret_cast<cudaStream_t>(uintptr_t{7});
  EXPECT_EQ(cudaMemPrefetchAsync(nullptr, 0, cudaCpuDeviceId, stream), cudaSuccess);
  EXPECT_EQ(locationSeen.type, cudaMemLocationTypeHost);
  EXPECT_EQ(streamSeen, stream);
}

TEST(SourceOf12, GraphEdgesHaveNoData) {
  EXPECT_EQ(cudaGraphAddDependencies(nullptr, nullptr, nullptr, size_t{0}), cudaSuccess);
  EXPECT_EQ(edgesSeen, nullptr);
}

}  // namespace
