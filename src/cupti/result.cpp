// SPDX-License-Identifier: Apache-2.0
// Result codes and the version.
#include "cupti/entry.h"

using namespace sonde::core;

extern "C" {

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** str) {
  const char* name = resultName(result);
  if (str == nullptr || name == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, str == nullptr ? "str is NULL" : "there is no such result code");
  }
  *str = name;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char** str) {
  const char* message = resultMessage(result);
  if (str == nullptr || message == nullptr) {
    return fail(CUPTI_ERROR_INVALID_PARAMETER, str == nullptr ? "str is NULL" : "there is no such result code");
  }
  *str = message;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetLastError(void) { return takeLastError(); }

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return fail(CUPTI_ERROR_INVALID_PARAMETER, "version is NULL");
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

}  // extern "C"
