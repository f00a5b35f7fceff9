# Running steps one after another and saying how each ended; sourced by ./check.
# shellcheck shell=bash

# The tests' own closing lines, re-printed at the very end.
SUMMARIES=()
PASSED=()
SKIPPED=()
FAILED=()

LOGS=$(mktemp -d)
trap 'rm -rf "$LOGS"' EXIT

say() { printf '%s\n' "$*"; }

# A step returns with this status for having done nothing.
readonly SKIPPED_STATUS=77

# skip REASON: what is not there is not needed.
skip() {
    say "skipped: $*"
    return "$SKIPPED_STATUS"
}

# missing REASON: the same, but where everything must be there (CI=true) it is a failure.
missing() {
    skip "$@" || [ "${CI:-}" != true ] || return 1
    return "$SKIPPED_STATUS"
}

# step TITLE COMMAND…: runs it in a subshell that stops at the first error. A failed step does not
# stop the next: one run shows everything that is wrong.
step() {
    local title=$1 status begun=$SECONDS ended
    local log="$LOGS/$((${#PASSED[@]} + ${#SKIPPED[@]} + ${#FAILED[@]}))"
    shift
    printf '\n== %s\n' "$title"
    # Not in a condition: there bash would ignore errexit inside the subshell.
    set +e
    (
        set -euo pipefail
        "$@"
    ) 2>&1 </dev/null | tee "$log"
    status=${PIPESTATUS[0]}
    set -e
    local took="$((SECONDS - begun)) s"
    case $status in
    0)
        ended="ok, $took"
        PASSED+=("$title, $took")
        ;;
    "$SKIPPED_STATUS")
        ended=skipped
        SKIPPED+=("$title: $(grep '^skipped: ' "$log" | tail -n 1 | cut -c10-)")
        ;;
    *)
        ended="FAILED with status $status, $took"
        FAILED+=("$title, status $status, $took")
        ;;
    esac
    say "-- $title: $ended"
    collect_summaries "$log"
}

# nextest's `Summary`, cargo test's `test result:` (of binaries that have tests), and `N passed, M failed`.
collect_summaries() {
    local line
    while IFS= read -r line; do
        SUMMARIES+=("$line")
    done < <(sed 's/\x1b\[[0-9;]*m//g' "$1" |
        grep -E '^ *Summary \[.*tests? run:|^test result: |^[0-9]+ passed, [0-9]+ failed$' |
        grep -v '^test result: ok\. 0 passed; 0 failed' || true)
}

# Says what ran and how it ended; the tests' closing lines last.
finish() {
    printf '\n== Summary\n'
    local line
    for line in "${PASSED[@]}"; do say "ok       $line"; done
    for line in "${SKIPPED[@]}"; do say "skipped  $line"; done
    for line in "${FAILED[@]}"; do say "FAILED   $line"; done
    [ ${#SUMMARIES[@]} = 0 ] || printf '\n'
    for line in "${SUMMARIES[@]}"; do say "$line"; done
    [ ${#FAILED[@]} = 0 ]
}
