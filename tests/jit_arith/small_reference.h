// SPDX-License-Identifier: Apache-2.0
//
// Rounding to a narrow format by looking its values up: every positive finite
// number of the format stands in a table, and an exact value is placed between
// its neighbours. Nothing is shared with the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sonde::test {

using Exact = __float128;

enum class Mode { nearest, zero, down, up, away };

class SmallReference {
 public:
  SmallReference(unsigned exponentBits, unsigned fractionBits, bool hasInfinity)
      : fractionBits_(fractionBits), bits_(1 + exponentBits + fractionBits), hasInfinity_(hasInfinity) {
    const int bias = (1 << (exponentBits - 1)) - 1;
    const unsigned top = (1u << exponentBits) - 1;
    // Without infinities only the last code of the highest exponent is no number.
    const unsigned codes = hasInfinity ? top << fractionBits : (top << fractionBits) + (1u << fractionBits) - 1;
    for (unsigned code = 0; code < codes; ++code) {
      const unsigned exponent = code >> fractionBits, fraction = code & ((1u << fractionBits) - 1);
      values_.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias - static_cast<int>(fractionBits))
                                      : std::ldexp(fraction + (1u << fractionBits),
                                                   static_cast<int>(exponent) - bias - static_cast<int>(fractionBits)));
    }
    infinity_ = codes;
    nan_ = (1u << (bits_ - 1)) - 1;
  }

  bool isNan(uint32_t code) const { return (code & nan_) >= infinity_ + (hasInfinity_ ? 1 : 0); }
  bool isInfinite(uint32_t code) const { return hasInfinity_ && (code & nan_) == infinity_; }
  uint32_t nanCode() const { return nan_; }
  double value(uint32_t code) const {
    const uint32_t magnitude = code & nan_;
    if (isNan(code)) return NAN;
    const double v = isInfinite(code) ? INFINITY : values_[magnitude];
    return code >> (bits_ - 1) & 1 ? -v : v;
  }

  // `rest`: what the exact value is beyond v (only its sign matters).
  uint32_t round(Exact v, bool negative, Mode mode, bool satfinite = false, int rest = 0) const {
    const uint32_t sign = negative ? 1u << (bits_ - 1) : 0;
    if (v != v) return nan_;
    const Exact magnitude = v < 0 ? -v : v;
    const int outward = negative ? -rest : rest;  // of the magnitude
    const auto last = static_cast<uint32_t>(values_.size() - 1);
    if (magnitude > static_cast<Exact>(1.7e308)) return sign | (satfinite ? last : hasInfinity_ ? infinity_ : nan_);
    // Below: the largest value not above the magnitude.
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude,
                                        [](Exact m, double x) { return m < static_cast<Exact>(x); });
    auto below = static_cast<uint32_t>(above - values_.begin()) - 1;
    if (static_cast<Exact>(values_[below]) == magnitude && outward < 0) --below;
    const Exact low = values_[below];
    // Beyond the last value the next one would follow at the same distance.
    const Exact high =
        below < last ? static_cast<Exact>(values_[below + 1]) : low + (low - static_cast<Exact>(values_[last - 1]));
    const bool exact = low == magnitude && outward == 0;
    bool up = false;
    if (!exact) {
      const Exact middle = (low + high) / 2;
      const int side = magnitude > middle ? 1 : magnitude < middle ? -1 : outward;
      switch (mode) {
        case Mode::nearest: up = side > 0 || (side == 0 && (below & 1)); break;
        case Mode::away: up = side >= 0; break;
        case Mode::zero: up = false; break;
        case Mode::down: up = negative; break;
        case Mode::up: up = !negative; break;
      }
      if (below == last && mode != Mode::nearest && mode != Mode::away && !up && magnitude >= high) up = false;
      if (below == last && magnitude > high && (mode == Mode::nearest || mode == Mode::away)) up = true;
    }
    const uint32_t code = below + (up ? 1 : 0);
    if (code > last) return sign | (satfinite ? last : hasInfinity_ ? infinity_ : nan_);
    return sign | code;
  }

 private:
  unsigned fractionBits_, bits_;
  bool hasInfinity_;
  std::vector<double> values_;
  uint32_t infinity_ = 0, nan_ = 0;
};

inline const SmallReference& f16Reference() {
  static const SmallReference r(5, 10, true);
  return r;
}
inline const SmallReference& bf16Reference() {
  static const SmallReference r(8, 7, true);
  return r;
}
inline const SmallReference& e4m3Reference() {
  static const SmallReference r(4, 3, false);
  return r;
}
inline const SmallReference& e5m2Reference() {
  static const SmallReference r(5, 2, true);
  return r;
}

}  // namespace sonde::test
