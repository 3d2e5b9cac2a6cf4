// SPDX-License-Identifier: Apache-2.0
//
// Cluster launches, their occupancy, and tensor maps.
#include "gpu.h"

namespace {

constexpr char kKernels[] = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry rank(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_ctarank;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry pair(.param .u64 out)
.reqnctapercluster 2
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_nctarank;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
.visible .entry box(.param .align 128 .b8 map[128], .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<6>;
  .shared .align 128 .b8 s[256];
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x;
  mov.u64 %rd1, map;
  mov.u32 %r2, s;
  mov.u32 %r3, bar;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $go;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd2, [%r3], 256;
  mov.u32 %r4, 4;
  mov.u32 %r5, 1;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r4, %r5}], [%r3];
$go:
  bar.sync 0;
$wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
  @!%p2 bra $wait;
  mad.lo.u32 %r6, %r1, 4, %r2;
  ld.shared.u32 %r7, [%r6];
  ld.param.u64 %rd3, [out];
  mul.wide.u32 %rd4, %r1, 4;
  add.u64 %rd3, %rd3, %rd4;
  st.global.u32 [%rd3], %r7;
  ret;
}
)";

class ClusterTest : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    OK(cuModuleLoadData(&module_, kKernels));
    OK(cuModuleGetFunction(&rank_, module_, "rank"));
    OK(cuModuleGetFunction(&pair_, module_, "pair"));
    OK(cuMemAlloc(&out_, 1024));
  }
  CUlaunchConfig config(unsigned blocks, unsigned cluster) {
    CUlaunchConfig c{};
    c.gridDimX = blocks;
    c.gridDimY = c.gridDimZ = c.blockDimY = c.blockDimZ = 1;
    c.blockDimX = 32;
    attribute_.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute_.value.clusterDim = {cluster, 1, 1};
    c.attrs = &attribute_;
    c.numAttrs = cluster ? 1 : 0;
    return c;
  }
  CUresult launch(CUfunction f, unsigned blocks, unsigned cluster) {
    const CUlaunchConfig c = config(blocks, cluster);
    void* params[] = {&out_};
    return cuLaunchKernelEx(&c, f, params, nullptr);
  }
  std::vector<unsigned> read(size_t n) {
    std::vector<unsigned> v(n);
    EXPECT_EQ(nameOf(cuMemcpyDtoH(v.data(), out_, n * 4)), "CUDA_SUCCESS");
    return v;
  }
  CUmodule module_ = nullptr;
  CUfunction rank_ = nullptr, pair_ = nullptr;
  CUdeviceptr out_ = 0;
  CUlaunchAttribute attribute_{};
};

TEST_F(ClusterTest, TheLaunchAttributeMakesClusters) {
  OK(launch(rank_, 8, 4));
  EXPECT_EQ(read(8), (std::vector<unsigned>{0, 1, 2, 3, 0, 1, 2, 3}));
  FAILS(CUDA_ERROR_INVALID_VALUE, launch(rank_, 6, 4));
  FAILS(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch(rank_, 16, 16));
  OK(cuFuncSetAttribute(rank_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  OK(launch(rank_, 32, 16));
  EXPECT_EQ(read(32)[17], 1u);
}

TEST_F(ClusterTest, RequiredByTheKernelOrTheFunction) {
  OK(launch(pair_, 4, 0));
  EXPECT_EQ(read(4), (std::vector<unsigned>{2, 2, 2, 2}));
  FAILS(CUDA_ERROR_INVALID_CLUSTER_SIZE, launch(pair_, 4, 4));
  OK(cuFuncSetAttribute(rank_, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2));
  OK(launch(rank_, 4, 0));
  EXPECT_EQ(read(4), (std::vector<unsigned>{0, 1, 0, 1}));
}

TEST_F(ClusterTest, Occupancy) {
  int sms = 0, n = 0;
  OK(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device_));
  CUlaunchConfig c = config(8, 4);
  c.sharedMemBytes = 40000;  // five blocks on an SM with 228 KB
  OK(cuOccupancyMaxActiveClusters(&n, rank_, &c));
  EXPECT_EQ(n, sms / 16 * (16 * 5 / 4) + sms % 16 * 5 / 4);
  OK(cuOccupancyMaxPotentialClusterSize(&n, rank_, &c));
  EXPECT_EQ(n, 8);
  OK(cuFuncSetAttribute(rank_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  OK(cuOccupancyMaxPotentialClusterSize(&n, rank_, &c));
  EXPECT_EQ(n, 16);
}

TEST_F(ClusterTest, TensorMapAsAParameter) {
  CUdeviceptr tensor;
  std::vector<unsigned> matrix(32 * 16);
  for (unsigned i = 0; i < matrix.size(); i++) matrix[i] = i;
  OK(cuMemAlloc(&tensor, matrix.size() * 4));
  OK(cuMemcpyHtoD(tensor, matrix.data(), matrix.size() * 4));
  alignas(128) CUtensorMap map;
  const cuuint64_t extents[] = {32, 16}, strides[] = {128};
  cuuint32_t box[] = {16, 4}, steps[] = {1, 1};
  auto encode = [&](CUtensorMapSwizzle swizzle, CUtensorMapInterleave interleave, unsigned rank = 2) {
    return cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, rank, reinterpret_cast<void*>(tensor), extents,
                                  strides, box, steps, interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  FAILS(CUDA_ERROR_INVALID_VALUE, encode(CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_INTERLEAVE_NONE));  // 64-byte rows
  FAILS(CUDA_ERROR_INVALID_VALUE, encode(CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE, 6));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, encode(CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_INTERLEAVE_16B));
  box[1] = 300;
  FAILS(CUDA_ERROR_INVALID_VALUE, encode(CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE));
  box[1] = 4;
  OK(encode(CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE));
  CUfunction f;
  OK(cuModuleGetFunction(&f, module_, "box"));
  void* params[] = {&map, &out_};
  OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  const auto v = read(64);
  for (unsigned i = 0; i < 64; i++) EXPECT_EQ(v[i], (1 + i / 16) * 32 + 4 + i % 16);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(tensor + 4)));
  OK(cuTensorMapReplaceAddress(&map, reinterpret_cast<void*>(tensor + 16)));
  OK(cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(read(64)[0], 32u + 4 + 4);
  OK(cuMemFree(tensor));
}

}  // namespace
