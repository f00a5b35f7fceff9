#!/usr/bin/env bash
# A real Slurm is driven: plans with reasons, dominant shares under drf against Slurm's own order, what is left
# alone, what a crash leaves, a controller that is restarted, rights that are missing.
#   tests/slurm/drive.sh EVENHAND [--release bookworm|trixie|sid]
# Starts a Slurm of its own and stops it at the end. As root the jobs are those of three of the system's users;
# as any other user all are the caller's, under three accounts, which are parties as well.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/slurm/drive.sh EVENHAND [--release RELEASE]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"

if [ "$(id -u)" = 0 ]; then
    alice=daemon bob=games carol=mail
else
    alice=$(id -un) bob=$alice carol=$alice
    printf 'not root: all jobs are those of %s, and denied rights are not tried\n' "$alice"
fi
# 20 CPUs, 112,000 MB, 2 GPUs: which Slurm by itself fills with the jobs of one user.
nodes='n1 8 32000 0 spec_100
n2 8 32000 0 spec_100
n3 4 48000 2 spec_150'
# Ends when two more updates are printed, if there is a log of updates: the first may have begun before the job ended. Until then
# the job's node is not free.
log_of_updates=$work/conform.log
cat >"$work/epilog" <<EPILOG
#!/bin/bash
updates() { mapfile -t lines <"$log_of_updates"; }
[ -e "$log_of_updates" ] && updates || exit 0
wanted=\$((\${#lines[@]} + 2))
until [ "\${#lines[@]}" -ge "\$wanted" ] || [ "\$SECONDS" -ge 60 ]; do
    sleep 0.1
    updates
done
EPILOG
chmod 755 "$work/epilog"
SLURM_NODES=$nodes SLURM_CONF_EXTRA="Epilog=$work/epilog" WITH_DB=1 SLURM_USERS="$alice" \
    "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
eval "$(cat "$work/up")"
cd "$work" || exit 1
for account in a b c; do sacctmgr -i -Q add account "$account" Fairshare=1 >/dev/null; done
sacctmgr -i -Q add user "$alice" account=a >/dev/null
sacctmgr -i -Q add user "$bob" account=b >/dev/null
sacctmgr -i -Q add user "$carol" account=c >/dev/null
known() { sacctmgr -n -P show assoc format=account,user | grep -qx "c|$carol"; }
until_true 60 known

# Some sbatch are refused while slurmdbd is not yet ready to say who is who.
until_true 60 eval 'submit "$alice" -A a -n1 --mem=100M -t 5 --wrap true >/dev/null 2>&1'
# jobs_of_4_seconds COUNT USER OPTION…
jobs_of_4_seconds() {
    local count=$1
    shift
    for _ in $(seq "$count"); do submit "$@" -n1 -t 5 --wrap 'sleep 4'; done >/dev/null
}
# shares SECONDS: mean dominant shares of the three by sampling the running jobs.
shares() {
    local until=$((SECONDS + $1))
    while [ "$SECONDS" -lt "$until" ]; do
        squeue -h -t R -o %a
        echo -
        sleep 0.5
    done | awk '$1 == "-" { n++ } $1 == "a" { a++ } $1 == "b" { b++ } $1 == "c" { c++ }
        END { printf "%.3f %.3f %.3f\n", a / n / 20, b * 8000 / n / 112000, c * 4 / n / 20 }'
}
clear_queue() {
    for account in a b c f g; do scancel -f -A "$account" 2>/dev/null; done
    until_true 90 eval '[ -z "$(squeue -h)" ]'
}
factors() { sprio -h -o '%i %S' | awk '$2 != 0' | wc -l; }
state="$work/state/slurm.redb"

until_true 60 eval '[ -z "$(squeue -h)" ]'

# --- What would happen: plans.
scontrol update NodeName=n1,n2,n3 State=DRAIN Reason=test
a1=$(submit "$alice" -A a -n1 --mem=500M -t 5 --wrap 'sleep 1')
a2=$(submit "$alice" -A a -n1 --mem=500M -t 5 --wrap 'sleep 1')
# Slurm knows seconds: users who submit in one tie.
sleep 1.1
array=$(submit "$bob" -A b -n1 --mem=8000M -t 5 -a 0-999 --wrap 'sleep 1')
sleep 1.1
c1=$(submit "$carol" -A c -n1 -c4 --mem=1000M -t 5 --wrap 'sleep 1')
held=$(submit "$carol" -A c -H -n1 -t 5 --wrap true)
holds "a plan" "$evenhand" slurm plan --policy drf
prints "knows the order" "The order of drf"
prints "leaves out what is held" "^$held .*held by its owner"
holds "as JSON" "$evenhand" --format json slurm plan --policy drf
prints "has the array once" "\"tasks\": 1000"
if command -v python3 >/dev/null; then
    order() { "$evenhand" --format json slurm plan "$@" | python3 -c 'import json, sys; print(*[p["job"] for p in json.load(sys.stdin)["places"]])'; }
    holds "each user's first, by submission, then who holds least" [ "$(order --policy drf)" = "$a1 $array $c1 $a2" ]
    holds "first come, first served is another order" [ "$(order --policy fifo)" = "$a1 $a2 $array $c1" ]
    sacctmgr -i -Q modify account c set Fairshare=50 >/dev/null
    # The controller learns shares from slurmdbd, some time after sacctmgr has ended.
    entitled() { "$evenhand" slurm plan --policy drf --why "$c1" | grep -q "entitled to $1 %"; }
    until_true 60 entitled 96.2
    holds "shares of accounts count" "$evenhand" slurm plan --policy drf --why "$c1"
    prints "by what the account is entitled to" "entitled to 96.2 %"
    sacctmgr -i -Q modify account c set Fairshare=1 >/dev/null
    until_true 60 entitled 33.3
fi
holds "one job" "$evenhand" slurm plan --policy drf --why "$a2"
prints "has its place" "has place 4 of 4 under drf"
prints "and which jobs are before it" "Jobs before it, by user"
holds "a job that is not there" ends 2 "$evenhand" slurm plan --why 999999
holds "a dry run" "$evenhand" slurm run --policy drf --looks 2 --interval 1s --state "$state"
prints "says what it would change" "would change 4 of 4 places"
holds "and changes nothing" [ "$(factors)" = 0 ]

# --- What is written, and what is left alone.
scontrol update JobId="$a2" SiteFactor=12345
holds "one look that stays" "$evenhand" slurm run --policy drf --apply --keep --looks 1 --interval 1s --state "$state"
prints "keeps what another program set" "1 not changed, because another program set them"
holds "writes the others" [ "$(factors)" = 4 ]
holds "an array whole" [ "$(squeue -h -A b | wc -l)" = 1 ]
highest() { squeue -h -t PD -S -p -o '%F' | head -n 1; }
holds "in the policy's order" [ "$(highest)" = "$a1" ]
holds "nothing held" [ "$(squeue -h -j "$held" -o %r)" = JobHeldUser ]
holds "a second look has nothing to do" "$evenhand" slurm run --policy drf --apply --keep --looks 1 --interval 1s --state "$state"
prints "as nothing changed" "changed 0 of 4 places"
scontrol update JobId="$c1" Priority=77
holds "who has a priority of an administrator's" \
    "$evenhand" slurm run --policy drf --apply --keep --looks 2 --interval 1s --state "$state"
prints "is not changed" "2 not changed, because another program set them"
holds "with it" [ "$(squeue -h -j "$c1" -o %Q)" = 77 ]
holds "release" "$evenhand" slurm release --state "$state"
prints "puts back" "the old site factor again"
holds "all but the others'" [ "$(sprio -h -o '%i %S' | awk '$2 != 0 { print $1 }')" = "$a2" ]
unwritable() { "$evenhand" slurm run --policy drf --apply --looks 3 --interval 1s --state "$state" >/dev/full; }
holds "a service whose output cannot be written ends" ends 3 unwritable
holds "and has put back what it changed" [ "$(sprio -h -o '%i %S' | awk '$2 != 0 { print $1 }')" = "$a2" ]
if [ "$(id -u)" = 0 ]; then
    install -d -o "$bob" own
    install -m 755 "$evenhand" "$work/evenhand"
    as() { setpriv --reuid="$1" --regid="$(id -g "$1")" --clear-groups "${@:2}"; }
    holds "a user may plan" as "$bob" "$work/evenhand" slurm plan --policy drf
    holds "and not drive" ends 3 as "$bob" "$work/evenhand" slurm run --policy drf --apply --looks 1 --state own/state
    prints "gets the requirement" "AdminLevel Operator"
    sacctmgr -i -Q modify user "$bob" set AdminLevel=Operator >/dev/null
    driven() { as "$bob" "$work/evenhand" slurm run --policy drf --apply --looks 1 --state own/state; }
    holds "an operator may" until_true 60 driven
fi
clear_queue

# --- Dominant shares: Slurm's own order against drf.
# A processor; a processor and 8 GB; 4 processors: enough for two minutes. The nodes are still drained: no job starts before
# all are submitted, however long that takes.
jobs_of_4_seconds 300 "$alice" -A a -c1 --mem=500M
jobs_of_4_seconds 180 "$bob" -A b -c1 --mem=8000M
jobs_of_4_seconds 80 "$carol" -A c -c4 --mem=1000M
scontrol update NodeName=n1,n2,n3 State=RESUME
until_true 60 eval '[ "$(squeue -h -t R | wc -l)" -ge 15 ]'
own=$(shares 6)
"$evenhand" slurm run --policy drf --apply --interval 1s --state "$state" --metrics 127.0.0.1:0 >drive.log 2>&1 &
driver=$!
sleep 7
driven=$(shares 40)
# One job of carol's is a share of 0.2, which she holds once or twice at a time, so that means over 40 s still vary.
near() { awk '{ m = ($1 + $2 + $3) / 3; for (i = 1; i <= 3; i++) { d = $i - m; if (d < 0) d = -d; if (d > 0.1) exit 1 } }' <<<"$1"; }
# Once more if the machine was busy with other things.
near "$driven" || driven=$(shares 40)
printf 'dominant shares by themselves %s, driven by drf %s\n' "$own" "$driven"
holds "by itself Slurm serves one user" awk '$1 - $2 < 0.5 { exit 1 }' <<<"$own"
holds "drf makes dominant shares equal within half of the largest job" near "$driven"
# --- A controller that goes and comes back.
scontrol shutdown slurmctld >/dev/null 2>&1
sleep 2
slurmctld
controller_is_up() { scontrol ping 2>/dev/null | grep -q 'is UP'; }
holds "the controller comes back" until_true 90 controller_is_up
looks=$(wc -l <drive.log)
goes_on() { until_true 120 eval '[ "$(tail -n +$((looks + 1)) drive.log | grep -c "changed .* places")" -ge 2 ]' || ! tail drive.log; }
holds "and the driver goes on" goes_on
holds "it still runs" kill -0 "$driver"
# --- Killed, and what it wrote taken back.
{ kill -9 "$driver" && wait "$driver"; } 2>/dev/null
holds "killed, it leaves ranks" [ "$(factors)" -gt 0 ]
holds "which release takes back" "$evenhand" slurm release --state "$state"
holds "all of them" [ "$(factors)" = 0 ]
"$evenhand" slurm run --policy drf --apply --interval 1s --state "$state" >again.log 2>&1 &
driver=$!
holds "a new one drives" until_true 60 eval '[ "$(factors)" -gt 0 ]'
holds "a second is refused" ends 3 "$evenhand" slurm run --policy drf --state "$state" --looks 1
prints "as there is one" "another process keeps this queue in order"
kill -TERM "$driver"
holds "stopped, it ends well" wait "$driver"
holds "and puts everything back" [ "$(factors)" = 0 ]
clear_queue

# --- Stateful: who had more than enough waits behind who had nothing.
# Long enough that what is left of it counts while jobs are submitted on a busy machine: 9.3 processors beyond a third of 20
# for 30 s leave 3.8 with a half-life of 40 s, and more than a job's one for 77 s.
submit "$alice" -A a -n2 -c8 -t 5 --mem=100M --wrap 'sleep 30' >/dev/null
until_true 90 eval '[ -z "$(squeue -h)" ]'
# With a half-life of 1 s less than a job's one is left after 3.3 s.
sleep 4
scontrol update NodeName=n1,n2,n3 State=DRAIN Reason=test
for _ in 1 2 3; do submit "$alice" -A a -n1 --mem=100M -t 5 --wrap 'sleep 1'; done >/dev/null
sleep 1.1
for _ in 1 2 3; do submit "$bob" -A b -n1 --mem=100M -t 5 --wrap 'sleep 1'; done >/dev/null
if command -v python3 >/dev/null; then
    users() { "$evenhand" --format json slurm plan "$@" | python3 -c 'import json, sys; print(*[p["account"] for p in json.load(sys.stdin)["places"]])'; }
    holds "drf forgets what ended" [ "$(users --policy drf)" = "a b a b a b" ]
    holds "sdrf does not, while it is fresh" [ "$(users --policy sdrf --half-life 40s | cut -c1-3)" = "b b" ]
    # 16 processors for 30 s, beside which a job that asks for 5 min is charged 300 processor-seconds at once.
    holds "penalty neither" [ "$(users --policy penalty --half-life 5s)" = "b a b a b a" ]
    holds "long after, less than a job's share is left" [ "$(users --policy sdrf --half-life 1s)" = "b a b a b a" ]
fi
holds "sdrf says what it remembers" "$evenhand" slurm plan --policy sdrf --half-life 40s --why "$(squeue -h -A a -o %F | head -n 1)"
prints "in per cent" "Past overuse that counts against the owner: cpu"
clear_queue

# --- What GPUs on other machines cost: who had two of them for 3 s goes behind who had as many processors.
sacctmgr -i -Q add account f Fairshare=1 >/dev/null
sacctmgr -i -Q add account g Fairshare=1 >/dev/null
sacctmgr -i -Q add user "$carol" account=f >/dev/null
sacctmgr -i -Q add user "$bob" account=g >/dev/null
gpus_known() { sacctmgr -n -P show assoc format=account,user | grep -qx "g|$bob"; }
until_true 60 gpus_known
scontrol update NodeName=n1,n2,n3 State=RESUME
submit "$carol" -A f -n1 --gpus=2 -t 5 --mem=100M --wrap 'sleep 3' >/dev/null
submit "$bob" -A g -n1 -w n1 -t 5 --mem=100M --wrap 'sleep 3' >/dev/null
holds "jobs with and without GPUs end" until_true 90 eval '[ -z "$(squeue -h)" ]'
scontrol update NodeName=n1,n2,n3 State=DRAIN Reason=test
submit "$carol" -A f -n1 --mem=100M -t 5 --wrap 'sleep 1' >/dev/null
sleep 1.1
submit "$bob" -A g -n1 --mem=100M -t 5 --wrap 'sleep 1' >/dev/null
if command -v python3 >/dev/null; then
    holds "drf goes by who came first" [ "$(users --policy drf)" = "f g" ]
    holds "penalty by what was held" [ "$(users --policy penalty --half-life 1h --speed-feature spec_)" = "g f" ]
fi
clear_queue

# --- The same jobs here and in the simulator: one at a time on one machine, account d entitled to twice what e is.
# A job that runs is charged its limit, ten times what it will use, which only an update between two jobs corrects in time: without
# one the accounts alternate, where the simulator starts two of d for each e. The epilog waits for that update, however busy the
# machine is. Slurm's times are whole seconds, so a start may still come one earlier or later than in the simulator. (In the order of
# submission it would be three.)
scontrol update NodeName=n1 State=RESUME
sacctmgr -i -Q add account d Fairshare=2 >/dev/null
sacctmgr -i -Q add account e Fairshare=1 >/dev/null
sacctmgr -i -Q add user "$alice" account=d >/dev/null
sacctmgr -i -Q add user "$bob" account=e >/dev/null
both_known() { sacctmgr -n -P show assoc format=account,user | grep -qx "e|$bob"; }
until_true 60 both_known
"$evenhand" slurm run --policy cpu-time --half-life 1h --apply --interval 1s --state "$state" >"$log_of_updates" 2>&1 &
driver=$!
from=$(date -u +%Y-%m-%dT%H:%M:%S)
sleep 1.1
# Runs until all others are submitted.
submit "$carol" -A c -N1 -n1 -c8 --mem=1000M -t 5 --wrap "until [ -e '$work/all-submitted' ]; do sleep 0.2; done" >/dev/null
until_true 60 eval '[ "$(squeue -h -t R -A c | wc -l)" = 1 ]'
for _ in $(seq 9); do submit "$alice" -A d -N1 -n1 -c8 --mem=1000M -t 1 --wrap 'sleep 6' >/dev/null; done
for _ in $(seq 9); do submit "$bob" -A e -N1 -n1 -c8 --mem=1000M -t 1 --wrap 'sleep 6' >/dev/null; done
touch "$work/all-submitted"
holds "all jobs end" until_true 600 eval '[ -z "$(squeue -h)" ]'
kill -TERM "$driver" && wait "$driver"
printf '[pool]\ncpu = 8\nmem = 33554432000\n' >one.toml
ended() { [ "$(sacct -a -X -n -P -S "$from" -o State | grep -c COMPLETED)" = 19 ]; }
until_true 60 ended
holds "the history of that" "$evenhand" slurm study --from "$from" --all-users --site conform \
    --policy cpu-time --half-life 1h --capacity one.toml --backfill none --tasks-csv --out conform-out
if command -v python3 >/dev/null; then
    sacct -a -X -n -P -D -S "$from" -o Start,JobIDRaw,Account | sort | awk -F'|' '$3 == "d" || $3 == "e" { printf "%s", $3 }' >real
    python3 - conform-out/tasks-cpu-time-*.csv "$alice=d" "$bob=e" "$carol=c" >simulated <<'PY'
import csv, sys
accounts = dict(pair.split("=") for pair in sys.argv[2:])
rows = sorted(csv.DictReader(open(sys.argv[1])), key=lambda r: float(r["start_s"]))
# Who works under several accounts is USER@ACCOUNT.
order = [r["user"].split("@")[1] if "@" in r["user"] else accounts[r["user"]] for r in rows]
print("".join(a for a in order if a in "de"), end="")
PY
    printf 'started: %s\nsimulated: %s\n' "$(cat real)" "$(cat simulated)"
    ahead() {
        python3 - "$(cat real)" "$(cat simulated)" <<'PY'
import sys
real, simulated = sys.argv[1:]
print(max(abs(real[:n].count("d") - simulated[:n].count("d")) for n in range(19)))
PY
    }
    holds "all started in both" [ "$(wc -c <real) $(wc -c <simulated)" = "18 18" ]
    holds "the simulator starts them in Slurm's order, at most one start off" [ "$(ahead)" -le 1 ]
    # Slurm alone: nine of d, then nine of e.
    holds "which is not the order of submission" grep -q e <(cut -c1-6 real)
fi
summary
