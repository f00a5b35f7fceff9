#!/usr/bin/env bash
# How near the simulation of Slurm's scheduler comes to a real Slurm: a mix of short jobs runs on a real one, and is then
# simulated from its configuration and sacct alone.
#   tests/slurm/fidelity.sh EVENHAND [--seed N] [--jobs N] [--conf 'LINES OF SLURM.CONF'] [--keep DIR]
#   tests/slurm/fidelity.sh EVENHAND --from DIR     compares again what --keep has kept
# Prints a line `name real simulated difference` for makespan, mean wait, the waits of users and what started the jobs, and
# fails beyond the bounds below. Starts a Slurm of its own and stops it at the end. As root the jobs are those of six of
# the system's users; as any other user all are the caller's, under three accounts.
set -uo pipefail

evenhand=${1:?usage: tests/slurm/fidelity.sh EVENHAND [--seed N] [--jobs N] [--conf LINES] [--keep DIR] [--from DIR]}
evenhand=$(realpath "$evenhand")
shift
seed=1 jobs=150 conf='' keep='' from=''
while [ $# -gt 1 ]; do
    case $1 in
        --seed) seed=$2 ;;
        --jobs) jobs=$2 ;;
        --conf) conf=$2 ;;
        --keep) keep=$2 ;;
        --from) from=$(realpath "$2") ;;
        *) echo "unknown option $1" >&2 && exit 2 ;;
    esac
    shift 2
done
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"

# Two kinds of nodes, two partitions of which one has only the larger kind, and clocks that fit jobs of seconds.
nodes='a1 4 8000 0 small
a2 4 8000 0 small
a3 4 8000 0 small
a4 4 8000 0 small
b1 8 16000 0 large
b2 8 16000 0 large'
settings="PriorityWeightAge=1000
PriorityMaxAge=1-0
PriorityWeightFairshare=10000
PriorityWeightJobSize=500
PriorityCalcPeriod=1
PriorityDecayHalfLife=1-0
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=15,bf_interval=7,batch_sched_delay=3,bf_resolution=1
PartitionName=large Nodes=b[1-2] MaxTime=10:00 PriorityJobFactor=10 State=UP
$conf"

# job NUMBER: seconds until the next submission, user, partition, nodes, processors, seconds, minutes of the limit.
# A mix of serial and multi-node jobs, most far shorter than their limits, a few beyond them.
mix() {
    awk -v seed="$seed" -v jobs="$jobs" 'BEGIN {
        srand(seed)
        for (i = 0; i < jobs; i++) {
            user = int(6 * rand() * rand())
            large = rand()
            nodes = large < 0.12 ? 2 + int(4 * rand()) : 1
            cpus = nodes > 1 ? nodes * (1 + int(4 * rand())) : 1 + int(4 * rand() * rand())
            run = rand() < 0.2 ? 15 + int(25 * rand()) : 2 + int(10 * rand())
            limit = rand() < 0.5 ? 1 : 1 + int(5 * rand())
            partition = rand() < 0.15 && nodes <= 2 ? "large" : "main"
            gap = rand() < 0.75 ? 0 : 1
            print gap, user, partition, nodes, cpus, run, limit
        }
    }'
}

real() {
    if [ "$(id -u)" = 0 ]; then users=(daemon games mail news uucp backup); else users=(); fi
    me=$(id -un)
    SLURM_NODES=$nodes WITH_DB=1 SLURM_USERS="${users[*]:-$me}" SLURM_CONF_EXTRA=$settings \
        "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
    eval "$(cat "$work/up")"
    for account in a b c; do sacctmgr -i -Q add account "$account" Fairshare=1 >/dev/null; done
    for n in 0 1 2 3 4 5; do
        account=$(printf 'abc' | cut -c $((n % 3 + 1)))
        sacctmgr -i -Q add user "${users[$n]:-$me}" account="$account" Fairshare=$((n + 1)) >/dev/null
    done
    # Slurm knows the new accounts a little later.
    until_true 60 eval 'submit "${users[5]:-$me}" -A c -n1 -t 1 --wrap true >/dev/null 2>&1'
    # Fair shares of new associations are 0 until priorities are computed for the first time. That is also the instant at
    # which the simulation begins: the next computation is a period after it.
    until_true 80 eval 'sshare -n -P -u "${users[5]:-$me}" -o User,FairShare | grep -Eq "^[^|]+[|](1|0[.]0*[1-9])"'
    begin=$(date +%Y-%m-%dT%H:%M:%S)
    submit "${users[5]:-$me}" -A c -n1 -t 1 --wrap true >/dev/null
    sleep 2
    while read -r gap user partition count cpus run limit; do
        [ "$gap" = 0 ] || sleep "$gap"
        account=$(printf 'abc' | cut -c $((user % 3 + 1)))
        submit "${users[$user]:-$me}" -A "$account" -p "$partition" -N "$count" -n "$cpus" -t "$limit" \
            --wrap "exec sleep $run" >/dev/null || echo "not submitted: $user $partition $count $cpus" >&2
    done < <(mix)
    until_true 600 eval '[ -z "$(squeue -h)" ]'
    # slurmdbd learns of the last ends a little later.
    until_true 60 eval '! sacct -a -X -n -S "$begin" -o State | grep -Eq "RUNNING|PENDING|COMPLETING"'
    mkdir -p "$1"
    sacct -a -X -P --noconvert -S "$begin" -o \
        JobIDRaw,JobID,User,Account,Partition,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,NNodes,NCPUS,ReqTRES,AllocTRES,NodeList,Flags >"$1/sacct.txt"
    sacctmgr -P show assoc >"$1/assoc.txt"
    cp "$SLURM_CONF" "$1/slurm.conf"
    # What it decided when: for a look at where the simulation departs from it, with --conf DebugFlags=….
    cp "$work/slurm/log/slurmctld.log" "$1/slurmctld.log"
}

if [ -z "$from" ]; then
    from=${keep:-$work/kept}
    real "$from"
fi
cd "$work" || exit 1
"$evenhand" site import --slurm-conf "$from/slurm.conf" --assoc "$from/assoc.txt" -o site >import.txt 2>&1 || { cat import.txt; exit 1; }
"$evenhand" study "$from/sacct.txt" --site site --scheduler slurm --policy logged,site --tasks-csv --out study >study.txt 2>&1 ||
    { cat study.txt; exit 1; }
# Rows of a study are in the order of submission, as the lines of sacct are.
tail -n +2 "$from/sacct.txt" | awk -F'|' '{ by = "-"
    if ($18 ~ /SchedSubmit/) by = "submit"
    if ($18 ~ /SchedMain/) by = "main"
    if ($18 ~ /SchedBackfill/) by = "backfill"
    print by }' >by-real.txt
paste -d, <(tail -n +2 study/tasks-logged-*.csv) <(tail -n +2 study/tasks-site-*.csv) by-real.txt | awk -F, '
    # logged: row user submit start duration wait state; simulated: the same and started_by; what started it really.
    function relative(a, b) { return b == 0 ? (a == 0 ? 0 : 1) : (a > b ? a - b : b - a) / b }
    {
        n++
        if (n == 1 || $3 < first) first = $3
        if ($4 + $5 > real_end) real_end = $4 + $5
        if ($11 + $12 > simulated_end) simulated_end = $11 + $12
        real += $6; simulated += $13
        jobs[$2]++; of_real[$2] += $6; of_simulated[$2] += $13
        share_real[$16]++; share_simulated[$15]++
        same += $15 == $16
    }
    END {
        for (user in jobs) errors[++users] = relative(of_simulated[user], of_real[user])
        for (i = 2; i <= users; i++) for (k = i; k > 1 && errors[k] < errors[k - 1]; k--) {
            swap = errors[k]; errors[k] = errors[k - 1]; errors[k - 1] = swap
        }
        median = users % 2 ? errors[(users + 1) / 2] : (errors[users / 2] + errors[users / 2 + 1]) / 2
        printf "jobs %d\n", n
        printf "makespan_s %.0f %.0f %.3f\n", real_end - first, simulated_end - first, relative(simulated_end - first, real_end - first)
        printf "mean_wait_s %.2f %.2f %.3f\n", real / n, simulated / n, relative(simulated, real)
        printf "user_wait_error - - %.3f\n", median
        split("submit main backfill", names, " ")
        for (i = 1; i <= 3; i++) {
            name = names[i]
            difference = (share_simulated[name] - share_real[name]) / n
            printf "share_%s %.3f %.3f %.3f\n", name, share_real[name] / n, share_simulated[name] / n, difference < 0 ? -difference : difference
        }
        printf "same_activity - - %.3f\n", same / n
    }' | tee measured.txt
value() { awk -v name="$1" '$1 == name { print $4 }' measured.txt; }
below() { awk -v found="$(value "$1")" -v most="$2" 'BEGIN { exit !(found != "" && found <= most) }'; }
# Bounds above the differences between two runs of the real one: docs/src/explanation/results/slurm-fidelity.md.
holds "every job is compared" [ "$(awk '$1 == "jobs" { print $2 }' measured.txt)" = "$(($(wc -l <"$from/sacct.txt") - 1))" ]
holds "the makespan is met within 5 %" below makespan_s 0.05
holds "the mean wait is met within 20 %" below mean_wait_s 0.2
summary
