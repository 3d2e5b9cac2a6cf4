// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cupti_result.h>

#include <string>
#include <utility>

namespace sonde::core::events {

// The outcome of an operation: a result code and, on failure, one sentence
// that says what was wrong and what to do.
struct [[nodiscard]] Status {
  CUptiResult code = CUPTI_SUCCESS;
  std::string message;

  Status() = default;
  Status(CUptiResult c, std::string text) : code(c), message(std::move(text)) {}
  bool ok() const { return code == CUPTI_SUCCESS; }
};

}  // namespace sonde::core::events
