#!/usr/bin/env bash
# Which crates and tests `./check quick` and `./check -p` choose.
#   tests/check/scope.sh
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source tests/sentences.sh
# shellcheck source=scripts/scope.sh
source scripts/scope.sh
say() { printf '%s\n' "$*"; }
is() { [ "$1" = "$2" ] || { printf 'expected: %s\nfound:    %s\n' "$2" "$1"; return 1; }; }

for name in policies crates/policies crates/policies/ evenhand-policies; do
    holds "$name is a crate" is "$(package_of "$name")" evenhand-policies
done
for name in evenhand cli crates/cli; do holds "$name is the command line's" is "$(package_of "$name")" evenhand; done
holds "another name is none" ends 1 package_of nonsense
prints "and the crates are listed" 'policies'

packages() { printf '%s\n' "$@" | packages_of_files | paste -sd' '; }
holds "files of a crate stand for it" is "$(packages crates/policies/src/lib.rs crates/model/Cargo.toml)" "evenhand-model evenhand-policies"
holds "pages for the command line, which runs their examples" is "$(packages docs/src/a.md README.md)" evenhand
holds "the workspace's own files for all" is "$(packages Cargo.lock)" all
holds "a script for none" is "$(packages scripts/steps.sh)" ""

cat >"$work/junit.xml" <<'XML'
<testsuites name="nextest-run" tests="3">
    <testsuite name="evenhand-model" tests="2">
        <testcase name="units::quick" classname="evenhand-model" timestamp="2026-01-01T00:00:00.000+00:00" time="0.012">
        </testcase>
        <testcase name="laws::slow" classname="evenhand-model::laws" timestamp="2026-01-01T00:00:00.000+00:00" time="4.712">
        </testcase>
XML
holds "a slow test is one of more than a second" is "$(slow_tests "$work/junit.xml")" "evenhand-model::laws laws::slow"
holds "without a record no test is slow" is "$(slow_tests "$work/none")" ""
holds "the filter has what depends on the packages, less the slow tests" \
    is "$(printf '%s\n' a b | quick_filter "$work/junit.xml")" \
    "(none() | rdeps(=a) | rdeps(=b)) - (binary_id(=evenhand-model::laws) & test(=laws::slow))"
holds "or everything" is "$(echo all | quick_filter "$work/none")" "(all())"
holds "or nothing" is "$(true | quick_filter "$work/none")" "(none())"

summary
