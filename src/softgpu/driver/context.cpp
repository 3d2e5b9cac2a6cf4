// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/context.h"

#include <algorithm>

#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/counters.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/green.h"
#include "softgpu/driver/message.h"
#include "softgpu/driver/module.h"
#include "softgpu/driver/tools.h"
#include "softgpu/memory/allocator.h"

namespace sonde::softgpu::driver {
namespace {

std::atomic<uint32_t> contextUids{0};

void reportContext(Context& context, uint32_t event) {
  if (!tools::wants(SONDE_INTEREST_RESOURCE)) return;
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  r.context = context.handle();
  r.contextUid = context.uid();
  r.deviceId = context.device()->ordinal;
  r.handle = context.handle();
  r.id = context.uid();
  tools::reportResource(r);
}

// Of all that is still allocated when a primary context goes, tools are told of the arrays only, and of nothing when
// another one goes: so it is on a card.
void reportArraysGone(Context& context) {
  if (!tools::wants(SONDE_INTEREST_MEMORY)) return;
  std::vector<Ref<Array>> arrays;
  {
    std::lock_guard lock(context.objects);
    for (Object* object : context.owned)
      if (object->type() == Type::array) arrays.emplace_back(static_cast<Array*>(object));
  }
  std::sort(arrays.begin(), arrays.end(), [](auto& a, auto& b) { return a->address < b->address; });
  for (const Ref<Array>& array : arrays) reportArray(*array, true);
}

}  // namespace

uint32_t nextContextUid() { return contextUids.fetch_add(1) + 1; }

void reportStream(Stream& stream, uint32_t event) {
  if (!tools::wants(SONDE_INTEREST_RESOURCE)) return;
  Context& context = *stream.context();
  const ReportedContext name = reported(stream);
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  r.context = name.handle;
  r.contextUid = name.uid;
  r.deviceId = context.device()->ordinal;
  r.handle = stream.handle();
  r.id = stream.id();
  r.flags =
      (stream.role() == Stream::Role::legacyDefault || stream.greenDefault ? 1u : 0u) | (stream.blocking() ? 0u : 2u);
  r.priority = stream.priority();
  tools::reportResource(r);
}

Context::Context(Device* device, uint32_t f, bool primary)
    : Object(kType),
      flags(f),
      counters(std::make_unique<CounterState>()),
      device_(device),
      uid_(nextContextUid()),
      primary_(primary) {
  limits = {{CU_LIMIT_STACK_SIZE, 1024},
            {CU_LIMIT_PRINTF_FIFO_SIZE, 1u << 20},
            {CU_LIMIT_MALLOC_HEAP_SIZE, 8u << 20},
            {CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2},
            {CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 2048},
            {CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64},
            {CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0}};
}

Context::~Context() = default;

void Context::fail(CUresult error, const std::string& message) {
  int none = 0;
  if (!error_.compare_exchange_strong(none, error, std::memory_order_acq_rel)) return;
  say(message);
  tools::reportContextFailed(handle(), uid_, error, message.c_str());
}

Ref<Stream> Context::legacy() {
  std::lock_guard lock(streamsMutex_);
  return legacy_;
}

Ref<Stream> Context::perThread() {
  ThreadState& state = thread();
  for (auto& [uid, stream] : state.perThreadStreams)
    if (uid == uid_) return stream;
  auto stream = make<Stream>(this, Stream::Role::perThreadDefault, CU_STREAM_DEFAULT, 0);
  HandleTable::publish(stream.get());
  addStream(stream.get());
  state.perThreadStreams.emplace_back(uid_, stream);
  reportStream(*stream, SONDE_RESOURCE_STREAM_CREATED);
  return stream;
}

std::vector<Ref<Stream>> Context::streams() {
  std::lock_guard lock(streamsMutex_);
  std::vector<Ref<Stream>> out = streams_;
  if (legacy_) out.insert(out.begin(), legacy_);
  return out;
}

void Context::keepUntilIdle(const Ref<Stream>& stream) {
  std::lock_guard lock(streamsMutex_);
  std::erase_if(leaving_, [](auto& s) { return s->idle(); });
  leaving_.push_back(stream);
}

void Context::setGate(Ref<EventRecord> record) {
  std::lock_guard lock(streamsMutex_);
  gate_ = std::move(record);
}

void Context::addStream(Stream* stream) {
  {
    std::lock_guard lock(streamsMutex_);
    if (gate_ && gate_->complete()) gate_.reset();
    if (gate_) {
      Command* wait = stream->newCommand(CommandKind::wait);
      wait->target = gate_->stream;
      wait->targetSequence = gate_->place();
      stream->append(wait);
    }
  }
  if (stream->role() == Stream::Role::legacyDefault) {
    std::lock_guard lock(streamsMutex_);
    legacy_ = Ref<Stream>(stream);
    return;
  }
  if (stream->blocking()) {
    std::lock_guard lock(order);
    blockingStreams.emplace_back(stream);
  }
  std::lock_guard lock(streamsMutex_);
  streams_.emplace_back(stream);
}

void Context::removeStream(Stream* stream) {
  if (stream->blocking()) {
    // One with work in flight stays: the legacy stream still has to wait for it.
    std::lock_guard lock(order);
    std::erase_if(blockingStreams, [&](auto& s) { return (s.get() == stream || s->destroyed.load()) && s->idle(); });
  }
  {
    std::lock_guard lock(streamsMutex_);
    auto it = std::find_if(streams_.begin(), streams_.end(), [&](auto& s) { return s.get() == stream; });
    if (it == streams_.end()) return;
    HandleTable::retire(stream);
    std::erase_if(leaving_, [](auto& s) { return s->idle(); });
    if (!stream->idle()) leaving_.push_back(*it);
    streams_.erase(it);
  }
}

CUresult Context::synchronize() {
  std::vector<Ref<Stream>> all = streams();
  {
    std::lock_guard lock(streamsMutex_);
    all.insert(all.end(), leaving_.begin(), leaving_.end());
  }
  for (auto& stream : all) stream->drain();
  return error();
}

void Context::destroy() {
  bool was = false;
  if (!destroyed.compare_exchange_strong(was, true)) return;
  synchronize();
  if (primary_) reportArraysGone(*this);
  reportContext(*this, SONDE_RESOURCE_CONTEXT_DESTROY_STARTING);
  std::set<Module*> loaded;
  {
    std::lock_guard lock(objects);
    loaded = modules;
  }
  for (Module* module : loaded) unloadModule(*module);
  std::set<Object*> rest;
  {
    std::lock_guard lock(objects);
    rest.swap(owned);
  }
  for (Object* object : rest) HandleTable::retire(object);
  for (auto& stream : streams()) {
    reportStream(*stream, SONDE_RESOURCE_STREAM_DESTROY_STARTING);
    stream->destroyed.store(true);
    HandleTable::retire(stream.get());
  }
  {
    std::lock_guard lock(streamsMutex_);
    streams_.clear();
    leaving_.clear();
    gate_.reset();
    legacy_.reset();
  }
  {
    std::lock_guard lock(order);
    blockingStreams.clear();
  }
  memory::Allocator::get().releaseContext(uid_);
  Driver::get().removeContext(this);
  HandleTable::retire(this);
}

CUresult createContext(Device* device, uint32_t flags, bool primary, Ref<Context>& out) {
  auto context = make<Context>(device, flags, primary);
  if (!HandleTable::publish(context.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  auto legacy = make<Stream>(context.get(), Stream::Role::legacyDefault, CU_STREAM_DEFAULT, 0);
  HandleTable::publish(legacy.get());
  context->addStream(legacy.get());
  Driver::get().addContext(context.get());
  out = std::move(context);
  return CUDA_SUCCESS;
}

void announceContext(Context& context) {
  reportContext(context, SONDE_RESOURCE_CONTEXT_CREATED);
  if (Ref<Stream> legacy = context.legacy()) reportStream(*legacy, SONDE_RESOURCE_STREAM_CREATED);
}

}  // namespace sonde::softgpu::driver
