// SPDX-License-Identifier: Apache-2.0
// The packets of a Perfetto trace: tracks, slices and what hangs on them.
#ifndef SONDE_CLI_EXPORTS_PERFETTO_STREAM_H_
#define SONDE_CLI_EXPORTS_PERFETTO_STREAM_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/exports/exports.h"
#include "cli/exports/perfetto_fields.h"
#include "cli/exports/proto_writer.h"

namespace sonde::exports {

// Writes packets to a sink, one after the other. Not for several threads.
class PerfettoStream {
 public:
  PerfettoStream(const Trace& trace, const Sink& sink) : trace_(trace), sink_(sink) {}

  void emit(uint64_t time, ProtoWriter& body);

  static uint64_t processTrack(uint32_t process) { return 0x100000000ull + process; }
  void describe(const ProtoWriter& descriptor);
  uint64_t newTrack() { return nextTrack_++; }
  // Describes the track of a thread when it is first needed.
  uint64_t threadTrack(uint32_t process, uint32_t thread);
  uint64_t childTrack(uint64_t parent, const std::string& name);

  void slice(uint64_t type, uint64_t time, uint64_t track, ProtoWriter event);

  // Slices of one track in an order that nests: each ends before the one
  // around it does.
  template <typename E, typename Describe>
  void nestedSlices(uint64_t track, std::vector<const E*>& events, Describe describeEvent) {
    std::stable_sort(events.begin(), events.end(), [](const E* a, const E* b) {
      return a->start != b->start ? a->start < b->start : a->end > b->end;
    });
    std::vector<uint64_t> open;
    const auto closeUntil = [&](uint64_t time) {
      while (!open.empty() && open.back() <= time) {
        slice(perfetto::event::kSliceEnd, open.back(), track, {});
        open.pop_back();
      }
    };
    for (const E* e : events) {
      closeUntil(e->start);
      slice(perfetto::event::kSliceBegin, e->start, track, describeEvent(*e));
      const uint64_t end = std::max(e->start, e->end);
      open.push_back(open.empty() ? end : std::min(end, open.back()));
    }
    closeUntil(UINT64_MAX);
  }

 private:
  const Trace& trace_;
  const Sink& sink_;
  const uint64_t origin_ = trace_.origin();
  bool first_ = true;
  uint64_t nextTrack_ = 0x200000000ull;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> threadTracks_;
};

// A value that the viewer shows beside a slice.
void annotate(ProtoWriter& event, const char* name, const std::string& value);
void annotate(ProtoWriter& event, const char* name, uint64_t value);

}  // namespace sonde::exports

#endif  // SONDE_CLI_EXPORTS_PERFETTO_STREAM_H_
