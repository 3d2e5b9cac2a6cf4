// SPDX-License-Identifier: Apache-2.0
// The parts of EventSystem that its source files share.
#pragma once

#include "core/events/event_system.h"

namespace sonde::core::events {

struct EventSystem::Device {
  uint32_t id = 0;
  Catalogue catalogue;
  std::string failure;  // why there is none
};

struct EventSystem::Context {
  CUcontext handle = nullptr;
  Device* device = nullptr;
  CUpti_EventCollectionMode mode = CUPTI_EVENT_COLLECTION_MODE_KERNEL;
  bool replay = false;
  bool destroyed = false;
  std::vector<Group*> enabled;
};

// Cumulative values of one event and where the last kernel began.
struct EventSystem::Snapshot {
  std::vector<int64_t> now, atKernelStart;
  uint64_t kernels = 0;
};

struct EventSystem::Enabled {
  const Event* event = nullptr;
  std::vector<int64_t> base;
  uint64_t baseKernels = 0;
};

struct EventSystem::Group {
  Context* context = nullptr;
  const Domain* domain = nullptr;
  std::vector<Enabled> events;
  bool profileAll = false;
  bool enabled = false;
  void* userData = nullptr;
  const void* client = nullptr;
};

inline Status invalidParameter(const char* text) { return {CUPTI_ERROR_INVALID_PARAMETER, text}; }

inline std::string quoted(const std::string& name) { return "\"" + name + "\""; }

}  // namespace sonde::core::events
