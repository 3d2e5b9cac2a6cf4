// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/source_lines.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sonde::reports {
namespace {

namespace fs = std::filesystem;

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? std::nan("") : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

void addMemory(InstructionCounts::Memory& to, const InstructionCounts::Memory& m) {
  to.requests += m.requests;
  to.threads += m.threads;
  to.transactions += m.transactions;
  to.ideal += m.ideal;
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

bool readFile(const fs::path& path, std::vector<std::string>* lines) {
  std::error_code ec;
  if (!fs::is_regular_file(path, ec)) return false;
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  std::ostringstream text;
  text << in.rdbuf();
  *lines = linesOf(text.str());
  return true;
}

}  // namespace

void LineCounts::add(const InstructionCounts& i) {
  executed += i.executed;
  threads += i.threads;
  notPredicatedOff += i.notPredicatedOff;
  branches += i.branches;
  diverged += i.diverged;
  branchThreads += i.branchThreads;
  addMemory(global, i.global);
  addMemory(shared, i.shared);
}

void LineCounts::add(const LineCounts& o) {
  executed += o.executed;
  threads += o.threads;
  notPredicatedOff += o.notPredicatedOff;
  branches += o.branches;
  diverged += o.diverged;
  branchThreads += o.branchThreads;
  addMemory(global, o.global);
  addMemory(shared, o.shared);
}

double LineCounts::threadEfficiency() const { return percent(notPredicatedOff, 32 * executed); }
double LineCounts::divergence() const { return percent(diverged, branches); }
double LineCounts::efficiency(const InstructionCounts::Memory& m) { return percent(m.ideal, m.transactions); }

namespace {

using FunctionKey = std::pair<uint32_t, uint32_t>;  // process, function id

bool hasLine(const Trace& trace, const InstructionCounts& i) {
  if (i.file == 0 || i.line == 0) return false;
  if (trace.moduleTexts.count({i.process, i.file}) != 0) return false;
  const std::string& name = trace.text(i.file);  // a text that was too long to keep
  return !(name.compare(0, 7, "module_") == 0 && name.size() > 11 && name.compare(name.size() - 4, 4, ".ptx") == 0 &&
           name.find_first_not_of("0123456789", 7) == name.size() - 4);
}

// Functions that have lines, with the file of the first of them: that is where the function stands, while later code
// may have been inlined from headers.
std::map<FunctionKey, StringId> functionsWithLines(const Trace& trace) {
  std::map<FunctionKey, std::pair<uint32_t, StringId>> first;
  for (const InstructionCounts& i : trace.instructions) {
    if (!hasLine(trace, i)) continue;
    const auto [at, isNew] = first.try_emplace({i.process, i.functionId}, i.pc, i.file);
    if (!isNew && i.pc < at->second.first) at->second = {i.pc, i.file};
  }
  std::map<FunctionKey, StringId> found;
  for (const auto& [key, file] : first) found[key] = file.second;
  return found;
}

}  // namespace

std::string SourceProfile::Line::label() const {
  if (line == 0) return "(no line)";
  const size_t slash = file->name.rfind('/');
  return (slash == std::string::npos ? file->name : file->name.substr(slash + 1)) + ":" + std::to_string(line);
}

SourceProfile profileOf(const Trace& trace, const Options& options) {
  SourceProfile profile;
  const auto withLines = functionsWithLines(trace);
  std::map<std::pair<std::string, std::string>, size_t> files;
  std::map<StringId, std::pair<bool, std::string>> functions;  // selected, shown name
  for (const InstructionCounts& i : trace.instructions) {
    auto [f, isNew] = functions.try_emplace(i.function);
    if (isNew) {
      const std::string& mangled = trace.text(i.function);
      f->second = {options.kernels.empty() || options.kernels.matches(demangle(mangled)),
                   kernelName(mangled, options.names)};
    }
    if (!f->second.first) continue;
    const auto ofFunction = withLines.find({i.process, i.functionId});
    const bool noLine = ofFunction != withLines.end() && !hasLine(trace, i);
    const StringId fileId = noLine ? ofFunction->second : i.file;
    const std::string& name = trace.text(fileId);
    const bool isPtx = trace.moduleTexts.count({i.process, fileId}) != 0;
    // The same path in two processes is one file; a module's PTX is its process's own.
    const bool absolute = !name.empty() && name[0] == '/';
    const std::string& folder = trace.processes[i.process].workingDirectory;
    const std::string owner = isPtx ? std::to_string(trace.processes[i.process].pid) : absolute ? "" : folder;
    const auto [at, isNewFile] = files.try_emplace({owner, name}, profile.files.size());
    if (isNewFile) {
      SourceFile& file = profile.files.emplace_back();
      file.name = name.empty() ? "(no source line)" : name;
      file.directory = folder;
      file.isPtx = isPtx;
      if (isPtx) file.text = linesOf(trace.text(trace.moduleTexts.at({i.process, fileId})));
    }
    SourceFile& file = profile.files[at->second];
    LineCounts& line = noLine ? file.noLine[f->second.second] : file.lines[i.line];
    line.add(i);
    if (!f->second.second.empty()) line.functions.insert(f->second.second);
    file.total.add(i);
    profile.total.add(i);
  }
  std::stable_sort(profile.files.begin(), profile.files.end(),
                   [](const SourceFile& a, const SourceFile& b) { return a.total.cost() > b.total.cost(); });
  for (const SourceFile& file : profile.files) {
    for (const auto& [number, counts] : file.lines) profile.byCost.push_back({&file, number, &counts, ""});
    for (const auto& [function, counts] : file.noLine) profile.byCost.push_back({&file, 0, &counts, function});
  }
  std::stable_sort(profile.byCost.begin(), profile.byCost.end(),
                   [](const auto& a, const auto& b) { return a.counts->cost() > b.counts->cost(); });
  return profile;
}

void readTexts(SourceProfile& profile, const Trace&, const std::vector<std::string>& folders) {
  for (SourceFile& file : profile.files) {
    if (!file.text.empty()) continue;
    const fs::path name(file.name);
    if (readFile(name.is_absolute() ? name : fs::path(file.directory) / name, &file.text)) continue;
    bool found = false;
    for (const std::string& folder : folders) {
      // src/a/b.cu is looked for as src/a/b.cu, a/b.cu and b.cu.
      std::vector<fs::path> parts(name.begin(), name.end());
      for (size_t from = 0; from < parts.size() && !found; from++) {
        fs::path end;
        for (size_t k = from; k < parts.size(); k++) end /= k == 0 && parts[k] == "/" ? fs::path() : parts[k];
        found = readFile(fs::path(folder) / end, &file.text);
      }
      if (found) break;
    }
  }
}

}  // namespace sonde::reports
