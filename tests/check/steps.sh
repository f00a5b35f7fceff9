#!/usr/bin/env bash
# How scripts/steps.sh runs steps: order, time limits, failures, programs that are not listed, and the closing lines.
#   tests/check/steps.sh
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"

# check STEPS JOBS ID…: runs steps that a script defines, as ./check does.
check() {
    local steps=$1 jobs=$2
    shift 2
    rm -rf "$work/run"
    mkdir -p "$work/run"
    cat >"$work/run/check" <<END
set -euo pipefail
cd "$root"
. scripts/programs.sh
. scripts/steps.sh
work=$work/run
$steps
mapfile -t chosen < <(with_requirements \$*)
set +e
run_steps $work/run/logs "\${chosen[@]}"
failed=\$?
finish $work/run/times
exit \$failed
END
    JOBS=$jobs CI=${as_ci:-} bash "$work/run/check" "$@"
}

two='
define_step first  build   - 20 -     "The first"
define_step second waiting - 20 first "The second"
first() { say one >"$work/order"; say "3 passed, 0 failed"; }
second() { say two >>"$work/order"; say "     Summary [   1.0s] 7 tests run: 7 passed"; }
'
holds "a step runs after the step that it needs" check "$two" 2 second
holds_in "and both ran" '^two$' "$work/run/order"
prints "the table has a row for each step" '^second  *ok  *[0-9]* s '
prints "and one for the sum" '^all  *ok '
holds "the tests' own lines are the last ones" test "$(tail -n 2 "$work/printed.log" | tr -s ' ')" = "3 passed, 0 failed
 Summary [ 1.0s] 7 tests run: 7 passed"
holds "the table is kept in a file" grep -q '^first  *ok' "$work/run/times"

failing='
define_step first  build - 20 -     "The first"
define_step second build - 20 first "The second"
define_step third  build - 20 -     "The third"
first() { say "before"; false; say "after"; }
second() { say "unreachable"; }
third() { say "runs all the same"; }
'
holds "a failed step fails the run" ends 1 check "$failing" 2 first second third
prints "with its status" '^first  *FAILED .*status 1'
prints "what needs it does not run" 'second .*FAILED .*did not run, because first failed'
prints "the others do" 'runs all the same'

full='
define_step first build - 20 - "The first"
first() { false; }
free_megabytes() { say 12; }
'
holds "a step fails on a full disk" ends 1 check "$full" 2 first
prints "with that as the reason" 'first .*FAILED .*status 1; the disk is full: 12 MB are free'

long='
define_step first build - 20 - "The first"
first() {
    say "does not hold: one is two"
    seq 1000
    false
}
'
check "$long" 2 first >"$work/long.log" 2>&1
holds "what failed stands once more before the table" \
    eval 'tail -n 25 "$work/long.log" | grep -q "^does not hold: one is two"'
holds "a step stops at its first error" ends 1 grep -q '^after' "$work/printed.log"

hanging='
define_step slow build   - 1  - "A step that hangs"
define_step next waiting - 20 - "Another"
slow() { sleep 61 & wait; }
next() { say "3 passed, 1 failed"; return 1; }
'
holds "a step that hangs is stopped and fails" ends 1 check "$hanging" 2 slow
prints "with the reason" 'slow .*FAILED .*stopped: it took longer than its limit of 1 s'
gone() { ! pgrep -f '^sleep 61$' >/dev/null; }
holds "with everything that it started" until_true 5 gone

unlisted='
define_step quiet build - 20 - "A step that hides an error"
quiet() { no-such-program || true; bash -c "another-program 2>/dev/null; true"; }
'
holds "a program that the table does not list fails the step" ends 1 check "$unlisted" 2 quiet
prints "by name" 'calls programs that scripts/programs.txt does not list for it: another-program no-such-program'

skipping='
define_step away build - 20 -    "A step that is skipped"
define_step last build - 20 away "What comes after it"
away() { missing "there is no such thing here"; }
last() { say done; }
'
holds "a step that is skipped does not fail the run" check "$skipping" 2 away last
prints "its reason is in the table" 'away .*skipped .*there is no such thing here'
prints "what comes after it runs" 'last .*ok'
as_ci=true
holds "where everything must be there it fails" ends 1 check "$skipping" 2 away
as_ci=

both='
define_step one build   - 20 - "One"
define_step two build   - 20 - "Two"
define_step six waiting - 20 - "Six"
meet() { local try; : >"$work/$1"; for try in $(seq 50); do [ ! -e "$work/$2" ] || return 0; sleep 0.1; done; return 1; }
one() { meet one two; }
two() { meet two six; }
six() { meet six one; }
'
holds "independent steps run at the same time" check "$both" 2 one two six
timed='
define_step one timed - 20 - "One"
define_step two timed - 20 - "Two"
alone() { [ ! -e "$work/busy" ]; : >"$work/busy"; sleep 0.5; rm "$work/busy"; }
one() { alone; }
two() { alone; }
'
holds "steps that measure time run one after another" check "$timed" 4 one two
quiet='
define_step one   alone - 20 -   "One"
define_step two   build - 20 -   "Two"
define_step three build - 20 two "Three"
define_step four  waiting - 20 - "Four"
one() { [ -e "$work/two" ] && [ -e "$work/three" ] && [ -e "$work/four" ]; }
two() { sleep 0.5; : >"$work/two"; }
three() { sleep 0.5; : >"$work/three"; }
four() { sleep 2; : >"$work/four"; }
'
holds "a step that is to run alone runs after all others" check "$quiet" 2 one two three four
alone=${timed//timed/alone}
holds "of such steps one runs at a time" check "$alone" 4 one two
lane=${timed//timed -/build x}
holds "and so do those of one lane" check "$lane" 4 one two
priorities='
define_step one   build   - 20 -         "One"
define_step two   build   - 20 -         "Two"
define_step three timed   - 20 two       "Three"
define_step four  waiting - 20 one,three "Four"
one() { nice >"$work/one"; }
two() { nice >"$work/two"; }
three() { true; }
four() { test "$(cat "$work/one") $(cat "$work/two")" = "$(($(nice) + 10)) $(nice)"; }
'
holds "a build has low priority, unless a timed step waits for it" check "$priorities" 2 one two three four
holds "and all steps with JOBS=1" check "$two" 1 second
prints "which show their output as it comes" '^== The first$'

summary
