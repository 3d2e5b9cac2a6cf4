// SPDX-License-Identifier: Apache-2.0
//
// A row reads: opcode; modifiers; types; operands; version; target.
//  modifiers: plain words must be there; "(a b)" exactly one of them; "[a b]" any of them; "*" not checked
//  types:     one group of alternatives for each place, groups separated by '/'; "-" none; "*" not checked
//  operands:  d0 s1 … destination/source of that type; dw sw twice the width of type 0; dp sp predicates; dp|dp,
//             d0|dp pairs; u32 … a source of that fixed type, =u32 a destination; A address; i integer constant;
//             L label; x anything; '?' behind: may be absent; "*" not checked
#include "ptx/check_rules.h"

#include <array>
#include <cassert>
#include <string>

namespace sonde::ptx {
namespace {

struct Row {
  Opcode op;
  const char* mods;
  const char* types;
  const char* operands;
  uint16_t version = 0, target = 0;
};

#define INTS "u16 u32 u64 s16 s32 s64"
#define EVICT                                                                                      \
  " L1_evict_normal L1_evict_unchanged L1_evict_first L1_evict_last L1_no_allocate L2_evict_first" \
  " L2_evict_last L2_evict_normal L2_cache_hint L2_64B L2_128B L2_256B"
#define FLOAT_COMPARE "eq ne lt le gt ge ltu leu gtu geu equ neu num cmp_nan"
#define RND "[rn rz rm rp ftz sat]"

// clang-format off
const Row kRows[] = {
    // Integer and floating-point arithmetic.
    {Opcode::add, "[cc]", "u32 s32 u64 s64", "d0 s0 s0"},
    {Opcode::add, "", "u16 s16", "d0 s0 s0"},
    {Opcode::add, "sat", "s32", "d0 s0 s0"},
    {Opcode::add, "", "u16x2 s16x2", "d0 s0 s0", 80, 90},
    {Opcode::add, RND, "f32", "d0 s0 s0"},
    {Opcode::add, "[rn rz rm rp]", "f64", "d0 s0 s0"},
    {Opcode::add, "[rn ftz sat]", "f16 f16x2", "d0 s0 s0", 42, 53},
    {Opcode::add, "[rn]", "bf16 bf16x2", "d0 s0 s0", 78, 90},
    {Opcode::add, "[rn rz rm rp ftz]", "f32x2", "d0 s0 s0", 86, 100},
    {Opcode::add, "[rn rz rm rp sat]", "f32/f16 bf16", "d0 s1 s0", 86, 100},
    {Opcode::sub, "[cc]", "u32 s32 u64 s64", "d0 s0 s0"},
    {Opcode::sub, "", "u16 s16", "d0 s0 s0"},
    {Opcode::sub, "sat", "s32", "d0 s0 s0"},
    {Opcode::sub, RND, "f32", "d0 s0 s0"},
    {Opcode::sub, "[rn rz rm rp]", "f64", "d0 s0 s0"},
    {Opcode::sub, "[rn ftz sat]", "f16 f16x2", "d0 s0 s0", 42, 53},
    {Opcode::sub, "[rn]", "bf16 bf16x2", "d0 s0 s0", 78, 90},
    {Opcode::sub, "[rn rz rm rp ftz]", "f32x2", "d0 s0 s0", 86, 100},
    {Opcode::sub, "[rn rz rm rp sat]", "f32/f16 bf16", "d0 s1 s0", 86, 100},
    {Opcode::addc, "[cc]", INTS, "d0 s0 s0"},
    {Opcode::subc, "[cc]", INTS, "d0 s0 s0"},
    {Opcode::mul, "wide", "u16 u32 s16 s32", "dw s0 s0"},
    {Opcode::mul, "(lo hi)", INTS, "d0 s0 s0"},
    {Opcode::mul, RND, "f32", "d0 s0 s0"},
    {Opcode::mul, "[rn rz rm rp]", "f64", "d0 s0 s0"},
    {Opcode::mul, "[rn ftz sat]", "f16 f16x2", "d0 s0 s0", 42, 53},
    {Opcode::mul, "[rn]", "bf16 bf16x2", "d0 s0 s0", 78, 90},
    {Opcode::mul, "[rn rz rm rp ftz]", "f32x2", "d0 s0 s0", 86, 100},
    {Opcode::mad, "wide", "u16 u32 s16 s32", "dw s0 s0 sw"},
    {Opcode::mad, "(lo hi)", INTS, "d0 s0 s0 s0"},
    {Opcode::mad, "(lo hi) cc", "u32 s32 u64 s64", "d0 s0 s0 s0"},
    {Opcode::mad, "hi sat", "s32", "d0 s0 s0 s0"},
    {Opcode::mad, RND, "f32", "d0 s0 s0 s0"},
    {Opcode::mad, "(rn rz rm rp)", "f64", "d0 s0 s0 s0"},
    {Opcode::madc, "(lo hi) [cc]", "u32 s32 u64 s64", "d0 s0 s0 s0"},
    {Opcode::mul24, "(lo hi)", "u32 s32", "d0 s0 s0"},
    {Opcode::mad24, "(lo hi) [sat]", "u32 s32", "d0 s0 s0 s0"},
    {Opcode::sad, "", INTS, "d0 s0 s0 s0"},
    {Opcode::div, "", INTS, "d0 s0 s0"},
    {Opcode::div, "(approx full rn rz rm rp) [ftz]", "f32", "d0 s0 s0"},
    {Opcode::div, "(rn rz rm rp)", "f64", "d0 s0 s0"},
    {Opcode::rem, "", INTS, "d0 s0 s0"},
    {Opcode::abs, "", "s16 s32 s64 f64", "d0 s0"},
    {Opcode::abs, "[ftz]", "f32", "d0 s0"},
    {Opcode::abs, "[ftz]", "f16 f16x2", "d0 s0", 65, 53},
    {Opcode::abs, "", "bf16 bf16x2", "d0 s0", 70, 80},
    {Opcode::neg, "", "s16 s32 s64 f64", "d0 s0"},
    {Opcode::neg, "[ftz]", "f32", "d0 s0"},
    {Opcode::neg, "[ftz]", "f16 f16x2", "d0 s0", 60, 53},
    {Opcode::neg, "", "bf16 bf16x2", "d0 s0", 70, 80},
    {Opcode::min, "", INTS, "d0 s0 s0"},
    {Opcode::min, "relu", "s32", "d0 s0 s0", 80, 90},
    {Opcode::min, "", "u16x2", "d0 s0 s0", 80, 90},
    {Opcode::min, "[relu]", "s16x2", "d0 s0 s0", 80, 90},
    {Opcode::min, "[ftz nan_ xorsign abs]", "f32", "d0 s0 s0 s0?"},
    {Opcode::min, "", "f64", "d0 s0 s0"},
    {Opcode::min, "[ftz nan_ xorsign abs]", "f16 f16x2", "d0 s0 s0", 70, 80},
    {Opcode::min, "[nan_ xorsign abs]", "bf16 bf16x2", "d0 s0 s0", 70, 80},
    {Opcode::max, "", INTS, "d0 s0 s0"},
    {Opcode::max, "relu", "s32", "d0 s0 s0", 80, 90},
    {Opcode::max, "", "u16x2", "d0 s0 s0", 80, 90},
    {Opcode::max, "[relu]", "s16x2", "d0 s0 s0", 80, 90},
    {Opcode::max, "[ftz nan_ xorsign abs]", "f32", "d0 s0 s0 s0?"},
    {Opcode::max, "", "f64", "d0 s0 s0"},
    {Opcode::max, "[ftz nan_ xorsign abs]", "f16 f16x2", "d0 s0 s0", 70, 80},
    {Opcode::max, "[nan_ xorsign abs]", "bf16 bf16x2", "d0 s0 s0", 70, 80},
    {Opcode::popc, "", "b32 b64", "=u32 s0"},
    {Opcode::clz, "", "b32 b64", "=u32 s0"},
    {Opcode::bfind, "[shiftamt]", "u32 u64 s32 s64", "=u32 s0"},
    {Opcode::fns, "", "b32", "d0 s0 s0 s32", 60, 30},
    {Opcode::brev, "", "b32 b64", "d0 s0"},
    {Opcode::bfe, "", "u32 u64 s32 s64", "d0 s0 u32 u32"},
    {Opcode::bfi, "", "b32 b64", "d0 s0 s0 u32 u32"},
    {Opcode::szext, "(clamp wrap)", "u32 s32", "d0 s0 u32", 76, 70},
    {Opcode::bmsk, "(clamp wrap)", "b32", "d0 s0 s0", 76, 70},
    {Opcode::dp4a, "", "u32 s32/u32 s32", "=b32 b32 b32 b32", 50, 61},
    {Opcode::dp2a, "(lo hi)", "u32 s32/u32 s32", "=b32 b32 b32 b32", 50, 61},
    {Opcode::testp, "(finite infinite number notanumber normal subnormal)", "f32 f64", "dp s0"},
    {Opcode::copysign, "", "f32 f64", "d0 s0 s0"},
    {Opcode::fma, "(rn rz rm rp) [ftz sat]", "f32", "d0 s0 s0 s0"},
    {Opcode::fma, "(rn rz rm rp)", "f64", "d0 s0 s0 s0"},
    {Opcode::fma, "rn [ftz sat relu oob]", "f16 f16x2", "d0 s0 s0 s0", 42, 53},
    {Opcode::fma, "rn [relu oob]", "bf16 bf16x2", "d0 s0 s0 s0", 70, 80},
    {Opcode::fma, "(rn rz rm rp) [ftz]", "f32x2", "d0 s0 s0 s0", 86, 100},
    {Opcode::fma, "(rn rz rm rp) [sat]", "f32/f16 bf16", "d0 s1 s1 s0", 86, 100},
    {Opcode::rcp, "(approx rn rz rm rp) [ftz]", "f32", "d0 s0"},
    {Opcode::rcp, "(rn rz rm rp)", "f64", "d0 s0"},
    {Opcode::rcp, "approx ftz", "f64", "d0 s0"},
    {Opcode::sqrt, "(approx rn rz rm rp) [ftz]", "f32", "d0 s0"},
    {Opcode::sqrt, "(rn rz rm rp)", "f64", "d0 s0"},
    {Opcode::rsqrt, "approx [ftz]", "f32 f64", "d0 s0"},
    {Opcode::sin, "approx [ftz]", "f32", "d0 s0"},
    {Opcode::cos, "approx [ftz]", "f32", "d0 s0"},
    {Opcode::lg2, "approx [ftz]", "f32", "d0 s0"},
    {Opcode::ex2, "approx [ftz]", "f32", "d0 s0"},
    {Opcode::ex2, "approx", "f16 f16x2", "d0 s0", 70, 75},
    {Opcode::ex2, "approx ftz", "bf16 bf16x2", "d0 s0", 78, 90},
    {Opcode::tanh, "approx", "f32 f16 f16x2", "d0 s0", 70, 75},
    {Opcode::tanh, "approx", "bf16 bf16x2", "d0 s0", 78, 90},

    // Comparison, selection, logic, shifts.
    {Opcode::setp, "(eq ne) [and_ or_ xor_]", "b16 b32 b64", "dp|dp s0 s0 sp?"},
    {Opcode::setp, "(eq ne lt le gt ge) [and_ or_ xor_]", "s16 s32 s64", "dp|dp s0 s0 sp?"},
    {Opcode::setp, "(eq ne lt le gt ge lo ls hi hs) [and_ or_ xor_]", "u16 u32 u64", "dp|dp s0 s0 sp?"},
    {Opcode::setp, "(" FLOAT_COMPARE ") [and_ or_ xor_ ftz]", "f32 f16 f16x2", "dp|dp s0 s0 sp?"},
    {Opcode::setp, "(" FLOAT_COMPARE ") [and_ or_ xor_]", "f64", "dp|dp s0 s0 sp?"},
    {Opcode::setp, "(" FLOAT_COMPARE ") [and_ or_ xor_]", "bf16 bf16x2", "dp|dp s0 s0 sp?", 78, 90},
    {Opcode::set, "(eq ne lt le gt ge lo ls hi hs ltu leu gtu geu equ neu num cmp_nan) [and_ or_ xor_ ftz]",
     "u32 s32 f32 u16 s16 f16 bf16 f16x2 bf16x2/b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64 f16 bf16 f16x2 bf16x2",
     "d0 s1 s1 sp?"},
    {Opcode::selp, "", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", "d0 s0 s0 sp"},
    {Opcode::slct, "[ftz]", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64/s32 f32", "d0 s0 s0 s1"},
    {Opcode::and_, "", "pred b16 b32 b64", "d0 s0 s0"},
    {Opcode::or_, "", "pred b16 b32 b64", "d0 s0 s0"},
    {Opcode::xor_, "", "pred b16 b32 b64", "d0 s0 s0"},
    {Opcode::not_, "", "pred b16 b32 b64", "d0 s0"},
    {Opcode::cnot, "", "b16 b32 b64", "d0 s0"},
    {Opcode::lop3, "", "b32", "d0 s0 s0 s0 i"},
    {Opcode::lop3, "(or_ and_)", "b32", "d0|dp s0 s0 s0 i sp", 82, 70},
    {Opcode::shf, "(l r) (clamp wrap)", "b32", "d0 s0 s0 u32"},
    {Opcode::shl, "", "b16 b32 b64", "d0 s0 u32"},
    {Opcode::shr, "", "b16 b32 b64 u16 u32 u64 s16 s32 s64", "d0 s0 u32"},
    {Opcode::prmt, "[mode_f4e mode_b4e mode_rc8 mode_ecl mode_ecr mode_rc16]", "b32", "d0 s0 s0 u32"},

    // Movement and conversion (mov, ld, st, cvt have rules in code as well).
    {Opcode::mov, "", "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64", "x x"},
    {Opcode::cvt, "*", "*", "*"},
    {Opcode::ld, "[weak volatile_ mmio relaxed acquire cta cluster gpu sys ca cg cs lu cv nc unified" EVICT "]",
     "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64", "x A x?"},
    {Opcode::ldu, "", "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64", "x A"},
    {Opcode::st, "async *", "*", "*", 81, 90},
    {Opcode::st, "bulk [weak]", "*", "A x i", 86, 100},
    {Opcode::st, "[weak volatile_ mmio relaxed release cta cluster gpu sys wb cg cs wt" EVICT "]",
     "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64", "A x x?"},
    {Opcode::cvta, "[to]", "u32 u64", "d0 x"},
    {Opcode::isspacep, "", "-", "dp x"},
    {Opcode::istypep, "", "texref samplerref surfref", "dp x"},
    {Opcode::mapa, "", "u32 u64", "d0 x u32", 78, 90},
    {Opcode::getctarank, "", "u32 u64", "=u32 x", 78, 90},
    {Opcode::prefetch, "(L1 L2 L2_evict_last L2_evict_normal tensormap)", "-", "A"},
    {Opcode::prefetchu, "L1", "-", "A"},
    {Opcode::applypriority, "*", "-", "A i", 74, 80},
    {Opcode::discard, "L2", "-", "A i", 74, 80},
    {Opcode::createpolicy, "*", "b64", "*", 74, 80},
    {Opcode::alloca, "", "u32 u64", "*", 73, 52},
    {Opcode::stacksave, "", "u32 u64", "d0", 73, 52},
    {Opcode::stackrestore, "", "u32 u64", "s0", 73, 52},

    // Control.
    {Opcode::bra, "[uni]", "-", "L"},
    {Opcode::brx, "idx [uni]", "-", "u32 x", 60, 30},
    {Opcode::call, "[uni]", "-", "*"},
    {Opcode::ret, "[uni]", "-", ""},
    {Opcode::exit, "", "-", ""},
    {Opcode::trap, "", "-", ""},
    {Opcode::brkpt, "", "-", ""},
    {Opcode::nanosleep, "", "u32", "s0", 63, 70},
    {Opcode::pmevent, "[mask]", "-", "i"},

    // Atomics, barriers, warp-wide operations.
    {Opcode::atom, "*", "*", "*"},
    {Opcode::red, "async *", "*", "*", 81, 90},
    {Opcode::red, "*", "*", "*"},
    {Opcode::bar, "warp sync", "-", "b32", 60, 30},
    {Opcode::bar, "sync [cta]", "-", "u32 u32?"},
    {Opcode::bar, "arrive [cta]", "-", "u32 u32"},
    {Opcode::bar, "red popc [cta]", "u32", "*"},
    {Opcode::bar, "red (and_ or_) [cta]", "pred", "*"},
    {Opcode::barrier, "cluster arrive [release relaxed aligned]", "-", "", 78, 90},
    {Opcode::barrier, "cluster wait [acquire aligned]", "-", "", 78, 90},
    {Opcode::barrier, "sync [cta aligned]", "-", "u32 u32?", 60, 30},
    {Opcode::barrier, "arrive [cta aligned]", "-", "u32 u32", 60, 30},
    {Opcode::barrier, "red popc [cta aligned]", "u32", "*", 60, 30},
    {Opcode::barrier, "red (and_ or_) [cta aligned]", "pred", "*", 60, 30},
    {Opcode::membar, "(cta gl sys)", "-", ""},
    {Opcode::membar, "proxy *", "-", "*"},
    {Opcode::fence, "*", "*", "*", 60, 70},
    {Opcode::vote, "sync (all any uni)", "pred", "dp sp b32", 60, 30},
    {Opcode::vote, "sync ballot", "b32", "d0 sp b32", 60, 30},
    {Opcode::vote, "(all any uni)", "pred", "dp sp"},
    {Opcode::vote, "ballot", "b32", "d0 sp"},
    {Opcode::shfl, "sync (up down bfly idx)", "b32", "d0|dp s0 u32 u32 u32", 60, 30},
    {Opcode::shfl, "(up down bfly idx)", "b32", "d0|dp s0 u32 u32"},
    {Opcode::match, "any sync", "b32 b64", "=b32 s0 u32", 60, 70},
    {Opcode::match, "all sync", "b32 b64", "=b32|dp s0 u32", 60, 70},
    {Opcode::activemask, "", "b32", "d0", 62, 30},
    {Opcode::redux, "sync (add min max)", "u32 s32", "d0 s0 u32", 70, 80},
    {Opcode::redux, "sync (and_ or_ xor_)", "b32", "d0 s0 u32", 70, 80},
    {Opcode::redux, "sync (min max) [abs nan_]", "f32", "d0 s0 u32", 86, 100},
    {Opcode::elect, "sync", "-", "=b32|dp u32", 80, 90},
    {Opcode::griddepcontrol, "(launch_dependents wait)", "-", "", 78, 90},
    {Opcode::setmaxnreg, "(inc dec) sync aligned", "u32", "i", 80, 90},
    {Opcode::mbarrier, "*", "*", "*", 70, 80},
    {Opcode::clusterlaunchcontrol, "*", "*", "*", 86, 100},

    // Asynchronous copies and matrices.
    {Opcode::cp, "async bulk *", "*", "*", 80, 90},
    {Opcode::cp, "reduce *", "*", "*", 80, 90},
    {Opcode::cp, "*", "*", "*", 70, 80},
    {Opcode::ldmatrix, "*", "*", "x A", 65, 75},
    {Opcode::stmatrix, "*", "*", "A x", 78, 90},
    {Opcode::movmatrix, "*", "b16", "=b32 b32", 78, 75},
    {Opcode::mma, "*", "*", "*", 64, 70},
    {Opcode::wmma, "*", "*", "*", 60, 70},
    {Opcode::wgmma, "*", "*", "*", 80, 90},
    {Opcode::tcgen05, "*", "*", "*", 86, 100},
    {Opcode::multimem, "*", "*", "*", 81, 90},
    {Opcode::tensormap, "*", "*", "*", 83, 90},

    // Textures and surfaces.
    {Opcode::tex, "*", "*", "*"},
    {Opcode::tld4, "*", "*", "*"},
    {Opcode::txq, "*", "b32", "x A x?"},
    {Opcode::suld, "*", "*", "x x"},
    {Opcode::sust, "*", "*", "x x"},
    {Opcode::sured, "*", "*", "x x"},
    {Opcode::suq, "*", "b32", "x A"},
};

// clang-format on

// Video instructions have one shape: types of result and operands, and an optional secondary operand.
constexpr Opcode kVideo[] = {Opcode::vabsdiff, Opcode::vabsdiff2, Opcode::vabsdiff4, Opcode::vadd,  Opcode::vadd2,
                             Opcode::vadd4,    Opcode::vavrg2,    Opcode::vavrg4,    Opcode::vmad,  Opcode::vmax,
                             Opcode::vmax2,    Opcode::vmax4,     Opcode::vmin,      Opcode::vmin2, Opcode::vmin4,
                             Opcode::vset,     Opcode::vset2,     Opcode::vset4,     Opcode::vshl,  Opcode::vshr,
                             Opcode::vsub,     Opcode::vsub2,     Opcode::vsub4};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

// The table writes C++ enumerators, so that a word with a suffix (and_) reads as in code.
Mod modFromEnumerator(std::string_view word) {
#define SONDE_PTX_MOD(id, text) \
  if (word == #id) return Mod::id;
  SONDE_PTX_MODS(SONDE_PTX_MOD)
#undef SONDE_PTX_MOD
  assert(!"a misspelt word in the table");
  return Mod::invalid;
}

OperandRule parseOperand(std::string_view word) {
  using Kind = OperandRule::Kind;
  OperandRule r;
  if (word.back() == '?') {
    r.optional = true;
    word.remove_suffix(1);
  }
  auto typed = [&](Kind kind, std::string_view type) {
    r.kind = kind;
    r.type = typeFromName(type);
    assert(r.type != ScalarType::none);
  };
  if (word == "x")
    r.kind = Kind::any;
  else if (word == "A")
    r.kind = Kind::address;
  else if (word == "i")
    r.kind = Kind::immediate;
  else if (word == "L")
    r.kind = Kind::label;
  else if (word == "dw")
    r.kind = Kind::wideDest;
  else if (word == "sw")
    r.kind = Kind::wideSource;
  else if (word == "dp")
    r.kind = Kind::predDest;
  else if (word == "sp")
    r.kind = Kind::predSource;
  else if (word == "dp|dp")
    r.kind = Kind::predPair;
  else if (word == "d0|dp")
    r.kind = Kind::pairDest;
  else if (word.ends_with("|dp"))
    typed(Kind::pairDest, word.substr(1, word.size() - 4));
  else if (word[0] == '=')
    typed(Kind::destOf, word.substr(1));
  else if ((word[0] == 'd' || word[0] == 's') && word.size() == 2) {
    r.kind = word[0] == 'd' ? Kind::dest : Kind::source;
    r.typeIndex = static_cast<uint8_t>(word[1] - '0');
  } else
    typed(Kind::sourceOf, word);
  return r;
}

InstructionRule parseRow(const Row& row) {
  InstructionRule r{row.op, {}, {}, {}, {}, false, false, false, {}, row.version, row.target};
  std::vector<Mod>* into = &r.keys;
  for (std::string_view word : split(row.mods, ' ')) {
    if (word == "*") {
      r.openMods = true;
      continue;
    }
    if (word[0] == '(') {
      into = &r.oneOf.emplace_back();
      word.remove_prefix(1);
    } else if (word[0] == '[') {
      into = &r.optional;
      word.remove_prefix(1);
    }
    const bool closes = word.back() == ')' || word.back() == ']';
    if (closes) word.remove_suffix(1);
    into->push_back(modFromEnumerator(word));
    if (closes) into = &r.keys;
  }
  const std::string_view types = row.types;
  if (types == "*")
    r.openTypes = true;
  else if (types != "-")
    for (const auto group : split(types, '/')) {
      auto& place = r.types.emplace_back();
      for (const auto t : split(group, ' ')) {
        place.push_back(typeFromName(t));
        assert(place.back() != ScalarType::none);
      }
    }
  const std::string_view operands = row.operands;
  if (operands == "*")
    r.openOperands = true;
  else
    for (const auto word : split(operands, ' ')) r.operands.push_back(parseOperand(word));
  return r;
}

}  // namespace

const std::vector<InstructionRule>& rulesOf(Opcode op) {
  static const auto table = [] {
    std::array<std::vector<InstructionRule>, static_cast<size_t>(Opcode::count_)> t;
    for (const Row& row : kRows) t[static_cast<size_t>(row.op)].push_back(parseRow(row));
    for (const Opcode v : kVideo) t[static_cast<size_t>(v)].push_back(parseRow({v, "*", "u32 s32/u32 s32", "*"}));
    return t;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace sonde::ptx
