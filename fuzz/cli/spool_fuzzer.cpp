// SPDX-License-Identifier: Apache-2.0
// Whatever a trace file holds, reading it, reporting on it and exporting it
// must neither crash nor run away. The first byte chooses: raw bytes as a
// file, or {type, length, payload} pieces packed into blocks with right
// checksums, so that the fuzzer reaches what lies behind them.
#include <cstdint>
#include <cstring>
#include <string>

#include "cli/exports/exports.h"
#include "cli/reports/reports.h"
#include "cli/spool/format.h"
#include "cli/spool/reader.h"

namespace {

using namespace sonde;

void append(std::string& to, const void* data, size_t size) { to.append(static_cast<const char*>(data), size); }

std::string packed(const uint8_t* data, size_t size) {
  spool::FileHeader file{};
  std::memcpy(file.magic, spool::kFileMagic, sizeof file.magic);
  file.version = spool::kVersion;
  file.headerSize = sizeof file;
  std::string out;
  append(out, &file, sizeof file);
  uint32_t sequence = 0;
  while (size >= 3) {
    const size_t length = std::min<size_t>(data[1] | data[2] << 8, size - 3);
    spool::BlockHeader block{};
    block.magic = spool::kBlockMagic;
    block.type = data[0] % 9;
    block.payloadSize = static_cast<uint32_t>(length);
    block.payloadCrc = spool::crc32(data + 3, length);
    block.sequence = sequence++;
    block.headerCrc = spool::crc32(&block, offsetof(spool::BlockHeader, headerCrc));
    append(out, &block, sizeof block);
    append(out, data + 3, length);
    out.resize(spool::padded(out.size()));
    data += 3 + length;
    size -= 3 + length;
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string content =
      data[0] % 2 != 0 ? packed(data + 1, size - 1) : std::string(reinterpret_cast<const char*>(data + 1), size - 1);
  Trace trace;
  std::string error;
  if (!spool::readSpool({reinterpret_cast<const unsigned char*>(content.data()), content.size()}, trace, &error))
    return 0;
  trace.finish();
  for (const auto& report : reports::allReports()) {
    const reports::Table table = report.make(trace, {});
    reports::renderText(table, {reports::TimeUnit::Auto, false, 100});
    reports::renderCsv(table);
  }
  const exports::Sink nowhere = [](std::string_view) {};
  exports::writePerfetto(trace, {}, nowhere);
  exports::writeChrome(trace, {}, nowhere);
  exports::writeCsv(trace, {}, nowhere);
  exports::writeJson(trace, {}, nowhere);
  return 0;
}
