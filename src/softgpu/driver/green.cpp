// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/green.h"

#include <algorithm>

#include "platform/tools_api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/tools.h"

namespace sonde::softgpu::driver {
namespace {

std::atomic<uint64_t> ids{0};

// Announced and not destroyed. Never goes.
struct Live {
  std::mutex mutex;
  std::vector<Ref<GreenContext>> all;
};
Live& liveOnes() {
  static Live& live = *new Live;
  return live;
}

}  // namespace

GreenContext::GreenContext(Ref<Context> primary, std::shared_ptr<const SmSet> sms)
    : Object(kType),
      primary_(std::move(primary)),
      sms_(std::move(sms)),
      id_(ids.fetch_add(1) + 1),
      uid_(nextContextUid()) {}

CUresult GreenContext::createStream(unsigned flags, int priority, Ref<Stream>& out, bool tell) {
  auto stream = make<Stream>(primary_.get(), Stream::Role::created, flags, std::clamp(priority, -5, 0));
  if (!HandleTable::publish(stream.get())) return CUDA_ERROR_OUT_OF_MEMORY;
  stream->sms = sms_;
  stream->green = Ref<Object>(this);
  primary_->addStream(stream.get());
  {
    std::lock_guard lock(mutex_);
    if (gate_ && gate_->complete()) gate_.reset();
    if (gate_) {
      Command* wait = stream->newCommand(CommandKind::wait);
      wait->target = gate_->stream;
      wait->targetSequence = gate_->place();
      stream->append(wait);
    }
    std::erase_if(streams_, [](auto& s) { return s->destroyed.load() && s->idle(); });
    streams_.push_back(stream);
  }
  if (tell) reportStream(*stream, SONDE_RESOURCE_STREAM_CREATED);
  out = std::move(stream);
  return CUDA_SUCCESS;
}

CUresult GreenContext::announce() {
  Ref<Stream> made;
  if (const CUresult e = createStream(CU_STREAM_DEFAULT, 0, made, false)) return e;
  made->greenDefault = true;
  {
    std::lock_guard lock(mutex_);
    default_ = made;
  }
  {
    std::lock_guard lock(liveOnes().mutex);
    liveOnes().all.emplace_back(this);
  }
  if (tools::wants(SONDE_INTEREST_RESOURCE)) tools::reportResource(describe(*this, SONDE_RESOURCE_CONTEXT_CREATED));
  reportStream(*made, SONDE_RESOURCE_STREAM_CREATED);
  return CUDA_SUCCESS;
}

std::vector<Ref<GreenContext>> GreenContext::live() {
  std::lock_guard lock(liveOnes().mutex);
  return liveOnes().all;
}

Ref<Stream> GreenContext::defaultStream() {
  std::lock_guard lock(mutex_);
  return default_;
}

std::vector<Ref<Stream>> GreenContext::streams() {
  std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](auto& s) { return s->destroyed.load() && s->idle(); });
  return streams_;
}

void GreenContext::setGate(Ref<EventRecord> record) {
  std::lock_guard lock(mutex_);
  gate_ = std::move(record);
}

void GreenContext::retire() {
  {
    std::lock_guard lock(liveOnes().mutex);
    std::erase_if(liveOnes().all, [&](auto& g) { return g.get() == this; });
  }
  if (tools::wants(SONDE_INTEREST_RESOURCE))
    tools::reportResource(describe(*this, SONDE_RESOURCE_CONTEXT_DESTROY_STARTING));
  Ref<Stream> own;
  {
    std::lock_guard lock(mutex_);
    own = std::move(default_);
    streams_.clear();
    gate_.reset();
  }
  if (!own || own->destroyed.exchange(true)) return;
  reportStream(*own, SONDE_RESOURCE_STREAM_DESTROY_STARTING);
  primary_->removeStream(own.get());
}

Ref<GreenContext> greenOf(CUcontext handle) { return HandleTable::find<GreenContext>(handle); }

SondeResource describe(const GreenContext& green, uint32_t event) {
  SondeResource r{};
  r.size = sizeof r;
  r.event = event;
  r.context = r.handle = green.handle();
  r.contextUid = r.id = green.uid();
  r.deviceId = green.primary()->device()->ordinal;
  r.parentContextUid = green.primary()->uid();
  r.multiprocessors = static_cast<uint32_t>(green.sms()->size());
  return r;
}

ReportedContext reported(const Stream& stream) {
  if (const auto* green = static_cast<const GreenContext*>(stream.green.get())) return {green->handle(), green->uid()};
  return {stream.context()->handle(), stream.context()->uid()};
}

ReportedContext reportedCurrent() {
  if (const GreenContext* green = currentGreen()) return {green->handle(), green->uid()};
  if (const Context* context = peekContext()) return {context->handle(), context->uid()};
  return {};
}

GreenContext* currentGreen() {
  const auto& stack = thread().contexts;
  return stack.empty() ? nullptr : static_cast<GreenContext*>(stack.back().green.get());
}

}  // namespace sonde::softgpu::driver
