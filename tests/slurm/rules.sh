#!/usr/bin/env bash
# Rules of Slurm's scheduler on a handful of jobs each, on a real Slurm and simulated from its configuration and sacct alone:
# preemption (suspended, requeued, cancelled; by partitions and by QOS, and within one), features of nodes, licences, arrays with a throttle.
#   tests/slurm/rules.sh EVENHAND [--only CLUSTER] [--keep DIR] [--conf 'LINES OF SLURM.CONF'] [--release bookworm|trixie|sid]
#   tests/slurm/rules.sh EVENHAND --from DIR     compares again what --keep has kept
# Each job must start and end within a few seconds of the real one (see `near`). Starts Slurms of its own, side by side, and stops them
# at the end; takes some two minutes. `--only requeue` takes three, since a requeued job waits for two of them.
set -uo pipefail

evenhand=${1:?usage: tests/slurm/rules.sh EVENHAND [--only CLUSTER] [--keep DIR] [--from DIR] [--conf LINES] [--release RELEASE]}
evenhand=$(realpath "$evenhand")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"
shift
only='' keep='' from='' conf=''
while [ $# -gt 1 ]; do
    case $1 in
        --only) only=$2 ;;
        --conf) conf=$2 ;;
        --keep) keep=$(realpath -m "$2") ;;
        --from) from=$(realpath "$2") ;;
        *) echo "unknown option $1" >&2 && exit 2 ;;
    esac
    shift 2
done
# shellcheck source=tests/slurm/kept.sh
source "$root/tests/slurm/kept.sh"
# Seconds: passes and backfill have phases of their own, and sacct rounds down.
near=4
clusters=(tiers features qos within licences arrays)

# Three nodes of 4 processors, and a clock that answers within two seconds.
nodes='n1 4 4000 0 old
n2 4 4000 0 ssd
n3 4 4000 0 ssd,new'
common="SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
SlurmctldDebug=debug
AccountingStorageTRES=gres/gpu,license/matlab,license/idl
Licenses=matlab:2,idl:1"
clocks=sched_interval=10,bf_interval=2,batch_sched_delay=1,bf_resolution=1

# settings CLUSTER: its lines of slurm.conf.
settings() {
    printf '%s\n' "$common" "PriorityType=priority/$([ "$1" = within ] && echo multifactor || echo basic)"
    case $1 in
        tiers | features) cat <<CONF ;;
SchedulerParameters=$clocks
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PartitionName=low Nodes=ALL PriorityTier=1
PartitionName=urgent Nodes=ALL PriorityTier=3
PartitionName=fixed Nodes=ALL PriorityTier=1 PreemptMode=OFF
CONF
        requeue) cat <<CONF ;;
SchedulerParameters=$clocks
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL PriorityTier=1
PartitionName=scrap Nodes=ALL PriorityTier=2 PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL PriorityTier=3
CONF
        qos) cat <<CONF ;;
SchedulerParameters=$clocks
PreemptType=preempt/qos
PreemptMode=SUSPEND,GANG
PartitionName=low Nodes=ALL PriorityTier=1
PartitionName=high Nodes=ALL PriorityTier=2
CONF
        within) cat <<CONF ;;
SchedulerParameters=$clocks
PriorityWeightJobSize=10000
PreemptType=preempt/qos
PreemptMode=CANCEL,WITHIN
CONF
        licences) cat <<CONF ;;
SchedulerParameters=$clocks,bf_licenses
CONF
        arrays) cat <<CONF ;;
SchedulerParameters=$clocks
CONF
    esac
    printf '%s\n' "$conf"
}

# jobs_of CLUSTER: lines of jobs, in groups that begin with a sentence and wait until those before are over: when it is submitted, in
# seconds from the begin of the group, for how long it runs, and its options.
jobs_of() {
    case $1 in
        tiers) cat <<JOBS ;;
one job is suspended of two, and memory stays held
0 20 -p low -n2 -C old --mem=1000
2 20 -p low -n2 -C old --mem=1000
7 6 -p urgent -n2 -C old --mem=1000
8 6 -p urgent -n2 -C old --mem=3500
a job over two nodes stops and goes on as one
0 15 -p low -N2 --ntasks-per-node=4 -C ssd
5 8 -p urgent -n4 -C new
jobs of two partitions of one tier run beside each other
0 15 -p low -n4 -C old
4 8 -p main -n4 -C old
JOBS
        features) cat <<JOBS ;;
a job waits for a node that has its feature, and the urgent one suspends a job of the other node
0 24 -p low -n4 -C ssd&new
2 10 -p low -n4 -C ssd&new
4 22 -p low -n4 -C old
6 20 -p low -n4 -C ssd
12 8 -p urgent -n4 -C old
constraints with alternatives, and one that no free node has
0 18 -p low -n4 -C new
2 12 -p low -n4 -C old|new
4 10 -p low -n4 -C old
6 8 -p low -n4 -C (ssd&new)|old
8 8 -p low -n2 -C ssd
jobs of a partition that is not preempted keep their node
0 15 -p fixed -n4 -C old
4 8 -p urgent -n4 -C old
JOBS
        requeue) cat <<JOBS ;;
of two jobs the one of the lower tier makes way
0 25 -p low -n4 -C old
0 25 -p scrap -n4 -C new
3 25 -p low -n4 -C ssd
8 10 -p urgent -n4
a cancelled job is over
0 30 -p scrap -n4 -C old
6 10 -p urgent -n4 -C old
JOBS
        qos) cat <<JOBS ;;
nobody is suspended within a partition
0 15 -n4 -C old --qos=lower
2 20 -n4 -C new --qos=higher
6 8 -n4 -C old --qos=higher
8 8 -n4 -C old|new --qos=higher
a job of a higher tier suspends one that its QOS may not preempt
0 15 -p low -n4 -C old --qos=lower
4 8 -p high -n4 -C old --qos=lower
a job whose QOS may preempt one of a higher tier waits on its processors
0 15 -p high -n4 -C old --qos=lower
4 8 -p low -n4 -C old --qos=higher
JOBS
        within) cat <<JOBS ;;
a job preempts one of its own QOS that has a lower priority
0 20 -n2 -C old
0 20 -n4 -C new
6 10 -n4 -C old
8 10 -n2 -C new
JOBS
        licences) cat <<JOBS ;;
backfill plans with licences: a job that would keep a planned one from its processors waits
0 20 -n2 -C old -t 1 -L matlab:2
2 10 -n4 -C old -t 1 -L matlab
4 10 -n2 -C old -t 3
two kinds of licences
0 15 -n1 -L matlab
1 15 -n1 -L matlab,idl
2 10 -n1 -L matlab
3 10 -n1 -L idl
4 5 -n1
JOBS
        arrays) cat <<JOBS ;;
two tasks of an array run at once, and a later job beside them
0 8 -n1 -a 1-5%2
2 6 -n1
a task that the throttle holds back keeps nothing free: the next job starts, and then the array waits for it
0 10 -n2 -C old -a 1-3%1
2 30 -n2 -C old
4 5 -n4 -C old
arrays have throttles of their own, and the tasks of one without any start together
0 9 -n1 -C new -a 0-2%1
1 9 -n1 -C new -a 0-3%2
2 7 -n2 -C ssd -a 0-1
JOBS
    esac
}

# real CLUSTER DIR: its jobs on a real Slurm.
real() {
    local cluster=$1 to=$2 user me group=0 began submitted line at run options
    me=$(id -un)
    user=$me
    [ "$(id -u)" != 0 ] || user=daemon
    SLURM_NODES=$nodes WITH_DB=1 SLURM_USERS="$me $user" SLURM_CONF_EXTRA=$(settings "$cluster") \
        "$root/scripts/slurm-up.sh" "$work/$cluster" >"$work/$cluster.up" || return 1
    eval "$(cat "$work/$cluster.up")"
    local begin
    begin=$(date +%Y-%m-%dT%H:%M:%S)
    if [ "$cluster" = qos ]; then
        sacctmgr -i -Q add qos lower higher >/dev/null
        sacctmgr -i -Q modify qos higher set Preempt=lower >/dev/null
        sacctmgr -i -Q modify account all set qos=normal,lower,higher >/dev/null
        sleep 2
    fi
    until_true 60 eval 'submit "$user" -n1 -t 1 --wrap true >/dev/null 2>&1'
    until_true 30 eval '[ -z "$(squeue -h)" ]'
    mkdir -p "$to"
    : >"$to/groups"
    while read -r line; do
        case $line in
            [0-9]*)
                read -r at run options <<<"$line"
                until [ $(($(date +%s) - began)) -ge "$at" ]; do sleep 0.1; done
                # Not one sleep: its clock goes on while the job is suspended. Without a semicolon, which separates columns of sacct.
                # shellcheck disable=SC2086
                submitted=$(submit "$user" -J "r$run" -t 2 $options --wrap "seq $run | xargs -I{} sleep 1") || submitted="? $options"
                printf '%s %s\n' "$submitted" "$group" >>"$to/groups"
                ;;
            *)
                until_true 600 eval '[ -z "$(squeue -h)" ]'
                sleep 3
                began=$(date +%s)
                group=$((group + 1))
                ;;
        esac
    done < <(jobs_of "$cluster")
    until_true 600 eval '[ -z "$(squeue -h)" ]'
    keep_run "$to" "$begin"
    SLURM_CONF=$SLURM_CONF "$root/scripts/slurm-down.sh" "$work/$cluster" --purge
}

# compared DIR: lines of jobs: number, group, and the seconds from the group's first submission to the start and the end, real and
# simulated, then how often it ran again, and for how long it was suspended.
compared() {
    one_row_a_job "$1" real | awk -F';' '
        function seconds(time) { gsub(/[-T:]/, " ", time); return mktime(time) }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { print $at["JobID"], seconds($at["Submit"]), seconds($at["Start"]), seconds($at["End"]), $at["NodeList"], $at["Suspended"] }' >real.txt
    simulate "$1" || return 1
    tail -n +2 study/tasks-site-*.csv | awk -F, '{ print $3, $4, $4 + $5 }' >simulated.txt
    [ "$(wc -l <real.txt)" = "$(wc -l <simulated.txt)" ] || { echo "other jobs are simulated" && return 1; }
    paste -d' ' real.txt simulated.txt | awk '
        NR == FNR { group[$1] = $2; next }
        split($1, id, "_") && id[1] in group {
            g = group[id[1]]
            if (!(g in first)) first[g] = $2
            moved = $2 - $7
            printf "%s %d %d %d %d %d %s %s\n", $1, g, $3 - first[g], $8 + moved - first[g], $4 - first[g], $9 + moved - first[g], $5, $6
        }' "$1/groups" -
}

# is_near GROUP: prints its jobs; whether each starts and ends as the real one.
is_near() {
    awk -v group="$1" -v near="$near" '
        function off(a, b) { return (a > b ? a - b : b - a) > near }
        $2 == group {
            n++
            far += off($3, $4) || off($5, $6)
            printf "job %s starts at %d s, simulated %d, ends at %d, simulated %d, on %s, suspended for %s\n", $1, $3, $4, $5, $6, $7, $8
        }
        END { exit !(n > 0 && far == 0) }' compared.txt
}

stop() {
    local cluster
    for cluster in "${clusters[@]}" requeue; do "$root/scripts/slurm-down.sh" "$work/$cluster" --purge; done
    rm -rf "$work"
}
trap stop EXIT

if [ -z "$from" ]; then
    from=${keep:-$work/kept}
    for cluster in ${only:-"${clusters[@]}"}; do
        real "$cluster" "$from/$cluster" >"$work/$cluster.log" 2>&1 &
        # What one does at its start must not delay the jobs of another one.
        sleep 3
    done
    wait
    cat "$work"/*.log
fi
for cluster in ${only:-"${clusters[@]}"}; do
    mkdir -p "$work/compared/$cluster"
    cd "$work/compared/$cluster" || exit 1
    holds "what $cluster ran can be simulated" compared "$from/$cluster" || continue
    compared "$from/$cluster" >compared.txt
    group=0
    while read -r line; do
        case $line in [0-9]*) continue ;; esac
        group=$((group + 1))
        holds "$cluster: $line" is_near "$group"
    done < <(jobs_of "$cluster")
done
summary
