#!/usr/bin/env bash
# Compares the public items of every library crate with those of an earlier revision, by cargo-semver-checks.
#   scripts/semver.sh
# SEMVER_BASELINE: the revision to compare with. Not set: the last release before this commit (the tag vVERSION).
# A crate of those that others' policies are built on (docs/src/reference/stability.md) fails if it breaks what its version
# promises. Of the other crates the breaks are listed: their version is required exactly.
# Exit status: 0 nothing that is promised broke, 1 something did, 3 the crates cannot be documented, 77 no revision to compare with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PROMISED=' evenhand evenhand_model evenhand_policies '

baseline=${SEMVER_BASELINE:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null || true)}
if [ -z "$baseline" ]; then
    echo "skipped: nothing has been released to compare with; SEMVER_BASELINE=REVISION names a revision"
    exit 77
fi
commit=$(git rev-parse --verify --quiet "$baseline^{commit}") || { echo "error: $baseline: no such revision"; exit 3; }

work=$PWD/target/semver
rm -rf "$work/baseline" "$work/sources"
mkdir -p "$work/sources"
git archive "$commit" | tar -x -C "$work/sources"

# describe FOLDER OUT: what rustdoc knows about the libraries of the workspace there. One build of all of them, where
# `cargo semver-checks` by itself makes one for each crate; dependencies are shared by both revisions.
describe() {
    local names
    # Cargo would take the other revision's files for this one's.
    rm -rf "$work"/build/doc "$work"/build/debug/.fingerprint/evenhand*
    # By name: rustdoc's JSON is an unstable option, and dependencies are to be compiled as everywhere.
    names=$(sed -n 's/^name = "\(evenhand[a-z-]*\)"$/\1/p' "$1"/crates/*/Cargo.toml | tr - _ | paste -sd,)
    (cd "$1" && CARGO_TARGET_DIR=$work/build RUSTC_BOOTSTRAP=$names \
        RUSTDOCFLAGS="-Z unstable-options --document-private-items --document-hidden-items --output-format=json --cap-lints=allow" \
        cargo doc --quiet --workspace --lib --no-deps --locked) || exit 3
    rm -rf "$2"
    mkdir "$2"
    cp "$work"/build/doc/*.json "$2"
}
describe "$work/sources" "$work/baseline"
describe "$PWD" "$work/current"

echo "compared with $baseline (${commit:0:9})"
failed=0 broken=()
for file in "$work"/current/*.json; do
    name=$(basename "$file" .json)
    if [ ! -e "$work/baseline/$name.json" ]; then
        echo "$name: new"
    elif cargo-semver-checks semver-checks --color never --baseline-rustdoc "$work/baseline/$name.json" \
        --current-rustdoc "$file" >"$work/$name.txt" 2>&1; then
        echo "$name: nothing broke"
    elif ! grep -q '^--- failure ' "$work/$name.txt"; then
        cat "$work/$name.txt"
        echo "error: $name cannot be compared"
        exit 3
    else
        broken+=("$name")
        # Each lint with its items, without the links and the text that explains the lint.
        grep -E '^--- failure |^  [^ ]' "$work/$name.txt" | sed "s/^--- failure /$name: /; s/ ---$//"
    fi
done
for file in "$work"/baseline/*.json; do
    name=$(basename "$file" .json)
    [ -e "$work/current/$name.json" ] || { broken+=("$name"); echo "$name: removed"; }
done
for name in "${broken[@]}"; do
    if [[ $PROMISED == *" $name "* ]]; then
        echo "error: $name breaks what its version promises: raise the version, or keep what was there"
        failed=1
    else
        echo "note: $name broke, which is not promised to stay"
    fi
done
exit "$failed"
