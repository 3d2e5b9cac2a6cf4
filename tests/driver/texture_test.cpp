// SPDX-License-Identifier: Apache-2.0
//
// Textures and surfaces: one kernel per form of the instruction, values worked
// out by hand.
#include <cstring>

#include "gpu.h"

namespace {

// k(out, handle): the body leaves four words in %r0 … %r3 of thread 0.
std::string kernel(const std::string& body) {
  return R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 handle, .param .f32 x, .param .f32 y, .param .f32 z)
{
  .reg .b32 %r<8>;
  .reg .b16 %rs<4>;
  .reg .f32 %x, %y, %z;
  .reg .pred %p;
  .reg .b64 %t, %o;
  ld.param.u64 %o, [out];
  ld.param.u64 %t, [handle];
  ld.param.f32 %x, [x];
  ld.param.f32 %y, [y];
  ld.param.f32 %z, [z];
  mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
)" + body +
         R"(
  st.global.v4.u32 [%o], {%r0, %r1, %r2, %r3};
  ret;
}
)";
}

class TextureTest : public Gpu {
 protected:
  struct Words {
    uint32_t u[4] = {};
    float f(int i) const {
      float v;
      std::memcpy(&v, &u[i], 4);
      return v;
    }
  };

  CUresult run(const std::string& body, unsigned long long handle, float x, float y, float z, Words& words) {
    CUmodule module;
    CUfunction function;
    CUdeviceptr out;
    if (CUresult e = cuModuleLoadData(&module, kernel(body).c_str())) return e;
    if (CUresult e = cuModuleGetFunction(&function, module, "k")) return e;
    if (CUresult e = cuMemAlloc(&out, 16)) return e;
    void* args[] = {&out, &handle, &x, &y, &z};
    if (CUresult e = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr)) return e;
    return cuMemcpyDtoH(words.u, out, 16);
  }

  // A float array of width x height x depth with the given values.
  CUarray floats(size_t width, size_t height, size_t depth, unsigned flags, const std::vector<float>& values) {
    CUDA_ARRAY3D_DESCRIPTOR d{};
    d.Width = width;
    d.Height = height;
    d.Depth = depth;
    d.Format = CU_AD_FORMAT_FLOAT;
    d.NumChannels = 1;
    d.Flags = flags;
    CUarray array = nullptr;
    EXPECT_EQ(nameOf(cuArray3DCreate(&array, &d)), "CUDA_SUCCESS");
    CUDA_MEMCPY3D c{};
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = values.data();
    c.srcPitch = width * 4;
    c.srcHeight = height ? height : 1;
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = array;
    c.WidthInBytes = width * 4;
    c.Height = height ? height : 1;
    c.Depth = depth ? depth : 1;
    EXPECT_EQ(nameOf(cuMemcpy3D(&c)), "CUDA_SUCCESS");
    return array;
  }

  static CUDA_TEXTURE_DESC sampling(CUaddress_mode mode, CUfilter_mode filter, unsigned flags) {
    CUDA_TEXTURE_DESC t{};
    for (auto& m : t.addressMode) m = mode;
    t.filterMode = filter;
    t.flags = flags;
    return t;
  }

  CUtexObject texture(CUarray array, const CUDA_TEXTURE_DESC& t) {
    CUDA_RESOURCE_DESC r{};
    r.resType = CU_RESOURCE_TYPE_ARRAY;
    r.res.array.hArray = array;
    CUtexObject made = 0;
    EXPECT_EQ(nameOf(cuTexObjectCreate(&made, &r, &t, nullptr)), "CUDA_SUCCESS");
    return made;
  }
};

constexpr const char* kTex2d = "  tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y}];";

TEST_F(TextureTest, NearestAndLinear) {
  const CUarray a = floats(4, 2, 0, 0, {0, 10, 20, 30, 100, 110, 120, 130});
  Words w;
  const CUtexObject point = texture(a, sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0));
  OK(run(kTex2d, point, 2.9f, 1.0f, 0, w));
  EXPECT_EQ(w.f(0), 120);
  EXPECT_EQ(w.f(1), 0);  // channels that are not there
  EXPECT_EQ(w.f(3), 1);
  OK(run(kTex2d, point, -5, 7, 0, w));
  EXPECT_EQ(w.f(0), 100);
  const CUtexObject linear = texture(a, sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0));
  OK(run(kTex2d, linear, 1.5f, 0.5f, 0, w));
  EXPECT_EQ(w.f(0), 10);
  OK(run(kTex2d, linear, 1.75f, 1.0f, 0, w));  // a quarter to the right, half way down
  EXPECT_EQ(w.f(0), 62.5f);
  // Weights have eight bits: 1/1000 of a step is none, 1/300 is 1/256.
  OK(run(kTex2d, linear, 1.501f, 0.5f, 0, w));
  EXPECT_EQ(w.f(0), 10);
  OK(run(kTex2d, linear, 1.5f + 1.0f / 300, 0.5f, 0, w));
  EXPECT_EQ(w.f(0), 10 + 10.0f / 256);
  OK(cuTexObjectDestroy(point));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(point));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(linear));
}

TEST_F(TextureTest, AddressModes) {
  const CUarray a = floats(4, 1, 0, 0, {0, 10, 20, 30});
  Words w;
  const unsigned normalized = CU_TRSF_NORMALIZED_COORDINATES;
  // 1.375 * 4 = 5.5: element 5.
  OK(run(kTex2d, texture(a, sampling(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, normalized)), 1.375f, 0, 0, w));
  EXPECT_EQ(w.f(0), 10);
  OK(run(kTex2d, texture(a, sampling(CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_POINT, normalized)), 1.375f, 0, 0,
         w));
  EXPECT_EQ(w.f(0), 20);
  OK(run(kTex2d, texture(a, sampling(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, normalized)), -0.125f, 0, 0, w));
  EXPECT_EQ(w.f(0), 30);
  // Half way between the last element and the first.
  OK(run(kTex2d, texture(a, sampling(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_LINEAR, normalized)), 1, 0.5f, 0, w));
  EXPECT_EQ(w.f(0), 15);
  CUDA_TEXTURE_DESC border = sampling(CU_TR_ADDRESS_MODE_BORDER, CU_TR_FILTER_MODE_POINT, 0);
  border.borderColor[0] = 7;
  OK(run(kTex2d, texture(a, border), 4.5f, 0, 0, w));
  EXPECT_EQ(w.f(0), 7);
  // Without normalized coordinates nothing repeats.
  OK(run(kTex2d, texture(a, sampling(CU_TR_ADDRESS_MODE_WRAP, CU_TR_FILTER_MODE_POINT, 0)), 5.5f, 0, 0, w));
  EXPECT_EQ(w.f(0), 30);
}

TEST_F(TextureTest, VolumesLayersAndCubes) {
  Words w;
  const CUarray volume = floats(2, 2, 2, 0, {0, 1, 2, 3, 4, 5, 6, 7});
  const CUtexObject v = texture(volume, sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0));
  OK(run("  tex.3d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y, %z, %z}];", v, 1, 1, 1, w));
  EXPECT_EQ(w.f(0), 3.5f);
  const CUarray layers = floats(2, 1, 3, CUDA_ARRAY3D_LAYERED, {0, 1, 10, 11, 20, 21});
  const CUtexObject l = texture(layers, sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0));
  OK(run("  mov.b32 %r4, 1;\n  tex.a2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r4, %x, %y, %y}];", l, 1, 0, 0, w));
  EXPECT_EQ(w.f(0), 10.5f);
  OK(run("  mov.b32 %r4, 9;\n  tex.a2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%r4, %x, %y, %y}];", l, 0, 0, 0, w));
  EXPECT_EQ(w.f(0), 20);  // the last layer
  const CUarray cube = floats(1, 1, 6, CUDA_ARRAY3D_CUBEMAP, {0, 1, 2, 3, 4, 5});
  const CUtexObject c =
      texture(cube, sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_NORMALIZED_COORDINATES));
  const float directions[6][3] = {{1, .5f, 0}, {-1, 0, .5f}, {0, 1, 0}, {.2f, -1, 0}, {0, 0, 3}, {0, .1f, -2}};
  for (int i = 0; i < 6; ++i) {
    OK(run("  tex.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y, %z, %z}];", c, directions[i][0], directions[i][1],
           directions[i][2], w));
    EXPECT_EQ(w.f(0), i);
  }
}

TEST_F(TextureTest, MemoryFormatsAndGather) {
  Words w;
  CUdeviceptr memory;
  OK(cuMemAlloc(&memory, 64));
  const unsigned char bytes[8] = {255, 0, 51, 128, 1, 2, 3, 4};
  OK(cuMemcpyHtoD(memory, bytes, 8));
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_LINEAR;
  r.res.linear.devPtr = memory;
  r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
  r.res.linear.numChannels = 4;
  r.res.linear.sizeInBytes = 8;
  CUDA_TEXTURE_DESC t = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, CU_TRSF_READ_AS_INTEGER);
  CUtexObject raw, real;
  OK(cuTexObjectCreate(&raw, &r, &t, nullptr));
  const char* fetch = "  mov.b32 %r4, 1;\n  tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%r4}];";
  OK(run(fetch, raw, 0, 0, 0, w));
  EXPECT_EQ(w.u[0], 1u);
  EXPECT_EQ(w.u[3], 4u);
  OK(run("  mov.b32 %r4, 2;\n  tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%t, {%r4}];", raw, 0, 0, 0, w));
  EXPECT_EQ(w.u[0], 0u);  // beyond the end
  t.flags = 0;
  OK(cuTexObjectCreate(&real, &r, &t, nullptr));
  OK(run("  mov.b32 %r4, 0;\n  tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%t, {%r4}];", real, 0, 0, 0, w));
  EXPECT_EQ(w.f(0), 1);
  EXPECT_EQ(w.f(2), 0.2f);
  t.filterMode = CU_TR_FILTER_MODE_LINEAR;
  t.flags = CU_TRSF_READ_AS_INTEGER;
  CUtexObject bad = 0;
  r.resType = CU_RESOURCE_TYPE_ARRAY;
  r.res.array.hArray = nullptr;
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuTexObjectCreate(&bad, &r, &t, nullptr));

  const CUarray a = floats(2, 2, 0, CUDA_ARRAY3D_TEXTURE_GATHER, {1, 2, 3, 4});
  const CUtexObject g = texture(a, sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0));
  OK(run("  tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y}];", g, 1, 1, 0, w));
  EXPECT_EQ(w.f(0), 3);
  EXPECT_EQ(w.f(1), 4);
  EXPECT_EQ(w.f(2), 2);
  EXPECT_EQ(w.f(3), 1);
  OK(run("  txq.width.b32 %r0, [%t];\n  txq.height.b32 %r1, [%t];", g, 0, 0, 0, w));
  EXPECT_EQ(w.u[0], 2u);
  EXPECT_EQ(w.u[1], 2u);
}

TEST_F(TextureTest, Mipmaps) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 4;
  d.Height = 4;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 1;
  CUmipmappedArray mipmap;
  OK(cuMipmappedArrayCreate(&mipmap, &d, 10));
  for (unsigned level = 0; level < 3; ++level) {
    CUarray a;
    OK(cuMipmappedArrayGetLevel(&a, mipmap, level));
    const std::vector<float> values(16, static_cast<float>(level));
    CUDA_MEMCPY2D c{};
    c.srcMemoryType = CU_MEMORYTYPE_HOST;
    c.srcHost = values.data();
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    c.dstArray = a;
    c.WidthInBytes = c.srcPitch = size_t{16} >> level;
    c.Height = 4u >> level;
    OK(cuMemcpy2D(&c));
  }
  CUarray none;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&none, mipmap, 3));
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  r.res.mipmap.hMipmappedArray = mipmap;
  CUDA_TEXTURE_DESC t = sampling(CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, CU_TRSF_NORMALIZED_COORDINATES);
  t.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
  t.maxMipmapLevelClamp = 2;
  CUtexObject o;
  OK(cuTexObjectCreate(&o, &r, &t, nullptr));
  const char* level = "  tex.level.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y}], %z;";
  Words w;
  OK(run(level, o, .5f, .5f, 1.25f, w));
  EXPECT_EQ(w.f(0), 1.25f);
  OK(run(level, o, .5f, .5f, 9, w));
  EXPECT_EQ(w.f(0), 2);
  // A step of half the texture is two elements: level 1.
  OK(run("  tex.grad.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%t, {%x, %y}], {%x, %z}, {%z, %z};", o, .5f, .5f, 0, w));
  EXPECT_EQ(w.f(0), 1);
  OK(cuMipmappedArrayDestroy(mipmap));
}

TEST_F(TextureTest, Surfaces) {
  const CUarray a = floats(4, 2, 0, CUDA_ARRAY3D_SURFACE_LDST, {0, 1, 2, 3, 4, 5, 6, 7});
  CUDA_RESOURCE_DESC r{};
  r.resType = CU_RESOURCE_TYPE_ARRAY;
  r.res.array.hArray = a;
  CUsurfObject s;
  OK(cuSurfObjectCreate(&s, &r));
  Words w;
  // The first coordinate counts bytes.
  OK(
      run("  mov.b32 %r4, 8; mov.b32 %r5, 1;\n  suld.b.2d.b32.trap {%r0}, [%t, {%r4, %r5}];\n"
          "  mov.b32 %r6, 0x42c80000;\n  sust.b.2d.b32.trap [%t, {%r4, %r5}], {%r6};\n"
          "  suld.b.2d.b32.clamp {%r1}, [%t, {%r4, %r5}];\n  mov.b32 %r4, 400;\n"
          "  suld.b.2d.b32.zero {%r2}, [%t, {%r4, %r5}];\n  suld.b.2d.b32.clamp {%r3}, [%t, {%r4, %r5}];",
          s, 0, 0, 0, w));
  EXPECT_EQ(w.f(0), 6);
  EXPECT_EQ(w.f(1), 100);
  EXPECT_EQ(w.u[2], 0u);
  EXPECT_EQ(w.f(3), 7);
  // Sixteen bits of an element.
  OK(run("  mov.b32 %r4, 10; mov.b32 %r5, 1;\n  suld.b.2d.b16.trap {%rs1}, [%t, {%r4, %r5}];\n  cvt.u32.u16 %r0, %rs1;",
         s, 0, 0, 0, w));
  EXPECT_EQ(w.u[0], 0x42c8u);
  const CUarray plain = floats(1, 1, 0, 0, {0});
  r.res.array.hArray = plain;
  CUsurfObject refused;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&refused, &r));
  // Outside: the launch fails, with the default of the language.
  ASSERT_EQ(
      nameOf(run("  mov.b32 %r4, 16; mov.b32 %r5, 0;\n  suld.b.2d.b32.trap {%r0}, [%t, {%r4, %r5}];", s, 0, 0, 0, w)),
      "CUDA_ERROR_LAUNCH_FAILED");
}

// References: variables of the module that name a texture or a surface.
TEST_F(TextureTest, References) {
  const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.global .texref line;
.global .texref plane;
.global .surfref target;
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .f32 %x, %y, %f<4>;
  .reg .b64 %o, %t;
  ld.param.u64 %o, [out];
  mov.b32 %r0, 2;
  mov.u64 %t, line;
  tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%t, {%r0}];
  st.global.f32 [%o], %f0;
  mov.f32 %x, 0f3F800000;
  mov.f32 %y, 0f3F000000;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [plane, {%x, %y}];
  st.global.f32 [%o+4], %f0;
  mov.b32 %r0, 4;
  mov.b32 %r1, 0;
  mov.b32 %r2, 0f41200000;
  sust.b.2d.b32.trap [target, {%r0, %r1}], {%r2};
  ret;
}
)";
  CUmodule module;
  CUfunction function;
  OK(cuModuleLoadData(&module, text));
  OK(cuModuleGetFunction(&function, module, "k"));
  CUtexref line, again, plane;
  CUsurfref target;
  FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&line, module, "nothing"));
  OK(cuModuleGetTexRef(&line, module, "line"));
  OK(cuModuleGetTexRef(&again, module, "line"));
  EXPECT_EQ(line, again);
  OK(cuModuleGetTexRef(&plane, module, "plane"));
  OK(cuModuleGetSurfRef(&target, module, "target"));
  CUarray array = floats(2, 2, 0, CUDA_ARRAY3D_SURFACE_LDST, {1, 2, 3, 4});

  CUdeviceptr memory, out, address;
  OK(cuMemAlloc(&memory, 16));
  OK(cuMemAlloc(&out, 8));
  const float values[] = {5, 6, 7, 8};
  OK(cuMemcpyHtoD(memory, values, 16));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddress(&address, line));  // not bound yet
  OK(cuTexRefSetFormat(line, CU_AD_FORMAT_FLOAT, 1));
  size_t offset = 9;
  OK(cuTexRefSetAddress(&offset, line, memory, 16));
  EXPECT_EQ(offset, 0u);
  OK(cuTexRefGetAddress(&address, line));
  EXPECT_EQ(address, memory);
  OK(cuTexRefSetArray(plane, array, CU_TRSA_OVERRIDE_FORMAT));
  OK(cuTexRefSetFilterMode(plane, CU_TR_FILTER_MODE_LINEAR));
  OK(cuTexRefSetAddressMode(plane, 0, CU_TR_ADDRESS_MODE_CLAMP));
  OK(cuSurfRefSetArray(target, array, 0));
  void* args[] = {&out};
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
  float got[2];
  OK(cuMemcpyDtoH(got, out, 8));
  EXPECT_EQ(got[0], 7.0f);
  EXPECT_EQ(got[1], 1.5f);  // between 1 and 2
  // The store went to the second element of the first row; another array is bound before the next launch.
  CUarray other = floats(2, 2, 0, 0, {20, 30, 3, 4});
  OK(cuTexRefSetArray(plane, other, CU_TRSA_OVERRIDE_FORMAT));
  OK(cuTexRefSetAddress(nullptr, line, memory + 4, 12));
  OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, args, nullptr));
  OK(cuMemcpyDtoH(got, out, 8));
  EXPECT_EQ(got[0], 8.0f);
  EXPECT_EQ(got[1], 25.0f);
  float row[2];
  OK(cuMemcpyAtoH(row, array, 0, 8));
  EXPECT_EQ(row[0], 1.0f);
  EXPECT_EQ(row[1], 10.0f);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(line, CU_AD_FORMAT_FLOAT, 3));
  OK(cuArrayDestroy(other));
  OK(cuArrayDestroy(array));
}

}  // namespace
