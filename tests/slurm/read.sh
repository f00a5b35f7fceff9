#!/usr/bin/env bash
# A real Slurm with accounting is read: what `slurm show` prints, and a study and an audit of its history.
#   tests/slurm/read.sh EVENHAND [--release bookworm|trixie|sid]
# Starts a Slurm of its own and stops it at the end. As root the jobs are those of two of the system's users;
# as any other user all are the caller's, under two accounts.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/slurm/read.sh EVENHAND [--release RELEASE]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"

if [ "$(id -u)" = 0 ]; then
    ann=daemon bob=games
else
    ann=$(id -un) bob=$ann
    printf 'not root: all jobs are those of %s, and what others may see is not tried\n' "$ann"
fi
nodes='n1 8 16000 0 spec_100
n2 8 16000 0 spec_100
n3 4 32000 2 spec_150'
SLURM_NODES=$nodes WITH_DB=1 SLURM_USERS="$ann" SLURM_CONF_EXTRA='PriorityWeightFairshare=1000
PriorityWeightAge=10
PartitionName=fat Nodes=ALL TRESBillingWeights="CPU=1.0,Mem=0.25G"' "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
eval "$(cat "$work/up")"
cd "$work" || exit 1

# The root: all 1, science 3 (of which physics is all), art 1. In art bob has the account's shares.
sacctmgr -i -Q add account science Fairshare=3 >/dev/null
sacctmgr -i -Q add account physics parent=science Fairshare=2 >/dev/null
sacctmgr -i -Q add account art Fairshare=1 >/dev/null
sacctmgr -i -Q add user "$ann" account=physics Fairshare=5 >/dev/null
sacctmgr -i -Q add user "$bob" account=art Fairshare=parent >/dev/null
known() { sacctmgr -n -P show assoc format=account,user | grep -qx "art|$bob"; }
until_true 60 known

# Runs until it is known why another waits for it, however long that takes.
asked=$work/asked
until_true 60 eval 'submit "$ann" -A physics -n1 -c2 --mem=500M -t 5 --wrap "until [ -e $asked ]; do sleep 0.2; done" >first 2>/dev/null'
first=$(cat first)
array=$(submit "$bob" -A art -n1 -c4 --mem=1G -t 1:00:00 -a 0-5%2 --wrap "sleep 1")
submit "$ann" -A physics -H -n1 --wrap true >/dev/null
dependent=$(submit "$bob" -A art -d "afterok:$first:$array" --gpus=1 -t 2-00:00:00 --wrap true)
submit "$ann" -A physics -N2 -n2 --mem=2G -t UNLIMITED --wrap "sleep 2" >/dev/null
submit "$bob" -A art -a 1-1000%5 --nice=100 -c8 --mem-per-cpu=500M --begin=now+1hour --wrap true >/dev/null
submit "$ann" -A physics --gres=gpu:2 -p express --begin=now+1hour -C 'spec_100|spec_150' --wrap true >/dev/null

# field NAME VALUE: that the queue as JSON has a job with it; jobs are identified by their ids.
job() {
    "$evenhand" --format json slurm show >show.json 2>show.err || return 1
    python3 - "$@" <<'PY'
import json, sys
which, *pairs = sys.argv[1:]
jobs = [j for j in json.load(open("show.json"))["jobs"] if str(j["array"] or j["id"]) == which]
assert jobs, f"no job {which}"
for pair in pairs:
    path, _, value = pair.partition("=")
    found = jobs[0]
    for part in path.split("."):
        found = found[part]
    assert json.dumps(found) == value, f"{path}: {found!r}, expected {value}"
PY
}
number() { squeue -h -o '%F %o %r' | awk -v reason="$1" '$NF == reason { print $1; exit }'; }

holds "show reads the site" "$evenhand" slurm show
prints "by its name" "^Cluster evenhand, Slurm "
prints "with its priorities" "Age 10, FairShare 1000"
prints "with machines that are alike as one group" "^n\[1-2\]  *2  *0  *16 "
prints "and the one with GPUs" "^n3 .* 4 .* 2 "
prints "with the partition's limit" "^express  *UP  *1  *1.0 "
prints "with the entitlement of each user" "^physics  *$ann  *50.0 %"
prints "also of a user with the account's shares" "^art  *$bob  *16.7 %"
if command -v python3 >/dev/null; then
    held=$(number JobHeldUser)
    holds "a job its user holds" job "$held" 'held_by="user"' 'priority=0' 'eligible_s=null' "user=\"$ann\""
    holds "a job that depends" job "$dependent" "account=\"art\"" 'requested.gpu=1' 'limit_s=172800.0' 'held_by=null'
    waiting=$(squeue -h -o '%F %K' | awk '$2 ~ /1000/ { print $1; exit }')
    holds "an array is one record" job "$waiting" 'tasks=1000' 'at_a_time=5' 'nice=100' 'requested.cpu=8' 'requested.mem_bytes=4194304000'
    features=$(squeue -h -o '%F %f' | awk '$2 ~ /spec/ { print $1; exit }')
    holds "a request by node, and a bar in the features" \
        job "$features" 'features="spec_100|spec_150"' 'per_node.gpu=2' 'partitions=["express"]'
else
    printf 'no python3: the fields of the JSON are not looked at\n'
fi

held=$(number JobHeldUser)
holds "why explains a held job" "$evenhand" slurm why "$held"
prints "by Slurm's own word" "Slurm's reason is JobHeldUser: its user, or a coordinator"
prints "which has no start" "Until its user releases it, it has no start"
holds "and a dependent one" "$evenhand" --format json slurm why "$dependent"
prints "by what it depends on" '"kind": "dependency"'
touch "$asked"
# The priority is computed some time after the submission.
factors_of() { "$evenhand" slurm why "$1" | tee "$work/why" | grep '^nice ' >/dev/null && cat "$work/why"; }
# Longer than its partition permits, so that it waits until it is cancelled.
too_long=$(submit "$ann" -A physics --nice=100 -n1 -p express -t 3-00:00:00 --wrap true)
holds "why shows what makes up a priority" until_true 20 factors_of "$too_long"
prints "by factor" "^factor of its priority  *points"
prints "with what nice takes away" "^nice  *-100\$"
scancel "$too_long"
holds "a line on a user's jobs" "$evenhand" slurm why "$ann" --short
prints "counts them by reason" "^$ann: .*JobHeldUser"
holds "a held job has no forecast" ends 2 "$evenhand" slurm when "$held"
prints "and the message says so" "job $held is held, so that its start cannot be forecast"
holds "nor has a job that does not exist" ends 2 "$evenhand" slurm when 999999
prints "which may be hidden" "squeue shows no job 999999"

# Ended: the first, six of the array, the job on two nodes, the one that waited for the first two.
ended() { [ "$(sacct -a -X -n -P -o State | grep -c COMPLETED)" = 9 ]; }
holds "nine jobs end" until_true 60 ended
holds "when forecasts jobs that could be submitted" "$evenhand" slurm when --shape 2x2cpu,10m --shape 4,1h --user "$ann"
prints "side by side" "^Starts first: "

holds "a study of all users" "$evenhand" slurm study --from 1d --all-users --speed-feature spec_ --site site \
    --policy fifo,drf,fair-tree --out report
prints "says whose jobs" "sacct --allusers: the jobs of all users"
prints "has the nine" "kept 9 tasks"
prints "runs on the real machines" "held of 2 x n\[1-2\]"
prints "says how to run it again" "evenhand study site/workload.parquet --capacity site/cluster.toml"
holds "the report is there" test -s report/index.html
holds_in "the machines have their memory" '^mem = "16000MiB"' site/cluster.toml
holds_in "and their speed" '^speed = "3/2"' site/cluster.toml
holds_in "partitions are queues" '^max_wall = "1h"' site/cluster.toml
holds_in "accounts are within accounts" '^parent = "science"' site/accounts.toml
holds_in "users have their shares" '^shares = 5' site/accounts.toml
cp site/workload.parquet before.parquet
holds "the same again, from the files alone" env PATH=/nonexistent "$evenhand" study site/workload.parquet \
    --capacity site/cluster.toml --accounts site/accounts.toml --policy fifo --out again --backfill easy
holds "as JSON" "$evenhand" --format json slurm study --from 1d --all-users --site site --policy drf --out json
prints "which holds the runs" '"policy": "drf"'
holds "an audit" ends 1 "$evenhand" slurm audit --from 1d --all-users --site site
prints "has the nine" "^9 tasks of "
prints "on the real machines" "Capacity: cpu 20"
holds "in which nothing was held that was not there" ends 0 "$evenhand" slurm audit --from 1d --all-users --site site --property feasible

if [ "$(id -u)" = 0 ]; then
    as() { setpriv --reuid="$1" --regid="$(id -g "$1")" --clear-groups "${@:2}"; }
    install -d -o "$ann" own
    # The program may stand where only root comes.
    install -m 755 "$evenhand" "$work/evenhand"
    holds "a user studies what is his" as "$ann" "$work/evenhand" slurm study --from 1d --site own/site --policy fifo --out own/report
    prints "and is informed of it" "your own jobs"
    prints "his two jobs" "kept 2 tasks"
    holds "and, if they are not hidden, those of all users" \
        as "$ann" "$work/evenhand" slurm study --from 1d --all-users --site own/site --policy fifo --out own/report
    prints "all nine" "kept 9 tasks"
    holds "and looks at the site" as "$bob" "$work/evenhand" slurm show
fi

# A job whose batch script asks for whole nodes, which the line of its submission does not show.
printf '#!/bin/sh\n#SBATCH --exclusive\nsleep 1\n' >whole.sh
whole=$(submit "$ann" -A physics -n1 -c1 --mem=100M -t 5 whole.sh)
whole_ended() { sacct -a -X -n -P -o JobID,State | grep -x "$whole|COMPLETED" >/dev/null; }
holds "a job of whole nodes ends" until_true 60 whole_ended
holds "a study under Slurm's scheduler" "$evenhand" --format json slurm study --from 1d --all-users --site whole \
    --scheduler slurm --policy site,fifo --out whole-report
prints "knows it by the nodes that it held" '"rule": "exclusive"'
holds_in "it has the running Slurm's settings" '^PriorityWeightFairshare=1000' whole/slurm.conf
holds_in "and what its partitions bill" '^PartitionName=fat .*TRESBillingWeights="CPU=1.0,Mem=0.25G"' whole/slurm.conf

# The queue from slurmrestd is the queue from squeue: job by job, field by field, and so is the order.
openapi=openapi/v0.0.38
# From 23.11 on one plugin has all versions of the API.
! compgen -G '/usr/lib/*/slurm-wlm/openapi_slurmctld.so' >/dev/null || openapi=openapi/slurmctld
rest() {
    SLURM_BITSTR_LEN=$1 setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups \
        slurmrestd -a rest_auth/local -s "$openapi" "unix:$work/rest/socket" >"$work/rest.log" 2>&1 &
    rest=$!
    until_true 60 test -S "$work/rest/socket"
}
rest_ends() {
    kill "$rest"
    wait "$rest" 2>/dev/null
    rm -f "$work/rest/socket"
}
same() {
    # Priorities grow with age and jobs start: a moment in which nothing changed between the two will come.
    "$evenhand" --format json slurm show >by_squeue.json 2>/dev/null &&
        "$evenhand" --format json slurm show --rest rest/socket >by_rest.json &&
        "$evenhand" --format json slurm plan >order_by_squeue.json 2>/dev/null &&
        "$evenhand" --format json slurm plan --rest rest/socket >order_by_rest.json || return 1
    python3 - <<'PY'
import json
def jobs(name):
    return {j["id"]: j for j in json.load(open(name))["jobs"]}
a, b = jobs("by_squeue.json"), jobs("by_rest.json")
assert len(a) >= 5 and a.keys() == b.keys(), (sorted(a), sorted(b))
wrong = [(i, field, a[i][field], b[i][field]) for i in a for field in a[i] if a[i][field] != b[i][field]]
assert not wrong, wrong
a, b = (json.load(open(f"order_by_{name}.json")) for name in ("squeue", "rest"))
assert a["places"] == b["places"], "another order"
PY
}
if [ "$(id -u)" != 0 ] || ! type setpriv slurmrestd python3 >/dev/null 2>&1; then
    printf 'not root, or no setpriv, slurmrestd or python3: the queue from slurmrestd is not tried\n'
else
    install -d -o nobody rest
    indices=$(seq -s, 0 7 50),$(seq -s, 100 13 400)
    submit "$bob" -A art -a "$indices%3" --nice=7 --begin=now+1hour --wrap true >/dev/null
    submit "$ann" -A physics -n1 --mem=100M --begin=now+1hour : -n2 --mem=200M --wrap true >/dev/null
    submit "$ann" -A physics -N1-2 -n2 --gpus-per-task=1 -p main,express --begin=now+1hour --wrap true >/dev/null
    submit "$ann" -A physics -n1 -H -t UNLIMITED --nice=100000 --wrap true >/dev/null
    scontrol update JobId="$(submit "$bob" -A art -n1 -d afterany:"$(submit "$bob" -A art -H --wrap true)" --wrap true)" Nice=-50
    rest 0
    holds "the queue by REST is the queue by squeue" until_true 60 same
    prints "and reports it" "The queue is read from slurmrestd"
    holds "a user without permission" ends 3 setpriv --reuid="$bob" --regid="$(id -g "$bob")" --clear-groups \
        "$work/evenhand" slurm show --rest rest/socket
    prints "gets the cause" "rejects this user: Authentication failure"
    rest_ends
    rest 64
    holds "abbreviated task ids" ends 3 "$evenhand" slurm plan --rest rest/socket
    prints "are reported" "start it with SLURM_BITSTR_LEN=0"
    rest_ends
    holds "no socket" ends 3 "$evenhand" slurm plan --rest rest/socket
    prints "is reported" "there is no socket rest/socket"
fi

holds "a past without jobs is the input's fault" \
    ends 2 "$evenhand" slurm study --from 2020-01-01 --to 2020-01-02 --site none
prints "with what can be done" "--all-users reads those of all users"
holds "options in the wrong place" ends 2 "$evenhand" slurm study --policy drf --from 1d
prints "are reported with their place" "write it before --policy"
holds "no commands" ends 3 env PATH=/nonexistent "$evenhand" slurm show
prints "are reported" "scontrol is not installed here"
sed 's/^AccountingStorage.*//' "$SLURM_CONF" >"$work/without.conf"
holds "no accounting" ends 3 env SLURM_CONF="$work/without.conf" "$evenhand" slurm study
prints "is reported" "without slurmdbd there is no history"
holds "nor a forecast" ends 3 env SLURM_CONF="$work/without.conf" "$evenhand" slurm when --shape 4,1h --user "$ann"
prints "which the message explains" "no job that ended within 28d is known"
sed "s/^SlurmctldPort=.*/SlurmctldPort=9/" "$SLURM_CONF" >"$work/silent.conf"
holds "a controller that does not respond" ends 3 env SLURM_CONF="$work/silent.conf" "$evenhand" slurm show
prints "is reported" "does not respond"

# The pages with accounting behind them: who received what, by account, and a forecast for a job that waits.
waiting=$(submit "$ann" -A physics -n1 -c2 -t 10 -w n1 --begin=now --exclusive --wrap "sleep 300")
behind=$(submit "$ann" -A physics -n1 -c8 -t 10 -w n1 --wrap true)
"$evenhand" serve --socket "$work/pages" --interval 1s >pages.log 2>&1 &
pages=$!
page() { curl -sS --fail-with-body --unix-socket "$work/pages" "http://localhost$1"; }
# Not -q: it would end before curl has written all, which is then an error.
has() { page "$1" | grep -- "$2" >/dev/null; }
holds "the pages have the week of each account" until_true 60 has /api/v1/week '"account": "physics"'
holds "with what its users received" has /week 'Received this week'
holds "and a user's standing" has "/api/v1/users/$ann" '"fair_share": [0-9]'
holds "a job behind a running one has a forecast" until_true 90 has "/api/v1/jobs/$behind/when" '"interval_80_s"'

# A job that waits for a GPU while CPUs abound: by CPUs alone it would start now.
holder=$(submit "$ann" -A physics -n1 -c1 --mem=100M --gpus=2 -t 10 --wrap "sleep 300")
runs() { squeue -h -j "$1" -o %T | grep -qx RUNNING; }
holds "a job holds both GPUs" until_true 30 runs "$holder"
gpu=$(submit "$bob" -A art -n1 -c1 --mem=100M --gpus=1 -t 5 --wrap true)
short_of_gpus() { "$evenhand" --format json slurm why "$gpu" | grep -- '"on": "1 GPU: 0 of 2 are free"' >/dev/null; }
holds "why states that GPUs are short" until_true 60 short_of_gpus
holds "in words" "$evenhand" slurm why "$gpu"
prints "of each resource" "0 of 2 GPUs are free: too few GPUs"
prints "with what is counted" "Planned by CPUs, memory and GPUs"
holds "when forecasts no start now" "$evenhand" --format json slurm when "$gpu"
prints "by GPUs too" "The forecast counts the CPUs, memory and GPUs of the whole site"
waits() { "$evenhand" --format json slurm when "$gpu" | python3 -c 'import json, sys; assert json.load(sys.stdin)["forecasts"][0]["median_s"] > 0'; }
holds "but a later one" waits
holds "nor do the pages" until_true 60 has "/jobs/$gpu" '0 of 2 GPUs are free: too few GPUs'
# script OPTIONS: a batch script with these.
script() { printf '#!/bin/sh\n#SBATCH -n1 --mem=100M -t 5\n#SBATCH %s\n' "$1" >job.sh; }
script '--exclusive -C spec_150'
holds "a script that asks for a whole node" "$evenhand" --format json slurm when --script job.sh --user "$ann"
prints "does not get the one on which a job runs" '"planned_by": "limits"'
script '-C spec_100&spec_150'
holds "one that asks for features that no node has" ends 2 "$evenhand" slurm when --script job.sh --user "$ann"
prints "is refused" "3 nodes (0 of them with those features)"
scancel "$holder" "$gpu"
kill "$pages"
wait "$pages" 2>/dev/null

# A coordinator sees the jobs of the account although PrivateData hides those of others.
echo PrivateData=jobs >>"$SLURM_CONF"
scontrol reconfigure
sacctmgr -i -Q add user leader account=physics >/dev/null
sacctmgr -i -Q add coordinator account=physics names=leader >/dev/null
"$evenhand" serve --socket "$work/private" --interval 1s --user-header X-User --trusted-proxy "user:$(id -un)" >private.log 2>&1 &
pages=$!
status() { curl -sS -o /dev/null -w '%{http_code}' --unix-socket "$work/private" -H "X-User: $2" "http://localhost$3" | grep -qx "$1"; }
holds "a coordinator sees a job of the account" until_true 60 status 200 leader "/jobs/$behind"
holds "another does not" status 404 somebody "/jobs/$behind"
kill "$pages"
wait "$pages" 2>/dev/null
sed -i '/^PrivateData=jobs$/d' "$SLURM_CONF"
scontrol reconfigure
scancel "$waiting" "$behind"

summary
