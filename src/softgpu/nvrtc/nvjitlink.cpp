// SPDX-License-Identifier: Apache-2.0
//
// libnvJitLink for the software GPU: what it "links" is PTX, which comes
// back as it is, or as a fat binary of several that the driver links when it is
// loaded. LTO-IR goes through the vendor's library, which is asked for PTX.
// Machine code is refused with a message in the error log.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "softgpu/nvrtc/vendor_library.h"

namespace {

using Result = int;  // nvJitLinkResult
constexpr Result kSuccess = 0, kMissingArch = 2, kInvalidInput = 3, kInternal = 6, kUnrecognizedInput = 8,
                 kNullInput = 10;
enum Input : int { kCubin = 1, kPtx = 2, kLtoIr = 3, kFatbin = 4, kObject = 5, kLibrary = 6, kAny = 10 };

struct Piece {
  int type;
  std::string bytes, name;
};

struct Link {
  std::vector<std::string> options;
  std::vector<Piece> pieces;
  std::string output, errors;
  bool done = false;
};

template <class F>
F* vendor(const char* name) {
  static void* const library = sonde::vendor::open(SONDE_VENDOR_FILE, "SONDE_NVJITLINK",
                                                   ": it is needed for LTO-IR; PTX can be linked without it");
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

Result refuse(Link& link, Result result, const std::string& why) {
  link.errors += "sonde: " + why + "\n";
  return result;
}

bool isText(const std::string& bytes) { return bytes.find(".version") != std::string::npos && bytes[0] != 0x7f; }

// As the driver's cuLinkComplete gives it: entries of PTX that are to be linked.
std::string pack(const std::vector<std::string>& texts) {
  struct Header {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, bytes = 16;
    uint64_t size = 0;
  } header;
  struct Entry {
    uint16_t kind = 1, unknown = 0x0101;
    uint32_t headerBytes = 64;
    uint64_t payloadBytes = 0;
    uint32_t compressedBytes = 0, optionsAt = 0;
    uint16_t minor = 0, major = 0;
    uint32_t target = 0, nameAt = 0, nameBytes = 0;
    uint64_t flags = 0x11, zero = 0, uncompressedBytes = 0;
  };
  static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64);
  std::string body;
  for (const std::string& text : texts) {
    Entry e;
    e.payloadBytes = (text.size() + 1 + 7) & ~size_t{7};
    e.flags |= uint64_t{1} << 40;  // one of several to be linked (driver/fatbin.cpp)
    body.append(reinterpret_cast<const char*>(&e), sizeof e);
    body.append(text);
    body.append(e.payloadBytes - text.size(), '\0');
  }
  header.size = body.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
}

// LTO-IR and what goes with it, by the vendor's library, as PTX.
Result linkByVendor(Link& link, std::string& ptx) {
  using Create = Result(void**, uint32_t, const char**);
  using Add = Result(void*, int, const void*, size_t, const char*);
  using Simple = Result(void*);
  using Size = Result(void*, size_t*);
  using Text = Result(void*, char*);
  auto* create = vendor<Create>("nvJitLinkCreate");
  auto* add = vendor<Add>("nvJitLinkAddData");
  auto* complete = vendor<Simple>("nvJitLinkComplete");
  auto* size = vendor<Size>("nvJitLinkGetLinkedPtxSize");
  auto* get = vendor<Text>("nvJitLinkGetLinkedPtx");
  auto* logSize = vendor<Size>("nvJitLinkGetErrorLogSize");
  auto* log = vendor<Text>("nvJitLinkGetErrorLog");
  auto* destroy = vendor<Result(void**)>("nvJitLinkDestroy");
  if (!create || !add || !complete || !size || !get || !logSize || !log || !destroy)
    return refuse(link, kInternal, "LTO-IR needs the vendor's " SONDE_VENDOR_FILE ", which was not found");
  std::vector<const char*> options;
  bool lto = false, asPtx = false;
  for (const std::string& o : link.options) {
    lto |= o == "-lto" || o == "--lto";
    asPtx |= o == "-ptx" || o == "--ptx";
    options.push_back(o.c_str());
  }
  if (!lto) options.push_back("-lto");
  if (!asPtx) options.push_back("-ptx");
  void* handle = nullptr;
  if (const Result r = create(&handle, static_cast<uint32_t>(options.size()), options.data())) return r;
  Result r = kSuccess;
  for (const Piece& p : link.pieces)
    if (!r && p.type != kPtx) r = add(handle, p.type, p.bytes.data(), p.bytes.size(), p.name.c_str());
  if (!r) r = complete(handle);
  size_t bytes = 0;
  if (r) {
    if (logSize(handle, &bytes) == kSuccess && bytes > 1) {
      std::string text(bytes, '\0');
      log(handle, text.data());
      link.errors += text.c_str();
    }
  } else if (r = size(handle, &bytes); !r) {
    ptx.assign(bytes, '\0');
    r = get(handle, ptx.data());
    ptx.resize(std::strlen(ptx.c_str()));
  }
  destroy(&handle);
  return r;
}

Result complete(Link& link) {
  std::vector<std::string> texts;
  bool lto = false;
  for (const Piece& p : link.pieces) {
    lto |= p.type == kLtoIr;
    if (p.type == kPtx) texts.emplace_back(p.bytes.c_str());
  }
  if (lto) {
    std::string ptx;
    if (const Result r = linkByVendor(link, ptx)) return r;
    texts.push_back(std::move(ptx));
  }
  for (const Piece& p : link.pieces)
    if (p.type == kCubin)
      return refuse(link, kUnrecognizedInput,
                    p.name +
                        " is machine code, which the software GPU cannot run; give PTX or LTO-IR (nvcc -ptx, "
                        "-arch=compute_NN)");
  if (texts.empty()) return refuse(link, kInvalidInput, "nothing to link: no PTX and no LTO-IR was added");
  link.output = texts.size() == 1 ? texts[0] + '\0' : pack(texts);
  link.done = true;
  return kSuccess;
}

Result copyText(const std::string& from, char* to) {
  if (!to) return kNullInput;
  std::memcpy(to, from.c_str(), from.size() + 1);
  return kSuccess;
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))
// The plain name and the one that the header of 13.0 calls.
#define BOTH(name, parameters, arguments)   \
  EXPORT Result __##name##_13_0 parameters; \
  EXPORT Result __##name##_13_0 parameters { return name arguments; }

EXPORT Result nvJitLinkCreate(Link** handle, uint32_t count, const char** options) {
  if (!handle || (count && !options)) return kNullInput;
  auto* link = new Link;
  bool arch = false;
  for (uint32_t i = 0; i < count; ++i) {
    link->options.emplace_back(options[i] ? options[i] : "");
    arch |= link->options.back().find("arch") != std::string::npos;
  }
  if (!arch) {
    delete link;
    return kMissingArch;
  }
  *handle = link;
  return kSuccess;
}

EXPORT Result nvJitLinkDestroy(Link** handle) {
  if (!handle || !*handle) return kInvalidInput;
  delete *handle;
  *handle = nullptr;
  return kSuccess;
}

EXPORT Result nvJitLinkAddData(Link* link, int type, const void* data, size_t size, const char* name) {
  if (!link || link->done) return kInvalidInput;
  if (!data || size == 0) return kNullInput;
  Piece piece{type, std::string(static_cast<const char*>(data), size), name ? name : "an input"};
  if (type == kAny) piece.type = isText(piece.bytes) ? kPtx : piece.bytes[0] == 0x7f ? kCubin : kLtoIr;
  if (piece.type == kPtx && !isText(piece.bytes))
    return refuse(*link, kInvalidInput, piece.name + " is said to be PTX and has no .version line");
  // A library of the toolkit's device runtime: the driver has these functions itself.
  if (piece.type == kLibrary || piece.type == kObject || piece.type == kFatbin) {
    if (piece.name.find("cudadevrt") != std::string::npos) return kSuccess;
    return refuse(*link, kUnrecognizedInput, piece.name + ": only PTX and LTO-IR can be linked for the software GPU");
  }
  if (piece.type != kPtx && piece.type != kLtoIr && piece.type != kCubin) return kUnrecognizedInput;
  link->pieces.push_back(std::move(piece));
  return kSuccess;
}

EXPORT Result nvJitLinkAddFile(Link* link, int type, const char* fileName) {
  if (!link || !fileName) return kNullInput;
  std::ifstream file(fileName, std::ios::binary);
  if (!file) return refuse(*link, kInvalidInput, std::string(fileName) + " cannot be read");
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return nvJitLinkAddData(link, type, bytes.data(), bytes.size(), fileName);
}

EXPORT Result nvJitLinkComplete(Link* link) {
  if (!link || link->done) return kInvalidInput;
  return complete(*link);
}

EXPORT Result nvJitLinkGetLinkedCubinSize(Link* link, size_t* size) {
  if (!link || !size || !link->done) return kInvalidInput;
  *size = link->output.size();
  return kSuccess;
}

EXPORT Result nvJitLinkGetLinkedCubin(Link* link, void* cubin) {
  if (!link || !cubin || !link->done) return kInvalidInput;
  std::memcpy(cubin, link->output.data(), link->output.size());
  return kSuccess;
}

// Of one text only: several are linked when they are loaded.
EXPORT Result nvJitLinkGetLinkedPtxSize(Link* link, size_t* size) {
  if (!link || !size || !link->done || link->output[0] == 0x50) return kInvalidInput;
  *size = link->output.size();
  return kSuccess;
}

EXPORT Result nvJitLinkGetLinkedPtx(Link* link, char* ptx) {
  if (!link || !ptx || !link->done || link->output[0] == 0x50) return kInvalidInput;
  std::memcpy(ptx, link->output.data(), link->output.size());
  return kSuccess;
}

EXPORT Result nvJitLinkGetErrorLogSize(Link* link, size_t* size) {
  if (!link || !size) return kInvalidInput;
  *size = link->errors.size() + 1;
  return kSuccess;
}

EXPORT Result nvJitLinkGetErrorLog(Link* link, char* log) { return link ? copyText(link->errors, log) : kInvalidInput; }

EXPORT Result nvJitLinkGetInfoLogSize(Link* link, size_t* size) {
  if (!link || !size) return kInvalidInput;
  *size = 1;
  return kSuccess;
}

EXPORT Result nvJitLinkGetInfoLog(Link* link, char* log) { return link ? copyText("", log) : kInvalidInput; }

EXPORT Result nvJitLinkVersion(unsigned* major, unsigned* minor) {
  if (!major || !minor) return kNullInput;
  *major = SONDE_VENDOR_RELEASE;
  *minor = 0;
  return kSuccess;
}

BOTH(nvJitLinkCreate, (Link * *handle, uint32_t count, const char** options), (handle, count, options))
BOTH(nvJitLinkDestroy, (Link * *handle), (handle))
BOTH(nvJitLinkAddData, (Link * link, int type, const void* data, size_t size, const char* name),
     (link, type, data, size, name))
BOTH(nvJitLinkAddFile, (Link * link, int type, const char* fileName), (link, type, fileName))
BOTH(nvJitLinkComplete, (Link * link), (link))
BOTH(nvJitLinkGetLinkedCubinSize, (Link * link, size_t* size), (link, size))
BOTH(nvJitLinkGetLinkedCubin, (Link * link, void* cubin), (link, cubin))
BOTH(nvJitLinkGetLinkedPtxSize, (Link * link, size_t* size), (link, size))
BOTH(nvJitLinkGetLinkedPtx, (Link * link, char* ptx), (link, ptx))
BOTH(nvJitLinkGetErrorLogSize, (Link * link, size_t* size), (link, size))
BOTH(nvJitLinkGetErrorLog, (Link * link, char* log), (link, log))
BOTH(nvJitLinkGetInfoLogSize, (Link * link, size_t* size), (link, size))
BOTH(nvJitLinkGetInfoLog, (Link * link, char* log), (link, log))
