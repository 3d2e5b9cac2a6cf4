// SPDX-License-Identifier: Apache-2.0
// Record structures by name: where a client that was compiled with one of them
// reads each field. The offsets are those of api/layouts.tsv.
#ifndef SONDE_TESTS_CLIENTS_STRUCTURES_H_
#define SONDE_TESTS_CLIENTS_STRUCTURES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace clients {

struct Structure {
  struct Field {
    size_t offset, size;
  };
  std::string name;
  size_t size = 0;
  std::map<std::string, Field> fields;
  bool has(const std::string& field) const { return fields.count(field) != 0; }
  // The field of the record at `record`, unsigned.
  uint64_t read(const void* record, const std::string& field) const;
};

// "KERNEL" … to CUPTI_ACTIVITY_KIND_…; 0: no such kind.
uint32_t kindNumber(const std::string& kind);

// The structure of a version of a kind's record ("KERNEL", 4: CUpti_ActivityKernel4);
// nullptr: there is none.
const Structure* structureOf(const std::string& kind, uint32_t version);

// Which versions a record of the newest form can be read as, the oldest first;
// with `base` another form than the newest.
std::vector<uint32_t> versionsOf(const std::string& kind);
bool readableAs(const std::string& kind, uint32_t written, uint32_t read);
uint32_t newestVersion(const std::string& kind);

}  // namespace clients

#endif  // SONDE_TESTS_CLIENTS_STRUCTURES_H_
