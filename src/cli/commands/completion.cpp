// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

namespace sonde::cli {
namespace {

std::vector<std::string> flags(const CLI::App& app) {
  std::vector<std::string> all;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& l : option->get_lnames()) all.push_back("--" + l);
    for (const std::string& s : option->get_snames()) all.push_back("-" + s);
  }
  return all;
}

std::string quotedForFish(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) out += c == '\'' ? std::string("\\'") : std::string(1, c);
  return out;
}

}  // namespace

std::optional<std::string> completionScript(const CLI::App& app, const std::string& shell) {
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  std::string names;
  for (const CLI::App* sub : subcommands) names += (names.empty() ? "" : " ") + sub->get_name();
  if (shell == "bash" || shell == "zsh") {
    std::string cases;
    for (const CLI::App* sub : subcommands)
      cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), fmt::join(flags(*sub), " "));
    // zsh runs the same script through its bash compatibility.
    return std::string(shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "") +
           "_sonde() {\n"
           "  local current=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
           "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "    COMPREPLY=($(compgen -W \"" +
           names + " " + fmt::format("{}", fmt::join(flags(app), " ")) +
           "\" -- \"$current\"))\n"
           "    return\n"
           "  fi\n"
           "  case \"${COMP_WORDS[1]}\" in\n" +
           cases +
           "  esac\n"
           "  case \"$current\" in\n"
           "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$current\")) ;;\n"
           "    *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
           "  esac\n"
           "}\n"
           "complete -o filenames -F _sonde sonde\n";
  }
  if (shell == "fish") {
    std::string out;
    for (const CLI::App* sub : subcommands) {
      out += fmt::format("complete -c sonde -n __fish_use_subcommand -f -a {} -d '{}'\n", sub->get_name(),
                         quotedForFish(sub->get_description()));
      for (const CLI::Option* option : sub->get_options()) {
        std::string line = fmt::format("complete -c sonde -n '__fish_seen_subcommand_from {}'", sub->get_name());
        for (const std::string& l : option->get_lnames()) line += " -l " + l;
        for (const std::string& s : option->get_snames()) line += " -s " + s;
        if (option->get_items_expected_max() > 0) line += " -r";
        if (!option->get_lnames().empty() || !option->get_snames().empty())
          out += line + fmt::format(" -d '{}'\n", quotedForFish(option->get_description()));
      }
    }
    return out;
  }
  return std::nullopt;
}

}  // namespace sonde::cli
