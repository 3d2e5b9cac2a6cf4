// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/decoder.h"

#include <Zydis/Zydis.h>
#include <dlfcn.h>

namespace sonde::platform::nvidia {
namespace {

struct Zydis {
  decltype(&ZydisGetVersion) getVersion = nullptr;
  decltype(&ZydisDecoderInit) init = nullptr;
  decltype(&ZydisDecoderDecodeFull) decode = nullptr;
  ZydisDecoder decoder;
  std::string failure;

  Zydis() {
    void* library = nullptr;
    for (const char* name : {"libZydis.so.4.0", "libZydis.so.4.1", "libZydis.so.4"})
      if ((library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    if (!library) {
      failure = "libZydis.so.4.0 is not installed (Debian: libzydis4.0); it is needed to hook the vendor's driver";
      return;
    }
    getVersion = reinterpret_cast<decltype(getVersion)>(dlsym(library, "ZydisGetVersion"));
    init = reinterpret_cast<decltype(init)>(dlsym(library, "ZydisDecoderInit"));
    decode = reinterpret_cast<decltype(decode)>(dlsym(library, "ZydisDecoderDecodeFull"));
    // The structures below are those of the major version that we were built with.
    if (!getVersion || !init || !decode || ZYDIS_VERSION_MAJOR(getVersion()) != ZYDIS_VERSION_MAJOR(ZYDIS_VERSION)) {
      failure = "the libZydis found has another interface than version 4";
      return;
    }
    if (!ZYAN_SUCCESS(init(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
      failure = "libZydis could not be initialised";
  }
};

const Zydis& zydis() {
  static const Zydis* z = new Zydis();
  return *z;
}

bool endsFlow(const ZydisDecodedInstruction& i) {
  switch (i.meta.category) {
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_UNCOND_BR: return true;
    default:
      return i.mnemonic == ZYDIS_MNEMONIC_INT3 || i.mnemonic == ZYDIS_MNEMONIC_UD2 || i.mnemonic == ZYDIS_MNEMONIC_HLT;
  }
}

}  // namespace

bool decodeInstruction(const uint8_t* code, size_t room, DecodedInstruction* out, std::string* why) {
  const Zydis& z = zydis();
  if (!z.failure.empty()) {
    *why = z.failure;
    return false;
  }
  ZydisDecodedInstruction i;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(z.decode(&z.decoder, code, room, &i, operands))) {
    *why = "no valid instruction";
    return false;
  }
  *out = {};
  out->length = i.length;
  out->endsFlow = endsFlow(i);
  if (!(i.attributes & ZYDIS_ATTRIB_IS_RELATIVE)) return true;
  for (const auto& imm : i.raw.imm) {
    if (imm.size == 0 || !imm.is_relative) continue;
    out->relativeOffset = imm.offset;
    out->relativeSize = imm.size / 8;
    out->relative = imm.value.s;
    return true;
  }
  out->relativeOffset = i.raw.disp.offset;
  out->relativeSize = i.raw.disp.size / 8;
  out->relative = i.raw.disp.value;
  return true;
}

}  // namespace sonde::platform::nvidia
