// SPDX-License-Identifier: Apache-2.0
// Reads spools and trace files. Damage never stops it: it takes every block
// whose checksums hold and counts the bytes of the rest.
#ifndef SONDE_CLI_SPOOL_READER_H_
#define SONDE_CLI_SPOOL_READER_H_

#include <span>
#include <string>

#include "cli/spool/trace.h"

namespace sonde::spool {

// Appends what `data` holds to the trace. False and a sentence in *error when
// it is no spool at all, or one of a newer version. The caller calls
// Trace::finish once everything is read.
bool readSpool(std::span<const unsigned char> data, Trace& trace, std::string* error);

// A trace file, a spool, or a folder of spools.
bool readTrace(const std::string& path, Trace& trace, std::string* error);

bool readWholeFile(const std::string& path, std::string* content, std::string* error);

}  // namespace sonde::spool

#endif  // SONDE_CLI_SPOOL_READER_H_
