// SPDX-License-Identifier: Apache-2.0
//
// Green contexts: streams of a primary context whose kernels run on some of the
// device's multiprocessors alone. One handle serves as CUgreenCtx and as the
// CUcontext made of it; where any context will do it stands for the primary one.
#pragma once

#include "softgpu/driver/driver.h"

namespace sonde::softgpu::driver {

class GreenContext final : public Object {
 public:
  static constexpr Type kType = Type::greenContext;
  GreenContext(Ref<Context> primary, std::shared_ptr<const SmSet> sms);

  Object* alias(Type type) const override { return type == Type::context ? primary_.get() : nullptr; }
  Context* primary() const { return primary_.get(); }
  const std::shared_ptr<const SmSet>& sms() const { return sms_; }
  uint64_t id() const { return id_; }

  // Work for the null stream while the green context is current.
  Ref<Stream> defaultStream();
  CUresult createStream(unsigned flags, int priority, Ref<Stream>& out);
  // Those that live.
  std::vector<Ref<Stream>> streams();
  // Streams made from now on begin with waiting for this.
  void setGate(Ref<EventRecord> record);
  // Lets go of its own stream. Others stay the program's, and are of no use.
  void retire();

  std::atomic<bool> destroyed{false};

 private:
  const Ref<Context> primary_;
  const std::shared_ptr<const SmSet> sms_;
  const uint64_t id_;
  std::mutex mutex_;
  Ref<Stream> default_;
  std::vector<Ref<Stream>> streams_;
  Ref<EventRecord> gate_;
};

// A CUcontext that was made of a green context; null: it is none.
Ref<GreenContext> greenOf(CUcontext handle);
// The green context on top of the thread's stack; null: another is.
GreenContext* currentGreen();

}  // namespace sonde::softgpu::driver
