// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/locations.h"

#ifdef SONDE_SYMBOLIZE
#include <llvm/DebugInfo/Symbolize/Symbolize.h>
#endif

#include <nlohmann/json.hpp>

#include "cli/spool/reader.h"
#include "cli/spool/writer.h"

namespace sonde::cli {
#ifndef SONDE_SYMBOLIZE
void nameLocations(std::vector<Spool>&) {}  // the exported symbols must do
#else
namespace {

// LLVM says "<invalid>" where it knows nothing.
std::string known(const std::string& text) { return text == llvm::DILineInfo::BadString ? std::string() : text; }

}  // namespace

void nameLocations(std::vector<Spool>& spools) {
  std::unique_ptr<llvm::symbolize::LLVMSymbolizer> symbolizer;  // made when it is needed
  for (Spool& s : spools) {
    Trace trace;
    std::string ignored;
    spool::readSpool({reinterpret_cast<const unsigned char*>(s.content.data()), s.content.size()}, trace, &ignored);
    nlohmann::json names = nlohmann::json::array();
    for (const auto& [key, location] : trace.locations) {
      if (location.module == 0) continue;
      if (!symbolizer) symbolizer = std::make_unique<llvm::symbolize::LLVMSymbolizer>();
      auto line = symbolizer->symbolizeCode(trace.text(location.module),
                                            {location.offset, llvm::object::SectionedAddress::UndefSection});
      if (!line) {
        llvm::consumeError(line.takeError());
        continue;
      }
      std::string function = known(line->FunctionName);
      if (function.empty()) function = trace.text(location.function);
      const std::string file = known(line->FileName);
      names.push_back(
          {{"pc", key.second}, {"function", function}, {"file", file}, {"line", file.empty() ? 0 : line->Line}});
    }
    if (!names.empty())
      s.content += spool::encodeBlock(spool::BlockType::LocationNames,
                                      names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}
#endif

}  // namespace sonde::cli
