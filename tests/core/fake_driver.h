// SPDX-License-Identifier: Apache-2.0
// A driver for tests of the profiling core: a libcuda.so.1 whose API calls,
// kernels and resources are made by the test, one by one. It keeps the promises
// of the tools interface (correlation ids, nesting, enabled bytes, work that is
// reported when it was wanted at its enqueueing).
#ifndef SONDE_TESTS_CORE_FAKE_DRIVER_H_
#define SONDE_TESTS_CORE_FAKE_DRIVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "platform/tools_api.h"

#define FAKE_API __attribute__((visibility("default")))

namespace fake {

// One API call: enter (if somebody listens), `body`, exit. Returns what the
// application would see, also when a callback changed it. Calls inside `body`
// are nested and share the correlation id.
FAKE_API int32_t call(uint32_t domain, uint32_t cbid, int32_t result = 0, const std::function<void()>& body = {},
                      const void* params = nullptr, const char* symbol = nullptr);
// The same without a body: the shortest path, for measuring.
FAKE_API void plainCall(uint32_t domain, uint32_t cbid);
// As plainCall while somebody listens, but to these two functions: for measuring
// the driver's own part, and other tools at the same place.
struct Hearer {
  void (*apiEnter)(SondeApiCall*);
  void (*apiExit)(SondeApiCall*);
};
FAKE_API void callHeardBy(const std::atomic<const Hearer*>& listener, uint32_t domain, uint32_t cbid);

FAKE_API SondeHandle createContext(uint32_t device = 0);
FAKE_API void destroyContext(SondeHandle context);
// The context current to this thread.
FAKE_API void setCurrent(SondeHandle context);
FAKE_API SondeHandle createStream(SondeHandle context, bool nonBlocking = false, int32_t priority = 0);
FAKE_API void destroyStream(SondeHandle stream);
FAKE_API SondeHandle loadModule(SondeHandle context, const void* image, size_t bytes);
FAKE_API void unloadModule(SondeHandle module);
// A function of the module is used for the first time.
FAKE_API void useFunction(SondeHandle context, uint32_t moduleId, uint32_t functionId, const char* name);

// Enqueues work on a stream; it is done at once by a worker thread unless work
// is held. `fill` may set any field.
FAKE_API void enqueue(SondeHandle context, SondeHandle stream, SondeWorkKind kind,
                      const std::function<void(SondeWork&)>& fill = {});
// Work enqueued from now on waits for releaseWork.
FAKE_API void holdWork();
FAKE_API void releaseWork();
// Does what is held on the calling thread, as a driver's call that waits may.
FAKE_API void doHeldWork();
// Until everything enqueued (and not held) is reported.
FAKE_API void waitWork();

FAKE_API void emit(const SondeResource& resource);
FAKE_API void emit(const SondeSync& sync);
FAKE_API void emit(const SondeOverhead& overhead);
FAKE_API void failContext(SondeHandle context, int32_t error, const char* message);

FAKE_API uint64_t interest();
FAKE_API uint32_t lastCorrelation();
// How often synchronizeAll was called.
FAKE_API uint32_t synchronizations();
FAKE_API void setDeviceCount(uint32_t count);
FAKE_API void setFanSpeed(uint32_t percent);  // ~0u: no fan
FAKE_API uint32_t clockQueriesSoFar();
FAKE_API void setAutoBoostResult(int32_t result);  // a CUresult

}  // namespace fake

#endif  // SONDE_TESTS_CORE_FAKE_DRIVER_H_
