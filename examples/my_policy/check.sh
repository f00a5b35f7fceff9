#!/bin/sh
# Builds the example and runs its tests, then studies a trace with it. What the repository has compiled is reused, if
# its target folder is used: the default.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
cd "$here"
cp "$root/Cargo.lock" Cargo.lock
cargo test
cargo run --quiet -- study trace.csv --csv-columns submit=submit,duration=duration,user=user,cpu=cpu,mem=mem \
    --policy drf,blend --policy-settings blend.toml --capacity pool.toml --no-tasks \
    --out "$CARGO_TARGET_DIR/my_policy_study"
