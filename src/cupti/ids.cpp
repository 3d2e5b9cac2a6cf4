// SPDX-License-Identifier: Apache-2.0
// Time, and the ids of contexts, devices, streams and graphs. All of these may
// be called from callbacks.
#include "core/no_platform.h"
#include "cupti/entry.h"

using namespace sonde::core;

namespace {

// The platform's answer, or a failure that names what was asked about.
CUptiResult idOf(const void* handle, const void* result, const char* what, int32_t (*query)(SondeHandle, uint32_t*),
                 uint32_t* id) {
  if (handle == nullptr || result == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", handle == nullptr ? what : "the place for the id");
  }
  uint32_t value;
  if (query(const_cast<void*>(handle), &value) != 0) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%p is not a %s", handle, what);
  }
  *id = value;
  return CUPTI_SUCCESS;
}

CUptiResult streamId(const void* caller, CUcontext context, CUstream stream, uint8_t perThread, uint32_t* id) {
  if (id == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "streamId is NULL");
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return noPlatform(existingClient(caller));
  uint32_t value;
  if (context != nullptr && platform->contextId(context, &value) != 0) {
    return fail(CUPTI_ERROR_INVALID_STREAM, "%p is not a context", static_cast<void*>(context));
  }
  if (platform->streamId(context, stream, perThread, &value) != 0) {
    return fail(CUPTI_ERROR_INVALID_STREAM, "%p is not a stream of this context", static_cast<void*>(stream));
  }
  *id = value;
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  if (timestamp == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "timestamp is NULL");
  *timestamp = now();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t* contextId) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return noPlatform(existingClient(SONDE_CALLER()));
  uint32_t id;
  if (context == nullptr || platform->contextId(context, &id) != 0) {
    return fail(CUPTI_ERROR_INVALID_CONTEXT, "%p is not a context", static_cast<void*>(context));
  }
  if (contextId == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "contextId is NULL");
  *contextId = id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* deviceId) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return noPlatform(existingClient(SONDE_CALLER()));
  SondeHandle asked = context;
  if (asked == nullptr) platform->currentContext(&asked);
  uint32_t id;
  if (asked == nullptr || platform->contextDevice(asked, &id) != 0) {
    return fail(CUPTI_ERROR_INVALID_DEVICE, context == nullptr ? "this thread has no current context"
                                                               : "this is not a context; its device is not known");
  }
  if (deviceId == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "deviceId is NULL");
  *deviceId = id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* id) {
  return streamId(SONDE_CALLER(), context, stream, 0, id);
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream, uint32_t* id) {
  return streamId(SONDE_CALLER(), context, stream, perThreadStream, id);
}

CUptiResult CUPTIAPI cuptiGetGraphId(CUgraph graph, uint32_t* pId) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  uint32_t id;
  // Some clients ask with an executable graph; its id is as good an answer.
  if (graph != nullptr && pId != nullptr && platform->graphId(graph, &id) != 0 &&
      platform->graphExecId(graph, &id) == 0) {
    *pId = id;
    return CUPTI_SUCCESS;
  }
  return idOf(graph, pId, "graph", platform->graphId, pId);
}

CUptiResult CUPTIAPI cuptiGetGraphExecId(CUgraphExec graphExec, uint32_t* pId) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  return idOf(graphExec, pId, "graph exec", platform->graphExecId, pId);
}

CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t* nodeId) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  if (node == nullptr || nodeId == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", node == nullptr ? "node" : "nodeId");
  }
  uint64_t id;
  if (platform->graphNodeId(node, &id) != 0) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%p is not a graph node", static_cast<void*>(node));
  }
  *nodeId = id;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetAutoBoostState(CUcontext context, CUpti_ActivityAutoBoostState* state) {
  if (context == nullptr || state == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%s is NULL", context == nullptr ? "context" : "state");
  }
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  uint32_t device;
  if (platform->contextDevice(context, &device) != 0) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, "%p is not a context", static_cast<void*>(context));
  }
  CUpti_ActivityAutoBoostState answer{};
  answer.pid = CUPTI_AUTO_BOOST_INVALID_CLIENT_PID;
  constexpr int32_t kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED
  const int32_t error =
      platform->autoBoost == nullptr ? kNotSupported : platform->autoBoost(device, &answer.enabled, &answer.pid);
  if (error == kNotSupported) return fail(CUPTI_ERROR_NOT_SUPPORTED, "device %u has no auto boost", device);
  if (error != 0) return fail(CUPTI_ERROR_UNKNOWN, "the state of auto boost could not be had (driver error %d)", error);
  *state = answer;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiComputeCapabilitySupported(int major, int minor, int* support) {
  if (support == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "support is NULL");
  // Any device of the platform can be profiled; models exist from 3.0 on.
  *support = major >= 3 && major <= 12 && minor >= 0 && minor <= 9;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceSupported(CUdevice dev, int* support) {
  if (support == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "support is NULL");
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  uint32_t count = 0;
  if (platform->deviceCount(&count) != 0 || dev < 0 || static_cast<uint32_t>(dev) >= count) {
    return fail(CUPTI_ERROR_INVALID_DEVICE, "there is no device %d", dev);
  }
  *support = 1;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceVirtualizationMode(CUdevice dev, CUpti_DeviceVirtualizationMode* mode) {
  const SondePlatform* platform = requirePlatform();
  if (platform == nullptr) return CUPTI_ERROR_UNKNOWN;
  uint32_t count = 0;
  if (platform->deviceCount(&count) != 0 || dev < 0 || static_cast<uint32_t>(dev) >= count) {
    return fail(CUPTI_ERROR_INVALID_DEVICE, "there is no device %d", dev);
  }
  if (mode == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "mode is NULL");
  *mode = CUPTI_DEVICE_VIRTUALIZATION_MODE_NONE;
  return CUPTI_SUCCESS;
}

}  // extern "C"
