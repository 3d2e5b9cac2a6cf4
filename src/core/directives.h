// SPDX-License-Identifier: Apache-2.0
// Programs of OpenACC and OpenMP: their runtime systems tell a tool what they do
// (the profiling interface of OpenACC 2.6, OMPT of OpenMP 5), and that becomes
// records of the kinds OPENACC_DATA, OPENACC_LAUNCH, OPENACC_OTHER and OPENMP.
#ifndef SONDE_CORE_DIRECTIVES_H_
#define SONDE_CORE_DIRECTIVES_H_

#include <cstdint>
#include <vector>

namespace sonde::core {

// A construct that a thread is in.
struct OpenConstruct {
  uint32_t event;  // the runtime's number of its beginning
  uint32_t externalId;
  uint32_t clients;  // that have its external id
  uint64_t start;
};

// What a thread's records of directives need. A part of ThreadState.
struct DirectiveState {
  std::vector<OpenConstruct> accelerated;  // OpenACC, the innermost last
  std::vector<OpenConstruct> parallel;     // OpenMP, likewise
  uint32_t threadNumber = 0;               // in its team, of OpenMP
};

namespace openacc {

// The runtime's acc_prof_register. Called once for each runtime (or again: then
// it does nothing).
using Register = void (*)(int event, void* callback, int mode);
void attach(Register registerCallback);

}  // namespace openacc

namespace openmp {

using Function = void (*)();
using Lookup = Function (*)(const char* name);
// False: it is not the interface of OpenMP 5. `version` goes into the records.
bool attach(Lookup lookup, uint32_t version);

}  // namespace openmp
}  // namespace sonde::core

#endif  // SONDE_CORE_DIRECTIVES_H_
