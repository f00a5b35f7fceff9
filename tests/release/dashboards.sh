#!/usr/bin/env bash
# A Prometheus that scrapes two agents, a Slurm driver and the site's pages, all dry: every expression of the dashboards in packaging/grafana
# parses and returns data, the metrics keep Prometheus's conventions, and the alerts pass their tests.
#   tests/release/dashboards.sh EVENHAND
# Starts a Slurm of its own, control groups below evenhand-dashboards, and a Prometheus; stops and removes them at the end.
# Sends only to 127.0.0.1.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/release/dashboards.sh EVENHAND}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"

# What needs no running program.
rules=$root/packaging/prometheus/evenhand.rules.yml
holds "the alerts are valid" promtool check rules "$rules"
holds "each alert fires when it should" promtool test rules "$root/tests/release/alerts.test.yml"
for alert in $(sed -n 's/.*alert: //p' "$rules"); do
    holds "the alert $alert has a test" grep -q "alertname: $alert" "$root/tests/release/alerts.test.yml"
done
holds "the example of a Prometheus is valid" promtool check config "$root/packaging/prometheus/prometheus.yml"

[ "$(id -u)" = 0 ] || { printf 'skipped: not root: control groups for the agents cannot be made\n'; exit 77; }
top="evenhand-dashboards"
main=/sys/fs/cgroup
[ ! -d "$main/cpu" ] || main=$main/cpu
remove_groups() { [ ! -d "$main/$top" ] || find "$main/$top" -depth -type d -exec rmdir {} \; 2>/dev/null; }
finish() {
    jobs -p | xargs -r kill 2>/dev/null
    wait 2>/dev/null
    remove_groups
    "$root/scripts/slurm-down.sh" "$work/slurm" --purge
    rm -rf "$work"
}
trap finish EXIT
mkdir -p "$main/$top" 2>/dev/null || { printf 'skipped: no controller for processors is mounted where it is looked for\n'; exit 77; }

# Ports that nobody listens on.
read -r agent_a agent_b peer_a peer_b driver pages prometheus < <(python3 - <<'PY'
import socket
sockets = [socket.socket() for _ in range(7)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
PY
)

# Two agents, each with a workload.
head -c 32 /dev/urandom | base64 >"$work/key"
chmod 600 "$work/key"
agent() {
    local name=$1 own=$2 other=$3 metrics=$4
    mkdir -p "$main/$top/$name/$name.1" "$main/$top/$name/e.1"
    cat >"$work/$name.toml" <<END
[node]
name = "$name"
cpu = 1
state = "$work/$name.state"
socket = "$work/$name.sock"
under = "$top/$name"
[heaviness]
resources = ["cpu"]
[control]
interval = "0.5s"
controls = ["cpu"]
[[guests]]
from = "pattern"
pattern = '$top/$name/(?<owner>[a-z])\.(?<name>.*)'
processors = 1
[peers]
listen = "127.0.0.1:$own"
seeds = ["127.0.0.1:$other"]
key = "$work/key"
[metrics]
listen = "127.0.0.1:$metrics"
END
    "$evenhand" agent run --config "$work/$name.toml" --format json >"$work/$name.out" 2>"$work/$name.err" &
}
agent a "$peer_a" "$peer_b" "$agent_a"
agent b "$peer_b" "$peer_a" "$agent_b"

# A Slurm with more jobs than it can run, and the driver.
"$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
eval "$(cat "$work/up")"
for _ in 1 2 3; do submit daemon -c4 --mem=1000M -t 5 --wrap 'sleep 300' >/dev/null; submit games -c4 --mem=1000M -t 5 --wrap 'sleep 300' >/dev/null; done
"$evenhand" slurm run --policy sdrf --half-life 7d --interval 1s --state "$work/slurm.redb" --metrics "127.0.0.1:$driver" \
    >"$work/driver.out" 2>"$work/driver.err" &
"$evenhand" serve --socket "$work/serve.sock" --interval 1s --metrics "127.0.0.1:$pages" >"$work/serve.out" 2>&1 &

metrics() { python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=5).read().decode())' "http://127.0.0.1:$1/metrics"; }
has_metric() { metrics "$1" 2>/dev/null | grep "^$2" >/dev/null; }
holds "the agents serve metrics" until_true 30 has_metric "$agent_a" 'evenhand_guest_weight{'
holds "and know each other" until_true 30 has_metric "$agent_b" 'evenhand_node_fresh{node="a"} 1'
holds "the driver serves metrics" until_true 30 has_metric "$driver" 'evenhand_commitment{'
holds "the site's pages serve metrics" until_true 30 has_metric "$pages" 'evenhand_site_jobs_waiting{'
for port in "$agent_a" "$driver" "$pages"; do
    metrics "$port" >"$work/metrics"
    conventions() { promtool check metrics <"$work/metrics"; }
    holds "the metrics at $port keep the conventions" conventions
done

cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$rules"]
scrape_configs:
  - job_name: evenhand-agent
    static_configs: [{targets: ["127.0.0.1:$agent_a", "127.0.0.1:$agent_b"]}]
  - job_name: evenhand-slurm
    static_configs: [{targets: ["127.0.0.1:$driver"]}]
  - job_name: evenhand-serve
    static_configs: [{targets: ["127.0.0.1:$pages"]}]
END
prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/tsdb" --web.listen-address "127.0.0.1:$prometheus" \
    --log.level=error >"$work/prometheus.log" 2>&1 &
server=http://127.0.0.1:$prometheus
value() { promtool query instant "$server" "$1"; }
scraped() { [ "$(value 'min(count_over_time(up[1m])) > 4' 2>/dev/null | grep -c '=>')" = 1 ]; }
holds "Prometheus scrapes all of them" until_true 60 scraped
holds "and all answer" value 'sum(up) == 4'
prints "all four" '=> 4 @'

# A line for each expression, as Grafana asks for it with all nodes chosen.
expressions() {
    python3 - "$root"/packaging/grafana/*.json <<'PY'
import json, sys
for file in sys.argv[1:]:
    for panel in json.load(open(file))["panels"]:
        for target in panel["targets"]:
            print(target["expr"].replace("$instance", ".*"))
PY
}
returns_data() { value "$1" && value "$1" | grep -q '=>'; }
number=0
while read -r expression; do
    number=$((number + 1))
    holds "the dashboards' expression returns data: $expression" returns_data "$expression"
done < <(expressions)
holds "there are expressions" test "$number" -ge 20
holds "an expression without data is seen" ends 1 returns_data 'evenhand_no_such_metric'
firing() { value 'ALERTS{alertstate="firing"}' | grep -q '=>'; }
holds "no alert fires for what works" ends 1 firing

summary
