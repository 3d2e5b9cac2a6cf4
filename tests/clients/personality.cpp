// SPDX-License-Identifier: Apache-2.0
#include "personality.h"

#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "structures.h"

namespace clients {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> out;
  for (std::string word; in >> word && word[0] != '#';) out.push_back(word);
  return out;
}

Personality readOne(const std::string& folder, const std::string& file, std::string* error) {
  Personality p;
  p.file = file.substr(0, file.rfind('.'));
  std::ifstream in(folder + "/" + file);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    auto w = words(line);
    if (w.empty()) continue;
    auto wrong = [&](const std::string& what) { *error += file + ":" + std::to_string(number) + ": " + what + "\n"; };
    const std::string head = w[0];
    if (w.size() < 2) {
      wrong("too few words");
    } else if (head == "client") {
      p.name = line.substr(line.find(w[1]));
    } else if (head == "loads") {
      p.loads = w[1];
    } else if (head == "layout") {
      p.layout = w[1];
    } else if (head == "generation") {
      p.generation = w[1];
    } else if (head == "lives") {
      p.lives = std::stoi(w[1]);
    } else if (head == "without") {
      if (w[1] != "graphs") wrong("without what?");
      p.graphs = false;
    } else if (head == "every") {
      p.everyKind = w[1] == "kind";
    } else if (head == "optional") {
      p.optional.insert(w.begin() + 1, w.end());
    } else if (head == "reads") {
      if (kindNumber(w[1]) == 0) wrong("no kind " + w[1]);
      for (size_t i = 2; i < w.size(); ++i) p.kinds[w[1]].push_back(static_cast<uint32_t>(std::stoul(w[i])));
      if (w.size() == 2) p.kinds[w[1]].push_back(1);
    } else {
      Step s;
      s.when = head;
      s.function = w[1];
      s.line = number;
      const auto equals = std::find(w.begin(), w.end(), "=");
      s.arguments.assign(w.begin() + 2, equals);
      if (equals != w.end()) {
        if (equals + 1 == w.end())
          wrong("no result after =");
        else
          s.result = equals[1];
      }
      p.steps.push_back(s);
    }
  }
  if (p.name.empty() || p.loads.empty()) *error += file + ": lines `client` and `loads` are missing\n";
  return p;
}

}  // namespace

std::set<std::string> Personality::functions() const {
  std::set<std::string> out = optional;
  for (const Step& s : steps) out.insert(s.function);
  return out;
}

std::vector<Personality> readPersonalities(std::string* error) {
  const std::string folder = CLIENT_TABLES;
  std::vector<std::string> files;
  if (DIR* d = opendir(folder.c_str())) {
    while (const dirent* e = readdir(d)) {
      const std::string name = e->d_name;
      if (name.size() > 4 && name.substr(name.size() - 4) == ".txt") files.push_back(name);
    }
    closedir(d);
  }
  std::sort(files.begin(), files.end());
  std::vector<Personality> out;
  for (const std::string& file : files) out.push_back(readOne(folder, file, error));
  return out;
}

}  // namespace clients
