// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/not_run.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;

std::string beginning(const std::string& path) {
  std::string bytes(4096, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return bytes;
}

bool beginsAsElf(const std::string& bytes) { return bytes.compare(0, SELFMAG, ELFMAG) == 0; }

std::string machineName(unsigned machine) {
  switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_386: return "32-bit x86";
    case EM_AARCH64: return "AArch64";
    case EM_ARM: return "32-bit ARM";
    case EM_PPC64: return "POWER";
    case EM_RISCV: return "RISC-V";
    case EM_CUDA: return "a GPU (machine code of CUDA)";
    default: return fmt::format("machine {} of ELF", machine);
  }
}

// What a script or a program asks the system to start it with.
std::string interpreter(const std::string& bytes) {
  if (bytes.starts_with("#!")) {
    const size_t from = bytes.find_first_not_of(" \t", 2);
    if (from == std::string::npos) return {};
    return bytes.substr(from, bytes.find_first_of(" \t\r\n", from) - from);
  }
  Elf64_Ehdr header{};
  if (!beginsAsElf(bytes) || bytes.size() < sizeof header || bytes[EI_CLASS] != ELFCLASS64) return {};
  std::memcpy(&header, bytes.data(), sizeof header);
  for (size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr part{};
    const size_t at = header.e_phoff + i * header.e_phentsize;
    if (at > bytes.size() || bytes.size() - at < sizeof part) break;
    std::memcpy(&part, bytes.data() + at, sizeof part);
    if (part.p_type != PT_INTERP || part.p_offset >= bytes.size()) continue;
    return bytes.substr(part.p_offset, bytes.find('\0', part.p_offset) - part.p_offset);
  }
  return {};
}

}  // namespace

bool isBinary(const std::string& path) {
  const std::string bytes = beginning(path);
  return beginsAsElf(bytes) || bytes.find('\0') != std::string::npos;
}

std::string whyNotRun(const std::string& path, int code) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) return "it is a folder";
  if (code == EACCES && fs::is_regular_file(path, ec) && ::access(path.c_str(), X_OK) != 0)
    return "it is not an executable file (chmod +x makes it one)";
  const std::string bytes = beginning(path);
  if (code == ENOENT) {
    const std::string by = interpreter(bytes);
    if (!by.empty()) return fmt::format("'{}', which it is to be started with, does not exist", by);
  }
  if (code == ENOEXEC) {
    if (beginsAsElf(bytes) && bytes.size() >= sizeof(Elf64_Ehdr)) {
      Elf64_Half machine = 0;
      std::memcpy(&machine, bytes.data() + offsetof(Elf64_Ehdr, e_machine), sizeof machine);
      if (machine != EM_X86_64)
        return fmt::format("it is a program for {}, and this machine is {}", machineName(machine),
                           machineName(EM_X86_64));
    }
    return "it is no program for this system, or only a part of one";
  }
  return std::strerror(code);
}

}  // namespace sonde::cli
