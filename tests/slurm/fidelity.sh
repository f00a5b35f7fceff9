#!/usr/bin/env bash
# How near the simulation of Slurm's scheduler comes to a real Slurm: a mix of short jobs runs on a real one, and is then
# simulated from its configuration and sacct alone.
#   tests/slurm/fidelity.sh EVENHAND [--mix small|site] [--seed N] [--jobs N] [--conf 'LINES OF SLURM.CONF'] [--keep DIR]
#     [--partitions 'DEFAULTS OF PARTITIONS'] [--release bookworm|trixie|sid]
#   tests/slurm/fidelity.sh EVENHAND --from DIR     compares again what --keep has kept
#   tests/slurm/fidelity.sh EVENHAND --from DIR --against DIR     compares two real runs of one mix: how far they differ
# --mix small: 150 jobs of six users on 6 nodes within five minutes; site: 700 jobs of twenty users on 64 nodes in a quarter of an hour.
# Prints a line `name real simulated difference` for makespan, mean wait, the waits of users and what started the jobs, and
# fails beyond the bounds below. Starts a Slurm of its own and stops it at the end. As root the jobs are those of six of
# the system's users; as any other user all are the caller's, under three accounts.
set -uo pipefail

evenhand=${1:?usage: tests/slurm/fidelity.sh EVENHAND [--mix small|site] [--seed N] [--jobs N] [--conf LINES] [--partitions DEFAULTS] [--keep DIR] [--from DIR [--against DIR]] [--release RELEASE]}
evenhand=$(realpath "$evenhand")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"
shift
seed=1 mix=small jobs='' conf='' partitions='' keep='' from='' against=''
while [ $# -gt 1 ]; do
    case $1 in
        --seed) seed=$2 ;;
        --jobs) jobs=$2 ;;
        --mix) mix=$2 ;;
        --conf) conf=$2 ;;
        --partitions) partitions=$2 ;;
        --keep) keep=$(realpath -m "$2") ;;
        --from) from=$(realpath "$2") ;;
        --against) against=$(realpath "$2") ;;
        *) echo "unknown option $1" >&2 && exit 2 ;;
    esac
    shift 2
done
[ -n "$jobs" ] || case $mix in small) jobs=150 ;; *) jobs=700 ;; esac

# Two kinds of nodes, two partitions of which one has only the larger kind, and clocks that fit jobs of seconds.
case $mix in
    small) smaller=4 larger=2 mix_users=6 ;;
    site) smaller=48 larger=16 mix_users=20 ;;
    *) echo "unknown mix $mix" >&2 && exit 2 ;;
esac
nodes=$(
    for ((i = 1; i <= smaller; i++)); do echo "a$i 4 8000 0 small"; done
    for ((i = 1; i <= larger; i++)); do echo "b$i 8 16000 0 large"; done
)
settings="PriorityWeightAge=1000
PriorityMaxAge=1-0
PriorityWeightFairshare=10000
PriorityWeightJobSize=500
PriorityCalcPeriod=1
PriorityDecayHalfLife=1-0
SelectTypeParameters=CR_CPU
SlurmctldDebug=debug
SchedulerParameters=sched_interval=15,bf_interval=7,batch_sched_delay=3,bf_resolution=1
PartitionName=large Nodes=b[1-$larger] MaxTime=1:00:00 PriorityJobFactor=10 State=UP
$conf"

# A line a submission: seconds until the next one, user, partition, nodes, processors, seconds, minutes of the limit, tasks of an
# array, whole nodes (- or x). Most jobs run far shorter than their limits, a few beyond them.
mix() {
    if [ "$mix" = small ]; then mix_small; else mix_site; fi
}

# Serial and multi-node jobs of six users within a minute.
mix_small() {
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
            print gap, user, partition, nodes, cpus, run, limit, 1, "-"
        }
    }'
}

# Sessions of twenty users over some ten minutes: serial and multi-node jobs, arrays, whole nodes.
mix_site() {
    awk -v seed="$seed" -v jobs="$jobs" 'BEGIN {
        srand(seed)
        for (done = 0; done < jobs; done += tasks) {
            if (left-- <= 0) { user = int(20 * rand() * rand()); left = 1 + int(4 * rand()); kind = rand() }
            tasks = 1; nodes = 1; whole = "-"
            if (kind < 0.15) { tasks = 4 + int(12 * rand()); cpus = 1 + int(2 * rand()) }
            else if (kind < 0.45) { nodes = 2 + int(8 * rand() * rand()); cpus = nodes * (1 + int(4 * rand())) }
            else if (kind < 0.52) { nodes = 1 + int(4 * rand()); cpus = nodes; whole = "x" }
            else cpus = 1 + int(6 * rand() * rand())
            run = rand() < 0.3 ? 90 + int(240 * rand()) : 12 + int(80 * rand())
            limit = int(run * (1 + 3 * rand()) / 60) + 1
            if (rand() < 0.04 && limit > 1) limit--
            partition = nodes <= 6 && (cpus > 4 * nodes || rand() < 0.15) ? "large" : "main"
            gap = tasks * (-0.7 * log(1 - rand()))
            print gap, user, partition, nodes, cpus, run, limit, tasks, whole
        }
    }'
}

account_of() { printf '%s' "$1" | awk '{ print substr("abc", $1 % 3 + 1, 1) }'; }

real() {
    me=$(id -un)
    users=("$me")
    if [ "$(id -u)" = 0 ]; then users=(daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc _apt nobody polkitd slurm munge); fi
    users=("${users[@]:0:$((mix_users))}")
    SLURM_NODES=$nodes WITH_DB=1 SLURM_USERS=$me SLURM_CONF_EXTRA=$settings SLURM_PARTITION_DEFAULTS=$partitions \
        "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
    eval "$(cat "$work/up")"
    for account in a b c; do sacctmgr -i -Q add account "$account" Fairshare=1 >/dev/null; done
    for n in "${!users[@]}"; do
        sacctmgr -i -Q add user "${users[$n]}" account="$(account_of "$n")" Fairshare=$((n % 6 + 1)) >/dev/null
    done
    last=$((${#users[@]} - 1))
    until_true 60 eval 'submit "${users[$last]}" -A "$(account_of "$last")" -n1 -t 1 --wrap true >/dev/null 2>&1'
    # New associations have a fair share of 0 until priorities are computed, which this file records. The mix begins then.
    computed=$work/slurm/state/priority_last_decay_ran
    touch "$work/submitted"
    until_true 90 [ "$computed" -nt "$work/submitted" ]
    until_true 30 eval '[ -z "$(squeue -h)" ]'
    sleep 1
    begin=$(date +%Y-%m-%dT%H:%M:%S)
    submit "${users[$last]}" -A "$(account_of "$last")" -n1 -t 1 --wrap true >/dev/null
    sleep 2
    while read -r gap user partition count cpus run limit tasks whole; do
        user=$((user % ${#users[@]}))
        options=(-A "$(account_of "$user")" -p "$partition" -N "$count" --ntasks-per-node="$((cpus / count))" -t "$limit")
        [ "$tasks" = 1 ] || options+=(-a "1-$tasks")
        [ "$whole" = - ] || options+=(--exclusive)
        submit "${users[$user]}" "${options[@]}" --wrap "exec sleep $run" >/dev/null ||
            echo "not submitted: $user $partition $count $cpus" >&2
        sleep "$gap"
    done < <(mix)
    until_true 1800 eval '[ -z "$(squeue -h)" ]'
    # slurmdbd learns of the last ends a little later.
    until_true 60 eval '! sacct -a -X -n -S "$begin" -o State | grep -Eq "RUNNING|PENDING|COMPLETING"'
    mkdir -p "$1"
    stat -c %Y "$computed" >"$1/computed"
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

# jobs FILE: a line `user submit start duration by` a job that ran, in the order of submission, of a table of sacct.
jobs() {
    awk -F'|' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        function seconds(time) { gsub(/[-T:]/, " ", time); return mktime(time) }
        $at["Start"] ~ /^[0-9]/ {
            split($at["JobID"], id, "_")
            by = "-"
            if ($at["Flags"] ~ /SchedSubmit/) by = "submit"
            if ($at["Flags"] ~ /SchedMain/) by = "main"
            if ($at["Flags"] ~ /SchedBackfill/) by = "backfill"
            print id[1], id[2] + 0, $at["User"], seconds($at["Submit"]), seconds($at["Start"]), $at["ElapsedRaw"], by
        }' "$1" | sort -n -k 1,1 -k 2,2 | cut -d' ' -f 3-
}

# compare ONE OTHER: two files of such lines, job by job.
compare() {
    paste -d' ' "$1" "$2" | awk '
        function relative(a, b) { return b == 0 ? (a == 0 ? 0 : 1) : (a > b ? a - b : b - a) / b }
        {
            n++
            if (n == 1) { first = $2; other_first = $7 }
            if ($3 + $4 - first > end) end = $3 + $4 - first
            if ($8 + $9 - other_first > other_end) other_end = $8 + $9 - other_first
            wait += $3 - $2; other_wait += $8 - $7
            of_user[$1] += $3 - $2; other_of_user[$1] += $8 - $7
            share[$5]++; other_share[$10]++
            same += $5 == $10
            differs += $1 != $6
        }
        END {
            for (user in of_user) errors[++users] = relative(other_of_user[user], of_user[user])
            for (i = 2; i <= users; i++) for (k = i; k > 1 && errors[k] < errors[k - 1]; k--) {
                swap = errors[k]; errors[k] = errors[k - 1]; errors[k - 1] = swap
            }
            median = users % 2 ? errors[(users + 1) / 2] : (errors[users / 2] + errors[users / 2 + 1]) / 2
            printf "jobs %d\n", n
            printf "other_users - - %d\n", differs
            printf "makespan_s %.0f %.0f %.3f\n", end, other_end, relative(other_end, end)
            printf "mean_wait_s %.2f %.2f %.3f\n", wait / n, other_wait / n, relative(other_wait, wait)
            printf "user_wait_error - - %.3f\n", median
            split("submit main backfill", names, " ")
            for (i = 1; i <= 3; i++) {
                name = names[i]
                difference = (other_share[name] - share[name]) / n
                printf "share_%s %.3f %.3f %.3f\n", name, share[name] / n, other_share[name] / n, difference < 0 ? -difference : difference
            }
            printf "same_activity - - %.3f\n", same / n
        }' | tee measured.txt
}

jobs "$from/sacct.txt" >real.txt
if [ -n "$against" ]; then
    jobs "$against/sacct.txt" >other.txt
    compare real.txt other.txt
    exit
fi
# Priorities are computed every minute from slurmctld's start on, which sacct does not show, and in the simulation at whole minutes:
# all times are moved by the difference.
moved() {
    awk -F'|' -v OFS='|' -v by="$(($(cat "$from/computed" 2>/dev/null || echo 0) % 60))" '
        NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ /^(Submit|Eligible|Start|End)$/) times[i] }
        NR > 1 { for (i in times) if ($i ~ /^[0-9]/) {
            time = $i
            gsub(/[-T:]/, " ", time)
            $i = strftime("%Y-%m-%dT%H:%M:%S", mktime(time) - by)
        } }
        { print }' "$from/sacct.txt"
}
moved >sacct.txt
"$evenhand" site import --slurm-conf "$from/slurm.conf" --assoc "$from/assoc.txt" -o site >import.txt 2>&1 || { cat import.txt; exit 1; }
# Of jobs that have whole nodes sacct's allocated processors are those of the nodes that they had.
processors=()
! grep -q EXCLUSIVE "$from/slurm.conf" || processors=(--processors requested)
"$evenhand" study sacct.txt "${processors[@]}" --site site --scheduler slurm --release submit --policy site --tasks-csv --out study >study.txt 2>&1 ||
    { cat study.txt; exit 1; }
# Rows of a study are in the order of submission. In a burst that is the order of the lines of sacct, by the ids of jobs.
tail -n +2 study/tasks-site-*.csv | awk -F, '{ print $2, $3, $4, $5, $8 }' >simulated.txt
compare real.txt simulated.txt
value() { awk -v name="$1" '$1 == name { print $4 }' measured.txt; }
below() { awk -v found="$(value "$1")" -v most="$2" 'BEGIN { exit !(found != "" && found <= most) }'; }
# Bounds above the differences between two runs of the real one: docs/src/explanation/results/slurm-fidelity.md.
holds "every job is compared with itself" [ "$(wc -l <real.txt)" = "$(wc -l <simulated.txt)" ]
holds "users are the same" below other_users 0
holds "the makespan is met within 6 %" below makespan_s 0.06
holds "the mean wait is met within 25 %" below mean_wait_s 0.25
summary
