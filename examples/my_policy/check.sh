#!/bin/sh
# Builds the example and runs its tests, then studies a trace with it. What the repository has compiled is reused, if
# its target folder is used: the default.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
cd "$here"
cp "$root/Cargo.lock" Cargo.lock
# To cargo the crates of a package outside are other ones than the repository's own, so they are compiled once more. Without
# optimisation and line numbers that takes a quarter of the time, and the trace here is short.
set --
for package in $(sed -n 's/^name = "\(evenhand[a-z-]*\)"$/\1/p' Cargo.lock); do
    set -- "$@" --config "profile.dev.package.$package.opt-level=0" --config "profile.dev.package.$package.debug=false"
done
# Of the other crates those that the repository compiles at a level of their own, so that they are the same here.
for level in $(awk '/^\[/ { package = "" } /^\[profile\.dev\.package\./ { package = substr($0, 22, length($0) - 22) }
    /^opt-level/ && package != "" && package !~ /^evenhand/ { print package ".opt-level=" $3 }' "$root/Cargo.toml"); do
    set -- "$@" --config "profile.dev.package.$level"
done
cargo test "$@"
cargo run --quiet "$@" -- study trace.csv --csv-columns submit=submit,duration=duration,user=user,cpu=cpu,mem=mem \
    --policy drf,blend --policy-settings blend.toml --capacity pool.toml --no-tasks \
    --out "$CARGO_TARGET_DIR/my_policy_study"
