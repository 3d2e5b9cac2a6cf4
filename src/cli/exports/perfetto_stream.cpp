// SPDX-License-Identifier: Apache-2.0
#include "cli/exports/perfetto_stream.h"

namespace sonde::exports {

namespace pf = perfetto;

void PerfettoStream::emit(uint64_t time, ProtoWriter& body) {
  body.varint(pf::packet::timestamp, time)
      .varint(pf::packet::timestampClockId, pf::clock::kRealtime)
      .varint(pf::packet::sequenceId, 1)
      .varint(pf::packet::sequenceFlags, first_
                                             ? pf::packet::kIncrementalStateCleared | pf::packet::kNeedsIncrementalState
                                             : pf::packet::kNeedsIncrementalState);
  first_ = false;
  ProtoWriter file;
  file.message(pf::trace::packet, body);
  sink_(file.bytes());
}

void PerfettoStream::describe(const ProtoWriter& descriptor) {
  ProtoWriter body;
  body.message(pf::packet::trackDescriptor, descriptor);
  emit(origin_, body);
}

uint64_t PerfettoStream::threadTrack(uint32_t process, uint32_t thread) {
  const auto [it, isNew] = threadTracks_.try_emplace({process, thread}, nextTrack_);
  if (!isNew) return it->second;
  const uint64_t uuid = nextTrack_++;
  const Process& p = trace_.processes[process];
  ProtoWriter descriptor, track;
  descriptor.varint(pf::track::threadPid, p.pid).varint(pf::track::threadTid, thread);
  if (const auto name = p.threadNames.find(thread); name != p.threadNames.end())
    descriptor.text(pf::track::threadName, trace_.text(name->second));
  track.varint(pf::track::uuid, uuid)
      .varint(pf::track::parentUuid, processTrack(process))
      .message(pf::track::thread, descriptor);
  describe(track);
  return uuid;
}

uint64_t PerfettoStream::childTrack(uint64_t parent, const std::string& name) {
  const uint64_t uuid = nextTrack_++;
  ProtoWriter track;
  track.varint(pf::track::uuid, uuid).varint(pf::track::parentUuid, parent).text(pf::track::name, name);
  describe(track);
  return uuid;
}

void PerfettoStream::slice(uint64_t type, uint64_t time, uint64_t track, ProtoWriter event) {
  event.varint(pf::event::type, type).varint(pf::event::trackUuid, track);
  ProtoWriter body;
  body.message(pf::packet::trackEvent, event);
  emit(time, body);
}

void annotate(ProtoWriter& event, const char* name, const std::string& value) {
  ProtoWriter annotation;
  annotation.text(pf::annotation::name, name).text(pf::annotation::stringValue, value);
  event.message(pf::event::debugAnnotations, annotation);
}

void annotate(ProtoWriter& event, const char* name, uint64_t value) {
  ProtoWriter a;
  a.text(pf::annotation::name, name).varint(pf::annotation::uintValue, value);
  event.message(pf::event::debugAnnotations, a);
}

}  // namespace sonde::exports
