// SPDX-License-Identifier: Apache-2.0
//
// First versions of functions, found by name as old programs find them, and
// copies between memory and arrays by bytes.
#include <dlfcn.h>

#include <cstring>

#include "gpu.h"

namespace {

template <class F>
F* find(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F*>(dlsym(library, name));
}

class LegacyTest : public Gpu {};

constexpr const char* kScale = R"(.version 6.0
.target sm_30
.address_size 64
.visible .entry scale(.param .u64 out, .param .f32 factor, .param .u32 offset)
{
  .reg .b64 %o<3>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  ld.param.u64 %o0, [out];
  ld.param.f32 %f0, [factor];
  ld.param.u32 %r0, [offset];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  add.u32 %r4, %r1, %r0;
  cvt.rn.f32.u32 %f1, %r4;
  mul.f32 %f1, %f1, %f0;
  mul.wide.u32 %o1, %r1, 4;
  add.u64 %o1, %o0, %o1;
  st.global.f32 [%o1], %f1;
  ret;
}
)";

TEST_F(LegacyTest, LaunchOfTheFirstDays) {
  CUmodule module;
  CUfunction f;
  OK(cuModuleLoadData(&module, kScale));
  OK(cuModuleGetFunction(&f, module, "scale"));
  CUdeviceptr out;
  OK(cuMemAlloc(&out, 8 * sizeof(float)));
  auto* setShape = find<CUresult(CUfunction, int, int, int)>("cuFuncSetBlockShape");
  auto* setSize = find<CUresult(CUfunction, unsigned)>("cuParamSetSize");
  auto* setInt = find<CUresult(CUfunction, int, unsigned)>("cuParamSeti");
  auto* setFloat = find<CUresult(CUfunction, int, float)>("cuParamSetf");
  auto* setBytes = find<CUresult(CUfunction, int, void*, unsigned)>("cuParamSetv");
  auto* launchGrid = find<CUresult(CUfunction, int, int)>("cuLaunchGrid");
  FAILS(CUDA_ERROR_INVALID_VALUE, launchGrid(f, 2, 1));  // no block shape yet
  OK(setShape(f, 4, 1, 1));
  OK(setBytes(f, 0, &out, sizeof out));
  OK(setFloat(f, 8, 0.5f));
  OK(setInt(f, 12, 10));
  FAILS(CUDA_ERROR_INVALID_VALUE, setInt(f, 16, 1));  // beyond the parameters
  OK(setSize(f, 16));
  OK(launchGrid(f, 2, 1));
  float host[8];
  OK(cuMemcpyDtoH(host, out, sizeof host));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(host[i], (i + 10) * 0.5f) << i;
}

TEST_F(LegacyTest, FirstVersionsDoWhatTheirSuccessorsDo) {
  CUcontext context = nullptr, popped = nullptr;
  OK(find<CUresult(CUcontext*, unsigned, CUdevice)>("cuCtxCreate")(&context, 0, device_));
  OK(find<CUresult(CUcontext*)>("cuCtxPopCurrent")(&popped));
  EXPECT_EQ(popped, context);
  OK(find<CUresult(CUcontext)>("cuCtxPushCurrent")(context));
  CUstream stream;
  CUevent event;
  OK(cuStreamCreate(&stream, 0));
  OK(cuEventCreate(&event, 0));
  OK(find<CUresult(CUevent)>("cuEventDestroy")(event));
  OK(find<CUresult(CUstream)>("cuStreamDestroy")(stream));
  FAILS(CUDA_ERROR_INVALID_HANDLE, find<CUresult(CUstream)>("cuStreamDestroy")(stream));
  unsigned total = 0;
  OK(find<CUresult(unsigned*, CUdevice)>("cuDeviceTotalMem")(&total, device_));
  size_t wide = 0;
  OK(cuDeviceTotalMem(&wide, device_));
  EXPECT_EQ(total, wide > 0xffffffffu ? 0xffffffffu : wide);
  OK(find<CUresult(CUcontext)>("cuCtxDestroy")(context));
}

TEST_F(LegacyTest, NarrowDevicePointersAreRefused) {
  unsigned pointer = 77;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, find<CUresult(unsigned*, unsigned)>("cuMemAlloc")(&pointer, 4));
  EXPECT_EQ(pointer, 77u);
  FAILS(CUDA_ERROR_NOT_SUPPORTED, find<CUresult(unsigned)>("cuMemFree")(4));
}

TEST_F(LegacyTest, AttachedContextsStay) {
  CUcontext again = nullptr;
  OK(find<CUresult(CUcontext*, unsigned)>("cuCtxAttach")(&again, 0));
  EXPECT_EQ(again, context_);
  OK(find<CUresult(CUcontext)>("cuCtxDetach")(again));
  unsigned version = 0;
  OK(cuCtxGetApiVersion(context_, &version));  // still there
}

TEST_F(LegacyTest, BytesToAndFromArrays) {
  CUDA_ARRAY_DESCRIPTOR d{};
  d.Width = 8;
  d.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  d.NumChannels = 1;
  CUarray a, b;
  OK(cuArrayCreate(&a, &d));
  OK(cuArrayCreate(&b, &d));
  const char text[9] = "ABCDEFGH";
  OK(cuMemcpyHtoA(a, 0, text, 8));
  OK(cuMemcpyAtoA(b, 2, a, 0, 6));  // ..ABCDEF
  OK(cuMemcpyHtoA(b, 0, "xy", 2));  // xyABCDEF
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 8));
  OK(cuMemcpyAtoD(p, b, 1, 4));  // yABC
  OK(cuMemcpyDtoA(a, 4, p, 4));  // ABCDyABC
  char out[9] = {};
  OK(cuMemcpyAtoH(out, a, 0, 8));
  EXPECT_STREQ(out, "ABCDyABC");
  OK(cuMemcpyHtoAAsync(a, 7, "!", 1, nullptr));
  OK(cuMemcpyAtoHAsync(out, a, 6, 2, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_EQ(std::string(out, 2), "B!");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA(a, 4, text, 5));  // beyond the row
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoA(nullptr, 0, text, 1));
}

TEST_F(LegacyTest, HostMemoryThatIsNotThereIsAnError) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 1 << 20));
  auto* nowhere = reinterpret_cast<void*>(uint64_t{0x1000});
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, nowhere, 16));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(nowhere, p, 16));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync(p, nowhere, 16, nullptr));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(p, nowhere, 1 << 20));
  static const char constant[16] = "read only";
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(const_cast<char*>(constant), p, 16));
  OK(cuMemcpyHtoD(p, constant, 16));  // the context still works
  OK(cuCtxSynchronize());
}

// The structures of the first versions, as a program of that time has them.
struct OldArray {
  unsigned width, height;
  CUarray_format format;
  unsigned channels;
};
struct OldPlane {
  unsigned srcX, srcY;
  CUmemorytype srcType;
  const void* srcHost;
  unsigned srcDevice;
  CUarray srcArray;
  unsigned srcPitch, dstX, dstY;
  CUmemorytype dstType;
  void* dstHost;
  unsigned dstDevice;
  CUarray dstArray;
  unsigned dstPitch, width, height;
};

TEST_F(LegacyTest, ArraysWithNarrowSizes) {
  const OldArray d{4, 3, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray array;
  OK(find<CUresult(CUarray*, const OldArray*)>("cuArrayCreate")(&array, &d));
  OldArray asked{};
  OK(find<CUresult(OldArray*, CUarray)>("cuArrayGetDescriptor")(&asked, array));
  EXPECT_EQ(asked.width, 4u);
  EXPECT_EQ(asked.height, 3u);
  EXPECT_EQ(asked.format, CU_AD_FORMAT_UNSIGNED_INT8);
  OK(find<CUresult(CUarray, unsigned, const void*, unsigned)>("cuMemcpyHtoA")(array, 0, "abcd", 4));
  OldPlane p{};
  p.srcType = CU_MEMORYTYPE_HOST;
  p.srcHost = "efghijkl";
  p.dstType = CU_MEMORYTYPE_ARRAY;
  p.dstArray = array;
  p.dstY = 1;
  p.width = 4;
  p.height = 2;
  OK(find<CUresult(const OldPlane*)>("cuMemcpy2D")(&p));
  char out[13] = {};
  OldPlane back{};
  back.srcType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = array;
  back.dstType = CU_MEMORYTYPE_HOST;
  back.dstHost = out;
  back.width = 4;
  back.height = 3;
  OK(find<CUresult(const OldPlane*, CUstream)>("cuMemcpy2DAsync")(&back, nullptr));
  OK(cuCtxSynchronize());
  EXPECT_STREQ(out, "abcdefghijkl");
  back.dstType = CU_MEMORYTYPE_DEVICE;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, find<CUresult(const OldPlane*)>("cuMemcpy2DUnaligned")(&back));
  FAILS(CUDA_ERROR_INVALID_VALUE, find<CUresult(const OldPlane*)>("cuMemcpy2D")(nullptr));
  FAILS(CUDA_ERROR_NOT_SUPPORTED,
        find<CUresult(unsigned, unsigned, unsigned char, unsigned, unsigned)>("cuMemsetD2D8")(4, 4, 1, 4, 1));
  OK(cuArrayDestroy(array));
}

TEST_F(LegacyTest, GraphsOfCuda10) {
  CUmodule module;
  CUfunction f;
  OK(cuModuleLoadData(&module, kScale));
  OK(cuModuleGetFunction(&f, module, "scale"));
  CUdeviceptr out;
  OK(cuMemAlloc(&out, 16));
  CUstream s;
  OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  float factor = 2;
  unsigned offset = 1;
  void* args[] = {&out, &factor, &offset};
  CUDA_KERNEL_NODE_PARAMS_v1 k{};
  k.func = f;
  k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimY = k.blockDimZ = 1;
  k.blockDimX = 4;
  k.kernelParams = args;
  CUgraph graph, other;
  CUgraphNode node, error;
  OK(cuGraphCreate(&graph, 0));
  using Node = CUDA_KERNEL_NODE_PARAMS_v1;
  OK(find<CUresult(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const Node*)>("cuGraphAddKernelNode")(
      &node, graph, nullptr, 0, &k));
  CUgraphExec exec;
  char log[16] = "unchanged";
  OK(find<CUresult(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t)>("cuGraphInstantiate")(&exec, graph, &error, log,
                                                                                              sizeof log));
  EXPECT_STREQ(log, "");
  EXPECT_EQ(error, nullptr);
  auto first = [&] {
    float host[4] = {};
    EXPECT_EQ(cuGraphLaunch(exec, s), CUDA_SUCCESS);
    EXPECT_EQ(cuStreamSynchronize(s), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(host, out, sizeof host), CUDA_SUCCESS);
    return host[3];
  };
  EXPECT_EQ(first(), 8.0f);
  offset = 5;
  OK(find<CUresult(CUgraphExec, CUgraphNode, const Node*)>("cuGraphExecKernelNodeSetParams")(exec, node, &k));
  EXPECT_EQ(first(), 16.0f);
  offset = 7;
  OK(find<CUresult(CUgraphNode, const Node*)>("cuGraphKernelNodeSetParams")(node, &k));
  Node asked{};
  OK(find<CUresult(CUgraphNode, Node*)>("cuGraphKernelNodeGetParams")(node, &asked));
  EXPECT_EQ(asked.blockDimX, 4u);
  EXPECT_EQ(*static_cast<unsigned*>(asked.kernelParams[2]), 7u);
  CUgraphExecUpdateResult why = CU_GRAPH_EXEC_UPDATE_ERROR;
  auto* update = find<CUresult(CUgraphExec, CUgraph, CUgraphNode*, CUgraphExecUpdateResult*)>("cuGraphExecUpdate");
  OK(update(exec, graph, &error, &why));
  EXPECT_EQ(why, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  EXPECT_EQ(first(), 20.0f);
  OK(cuGraphCreate(&other, 0));
  FAILS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, update(exec, other, &error, &why));
  EXPECT_EQ(why, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  // Captures.
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  OK(find<CUresult(CUstream)>("cuStreamBeginCapture")(s));
  OK(find<CUresult(CUstream, CUstreamCaptureStatus*, cuuint64_t*)>("cuStreamGetCaptureInfo")(s, &status, &id));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0u);
  OK(cuStreamEndCapture(s, &other));
  // Attributes go from node to node; shapes and parameters stay.
  CUgraphNode second;
  OK(find<CUresult(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const Node*)>("cuGraphAddKernelNode")(
      &second, graph, &node, 1, &k));
  CUkernelNodeAttrValue value{};
  value.priority = -3;
  OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  OK(cuGraphKernelNodeCopyAttributes(second, node));
  value.priority = 0;
  OK(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  EXPECT_EQ(value.priority, -3);
  const CUaccessPolicyWindow window{nullptr, 512, 0.5f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_NORMAL};
  value.accessPolicyWindow = window;
  OK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
  OK(cuGraphKernelNodeCopyAttributes(second, node));
  value = {};
  OK(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
  EXPECT_EQ(value.accessPolicyWindow.num_bytes, 512u);
  EXPECT_EQ(value.accessPolicyWindow.hitProp, CU_ACCESS_PROPERTY_PERSISTING);
  CUgraphNode empty;
  OK(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(empty, node));
}

}  // namespace
