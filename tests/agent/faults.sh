#!/usr/bin/env bash
# Two nodes under the agent, one cut off, then frozen; an agent killed and started again. In guests under emulation.
#   tests/agent/faults.sh EVENHAND GUEST_LOAD [KEPT]
# As guests.sh otherwise; KEPT gets node-1.csv, node-2.csv and what guests said.
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

# Seconds of the recording; an update is half of one. Who hears nobody ages its weights for some ten updates each, twice, and
# then puts back what it found: 15 s are enough.
cut=15 joined=33 frozen=45 thawed=60 killed=72 seconds=90
port=$((20000 + RANDOM % 20000))
guests=()
for node in 1 2; do
    NODE=$node PORT=$port ROLE_ARGS="killed=$killed seconds=$seconds" \
        "$here/guest.sh" "$work/$node" "$kernel" "$work/image" "$here/roles/faults" "$here/roles/agent" &
    guests+=($!)
done
# A frozen one would not hear that it is to end.
trap 'kill -CONT "${guests[@]}" 2>/dev/null; kill "${guests[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

# until_recorded SECOND: by node 1.
until_recorded() {
    local left=400
    until awk -F, -v t="$1" '$1 + 0 >= t { found = 1 } END { exit !found }' "$work/1/recording.csv" 2>/dev/null; do
        left=$((left - 1))
        [ "$left" -gt 0 ] && kill -0 "${guests[0]}" 2>/dev/null || return 1
        sleep 0.5
    done
}
until_recorded $cut && echo 'set_link n0 off' >"$work/2/monitor.in"
until_recorded $joined && echo 'set_link n0 on' >"$work/2/monitor.in"
until_recorded $frozen && kill -STOP "${guests[1]}"
until_recorded $thawed
kill -CONT "${guests[1]}"
wait "${guests[@]}"
for node in 1 2; do
    cp "$work/$node/recording.csv" "$kept/node-$node.csv"
    cp "$work/$node/console" "$kept/node-$node.console"
done

# weights NODE GROUP FROM TO: the mean of cpu.weight.
weights() {
    awk -F, -v group="$2" -v from="$3" -v to="$4" '
        NR > 1 && $2 == group && $1 >= from && $1 <= to { n++; sum += $6 } END { if (n) printf "%.2f", sum / n }' "$kept/node-$1.csv"
}
# apart FROM TO: d.1's weight over e.1's on node 1, where d comes first as long as it is known what e does on node 2.
apart() { ratio "$(weights 1 d.1 "$1" "$2")" "$(weights 1 e.1 "$1" "$2")"; }
samples() { awk -F, -v from="$2" -v to="$3" 'NR > 1 && $1 >= from && $1 <= to { print int($1) }' "$kept/node-$1.csv" | sort -u | wc -l; }

within "d.1 before e.1" "$(apart $((cut - 4)) $cut)" 1.1 10
within "cut off for long, d.1 has what it had" "$(weights 1 d.1 $((joined - 3)) $((joined - 1)))" 150 150
within "and e.1" "$(weights 1 e.1 $((joined - 3)) $((joined - 1)))" 150 150
within "and f.1 on the node that was cut off" "$(weights 2 f.1 $((joined - 3)) $((joined - 1)))" 150 150
# Some seconds to find each other, and two to move weights.
within "not long after d.1 is before e.1 again" "$(apart $((joined + 7)) $((joined + 9)))" 1.02 10
within "together again d.1 is before e.1" "$(apart $((frozen - 3)) $frozen)" 1.1 10
within "while node 2 is frozen node 1 goes on" "$(samples 1 $frozen $thawed)" 14 16
within "and in the end has what it had" "$(weights 1 d.1 $((thawed - 2)) $thawed)" 150 150
within "afterwards d.1 is before e.1" "$(apart $((killed - 3)) $killed)" 1.1 10
within "node 2 goes on" "$(samples 2 $((killed - 6)) $((killed - 1)))" 5 6
within "killed, the agent leaves weights as they were" "$(apart $((killed + 2)) $((killed + 3)))" 1.1 10
within "started again, it weighs" "$(apart $((killed + 9)) $((killed + 11)))" 1.1 10
within "released, d.1 has what it had before the first agent" "$(weights 1 d.1 $((killed + 15)) $seconds)" 150 150
within "and e.1" "$(weights 1 e.1 $((killed + 15)) $seconds)" 150 150
within "release ends well" "$(grep -c '^release ended: 0' "$work/1/console")" 1 1
[ "$failed" = 0 ] || tail -n 40 "$work"/[12]/console
summary
