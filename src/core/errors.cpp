// SPDX-License-Identifier: Apache-2.0
#include "core/errors.h"

#include <cuda.h>

#include <cstdarg>
#include <cstdio>

namespace sonde::core {
namespace {

struct LastFailure {
  CUptiResult pending;   // for cuptiGetLastError
  CUptiResult detailOf;  // the code that `text` belongs to
  char text[256];
};
thread_local LastFailure last;

struct Code {
  CUptiResult code;
  const char* name;
  const char* message;
};

#define SONDE_CODE(name, message) {CUPTI_##name, "CUPTI_" #name, message}
constexpr Code kCodes[] = {
    SONDE_CODE(SUCCESS, "no error"),
    SONDE_CODE(ERROR_INVALID_PARAMETER, "an argument is NULL or has a value that the function does not take"),
    SONDE_CODE(ERROR_INVALID_DEVICE, "there is no such CUDA device"),
    SONDE_CODE(ERROR_INVALID_CONTEXT, "the context is NULL, destroyed or not a context"),
    SONDE_CODE(ERROR_INVALID_EVENT_DOMAIN_ID, "the device has no event domain with this id"),
    SONDE_CODE(ERROR_INVALID_EVENT_ID, "the device has no event with this id"),
    SONDE_CODE(ERROR_INVALID_EVENT_NAME, "the device has no event with this name"),
    SONDE_CODE(ERROR_INVALID_OPERATION, "the call is not allowed in the present state"),
    SONDE_CODE(ERROR_OUT_OF_MEMORY, "there was not enough memory"),
    SONDE_CODE(ERROR_HARDWARE, "the hardware that counts or measures failed"),
    SONDE_CODE(ERROR_PARAMETER_SIZE_NOT_SUFFICIENT, "the buffer given for the value is too small"),
    SONDE_CODE(ERROR_API_NOT_IMPLEMENTED, "the function is not implemented"),
    SONDE_CODE(ERROR_MAX_LIMIT_REACHED, "the end is reached: no more items"),
    SONDE_CODE(ERROR_NOT_READY, "what was asked for is not ready yet"),
    SONDE_CODE(ERROR_NOT_COMPATIBLE, "this does not go together with what is enabled or how it was configured"),
    SONDE_CODE(ERROR_NOT_INITIALIZED, "the profiling library could not be initialised"),
    SONDE_CODE(ERROR_INVALID_METRIC_ID, "the device has no metric with this id"),
    SONDE_CODE(ERROR_INVALID_METRIC_NAME, "the device has no metric with this name"),
    SONDE_CODE(ERROR_QUEUE_EMPTY, "the queue is empty"),
    SONDE_CODE(ERROR_INVALID_HANDLE, "the handle is not valid"),
    SONDE_CODE(ERROR_INVALID_STREAM, "the stream is not valid in this context"),
    SONDE_CODE(ERROR_INVALID_KIND, "there is no such kind, or the record is damaged or incomplete"),
    SONDE_CODE(ERROR_INVALID_EVENT_VALUE, "an event value needed for the metric is not valid"),
    SONDE_CODE(ERROR_DISABLED, "profiling is disabled for this process"),
    SONDE_CODE(ERROR_INVALID_MODULE, "the module is not valid"),
    SONDE_CODE(ERROR_INVALID_METRIC_VALUE, "the metric cannot be computed from these values"),
    SONDE_CODE(ERROR_HARDWARE_BUSY, "another client uses the hardware that this needs"),
    SONDE_CODE(ERROR_NOT_SUPPORTED, "this is not supported by this library, device or driver"),
    SONDE_CODE(ERROR_UM_PROFILING_NOT_SUPPORTED, "unified memory cannot be profiled on this system"),
    SONDE_CODE(ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE, "unified memory cannot be profiled on this device"),
    SONDE_CODE(ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES,
               "unified memory cannot be profiled on devices without peer access to each other"),
    SONDE_CODE(ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS, "unified memory cannot be profiled under MPS"),
    SONDE_CODE(ERROR_CDP_TRACING_NOT_SUPPORTED, "kernels launched from the device cannot be traced here"),
    SONDE_CODE(ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "virtualised devices cannot be profiled"),
    SONDE_CODE(ERROR_CUDA_COMPILER_NOT_COMPATIBLE, "the program was built with a compiler that does not fit"),
    SONDE_CODE(ERROR_INSUFFICIENT_PRIVILEGES, "the user may not profile this device"),
    SONDE_CODE(ERROR_OLD_PROFILER_API_INITIALIZED, "the older profiler interface is in use in this process"),
    SONDE_CODE(ERROR_OPENACC_UNDEFINED_ROUTINE, "the OpenACC runtime lacks a routine that is needed"),
    SONDE_CODE(ERROR_LEGACY_PROFILER_NOT_SUPPORTED, "the device does not support this older interface"),
    SONDE_CODE(ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "this client has a subscriber already"),
    SONDE_CODE(ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "the virtualised device may not be profiled"),
    SONDE_CODE(ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "devices in confidential mode cannot be profiled"),
    SONDE_CODE(ERROR_CMP_DEVICE_NOT_SUPPORTED, "devices made for mining cannot be profiled"),
    SONDE_CODE(ERROR_MIG_DEVICE_NOT_SUPPORTED, "partitioned devices cannot be profiled"),
    SONDE_CODE(ERROR_SLI_DEVICE_NOT_SUPPORTED, "coupled devices cannot be profiled"),
    SONDE_CODE(ERROR_WSL_DEVICE_NOT_SUPPORTED, "devices of the Windows subsystem for Linux cannot be profiled"),
    SONDE_CODE(ERROR_INVALID_CHIP_NAME, "there is no chip with this name"),
    SONDE_CODE(ERROR_UNKNOWN, "an error that has no code of its own"),
};
#undef SONDE_CODE

const Code* find(CUptiResult code) {
  for (const Code& c : kCodes) {
    if (c.code == code) return &c;
  }
  return nullptr;
}

}  // namespace

CUptiResult fail(CUptiResult code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last.text, sizeof last.text, format, arguments);
  va_end(arguments);
  last.pending = last.detailOf = code;
  return code;
}

CUptiResult takeLastError() {
  const CUptiResult code = last.pending;
  last.pending = CUPTI_SUCCESS;
  return code;
}

const char* resultName(CUptiResult code) {
  const Code* c = find(code);
  return c != nullptr ? c->name : nullptr;
}

const char* resultMessage(CUptiResult code) {
  if (code != CUPTI_SUCCESS && last.detailOf == code && last.text[0] != 0) return last.text;
  const Code* c = find(code);
  return c != nullptr ? c->message : nullptr;
}

CUptiResult fromDriver(int error) {
  switch (error) {
    case CUDA_SUCCESS: return CUPTI_SUCCESS;
    case CUDA_ERROR_INVALID_VALUE: return CUPTI_ERROR_INVALID_PARAMETER;
    case CUDA_ERROR_OUT_OF_MEMORY: return CUPTI_ERROR_OUT_OF_MEMORY;
    case CUDA_ERROR_NOT_INITIALIZED: return CUPTI_ERROR_NOT_INITIALIZED;
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE: return CUPTI_ERROR_INVALID_DEVICE;
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return CUPTI_ERROR_INVALID_CONTEXT;
    case CUDA_ERROR_INVALID_HANDLE: return CUPTI_ERROR_INVALID_HANDLE;
    case CUDA_ERROR_NOT_SUPPORTED: return CUPTI_ERROR_NOT_SUPPORTED;
    case CUDA_ERROR_NOT_PERMITTED: return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    case CUDA_ERROR_ALREADY_MAPPED:
    case CUDA_ERROR_ALREADY_ACQUIRED: return CUPTI_ERROR_HARDWARE_BUSY;
    default: return CUPTI_ERROR_UNKNOWN;
  }
}

}  // namespace sonde::core
