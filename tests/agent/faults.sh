#!/usr/bin/env bash
# Two nodes under the agent, one cut off, then frozen; an agent killed and started again. In guests under emulation.
#   tests/agent/faults.sh EVENHAND GUEST_LOAD [KEPT]
# As guests.sh otherwise; KEPT gets node-1.csv, node-2.csv and what guests printed.
set -uo pipefail
[ $# -ge 2 ] || { sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
evenhand=$(realpath "$1") guest_load=$(realpath "$2")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/agent
kernel=$root/.tools/guests/${GUEST_KERNEL:-6.12}
# shellcheck source=tests/agent/common.sh
source "$here/common.sh"
kept=${3:-$work}
mkdir -p "$kept"
agent_is_there || { printf 'skipped: this evenhand has no agent\n'; exit 0; }
"$here/guest-image.sh" "$kernel" "$work/image" "$guest_load" "$evenhand" || exit 1

port=$((20000 + RANDOM % 20000))
guests=()
for node in 1 2; do
    NODE=$node PORT=$port "$here/guest.sh" "$work/$node" "$kernel" "$work/image" "$here/roles/faults" "$here/roles/agent" &
    guests+=($!)
done
# One that is frozen does not notice that it is to end.
trap 'kill -CONT "${guests[@]}" 2>/dev/null; kill "${guests[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

# Time is that of the guests' recordings, in seconds: on a busy machine a guest is slow, and what it is to do takes as many of
# its own seconds as ever. Nothing is expected at a fixed time, but before a limit: an update takes half a second, a node
# that has lost the other ages its weights for some ten updates, twice, and then puts back what it found: 15 s.
limit=60

# now NODE: the last second that its recording holds whole.
now() { awk -F, 'NR > 1 { if (int($1) > last) { before = last; last = int($1) } } END { print before + 0 }' "$work/$1/recording.csv"; }

# before NODE SECONDS COMMAND…: whether COMMAND succeeds before so many seconds of the node's recording have passed.
before() {
    local node=$1 end idle=0 last='' current
    end=$(($(now "$1") + $2))
    shift 2
    until "$@"; do
        current=$(now "$node")
        # A guest that records nothing new for two minutes has stopped.
        if [ "$current" = "$last" ]; then idle=$((idle + 1)); else idle=0; fi
        [ "$current" -lt "$end" ] && [ "$idle" -lt 240 ] && kill -0 "${guests[$((node - 1))]}" 2>/dev/null || return 1
        last=$current
        sleep 0.5
    done
}

# weight NODE GROUP: the mean of cpu.weight over the last three whole seconds.
weight() {
    awk -F, -v group="$2" -v to="$(now "$1")" '
        NR > 1 && $2 == group && $1 > to - 3 && $1 < to + 1 { n++; sum += $6 } END { if (n) printf "%.2f", sum / n }' "$work/$1/recording.csv"
}
# apart: d.1's weight over e.1's on node 1, where d comes first as long as it is known what e does on node 2.
apart() { ratio "$(weight 1 d.1)" "$(weight 1 e.1)"; }
is_apart() { awk -v x="$(apart)" 'BEGIN { exit !(x >= 1.1 && x <= 10) }'; }
# as_found NODE GROUP: it has the weight that it had before the agent.
as_found() { [ "$(weight "$1" "$2")" = 150.00 ]; }
# both_as_found: d.1 and e.1 on node 1. One of them alone may have its earlier weight while the other is still lighter.
both_as_found() { as_found 1 d.1 && as_found 1 e.1; }
weights() { printf '%s and %s' "$(weight 1 d.1)" "$(weight 1 e.1)"; }
# command TEXT: node 1 carries it out.
command() {
    local count
    count=$(grep -c "^done: $1" "$work/1/console")
    echo "$1" >"$work/1/commands.in"
    before 1 $limit has_done "$1" "$((count + 1))"
}
# agents: how many run on node 1.
agents() {
    command count
    tr -d '\r' <"$work/1/console" | sed -n 's/^agents running: //p' | tail -n 1
}
has_done() { [ "$(grep -c "^done: $1" "$work/1/console")" -ge "$2" ]; }
# expect SENTENCE FOUND COMMAND…: it succeeds in time; FOUND prints what is shown.
expect() {
    local sentence=$1 found=$2
    shift 2
    if "$@"; then
        passed=$((passed + 1))
        printf 'holds: %s: %s, after %s s\n' "$sentence" "$($found)" "$(now 1)"
    else
        failed=$((failed + 1))
        printf 'does not hold: %s: %s, after %s s\n' "$sentence" "$($found)" "$(now 1)"
    fi
}
later() { [ "$(now "$1")" -ge "$2" ]; }

# Emulation takes half a minute to boot, several where the machine is busy.
started() { [ -s "$work/1/recording.csv" ] && [ -s "$work/2/recording.csv" ]; }
expect "both nodes record" : until_true 600 started

expect "d.1 before e.1" apart before 1 $limit is_apart
echo 'set_link n0 off' >"$work/2/monitor.in"
expect "cut off for long, d.1 and e.1 have what they had" weights before 1 $limit both_as_found
expect "and f.1 on the node that was cut off" "weight 2 f.1" before 2 $limit as_found 2 f.1
echo 'set_link n0 on' >"$work/2/monitor.in"
expect "together again d.1 is before e.1" apart before 1 $limit is_apart

frozen=$(now 1)
kill -STOP "${guests[1]}"
expect "while node 2 is frozen node 1 goes on, and in the end d.1 and e.1 have what they had" weights before 1 $limit both_as_found
recorded() { awk -F, -v from="$frozen" 'NR > 1 && $1 >= from { print int($1) }' "$work/1/recording.csv" | sort -u | wc -l; }
within "and node 1 recorded each second" "$(ratio "$(recorded)" $(($(now 1) - frozen + 1)))" 0.9 1.2
thawed=$(now 2)
kill -CONT "${guests[1]}"
expect "afterwards node 2 goes on" "now 2" before 1 $limit later 2 $((thawed + 5))
expect "and d.1 is before e.1" apart before 1 $limit is_apart

command kill
killed=$(now 1)
before 1 $limit later 1 $((killed + 4))
within "the agent is killed" "$(agents)" 0 0
expect "killed, the agent leaves weights as they were" apart is_apart
command start
# An agent that starts puts back what the one before it found, and sorts anew.
before 1 $limit later 1 $((killed + 9))
within "it runs again" "$(agents)" 1 1
expect "started again, it sets weights" apart before 1 $limit is_apart
command release
expect "released, d.1 has what it had before the first agent" "weight 1 d.1" before 1 $limit as_found 1 d.1
expect "and e.1" "weight 1 e.1" before 1 5 as_found 1 e.1
within "release ends well" "$(grep -c '^release ended: 0' "$work/1/console")" 1 1
for node in 1 2; do
    cp "$work/$node/recording.csv" "$kept/node-$node.csv"
    cp "$work/$node/console" "$kept/node-$node.console"
done
[ "$failed" = 0 ] || tail -n 40 "$work"/[12]/console
summary
