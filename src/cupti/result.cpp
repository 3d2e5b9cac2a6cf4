// SPDX-License-Identifier: Apache-2.0
// Result codes and the version.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

// What the libraries of earlier toolkits reported: from this release on, this number.
struct Release {
  unsigned major, minor;
  uint32_t version;
};
constexpr Release kReleases[] = {
    {6, 5, 6},   {7, 0, 8},   {8, 0, 9},   {9, 0, 10},  {9, 1, 11},  {10, 0, 12}, {11, 0, 13},
    {11, 1, 14}, {11, 2, 15}, {11, 5, 16}, {11, 6, 17}, {11, 8, 18}, {12, 0, 19}, {12, 2, 20},
    {12, 3, 21}, {12, 4, 22}, {12, 5, 23}, {12, 6, 24}, {12, 8, 26}, {12, 9, 28}, {13, 0, CUPTI_API_VERSION}};

// SONDE_CUDA_VERSION=12.9: for tools that refuse the event interface, or themselves, by the number alone.
uint32_t reportedVersion() {
  const char* text = std::getenv("SONDE_CUDA_VERSION");
  unsigned major = 0, minor = 0;
  char rest = 0;
  if (text == nullptr || std::sscanf(text, "%u.%u%c", &major, &minor, &rest) != 2) return CUPTI_API_VERSION;
  uint32_t version = 0;
  for (const Release& r : kReleases)
    if (std::pair(r.major, r.minor) <= std::pair(major, minor)) version = r.version;
  const Release& newest = *std::rbegin(kReleases);
  return version == 0 || std::pair(major, minor) > std::pair(newest.major, newest.minor) ? CUPTI_API_VERSION : version;
}

}  // namespace

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
  static const uint32_t reported = reportedVersion();
  *version = reported;
  return CUPTI_SUCCESS;
}

}  // extern "C"
