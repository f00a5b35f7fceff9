#!/usr/bin/env bash
# Every package whose level of optimisation `release` sets has a level in `dist` too: a profile inherits those of packages, and
# what ships would be as slow as what is quick to build.
#   tests/check/profiles.sh
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"

packages() { sed -n "s/^\[profile\.$1\.package\.\(.*\)\]$/\1/p" "$root/Cargo.toml" | LC_ALL=C sort; }

packages release >"$work/release"
packages dist >"$work/dist"
has_levels() { [ -s "$work/release" ]; }
without_level() {
    LC_ALL=C comm -23 "$work/release" "$work/dist" | tee "$work/missing"
    [ ! -s "$work/missing" ]
}
holds "release sets levels" has_levels
holds "dist sets a level for each of them" without_level
summary
