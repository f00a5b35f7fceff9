#!/usr/bin/env bash
# The program and each crate alone have the same features of their dependencies as the workspace has with its tests. Otherwise
# cargo compiles half of the tree once more for them, for a package outside the workspace too.
#   tests/check/features.sh
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"
cd "$root" || exit 1

# dependencies OPTION…: each dependency with its features, a line each.
dependencies() { cargo tree --locked --prefix none -f '{p} {f}' "$@" | sed 's/ (\*)$//' | LC_ALL=C sort -u; }

dependencies --workspace -e normal,build,dev >"$work/workspace"
# same NAME OPTION…: what that selection has and the workspace has not.
same() {
    local name=$1
    shift
    dependencies "$@" >"$work/$name" && [ -s "$work/$name" ] || return 1
    LC_ALL=C comm -13 "$work/workspace" "$work/$name" >"$work/$name.own"
    cat "$work/$name.own"
    [ ! -s "$work/$name.own" ]
}
holds "the program shares its dependencies with the tests" same program -p evenhand -e normal,build
for crate in crates/*; do
    name=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$crate/Cargo.toml" | head -n 1)
    holds "$name shares its dependencies with the workspace" same "$name" -p "$name" -e normal,build,dev
done
summary
