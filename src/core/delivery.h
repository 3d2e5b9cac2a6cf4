// SPDX-License-Identifier: Apache-2.0
// From the threads' queues into the clients' buffers, and back to the clients.
#ifndef SONDE_CORE_DELIVERY_H_
#define SONDE_CORE_DELIVERY_H_

#include "core/client.h"

namespace sonde::core {

enum class Deliver {
  kFullBuffers,  // copy, hand over what is full
  kEverything,   // hand over partly filled buffers too
};

// Hands over the client's finished records on this thread. Client code runs
// with no lock held. A call from within a buffer callback of the same client
// returns at once; the delivery in progress then goes round again. Another
// thread's delivery in progress is waited for until none of its callbacks has
// returned for SONDE_FLUSH_WAIT_MS (default 1000) milliseconds: a client that
// blocks its own buffer callback on this thread gets buffers out of order
// rather than a deadlock.
void deliver(Client& client, Deliver what);

// After a record while client.needsBuffer: asks for a buffer on this thread, so
// that a client which flushes only when it has given out a buffer does flush.
// While another delivery runs, the delivery thread asks after it. Does nothing
// within the client's own code.
void offerBuffer(Client& client, ThreadState& thread);

// An OVERHEAD record for a flush that began at `start` and ends now, if the
// client wants such; it goes out with the next delivery.
void reportFlush(Client& client, uint64_t start);

// Records lost since the last call; the count starts again.
uint64_t takeDropped(Client& client);

// Asks the delivery thread to look at the client; from any thread, cheap.
void wakeDelivery(Client& client);
// The delivery thread exists only once this was called.
void startDelivery();
// From now on the client gets samples of the environment every
// SONDE_ENVIRONMENT_PERIOD_MS (default 1000, 0: none), while it has the kind on.
void startSampling(Client& client);
// After the kind was switched off: waits for a set of samples that is being
// taken, so that none comes later and none is left half done.
void stopSampling(Client& client);
// A client changed its flush period.
void delivererReschedule();

// Drops all of a client's queues and buffers (after its last delivery).
void discardQueues(Client& client);

// Around a fork: all delivery locks (that of sampling before any other lock of
// the core), and a fresh start in the child.
void lockSampling();
void unlockSampling();
void lockDelivery();
void unlockDelivery();
void restartDeliveryInChild();

}  // namespace sonde::core

#endif  // SONDE_CORE_DELIVERY_H_
