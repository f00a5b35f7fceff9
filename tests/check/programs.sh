#!/usr/bin/env bash
# The table of external programs (scripts/programs.txt) holds what sources call, and scripts/programs.sh reads it as described.
#   tests/check/programs.sh
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source tests/sentences.sh
# shellcheck source=scripts/programs.sh
source scripts/programs.sh
say() { printf '%s\n' "$*"; }

# Rust: whatever a test starts by name. A name that is computed is checked when the test runs, by the step's PATH.
listed() { programs_of tests | sed 's/^[^ ]* //; s/?$//' | tr '|' '\n' | grep -qxF -- "$1"; }
called=$(grep -rhoE 'Command::new\("[^"]+"\)' crates --include='*.rs' | sed 's/.*("//; s/").*//' | sort -u)
holds "there are programs that Rust sources call by name" test "$(wc -l <<<"$called")" -ge 10
for program in $called; do holds "the table lists $program, which a Rust source calls" listed "$program"; done

# The table itself.
steps=$(sed -n 's/^define_step  *\([a-z-]*\) .*/\1/p' check)
named=$(awk '!/^#/ && NF && $2 != "*" { print $2 }' scripts/programs.txt | tr ',' '\n' | sort -u)
for step in $named; do holds "the table's step $step is a step of ./check" grep -qx -- "$step" <<<"$steps"; done
holds "every line of the table has a source" test -z "$(awk '!/^#/ && NF && $1 !~ /^(debian|rust|cargo|npm|pypi):/' scripts/programs.txt)"
holds "no line lacks programs" test -z "$(awk '!/^#/ && NF && NF < 3' scripts/programs.txt)"
# Two steps that install the same program at once would remove each other's build.
apart() {
    awk '$1 == "define_step" { lane[$2] = $4; after[$2] = "," $6 "," }
        $1 ~ /^cargo:/ && split($2, step, ",") > 1 {
            for (i in step) for (j in step) if (i < j) {
                a = step[i]; b = step[j]
                same = lane[a] != "-" && lane[a] == lane[b]
                if (!same && !index(after[b], "," a ",") && !index(after[a], "," b ",")) print $1 ": " a ", " b
            }
        }' check scripts/programs.txt
}
holds "steps that install the same program share a lane or follow each other" test -z "$(apart)"

# How it is read: a table and programs of our own.
cat >"$work/table" <<'TABLE'
# A comment.
debian:base     *        alpha
debian:second   one,two  beta gamma?
debian:third    two      /nowhere/*/file
debian:fourth   two      delta|epsilon
cargo:tool      two      zeta
TABLE
mkdir "$work/bin"
for program in alpha epsilon outsider; do
    printf '#!/bin/sh\necho %s\n' "$program" >"$work/bin/$program"
    chmod +x "$work/bin/$program"
done
PROGRAMS_TABLE="$work/table" PROGRAMS_SEARCH="$work/bin"
one_line() { "$@" | paste -sd' '; }
is() { [ "$1" = "$2" ] || { printf 'expected: %s\nfound:    %s\n' "$2" "$1"; return 1; }; }
holds "a step's programs are those of its lines and of all steps" \
    is "$(one_line programs_of one)" "debian:base alpha debian:second beta debian:second gamma?"
holds "what is not there is missing, but for what steps install themselves" \
    is "$(one_line programs_missing one two)" "debian:second beta debian:second gamma? debian:third /nowhere/*/file"
unset CI
holds "an optional program is not lacking" is "$(programs_lacking one)" "beta (debian:second)"
CI=true
holds "but where everything must be there" is "$(programs_lacking one)" "beta (debian:second), gamma (debian:second)"
unset CI
programs_path two "$work/path"
holds "a step's PATH has its programs and no others" is "$(one_line ls "$work/path")" "alpha epsilon"
holds "which can be called" is "$("$work/path/epsilon")" epsilon
debian_packages() { say "$*" >>"$work/calls"; }
holds "what several steps need" programs_install one two
holds "is installed by one call" is "$(cat "$work/calls")" "second third"
rm "$work/calls"
holds "what is there already" programs_install none
holds "needs no call" test ! -e "$work/calls"

summary
