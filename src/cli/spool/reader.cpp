// SPDX-License-Identifier: Apache-2.0
#include "cli/spool/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/spool/decoder.h"
#include "cli/spool/format.h"

namespace sonde::spool {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const unsigned char>;

template <typename T>
T load(const unsigned char* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

bool isFileHeader(Bytes d) {
  return d.size() >= sizeof(FileHeader) && std::memcmp(d.data(), kFileMagic, sizeof kFileMagic) == 0;
}

// A whole block whose two checksums hold.
bool isBlock(Bytes d, BlockHeader* header) {
  if (d.size() < sizeof(BlockHeader)) return false;
  *header = load<BlockHeader>(d.data());
  if (header->magic != kBlockMagic || header->payloadSize > kMaxPayload) return false;
  if (header->headerCrc != crc32(d.data(), offsetof(BlockHeader, headerCrc))) return false;
  if (header->payloadSize > d.size() - sizeof(BlockHeader)) return false;
  return header->payloadCrc == crc32(d.data() + sizeof(BlockHeader), header->payloadSize);
}

std::string textField(const nlohmann::json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_string() ? it->get<std::string>() : std::string();
}

template <typename T>
T numberField(const nlohmann::json& j, const char* key) {
  const auto it = j.find(key);
  return it != j.end() && it->is_number_unsigned() ? it->get<T>() : T{};
}

void readProcess(Bytes payload, Process& process) {
  const auto j = nlohmann::json::parse(payload.begin(), payload.end(), nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return;
  if (j.contains("note")) {
    process.notes.push_back(textField(j, "note"));
    return;
  }
  if (j.contains("passes")) {
    process.passes = std::max(process.passes, numberField<uint32_t>(j, "passes"));
    return;
  }
  process.pid = numberField<uint32_t>(j, "pid");
  process.parentPid = numberField<uint32_t>(j, "ppid");
  process.executable = textField(j, "executable");
  process.workingDirectory = textField(j, "cwd");
  process.host = textField(j, "host");
  process.cuptiPath = textField(j, "cupti");
  process.cuptiVersion = numberField<uint32_t>(j, "cupti_version");
  process.startTime = numberField<uint64_t>(j, "start");
  if (const auto it = j.find("arguments"); it != j.end() && it->is_array()) {
    for (const auto& a : *it)
      if (a.is_string()) process.arguments.push_back(a.get<std::string>());
  }
}

// One FileHeader and the blocks after it; returns where the next one begins.
size_t readSection(Bytes data, size_t at, Trace& trace) {
  const auto head = load<FileHeader>(data.data() + at);
  const auto index = static_cast<uint32_t>(trace.processes.size());
  trace.processes.emplace_back();
  trace.processes[index].pid = head.pid;
  Decoder decoder(trace, index);
  at += std::clamp<size_t>(head.headerSize, sizeof(FileHeader), 4096);
  at = std::min(at, data.size());
  while (at < data.size()) {
    const Bytes rest = data.subspan(at);
    if (isFileHeader(rest)) break;
    BlockHeader block{};
    if (!isBlock(rest, &block)) {
      // Damage, or the end of what was written: look for the next block.
      const size_t step = std::min<size_t>(8, rest.size());
      trace.processes[index].damagedBytes += step;
      at += step;
      continue;
    }
    const Bytes payload = rest.subspan(sizeof(BlockHeader), block.payloadSize);
    Process& process = trace.processes[index];
    bool good = true;
    switch (static_cast<BlockType>(block.type)) {
      case BlockType::Process: readProcess(payload, process); break;
      case BlockType::Strings: good = decoder.strings(payload); break;
      case BlockType::Names: good = decoder.names(payload); break;
      case BlockType::Records: good = decoder.records(payload); break;
      case BlockType::Dropped:
        if ((good = payload.size() >= 8)) process.dropped += load<uint64_t>(payload.data());
        break;
      case BlockType::End:
        if ((good = payload.size() >= sizeof(EndBlock))) process.end = load<EndBlock>(payload.data());
        break;
      case BlockType::Skipped:
        if ((good = payload.size() >= 16))
          process.skipped[load<uint32_t>(payload.data())] += load<uint64_t>(payload.data() + 8);
        break;
      case BlockType::Counters: good = decoder.counters(payload); break;
      case BlockType::ModuleText: good = decoder.moduleTexts(payload); break;
      case BlockType::CounterResults: good = decoder.counterResults(payload); break;
      case BlockType::Locations: good = decoder.locations(payload); break;
      case BlockType::LocationNames: good = decoder.locationNames(payload); break;
      default: break;  // of a newer writer
    }
    if (!good) trace.processes[index].damagedBytes += block.payloadSize;
    at += std::min(rest.size(), sizeof(BlockHeader) + padded(block.payloadSize));
  }
  decoder.finish();
  return at;
}

}  // namespace

bool readSpool(Bytes data, Trace& trace, std::string* error) {
  if (!isFileHeader(data)) {
    *error = data.empty() ? "the file is empty" : "this is not a Sonde trace ('sonde run -o NAME.sonde' writes one)";
    return false;
  }
  size_t at = 0;
  while (at < data.size()) {
    const auto head = load<FileHeader>(data.data() + at);
    if (head.version != kVersion) {
      *error = fmt::format("the trace has format version {}, this sonde reads version {}", head.version, kVersion);
      return false;
    }
    at = readSection(data, at, trace);
  }
  return true;
}

bool readWholeFile(const std::string& path, std::string* content, std::string* error) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    *error = fmt::format("{}: is a folder", path);
    return false;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    *error = fmt::format("{}: {}", path, std::strerror(errno));
    return false;
  }
  content->assign(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) {
    *error = fmt::format("{}: cannot be read", path);
    return false;
  }
  return true;
}

bool readTrace(const std::string& path, Trace& trace, std::string* error) {
  std::vector<std::string> files;
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    for (const auto& entry : fs::directory_iterator(path, ec))
      if (entry.path().extension() == ".spool") files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      *error = fmt::format("{}: holds no *.spool file", path);
      return false;
    }
  } else {
    files.push_back(path);
  }
  for (const std::string& file : files) {
    std::string content;
    if (!readWholeFile(file, &content, error)) return false;
    if (!readSpool({reinterpret_cast<const unsigned char*>(content.data()), content.size()}, trace, error)) {
      *error = fmt::format("{}: {}", file, *error);
      return false;
    }
  }
  trace.finish();
  return true;
}

}  // namespace sonde::spool
