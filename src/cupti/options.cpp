// SPDX-License-Identifier: Apache-2.0
// Activity API: attributes and switches.
#include <cstring>

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

// Size of an attribute's value in bytes; 0: no such attribute.
size_t attributeSize(CUpti_ActivityAttribute attribute) {
  switch (attribute) {
    case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE:
    case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP:
    case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT:
    case CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE:
    case CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT:
    case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE:
    case CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE:
    case CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_DEVICE_GRAPHS: return sizeof(size_t);
    case CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER:
    case CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED:
    case CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER: return sizeof(uint8_t);
    default: return 0;
  }
}

CUptiResult checkAttribute(CUpti_ActivityAttribute attribute, const size_t* valueSize, const void* value) {
  if (valueSize == nullptr || value == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", valueSize == nullptr ? "valueSize" : "value");
  }
  const size_t size = attributeSize(attribute);
  if (size == 0) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is not an activity attribute", static_cast<int>(attribute));
  }
  if (*valueSize < size) {
    return fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "attribute %d has %zu bytes, room is given for %zu",
                static_cast<int>(attribute), size, *valueSize);
  }
  return CUPTI_SUCCESS;
}

// A switch of the calling client.
CUptiResult set(Client* client, std::atomic<bool> Client::* option, uint8_t enable) {
  (client->*option).store(enable != 0);
  updateWanted();
  return CUPTI_SUCCESS;
}

CUptiResult enableApi(Client* client, uint32_t domain, CUpti_CallbackId cbid, uint8_t enable) {
  if (cbid == 0 || cbid >= cbidCount(domain)) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%u is not a callback id of the %s API", cbid,
                domain == CUPTI_CB_DOMAIN_DRIVER_API ? "driver" : "runtime");
  }
  if (requirePlatform() == nullptr) return CUPTI_ERROR_UNKNOWN;
  {
    std::lock_guard lock(registryMutex());
    client->apiRecordOn[domain][cbid] = enable != 0;
  }
  updateWanted();
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize, void* value) {
  if (const CUptiResult bad = checkAttribute(attr, valueSize, value); bad != CUPTI_SUCCESS) return bad;
  SONDE_CLIENT(client);
  const size_t size = attributeSize(attr);
  uint64_t number;
  {
    std::lock_guard lock(client->deliveryMutex);
    number = client->attributes[attr];
  }
  std::memcpy(value, &number, size);  // little endian
  *valueSize = size;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attr, size_t* valueSize, void* value) {
  if (const CUptiResult bad = checkAttribute(attr, valueSize, value); bad != CUPTI_SUCCESS) return bad;
  SONDE_CLIENT(client);
  uint64_t number = 0;
  std::memcpy(&number, value, attributeSize(attr));
  std::lock_guard lock(client->deliveryMutex);
  client->attributes[attr] = number;
  client->applyAttributes();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable) {
  SONDE_CLIENT(client);
  return set(client, &Client::latencyTimestamps, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableLaunchAttributes(uint8_t enable) {
  SONDE_CLIENT(client);
  return set(client, &Client::launchAttributes, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableAllSyncRecords(uint8_t enable) {
  SONDE_CLIENT(client);
  return set(client, &Client::allSyncRecords, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  SONDE_CLIENT(client);
  return set(client, &Client::eventTimestamps, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableAllocationSource(uint8_t enable) {
  SONDE_CLIENT(client);
  return set(client, &Client::allocationSource, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable) {
  SONDE_CLIENT(client);
  return enableApi(client, CUPTI_CB_DOMAIN_RUNTIME_API, cbid, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  SONDE_CLIENT(client);
  return enableApi(client, CUPTI_CB_DOMAIN_DRIVER_API, cbid, enable);
}

CUptiResult CUPTIAPI cuptiActivityEnableHWTrace(uint8_t enable) {
  return fail(CUPTI_ERROR_NOT_SUPPORTED, "this device has no hardware event system");
}

CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc funcTimestamp) {
  if (funcTimestamp == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "funcTimestamp is NULL");
  SONDE_CLIENT(client);
  // An earlier clock may be in use on another thread: it is never freed.
  auto* clock = new ClientClock(funcTimestamp);
  keepForEver(clock);
  client->clock.store(clock);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is not a kind of external correlation", static_cast<int>(kind));
  }
  SONDE_CLIENT(client);
  return pushExternalId(client, kind, id);
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* lastId) {
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%d is not a kind of external correlation", static_cast<int>(kind));
  }
  SONDE_CLIENT(client);
  return popExternalId(client, kind, lastId);
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT && type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM) {
    return fail(CUPTI_ERROR_NOT_SUPPORTED, "%d is not a thread id type", static_cast<int>(type));
  }
  SONDE_CLIENT(client);
  client->systemThreadIds.store(type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  if (type == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "type is NULL");
  const Client* client = existingClient(SONDE_CALLER());
  *type = client != nullptr && client->systemThreadIds.load() ? CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
                                                              : CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiFinalize(void) {
  collectFinishedWork();
  finalizeClient(existingClient(SONDE_CALLER()));
  detachUnusedPlatform();
  return CUPTI_SUCCESS;
}

}  // extern "C"
