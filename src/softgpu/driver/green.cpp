// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/green.h"

#include <algorithm>

#include "platform/tools_api.h"
#include "softgpu/driver/context.h"

namespace sonde::softgpu::driver {
namespace {

std::atomic<uint64_t> ids{0};

}  // namespace

GreenContext::GreenContext(Ref<Context> primary, std::shared_ptr<const SmSet> sms)
    : Object(kType), primary_(std::move(primary)), sms_(std::move(sms)), id_(ids.fetch_add(1) + 1) {}

CUresult GreenContext::createStream(unsigned flags, int priority, Ref<Stream>& out) {
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
  reportStream(*stream, SONDE_RESOURCE_STREAM_CREATED);
  out = std::move(stream);
  return CUDA_SUCCESS;
}

Ref<Stream> GreenContext::defaultStream() {
  {
    std::lock_guard lock(mutex_);
    if (default_) return default_;
  }
  Ref<Stream> made;
  if (createStream(CU_STREAM_DEFAULT, 0, made)) return {};
  std::lock_guard lock(mutex_);
  if (!default_) default_ = std::move(made);
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

GreenContext* currentGreen() {
  const auto& stack = thread().contexts;
  return stack.empty() ? nullptr : static_cast<GreenContext*>(stack.back().green.get());
}

}  // namespace sonde::softgpu::driver
