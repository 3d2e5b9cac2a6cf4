// SPDX-License-Identifier: Apache-2.0
#include "softgpu/static_runtime/elf_symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace sonde::static_runtime {

namespace {

// A file as bytes; every access checked, since the file is whatever it is.
class File {
 public:
  explicit File(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    struct stat st{};
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
      void* p = mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (p != MAP_FAILED) {
        data_ = static_cast<const char*>(p);
        size_ = static_cast<size_t>(st.st_size);
      }
    }
    close(fd);
  }
  ~File() {
    if (data_) munmap(const_cast<char*>(data_), size_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  template <class T>
  bool read(uint64_t at, T& out) const {
    if (at > size_ || sizeof(T) > size_ - at) return false;
    std::memcpy(&out, data_ + at, sizeof(T));
    return true;
  }
  // A string that ends within the file; null otherwise.
  const char* text(uint64_t at) const {
    if (at >= size_ || !std::memchr(data_ + at, 0, size_ - at)) return nullptr;
    return data_ + at;
  }

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
};

bool isRuntimeName(const char* name) {
  return std::strncmp(name, "cuda", 4) == 0 || std::strncmp(name, "__cuda", 6) == 0;
}

}  // namespace

Executable readExecutable(const char* path) {
  Executable out;
  const File file(path);
  Elf64_Ehdr header{};
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr))
    return out;
  out.readable = true;
  out.positionIndependent = header.e_type == ET_DYN;
  auto section = [&](unsigned i, Elf64_Shdr& s) { return file.read(header.e_shoff + uint64_t{i} * sizeof s, s); };
  Elf64_Shdr names{};
  if (!section(header.e_shstrndx, names)) return out;
  std::vector<Function> exported;  // what is left of a stripped file
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr s{};
    if (!section(i, s)) break;
    const char* name = file.text(names.sh_offset + s.sh_name);
    if (name && std::strcmp(name, ".nvFatBinSegment") == 0) out.registersCode = true;
    if (s.sh_type != SHT_SYMTAB && s.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr strings{};
    if (!section(s.sh_link, strings)) continue;
    const bool dynamic = s.sh_type == SHT_DYNSYM;
    out.hasSymbolTable |= !dynamic;
    std::vector<Function>& functions = dynamic ? exported : out.functions;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= s.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      if (!file.read(s.sh_offset + at, symbol)) break;
      const char* text = file.text(strings.sh_offset + symbol.st_name);
      if (!text || !isRuntimeName(text)) continue;
      if (symbol.st_shndx == SHN_UNDEF) {
        out.importsRuntime |= std::strcmp(text, "__cudaRegisterFatBinary") == 0;
        continue;
      }
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0)
        functions.push_back({text, symbol.st_value, symbol.st_size});
    }
  }
  if (!out.hasSymbolTable) out.functions = std::move(exported);
  return out;
}

}  // namespace sonde::static_runtime
