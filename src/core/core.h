// SPDX-License-Identifier: Apache-2.0
// The profiling core: which clients there are, what they want, and the platform
// that it listens to. Everything here may be called from any thread, also from
// within a client's callback; no lock is held while client code runs.
#ifndef SONDE_CORE_CORE_H_
#define SONDE_CORE_CORE_H_

#include <cupti.h>

#include <atomic>
#include <cstdint>

#include "core/client.h"
#include "platform/tools_api.h"

namespace sonde::core {

// -- The platform -----------------------------------------------------------

// The platform, attached to; nullptr when there is none (the reason is then
// this thread's last failure).
const SondePlatform* requirePlatform();
// The platform if it is attached; never looks for one.
const SondePlatform* attachedPlatform();
// Has the platform report what it holds back of work that is done.
void collectFinishedWork();
// The platform lists unfinished work itself (SondePlatform::pendingWork).
bool platformKeepsPending();
// After a client's end: leaves a platform that is not to be kept for nobody.
void detachUnusedPlatform();
// Nanoseconds since the epoch on the clock of the platform.
uint64_t now();
// Uses this platform instead of looking for one (tests, and platforms inside
// the library). Only while no platform is attached.
void providePlatform(const SondePlatform* platform);

// -- Clients ----------------------------------------------------------------

// The client that a call with this return address comes from, made when there
// is none. nullptr: too many clients.
Client* callingClient(const void* returnAddress);
// The same, but a caller that is not a client yet gets the only client there
// is; nullptr when there is none or several.
Client* existingClient(const void* returnAddress);
// Ends a client: delivers what it has, forgets everything it set.
void finalizeClient(Client* client);

// -- What is wanted ---------------------------------------------------------

// By domain (driver, runtime) and cbid: low half, the clients with a callback;
// high half, those with a record; one bit per client.
extern std::atomic<uint32_t> wantedCalls[3][kMaxCbids];
// The same for callbacks of the other domains.
extern std::atomic<uint32_t> wantedEvents[kDomainCount][64];
// Clients that have the kind on for some context.
extern std::atomic<uint32_t> wantedKinds[kKindCount];

// Recomputes the tables above from the clients and tells the platform. Call
// after each change; takes the registry lock.
void updateWanted();

// Guards the tables of the clients (callbackOn, apiRecordOn …).
std::mutex& registryMutex();

// Number of callback ids of a domain, CUPTI_CB_DOMAIN_...; 0: no such domain.
uint32_t cbidCount(uint32_t domain);

// -- Activity ---------------------------------------------------------------

CUptiResult enableKind(Client* client, uint32_t kind, CUcontext context, bool dumpExisting);
CUptiResult disableKind(Client* client, uint32_t kind, CUcontext context);
// Reports the objects that exist already (devices, contexts, …) to a client
// that just enabled `kind`; `again`: also those it knows.
void reportExisting(Client* client, uint32_t kind, bool again);

CUptiResult pushExternalId(Client* client, CUpti_ExternalCorrelationKind kind, uint64_t id);
CUptiResult popExternalId(Client* client, CUpti_ExternalCorrelationKind kind, uint64_t* last);

// -- Callbacks --------------------------------------------------------------

// Calls the client's callback, if it still has one.
void dispatch(ThreadState& thread, Client& client, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
              const void* data);
// … of all clients that want this event.
void dispatchEvent(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data);
bool eventWanted(CUpti_CallbackDomain domain, CUpti_CallbackId cbid);
// Tells subscribers of the state domain about an error.
void reportState(CUpti_CallbackIdState state, CUptiResult result, const char* message);

// The client of a subscriber handle; nullptr: not a handle of a live subscriber.
Client* subscribedClient(CUpti_SubscriberHandle handle);

// Calls `call(client)` for each client whose bit is set.
template <typename Call>
inline void forEachClient(uint32_t mask, Call&& call) {
  while (mask != 0) {
    const unsigned index = static_cast<unsigned>(__builtin_ctz(mask));
    mask &= mask - 1;
    call(clients()[index]);
  }
}

// What the platform calls (listener.cpp).
const SondeListener* listener();

// The ids of this process and thread as records carry them.
uint32_t processId();
inline uint32_t threadIdFor(const Client& client, const ThreadState& thread) {
  return client.systemThreadIds.load(std::memory_order_relaxed) ? thread.systemId : thread.pthreadId;
}

// Keeps an object that another thread may still read; it is never freed. For
// things that change a few times in a process's life.
void keepForEver(const void* object);

// SONDE_DEBUG=1: one line on stderr about something that could not be done.
void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace sonde::core

#endif  // SONDE_CORE_CORE_H_
