// SPDX-License-Identifier: Apache-2.0
//
// The small vocabulary of PTX: scalar types, state spaces, source positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sonde::ptx {

enum class ScalarType : uint8_t {
  none,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  f32,
  f32x2,
  f64,
  u16x2,
  s16x2,
  s4,
  u4,
  b1,
  pred,
  texref,
  samplerref,
  surfref,
  e2m1,
  e2m3,
  e3m2,
  ue8m0,
  ue4m3,
  e2m1x2,
  e2m3x2,
  e3m2x2,
  ue8m0x2,
  e4m3x4,
  e5m2x4,
  e2m1x4,
  e2m3x4,
  e3m2x4,
  b1024,
};

enum class StateSpace : uint8_t {
  none,  // generic address, or not an address
  reg,
  sreg,
  const_,
  global,
  local,
  param,
  shared,
  sharedCta,
  sharedCluster,
  paramEntry,
  paramFunc,
  tex,
};

constexpr unsigned bitsOf(ScalarType t) {
  using enum ScalarType;
  switch (t) {
    case b1:
    case pred: return 1;
    case s4:
    case u4:
    case e2m1: return 4;
    case e2m3:
    case e3m2: return 6;
    case b8:
    case u8:
    case s8:
    case e4m3:
    case e5m2:
    case ue8m0:
    case ue4m3:
    case e2m1x2: return 8;
    case b16:
    case u16:
    case s16:
    case f16:
    case bf16:
    case e4m3x2:
    case e5m2x2:
    case e2m3x2:
    case e3m2x2:
    case ue8m0x2:
    case e2m1x4: return 16;
    case b32:
    case u32:
    case s32:
    case f32:
    case f16x2:
    case bf16x2:
    case tf32:
    case u16x2:
    case s16x2:
    case e4m3x4:
    case e5m2x4:
    case e2m3x4:
    case e3m2x4: return 32;
    case b64:
    case u64:
    case s64:
    case f64:
    case f32x2:
    case texref:
    case samplerref:
    case surfref: return 64;
    case b128: return 128;
    case b1024: return 1024;
    case none: return 0;
  }
  return 0;
}

constexpr bool isSigned(ScalarType t) {
  using enum ScalarType;
  return t == s8 || t == s16 || t == s32 || t == s64 || t == s16x2 || t == s4;
}

constexpr bool isFloat(ScalarType t) {
  using enum ScalarType;
  return t == f16 || t == bf16 || t == f32 || t == f64 || t == f16x2 || t == bf16x2 || t == tf32 || t == f32x2 ||
         t == e4m3 || t == e5m2 || t == e4m3x2 || t == e5m2x2 || (t >= e2m1 && t <= e3m2x4);
}

// A place in the PTX text; both count from 1, 0 means unknown.
struct SourcePos {
  uint32_t line = 0;
  uint32_t column = 0;
};

// What is wrong with a PTX text, as the driver's JIT log shows it.
struct Diagnostic {
  enum class Severity : uint8_t { warning, error, unsupported };
  Severity severity = Severity::error;
  SourcePos pos;
  std::string message;  // says what was found and what was expected
};

std::string_view name(ScalarType type);           // "f16x2"; "" for none
std::string_view name(StateSpace space);          // "shared::cta"
ScalarType typeFromName(std::string_view text);   // none when unknown
StateSpace spaceFromName(std::string_view text);  // none when unknown

}  // namespace sonde::ptx
