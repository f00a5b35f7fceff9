#!/usr/bin/env bash
# How near the simulation of Slurm's scheduler comes to a real Slurm: a mix of short jobs runs on a real one, and is then
# simulated from its configuration and sacct alone.
#   tests/slurm/fidelity.sh EVENHAND [--mix MIX] [--seed N] [--jobs N] [--conf 'LINES OF SLURM.CONF'] [--keep DIR]
#     [--partitions 'DEFAULTS OF PARTITIONS'] [--release bookworm|trixie|sid]
#   tests/slurm/fidelity.sh EVENHAND --from DIR     compares again what --keep has kept
#   tests/slurm/fidelity.sh EVENHAND --from DIR --against DIR     compares two real runs of one mix: how far they differ
# --mix small: 150 jobs of six users on 6 nodes within five minutes; site: 700 jobs of twenty users on 64 nodes in a quarter of an hour.
# Like small, without fair share: tasks (half of the jobs name no number of nodes), node-tasks (half name it and their tasks, and Slurm
# divides these), licences, features (of which few nodes have what
# many ask for), suspension (of jobs of lower tiers), and preemption: 110 jobs that are requeued or cancelled, beside a reservation.
# tests/slurm/rules.sh has the same rules on a few jobs each.
# Prints a line `name real simulated difference` for makespan, mean wait, the waits of users and what started the jobs, and
# fails beyond the bounds below. With --conf DebugFlags=Backfill,BackfillMap,Priority it also holds each decision of that Slurm
# against the rules (decisions.py), for the mixes small, site, tasks and node-tasks. Starts a Slurm of its own and stops it at the end. As root
# the jobs are those of six of the system's users; as any other user all are the caller's, under three accounts.
set -uo pipefail

evenhand=${1:?usage: tests/slurm/fidelity.sh EVENHAND [--mix MIX] [--seed N] [--jobs N] [--conf LINES] [--partitions DEFAULTS] [--keep DIR] [--from DIR [--against DIR]] [--release RELEASE]}
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
# shellcheck source=tests/slurm/mixes.sh
source "$root/tests/slurm/mixes.sh"
settings+="
$conf"
# shellcheck source=tests/slurm/kept.sh
source "$root/tests/slurm/kept.sh"

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
    if [ "$mix" = suspension-qos ]; then
        sacctmgr -i -Q add qos urgent >/dev/null
        sacctmgr -i -Q modify qos urgent set Preempt=normal >/dev/null
        sacctmgr -i -Q modify account a b c set qos=normal,urgent >/dev/null
    fi
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
    mkdir -p "$1"
    if [ "$mix" = preemption ]; then
        scontrol create reservation ReservationName=maint StartTime=now+90 Duration=2 Nodes=a[1-2] Users=root Flags=MAINT >/dev/null
        scontrol show reservation >"$1/reservations.txt"
    fi
    while read -r gap user partition count cpus run limit tasks options; do
        user=$((user % ${#users[@]}))
        asked=(-J "r$run" -A "$(account_of "$user")" -p "$partition" -t "$limit")
        if [ "$count" = 0 ]; then
            asked+=(-n "$cpus")
        elif [ "$count" -lt 0 ]; then
            asked+=(-N "${count#-}" -n "$cpus")
        else
            asked+=(-N "$count" --ntasks-per-node="$((cpus / count))")
        fi
        [ "$tasks" = 1 ] || asked+=(-a "1-$tasks")
        script="exec sleep $run"
        # One sleep would go on while the job is suspended.
        [[ $mix != suspension* ]] || script="seq $run | xargs -I{} sleep 1"
        # shellcheck disable=SC2086
        submit "${users[$user]}" "${asked[@]}" $options --wrap "$script" >/dev/null ||
            echo "not submitted: $user $partition $count $cpus $options" >&2
        sleep "$gap"
    done < <(mix)
    until_true 1800 eval '[ -z "$(squeue -h)" ]'
    stat -c %Y "$computed" >"$1/computed"
    keep_run "$1" "$begin"
}

if [ -z "$from" ]; then
    from=${keep:-$work/kept}
    real "$from"
fi
cd "$work" || exit 1

# jobs DIR: a line `user submit start duration by` a job that ran, in the order of submission. The duration is that of the last run, with
# the time for which it was suspended.
jobs() {
    one_row_a_job "$1" real | awk -F';' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        function seconds(time) { gsub(/[-T:]/, " ", time); return mktime(time) }
        $at["Start"] ~ /^[0-9]/ {
            split($at["JobID"], id, "_")
            by = "-"
            if ($at["Flags"] ~ /SchedSubmit/) by = "submit"
            if ($at["Flags"] ~ /SchedMain/) by = "main"
            if ($at["Flags"] ~ /SchedBackfill/) by = "backfill"
            print id[1], id[2] + 0, $at["User"], seconds($at["Submit"]), seconds($at["Start"]), seconds($at["End"]) - seconds($at["Start"]), by
        }' | sort -n -k 1,1 -k 2,2 | cut -d' ' -f 3-
}

# made_way DIR: how often jobs were requeued, how many cancelled, and how many suspended.
made_way() {
    awk -F';' 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            rows++
            if (!($at["JobIDRaw"] in seen)) jobs++
            seen[$at["JobIDRaw"]] = $at["State"]
            suspended += $at["Suspended"] != "00:00:00"
        }
        END {
            for (id in seen) cancelled += seen[id] ~ /PREEMPTED/
            print "made_way_really: " rows - jobs " requeued, " cancelled + 0 " cancelled, " suspended + 0 " suspended"
        }' "$1/sacct.txt"
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

jobs "$from" >real.txt
if [ -n "$against" ]; then
    jobs "$against" >other.txt
    compare real.txt other.txt
    exit
fi
simulate "$from" || exit 1
if grep -q '^PreemptType=' "$from/slurm.conf"; then
    made_way "$from"
    tr '\n' ' ' <study.txt | grep -o 'preempted: *[0-9]* requeued, *[0-9]* cancelled\(, *[0-9]* suspended\)\?' || echo 'preempted: none'
fi
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
if grep -q _dump_job_test "$from/slurmctld.log" 2>/dev/null && command -v python3 >/dev/null; then
    python3 "$root/tests/slurm/decisions.py" "$from" | tee decisions.txt
    holds "plans are those of the rules from the same state, to 95 %" [ "${PIPESTATUS[0]}" = 0 ]
fi
summary
