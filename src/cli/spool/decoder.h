// SPDX-License-Identifier: Apache-2.0
// Turns the stored records of one process into the events of a trace.
#ifndef SONDE_CLI_SPOOL_DECODER_H_
#define SONDE_CLI_SPOOL_DECODER_H_

#include <map>
#include <span>
#include <string>
#include <unordered_map>

#include "cli/spool/trace.h"

namespace sonde::spool {

class Decoder {
 public:
  Decoder(Trace& trace, uint32_t process) : trace_(trace), process_(process) {}

  // Payloads of blocks whose checksums held. False: the content makes no
  // sense beyond that point (a writer of another make).
  bool strings(std::span<const unsigned char> payload);
  bool names(std::span<const unsigned char> payload);
  bool records(std::span<const unsigned char> payload);
  bool counters(std::span<const unsigned char> payload);
  bool moduleTexts(std::span<const unsigned char> payload);
  bool counterResults(std::span<const unsigned char> payload);
  bool locations(std::span<const unsigned char> payload);
  bool locationNames(std::span<const unsigned char> payload);
  // Gives API calls their names and closes the ranges left open.
  void finish();

 private:
  struct OpenRange {
    NvtxRange range;
  };
  bool record(const unsigned char* data, size_t size);
  StringId textOf(const char* storedId);
  bool sourceRecord(const unsigned char* data, size_t size);
  InstructionCounts& instruction(uint32_t functionId, uint64_t pc, uint32_t locator);
  void finishInstructions();
  void marker(const unsigned char* data, size_t size);
  template <typename E>
  E event(uint64_t start, uint64_t end) const {
    E e{};
    e.process = process_;
    e.record = nextRecord_;
    e.start = start;
    e.end = end;
    return e;
  }

  Trace& trace_;
  uint32_t process_;
  uint64_t nextRecord_ = 0;
  size_t firstApiCall_ = SIZE_MAX;
  std::unordered_map<uint64_t, StringId> strings_;
  std::map<std::pair<uint32_t, uint32_t>, StringId> apiNames_;
  std::unordered_map<uint32_t, NvtxRange> openRanges_;                                     // by marker id
  std::unordered_map<uint32_t, std::pair<std::optional<uint32_t>, uint32_t>> markerData_;  // id → colour, category
  size_t firstRange_ = SIZE_MAX;
  std::map<std::pair<uint32_t, uint64_t>, size_t> instructionAt_;  // by function and place
  std::unordered_map<uint32_t, std::pair<StringId, uint32_t>> locators_;
  std::unordered_map<uint32_t, StringId> functions_;
  size_t firstLaunch_ = SIZE_MAX;
};

}  // namespace sonde::spool

#endif  // SONDE_CLI_SPOOL_DECODER_H_
