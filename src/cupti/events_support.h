// SPDX-License-Identifier: Apache-2.0
// What the entry points of events and metrics share: the conventions of sizes
// in bytes that go in as room and come out as what was written.
#pragma once

#include <cupti.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/events/status.h"

namespace sonde::cupti {

inline CUptiResult report(const core::events::Status& status) {
  return status.ok() ? CUPTI_SUCCESS : core::fail(status.code, "%s", status.message.c_str());
}

// A number or struct: all of it or an error.
template <class T>
CUptiResult writeValue(size_t* valueSize, void* value, const T& v) {
  if (*valueSize < sizeof(T))
    return core::fail(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the value needs %zu bytes, there is room for %zu",
                      sizeof(T), *valueSize);
  std::memcpy(value, &v, sizeof(T));
  *valueSize = sizeof(T);
  return CUPTI_SUCCESS;
}

// A string: cut without a terminating NUL when it does not fit, which is no
// error.
inline CUptiResult writeString(size_t* valueSize, void* value, const std::string& text) {
  const size_t bytes = std::min(*valueSize, text.size() + 1);
  std::memcpy(value, text.c_str(), bytes);
  *valueSize = bytes;
  return CUPTI_SUCCESS;
}

// A list: as many whole elements as there is room for.
template <class T>
CUptiResult writeList(size_t* arraySizeBytes, T* array, const std::vector<T>& list) {
  const size_t n = std::min(*arraySizeBytes / sizeof(T), list.size());
  std::copy_n(list.begin(), n, array);
  *arraySizeBytes = n * sizeof(T);
  return CUPTI_SUCCESS;
}

}  // namespace sonde::cupti
