#!/usr/bin/env bash
# A real Slurm is driven while nodes fail, jobs are requeued, squeue hangs, and the driver is killed at random moments.
# Afterwards every job has the site factor that it had before.
#   tests/slurm/faults.sh EVENHAND [SEED] [--release bookworm|trixie|sid]
# Starts a Slurm of its own and stops it at the end. As root the jobs are those of three of the system's users.
# SEED chooses what happens when; it is printed.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/slurm/faults.sh EVENHAND [SEED] [--release RELEASE]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"
RANDOM=${2:-$((RANDOM + 1))}
printf 'seed %s\n' "${2:-not given}"

if [ "$(id -u)" = 0 ]; then users=(daemon games mail); else users=("$(id -un)"); fi
SLURM_NODES='n1 4 8000 0 spec_100
n2 4 8000 0 spec_100' SLURM_CONF_EXTRA='JobRequeue=1' "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
eval "$(cat "$work/up")"
cd "$work" || exit 1
state="$work/state/slurm.redb"

# squeue hangs while the file `hang` exists.
real_squeue=$(command -v squeue)
mkdir hung
printf '#!/bin/sh\nif [ -e "%s/hang" ]; then sleep 600 | cat; fi\nexec "%s" "$@"\n' "$work" "$real_squeue" >hung/squeue
chmod 755 hung/squeue

drive() { PATH="$work/hung:$PATH" exec "$evenhand" slurm run --policy drf --apply --interval 1s --state "$state"; }
# What every job's priority is: all weights are 0, so it is the site factor, at least 1.
priorities() { squeue -h -t all -o '%A %Q' | sort -u; }
# Lines of jobs that have neither their first site factor nor, held, none.
changed() { priorities | grep -vE "^($set_by_admin 12345|$held 0|[0-9]+ [01])$"; }
unchanged() { [ -z "$(changed)" ]; }
# some JOBS: one of them.
some() {
    local all
    read -r -a all <<<"$*"
    [ ${#all[@]} = 0 ] || printf '%s\n' "${all[$((RANDOM % ${#all[@]}))]}"
}
of_state() { squeue -h -t "$1" -o %A | sort -u | tr '\n' ' '; }
running_node() { sinfo -h -N -n "$1" -o %T | grep -qE 'idle|mixed|allocated|completing'; }

until_true 60 eval 'submit "${users[0]}" -n1 -t 5 --wrap true >/dev/null 2>&1'
set_by_admin=$(submit "${users[0]}" -n8 -t 5 --requeue --wrap 'sleep 1')
held=$(submit "${users[0]}" -H -n1 -t 5 --requeue --wrap 'sleep 1')
scontrol update JobId="$set_by_admin" SiteFactor=12345
scontrol hold "$set_by_admin"
for i in $(seq 30); do
    submit "${users[$((i % ${#users[@]}))]}" -n1 -t 5 --requeue --wrap "sleep $((2 + i % 5))" >/dev/null
done
array=$(submit "${users[0]}" -n1 -t 5 --requeue -a 0-9 --wrap 'sleep 3')
scontrol release "$set_by_admin"
holds "before, nobody has a site factor but one" unchanged

# Killed ten times, at random moments; in between a fault each time.
written=0
for round in $(seq 10); do
    drive >>drive.log 2>&1 &
    driver=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"
    case $((RANDOM % 4)) in
    0)
        node=n$((1 + RANDOM % 2))
        kill -9 "$(cat "$work/slurm/run/slurmd-$node.pid")" 2>/dev/null
        scontrol update NodeName="$node" State=DOWN Reason=fault
        ;;
    1) victim=$(some "$(of_state R)") && [ -n "$victim" ] && scontrol requeue "$victim" ;;
    # The owner may requeue what has ended, too.
    2) victim=$(some "$(of_state CD)") && [ -n "$victim" ] && scontrol requeue "$victim" ;;
    3) scontrol requeue "${array}_$((RANDOM % 10))" ;;
    esac >>faults.log 2>&1
    sleep "0.$((RANDOM % 10))"
    written=$((written + $(sprio -h -o '%S' | awk '$1 >= 1000000000' | wc -l)))
    { kill -9 "$driver" && wait "$driver"; } 2>/dev/null
    for node in n1 n2; do
        running_node "$node" && continue
        slurmd -N "$node" >/dev/null 2>&1
        scontrol update NodeName="$node" State=RESUME 2>/dev/null
    done
done
holds "the driver wrote site factors" [ "$written" -gt 0 ]
grep -c 'changed [1-9]' drive.log >"$work/updates"
printf 'killed 10 times after %s updates with changes\n' "$(cat "$work/updates")"

# What has ended can be requeued until Slurm forgets it, and must not have a site factor then.
scontrol update NodeName=n1,n2 State=DRAIN Reason=end
for job in $(of_state R,CG,CD,F,NF,TO); do scontrol requeue "$job" >/dev/null 2>&1; done
nothing_runs() { [ -z "$(squeue -h -t R,CG)" ]; }
until_true 30 nothing_runs
holds "release" "$evenhand" slurm release --state "$state"
until_true 30 unchanged
holds "after ten crashes every site factor is what it was" unchanged
changed

# A driver that is stopped restores everything, also while squeue hangs: within the limit of its unit. The nodes stay drained,
# so that no job ends meanwhile, which Slurm would not let anybody change.
for job in $(of_state PD); do scontrol update JobId="$job" StartTime=now 2>/dev/null; done
drive >stop.log 2>&1 &
driver=$!
factors() { sprio -h -o '%S' | awk '$1 >= 1000000000' | wc -l; }
holds "a new one drives" until_true 60 eval '[ "$(factors)" -gt 0 ]'
touch hang
sleep 2
kill -TERM "$driver"
ended() { ! kill -0 "$driver" 2>/dev/null; }
# Its own limit is 10 s; the rest is for a busy machine.
holds "stopped while squeue hangs, it ends" until_true 20 ended
ended || { kill -9 "$driver"; } 2>/dev/null
wait "$driver"
holds "without an error" [ $? = 0 ]
rm hang
holds "and has restored everything" until_true 5 unchanged
changed
no_squeue_left() { ! pgrep -f "$work/hung/squeue" >/dev/null; }
holds "no hung command is left behind" until_true 5 no_squeue_left

# The controller itself hangs: connections are taken, and no request is answered. The driver reports each update that fails, also
# to the service manager, whose watchdog would end it otherwise, and goes on when the controller does.
controller=$(cat "$work/slurm/run/slurmctld.pid")
mkfifo notifications
socat -u UNIX-RECV:"$work/notify" STDOUT >notifications &
listener=$!
while read -r line; do printf '%s %s\n' "$EPOCHSECONDS" "$line"; done <notifications >notified.log &
until_true 10 test -S "$work/notify"
for job in $(of_state PD); do scontrol update JobId="$job" StartTime=now 2>/dev/null; done
NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=180000000 drive >hang.log 2>&1 &
driver=$!
lines_with() { grep -c -- "$1" "$2"; }
more_than() { [ "$(lines_with "$2" "$3")" -gt "$1" ]; }
holds "before the controller hangs, the driver is ready" until_true 60 more_than 0 READY=1 notified.log
holds "and has an order" until_true 60 eval '[ "$(factors)" -gt 0 ]'
kill -STOP "$controller"
stopped_at=$EPOCHSECONDS updates=$(lines_with 'changed .* places' hang.log)
holds "two updates fail while the controller hangs, each within the limit of a command" \
    until_true 150 more_than 1 'the daemon does not respond' hang.log
seen=$(lines_with WATCHDOG=1 notified.log)
holds "the service manager hears of the driver meanwhile" until_true 150 more_than "$seen" WATCHDOG=1 notified.log
holds "which is still there" kill -0 "$driver"
kill -CONT "$controller"
printf 'the controller hung for %s s\n' "$((EPOCHSECONDS - stopped_at))"
holds "when the controller goes on, so does the driver" until_true 90 more_than "$updates" 'changed .* places' hang.log
silence=$(awk 'NR > 1 && $1 - last > most { most = $1 - last } { last = $1 } END { print most + 0 }' notified.log)
printf 'the longest silence towards the service manager: %s s\n' "$silence"
holds "the service manager heard of it within its limit, always" [ "$silence" -lt 180 ]

# Stopped while the controller hangs, the driver ends in time, and the next one restores what it had to leave.
kill -STOP "$controller"
kill -TERM "$driver"
holds "stopped while the controller hangs, it ends" until_true 20 ended
ended || { kill -9 "$driver"; } 2>/dev/null
wait "$driver"
holds "with the status of an environment that failed" [ $? = 3 ]
holds_in "and says how to restore what is left" "evenhand slurm release --state" hang.log
kill -CONT "$controller"
until_true 60 eval 'squeue -h >/dev/null 2>&1'
holds "which does" "$evenhand" slurm release --state "$state"
holds "so that everything is restored" until_true 10 unchanged
changed
kill "$listener"
summary
