// SPDX-License-Identifier: Apache-2.0
//
// The functions that an executable's symbol table names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sonde::static_runtime {

struct Function {
  std::string name;
  uint64_t address = 0;  // as linked: without the load address
  uint64_t bytes = 0;
};

struct Executable {
  bool readable = false;
  bool hasSymbolTable = false;  // .symtab
  bool registersCode = false;   // carries device code (.nvFatBinSegment)
  bool importsRuntime = false;  // registers it with a runtime of another file
  bool positionIndependent = false;
  // Those named cuda… and __cuda…, of the symbol table; of a stripped file, those it exports.
  std::vector<Function> functions;
};

// Reads a 64-bit ELF file; anything else is not readable.
Executable readExecutable(const char* path);

}  // namespace sonde::static_runtime
