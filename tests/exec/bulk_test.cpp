// SPDX-License-Identifier: Apache-2.0
//
// Bulk and tensor copies, asynchronous stores, remote mbarriers, vector and 128-bit atomics.
#include <array>
#include <cmath>

#include "device_fixture.h"
#include "softgpu/exec/tensor_map.h"

namespace sonde::softgpu::exec {
namespace {

const std::string kHead = ".version 8.6\n.target sm_90\n.address_size 64\n";

// %r0 thread, %r1 s (4 KB of shared memory), %r2 bar, %rd1 in, %rd2 out, %r3 rank.
std::string kernel(const std::string& body, const std::string& target = kHead) {
  return target + R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<10>;
  .reg .b16 %h<8>;
  .reg .b32 %r<40>;
  .reg .f32 %f<10>;
  .reg .b64 %rd<20>;
  .shared .align 1024 .b8 s[4096];
  .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, s;
  mov.u32 %r2, bar;
  mov.u32 %r3, %cluster_ctarank;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
)" + body +
         "\n  ret;\n}\n";
}

// One thread of each block prepares the barrier for one arrival and `bytes`.
std::string prepare(uint32_t bytes) {
  return R"(
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra $prepared;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd10, [%r2], )" +
         std::to_string(bytes) + R"(;
$prepared:
  barrier.cluster.arrive;
  barrier.cluster.wait;
)";
}
constexpr char kWait[] = R"(
$wait:
  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r2], 0, 1000;
  @!%p2 bra $wait;
)";
// Thread t writes words t, t + threads … of shared memory (n words) to out.
std::string dump(uint32_t words) {
  return R"(
  mov.u32 %r20, %r0;
  mov.u32 %r22, %ntid.x;
$dump:
  mad.lo.u32 %r21, %r20, 4, %r1;
  ld.shared.u32 %r23, [%r21];
  mad.lo.u32 %r25, %r3, )" +
         std::to_string(words) + R"(, %r20;
  mul.wide.u32 %rd11, %r25, 4;
  add.u64 %rd11, %rd2, %rd11;
  st.global.u32 [%rd11], %r23;
  add.u32 %r20, %r20, %r22;
  setp.lt.u32 %p3, %r20, )" +
         std::to_string(words) + R"(;
  @%p3 bra $dump;
)";
}

TEST(Bulk, CopyFromGlobalCompletesTheBarrier) {
  Kernels k(kernel(prepare(256) + R"(
  @!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 256, [%r2];
)" + kWait + dump(64)));
  DeviceArray<uint32_t> in(64), out(64);
  for (uint32_t i = 0; i < 64; ++i) in[i] = 1000 + i;
  const LaunchOutcome r = k.run("k", {1}, {64}, in.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1000 + i);
}

TEST(Bulk, EachLaneOfAMaskCopiesItsOwnPiece) {
  // Lanes 3, 7, 11 … copy 16 bytes each; the others' words stay 7.
  Kernels k(kernel(R"(
  mad.lo.u32 %r10, %r0, 16, %r1;
  mov.u32 %r11, 7;
  st.shared.v4.u32 [%r10], {%r11, %r11, %r11, %r11};
  bar.sync 0;
)" + prepare(128) + R"(
  and.b32 %r12, %r0, 3;
  setp.eq.u32 %p4, %r12, 3;
  mul.wide.u32 %rd3, %r0, 16;
  add.u64 %rd3, %rd1, %rd3;
  @%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd3], 16, [%r2];
)" + kWait + dump(128)));
  DeviceArray<uint32_t> in(128), out(128);
  for (uint32_t i = 0; i < 128; ++i) in[i] = 1000 + i;
  const LaunchOutcome r = k.run("k", {1}, {32}, in.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i / 4 % 4 == 3 ? 1000 + i : 7u) << i;
}

TEST(Bulk, MulticastReachesTheBlocksOfTheMask) {
  Kernels k(kernel(prepare(64) + R"(
  setp.ne.or.u32 %p4, %r3, 1, %p1;
  mov.u16 %h1, 13;
  @!%p4 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%rd1], 64, [%r2], %h1;
  setp.eq.u32 %p5, %r3, 1;
  @%p5 bra $skip;
)" + std::string(kWait) +
                   R"(
$skip:
)" + dump(16) + R"(
  barrier.cluster.arrive;
  barrier.cluster.wait;
)"));
  k.cluster = {4};
  DeviceArray<uint32_t> in(16), out(64);
  for (uint32_t i = 0; i < 16; ++i) in[i] = 500 + i;
  const LaunchOutcome r = k.run("k", {4}, {32}, in.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t rank : {0u, 2u, 3u})
    for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(out[rank * 16 + i], 500 + i) << rank;
}

TEST(Bulk, StoreAndReduceToGlobal) {
  Kernels k(kernel(R"(
  mad.lo.u32 %r10, %r0, 4, %r1;
  add.u32 %r11, %r0, 1;
  st.shared.u32 [%r10], %r11;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra $end;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 128;
  add.u64 %rd3, %rd2, 128;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd3], [%r1], 128;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%rd3], [%r1], 64;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  cp.async.bulk.wait_group 0;
$end:)"));
  DeviceArray<uint32_t> out(64);
  for (uint32_t i = 32; i < 64; ++i) out[i] = i < 40 ? static_cast<uint32_t>(-100) : 10u;
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i + 1);
  for (uint32_t i = 0; i < 32; ++i) {
    const int32_t sum = (i < 8 ? -100 : 10) + static_cast<int32_t>(i + 1);
    EXPECT_EQ(static_cast<int32_t>(out[32 + i]), i < 16 ? std::max<int32_t>(sum, static_cast<int32_t>(i + 1)) : sum);
  }
}

// An H200 takes a copy of no bytes from nowhere to a misaligned place.
TEST(Bulk, ACopyOfNothingLooksAtNoAddress) {
  Kernels k(kernel(prepare(0) + R"(
  mov.u32 %r5, 0;
  mov.u64 %rd5, 0;
  add.u32 %r6, %r1, 7;
  @!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r6], [%rd5], %r5, [%r2];
  @!%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd5], [%r6], %r5;
)" + kWait + "  st.global.u32 [%rd2], 5;\n"));
  DeviceArray<uint32_t> in(4), out(4);
  k.cluster = {1, 1, 1};
  const LaunchOutcome o = k.run("k", {1}, {32}, in.address, out.address);
  ASSERT_EQ(o.error, 0) << o.message;
  EXPECT_EQ(out[0], 5u);
}

TEST(Bulk, AMisalignedSizeIsAnError) {
  Kernels k(kernel(prepare(8) + R"(
  mov.u32 %r10, 8;
  @!%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r10, [%r2];
)"));
  DeviceArray<uint32_t> in(16), out(16);
  const LaunchOutcome r = k.run("k", {1}, {32}, in.address, out.address);
  EXPECT_EQ(r.error, 716);
  EXPECT_THAT(r.message, testing::HasSubstr("not a multiple of 16"));
}

TEST(Bulk, StAsyncAndRedAsyncReachTheNextBlock) {
  // Block r stores four words and one doubled word into block r+1 and adds to a counter there.
  Kernels k(kernel(R"(
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 st.shared.u32 [%r1+64], 100;
)" + prepare(16 + 4 + 32 * 4) +
                   R"(
  add.u32 %r10, %r3, 1;
  and.b32 %r10, %r10, 1;
  mapa.shared::cluster.u32 %r11, %r1, %r10;
  mapa.shared::cluster.u32 %r12, %r2, %r10;
  add.u32 %r13, %r3, 40;
  @!%p1 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r11], {%r13, %r3, %r13, %r13}, [%r12];
  @!%p1 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r11+16], %r13, [%r12];
  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r11+64], %r0, [%r12];
)" + kWait + dump(17) +
                   "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n"));
  k.cluster = {2};
  DeviceArray<uint32_t> out(34);
  const LaunchOutcome r = k.run("k", {2}, {32}, out.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint32_t other = 1 - rank, *o = &out[rank * 17];
    EXPECT_EQ((std::array{o[0], o[1], o[2], o[3], o[4]}),
              (std::array{40 + other, other, 40 + other, 40 + other, 40 + other}));
    EXPECT_EQ(o[16], 100u + 31 * 32 / 2);
  }
}

TEST(Bulk, ABarrierIsCompletedFromAnotherBlock) {
  // Block 0 waits for one arrival of each of 3 other blocks' 32 lanes and its own one.
  Kernels k(kernel(R"(
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 mbarrier.init.shared::cta.b64 [%r2], 97;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  mapa.shared::cluster.u32 %r12, %r2, 0;
  setp.eq.u32 %p4, %r3, 0;
  @%p4 bra $first;
  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r12];
  bra $end;
$first:
  @!%p1 mbarrier.arrive.shared::cta.b64 %rd10, [%r2];
)" + std::string(kWait) +
                   R"(
  mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], 1;
$end:
  barrier.cluster.arrive;
  barrier.cluster.wait;
)"));
  k.cluster = {4};
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {4}, {32}, out.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], 1u);
}

// --- tensors ---

DeviceArray<std::byte> deviceMap(const TensorMap& m) {
  DeviceArray<std::byte> at(128);
  std::memcpy(at.data(), &m, sizeof m);
  return at;
}

// A matrix of 4-byte integers, `rows` by `columns`, element (r, c) = 100 r + c.
struct Matrix {
  DeviceArray<uint32_t> data;
  TensorMap map;
  Matrix(uint32_t rows, uint32_t columns, uint16_t boxColumns, uint16_t boxRows) : data(size_t{rows} * columns) {
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t c = 0; c < columns; ++c) data[r * columns + c] = 100 * r + c;
    map.dataType = 2;
    map.rank = 2;
    map.box[0] = boxColumns;
    map.box[1] = boxRows;
    map.lastIndex[0] = columns - 1;
    map.lastIndex[1] = rows - 1;
    map.stride[0] = columns * 4;
    map.address = data.address;
  }
};

std::string tensorLoad(int32_t x, int32_t y, uint32_t bytes, uint32_t words) {
  return kernel(prepare(bytes) + "  mov.u32 %r10, " + std::to_string(x) + ";\n  mov.u32 %r11, " + std::to_string(y) +
                R"(;
  @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11}], [%r2];
)" + kWait + dump(words));
}

TEST(Bulk, TensorBoxWithZerosOutside) {
  Matrix m(6, 20, 8, 4);
  const auto map = deviceMap(m.map);
  DeviceArray<uint32_t> out(32);
  for (auto [x, y] : {std::pair{4, 1}, std::pair{-3, -1}, std::pair{16, 4}, std::pair{40, 0}}) {
    Kernels k(tensorLoad(x, y, 128, 32));
    const LaunchOutcome r = k.run("k", {1}, {32}, map.address, out.address);
    ASSERT_EQ(r.error, 0) << r.message;
    for (int32_t i = 0; i < 32; ++i) {
      const int32_t row = y + i / 8, column = x + i % 8;
      const bool inside = row >= 0 && row < 6 && column >= 0 && column < 20;
      EXPECT_EQ(out[static_cast<size_t>(i)], inside ? static_cast<uint32_t>(100 * row + column) : 0u) << i;
    }
  }
}

TEST(Bulk, TensorSwizzlesMoveSixteenByteChunks) {
  // 128-byte rows: chunk c of row r of a repeat of 8 rows lies at chunk c ^ r. 64: c ^ (r / 2 % 4). 32: c ^ (r / 4 %
  // 2).
  for (uint32_t mode = 1; mode <= 3; ++mode) {
    const uint32_t columns = 4u << mode, rows = 16;
    Matrix m(rows, 32, static_cast<uint16_t>(columns), rows);
    m.map.swizzle = static_cast<TensorMap::Swizzle>(mode);
    const auto map = deviceMap(m.map);
    const uint32_t words = columns * rows;
    Kernels k(tensorLoad(0, 0, words * 4, words));
    DeviceArray<uint32_t> out(words);
    const LaunchOutcome r = k.run("k", {1}, {64}, map.address, out.address);
    ASSERT_EQ(r.error, 0) << r.message;
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t c = 0; c < columns; ++c) {
        const uint32_t move = mode == 3 ? row % 8 : mode == 2 ? row / 2 % 4 : row / 4 % 2;
        const uint32_t chunk = c / 4 ^ move;
        EXPECT_EQ(out[row * columns + chunk * 4 + c % 4], 100 * row + c) << mode << " " << row << " " << c;
      }
  }
}

TEST(Bulk, TensorStoreLeavesOutWhatIsOutsideAndReduces) {
  Matrix m(4, 20, 8, 4);
  const auto map = deviceMap(m.map);
  const std::string body = R"(
  mad.lo.u32 %r10, %r0, 4, %r1;
  add.u32 %r11, %r0, 5000;
  st.shared.u32 [%r10], %r11;
  bar.sync 0;
  setp.ne.u32 %p1, %r0, 0;
  mov.u32 %r12, 16;
  mov.u32 %r13, -1;
  @!%p1 WHAT [%rd1, {%r12, %r13}], [%r1];
)";
  auto with = [&](const std::string& what) {
    std::string text = body;
    return text.replace(text.find("WHAT"), 4, what);
  };
  auto expected = [&](int add) {
    for (int32_t row = 0; row < 4; ++row)
      for (int32_t c = 0; c < 20; ++c) {
        uint32_t want = static_cast<uint32_t>(100 * row + c);
        if (c >= 16 && row < 3) {
          const auto stored = static_cast<uint32_t>(5000 + (row + 1) * 8 + c - 16);
          want = add ? want + stored : stored;
        }
        EXPECT_EQ(m.data[static_cast<size_t>(row * 20 + c)], want) << row << " " << c;
      }
  };
  Kernels reduce(kernel(with("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group")));
  LaunchOutcome r = reduce.run("k", {1}, {32}, map.address, map.address);
  ASSERT_EQ(r.error, 0) << r.message;
  expected(1);
  Kernels store(kernel(with("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group")));
  r = store.run("k", {1}, {32}, map.address, map.address);
  ASSERT_EQ(r.error, 0) << r.message;
  expected(0);
}

TEST(Bulk, TensorOfThreeDimensionsWithStrides) {
  // 8 x 6 x 4 elements of 2 bytes, every second row: box 8 x 6(/2) x 2.
  DeviceArray<uint16_t> data(8 * 6 * 4);
  for (uint32_t i = 0; i < data.count; ++i) data[i] = static_cast<uint16_t>(i);
  TensorMap m;
  m.dataType = 1;
  m.rank = 3;
  m.lastIndex[0] = 7, m.lastIndex[1] = 5, m.lastIndex[2] = 3;
  m.stride[0] = 16, m.stride[1] = 96;
  m.box[0] = 8, m.box[1] = 6, m.box[2] = 2;
  m.elementStride[1] = 2;
  m.address = data.address;
  const auto map = deviceMap(m);
  Kernels k(kernel(prepare(96) + R"(
  mov.u32 %r10, 0;
  mov.u32 %r11, 1;
  mov.u32 %r12, 2;
  @!%p1 cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11, %r12}], [%r2];
)" + kWait + dump(24)));
  DeviceArray<uint32_t> out(24);
  const LaunchOutcome r = k.run("k", {1}, {32}, map.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t z = 0; z < 2; ++z)
    for (uint32_t y = 0; y < 3; ++y)
      for (uint32_t x = 0; x < 8; x += 2) {
        const uint32_t row = 1 + 2 * y;
        const uint32_t first = (2 + z) * 48 + row * 8 + x;
        EXPECT_EQ(out[(z * 3 + y) * 4 + x / 2], row < 6 ? first | (first + 1) << 16 : 0u);
      }
}

TEST(Bulk, Im2colWalksThePixelsOfTheBoundingBox) {
  // One image of 4 x 3 pixels (w, h) of 4 channels, a 3 x 3 filter: bounding box from -1 to extent - 1 + (-1).
  DeviceArray<uint32_t> data(4 * 4 * 3);
  for (uint32_t i = 0; i < data.count; ++i) data[i] = 1000 + i;
  TensorMap m;
  m.mode = TensorMap::Mode::im2col;
  m.dataType = 2;
  m.rank = 4;
  m.lastIndex[0] = 3, m.lastIndex[1] = 3, m.lastIndex[2] = 2, m.lastIndex[3] = 0;
  m.stride[0] = 16, m.stride[1] = 64, m.stride[2] = 192;
  m.lowerCorner[0] = m.lowerCorner[1] = -1;
  m.upperCorner[0] = m.upperCorner[1] = -1;
  m.channelsPerPixel = 4;
  m.pixelsPerColumn = 12;
  m.address = data.address;
  const auto map = deviceMap(m);
  Kernels k(kernel(prepare(192) + R"(
  mov.u32 %r10, 0;
  mov.u32 %r11, -1;
  mov.u16 %h1, 2;
  mov.u16 %h2, 1;
  @!%p1 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11, %r11, %r10}], [%r2], {%h1, %h2};
)" + kWait + dump(48)));
  DeviceArray<uint32_t> out(48);
  const LaunchOutcome r = k.run("k", {1}, {32}, map.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  // Output pixel (i, j), i < 4, j < 3, reads pixel (i - 1 + 2, j - 1 + 1).
  for (uint32_t n = 0; n < 12; ++n)
    for (uint32_t c = 0; c < 4; ++c) {
      const uint32_t w = n % 4 + 1, h = n / 4;
      EXPECT_EQ(out[n * 4 + c], w < 4 ? 1000 + (h * 4 + w) * 4 + c : 0u) << n << " " << c;
    }
}

TEST(Bulk, SomethingElseThanATensorMapIsAnError) {
  Kernels k(tensorLoad(0, 0, 128, 32));
  DeviceArray<uint32_t> in(32), out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, in.address, out.address);
  EXPECT_EQ(r.error, 715);
  EXPECT_THAT(r.message, testing::HasSubstr("not a tensor map"));
}

TEST(Bulk, TensorMapReplacedInSharedMemory) {
  // The map is copied to shared memory, its address and extent changed there, written back and used.
  Matrix m(6, 20, 8, 4);
  DeviceArray<uint32_t> other(80, 9);
  const auto map = deviceMap(m.map);
  std::string text = kernel(prepare(128) + R"(
  add.u32 %r15, %r1, 2048;
  @%p1 bra $made;
  mov.u32 %r16, 0;
$copy:
  cvt.u64.u32 %rd5, %r16;
  add.u64 %rd5, %rd1, %rd5;
  ld.global.u32 %r17, [%rd5];
  add.u32 %r18, %r15, %r16;
  st.shared.u32 [%r18], %r17;
  add.u32 %r16, %r16, 4;
  setp.lt.u32 %p4, %r16, 128;
  @%p4 bra $copy;
  mov.u64 %rd6, )" + std::to_string(other.address) +
                                R"(;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r15], %rd6;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r15], 1, 3;
$made:
  bar.warp.sync -1;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r15], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;
  mov.u32 %r10, 0;
  mov.u32 %r11, 1;
  @!%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r10, %r11}], [%r2];
)" + kWait + dump(32),
                            ".version 8.6\n.target sm_90a\n.address_size 64\n");
  Kernels k(text);
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, map.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 16 ? 9u : 0u) << i;
}

// --- atomics of several elements ---

TEST(VectorAtomics, FloatsAndHalves) {
  Kernels k(kernel(R"(
  cvt.rn.f32.u32 %f1, %r0;
  mov.f32 %f2, 0f3F800000;
  red.global.add.v2.f32 [%rd1], {%f1, %f2};
  atom.global.v4.f32.add {%f5, %f6, %f7, %f8}, [%rd1+16], {%f2, %f2, %f1, %f2};
  mul.wide.u32 %rd3, %r0, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.f32 [%rd3], %f8;
  mov.u32 %r10, 0x3C003800;
  setp.lt.u32 %p1, %r0, 3;
  @%p1 red.global.v2.f16x2.add.noftz [%rd1+32], {%r10, %r10};
  mov.u16 %h1, 0x4000;
  @%p1 red.global.v4.bf16.max.noftz [%rd1+48], {%h1, %h1, %h1, %h1};
)"));
  DeviceArray<float> io(16), out(32);
  io[4] = 0.5f;
  const LaunchOutcome r = k.run("k", {1}, {32}, io.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(io[0], 496.0f);
  EXPECT_EQ(io[1], 32.0f);
  EXPECT_EQ(io[4], 32.5f);
  EXPECT_EQ(io[6], 496.0f);
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out[l], static_cast<float>(l));
  uint32_t bits[4];
  std::memcpy(bits, &io[8], 16);
  EXPECT_EQ(bits[0], 0x42003E00u);  // 3 x {0.5, 1}
  EXPECT_EQ(bits[1], 0x42003E00u);
  std::memcpy(bits, &io[12], 16);
  EXPECT_EQ(bits[0], 0x40004000u);
  EXPECT_EQ(bits[1], 0x40004000u);
}

TEST(VectorAtomics, OneHundredAndTwentyEightBits) {
  // Lanes exchange in order: lane l gets what lane l - 1 left. Then lane 5 alone succeeds with cas.
  Kernels k(kernel(R"(
  .reg .b128 %q<6>;
  cvt.u64.u32 %rd3, %r0;
  add.u64 %rd4, %rd3, 100;
  mov.b128 %q1, {%rd3, %rd4};
  atom.global.exch.b128 %q2, [%rd1], %q1;
  mov.b128 {%rd5, %rd6}, %q2;
  mov.u64 %rd7, 31;
  mov.u64 %rd8, 131;
  setp.ne.u32 %p1, %r0, 5;
  selp.b64 %rd7, 0, %rd7, %p1;
  mov.b128 %q3, {%rd7, %rd8};
  atom.global.cas.b128 %q4, [%rd1], %q3, %q1;
  mul.wide.u32 %rd9, %r0, 16;
  add.u64 %rd9, %rd2, %rd9;
  st.global.v2.u64 [%rd9], {%rd5, %rd6};
)"));
  DeviceArray<uint64_t> io(2), out(64);
  io[0] = 7, io[1] = 8;
  const LaunchOutcome r = k.run("k", {1}, {32}, io.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  EXPECT_EQ(out[0], 7u);
  EXPECT_EQ(out[1], 8u);
  for (uint64_t l = 1; l < 32; ++l) {
    EXPECT_EQ(out[2 * l], l - 1);
    EXPECT_EQ(out[2 * l + 1], l + 99);
  }
  EXPECT_EQ(io[0], 5u);
  EXPECT_EQ(io[1], 105u);
}

TEST(Bulk, StBulkFillsWithZeros) {
  std::string body = R"(
  mad.lo.u32 %r10, %r0, 4, %r1;
  st.shared.u32 [%r10], 3;
  bar.sync 0;
  setp.ne.u32 %p1, %r0, 0;
  @!%p1 st.bulk.weak.shared::cta [%r1+8], 64, 0;
  bar.sync 0;
)" + dump(32);
  model::DeviceModel d = testDevice();
  d.ccMajor = 10;
  d.ccMinor = 0;
  Kernels k(kernel(body, ".version 8.6\n.target sm_100\n.address_size 64\n"), d);
  DeviceArray<uint32_t> out(32);
  const LaunchOutcome r = k.run("k", {1}, {32}, out.address, out.address);
  ASSERT_EQ(r.error, 0) << r.message;
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], i >= 2 && i < 18 ? 0u : 3u);
}

}  // namespace
}  // namespace sonde::softgpu::exec
