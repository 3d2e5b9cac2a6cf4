// SPDX-License-Identifier: Apache-2.0
// Calling the clients' callbacks.
#include "core/core.h"

namespace sonde::core {

void dispatch(ThreadState& thread, Client& client, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
              const void* data) {
  // The mark comes first: cuptiUnsubscribe clears the subscription, then waits
  // for the marks to go.
  thread.inClient[client.index].fetch_add(1);
  if (const Subscription* subscription = client.subscription.load()) {
    subscription->function(subscription->userdata, domain, cbid, data);
  }
  thread.inClient[client.index].fetch_sub(1);
}

bool eventWanted(CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  return wantedEvents[domain][cbid].load(std::memory_order_relaxed) != 0;
}

void dispatchEvent(CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data) {
  const uint32_t mask = wantedEvents[domain][cbid].load(std::memory_order_relaxed);
  if (mask == 0) return;
  ThreadState& thread = threadState();
  forEachClient(mask, [&](Client& client) { dispatch(thread, client, domain, cbid, data); });
}

void reportState(CUpti_CallbackIdState state, CUptiResult result, const char* message) {
  CUpti_StateData data{};
  data.notification.result = result;
  data.notification.message = message;
  dispatchEvent(CUPTI_CB_DOMAIN_STATE, state, &data);
}

Client* subscribedClient(CUpti_SubscriberHandle handle) {
  if (handle == nullptr) return nullptr;
  const auto* wanted = reinterpret_cast<const Subscription*>(handle);
  for (uint32_t i = 0; i < kMaxClients; ++i) {
    if (clients()[i].inUse() && clients()[i].subscription.load() == wanted) return &clients()[i];
  }
  return nullptr;
}

}  // namespace sonde::core
