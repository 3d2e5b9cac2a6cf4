// SPDX-License-Identifier: Apache-2.0
// How the runtime systems of OpenACC and OpenMP find this library: a client is
// their tool and passes on what they give it.
#include "core/directives.h"

#include <Openacc/cupti_openacc.h>
#include <Openmp/cupti_openmp.h>

#include "cupti/entry.h"

using namespace sonde::core;

namespace {

int attachOpenMp(ompt_function_lookup_t lookup, uint32_t version) {
  if (lookup == nullptr) {
    fail(CUPTI_ERROR_INVALID_PARAMETER, "the lookup function is NULL");
    return 0;
  }
  if (!openmp::attach(reinterpret_cast<openmp::Lookup>(lookup), version)) {
    fail(CUPTI_ERROR_NOT_SUPPORTED, "this OpenMP runtime has no ompt_set_callback");
    return 0;
  }
  return 1;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiOpenACCInitialize(void* profRegister, void* profUnregister, void* profLookup) {
  if (profRegister == nullptr || profUnregister == nullptr || profLookup == nullptr) {
    return fail(CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE, "%s is NULL; pass on what acc_register_library was given",
                profRegister == nullptr     ? "profRegister"
                : profUnregister == nullptr ? "profUnregister"
                                            : "profLookup");
  }
  openacc::attach(reinterpret_cast<openacc::Register>(profRegister));
  return CUPTI_SUCCESS;
}

int CUPTIAPI cuptiOpenMpInitialize(ompt_function_lookup_t lookup, const char*, unsigned int version) {
  return attachOpenMp(lookup, version);
}

int CUPTIAPI cuptiOpenMpInitialize_v2(ompt_function_lookup_t lookup, int, ompt_data_t*) {
  return attachOpenMp(lookup, 0);
}

}  // extern "C"
