#!/usr/bin/env bash
# Paper 003's experiment 2 (Figure 5) with two processors on node n_b, two busy threads of e there, and f's processor time
# for a read of 128 KiB at 1, 2, 5 and 10 ms, off and on. Prints a row a cost: what f and e have on n_b at the end.
#   tests/agent/read-costs.sh EVENHAND GUEST_LOAD
# As guests.sh otherwise. Takes a quarter of an hour, and means something on a machine with nothing else to do.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
evenhand=$(realpath "$1") guest_load=$(realpath "$2")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kernel=$root/.tools/guests/${GUEST_KERNEL:-6.12}
here=$root/tests/agent
# shellcheck source=tests/agent/common.sh
source "$here/common.sh"
"$here/guest-image.sh" "$kernel" "$work/image" "$guest_load" "$evenhand"

export PROCESSORS=2 THREADS_OF_E=2
printf 'ms  agent  f MiB/s  f cpu  e cpu\n'
for cost in 1 2 5 10; do
    for mode in off on; do
        kept=$work/$cost
        seconds=90 from=60
        [ "$mode" = on ] || seconds=30 from=10
        READ_COST=$cost SECONDS_OF_RUN=$seconds "$here/experiment.sh" two "$mode" "$kept" "$kernel" "$work/image" >&2
        printf '%2d  %-5s  %7.2f  %5.2f  %5.2f\n' "$cost" "$mode" \
            "$(awk -v x="$(mean "two-$mode-b" disk f.1 $from)" 'BEGIN { print x / 1048576 }')" \
            "$(mean "two-$mode-b" cpu f.1 $from)" "$(mean "two-$mode-b" cpu e.2 $from)"
    done
done
