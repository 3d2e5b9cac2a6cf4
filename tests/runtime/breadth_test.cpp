// SPDX-License-Identifier: Apache-2.0
// The runtime's batches, pools by location, questions to nodes of graphs and to
// texture objects, logs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/runtime/fat_binary.h"

namespace sonde::test {
namespace {

constexpr char kPtx[] = R"(
.version 7.8
.target sm_90
.address_size 64

.global .align 4 .u32 cell[4] = {1, 2, 3, 4};

.visible .entry put(.param .u64 out, .param .u32 value)
{
    .reg .b32   v;
    .reg .b64   at;
    ld.param.u32 v, [value];
    ld.param.u64 at, [out];
    st.global.u32 [at], v;
    ret;
}
)";
char putStub, cellShadow[16];

#define OK(call) ASSERT_EQ(call, cudaSuccess) << #call

class Breadth : public ::testing::Test {
 protected:
  void SetUp() override {
    binary_ = std::make_unique<FatBinary>(kPtx);
    binary_->kernel(&putStub, "put");
    binary_->variable(cellShadow, "cell", 16, false);
    __cudaRegisterFatBinaryEnd(binary_->handle());
    OK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    OK(cudaMalloc(reinterpret_cast<void**>(&device_), 4096));
    OK(cudaMemset(device_, 0, 4096));
    OK(cudaDeviceSynchronize());
  }
  void TearDown() override {
    cudaStreamDestroy(stream_);
    cudaFree(device_);
    cudaDeviceSynchronize();
    cudaGetLastError();
  }
  std::unique_ptr<FatBinary> binary_;
  cudaStream_t stream_ = nullptr;
  unsigned char* device_ = nullptr;
};

TEST_F(Breadth, BatchesOfCopies) {
  unsigned char in[32], out[32] = {};
  std::iota(in, in + 32, 1);
  void* dsts[] = {device_ + 16, device_};
  const void* srcs[] = {in, in + 16};
  const size_t sizes[] = {16, 16};
  size_t from = 0;
  cudaMemcpyAttributes how{};
  how.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
  OK(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &how, &from, 1, stream_));
  OK(cudaMemcpyAsync(out, device_, 32, cudaMemcpyDeviceToHost, stream_));
  OK(cudaStreamSynchronize(stream_));
  for (int i = 0; i < 32; i++) EXPECT_EQ(out[i], i < 16 ? 17 + i : i - 15) << i;
  EXPECT_EQ(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &how, &from, 1, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  how.srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
  EXPECT_EQ(cudaMemcpyBatchAsync(dsts, srcs, sizes, 2, &how, &from, 1, stream_), cudaErrorInvalidValue);
  // A box into an array of two-byte elements, counted in elements.
  const cudaChannelFormatDesc two = cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array;
  OK(cudaMallocArray(&array, &two, 4, 2));
  cudaMemcpy3DBatchOp op{};
  op.src.type = cudaMemcpyOperandTypePointer;
  op.src.op.ptr.ptr = in;
  op.dst.type = cudaMemcpyOperandTypeArray;
  op.dst.op.array.array = array;
  op.extent = {4, 2, 1};
  op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  OK(cudaMemcpy3DBatchAsync(1, &op, 0, stream_));
  OK(cudaStreamSynchronize(stream_));
  OK(cudaMemcpy2DFromArray(out, 2, array, 6, 0, 2, 2, cudaMemcpyDeviceToHost));
  EXPECT_EQ(out[0], 7);
  EXPECT_EQ(out[2], 15);
  // Two arrays of other widths, bytes on end.
  cudaArray_t wide;
  OK(cudaMallocArray(&wide, &two, 8, 1));
  OK(cudaMemcpyArrayToArray(wide, 2, 0, array, 4, 0, 12, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy2DFromArray(out, 16, wide, 2, 0, 12, 1, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 12; i++) EXPECT_EQ(out[i], 5 + i) << i;
  EXPECT_EQ(cudaMemcpyArrayToArray(wide, 2, 0, array, 4, 0, 13, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  OK(cudaFreeArray(wide));
  OK(cudaFreeArray(array));
}

TEST_F(Breadth, PrefetchesDiscardsAndPools) {
  unsigned char *a, *b;
  OK(cudaMallocManaged(reinterpret_cast<void**>(&a), 65536, cudaMemAttachGlobal));
  OK(cudaMallocManaged(reinterpret_cast<void**>(&b), 65536, cudaMemAttachGlobal));
  void* ranges[] = {a, b};
  size_t sizes[] = {65536, 65536}, from[] = {0, 1};
  cudaMemLocation places[] = {{cudaMemLocationTypeDevice, 0}, {cudaMemLocationTypeHost, 0}};
  OK(cudaMemPrefetchBatchAsync(ranges, sizes, 2, places, from, 2, 0, stream_));
  OK(cudaStreamSynchronize(stream_));
  int where = -9;
  OK(cudaMemRangeGetAttribute(&where, 4, cudaMemRangeAttributeLastPrefetchLocation, a, 65536));
  EXPECT_EQ(where, 0);
  OK(cudaMemRangeGetAttribute(&where, 4, cudaMemRangeAttributeLastPrefetchLocation, b, 65536));
  EXPECT_EQ(where, cudaCpuDeviceId);
  OK(cudaMemDiscardBatchAsync(ranges, sizes, 2, 0, stream_));
  OK(cudaMemDiscardAndPrefetchBatchAsync(ranges, sizes, 2, places, from, 1, 0, stream_));
  OK(cudaStreamSynchronize(stream_));
  OK(cudaMemRangeGetAttribute(&where, 4, cudaMemRangeAttributeLastPrefetchLocation, b, 65536));
  EXPECT_EQ(where, 0);
  EXPECT_EQ(cudaMemDiscardBatchAsync(ranges, sizes, 2, 1, stream_), cudaErrorInvalidValue);
  cudaMemPool_t byDevice, byPlace;
  OK(cudaDeviceGetDefaultMemPool(&byDevice, 0));
  OK(cudaMemGetDefaultMemPool(&byPlace, &places[0], cudaMemAllocationTypePinned));
  EXPECT_EQ(byDevice, byPlace);
  OK(cudaMemSetMemPool(&places[0], cudaMemAllocationTypePinned, byDevice));
  OK(cudaMemGetMemPool(&byPlace, &places[0], cudaMemAllocationTypePinned));
  EXPECT_EQ(byDevice, byPlace);
  OK(cudaMemGetMemPool(&byPlace, &places[1], cudaMemAllocationTypePinned));  // the host has one of its own
  EXPECT_NE(byDevice, byPlace);
  OK(cudaFree(a));
  OK(cudaFree(b));
}

TEST_F(Breadth, NodesTellWhatTheyAreMadeOf) {
  cudaGraph_t graph;
  cudaGraphNode_t kernel, copy, second;
  OK(cudaGraphCreate(&graph, 0));
  unsigned value = 9;
  void* arguments[] = {&device_, &value};
  cudaKernelNodeParams k{};
  k.func = &putStub;
  k.gridDim = dim3(1, 2, 3);
  k.blockDim = dim3(4, 5, 6);
  k.kernelParams = arguments;
  OK(cudaGraphAddKernelNode(&kernel, graph, nullptr, 0, &k));
  cudaKernelNodeParams asked{};
  OK(cudaGraphKernelNodeGetParams(kernel, &asked));
  EXPECT_EQ(asked.func, &putStub);
  EXPECT_EQ(asked.gridDim.z, 3u);
  EXPECT_EQ(asked.blockDim.x, 4u);
  EXPECT_EQ(*static_cast<unsigned*>(asked.kernelParams[1]), 9u);
  OK(cudaGraphKernelNodeSetParams(kernel, &asked));  // what it told can be given back
  cudaLaunchAttributeValue attribute{};
  attribute.priority = -2;
  OK(cudaGraphKernelNodeSetAttribute(kernel, cudaLaunchAttributePriority, &attribute));
  OK(cudaGraphAddKernelNode(&second, graph, &kernel, 1, &k));
  OK(cudaGraphKernelNodeCopyAttributes(second, kernel));
  attribute.priority = 0;
  OK(cudaGraphKernelNodeGetAttribute(second, cudaLaunchAttributePriority, &attribute));
  EXPECT_EQ(attribute.priority, -2);
  // A copy between an array and pitched memory.
  const cudaChannelFormatDesc word = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t array;
  OK(cudaMallocArray(&array, &word, 8, 4));
  cudaMemcpy3DParms c{}, back{};
  c.srcArray = array;
  c.srcPos = {2, 1, 0};
  c.dstPtr = {device_, 64, 16, 4};
  c.extent = {3, 2, 1};
  c.kind = cudaMemcpyDeviceToDevice;
  OK(cudaGraphAddMemcpyNode(&copy, graph, nullptr, 0, &c));
  OK(cudaGraphMemcpyNodeGetParams(copy, &back));
  EXPECT_EQ(back.srcArray, array);
  EXPECT_EQ(back.srcPos.x, 2u);
  EXPECT_EQ(back.srcPos.y, 1u);
  EXPECT_EQ(back.dstPtr.ptr, device_);
  EXPECT_EQ(back.dstPtr.pitch, 64u);
  EXPECT_EQ(back.extent.width, 3u);
  EXPECT_EQ(back.extent.height, 2u);
  EXPECT_EQ(back.kind, cudaMemcpyDeviceToDevice);
  // Allocations.
  cudaMemAllocNodeParams alloc{}, told{};
  alloc.poolProps.allocType = cudaMemAllocationTypePinned;
  alloc.poolProps.location = {cudaMemLocationTypeDevice, 0};
  alloc.bytesize = 640;
  cudaGraphNode_t memory;
  OK(cudaGraphAddMemAllocNode(&memory, graph, nullptr, 0, &alloc));
  OK(cudaGraphMemAllocNodeGetParams(memory, &told));
  EXPECT_EQ(told.bytesize, 640u);
  EXPECT_EQ(told.dptr, alloc.dptr);
  EXPECT_EQ(cudaGraphMemAllocNodeGetParams(copy, &told), cudaErrorInvalidValue);
  OK(cudaGraphDestroy(graph));
  OK(cudaFreeArray(array));
}

TEST_F(Breadth, SymbolsInNodesThatExist) {
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  OK(cudaGraphCreate(&graph, 0));
  unsigned* host;
  OK(cudaMallocHost(reinterpret_cast<void**>(&host), 64));
  std::fill(host, host + 16, 0u);
  OK(cudaGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, host, cellShadow, 4, 0, cudaMemcpyDeviceToHost));
  OK(cudaGraphMemcpyNodeSetParamsFromSymbol(node, host + 1, cellShadow, 8, 4, cudaMemcpyDeviceToHost));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, stream_));
  OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(host[0], 0u);
  EXPECT_EQ(host[1], 2u);
  EXPECT_EQ(host[2], 3u);
  OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, node, host, cellShadow, 4, 12, cudaMemcpyDeviceToHost));
  OK(cudaGraphLaunch(exec, stream_));
  OK(cudaStreamSynchronize(stream_));
  EXPECT_EQ(host[0], 4u);
  host[8] = 77;
  OK(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, node, cellShadow, host + 8, 4, 4, cudaMemcpyHostToDevice));
  OK(cudaGraphLaunch(exec, stream_));
  OK(cudaStreamSynchronize(stream_));
  unsigned now[4];
  OK(cudaMemcpyFromSymbol(now, cellShadow, 16, 0, cudaMemcpyDeviceToHost));
  EXPECT_EQ(now[0], 1u);
  EXPECT_EQ(now[1], 77u);
  EXPECT_EQ(cudaGraphMemcpyNodeSetParamsToSymbol(node, cellShadow, host, 8, 12, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
  OK(cudaFreeHost(host));
}

TEST_F(Breadth, TexturesTellWhatTheyAreMadeOf) {
  cudaResourceDesc resource{}, what{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = device_;
  resource.res.pitch2D.desc = cudaCreateChannelDesc(8, 8, 0, 0, cudaChannelFormatKindUnsigned);
  resource.res.pitch2D.width = 16;
  resource.res.pitch2D.height = 4;
  resource.res.pitch2D.pitchInBytes = 512;
  cudaTextureDesc how{}, asked{};
  how.addressMode[0] = cudaAddressModeMirror;
  how.addressMode[1] = cudaAddressModeBorder;
  how.filterMode = cudaFilterModeLinear;
  how.readMode = cudaReadModeNormalizedFloat;
  how.normalizedCoords = 1;
  how.borderColor[2] = 0.25f;
  cudaTextureObject_t texture;
  OK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  OK(cudaGetTextureObjectResourceDesc(&what, texture));
  EXPECT_EQ(what.resType, cudaResourceTypePitch2D);
  EXPECT_EQ(what.res.pitch2D.devPtr, device_);
  EXPECT_EQ(what.res.pitch2D.desc.x, 8);
  EXPECT_EQ(what.res.pitch2D.desc.y, 8);
  EXPECT_EQ(what.res.pitch2D.desc.z, 0);
  EXPECT_EQ(what.res.pitch2D.pitchInBytes, 512u);
  OK(cudaGetTextureObjectTextureDesc(&asked, texture));
  EXPECT_EQ(asked.addressMode[0], cudaAddressModeMirror);
  EXPECT_EQ(asked.addressMode[1], cudaAddressModeBorder);
  EXPECT_EQ(asked.filterMode, cudaFilterModeLinear);
  EXPECT_EQ(asked.readMode, cudaReadModeNormalizedFloat);
  EXPECT_EQ(asked.normalizedCoords, 1);
  EXPECT_EQ(asked.borderColor[2], 0.25f);
  OK(cudaDestroyTextureObject(texture));
  const cudaChannelFormatDesc word = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaArray_t array;
  cudaSurfaceObject_t surface;
  OK(cudaMallocArray(&array, &word, 8, 4, cudaArraySurfaceLoadStore));
  resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  OK(cudaCreateSurfaceObject(&surface, &resource));
  OK(cudaGetSurfaceObjectResourceDesc(&what, surface));
  EXPECT_EQ(what.resType, cudaResourceTypeArray);
  EXPECT_EQ(what.res.array.array, array);
  OK(cudaDestroySurfaceObject(surface));
  cudaArrayMemoryRequirements needs;
  cudaArraySparseProperties sparse;
  EXPECT_EQ(cudaArrayGetMemoryRequirements(&needs, array, 0), cudaErrorInvalidValue);
  EXPECT_EQ(cudaArrayGetSparseProperties(&sparse, array), cudaErrorInvalidValue);
  OK(cudaFreeArray(array));
}

TEST_F(Breadth, LogsAtomicsBanksAndClusters) {
  cudaLogIterator here;
  OK(cudaLogsCurrent(&here, 0));
  cudaMemcpyBatchAsync(nullptr, nullptr, nullptr, 1, nullptr, nullptr, 1, nullptr);
  char text[400];
  size_t size = sizeof text;
  OK(cudaLogsDumpToMemory(&here, text, &size, 0));
  EXPECT_NE(std::string(text).find("cannot go to the legacy default stream"), std::string::npos);
  const cudaAtomicOperation add = cudaAtomicOperationIntegerAdd;
  unsigned can = 0;
  OK(cudaDeviceGetHostAtomicCapabilities(&can, &add, 1, 0));
  EXPECT_EQ(can, 31u);
  EXPECT_EQ(cudaDeviceGetHostAtomicCapabilities(&can, &add, 1, 99), cudaErrorInvalidDevice);
  cudaSharedMemConfig banks{};
  OK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
  OK(cudaDeviceGetSharedMemConfig(&banks));
  EXPECT_EQ(banks, cudaSharedMemBankSizeFourByte);  // as on every card since Maxwell
  OK(cudaFuncSetSharedMemConfig(&putStub, cudaSharedMemBankSizeEightByte));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(4);
  config.blockDim = dim3(1024);
  config.attrs = &cluster;
  config.numAttrs = 1;
  int clusters = 0, largest = 0;
  OK(cudaOccupancyMaxActiveClusters(&clusters, &putStub, &config));
  EXPECT_EQ(clusters, 16);  // 16 multiprocessors with two blocks of 1024 threads each, two blocks a cluster
  OK(cudaOccupancyMaxPotentialClusterSize(&largest, &putStub, &config));
  EXPECT_EQ(largest, 8);
  EXPECT_EQ(cudaOccupancyMaxActiveClusters(nullptr, &putStub, &config), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace sonde::test
