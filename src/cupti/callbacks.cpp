// SPDX-License-Identifier: Apache-2.0
// Callback API.
#include <cstring>

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

CUptiResult subscribe(Client* client, CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata,
                      const CUpti_SubscriberParams* params) {
  if (subscriber == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "subscriber is NULL");
  if (requirePlatform() == nullptr) return CUPTI_ERROR_UNKNOWN;
  {
    std::lock_guard lock(registryMutex());
    if (client->subscription.load() != nullptr) {
      if (params != nullptr && params->oldSubscriberName != nullptr) {
        std::strcpy(params->oldSubscriberName, client->subscriberName);
      }
      return fail(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                  "this program or library has a subscriber already; unsubscribe it first");
    }
    for (auto& table : client->callbackOn) table.assign(table.size(), 0);
    client->subscriberName[0] = 0;
    if (params != nullptr && params->subscriberName != nullptr) {
      std::strcpy(client->subscriberName, params->subscriberName);
    }
    const auto* subscription = new Subscription{callback, userdata, client->index};
    keepForEver(subscription);
    client->subscription.store(subscription);
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(const_cast<Subscription*>(subscription));
  }
  updateWanted();
  return CUPTI_SUCCESS;
}

CUptiResult checkDomain(uint32_t domain) {
  if (cbidCount(domain) != 0) return CUPTI_SUCCESS;
  return fail(CUPTI_ERROR_INVALID_PARAMETER, "%u is not a callback domain", domain);
}

CUptiResult checkSubscriber(CUpti_SubscriberHandle subscriber, Client** client) {
  *client = subscribedClient(subscriber);
  if (*client != nullptr) return CUPTI_SUCCESS;
  return fail(CUPTI_ERROR_INVALID_PARAMETER, "%p is not a subscriber (any more)", static_cast<void*>(subscriber));
}

void setDomain(Client& client, uint32_t domain, bool on) {
  auto& table = client.callbackOn[domain];
  table.assign(table.size(), on);
  if (!table.empty()) table[0] = 0;  // the id INVALID
}

const char* const kResourceNames[] = {"INVALID",
                                      "CONTEXT_CREATED",
                                      "CONTEXT_DESTROY_STARTING",
                                      "STREAM_CREATED",
                                      "STREAM_DESTROY_STARTING",
                                      "CU_INIT_FINISHED",
                                      "MODULE_LOADED",
                                      "MODULE_UNLOAD_STARTING",
                                      "MODULE_PROFILED",
                                      "GRAPH_CREATED",
                                      "GRAPH_DESTROY_STARTING",
                                      "GRAPH_CLONED",
                                      "GRAPHNODE_CREATE_STARTING",
                                      "GRAPHNODE_CREATED",
                                      "GRAPHNODE_DESTROY_STARTING",
                                      "GRAPHNODE_DEPENDENCY_CREATED",
                                      "GRAPHNODE_DEPENDENCY_DESTROY_STARTING",
                                      "GRAPHEXEC_CREATE_STARTING",
                                      "GRAPHEXEC_CREATED",
                                      "GRAPHEXEC_DESTROY_STARTING",
                                      "GRAPHNODE_CLONED",
                                      "STREAM_ATTRIBUTE_CHANGED",
                                      "GRAPH_NODE_UPDATED",
                                      "GRAPH_NODE_SET_PARAMS"};
static_assert(sizeof kResourceNames / sizeof *kResourceNames == CUPTI_CBID_RESOURCE_SIZE);
const char* const kSynchronizeNames[] = {"INVALID", "STREAM_SYNCHRONIZED", "CONTEXT_SYNCHRONIZED"};
static_assert(sizeof kSynchronizeNames / sizeof *kSynchronizeNames == CUPTI_CBID_SYNCHRONIZE_SIZE);
const char* const kStateNames[] = {"INVALID", "FATAL_ERROR", "ERROR", "WARNING"};
static_assert(sizeof kStateNames / sizeof *kStateNames == CUPTI_CBID_STATE_SIZE);

const char* nameOf(uint32_t domain, uint32_t cbid) {
  if (cbid == 0 || cbid >= cbidCount(domain)) return nullptr;
  switch (domain) {
    case CUPTI_CB_DOMAIN_DRIVER_API:
    case CUPTI_CB_DOMAIN_RUNTIME_API: {
      const CallbackName* name = callbackName(domain, cbid);
      return name != nullptr ? name->name : nullptr;
    }
    case CUPTI_CB_DOMAIN_RESOURCE: return kResourceNames[cbid];
    case CUPTI_CB_DOMAIN_SYNCHRONIZE: return kSynchronizeNames[cbid];
    case CUPTI_CB_DOMAIN_NVTX: return nvtxName(cbid);
    case CUPTI_CB_DOMAIN_STATE: return kStateNames[cbid];
    default: return nullptr;
  }
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiSupportedDomains(size_t* domainCount, CUpti_DomainTable* domainTable) {
  if (domainCount == nullptr || domainTable == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", domainCount == nullptr ? "domainCount" : "domainTable");
  }
  static CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                           CUPTI_CB_DOMAIN_RESOURCE,   CUPTI_CB_DOMAIN_SYNCHRONIZE,
                                           CUPTI_CB_DOMAIN_NVTX,       CUPTI_CB_DOMAIN_STATE};
  *domainCount = sizeof domains / sizeof *domains;
  *domainTable = domains;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata) {
  SONDE_CLIENT(client);
  return subscribe(client, subscriber, callback, userdata, nullptr);
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* userdata,
                                       CUpti_SubscriberParams* pParams) {
  SONDE_CLIENT(client);
  if (pParams != nullptr) {
    if (pParams->structSize < CUpti_SubscriberParams_STRUCT_SIZE) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER,
                  "pParams->structSize is %zu; set it to CUpti_SubscriberParams_STRUCT_SIZE", pParams->structSize);
    }
    if (pParams->subscriberName != nullptr && std::strlen(pParams->subscriberName) > CUPTI_SUBSCRIBER_NAME_MAX_LEN) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "the subscriber's name is longer than %d characters",
                  CUPTI_SUBSCRIBER_NAME_MAX_LEN);
    }
    if (pParams->oldSubscriberName != nullptr && pParams->oldSubscriberSize < CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "oldSubscriberName needs room for %d characters",
                  CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
    }
  }
  return subscribe(client, subscriber, callback, userdata, pParams);
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (attachedPlatform() == nullptr && requirePlatform() == nullptr) return CUPTI_ERROR_UNKNOWN;
  Client* client;
  if (const CUptiResult bad = checkSubscriber(subscriber, &client); bad != CUPTI_SUCCESS) return bad;
  {
    std::lock_guard lock(registryMutex());
    const auto* expected = reinterpret_cast<const Subscription*>(subscriber);
    if (!client->subscription.compare_exchange_strong(expected, nullptr)) {
      return fail(CUPTI_ERROR_INVALID_PARAMETER, "the subscriber was unsubscribed by another thread");
    }
    for (auto& table : client->callbackOn) table.assign(table.size(), 0);
  }
  updateWanted();
  // What the client frees next must not be in use by its callback elsewhere.
  waitForClientCode(client->index, 1000);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t* enable, CUpti_SubscriberHandle subscriber,
                                           CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  if (enable == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "enable is NULL");
  Client* client;
  if (const CUptiResult bad = checkSubscriber(subscriber, &client); bad != CUPTI_SUCCESS) return bad;
  if (const CUptiResult bad = checkDomain(domain); bad != CUPTI_SUCCESS) return bad;
  if (cbid >= cbidCount(domain)) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%u is not a callback id of domain %d", cbid, static_cast<int>(domain));
  }
  std::lock_guard lock(registryMutex());
  *enable = client->callbackOn[domain][cbid];
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId cbid) {
  Client* client;
  if (const CUptiResult bad = checkSubscriber(subscriber, &client); bad != CUPTI_SUCCESS) return bad;
  if (const CUptiResult bad = checkDomain(domain); bad != CUPTI_SUCCESS) return bad;
  if (cbid == 0 || cbid >= cbidCount(domain)) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%u is not a callback id of domain %d", cbid, static_cast<int>(domain));
  }
  {
    std::lock_guard lock(registryMutex());
    client->callbackOn[domain][cbid] = enable != 0;
  }
  updateWanted();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                       CUpti_CallbackDomain domain) {
  Client* client;
  if (const CUptiResult bad = checkSubscriber(subscriber, &client); bad != CUPTI_SUCCESS) return bad;
  if (const CUptiResult bad = checkDomain(domain); bad != CUPTI_SUCCESS) return bad;
  {
    std::lock_guard lock(registryMutex());
    setDomain(*client, domain, enable != 0);
  }
  updateWanted();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle subscriber) {
  Client* client;
  if (const CUptiResult bad = checkSubscriber(subscriber, &client); bad != CUPTI_SUCCESS) return bad;
  {
    std::lock_guard lock(registryMutex());
    for (uint32_t domain = 1; domain < kDomainCount; ++domain) setDomain(*client, domain, enable != 0);
  }
  updateWanted();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char** name) {
  if (name == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "name is NULL");
  const char* found = nameOf(static_cast<uint32_t>(domain), cbid);
  if (found == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "domain %d has no callback id %u", static_cast<int>(domain), cbid);
  }
  *name = found;
  return CUPTI_SUCCESS;
}

}  // extern "C"
