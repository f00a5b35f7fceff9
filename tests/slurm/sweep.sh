#!/usr/bin/env bash
# A sweep on a real Slurm gives what it gives on this machine, byte for byte, also when it was interrupted on the way.
#   tests/slurm/sweep.sh EVENHAND [--release bookworm|trixie|sid]
# Starts a Slurm of its own and stops it at the end. Needs Slurm's and munge's programs; root or not.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/slurm/sweep.sh EVENHAND [--release RELEASE]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"

# refuses STATUS WORDS COMMAND…: ends with that status and prints those words.
refuses() {
    local status=$1 words=$2 ended=0
    shift 2
    "$@" >"$work/refused.log" 2>&1 || ended=$?
    cat "$work/refused.log"
    [ "$ended" = "$status" ] && grep -qF -- "$words" "$work/refused.log"
}

# same A B: all results but the times are the same bytes.
same() {
    local file
    for file in results.csv sweep.json index.html; do cmp "$1/$file" "$2/$file" || return 1; done
    diff -r "$1/figures" "$2/figures"
}

empty_queue() { [ -z "$(squeue -h)" ]; }
results() { find "$1/points" -name '*.json' | wc -l; }

# A task index must be below 4: a sweep of more chunks needs several arrays.
SLURM_CONF_EXTRA='MaxArraySize=4' "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
eval "$(cat "$work/up")"
cd "$work" || exit 1

cp "$root/docs/examples/lab.swf" "$root/docs/examples/pool.toml" .
printf 'default = 1\n[weights]\n"1" = 2\n' >weights.toml
cat >grid.toml <<'GRID'
workload = ["lab.swf"]
generate = { like = "google2011", tasks = 3000, users = 20, days = 1, seeds = [1, 2] }
policy = ["fifo", "drf", "sdrf"]
capacity = [0.6, 0.9, 4]
half-life = ["1d", "1h"]
weights = ["equal", "weights.toml"]
GRID
points=72

# The folder has blanks, a quote and a percent sign: every path is quoted where it must be.
out="a sweep's 5%j"
holds "the local engine runs the grid" "$evenhand" sweep grid.toml --out local
holds "every point has a result" test "$(results local)" = "$points"
holds "one thread and little memory say the same" "$evenhand" sweep grid.toml --out one --threads 1 --memory 30Mi
holds "whatever the threads" same local one

holds "Slurm runs the grid" "$evenhand" --format json sweep grid.toml --engine slurm --out "$out" --chunk 5
jobs=$(cat "$work/printed.log")
holds "in several arrays, since an index stays below MaxArraySize" \
    test "$(grep -c '^    [0-9]' <<<"$jobs")" = 4
holds "a second submission is refused while the first is under way" \
    refuses 3 "are in the queue" "$evenhand" sweep grid.toml --engine slurm --out "$out"
holds "the queue empties" until_true 120 empty_queue
holds "Slurm's results are those of the local engine" same local "$out"
status=$("$evenhand" sweep status "$out")
holds "status says that all is done" grep -qF "$points of $points points have a result" <<<"$status"

# What is missing is run again, and nothing else.
lost=$(find "$out/points" -name '*.json' | sort | sed -n '7p')
kept=$(find "$out/points" -name '*.json' | sort | sed -n '8p')
before=$(stat -c %Y.%i "$kept")
rm "$lost" "$out/results.csv"
printf 'half' >"$(find "$out/points" -name '*.json' | sort | tail -n 1)"
holds "a deleted and a damaged result are submitted again" \
    "$evenhand" sweep grid.toml --engine slurm --out "$out" --wait --partition express
prints "two points, no more" "Submitted 2 points"
holds "the others are not touched" test "$(stat -c %Y.%i "$kept")" = "$before"
holds "the results are the same again" same local "$out"
holds "a finished sweep submits nothing" "$evenhand" sweep grid.toml --engine slurm --out "$out"
prints "and says so" "nothing is submitted"
holds "the local engine takes up what Slurm left" "$evenhand" sweep grid.toml --out "$out"
holds "with the same results" same local "$out"

# Tasks that are lost, one while it runs, one while it waits: the job that gathers names what is missing.
sed 's/tasks = 3000/tasks = 1500000/; s/\[1, 2\]/[1]/; s/"lab.swf"//; s/, "weights.toml"//' grid.toml >long.toml
sed -i '/^workload = \[\]$/d' long.toml
holds "a longer sweep is submitted" \
    "$evenhand" --format json sweep long.toml --engine slurm --out long --chunk 4 --at-a-time 1
array=$(sed -n '/"arrays"/{n;s/[^0-9]//gp}' "$work/printed.log")
running() { [ -n "$(squeue -h -j "$array" -t R)" ]; }
holds "it runs" until_true 60 running
scancel "${array}_0" "${array}_2"
holds "status shows the queue" "$evenhand" sweep status long
prints "in words" "running, .* waiting"
holds "it comes to its end all the same" until_true 180 empty_queue
holds "the lost points are named with their task" "$evenhand" sweep status long
prints "the one that ran" "\[task ${array}_0\].*CANCELLED"
prints "the one that waited" "\[task ${array}_2\]"
holds "the job that gathers named them too" grep -q "8 of 12 points have no result" long/slurm/logs/gather-*.log
holds "the summary lists them as missing" test "$(grep -c '"users_mean_wait_s"' long/sweep.json)" = 4
holds "the rest is submitted, and waited for" "$evenhand" sweep long.toml --engine slurm --out long --wait
holds "the local engine agrees" "$evenhand" sweep long.toml --out long-local
holds "byte for byte" same long-local long

# Cancelled on the way.
holds "another is submitted" "$evenhand" sweep long.toml --engine slurm --out stopped --chunk 1 --at-a-time 1
holds "a first result comes" until_true 60 eval '[ "$(results stopped)" -ge 1 ]'
holds "it is cancelled" "$evenhand" sweep cancel stopped
holds "nothing of it is left in the queue" until_true 30 empty_queue
holds "not all is there" test "$(results stopped)" -lt "$(results long)"
holds "gathering says what is missing" refuses 3 "have no result" "$evenhand" sweep gather stopped
holds "the local engine finishes it" "$evenhand" sweep long.toml --out stopped
holds "with the same bytes" same long-local stopped

# What Slurm refuses is a sentence, and status 3.
rm -r one
holds "an unknown partition" \
    refuses 3 'Slurm has no partition "nosuch"; it has: express, main' \
    "$evenhand" sweep grid.toml --engine slurm --out one --partition nosuch
holds "leaves nothing in the queue" empty_queue
holds "a time limit that is none" \
    refuses 3 "sbatch refused" "$evenhand" sweep grid.toml --engine slurm --out one --time-limit never
holds "more memory than a node has" \
    refuses 3 "sbatch refused" "$evenhand" sweep grid.toml --engine slurm --out one --memory 100Gi
mkdir empty
holds "no sbatch" \
    refuses 3 "there is no squeue here" env PATH="$work/empty" "$evenhand" sweep grid.toml --engine slurm --out one
holds "a file that was changed under way" "$evenhand" sweep grid.toml --engine slurm --out one --chunk 9 --memory 0
holds "is waited for" until_true 120 empty_queue
rm "$(find one/points -name '*.json' | sort | head -n 1)"
printf '"2" = 3\n' >>weights.toml
for chunk in 0 1 2 3 4 5 6 7; do "$evenhand" sweep-task one "$chunk" || true; done >"$work/changed.log" 2>&1
holds "is seen by the task" grep -qF "was changed since it was planned" "$work/changed.log"

summary
