#!/usr/bin/env bash
# Paper 003's experiments in guests, in a tenth of its time.
#   tests/agent/experiment.sh one|two off|on OUT KERNEL IMAGE [FILE…]
# OUT gets a recording a guest: one-off.csv, or two-off-a.csv and two-off-b.csv for the nodes n_a and n_b. FILEs go into guests.
# SECONDS_OF_RUN (90): in experiment one d's first guest is alone for a fifth of it. INTERVAL (1s): between updates.
# In experiment two, of node n_b: PROCESSORS (1), busy THREADS_OF_E (1), READ_COST (10): f's processor time for 128 KiB, in ms.
set -euo pipefail
[ $# -ge 5 ] || { sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2; }
experiment=$1 mode=$2 out=$(realpath -m "$3") kernel=$4 image=$5
shift 5
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
guests=()
# Only what was started here.
trap '[ ${#guests[@]} = 0 ] || kill "${guests[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir -p "$out"

nodes=(1)
[ "$experiment" = one ] || nodes=(1 2)
port=$((20000 + RANDOM % 20000))
for node in "${nodes[@]}"; do
    words="experiment=$experiment mode=$mode seconds=${SECONDS_OF_RUN:-90} interval=${INTERVAL:-1s}"
    words+=" threads=${THREADS_OF_E:-1} cost=${READ_COST:-10}"
    processors=1
    [ "$node" = 1 ] || processors=${PROCESSORS:-1}
    NODE=$node PORT=$port CPUS=$processors ROLE_ARGS=$words \
        "$here/guest.sh" "$work/$node" "$kernel" "$image" "$here/roles/experiment" "$here/roles/agent" "$@" &
    guests+=($!)
done
wait "${guests[@]}"
guests=()
for node in "${nodes[@]}"; do
    name=$experiment-$mode
    [ "$experiment" = one ] || name+=$([ "$node" = 1 ] && echo -a || echo -b)
    cp "$work/$node/console" "$out/$name.console"
    cp "$work/$node/recording.csv" "$out/$name.csv"
    grep -q '^role ended: 0' "$work/$node/console" || { tail -n 20 "$work/$node/console"; exit 1; }
done
