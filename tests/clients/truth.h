// SPDX-License-Identifier: Apache-2.0
// What a program did, noted by the program itself as it does it: the measure for
// what a client of the library is told.
#ifndef SONDE_TESTS_CLIENTS_TRUTH_H_
#define SONDE_TESTS_CLIENTS_TRUTH_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace clients {

// A record that must come: fields by their names in the record's structure.
struct Expected {
  std::map<std::string, uint64_t> fields;
  std::string name;      // field `name`, when not empty
  bool ofGraph = false;  // a node of a graph that was launched as a whole
};

struct Truth {
  // By activity kind ("KERNEL" stands for CONCURRENT_KERNEL too), in the order of the calls.
  std::map<std::string, std::vector<Expected>> records;
  // Sums of a field over all records of a kind: "GLOBAL_ACCESS.threadsExecuted".
  std::map<std::string, uint64_t> sums;
  // Calls by domain and function: "RUNTIME_API.cudaMalloc". Of the driver only those that the program makes itself.
  std::map<std::string, uint32_t> calls;
  std::string lastCall;
  uint32_t blocks = 0, warps = 0, threads = 0;  // launched on device 0
};

}  // namespace clients

#endif  // SONDE_TESTS_CLIENTS_TRUTH_H_
