// SPDX-License-Identifier: Apache-2.0
//
// The objects of the software driver: the process-wide Driver, its Devices,
// Contexts, Streams and Events, and what each host thread carries.
//
// Locks, outermost first: Context::objects, Context::order, Stream::mutex_.
// None of them is held while user code or a tools listener runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "softgpu/driver/command.h"
#include "softgpu/driver/cuda_api.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/ipc.h"
#include "softgpu/model/clock_model.h"
#include "softgpu/model/device_model.h"

namespace sonde::softgpu::driver {

class Context;
class Module;
class Capture;
struct CounterState;

// ---------------------------------------------------------------- devices --

struct Device {
  uint32_t ordinal = 0;
  model::DeviceModel model;
  std::unique_ptr<model::ClockModel> clocks;
  // The clock at which the cycles of a kernel are counted that starts now.
  // `earlier`: the kernels that ran on its stream before. Whether the clocks are
  // held is asked anew every few milliseconds, for the answer involves a file,
  // and at once after clocksChanged().
  uint32_t kernelClockMHz(uint64_t earlier, uint64_t nowNs);
  void clocksChanged();  // this process has locked or unlocked them
  std::mutex clockMutex;
  std::atomic<uint64_t> clockAskedNs{0};  // 0: ask
  std::atomic<uint32_t> heldMHz{0};       // 0: the clock moves

  std::mutex primaryMutex;
  Ref<Context> primary;  // null: not active
  uint32_t primaryUsers = 0;
  uint32_t primaryFlags = 0;

  std::mutex poolMutex;
  Ref<Object> defaultPool, currentPool;  // Pool

  uint32_t capability() const { return model.ccMajor * 10 + model.ccMinor; }
};

// The value of a CUdevice_attribute; false when there is no such attribute.
bool deviceAttribute(const Device& device, int attribute, int64_t& value);

class Driver {
 public:
  static Driver& get();
  // cuInit. Idempotent.
  CUresult initialise();
  std::vector<Device*>& devices() { return devices_; }
  Device* device(int ordinal) {
    return ordinal >= 0 && static_cast<size_t>(ordinal) < devices_.size() ? devices_[ordinal] : nullptr;
  }
  // All live contexts, in the order of creation.
  std::vector<Ref<Context>> contexts();
  void addContext(Context* context);
  void removeContext(Context* context);

 private:
  std::mutex mutex_;
  bool tried_ = false;
  CUresult result_ = CUDA_ERROR_NOT_INITIALIZED;
  std::vector<Device*> devices_;
  std::mutex contextsMutex_;
  std::vector<Context*> contexts_;
};

// 0 not initialised, 1 ready, 2 a forked child of an initialised process.
extern std::atomic<int> driverState;
inline bool driverReady() { return driverState.load(std::memory_order_acquire) == 1; }

// ---------------------------------------------------------------- streams --

class Stream final : public Object {
 public:
  static constexpr Type kType = Type::stream;
  enum class Role : uint8_t { legacyDefault, perThreadDefault, created };

  Stream(Context* context, Role role, uint32_t flags, int priority);
  ~Stream() override;

  Context* context() const { return context_.get(); }
  Role role() const { return role_; }
  uint32_t flags() const { return flags_; }
  int priority() const { return priority_; }
  uint32_t id() const { return id_; }
  // Takes part in the ordering with the legacy default stream.
  bool blocking() const { return !(flags_ & CU_STREAM_NON_BLOCKING); }

  Command* newCommand(CommandKind kind);
  // For a command that is not appended after all.
  void giveBack(Command* command);
  // Puts a command at the end of the queue; returns its place. Takes it over.
  uint64_t append(Command* command);

  uint64_t enqueued() const { return enqueued_.load(std::memory_order_acquire); }
  uint64_t completed() const { return completed_.load(std::memory_order_acquire); }
  bool idle() const { return completed() >= enqueued(); }
  // Blocks until the queue has come past this place. The calling thread runs
  // the queue itself when nobody does.
  void waitFor(uint64_t sequence);
  void drain() { waitFor(enqueued()); }

  // For the scheduler: runs commands until the queue is empty or must wait.
  bool tryRun();

  // Attributes that may change at any time.
  AccessPolicy accessPolicy() const;
  void setAccessPolicy(const AccessPolicy& policy);
  std::atomic<CUsynchronizationPolicy> syncPolicy{CU_SYNC_POLICY_AUTO};

  // Set when it is made: what kernels may run on (null: all), and the green context.
  std::shared_ptr<const SmSet> sms;
  Ref<Object> green;
  bool greenDefault = false;  // the null stream of that one

  std::atomic<bool> destroyed{false};
  std::atomic<bool> queued{false};  // the scheduler has an entry for it
  std::atomic<Capture*> capture{nullptr};
  uint64_t lastLegacyWait = 0;  // guarded by Context::order
  // The running thread's:
  uint64_t graphStartNs = 0;  // of the graph launch in progress
  uint64_t kernelsRun = 0;    // so far, without those that kernels launched

 private:
  enum class State : uint8_t { idle, ready, running, parked };
  struct Parked {
    Ref<Stream> stream;
    uint64_t sequence;
  };
  void run(bool helper, uint64_t until);
  void free(Command* command);

  Ref<Context> context_;
  const Role role_;
  const uint32_t flags_;
  const int priority_;
  uint32_t id_ = 0;

  std::mutex mutex_;
  std::condition_variable done_;
  std::atomic<State> state_{State::idle};
  Command* head_ = nullptr;
  Command* tail_ = nullptr;
  Command* spare_ = nullptr;
  uint32_t hostWaiters_ = 0;
  std::vector<Parked> parked_;
  mutable std::mutex policyMutex_;
  AccessPolicy policy_;
  std::atomic<bool> hasPolicy_{false};
  std::atomic<uint64_t> enqueued_{0}, completed_{0};
};

// Puts a command into a stream with the ordering rules of the legacy default
// stream applied. Returns its place.
uint64_t submit(Stream& stream, Command* command);

// Runs streams that are ready, on as many threads as there are such streams.
class Scheduler {
 public:
  static Scheduler& get();
  void push(Ref<Stream> stream);

 private:
  void worker();
  Ref<Stream> pop();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Ref<Stream>> ready_;
  std::atomic<uint32_t> readyCount_{0};
  std::atomic<uint32_t> spinning_{0};
  uint32_t sleeping_ = 0, wakes_ = 0, workers_ = 0;
};

// Tells the listener that this work is about to be enqueued.
void announce(Stream& stream, Command& command);
// Executes one command (not `wait`) on the calling thread.
void execute(Stream& stream, Command& command);

// ----------------------------------------------------------------- events --

// What one cuEventRecord leaves behind: a place in a stream, and the time when
// it was reached.
class EventRecord final {
 public:
  Ref<Stream> stream;
  std::atomic<uint64_t> sequence{0};
  std::atomic<uint64_t> timeNs{0};
  uint32_t eventId = 0;
  uint64_t syncId = 0;
  std::shared_ptr<SharedEvent> shared;  // of an event of several processes
  uint64_t sharedPlace = 0;

  bool complete() const { return stream->completed() >= sequence.load(std::memory_order_acquire); }
  // Its place in the stream. While another thread is in the middle of
  // recording: the latest place there is.
  uint64_t place() const {
    const uint64_t s = sequence.load(std::memory_order_acquire);
    return s == UINT64_MAX ? stream->enqueued() : s;
  }
  void ref() { references_.fetch_add(1, std::memory_order_relaxed); }
  void unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  std::atomic<uint32_t> references_{0};
};

class Event final : public Object {
 public:
  static constexpr Type kType = Type::event;
  Event(Context* context, uint32_t flags);
  ~Event() override;
  Context* context() const { return context_.get(); }
  uint32_t flags() const { return flags_; }
  uint32_t id() const { return id_; }
  Ref<EventRecord> latest() {
    std::lock_guard lock(mutex_);
    return latest_;
  }
  void setLatest(Ref<EventRecord> record) {
    std::lock_guard lock(mutex_);
    latest_ = std::move(record);
  }
  std::shared_ptr<SharedEvent> shared;  // of an event of several processes; set before it is published
  // Set while the last record of the event was made by a capturing stream.
  std::mutex captureMutex;
  Ref<Object> capturedIn;  // the graph
  std::vector<void*> capturedNodes;

 private:
  Ref<Context> context_;
  const uint32_t flags_;
  uint32_t id_;
  std::mutex mutex_;
  Ref<EventRecord> latest_;
};

// --------------------------------------------------------------- contexts --

class Context final : public Object {
 public:
  static constexpr Type kType = Type::context;
  Context(Device* device, uint32_t flags, bool primary);
  ~Context() override;

  Device* device() const { return device_; }
  uint32_t uid() const { return uid_; }
  bool primary() const { return primary_; }

  // The sticky error: 0, or what made the context unusable.
  CUresult error() const { return static_cast<CUresult>(error_.load(std::memory_order_acquire)); }
  void fail(CUresult error, const std::string& message);

  Ref<Stream> legacy();
  Ref<Stream> perThread();
  // All live streams.
  std::vector<Ref<Stream>> streams();
  void addStream(Stream* stream);
  void removeStream(Stream* stream);
  // For a stream without a handle: waiting for the context waits for it too.
  void keepUntilIdle(const Ref<Stream>& stream);
  // Streams made from now on begin with waiting for this.
  void setGate(Ref<EventRecord> record);
  // Waits for everything enqueued so far; gives the sticky error.
  CUresult synchronize();
  // Releases all it owns; its handle is invalid afterwards.
  void destroy();

  std::atomic<uint32_t> flags{0};
  std::atomic<bool> destroyed{false};
  std::atomic<uint32_t> cacheConfig{0}, sharedConfig{0};
  std::mutex objects;  // guards the sets below and limits
  std::set<Module*> modules;
  std::set<Object*> owned;  // events, libraries, graphs …: handles that die with the context
  std::map<int, uint64_t> limits;
  std::set<Context*> peers;
  std::mutex order;                          // the ordering rules of the default stream
  std::vector<Ref<Stream>> blockingStreams;  // without the legacy one; destroyed ones until idle; guarded by order

  std::atomic<uint8_t> countLevel{0};            // exec::CountLevel of kernels launched from now on
  const std::unique_ptr<CounterState> counters;  // what the tools interface configured

 private:
  friend class Stream;
  Device* device_;
  uint32_t uid_;
  bool primary_;
  std::atomic<int> error_{0};
  std::mutex streamsMutex_;
  Ref<Stream> legacy_;
  std::vector<Ref<Stream>> streams_;
  std::vector<Ref<Stream>> leaving_;  // destroyed with work in flight
  Ref<EventRecord> gate_;
  std::vector<Stream*> all_;
};

// ---------------------------------------------------------------- threads --

// A context on a thread's stack; `green`: the green context that stands for it, if one does.
struct StackedContext {
  Ref<Context> context;
  Ref<Object> green;
};

struct ThreadState {
  std::vector<StackedContext> contexts;                            // the stack; its top is current
  std::vector<std::pair<uint32_t, Ref<Stream>>> perThreadStreams;  // by context uid
  uint32_t correlation = 0;                                        // of the outermost API call, 0: none yet
  uint32_t runtimeDepth = 0, apiDepth = 0;
  bool perThreadDefault = false;  // the call is a _ptsz/_ptds one
  bool inHostFunction = false;
  std::atomic<uint32_t> inListener{0};
  CUstreamCaptureMode captureMode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};
ThreadState& thread();

// Current context of the thread, checked. On error `context` stays null.
CUresult currentContext(Ref<Context>& context);
// The context on top of the stack whatever its state; null when there is none.
Context* peekContext();
// Resolves a CUstream argument, the default streams included.
CUresult resolveStream(CUstream handle, Ref<Stream>& stream);

// A new number for each of these, never 0.
uint32_t nextCorrelationId();
// The id under which work of the running API call is reported.
uint32_t currentCorrelation();
uint64_t nextGridId();
uint32_t nextEventId();
uint32_t nextStreamId();

}  // namespace sonde::softgpu::driver
