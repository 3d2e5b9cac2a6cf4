// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions in kernels: fragments loaded from and stored to memory.
#include <cmath>

#include "../exec/device_fixture.h"

namespace sonde::softgpu::exec {
namespace {

uint16_t half(int v) {  // small integers
  if (v == 0) return 0;
  const unsigned sign = v < 0 ? 0x8000 : 0, m = static_cast<unsigned>(std::abs(v));
  const int e = 31 - __builtin_clz(m);
  return static_cast<uint16_t>(sign | static_cast<unsigned>(e + 15) << 10 | ((m << (10 - e)) & 0x3ff));
}
int value(unsigned i) { return static_cast<int>(i * 7 % 13) - 6; }

std::string names(const char* prefix, unsigned count) {
  std::string s = "{";
  for (unsigned i = 0; i < count; ++i) s += (i ? ", " : "") + std::string(prefix) + std::to_string(i);
  return s + "}";
}

struct Wmma {
  unsigned m, n, k;
  std::string a, b, c;  // element types
  unsigned registersA, registersB, registersC;
  std::string layoutA, layoutB, layoutC;
};

// d = a * b + c from memory to memory.
std::string wmmaKernel(const Wmma& w) {
  const std::string shape = "m" + std::to_string(w.m) + "n" + std::to_string(w.n) + "k" + std::to_string(w.k);
  const std::string cReg = w.c == "f32" ? "f32" : w.c == "f64" ? "f64" : "b32";
  const std::string abReg = w.a == "f64" ? "f64" : "b32";
  const std::string types = w.a == "f16" ? w.c + "." + w.c : w.c + "." + w.a + "." + w.b + "." + w.c;
  const unsigned strideA = w.layoutA == "row" ? w.k : w.m, strideB = w.layoutB == "row" ? w.n : w.k;
  const unsigned strideC = w.layoutC == "row" ? w.n : w.m;
  return R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{
  .reg .b64 %rd<8>;
  .reg .)" +
         abReg + " %a<" + std::to_string(w.registersA) + ">, %b<" + std::to_string(w.registersB) + ">;\n  .reg ." +
         cReg + " %c<" + std::to_string(w.registersC) + R"(>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u64 %rd4, [d];
  wmma.load.a.sync.aligned.)" +
         w.layoutA + "." + shape + ".global." + w.a + " " + names("%a", w.registersA) + ", [%rd1], " +
         std::to_string(strideA) + ";\n  wmma.load.b.sync.aligned." + w.layoutB + "." + shape + ".global." + w.b + " " +
         names("%b", w.registersB) + ", [%rd2], " + std::to_string(strideB) + ";\n  wmma.load.c.sync.aligned." +
         w.layoutC + "." + shape + ".global." + w.c + " " + names("%c", w.registersC) + ", [%rd3], " +
         std::to_string(strideC) + ";\n  wmma.mma.sync.aligned." + w.layoutA + "." + w.layoutB + "." + shape + "." +
         types + " " + names("%c", w.registersC) + ", " + names("%a", w.registersA) + ", " + names("%b", w.registersB) +
         ", " + names("%c", w.registersC) + ";\n  wmma.store.d.sync.aligned." + w.layoutC + "." + shape + ".global." +
         w.c + " [%rd4], " + names("%c", w.registersC) + ", " + std::to_string(strideC) + ";\n  ret;\n}\n";
}

template <class A, class C>
void checkWmma(const Wmma& w, A (*toA)(int), C (*toC)(int)) {
  Kernels kernels(wmmaKernel(w));
  DeviceArray<A> a(w.m * w.k), b(w.k * w.n);
  DeviceArray<C> c(w.m * w.n), d(w.m * w.n);
  auto at = [](const std::string& layout, unsigned r, unsigned col, unsigned rows, unsigned columns) {
    return layout == "row" ? r * columns + col : col * rows + r;
  };
  auto va = [](unsigned r, unsigned k) { return value(r * 5 + k); };
  auto vb = [](unsigned k, unsigned n) { return value(k * 3 + n * 11 + 1); };
  for (unsigned r = 0; r < w.m; ++r)
    for (unsigned k = 0; k < w.k; ++k) a[at(w.layoutA, r, k, w.m, w.k)] = toA(va(r, k));
  for (unsigned k = 0; k < w.k; ++k)
    for (unsigned n = 0; n < w.n; ++n) b[at(w.layoutB, k, n, w.k, w.n)] = toA(vb(k, n));
  for (unsigned r = 0; r < w.m; ++r)
    for (unsigned n = 0; n < w.n; ++n)
      c[at(w.layoutC, r, n, w.m, w.n)] = toC(static_cast<int>(r) - static_cast<int>(n));
  const LaunchOutcome out = kernels.run("product", {1}, {32}, a.address, b.address, c.address, d.address);
  ASSERT_EQ(out.error, 0) << out.message;
  for (unsigned r = 0; r < w.m; ++r)
    for (unsigned n = 0; n < w.n; ++n) {
      int sum = static_cast<int>(r) - static_cast<int>(n);
      for (unsigned k = 0; k < w.k; ++k) sum += va(r, k) * vb(k, n);
      ASSERT_EQ(d[at(w.layoutC, r, n, w.m, w.n)], toC(sum)) << r << "," << n;
    }
}

float asFloat(int v) { return static_cast<float>(v); }
double asDouble(int v) { return v; }
int8_t asByte(int v) { return static_cast<int8_t>(v); }
int32_t asInt(int v) { return v; }
uint16_t asBfloat(int v) {
  const float f = static_cast<float>(v);
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return static_cast<uint16_t>(bits >> 16);
}

TEST(Wmma, HalfIntoSingleInEveryLayout) {
  for (const char* layoutA : {"row", "col"})
    for (const char* layoutB : {"row", "col"})
      for (const char* layoutC : {"row", "col"})
        checkWmma<uint16_t, float>({16, 16, 16, "f16", "f16", "f32", 8, 8, 8, layoutA, layoutB, layoutC}, half,
                                   asFloat);
}

TEST(Wmma, ShapesAndTypes) {
  checkWmma<uint16_t, float>({8, 32, 16, "f16", "f16", "f32", 8, 8, 8, "row", "col", "row"}, half, asFloat);
  checkWmma<uint16_t, float>({32, 8, 16, "f16", "f16", "f32", 8, 8, 8, "row", "col", "row"}, half, asFloat);
  checkWmma<uint16_t, uint16_t>({16, 16, 16, "f16", "f16", "f16", 8, 8, 4, "col", "row", "row"}, half, half);
  checkWmma<uint16_t, float>({16, 16, 16, "bf16", "bf16", "f32", 4, 4, 8, "row", "row", "col"}, asBfloat, asFloat);
  checkWmma<float, float>({16, 16, 8, "tf32", "tf32", "f32", 4, 4, 8, "row", "col", "row"}, asFloat, asFloat);
  checkWmma<int8_t, int32_t>({16, 16, 16, "s8", "s8", "s32", 2, 2, 8, "row", "col", "row"}, asByte, asInt);
  checkWmma<int8_t, int32_t>({32, 8, 16, "s8", "s8", "s32", 4, 1, 8, "col", "row", "row"}, asByte, asInt);
  checkWmma<double, double>({8, 8, 4, "f64", "f64", "f64", 1, 1, 2, "row", "col", "row"}, asDouble, asDouble);
}

// Rows of 8 x 8 matrices whose element (r, c) of matrix j is 64j + 8r + c.
constexpr const char* kRows = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry rows(.param .u64 out)
{
  .shared .align 16 .b8 tile[1024];
  .reg .b32 %r<16>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, tile;
  shl.b32 %r2, %r0, 4;
  add.u32 %r1, %r1, %r2;      // this lane's row
  shl.b32 %r3, %r0, 3;        // its first element's number
  shl.b32 %r4, %r3, 16;
  or.b32 %r3, %r3, %r4;
  add.u32 %r4, %r3, 0x10000;
  st.shared.u32 [%r1], %r4;
  add.u32 %r4, %r4, 0x20002;
  st.shared.u32 [%r1+4], %r4;
  add.u32 %r4, %r4, 0x20002;
  st.shared.u32 [%r1+8], %r4;
  add.u32 %r4, %r4, 0x20002;
  st.shared.u32 [%r1+12], %r4;
  bar.sync 0;
  mul.wide.u32 %rd2, %r0, 4;
  add.u64 %rd1, %rd1, %rd2;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r1];
  st.global.u32 [%rd1], %r5;
  st.global.u32 [%rd1+128], %r8;
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r9, %r10}, [%r1];
  st.global.u32 [%rd1+256], %r10;
  movmatrix.sync.aligned.m8n8.trans.b16 %r11, %r6;
  st.global.u32 [%rd1+384], %r11;
  stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%r1+512], {%r7, %r8};
  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1+768], {%r5};
  bar.sync 0;
  ld.shared.u32 %r12, [tile+524];
  st.global.u32 [%rd1+512], %r12;
  ld.shared.u32 %r12, [tile+788];
  st.global.u32 [%rd1+640], %r12;
  ret;
}
)";

TEST(MatrixRows, LoadTransposeStore) {
  Kernels kernels(kRows);
  DeviceArray<uint32_t> out(6 * 32);
  const LaunchOutcome outcome = kernels.run("rows", {1}, {32}, out.address);
  ASSERT_EQ(outcome.error, 0) << outcome.message;
  auto pair = [](unsigned low, unsigned high) { return low | high << 16; };
  for (unsigned l = 0; l < 32; ++l) {
    const unsigned row = l / 4, column = 2 * (l % 4);
    EXPECT_EQ(out[l], pair(8 * row + column, 8 * row + column + 1)) << l;
    EXPECT_EQ(out[32 + l], pair(192 + 8 * row + column, 192 + 8 * row + column + 1)) << l;
    EXPECT_EQ(out[64 + l], pair(64 + 8 * column + row, 64 + 8 * (column + 1) + row)) << l;  // transposed
    EXPECT_EQ(out[96 + l], pair(64 + 8 * column + row, 64 + 8 * (column + 1) + row)) << l;
    // Matrix 2 transposed at byte 512: row 0, elements 6 and 7 are its (6, 0) and (7, 0).
    EXPECT_EQ(out[128 + l], pair(128 + 48, 128 + 56));
    // Matrix 0 at byte 768: row 1, elements 2 and 3.
    EXPECT_EQ(out[160 + l], pair(10, 11));
  }
}

}  // namespace
}  // namespace sonde::softgpu::exec
