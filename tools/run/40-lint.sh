# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Style: formatting, rules that a grep can check, generated files not stale.

lint_forbidden() {
  local bad=0
  check() { # check PATTERN WHY PATHSPEC…
    local pattern=$1 why=$2; shift 2
    local hits
    hits=$(git grep -nE "$pattern" -- "$@" ':!*generated*' | head -5 || true)
    if [ -n "$hits" ]; then printf '%s\n%s\n' "lint: $why" "$hits"; bad=1; fi
  }
  check 'std::regex[_ ]*[a-z_]*[({ ][a-z"]*[;(]' 'std::regex is slow and crashes on long input: write a small matcher' 'src/*.cpp' 'src/*.h'
  check '\babort\(\)' 'never abort inside somebody else'\''s process' 'src/*.cpp' 'src/*.h' 'src/*.c'
  check 'std::cout|std::cerr' 'output goes through fmt or spdlog, in the CLI only' 'src/*.cpp' 'src/*.h'
  return $bad
}

lint_format() {
  local cf
  cf=$(command -v clang-format-19 || command -v clang-format-18 || command -v clang-format || true)
  [ -n "$cf" ] || { say "lint: clang-format is not installed; formatting not checked"; return 0; }
  # Versions differ in details, so CI checks with 19 alone.
  case $("$cf" --version) in *"version 19."*) ;; *) say "lint: clang-format 19 is not installed; formatting not checked"; return 0 ;; esac
  # Files that are older than the check are listed until somebody formats them;
  # the list may only shrink.
  git ls-files '*.cpp' '*.h' '*.c' ':!include/**' ':!*generated*' ':!*.def' |
    xargs -r "$cf" --dry-run -Werror 2>&1 | head -20 | { ! grep . >&2; }
}

word_lint() {
  no_arguments lint "$@"
  local bad=0
  ensure_packages lint_packages
  git ls-files >/dev/null || die "./run lint looks at the files that git tracks: it needs a clone"
  lint_forbidden || bad=1
  lint_format || { say "lint: run 'git clang-format' or clang-format -i on the files above"; bad=1; }
  if [ -x api/gen/check ]; then api/gen/check || bad=1; fi
  [ $bad = 0 ] || die "style checks failed"
  say "style checks passed"
}
