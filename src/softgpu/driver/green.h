// SPDX-License-Identifier: Apache-2.0
//
// Green contexts: streams of a primary context whose kernels run on some of the
// device's multiprocessors alone. One handle serves as CUgreenCtx and as the
// CUcontext made of it; where any context will do it stands for the primary one.
#pragma once

#include "platform/tools_api.h"
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
  uint32_t uid() const { return uid_; }  // among contexts

  // Its null stream comes into being, and the listener hears of both.
  CUresult announce();
  static std::vector<Ref<GreenContext>> live();

  // Work for the null stream while the green context is current.
  Ref<Stream> defaultStream();
  CUresult createStream(unsigned flags, int priority, Ref<Stream>& out, bool tell = true);
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
  const uint32_t uid_;
  std::mutex mutex_;
  Ref<Stream> default_;
  std::vector<Ref<Stream>> streams_;
  Ref<EventRecord> gate_;
};

// A CUcontext that was made of a green context; null: it is none.
Ref<GreenContext> greenOf(CUcontext handle);
// What records and callbacks call a context: a green one has a name of its own.
struct ReportedContext {
  void* handle = nullptr;
  uint32_t uid = 0;
};
ReportedContext reported(const Stream& stream);
// The thread's; null and 0: it has none.
ReportedContext reportedCurrent();
// A green context as the listener is told of it.
SondeResource describe(const GreenContext& green, uint32_t event);

// The green context on top of the thread's stack; null: another is.
GreenContext* currentGreen();

}  // namespace sonde::softgpu::driver
