// SPDX-License-Identifier: Apache-2.0
// The answer of a function that finds no driver.
#ifndef SONDE_CORE_NO_PLATFORM_H_
#define SONDE_CORE_NO_PLATFORM_H_

#include <string>

#include "core/client.h"
#include "core/errors.h"

namespace sonde::core {

// After requirePlatform gave nothing: UNKNOWN, as CUPTI 13.0 has it; for a
// client of 6.5 NOT_INITIALIZED, as its manual has it. `client` may be nullptr.
inline CUptiResult noPlatform(const Client* client) {
  if (client == nullptr || !client->manual6050) return CUPTI_ERROR_UNKNOWN;
  const std::string why = resultMessage(CUPTI_ERROR_UNKNOWN);
  return fail(CUPTI_ERROR_NOT_INITIALIZED, "%s", why.c_str());
}

}  // namespace sonde::core

#endif  // SONDE_CORE_NO_PLATFORM_H_
