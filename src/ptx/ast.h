// SPDX-License-Identifier: Apache-2.0
//
// A parsed PTX module. Names in nested scopes that hide or repeat another name
// of the function are made unique ("p" -> "p$1"), so a Function's tables are
// flat. The parser builds it, the checker and the analyses read it, the JIT
// compiles it and the printer writes it back. Plain data: a Module owns
// everything and may be moved; nothing in it points into the source text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/opcodes.h"
#include "ptx/types.h"

namespace sonde::ptx {

using RegId = uint32_t;  // index into Function::registers
using VarId = uint32_t;  // index into Module::variables or Function::variables
inline constexpr uint32_t kNoId = 0xffffffffu;

struct Register {
  std::string name;  // with the '%'; "%r<4>" is expanded to %r0 … %r3
  ScalarType type = ScalarType::none;
  uint8_t vector = 1;  // .v2/.v4 register variables
};

// One 32-bit-or-wider initial value; symbol references are resolved at load.
struct Initializer {
  enum class Kind : uint8_t { integer, floating, symbol, genericSymbol, zero };
  Kind kind = Kind::integer;
  uint64_t bits = 0;       // integer value or IEEE bits of the element type
  std::string symbol;      // of a variable or function
  int64_t offset = 0;      // added to the symbol's address
  uint32_t maskShift = 0;  // for mask initialisers, 0xFF00(sym): the wanted byte's bit position (0, 8 … 56)
  bool masked = false;
};

struct Variable {
  std::string name;
  StateSpace space = StateSpace::none;
  ScalarType type = ScalarType::none;
  uint8_t vector = 1;
  uint32_t align = 0;          // bytes; never 0 after parsing
  std::vector<uint64_t> dims;  // empty: scalar; a 0 dimension: extern unsized array
  uint64_t sizeBytes = 0;      // whole object; 0 for an unsized extern
  bool isExtern = false, isVisible = false, isWeak = false, isCommon = false;
  bool isManaged = false;       // .attribute(.managed)
  bool isPointerParam = false;  // kernel parameter with .ptr
  StateSpace pointerSpace = StateSpace::none;
  uint32_t pointerAlign = 0;
  std::vector<Initializer> init;  // element by element, shorter than the object means zeros after it
  uint32_t regId = kNoId;         // space reg (a .reg parameter): the register in Function::registers that holds it
  // .samplerref/.texref fields as written: {"addr_mode_0", "wrap"}, {"filter_mode", "nearest"} …
  std::vector<std::pair<std::string, std::string>> properties;
  SourcePos pos;
};

enum class SpecialReg : uint16_t {
  tid,
  ntid,
  laneid,
  warpid,
  nwarpid,
  ctaid,
  nctaid,
  smid,
  nsmid,
  gridid,
  clusterid,
  nclusterid,
  cluster_ctaid,
  cluster_nctaid,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  pm,
  pm64,
  envreg,
  globaltimer,
  globaltimer_lo,
  globaltimer_hi,
  reserved_smem_offset_begin,
  reserved_smem_offset_end,
  reserved_smem_offset_cap,
  reserved_smem_offset,
  total_smem_size,
  aggr_smem_size,
  dynamic_smem_size,
  current_graph_exec,
};

std::string name(SpecialReg reg, uint32_t index = 0);  // "%tid"; "%envreg3" with index 3
// "%tid" and the like, without a component; false when there is none. `index` gets the number of %envregN and %pmN.
bool specialFromName(std::string_view text, SpecialReg& reg, uint32_t& index);

struct Operand {
  enum class Kind : uint8_t {
    none,      // absent optional operand
    reg,       // register, or one component of a vector register (component >= 0; a whole one becomes a vector)
    special,   // %tid.x … : special + component (0 x, 1 y, 2 z, 3 w; -1 whole) ; index for %envregN, %pmN
    integer,   // imm holds the two's complement value
    floating,  // imm holds IEEE bits: of f32 when is32 (0f…), else of f64 (0d… or a decimal literal)
    address,   // [base + offset]; base is a register, a variable, or absent
    symbol,    // a variable's or function's name used as a value (mov %rd, var; call fn)
    label,     // branch target
    vector,    // {a, b, c, d}: elements
    predPair,  // p|q: elements[0], elements[1]; either may be sink
    sink,      // _
    texture,   // [tex, {coords}] or [tex, sampler, {coords}]: elements; also a tensor's [map, {coords}]
  };
  Kind kind = Kind::none;
  bool negated = false;  // !p
  bool is32 = false;
  int8_t component = -1;
  RegId reg = kNoId;
  SpecialReg special = SpecialReg::tid;
  uint32_t index = 0;  // label: block-independent label id in Function::labels; envreg/pm number
  uint64_t imm = 0;
  // address and symbol: what the name refers to.
  enum class Ref : uint8_t {
    none,
    moduleVar,
    localVar,
    function,
    param,
    returnParam,    // Function::returns
    branchTargets,  // Function::branchTargets (brx.idx's table)
  };
  Ref ref = Ref::none;
  uint32_t refId = kNoId;  // Module::variables / Function::variables / Module::functions / Function::params …
  int64_t offset = 0;      // also of a register that is read: reg + constant
  // Video instructions: the part of the operand that is meant, as written
  // without the dot: "b2", "h1", "h10", "b7210", on a destination the mask.
  // A minus before an operand of vmad sets `negated`.
  std::string selector;
  std::vector<Operand> elements;
  SourcePos pos;
};

struct Guard {        // @p or @!p
  RegId reg = kNoId;  // kNoId: always
  bool negated = false;
};

// Modifier words after the opcode, in source order, without the types.
// `cvt.rn.ftz.f16.f32` has mods {rn, ftz} and types {f16, f32}.
struct Instruction {
  Opcode op = Opcode::invalid;
  Guard guard;
  std::vector<Mod> mods;
  std::vector<ScalarType> types;
  StateSpace space = StateSpace::none;   // first state-space modifier
  StateSpace space2 = StateSpace::none;  // second (cvta, cp.async, mapa)
  uint8_t vectorWidth = 1;               // .v2 .v4 .v8
  std::vector<Operand> operands;         // destination first, as written
  // call: return values, callee (operand kind symbol or reg), arguments.
  std::vector<Operand> callReturns, callArgs;
  uint32_t callPrototype = kNoId;  // Function::prototypes for indirect calls
  uint32_t callTargets = kNoId;    // Function::branchTargets, an indirect call with a .calltargets list
  struct Shape {
    uint16_t m = 0, n = 0, k = 0;
  } shape;                    // matrix instructions: of the mNnNkN word
  uint32_t mnemonic = kNoId;  // Module::mnemonics: opcode, modifiers and types as written
  SourcePos pos;
  uint32_t loc = kNoId;  // Module::locations: the .loc in force

  bool has(Mod m) const {
    for (Mod x : mods)
      if (x == m) return true;
    return false;
  }
  ScalarType type(size_t i = 0) const { return i < types.size() ? types[i] : ScalarType::none; }
};

// A .loc: file index, line, column, and where it was inlined.
struct Location {
  uint32_t file = 0, line = 0, column = 0;
  uint32_t inlinedAt = kNoId;  // another Location
  std::string functionName;    // of the inlined function, when given (decoded from .debug_str)
  std::string functionLabel;   // … and the label (with functionOffset) that the .loc gives for it
  uint64_t functionOffset = 0;
};

struct Label {
  std::string name;
  uint32_t instruction = 0;  // index into Function::body that it stands before
  SourcePos pos;
};

struct Prototype {  // .callprototype
  std::string name;
  std::vector<Variable> returns, params;
  bool noreturn = false;
  SourcePos pos;
};

struct BranchTargets {  // .branchtargets / .calltargets
  std::string name;
  std::vector<std::string> targets;
  std::vector<uint32_t> ids;  // of each target: Function::labels, or Module::functions when isCall
  bool isCall = false;
  uint32_t instruction = 0;  // stands before this one, as a Label does
  SourcePos pos;
};

struct PerformanceHints {
  std::array<uint32_t, 3> maxntid{0, 0, 0}, reqntid{0, 0, 0};
  std::array<uint32_t, 3> reqnctapercluster{0, 0, 0};
  uint32_t maxnreg = 0, minnctapersm = 0, maxclusterrank = 0;
  bool explicitCluster = false, noreturn = false, blocksareclusters = false;
  uint32_t abiPreserve = 0, abiPreserveControl = 0;
};

// A .pragma inside a body stands before an instruction.
struct BodyPragma {
  uint32_t instruction = 0;
  std::string text;
};

// A .entry or .func. `body` is flat; control flow is ptx::Cfg's (cfg.h).
struct Function {
  std::string name;
  bool isKernel = false;
  bool isExtern = false, isVisible = false, isWeak = false;
  bool hasBody = false;
  bool isUnified = false;  // .attribute(.unified(…))
  uint64_t unifiedId[2] = {0, 0};
  std::vector<Variable> returns, params;
  std::vector<uint32_t> paramOffsets;  // kernels: byte offset of each parameter in the packed buffer
  uint32_t paramBytes = 0;
  PerformanceHints hints;
  std::vector<Register> registers;
  std::vector<Variable> variables;  // .local/.shared/.param variables of the body
  std::vector<Label> labels;
  std::vector<Instruction> body;
  std::vector<Prototype> prototypes;
  std::vector<BranchTargets> branchTargets;
  std::vector<std::string> pragmas;  // between signature and body
  std::vector<BodyPragma> bodyPragmas;
  SourcePos pos;
};

struct SourceFile {
  uint32_t index = 0;
  std::string path;
  uint64_t timestamp = 0, size = 0;  // 0: not given
};

struct Module {
  uint32_t versionMajor = 0, versionMinor = 0;
  uint32_t target = 0;                     // 70, 90 …
  std::string targetSuffix;                // "a", "f" or ""
  std::vector<std::string> targetOptions;  // texmode_unified, debug …
  uint32_t addressSize = 64;
  std::vector<Variable> variables;  // module scope
  std::vector<Function> functions;
  std::vector<SourceFile> files;
  std::vector<Location> locations;
  std::vector<std::string> dwarfSections;                    // raw text of .section blocks
  std::vector<std::pair<std::string, std::string>> aliases;  // .alias new, old
  std::vector<std::string> pragmas;                          // at module scope
  std::vector<std::string> mnemonics;                        // each different "ld.global.nc.v4.f32" once

  const Function* findFunction(std::string_view fn) const {
    for (const auto& f : functions)
      if (f.name == fn) return &f;
    return nullptr;
  }
};

}  // namespace sonde::ptx
