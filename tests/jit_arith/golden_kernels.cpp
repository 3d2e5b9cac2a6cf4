// SPDX-License-Identifier: Apache-2.0
#include "golden_kernels.h"

#include <sstream>

#include "inputs.h"

namespace sonde::test {

namespace {

// The register class of a kind: p (predicate), h (16 bits), r (32), d (64).
char classOf(const std::string& kind) {
  if (kind == "pred") return 'p';
  if (kind == "u8" || kind == "s8" || kind == "f16" || kind == "bf16" || (kind.size() == 3 && kind.ends_with("16")))
    return 'h';
  return kind.ends_with("64") ? 'd' : 'r';
}

struct Writer {
  std::string loads, stores;

  // The operand as PTX writes it; its load or store is noted on the way.
  std::string operand(const std::string& text) {
    if (text[0] == '{') return "{" + list(text.substr(1, text.size() - 2), ',') + "}";
    if (text.find('|') != std::string::npos) return list(text, '|');
    if (text[0] == '#') return text.substr(1);
    std::string prefix, name = text;
    if (name[0] == '!' || name[0] == '-') {
      prefix = name[0];
      name.erase(0, 1);
    }
    const size_t colon = name.find(':');
    const char c = classOf(name.substr(colon + 1));
    name.resize(colon);
    std::string selector;
    if (const size_t dot = name.find('.'); dot != std::string::npos) {
      selector = name.substr(dot);
      name.resize(dot);
    }
    const bool out = name[0] < 'a';
    const std::string slot = std::to_string(name[0] - (out ? 'D' : 'a'));
    const std::string reg = std::string("%") + c + (out ? 'o' : 'i') + slot, wide = "%x" + slot;
    if (out) {
      stores += c == 'p'   ? "  selp.b64 " + wide + ", 1, 0, " + reg + ";\n"
                : c == 'h' ? "  cvt.u64.u16 " + wide + ", " + reg + ";\n"
                : c == 'r' ? "  cvt.u64.u32 " + wide + ", " + reg + ";\n"
                           : "  mov.b64 " + wide + ", " + reg + ";\n";
      stores += "  st.global.b64 [%out" + slot + "], " + wide + ";\n";
    } else {
      loads += "  ld.global.b64 " + wide + ", [%in" + slot + "];\n";
      loads += c == 'p'   ? "  setp.ne.u64 " + reg + ", " + wide + ", 0;\n"
               : c == 'h' ? "  cvt.u16.u64 " + reg + ", " + wide + ";\n"
               : c == 'r' ? "  cvt.u32.u64 " + reg + ", " + wide + ";\n"
                          : "  mov.b64 " + reg + ", " + wide + ";\n";
    }
    return prefix + reg + selector;
  }
  std::string list(const std::string& text, char separator) {
    std::stringstream parts(text);
    std::string result;
    for (std::string part; std::getline(parts, part, separator);)
      result += (result.empty() ? "" : std::string(1, separator)) + operand(part);
    return result;
  }
};

}  // namespace

std::string goldenModuleHeader() { return ".version 8.6\n.target sm_90\n.address_size 64\n"; }

std::string goldenKernel(size_t number, const std::string& line) {
  std::stringstream words(line);
  std::string mnemonic, operands;
  words >> mnemonic;
  Writer w;
  for (std::string word; words >> word;) operands += (operands.empty() ? "" : ", ") + w.operand(word);

  // The carry flag is made from slot 6 and read back by an instruction of the same kind.
  const std::string op = mnemonic.substr(0, mnemonic.find('.'));
  const bool subtracts = op.starts_with("sub");
  std::string before, after;
  if (op == "addc" || op == "subc" || op == "madc") {
    before = "  ld.global.b64 %x6, [%in6];\n  cvt.u32.u64 %r1, %x6;\n  and.b32 %r1, %r1, 1;\n";
    before += subtracts ? "  sub.cc.u32 %r2, 0, %r1;\n" : "  add.cc.u32 %r2, %r1, 0xffffffff;\n";
  }
  if (goldenWritesCarry(line)) {
    after = subtracts ? "  subc.u32 %r3, 0, 0;\n  neg.s32 %r3, %r3;\n" : "  addc.u32 %r3, 0, 0;\n";
    after += "  cvt.u64.u32 %x6, %r3;\n  st.global.b64 [%out6], %x6;\n";
  }
  std::string addresses;
  for (int slot = 0; slot < 7; ++slot)
    for (const char* base : {"in", "out"})
      addresses += std::string("  mad.wide.u32 %") + base + std::to_string(slot) + ", %n, " + std::to_string(8 * slot) +
                   ", %" + base + "p;\n";
  return ".visible .entry f" + std::to_string(number) + R"((.param .u64 in, .param .u64 out, .param .u32 count)
{
  .reg .b16 %hi<6>, %ho<4>;
  .reg .b32 %ri<6>, %ro<4>, %r<4>, %i, %n, %b, %t;
  .reg .b64 %di<6>, %do<4>, %x<8>, %in<8>, %out<8>, %inp, %outp;
  .reg .pred %pi<6>, %po<4>, %skip;
  mov.u32 %b, %ctaid.x;
  mov.u32 %t, %ntid.x;
  mov.u32 %i, %tid.x;
  mad.lo.u32 %i, %b, %t, %i;
  ld.param.u32 %n, [count];
  setp.ge.u32 %skip, %i, %n;
  @%skip ret;
  ld.param.u64 %inp, [in];
  ld.param.u64 %outp, [out];
  mad.wide.u32 %inp, %i, 8, %inp;
  mad.wide.u32 %outp, %i, 8, %outp;
)" + addresses +
         w.loads + before + "  " + mnemonic + " " + operands + ";\n" + after + w.stores + "  ret;\n}\n";
}

}  // namespace sonde::test
