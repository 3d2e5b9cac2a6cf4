// SPDX-License-Identifier: Apache-2.0
#include "platform/nvidia/work_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace sonde::platform::nvidia {
namespace {

// The device's front end takes the launches and stamps of all streams one after
// the other. Measured on an H200, like the constants:
//  - a launch that finds it stamping for another stream starts as long after that
//    stamp as one in its own stream would, and a little later on the whole for
//    each stream that is busy;
constexpr double kLaterForEach = 60, kLaterBehindAnother = 60;
//  - but a stamp that comes while a launch is about to start waited for it instead;
constexpr double kAboutToStart = 1200;
//  - such a stamp can have waited for as long as the launch took, and where more
//    streams are busy also shows a while behind the start: then what is most
//    likely is subtracted, as parts of startAfterStamp[0].
constexpr double kBesideStart = 650, kBehindStart = 1550;
constexpr double kWaitedBeside = 0.28, kWaitedBehindTwo = 0.6, kWaitedBehindMore = 0.25;
//  - where one stream is busy alone, stamps wait only if much work is waiting: with 8 pieces or less they come at
//    once, with 9 some do;
constexpr unsigned kAtOnce = 8;
constexpr double kSomeWait = 0.5;
// In a stream without more work the stamp waits less: parts of endToStamp.
constexpr double kIdleShare[TimingConstants::kOthers] = {0, 0.2, 0.9, 0.75, 0.95, 1.1, 1.1, 1.1};

// After a pause the launch takes longer, of which some is spent behind the moment
// at which the device has it: it starts earlier, seen from the launch's return.
// Of 10 ms: 0.4 to 1.7 us on five machines, the middle is taken.
double earlierAfter(double pause) {
  constexpr std::pair<double, double> kMeasured[] = {{25e3, 0}, {100e3, 110}, {1e6, 250}, {3e6, 500}, {10e6, 900}};
  if (pause <= kMeasured[0].first) return 0;
  for (size_t i = 1; i < std::size(kMeasured); ++i) {
    const auto [from, least] = kMeasured[i - 1];
    const auto [to, most] = kMeasured[i];
    if (pause < to) return least + (most - least) * std::log(pause / from) / std::log(to / from);
  }
  return std::rbegin(kMeasured)->second;
}

bool isKnown(double time) { return time == time; }

using Moment = std::pair<double, const TimedStream*>;

// The last moment of another stream that is not after a time; -kNever: none.
double lastOfOthers(const std::vector<Moment>& moments, const TimedStream& self, double time) {
  auto at =
      std::upper_bound(moments.begin(), moments.end(), time, [](double t, const Moment& m) { return t < m.first; });
  while (at != moments.begin())
    if ((--at)->second != &self) return at->first;
  return -kNever;
}

class Placement {
 public:
  Placement(std::vector<TimedStream>& streams, const TimingConstants& constants) : streams_(streams), c_(constants) {}

  void run() {
    for (TimedStream& s : streams_) guessStarts(s);
    note(stamps_, &TimedWork::stamp);
    std::vector<std::vector<unsigned>> others;
    for (const TimedStream& s : streams_) {
      std::vector<unsigned>& some = others.emplace_back();
      for (const TimedWork& w : s.works) some.push_back(isKnown(w.stamp) ? busyAt(s, w.stamp) : 0);
    }
    for (size_t i = 0; i < streams_.size(); ++i) findStarts(streams_[i], others[i]);
    note(starts_, &TimedWork::start);
    for (size_t i = 0; i < streams_.size(); ++i) findEnds(streams_[i], others[i]);
  }

 private:
  double startIdle(const TimedWork& w) const { return w.reached + c_.startAfterReturn - earlierAfter(w.pause); }

  // As if each stream were alone.
  void guessStarts(TimedStream& s) const {
    double last = s.haveLast ? s.last : -kNever;
    for (TimedWork& w : s.works) {
      if (!w.hasBefore) w.before = last;
      const double idle = startIdle(w), behind = w.before + c_.startAfterStamp[0];
      w.queued = behind > idle;
      w.start = std::max(idle, behind);
      last = isKnown(w.stamp) ? w.stamp : -kNever;
    }
  }

  void note(std::vector<Moment>& moments, double TimedWork::* which) const {
    moments.clear();
    if (streams_.size() < 2) return;
    for (const TimedStream& s : streams_)
      for (const TimedWork& w : s.works)
        if (isKnown(w.stamp)) moments.emplace_back(w.*which, &s);
    std::sort(moments.begin(), moments.end());
  }

  // How many of the other streams have work at a time.
  unsigned busyAt(const TimedStream& self, double time) const {
    unsigned count = 0;
    for (const TimedStream& s : streams_) {
      if (&s == &self) continue;
      // The first work whose stamp is not before the time.
      const auto at = std::lower_bound(s.works.begin(), s.works.end(), time,
                                       [](const TimedWork& w, double t) { return w.stamp < t; });
      count += at != s.works.end() ? at->start < time : s.nextStart < time;
    }
    return std::min(count, TimingConstants::kOthers - 1);
  }

  // Work behind the i-th that was launched before its stamp, up to kCounted.
  static unsigned waitingBehind(const TimedStream& s, size_t i) {
    unsigned count = 0;
    for (size_t next = i + 1; count < kCounted && next < s.works.size(); ++next, ++count)
      if (s.works[next].reached >= s.works[i].stamp) return count;
    for (size_t next = 0; count < kCounted && next < s.unfinished.size(); ++next, ++count)
      if (s.unfinished[next] >= s.works[i].stamp) return count;
    return count;
  }

  void findStarts(TimedStream& s, const std::vector<unsigned>& others) const {
    unsigned lastOthers = s.lastOthers;
    for (size_t i = 0; i < s.works.size(); ++i) {
      TimedWork& w = s.works[i];
      if (w.queued) {
        w.start = std::max(w.start, w.before + c_.startAfterStamp[w.hasBefore ? 0 : lastOthers]);
      } else if (!w.synchronous && !stamps_.empty()) {
        const double alone = startIdle(w) + kLaterForEach * busyAt(s, w.reached);
        const double other = lastOfOthers(stamps_, s, alone - kAboutToStart);
        w.start = std::max({w.start, alone, other + c_.startAfterStamp[0] + kLaterBehindAnother});
      }
      lastOthers = others[i];
    }
  }

  void findEnds(TimedStream& s, const std::vector<unsigned>& others) const {
    for (size_t i = 0; i < s.works.size(); ++i) {
      TimedWork& w = s.works[i];
      if (!isKnown(w.stamp)) {
        s.haveLast = false;
        continue;
      }
      s.haveLast = true;
      s.last = w.stamp;
      s.lastOthers = others[i];
      const unsigned waiting = waitingBehind(s, i);
      const bool more = waiting > 0;
      double late = c_.endToStamp[others[i]];
      if (!more) {
        late *= kIdleShare[others[i]];
      } else if (others[i] == 0 && waiting < kCounted) {
        late *= waiting > kAtOnce ? kSomeWait : 0;
      }
      const double started = lastOfOthers(starts_, s, w.stamp + kBesideStart);
      if (started >= w.stamp - kBesideStart) {
        late += kWaitedBeside * c_.startAfterStamp[0];
      } else if (!more && others[i] > 1 && started >= w.stamp - kBehindStart) {
        late += (others[i] == 2 ? kWaitedBehindTwo : kWaitedBehindMore) * c_.startAfterStamp[0];
      }
      w.end = w.stamp - late;
      w.start = std::min(w.start, w.end);
    }
  }

  std::vector<TimedStream>& streams_;
  const TimingConstants& c_;
  std::vector<Moment> stamps_, starts_;  // sorted; empty where there is one stream only
};

}  // namespace

void placeWork(std::vector<TimedStream>& streams, const TimingConstants& constants) {
  Placement(streams, constants).run();
}

}  // namespace sonde::platform::nvidia
