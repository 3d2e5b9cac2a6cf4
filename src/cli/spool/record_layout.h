// SPDX-License-Identifier: Apache-2.0
// What the collector must know of each record kind to copy it out of the
// process: how long it is and which of its fields are pointers to text.
#ifndef SONDE_CLI_SPOOL_RECORD_LAYOUT_H_
#define SONDE_CLI_SPOOL_RECORD_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace sonde::spool {

struct RecordLayout {
  uint16_t size = 0;          // of the newest structure of the kind; 0: the kind is not kept
  uint16_t strings[4] = {};   // offsets of const char* fields; 0 ends the list
  uint16_t pointers[2] = {};  // offsets of other pointers, meaningless elsewhere: stored as 0
};

// Of the record structures that this build was compiled with.
RecordLayout recordLayout(uint32_t kind);

}  // namespace sonde::spool

#endif  // SONDE_CLI_SPOOL_RECORD_LAYOUT_H_
