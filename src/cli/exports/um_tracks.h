// SPDX-License-Identifier: Apache-2.0
// The events of managed memory as tracks of a timeline.
#ifndef SONDE_CLI_EXPORTS_UM_TRACKS_H_
#define SONDE_CLI_EXPORTS_UM_TRACKS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/spool/trace.h"

namespace sonde::exports {

struct UmSlice {
  uint64_t start = 0, end = 0;  // end 0: a moment
  std::string name;
  std::vector<std::pair<const char*, uint64_t>> numbers;
  std::vector<std::pair<const char*, std::string>> texts;
};

// Slices of one track do not overlap.
struct UmTrack {
  uint32_t process = 0;
  std::string name;
  std::vector<UmSlice> slices;
};

// How many bytes of managed memory transfers have brought to a device, less
// those that left it. Pages that were first touched there are not among them.
struct UmLevel {
  uint32_t process = 0, device = 0;
  std::vector<std::pair<uint64_t, int64_t>> values;  // time, bytes
};

std::vector<UmTrack> umTracks(const Trace& trace);
std::vector<UmLevel> umLevels(const Trace& trace);

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_UM_TRACKS_H_
