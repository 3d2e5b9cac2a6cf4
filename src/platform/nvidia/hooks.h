// SPDX-License-Identifier: Apache-2.0
//
// One hook per exported function of the driver and the runtime (generated from
// the tables), what they share, and putting them in and taking them out.
//
// A hook that nobody wants costs two loads and a branch. Calls that the
// platform makes itself go to `original`s and meet no hook.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "platform/nvidia/function_ref.h"
#include "platform/tools_api.h"

namespace sonde::platform::nvidia {

inline constexpr uint32_t kCbidCount = 1024;

// Written by the listener: it wants enter and exit of the call.
extern volatile uint8_t driverWanted[kCbidCount];
extern volatile uint8_t runtimeWanted[kCbidCount];
// What the platform itself does about a driver call: bits of Handling.
extern volatile uint8_t driverHandling[kCbidCount];
// Threads in the midst of calls read these while they change.
inline uint8_t flagOf(const volatile uint8_t& flag) { return __atomic_load_n(&flag, __ATOMIC_RELAXED); }
inline void setFlag(volatile uint8_t& flag, uint8_t value) { __atomic_store_n(&flag, value, __ATOMIC_RELAXED); }
// The functions without their hooks, by cbid; nullptr: this driver has no such.
extern void* driverOriginal[kCbidCount];
extern void* runtimeOriginal[kCbidCount];

enum Handling : uint8_t {
  kHandleWork = 1,      // enqueues work
  kHandleOrder = 2,     // orders a stream after something else
  kHandleLifetime = 4,  // makes or destroys an object, or comes before the first use
  kHandleSync = 8,      // waits
  kHandleMemory = 16,   // allocates or frees
  kHandleGraph = 32,    // makes, changes or uses a graph, or captures one
};

struct HookRow {
  const char* symbol;
  uint32_t cbid;
  uint32_t since;  // 1000 * major + 10 * minor
  bool perThread;  // variant that means the per-thread default stream
  void* hook;
};
std::span<const HookRow> driverRows();
std::span<const HookRow> runtimeRows();
// The driver's row of a callback id; nullptr: not an exported function.
const HookRow* driverRow(uint32_t cbid);

// Where a thread stands between the application, our hooks and the driver.
struct ThreadCalls {
  uint32_t correlation;       // of the outermost hooked call; 0: none
  uint32_t depth;             // hooked calls that are open
  bool inDriver;              // within a driver function that was hooked …
  bool inRuntime;             // … or a runtime function: calls from there are its own business
  uint32_t listening;         // listener functions that are open
  struct UnderWay* underWay;  // a runtime function whose entry was not seen; nullptr as a rule
  struct UseCount* uses;      // the thread's own count of them, which detaching waits for; nullptr: none yet
};
extern thread_local ThreadCalls threadCalls __attribute__((tls_model("initial-exec")));
uint32_t nextCorrelationId();
// Entry and exit of a runtime function whose entry was not seen (under_way.h).
void enterUnderWay(SondeApiCall& call, uint32_t cbid, const char* name);
void leaveUnderWay(SondeApiCall& call, int32_t* result);

// Holds the listener in place while one of its functions runs; the code in
// there is the application's as far as hooks are concerned. Costs a few plain
// stores: who detaches pays for the order of memory (membarrier).
class ListenerUse {
 public:
  ListenerUse();
  ~ListenerUse();
  const SondeListener* operator->() const { return listener_; }
  explicit operator bool() const { return listener_ != nullptr; }

 private:
  UseCount* uses_;
  const SondeListener* listener_;
  bool inDriver_, inRuntime_;
};
// 0, or a CUresult when somebody listens already.
int32_t setListener(const SondeListener* listener);
// Returns when no function of the listener runs any more but this thread's own.
void clearListener();

// The hooks' common bodies. `run` calls the original.
int32_t driverCall(uint32_t cbid, const char* name, bool perThread, const void* params, FunctionRef<int32_t()> run);
int32_t runtimeCall(uint32_t cbid, const char* name, const void* params, FunctionRef<int32_t()> run);

// Hooks the driver behind `handle` (from dlopen). False: `why` says what
// stands in the way, and nothing is hooked. Functions that cannot be relocated
// stay as they are, unless the platform cannot do without.
bool hookDriver(void* handle, std::string* why);
// Hooks a runtime library or a statically linked runtime that is in the process
// and not hooked yet. Cheap when nothing was loaded since the last call.
void hookRuntimes();
// Takes all hooks out.
void unhook();

// SONDE_DEBUG=1: one line on stderr.
void debug(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace sonde::platform::nvidia
