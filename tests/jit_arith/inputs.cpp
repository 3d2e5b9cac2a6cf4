// SPDX-License-Identifier: Apache-2.0
#include "inputs.h"

#include <algorithm>

namespace sonde::test {

uint64_t nextRandom(uint64_t& state) {  // splitmix64
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<Slots> combine(const std::vector<std::vector<uint64_t>>& edges, size_t randomCount,
                           const std::function<uint64_t(uint64_t, size_t)>& shape) {
  std::vector<Slots> all(1, Slots{});
  for (size_t slot = 0; slot < edges.size(); ++slot) {
    std::vector<Slots> next;
    next.reserve(all.size() * edges[slot].size());
    for (const Slots& s : all)
      for (uint64_t v : edges[slot]) {
        next.push_back(s);
        next.back()[slot] = v;
      }
    all = std::move(next);
  }
  uint64_t state = 42;
  for (size_t i = 0; i < randomCount; ++i) {
    Slots s{};
    for (size_t slot = 0; slot < edges.size(); ++slot) {
      const uint64_t r = nextRandom(state);
      s[slot] = shape ? shape(r, slot) : r;
    }
    s[6] = nextRandom(state) & 1;
    all.push_back(s);
  }
  return all;
}

std::vector<uint64_t> edgesInt(unsigned bits) {
  const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t top = uint64_t{1} << (bits - 1);
  std::vector<uint64_t> v{0, 1, 2, 3, 5, 7, 8, 10, all, all - 1, all - 2, top, top - 1, top + 1, all / 3, all / 5 * 2};
  for (unsigned i = 4; i < bits; i += 5) v.push_back(uint64_t{1} << i);
  if (bits >= 32) v.insert(v.end(), {31, 32, 33, 63, 64, 65, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000});
  if (bits == 64) v.insert(v.end(), {0x7fffffff, 0x80000000, 0xffffffff, 0x100000000});
  return v;
}

std::vector<uint64_t> edgesF32() {
  return {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x00800001,
          0x33800000, 0x34000000, 0x3e99999a, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0xbf800000, 0x3f800001,
          0x3fc00000, 0x40000000, 0xc0400000, 0x40490fdb, 0x4b000001, 0x4b800000, 0x4f000000, 0x5f000000, 0x7e800000,
          0x7e800001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001};
}

std::vector<uint64_t> edgesF64() {
  return {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001, 0x000fffffffffffff,
          0x0010000000000000, 0x8010000000000001, 0x3690000000000000, 0x380fffffffffffff, 0x3810000000000000,
          0x3ca0000000000000, 0x3fe0000000000000, 0x3fefffffffffffff, 0x3ff0000000000000, 0xbff0000000000000,
          0x3ff0000000000001, 0x3ff8000000000000, 0xc008000000000000, 0x400921fb54442d18, 0x41dfffffffc00000,
          0x41e0000000000000, 0x4330000000000001, 0x43e0000000000000, 0x47efffffe0000000, 0x47effffff0000000,
          0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
          0xfff8000012345678, 0x7ff0000000000001};
}

std::vector<uint64_t> edgesF16() {
  return {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8401, 0x1400, 0x37ff, 0x3800, 0x3bff, 0x3c00, 0xbc00,
          0x3c01, 0x3e00, 0x4000, 0xc200, 0x4248, 0x63ff, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01};
}

std::vector<uint64_t> edgesBf16() {
  return {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x0080, 0x8081, 0x1f80, 0x2f81,
          0x3eff, 0x3f00, 0x3f7f, 0x3f80, 0xbf80, 0x3f81, 0x3fc0, 0x4000, 0xc040,
          0x4049, 0x4f00, 0x7e80, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1};
}

namespace {

std::vector<uint64_t> edgesOf(const std::string& kind) {
  if (kind == "pred") return {0, 1};
  if (kind == "u8" || kind == "s8") {
    std::vector<uint64_t> v;
    for (uint64_t i = 0; i < 256; i += 5) v.push_back(i);
    v.insert(v.end(), {0x7f, 0x80, 0x81, 0xfe, 0xff, 0x1234, 0xff80, 0xabff});  // upper bits are not the operand's
    return v;
  }
  if (kind == "f16") return edgesF16();
  if (kind == "bf16") return edgesBf16();
  if (kind == "f32") return edgesF32();
  if (kind == "f64") return edgesF64();
  if (kind == "n32")
    return {0,  1,  2,  3,  4,  5,  7,  8,   9,   12,  15,  16,  17,  20,    24,         30,         31,        32,
            33, 40, 48, 62, 63, 64, 65, 127, 128, 254, 255, 256, 257, 0x120, 0x7fffffff, 0x80000000, 0xffffffff};
  if (kind == "lane") return {0, 1, 2, 5, 15, 16, 17, 30, 31};
  if (kind == "offset")
    return {0, 1, 2, 3, 4, 8, 16, 31, 32, 33, 0xffffffff, 0xfffffffe, 0xfffffffc, 0xfffffff0, 0xffffffe0};
  if (kind == "f16x2" || kind == "bf16x2") {
    const auto half = kind == "f16x2" ? edgesF16() : edgesBf16();
    std::vector<uint64_t> v;
    for (size_t i = 0; i < half.size(); ++i) v.push_back(half[i] | half[(i * 7 + 3) % half.size()] << 16);
    return v;
  }
  if (kind == "angle" || kind == "exponent") return {0};
  if (kind.ends_with("16")) return edgesInt(16);
  if (kind.ends_with("64")) return edgesInt(64);
  return edgesInt(32);
}

uint64_t randomOf(const std::string& kind, uint64_t r) {
  const uint64_t choice = r >> 60;
  if (kind == "pred") return r & 1;
  if (kind == "n32") return choice < 12 ? (r >> 8) & 63 : r & 0xffffffff;
  if (kind == "lane") return r & 31;
  if (kind == "offset") return static_cast<uint32_t>(static_cast<int>(r % 41) - 20);
  // Exponents near one another, so that sums cancel and round.
  if (kind == "f32") return choice < 8 ? (r & 0x807fffff) | ((118 + ((r >> 32) & 15)) << 23) : r & 0xffffffff;
  if (kind == "f64")
    return choice < 8 ? (r & 0x800fffffffffffff) | ((1010 + ((r * 0x9e3779b97f4a7c15u) >> 59)) << 52) : r;
  if (kind == "f16") return choice < 8 ? (r & 0x83ff) | ((10 + ((r >> 32) % 10)) << 10) : r & 0xffff;
  if (kind == "bf16") return choice < 8 ? (r & 0x807f) | ((118 + ((r >> 32) & 15)) << 7) : r & 0xffff;
  if (kind == "f16x2" || kind == "bf16x2") {
    const std::string half = kind.substr(0, kind.size() - 2);
    return randomOf(half, r) | randomOf(half, (r << 13) | (r >> 51)) << 16;
  }
  // Single-precision values in [-8, 8), some in [-512, 512); and in [-160, 160).
  auto f32Of = [](double v) {
    const float f = static_cast<float>(v);
    uint32_t bits;
    __builtin_memcpy(&bits, &f, 4);
    return static_cast<uint64_t>(bits);
  };
  const double unit = static_cast<double>(static_cast<int64_t>(r << 8)) / 9.223372036854775808e18;
  if (kind == "angle") return f32Of(unit * (choice < 12 ? 6.28 : 512.0));
  if (kind == "exponent") return f32Of(unit * 160.0);
  if (kind.ends_with("8")) return r & 0xffff;
  // Integers of all magnitudes.
  const unsigned bits = kind.ends_with("64") ? 64 : kind.ends_with("16") ? 16 : 32;
  const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t value = (r & all) >> (choice < 8 ? 0 : (r >> 50) % bits);
  return (choice & 1) ? value : (0 - value) & all;
}

}  // namespace

std::vector<GoldenOperand> goldenOperands(const std::string& line) {
  std::vector<GoldenOperand> operands;
  // Every register is written name[.selector]:kind; find the colons.
  for (size_t colon = line.find(':'); colon != std::string::npos; colon = line.find(':', colon + 1)) {
    size_t begin = colon;
    while (begin > 0 && std::string(" |{,!-").find(line[begin - 1]) == std::string::npos) --begin;
    const size_t end = std::min(line.find_first_of(" |},", colon), line.size());
    operands.push_back({line[begin], line.substr(colon + 1, end - colon - 1)});
  }
  return operands;
}

std::vector<Slots> goldenInputs(const std::string& line) {
  std::vector<GoldenOperand> inputs;
  for (const GoldenOperand& o : goldenOperands(line))
    if (o.name >= 'a') inputs.push_back(o);
  const size_t count = inputs.size() == 1 ? 224 : 288;
  const size_t edgeCount = inputs.size() == 1 ? edgesOf(inputs[0].kind).size() : count * 5 / 8;
  uint64_t state = 1;
  for (char ch : line) state = state * 131 + static_cast<unsigned char>(ch);
  std::vector<Slots> all;
  for (size_t i = 0; i < count; ++i) {
    Slots s{};
    for (size_t n = 0; n < inputs.size(); ++n) {
      const auto edges = edgesOf(inputs[n].kind);
      const uint64_t r = nextRandom(state);
      uint64_t& v = s[static_cast<size_t>(inputs[n].name - 'a')];
      if (i < edgeCount)
        v = inputs.size() == 1 ? edges[i] : edges[r % edges.size()];
      else
        v = randomOf(inputs[n].kind, r);
    }
    s[6] = nextRandom(state) & 1;
    all.push_back(s);
  }
  return all;
}

unsigned goldenBytes(const std::string& kind) {
  if (kind == "pred" || kind == "u8" || kind == "s8") return 1;
  if (kind == "f16" || kind == "bf16" || (kind.ends_with("16") && kind.size() == 3)) return 2;
  return kind.ends_with("64") ? 8 : 4;
}

bool goldenWritesCarry(const std::string& line) {
  return line.substr(0, line.find(' ')).find(".cc") != std::string::npos;
}

}  // namespace sonde::test
