#!/usr/bin/env bash
# A real Grid Engine writes its accounting file, which evenhand reads: users, slots, memory, limits and times, held against
# what the job scripts asked for and against Grid Engine's own qacct.
#   tests/accounting/grid-engine.sh EVENHAND
# Starts a Grid Engine of its own on free ports, in a folder of its own, and stops it at the end. Jobs are those of two of
# the system's users, so it needs root; as another user it is skipped (status 77).
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/accounting/grid-engine.sh EVENHAND}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ "$(id -u)" != 0 ]; then
    printf 'skipped: Grid Engine runs the jobs of several users as root only\n'
    exit 77
fi
work=$(mktemp -d)
chmod 755 "$work"
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"

stop() {
    local pid file
    for file in "$work"/spool/execd/*/execd.pid "$work/spool/qmaster/qmaster.pid"; do
        [ -s "$file" ] || continue
        pid=$(cat "$file")
        kill "$pid" 2>/dev/null
        until_true 10 gone "$pid"
    done
    rm -rf "$work"
}
trap stop EXIT
gone() { ! kill -0 "$1" 2>/dev/null; }

# Two ports, one after the other, that nobody listens on.
free_port() {
    local port
    for _ in $(seq 50); do
        port=$((20000 + RANDOM % 11000))
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then continue; fi
        if (exec 3<>"/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null; then continue; fi
        printf '%s\n' "$port"
        return
    done
}

programs=/usr/lib/gridengine
port=$(free_port)
export SGE_ROOT="$work/root" SGE_CELL=default SGE_QMASTER_PORT=$port SGE_EXECD_PORT=$((port + 1))
common=$SGE_ROOT/default/common
mkdir -p "$common" "$work/spool/qmaster" "$work/spool/execd" "$work/spool/db" "$work/conf"
for folder in bin lib util utilbin; do ln -s "/var/lib/gridengine/$folder" "$SGE_ROOT/$folder"; done
# Every name of this machine is localhost, whatever its resolver says.
printf 'localhost %s\n' "$(hostname)" >"$common/host_aliases"
printf 'localhost\n' >"$common/act_qmaster"
cat >"$common/bootstrap" <<CONF
admin_user none
default_domain none
ignore_fqdn false
spooling_method berkeleydb
spooling_lib libspoolb
spooling_params $work/spool/db
binary_path $programs
qmaster_spool_dir $work/spool/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
CONF
begin() {
    "$programs/spoolinit" berkeleydb libspoolb "$work/spool/db" init &&
        sed "s|^execd_spool_dir.*|execd_spool_dir $work/spool/execd|; s|^mailer.*|mailer /bin/true|; s|^load_report_time.*|load_report_time 00:00:02|
             s|^min_[ug]id.*||; s|^reporting_params.*|reporting_params accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00|" \
            /usr/share/gridengine/default-configuration >"$work/conf/global" &&
        "$programs/spooldefaults" configuration "$work/conf/global" &&
        "$programs/spooldefaults" complexes /usr/share/gridengine/util/resources/centry &&
        "$programs/spooldefaults" usersets /usr/share/gridengine/util/resources/usersets &&
        "$programs/spooldefaults" managers root &&
        "$programs/sge_qmaster"
} >"$work/begin.log" 2>&1
answers() { "$programs/qconf" -sh >/dev/null 2>&1; }
if ! begin || ! until_true 20 answers; then
    tail -n 5 "$work/begin.log" "$work/spool/qmaster/messages" 2>/dev/null
    printf 'skipped: the Grid Engine of this machine does not start\n'
    exit 77
fi

# One host with eight slots, whatever it has, a parallel environment and a queue.
cat >"$work/conf/host" <<'CONF'
hostname localhost
load_scaling NONE
complex_values slots=8
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
CONF
cat >"$work/conf/smp" <<'CONF'
pe_name smp
slots 8
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule $pe_slots
control_slaves FALSE
job_is_first_task TRUE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
CONF
# A queue has many attributes; qconf shows the defaults to an editor, which sees a change only in a later second.
cat >"$work/conf/editor" <<'EDITOR'
#!/bin/sh
sed -i 's/^qname .*/qname work.q/; s/^hostlist .*/hostlist localhost/; s/^slots .*/slots 8/; s/^pe_list .*/pe_list smp/
    s/^shell .*/shell \/bin\/sh/; s/^shell_start_mode .*/shell_start_mode unix_behavior/; s/^load_thresholds .*/load_thresholds NONE/' "$1"
sleep 1
EDITOR
chmod +x "$work/conf/editor"
"$programs/qconf" -ssconf | sed 's/^schedule_interval .*/schedule_interval 0:0:1/; s/^flush_[a-z]*_sec .*/& /' >"$work/conf/scheduler"
configure() {
    "$programs/qconf" -as localhost && "$programs/qconf" -Ae "$work/conf/host" && "$programs/qconf" -Ap "$work/conf/smp" &&
        "$programs/qconf" -Msconf "$work/conf/scheduler" && EDITOR="$work/conf/editor" "$programs/qconf" -aq &&
        "$programs/sge_execd"
}
holds "Grid Engine is configured" configure
begun=$SECONDS

# submit USER OPTION…: the job's number.
submit() {
    local user=$1
    shift
    (cd / && setpriv --reuid "$user" --regid "$user" --clear-groups "$programs/qsub" -terse -b y -o /dev/null -e /dev/null "$@" 2>&1)
}
submitted() { first=$(submit daemon -N first sleep 2) && [[ $first =~ ^[0-9]+$ ]]; }
holds "a job is submitted" until_true 20 submitted
wide=$(submit games -N wide -pe smp 4 -l h_rt=60,h_vmem=256M sleep 1)
array=$(submit daemon -N many -t 1-3 -l h_rt=0:2:0 sleep 1)
killed=$(submit games -N killed sleep 300)
held=$(submit games -N held -h sleep 1)
runs() { "$programs/qstat" -u '*' -s r | grep -q "^ *$killed "; }
holds "a job runs" until_true 40 runs
# One that is killed in its first second ran for none.
sleep 2
"$programs/qdel" "$killed" "$held" >/dev/null
records() { [ "$(grep -c '^work.q:' "$common/accounting")" = "$1" ]; }
holds "Grid Engine writes six records: of the job, the wide one, three tasks and the one that was killed" until_true 60 records 6
printf 'jobs %s, %s, %s, %s; the accounting was there after %s s\n' "$first" "$wide" "${array%%.*}" "$killed" "$((SECONDS - begun))"

cd "$work" || exit 1
cp "$common/accounting" accounting
import() { "$evenhand" workload import accounting -o jobs.parquet --format json >import.json; }
holds "evenhand recognises the file and reads it" import
has() { grep -qE "$1" "$2"; }
holds "as Grid Engine's" has '"format": *"grid-engine"' import.json
holds "with six tasks" has '"tasks": *6\b' import.json
"$evenhand" workload export jobs.parquet --to swf -o jobs.swf 2>/dev/null
# Fields of SWF: 2 submission, 3 wait, 4 run time, 8 processors, 9 limit, 10 memory of a processor in KB, 12 user.
rows() { grep -v '^;' jobs.swf; }
row_of_wide() { rows | awk '$8 == 4 && $9 == 60 && $10 == 262144 { n++ } END { exit n != 1 }'; }
holds "the wide job has 4 processors, a limit of 60 s and 256 MiB for each" row_of_wide
tasks_of_array() { rows | awk '$8 == 1 && $9 == 120 { n++ } END { exit n != 3 }'; }
holds "the three tasks of the array have a limit of 120 s" tasks_of_array
users() { rows | awk '{ print $12 }' | sort | uniq -c | awk '{ print $1 }' | sort -n | paste -sd' '; }
holds "the tasks are of two users, four and two" test "$(users)" = "2 4"
times() { rows | awk '$3 < 0 || $3 > 60 || $4 < 1 || $4 > 60 { bad = 1 } END { exit bad }'; }
holds "each waited and ran between 0 and 60 s" times
# qacct sums up the wall clock of each owner from the same file by its own reader.
of_qacct() { "$programs/qacct" -o | awk '$1 == "daemon" || $1 == "games" { sum += $2 } END { printf "%d", sum }'; }
of_evenhand() { rows | awk '{ sum += $4 } END { printf "%d", sum }'; }
holds "the run times add up to those of qacct ($(of_qacct) s)" test "$(of_qacct)" = "$(of_evenhand)"
holds "the jobs can be studied" "$evenhand" study jobs.parquet --capacity cpu=8,mem=8GiB --policy fifo,drf --no-tasks --out study --quiet
summary
