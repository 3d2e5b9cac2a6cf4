// SPDX-License-Identifier: Apache-2.0
// From an instruction of an image to its source line. Images of the software GPU
// are PTX texts; places in them are those of the source-level records.
#include <cupti_pcsampling.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cupti/entry.h"
#include "ptx/addressed_params.h"
#include "ptx/locations.h"
#include "ptx/parser.h"

using namespace sonde::core;

namespace {

// As in the pcOffset of records.
constexpr uint64_t kInstructionBytes = 16;

// FNV-1a over words.
uint64_t hashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001b3u; };
  size_t i = 0;
  for (uint64_t word; i + 8 <= text.size(); i += 8) {
    std::memcpy(&word, text.data() + i, 8);
    mix(word);
  }
  for (; i < text.size(); ++i) mix(static_cast<unsigned char>(text[i]));
  return hash;
}

// The module that was asked for last: clients ask for one place after the other.
std::shared_ptr<const sonde::ptx::Module> moduleOf(std::string_view text) {
  static std::mutex& mutex = *new std::mutex;
  static uint64_t lastHash = 0;
  static size_t lastSize = 0;
  static auto& last = *new std::shared_ptr<const sonde::ptx::Module>;
  const uint64_t hash = hashOf(text);
  {
    std::lock_guard lock(mutex);
    if (last && hash == lastHash && text.size() == lastSize) return last;
  }
  auto parsed = sonde::ptx::parse(text);
  if (!parsed.ok()) return nullptr;
  sonde::ptx::moveAddressedParameters(parsed.module);  // as it is executed
  auto module = std::make_shared<const sonde::ptx::Module>(std::move(parsed.module));
  std::lock_guard lock(mutex);
  lastHash = hash;
  lastSize = text.size();
  return last = module;
}

char* copyOf(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return nullptr;
  text.copy(copy, text.size());  // also of no text at all, whose address is null
  copy[text.size()] = 0;
  return copy;
}

CUptiResult correlate(CUpti_GetSassToSourceCorrelationParams& p) {
  std::string_view image(static_cast<const char*>(p.cubin), p.cubinSize);
  if (image.substr(0, 4) ==
      "\x7f"
      "ELF") {
    return fail(CUPTI_ERROR_NOT_SUPPORTED, "the image is machine code; only PTX texts can be looked into");
  }
  image = image.substr(0, image.find('\0'));
  const auto module = moduleOf(image);
  if (!module) return fail(CUPTI_ERROR_INVALID_MODULE, "the image is no PTX text that can be read");
  const sonde::ptx::Function* function = module->findFunction(p.functionName);
  if (function == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "the image has no function '%s'", p.functionName);
  if (p.pcOffset % kInstructionBytes != 0 || p.pcOffset / kInstructionBytes >= function->body.size()) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER,
                "%llu is no pcOffset of an instruction of '%s'; it has %zu of 16 bytes each",
                static_cast<unsigned long long>(p.pcOffset), p.functionName, function->body.size());
  }
  const auto frames = sonde::ptx::SourceMap(*module).frames(*function, function->body[p.pcOffset / kInstructionBytes]);
  if (frames.empty() || frames[0].file.empty() || frames[0].line == 0) {
    return fail(CUPTI_ERROR_NOT_SUPPORTED, "the instruction has no line information; -lineinfo adds it");
  }
  const std::string_view path = frames[0].file;
  const size_t slash = path.rfind('/');
  char* file = copyOf(slash == std::string_view::npos ? path : path.substr(slash + 1));
  char* folder =
      copyOf(slash == std::string_view::npos ? std::string_view() : path.substr(0, std::max<size_t>(slash, 1)));
  if (file == nullptr || folder == nullptr) {
    std::free(file);
    std::free(folder);
    return fail(CUPTI_ERROR_OUT_OF_MEMORY, "no memory for the names");
  }
  p.lineNumber = frames[0].line;
  p.fileName = file;
  p.dirName = folder;
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" CUptiResult CUPTIAPI cuptiGetSassToSourceCorrelation(CUpti_GetSassToSourceCorrelationParams* pParams) {
  if (pParams == nullptr || pParams->cubin == nullptr || pParams->cubinSize == 0 || pParams->functionName == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "pParams, its cubin, cubinSize or functionName is not set");
  }
  if (pParams->size < CUpti_GetSassToSourceCorrelationParamsSize) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER,
                "pParams->size is %zu; set it to CUpti_GetSassToSourceCorrelationParamsSize", pParams->size);
  }
  try {
    return correlate(*pParams);
  } catch (const std::exception& e) {
    return fail(CUPTI_ERROR_OUT_OF_MEMORY, "%s", e.what());
  }
}
