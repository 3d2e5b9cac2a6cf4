// SPDX-License-Identifier: Apache-2.0
//
// The Hopper-class model says no to some operations on words of memory, as a
// card does, and the functions agree with it.
#include <dlfcn.h>

#include "gpu.h"

namespace {

class HopperTest : public Gpu {
 protected:
  int attribute(CUdevice_attribute which) {
    int value = -1;
    EXPECT_EQ(cuDeviceGetAttribute(&value, which, device_), CUDA_SUCCESS);
    return value;
  }
};

TEST_F(HopperTest, WordsOfMemory) {
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1), 0);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES), 0);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS), 1);
  CUstream s;
  CUdeviceptr p;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  OK(cuMemAlloc(&p, 8));
  OK(cuMemsetD32(p, 0, 2));
  OK(cuCtxSynchronize());
  using Write = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned);
  auto* first = reinterpret_cast<Write*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuStreamWriteValue32"));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, first(s, p, 5, 0));
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32(s, p, 0, CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH));
  CUstreamBatchMemOpParams flush{};
  flush.flushRemoteWrites.operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuStreamBatchMemOp(s, 1, &flush, 0));
  OK(cuStreamWriteValue64(s, p, 6, 0));
  OK(cuStreamWaitValue32(s, p, 6, CU_STREAM_WAIT_VALUE_EQ));
  unsigned value = 0;
  OK(cuMemcpyDtoHAsync(&value, p, 4, s));
  OK(cuStreamSynchronize(s));
  EXPECT_EQ(value, 6u);
}

TEST_F(HopperTest, MultiprocessorsAreDividedInEights) {
  CUdevResource whole, rest, groups[3];
  OK(cuDeviceGetDevResource(device_, &whole, CU_DEV_RESOURCE_TYPE_SM));
  const auto sms = static_cast<unsigned>(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_EQ(whole.sm.smCount, sms);
  unsigned n = 3;
  OK(cuDevSmResourceSplitByCount(groups, &n, &whole, &rest, 0, 20));
  ASSERT_EQ(n, 3u);
  for (const auto& g : groups) EXPECT_EQ(g.sm.smCount, 24u);
  EXPECT_EQ(rest.sm.smCount, sms - 72);
}

// Device 1 is of the default model.
TEST_F(HopperTest, TwoDevices) {
  const CUatomicOperation add = CU_ATOMIC_OPERATION_INTEGER_ADD;
  unsigned can = 0;
  OK(cuDeviceGetP2PAtomicCapabilities(&can, &add, 1, 0, 1));
  EXPECT_EQ(can, 31u);
  CUdevResource here, there;
  OK(cuDeviceGetDevResource(0, &here, CU_DEV_RESOURCE_TYPE_SM));
  OK(cuDeviceGetDevResource(1, &there, CU_DEV_RESOURCE_TYPE_SM));
  EXPECT_EQ(there.sm.smCount, 16u);
  CUdevResourceDesc desc;
  CUdevResource both[] = {here, there};
  FAILS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, both, 2));
  OK(cuDevResourceGenerateDesc(&desc, &there, 1));
  CUgreenCtx green;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  // A batch between the devices.
  CUcontext other;
  CUdeviceptr from, to;
  CUstream s;
  OK(cuMemAlloc(&from, 8));
  OK(cuMemsetD32(from, 77, 2));
  OK(cuCtxSynchronize());
  OK(createContext(&other, 0, 1));
  OK(cuMemAlloc(&to, 8));
  OK(cuMemsetD32(to, 0, 2));
  OK(cuCtxSynchronize());
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUmemcpyAttributes how{};
  how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t bytes = 4, zero = 0;
  OK(cuMemcpyBatchAsync(&to, &from, &bytes, 1, &how, &zero, 1, s));
  unsigned out[2] = {};
  OK(cuMemcpyDtoHAsync(out, to, 8, s));
  OK(cuStreamSynchronize(s));
  EXPECT_EQ(out[0], 77u);
  EXPECT_EQ(out[1], 0u);
  OK(cuCtxDestroy(other));
}

}  // namespace
