# Runs the steps of ./check: side by side where they are independent, each with a log, a time limit and a PATH of its own,
# and reports how each ended. Sourced by ./check, after scripts/programs.sh.
# shellcheck shell=bash

# The steps in the order in which they are listed and, if they can, start.
STEPS=()
declare -A TITLE=() KIND=() LANE=() LIMIT=() AFTER=() ON_REQUEST=()

# define_step ID KIND LANE LIMIT AFTER TITLE
# The step's function is ID with _ for -. LIMIT is in seconds. AFTER lists the steps that must have ended before it, with
# commas; - for none. At most one step of a lane runs at a time; - for no lane. Kinds:
#   build    compiles or computes: takes a core; at low priority if others may run beside it, unless a timed step waits for it
#   timed    has tests that measure time or shares: takes a core; one such step runs at a time
#   alone    measures how processors and disks are shared: takes all cores, and runs once all others have ended, so that no
#            core waits for it; beside a waiting step too, such as one with a Slurm, shares are off
#   waiting  mostly waits, or takes a second: counts as no core
define_step() {
    local id=$1
    STEPS+=("$id")
    KIND[$id]=$2 LANE[$id]=$3 LIMIT[$id]=$4 AFTER[$id]=${5//,/ } TITLE[$id]=$6
    [ "$5" != - ] || AFTER[$id]=
    [ "$3" != - ] || LANE[$id]=
}

say() { printf '%s\n' "$*"; }

# How a line begins that says that something failed: of a test in shell, of cargo, of a panic, of nextest and of pytest.
readonly FAILURE_PATTERN='^(does not hold: |error(\[E[0-9]+\])?:|thread .* panicked at|FAIL(ED)? | +FAIL \[|diff in )'
# A step that was skipped returns this status.
readonly SKIPPED_STATUS=77

# skip REASON: for what is not needed.
skip() {
    say "skipped: $*"
    return "$SKIPPED_STATUS"
}

# missing REASON: skips the step; where everything must be there (CI=true) that is a failure.
missing() {
    skip "$@" || [ "${CI:-}" != true ] || return 1
    return "$SKIPPED_STATUS"
}

# with_requirements ID…: prints these steps and those that must have ended before them, in the order of the list.
with_requirements() {
    local -A wanted=()
    local id before changed=1
    for id; do wanted[$id]=1; done
    while [ "$changed" = 1 ]; do
        changed=0
        for id in "${!wanted[@]}"; do
            for before in ${AFTER[$id]}; do
                [ -n "${wanted[$before]:-}" ] || { wanted[$before]=1 changed=1; }
            done
        done
    done
    for id in "${STEPS[@]}"; do
        [ -z "${wanted[$id]:-}" ] || say "$id"
    done
}

# Of the steps of this run: how each ended (ok, skipped, FAILED) and why; its wall time and processor time in seconds.
CHOSEN=()
declare -A RESULT=() REASON=() WALL=() CPU=()
# The process group of each step that runs now, and when it started.
declare -A RUNNING=() STARTED=()

# run_steps FOLDER ID…: runs these steps. At most JOBS run at once, not counting waiting ones; not set, one more than there
# are cores, since a build has times in which it links one program or downloads something. A failed step does not stop the
# others, but those that need it: one run shows everything that is wrong. FOLDER gets their logs. Returns an error if a step
# failed. Not to be called in a condition: there bash ignores errexit, in steps too.
run_steps() {
    LOGS=$1
    shift
    CHOSEN=("$@")
    BEGUN=$SECONDS
    local id pending=("$@") left cores
    cores=$(nproc)
    MOST_AT_ONCE=${JOBS:-$((cores == 1 ? 1 : cores + 1))}
    mkdir -p "$LOGS"
    # Where one step runs at a time, its output is shown as it comes; otherwise when the step ends, so that it is readable.
    LIVE=0
    [ $# != 1 ] && [ "$MOST_AT_ONCE" != 1 ] || LIVE=1
    trap 'stop_all; exit 130' INT TERM HUP
    while [ ${#pending[@]} != 0 ] || [ ${#RUNNING[@]} != 0 ]; do
        left=()
        for id in "${pending[@]}"; do
            if failed_requirement "$id" >/dev/null; then
                RESULT[$id]=FAILED REASON[$id]="did not run, because $(failed_requirement "$id") failed"
                say "-- ${TITLE[$id]}: FAILED: ${REASON[$id]}"
            elif may_start "$id"; then
                start_step "$id"
            else
                left+=("$id")
            fi
        done
        pending=("${left[@]}")
        sleep 0.1
        end_steps
    done
    trap - INT TERM HUP
    for id; do [ "${RESULT[$id]}" != FAILED ] || return 1; done
}

# failed_requirement ID: prints the first failed step of those that must have ended before it. One that was skipped does not
# count: where something cannot be installed, what can be checked is checked.
failed_requirement() {
    local before
    for before in ${AFTER[$1]}; do
        [ "${RESULT[$before]:-}" != FAILED ] || { say "$before"; return 0; }
    done
    return 1
}

may_start() {
    local before other counted=0 chosen=" ${CHOSEN[*]} "
    if [ "${KIND[$1]}" = alone ]; then
        for other in "${CHOSEN[@]}"; do
            [ "$other" = "$1" ] || [ -n "${RESULT[$other]:-}" ] ||
                { [ "${KIND[$other]}" = alone ] && [ -z "${RUNNING[$other]:-}" ]; } || return 1
        done
    fi
    for before in ${AFTER[$1]}; do
        [[ $chosen != *" $before "* ]] || [ -n "${RESULT[$before]:-}" ] || return 1
    done
    for other in "${!RUNNING[@]}"; do
        [ "${KIND[$other]}" = waiting ] || counted=$((counted + 1))
        [ "${KIND[$other]} ${KIND[$1]}" != "timed timed" ] || return 1
        [ -z "${LANE[$1]}" ] || [ "${LANE[$other]}" != "${LANE[$1]}" ] || return 1
    done
    [ "$MOST_AT_ONCE" != 1 ] || [ ${#RUNNING[@]} = 0 ] || return 1
    [ "${KIND[$1]}" = waiting ] || [ "$counted" -lt "$MOST_AT_ONCE" ]
}

start_step() {
    local id=$1
    rm -f "$LOGS/$id".*
    STARTED[$id]=$SECONDS
    # With job control every step is a process group, which can be stopped as a whole.
    set -m
    if [ "$LIVE" = 1 ]; then
        printf '\n== %s\n' "${TITLE[$id]}"
        { perform "$id" 2>&1 | tee "$LOGS/$id.log"; exit "${PIPESTATUS[0]}"; } &
    else
        say "-- ${TITLE[$id]}: started"
        perform "$id" >"$LOGS/$id.log" 2>&1 &
    fi
    RUNNING[$id]=$!
    set +m
}

# timed_step_waits_for ID: of timed steps one runs at a time, so the first is to start early.
timed_step_waits_for() {
    local other
    for other in "${CHOSEN[@]}"; do
        [ "${KIND[$other]}" != timed ] || [[ " ${AFTER[$other]} " != *" $1 "* ]] || return 0
    done
    return 1
}

# perform ID: runs the step's function in a subshell that stops at the first error, with the programs that the table lists
# for it and no others.
perform() (
    set +m
    set -euo pipefail
    exec </dev/null
    # shellcheck disable=SC2064
    trap "times >$(printf %q "$LOGS/$1.times")" EXIT
    [ "${KIND[$1]}" != build ] || [ "$LIVE" = 1 ] || timed_step_waits_for "$1" || renice -n 10 -p "$BASHPID" >/dev/null
    lacking=$(programs_lacking "$1")
    [ -z "$lacking" ] || { missing "these programs are not here and cannot be installed: $lacking"; exit; }
    programs_path "$1" "$work/path/$1"
    export UNKNOWN_PROGRAMS="$LOGS/$1.unknown" PATH="$work/path/$1"
    export -f command_not_found_handle
    "${1//-/_}"
)

# Bash calls this for a program that is not on the PATH.
command_not_found_handle() {
    printf '%s: no such program on the PATH of this step\n' "$1" >&2
    printf '%s\n' "$1" >>"${UNKNOWN_PROGRAMS:-/dev/null}"
    return 127
}

# Looks which steps have ended or run for too long.
end_steps() {
    local id status
    for id in "${STEPS[@]}"; do
        [ -n "${RUNNING[$id]:-}" ] || continue
        if kill -0 "${RUNNING[$id]}" 2>/dev/null; then
            [ $((SECONDS - STARTED[$id])) -ge "${LIMIT[$id]}" ] || continue
            stop_step "$id"
            wait "${RUNNING[$id]}" 2>/dev/null
            RESULT[$id]=FAILED REASON[$id]="stopped: it took longer than its limit of ${LIMIT[$id]} s"
        else
            status=0
            wait "${RUNNING[$id]}" 2>/dev/null || status=$?
            judge "$id" "$status"
        fi
        unset "RUNNING[$id]"
        WALL[$id]=$((SECONDS - STARTED[$id]))
        CPU[$id]=$(processor_time "$LOGS/$id.times")
        report_step "$id"
    done
}

# judge ID STATUS: how a step ended.
judge() {
    local id=$1 status=$2
    REASON[$id]=
    if [ -s "$LOGS/$id.unknown" ]; then
        RESULT[$id]=FAILED
        REASON[$id]="calls programs that scripts/programs.txt does not list for it: $(sort -u "$LOGS/$id.unknown" | paste -sd' ')"
    elif [ "$status" = 0 ]; then
        RESULT[$id]=ok
    elif [ "$status" = "$SKIPPED_STATUS" ]; then
        RESULT[$id]=skipped REASON[$id]=$(grep '^skipped: ' "$LOGS/$id.log" | tail -n 1 | cut -c10-)
    else
        RESULT[$id]=FAILED REASON[$id]="status $status"
        local free
        free=$(free_megabytes "$LOGS")
        # Linkers and tests then fail in ways that do not name the cause.
        [ "$free" -ge 500 ] || REASON[$id]+="; the disk is full: $free MB are free"
    fi
}

# free_megabytes FOLDER: how much its file system has left for this user.
free_megabytes() { df --output=avail -B 1000000 "$1" | awk 'NR == 2 { print $1 }'; }

report_step() {
    local id=$1
    if [ "$LIVE" != 1 ]; then
        printf '\n== %s\n' "${TITLE[$id]}"
        cat "$LOGS/$id.log"
    fi
    say "-- ${TITLE[$id]}: ${RESULT[$id]}, ${WALL[$id]} s${REASON[$id]:+: ${REASON[$id]}}"
}

# stop_step ID: the step and all that it started. What cleans up at the end of a script has some seconds for it.
stop_step() {
    local group=${RUNNING[$1]} left=100
    kill -TERM -- "-$group" 2>/dev/null
    while kill -0 -- "-$group" 2>/dev/null && [ "$left" -gt 0 ]; do
        left=$((left - 1))
        sleep 0.1
    done
    kill -KILL -- "-$group" 2>/dev/null
    return 0
}

stop_all() {
    local id
    for id in "${!RUNNING[@]}"; do stop_step "$id"; done
}

# processor_time FILE: what bash's `times` wrote there, of a shell and its children, as whole seconds.
processor_time() {
    [ -s "$1" ] || { say -; return; }
    tr ' ' '\n' <"$1" | awk -F'[ms]' 'NF { sum += $1 * 60 + $2 } END { printf "%.0f\n", sum }'
}

# summaries FILE…: nextest's `Summary`, cargo test's `test result:` of programs that have tests, and `N passed, M failed`.
summaries() {
    cat "$@" 2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' |
        grep -E '^ *Summary \[.*tests? run:|^test result: |^([a-z-]+: )?[0-9]+ passed, [0-9]+ failed$' |
        grep -v '^test result: ok\. 0 passed; 0 failed' || true
}

# failures: of each failed step the lines on what failed, or its last ones: the end of a long log tells why.
failures() {
    local id lines
    for id in "${CHOSEN[@]}"; do
        [ "${RESULT[$id]}" = FAILED ] && [ -s "$LOGS/$id.log" ] || continue
        printf '\n== Failed: %s\n' "${TITLE[$id]}"
        lines=$(sed 's/\x1b\[[0-9;]*m//g' "$LOGS/$id.log" | grep -E -A 12 "$FAILURE_PATTERN" | head -n 60 || true)
        [ -n "$lines" ] || lines=$(tail -n 30 "$LOGS/$id.log")
        say "$lines"
    done
}

# finish FILE: prints what failed, the table of steps and times, which FILE gets too, and last the tests' own closing lines.
finish() {
    local id sum=0 logs=() table
    failures
    table=$(
        printf '%-16s %-8s %7s %7s  %s\n' step result wall cpu ''
        for id in "${CHOSEN[@]}"; do
            printf '%-16s %-8s %5s s %5s s  %s\n' "$id" "${RESULT[$id]}" "${WALL[$id]:-0}" "${CPU[$id]:--}" "${REASON[$id]:-}"
        done | sed 's/ *$//'
        for id in "${CHOSEN[@]}"; do
            case ${CPU[$id]:--} in -) ;; *) sum=$((sum + CPU[$id])) ;; esac
        done
        printf '%-16s %-8s %5s s %5s s\n' all "$(all_result)" $((SECONDS - BEGUN)) "$sum"
    )
    printf '\n== Steps, with wall time and processor time\n%s\n' "$table"
    say "$table" >"$1"
    for id in "${CHOSEN[@]}"; do logs+=("$LOGS/$id.log"); done
    table=$(summaries "${logs[@]}")
    [ -z "$table" ] || printf '\n%s\n' "$table"
}

all_result() {
    local id
    for id in "${CHOSEN[@]}"; do [ "${RESULT[$id]}" != FAILED ] || { say FAILED; return; }; done
    say ok
}
