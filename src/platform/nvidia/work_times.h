// SPDX-License-Identifier: Apache-2.0
//
// From the stamps of events to the times of the work before them: the model of
// docs/ARCHITECTURE.md, "Times on a card". Pure arithmetic; all times are the
// device's, in ns.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace sonde::platform::nvidia {

// What lies between launches, stamps and work. Defaults: an H200.
struct TimingConstants {
  static constexpr unsigned kOthers = 8;  // more busy streams than this count as this many
  // From the launch's return to the work's start in a stream that is idle.
  double startAfterReturn = 2700;
  // By the number of other streams that are busy: from the stamp of the event
  // before to the start, and from the end to its stamp, in a stream with work
  // that waits (a stream alone: with kCounted pieces of work that wait).
  double startAfterStamp[kOthers] = {3000, 3050, 3350, 3650, 3650, 3700, 3700, 3700};
  double endToStamp[kOthers] = {550, 600, 1000, 1400, 1550, 1700, 1800, 1900};
  bool measured = false;
};

constexpr double kNever = std::numeric_limits<double>::infinity();

// One piece of work with an event behind it.
struct TimedWork {
  double reached = 0;        // its launch returned; of what was synchronous: was called
  double before = -kNever;   // stamp that it comes after, if not that of the work before it in its stream
  bool hasBefore = false;    // `before` counts, not the work before it
  bool synchronous = false;  // `reached` is its start
  double pause = 0;          // the host had launched nothing in this context for so long
  double stamp = 0;          // of the event behind it; NaN: not known
  // Found by placeWork().
  double start = 0, end = 0;
  bool queued = false;  // it started behind other work of its stream
};

// A stream's work, in order, as far as it has finished.
struct TimedStream {
  std::vector<TimedWork> works;
  bool haveLast = false;           // the work before the first one has a stamp …
  double last = 0;                 // … this one,
  unsigned lastOthers = 0;         // with so many other busy streams
  std::vector<double> unfinished;  // when it was launched, in order: kCounted pieces of work are enough
  // When the first unfinished work can have started, but for other streams. kNever: there is none.
  double nextStart = kNever;
};

// Work behind another that was launched before that one's stamp counts up to this number.
constexpr unsigned kCounted = 10;

// Finds start and end of all work; `last` and `lastOthers` become those of the
// last one. Start and end of work without a stamp stay as they are.
void placeWork(std::vector<TimedStream>& streams, const TimingConstants& constants);

}  // namespace sonde::platform::nvidia
