// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "softgpu/exec/engine.h"

namespace sonde::softgpu::driver {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;
constexpr uint32_t kFatbinMagic = 0xba55ed50;
constexpr uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000;
constexpr uint64_t kLargestText = uint64_t{1} << 31;

struct Wrapper {
  uint32_t magic, version;
  const void* data;
  const void* const* list;  // version 2: fat binaries to link, ends with NULL
};

struct Header {
  uint32_t magic;
  uint16_t version, headerBytes;
  uint64_t bytes;  // of all entries
};

struct Entry {
  uint16_t kind, unknown0;
  uint32_t headerBytes;
  uint64_t payloadBytes;
  uint32_t compressedBytes, optionsOffset;
  uint16_t minor, major;
  uint32_t target;
  uint32_t nameOffset, nameBytes;
  uint64_t flags, unknown1, uncompressedBytes;
};
static_assert(sizeof(Entry) == 64);
constexpr uint16_t kPtx = 1, kElf = 2;
// Our own mark on entries that belong together (cuLinkComplete's output).
constexpr uint64_t kFlagLinked = uint64_t{1} << 40;

struct Choice {
  const Entry* ptx = nullptr;        // the best one
  const Entry* newer = nullptr;      // the one for the next newer architecture
  std::vector<const Entry*> linked;  // or all of these
  std::set<uint32_t> ptxTargets, elfTargets;
  std::string error;
};

template <class T>
T readAt(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// Walks the entries; every length is checked against the one around it.
Choice choose(const std::byte* fatbin, size_t limit, uint32_t capability) {
  Choice choice;
  const auto header = readAt<Header>(fatbin);
  if (header.version != 1 || header.headerBytes < sizeof(Header)) {
    choice.error = "the fat binary has an unknown header version";
    return choice;
  }
  if (limit && (limit < header.headerBytes || header.bytes > limit - header.headerBytes)) {
    choice.error = "the fat binary is cut short";
    return choice;
  }
  const std::byte* at = fatbin + header.headerBytes;
  uint64_t left = header.bytes;
  while (left >= sizeof(Entry)) {
    const auto* entry = reinterpret_cast<const Entry*>(at);
    const auto e = readAt<Entry>(at);
    if (e.headerBytes < sizeof(Entry) || e.headerBytes > left || e.payloadBytes > left - e.headerBytes ||
        e.compressedBytes > e.payloadBytes) {
      choice.error = "an entry of the fat binary has impossible lengths";
      return choice;
    }
    if (e.kind == kPtx) {
      choice.ptxTargets.insert(e.target);
      if (e.flags & kFlagLinked) choice.linked.push_back(entry);
      if (e.target <= capability &&
          (!choice.ptx || readAt<Entry>(reinterpret_cast<const std::byte*>(choice.ptx)).target < e.target))
        choice.ptx = entry;
      if (e.target > capability &&
          (!choice.newer || readAt<Entry>(reinterpret_cast<const std::byte*>(choice.newer)).target > e.target))
        choice.newer = entry;
    } else if (e.kind == kElf) {
      choice.elfTargets.insert(e.target);
    }
    at += e.headerBytes + e.payloadBytes;
    left -= e.headerBytes + e.payloadBytes;
  }
  // The program is for this device, by machine code. What it has for newer devices does the same.
  const bool forThisDevice = std::any_of(choice.elfTargets.begin(), choice.elfTargets.end(),
                                         [&](uint32_t t) { return t / 10 == capability / 10 && t <= capability; });
  if (!choice.ptx && forThisDevice) choice.ptx = choice.newer;
  return choice;
}

bool extract(const Entry* where, std::string& text, std::string& error) {
  const auto* bytes = reinterpret_cast<const std::byte*>(where);
  const auto e = readAt<Entry>(bytes);
  const char* payload = reinterpret_cast<const char*>(bytes) + e.headerBytes;
  if (e.compressedBytes == 0) {
    text.assign(payload, e.payloadBytes);
  } else {
    if (e.uncompressedBytes > kLargestText) {
      error = "a PTX text in the fat binary is larger than 2 GiB";
      return false;
    }
    text.resize(e.uncompressedBytes);
    if (e.flags & kFlagZstd) {
      const size_t n = ZSTD_decompress(text.data(), text.size(), payload, e.compressedBytes);
      if (ZSTD_isError(n) || n != text.size()) {
        error = "a PTX text in the fat binary cannot be decompressed (zstd)";
        return false;
      }
    } else if (e.flags & kFlagLz4) {
      const int n =
          LZ4_decompress_safe(payload, text.data(), static_cast<int>(e.compressedBytes), static_cast<int>(text.size()));
      if (n < 0 || static_cast<size_t>(n) != text.size()) {
        error = "a PTX text in the fat binary cannot be decompressed (LZ4)";
        return false;
      }
    } else {
      error = "a PTX text in the fat binary is compressed in an unknown way";
      return false;
    }
  }
  text.resize(std::strlen(text.c_str()));  // the padding is zeros
  return true;
}

std::string targets(const std::set<uint32_t>& set, const char* prefix) {
  std::string out;
  for (uint32_t t : set) out += (out.empty() ? "" : ", ") + (prefix + std::to_string(t));
  return out;
}

void explainNothing(LoadedImage& result, const std::set<uint32_t>& ptx, const std::set<uint32_t>& elf,
                    uint32_t capability) {
  result.error = CUDA_ERROR_NO_BINARY_FOR_GPU;
  const std::string mine = std::to_string(capability);
  std::ostringstream out;
  if (ptx.empty()) {
    out << "the program has no PTX, only machine code" << (elf.empty() ? "" : " (" + targets(elf, "sm_") + ")")
        << ": compile it with -gencode arch=compute_" << mine << ",code=compute_" << mine << " (or -arch=sm_" << mine
        << ", which embeds PTX too)";
  } else {
    out << "the program's PTX is for " << targets(ptx, "compute_") << ", this device is sm_" << mine
        << ": compile it with -gencode arch=compute_" << mine << ",code=compute_" << mine
        << ", or choose a newer device with SONDE_DEVICES";
  }
  result.message = out.str();
}

void readFatbin(const std::byte* fatbin, size_t limit, uint32_t capability, LoadedImage& result, bool required) {
  Choice choice = choose(fatbin, limit, capability);
  if (!choice.error.empty()) {
    result.error = CUDA_ERROR_INVALID_IMAGE;
    result.message = choice.error;
    return;
  }
  if (!choice.ptx) {
    if (required) explainNothing(result, choice.ptxTargets, choice.elfTargets, capability);
    return;
  }
  if (choice.linked.empty()) choice.linked.push_back(choice.ptx);
  for (const Entry* entry : choice.linked) {
    std::string text;
    if (!extract(entry, text, result.message)) {
      result.error = CUDA_ERROR_INVALID_IMAGE;
      return;
    }
    if (readAt<Entry>(reinterpret_cast<const std::byte*>(entry)).target > capability)
      text.insert(0, exec::kForNewerDevice);
    result.texts.push_back(std::move(text));
  }
}

void readWrapper(const Wrapper& wrapper, uint32_t capability, LoadedImage& result) {
  if (wrapper.version == 2 && wrapper.list) {
    std::set<uint32_t> ptx, elf;
    for (const void* const* part = wrapper.list; *part; ++part) {
      const auto* bytes = static_cast<const std::byte*>(*part);
      if (readAt<uint32_t>(bytes) != kFatbinMagic) {
        result.error = CUDA_ERROR_INVALID_IMAGE;
        result.message = "a part of a relocatable program is no fat binary";
        return;
      }
      const Choice choice = choose(bytes, 0, capability);
      ptx.insert(choice.ptxTargets.begin(), choice.ptxTargets.end());
      elf.insert(choice.elfTargets.begin(), choice.elfTargets.end());
      readFatbin(bytes, 0, capability, result, false);
      if (result.error) return;
    }
    if (result.texts.empty()) explainNothing(result, ptx, elf, capability);
    return;
  }
  const auto* bytes = static_cast<const std::byte*>(wrapper.data);
  if (!bytes || readAt<uint32_t>(bytes) != kFatbinMagic) {
    result.error = CUDA_ERROR_INVALID_IMAGE;
    result.message = "the wrapper does not point to a fat binary";
    return;
  }
  readFatbin(bytes, 0, capability, result, true);
}

}  // namespace

LoadedImage readImage(const void* image, size_t bytes, uint32_t capability) {
  LoadedImage result;
  const auto* p = static_cast<const std::byte*>(image);
  const auto* c = static_cast<const char*>(image);
  // Byte by byte: an unsized image may be a text shorter than a magic number.
  auto startsWith = [&](const void* magic, size_t n) {
    if (bytes && bytes < n) return false;
    const auto* m = static_cast<const std::byte*>(magic);
    for (size_t i = 0; i < n; i++)
      if (p[i] != m[i]) return false;
    return true;
  };
  if (startsWith(&kWrapperMagic, 4)) {
    if (bytes && bytes < sizeof(Wrapper)) {
      result.error = CUDA_ERROR_INVALID_IMAGE;
      result.message = "the fat binary is cut short";
      return result;
    }
    readWrapper(readAt<Wrapper>(p), capability, result);
    return result;
  }
  if (startsWith(&kFatbinMagic, 4)) {
    if (bytes && bytes < sizeof(Header)) {
      result.error = CUDA_ERROR_INVALID_IMAGE;
      result.message = "the fat binary is cut short";
      return result;
    }
    readFatbin(p, bytes, capability, result, true);
    return result;
  }
  if (startsWith("\x7f"
                 "ELF",
                 4)) {
    explainNothing(result, {}, {}, capability);
    return result;
  }
  const size_t length = bytes ? strnlen(c, bytes) : std::strlen(c);
  const std::string text(c, length);
  if (text.find(".version") == std::string::npos) {
    result.error = CUDA_ERROR_INVALID_IMAGE;
    result.message = "the image is neither PTX (no .version line), nor a fat binary, nor machine code";
    return result;
  }
  result.texts.push_back(text);
  return result;
}

std::string packTexts(const std::vector<std::string>& texts, uint32_t capability) {
  std::string body;
  for (const auto& text : texts) {
    const size_t padded = (text.size() + 1 + 7) & ~size_t{7};
    Entry e{};
    e.kind = kPtx;
    e.unknown0 = 0x0101;
    e.headerBytes = sizeof(Entry);
    e.payloadBytes = padded;
    e.target = capability;
    e.flags = 0x11 | kFlagLinked;
    body.append(reinterpret_cast<const char*>(&e), sizeof e);
    body.append(text);
    body.append(padded - text.size(), '\0');
  }
  const Header header{kFatbinMagic, 1, sizeof(Header), body.size()};
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

}  // namespace sonde::softgpu::driver
