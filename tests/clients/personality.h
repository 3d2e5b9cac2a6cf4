// SPDX-License-Identifier: Apache-2.0
// A client that others wrote, as its table (table/*.txt) has it: what it calls,
// when, with what, and as which structures it reads the records.
#ifndef SONDE_TESTS_CLIENTS_PERSONALITY_H_
#define SONDE_TESTS_CLIENTS_PERSONALITY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace clients {

// One line: WHEN FUNCTION ARGUMENTS… [= RESULT].
struct Step {
  std::string when, function;
  std::vector<std::string> arguments;
  std::string result = "SUCCESS";  // CUPTI_ERROR_… without the prefix
  int line = 0;
};

struct Personality {
  std::string file, name, loads;
  std::string layout;                                  // what it is run with
  std::string generation;                              // which structures its registration chooses, in the same form
  std::map<std::string, std::vector<uint32_t>> kinds;  // the versions that it reads
  std::vector<Step> steps;
  std::set<std::string> optional;  // functions that it calls only where they work
  bool graphs = true;              // the program has graphs (within a capture nothing can be waited for)
  bool everyKind = false;          // none that is switched on may stay without records
  int lives = 1;                   // how often it goes through its steps

  std::set<std::string> functions() const;
};

// Every table of the folder, by file name. What is wrong with one goes to `error`.
std::vector<Personality> readPersonalities(std::string* error);

// Plays the client: runs the steps around the program, and compares what it is
// told with what the program did. The differences, one a line; empty: none.
std::string play(const Personality& client);

}  // namespace clients

#endif  // SONDE_TESTS_CLIENTS_PERSONALITY_H_
