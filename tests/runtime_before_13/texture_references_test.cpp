// SPDX-License-Identifier: Apache-2.0
//
// Texture and surface references as a program of CUDA 11 registers and binds them. No header of that runtime here:
// types and numbers are its.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr const char* kText = R"(.version 7.0
.target sm_70
.address_size 64
.global .texref line;
.global .texref bytes;
.global .texref plane;
.global .texref pitched;
.global .surfref target;
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .f32 %x, %y, %f<4>;
  .reg .b64 %o;
  ld.param.u64 %o, [out];
  mov.b32 %r0, 2;
  tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r4}, [line, {%r0}];
  st.global.u32 [%o], %r1;
  tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [bytes, {%r0}];
  st.global.f32 [%o+4], %f0;
  mov.f32 %x, 0f3F000000;
  mov.f32 %y, 0f3E800000;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [plane, {%x, %y}];
  st.global.f32 [%o+8], %f0;
  mov.f32 %x, 0f3FC00000;
  mov.f32 %y, 0f3FC00000;
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [pitched, {%x, %y}];
  st.global.f32 [%o+12], %f0;
  mov.b32 %r0, 4;
  mov.b32 %r1, 1;
  mov.b32 %r2, 0f41200000;
  sust.b.2d.b32.trap [target, {%r0, %r1}], {%r2};
  ret;
}
)";

struct Channel {
  int x, y, z, w, kind;  // kind: 0 signed, 1 unsigned, 2 floating-point
};
struct Reference {
  int normalized = 0, filterMode = 0, addressMode[3] = {1, 1, 1};  // points, clamped
  Channel channel{32, 0, 0, 0, 2};
  int sRGB = 0;
  unsigned anisotropy = 0;
  int mipmapFilter = 0;
  float bias = 0, least = 0, most = 0;
  int reserved[15] = {};
};
static_assert(sizeof(Reference) == 124);

class References : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(RUNTIME_11, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    std::string text = kText;
    text.resize((text.size() + 8) / 8 * 8);
    put<uint32_t>(0xba55ed50), put<uint16_t>(1), put<uint16_t>(16), put<uint64_t>(64 + text.size());
    put<uint16_t>(1), put<uint16_t>(0x0101), put<uint32_t>(64), put<uint64_t>(text.size()), put<uint64_t>(0);
    put<uint32_t>(7), put<uint32_t>(70), put<uint64_t>(0), put<uint64_t>(0x11), put<uint64_t>(0), put<uint64_t>(0);
    image_ += text;
    wrapper_ = {0x466243b1, 1, image_.data(), nullptr};
    handle_ = function<void**(void*)>("__cudaRegisterFatBinary")(&wrapper_);
    function<void(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*)>(
        "__cudaRegisterFunction")(handle_, &stub_, nullptr, "k", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    auto* texture =
        function<void(void**, const void*, const void**, const char*, int, int, int)>("__cudaRegisterTexture");
    texture(handle_, &line_, nullptr, "line", 1, 0, 0);
    texture(handle_, &bytes_, nullptr, "bytes", 1, 1, 0);
    texture(handle_, &plane_, nullptr, "plane", 2, 0, 0);
    texture(handle_, &pitched_, nullptr, "pitched", 2, 0, 0);
    function<void(void**, const void*, const void**, const char*, int, int)>("__cudaRegisterSurface")(
        handle_, &target_, nullptr, "target", 2, 0);
    function<void(void**)>("__cudaRegisterFatBinaryEnd")(handle_);
  }
  void TearDown() override { function<void(void**)>("__cudaUnregisterFatBinary")(handle_); }
  template <class F>
  F* function(const char* name) {
    void* f = dlvsym(library_, name, "libcudart.so.11.0");
    EXPECT_NE(f, nullptr) << name;
    return reinterpret_cast<F*>(f);
  }
  template <class T>
  void put(T value) {
    image_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void* memory(const void* from, size_t bytes) {
    void* p = nullptr;
    EXPECT_EQ(function<int(void**, size_t)>("cudaMalloc")(&p, bytes), 0);
    if (from) {
      EXPECT_EQ(function<int(void*, const void*, size_t, int)>("cudaMemcpy")(p, from, bytes, 1), 0);
    }
    return p;
  }
  void* array(const std::vector<float>& values) {  // 2 x 2
    void* a = nullptr;
    const Channel floats{32, 0, 0, 0, 2};
    EXPECT_EQ(function<int(void**, const Channel*, size_t, size_t, unsigned)>("cudaMallocArray")(&a, &floats, 2, 2, 2),
              0);
    EXPECT_EQ(function<int(void*, size_t, size_t, const void*, size_t, size_t, size_t, int)>("cudaMemcpy2DToArray")(
                  a, 0, 0, values.data(), 8, 8, 2, 1),
              0);
    return a;
  }
  struct Wrapper {
    uint32_t magic, version;
    const void *data, *name;
  } wrapper_{};
  std::string image_;
  void* library_ = nullptr;
  void** handle_ = nullptr;
  char stub_ = 0;
  Reference line_, bytes_, plane_, pitched_;
  int target_ = 0;
};

TEST_F(References, OfEverySortReadWhatIsBound) {
  struct Dim {
    unsigned x = 1, y = 1, z = 1;
  };
  const int32_t numbers[] = {5, 6, -7, 8};
  const uint8_t small[] = {0, 51, 255, 102};
  std::vector<float> rows(2 * 128 / 4, 0);
  rows[0] = 1, rows[1] = 2, rows[32] = 3, rows[33] = 4;  // a pitch of 128 bytes
  const Channel signed32{32, 0, 0, 0, 0}, unsigned8{8, 0, 0, 0, 1}, floats{32, 0, 0, 0, 2};
  void* line = memory(numbers, sizeof numbers);
  size_t offset = 9;
  auto* bind = function<int(size_t*, const void*, const void*, const Channel*, size_t)>("cudaBindTexture");
  auto* offsetOf = function<int(size_t*, const void*)>("cudaGetTextureAlignmentOffset");
  EXPECT_EQ(offsetOf(&offset, &line_), 19);  // cudaErrorInvalidTextureBinding
  EXPECT_EQ(bind(&offset, &line_, line, &signed32, ~0u), 0);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(offsetOf(&offset, &line_), 0);
  EXPECT_EQ(bind(nullptr, &bytes_, memory(small, sizeof small), &unsigned8, sizeof small), 0);
  plane_.normalized = 1;
  plane_.filterMode = 1;
  EXPECT_EQ(function<int(const void*, const void*, const Channel*)>("cudaBindTextureToArray")(
                &plane_, array({10, 20, 30, 40}), &floats),
            0);
  EXPECT_EQ(function<int(size_t*, const void*, const void*, const Channel*, size_t, size_t, size_t)>(
                "cudaBindTexture2D")(nullptr, &pitched_, memory(rows.data(), 256), &floats, 2, 2, 128),
            0);
  void* surface = array({1, 2, 3, 4});
  EXPECT_EQ(
      function<int(const void*, const void*, const Channel*)>("cudaBindSurfaceToArray")(&target_, surface, &floats), 0);
  void* out = memory(nullptr, 16);
  void* arguments[] = {&out};
  ASSERT_EQ(function<int(const void*, Dim, Dim, void**, size_t, void*)>("cudaLaunchKernel")(&stub_, {}, {}, arguments,
                                                                                            0, nullptr),
            0);
  uint32_t raw[4];
  float values[4];
  ASSERT_EQ(function<int(void*, const void*, size_t, int)>("cudaMemcpy")(raw, out, 16, 2), 0);
  std::memcpy(values, raw, 16);
  EXPECT_EQ(static_cast<int32_t>(raw[0]), -7);
  EXPECT_EQ(values[1], 1.0f);   // 255 of 255
  EXPECT_EQ(values[2], 15.0f);  // in the middle of the first row
  EXPECT_EQ(values[3], 4.0f);
  float stored[4];
  EXPECT_EQ(function<int(void*, size_t, const void*, size_t, size_t, size_t, size_t, int)>("cudaMemcpy2DFromArray")(
                stored, 8, surface, 0, 0, 8, 2, 2),
            0);
  EXPECT_EQ(stored[3], 10.0f);
  EXPECT_EQ(stored[2], 3.0f);
  const void* found = nullptr;
  EXPECT_EQ(function<int(const void**, const void*)>("cudaGetTextureReference")(&found, &plane_), 0);
  EXPECT_EQ(found, &plane_);
  EXPECT_EQ(function<int(const void**, const void*)>("cudaGetTextureReference")(&found, &stub_), 18);  // InvalidTexture
  EXPECT_EQ(function<int(const void*)>("cudaUnbindTexture")(&line_), 0);
  EXPECT_EQ(offsetOf(&offset, &line_), 19);
}

}  // namespace
