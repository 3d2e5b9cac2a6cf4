// SPDX-License-Identifier: Apache-2.0
// Result codes, and the sentence that goes with a failure. Each thread keeps its
// last failure for cuptiGetLastError and cuptiGetErrorMessage.
#ifndef SONDE_CORE_ERRORS_H_
#define SONDE_CORE_ERRORS_H_

#include <cupti.h>

namespace sonde::core {

// Notes the failure of this thread and returns `code`. The text says what was
// wrong and what to do; printf style, cut after 255 bytes.
CUptiResult fail(CUptiResult code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Last failure of this thread, which is forgotten by the call.
CUptiResult takeLastError();

// "CUPTI_ERROR_NOT_READY"; nullptr: no such code.
const char* resultName(CUptiResult code);

// A sentence about the code; that of this thread's last failure when it had
// this code. nullptr: no such code. Valid until this thread's next failure.
const char* resultMessage(CUptiResult code);

// A CUresult of the platform as the nearest CUptiResult.
CUptiResult fromDriver(int error);

}  // namespace sonde::core

#endif  // SONDE_CORE_ERRORS_H_
