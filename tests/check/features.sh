#!/usr/bin/env bash
# The program alone, and a package outside the workspace that uses it, have the same features of their dependencies as the
# workspace has with its tests. Otherwise cargo compiles half of the tree once more for them.
#   tests/check/features.sh
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"
cd "$root" || exit 1

# dependencies OPTION…: each dependency with its features, a line each; without the package outside itself.
dependencies() { cargo tree --locked --prefix none -f '{p} {f}' "$@" | sed 's/ (\*)$//; /^my_policy /d' | LC_ALL=C sort -u; }

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
cp -r examples/my_policy "$work/package"
sed -i "s|\.\./\.\./crates|$root/crates|" "$work/package/Cargo.toml"
cp Cargo.lock "$work/package/"
cd "$work/package" || exit 1
# Its lock file is this workspace's, less what it does not use.
cargo metadata --offline --format-version 1 >/dev/null 2>&1 || cargo metadata --format-version 1 >/dev/null
holds "a package outside shares them too" same others -e normal,build,dev
summary
