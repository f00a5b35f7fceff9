#!/usr/bin/env bash
# `evenhand serve` with a real Slurm behind it: what pages and the API answer, to whom, and what happens when the controller goes.
#   tests/slurm/serve.sh EVENHAND [--release bookworm|trixie|sid]
# Starts a Slurm of its own and stops it at the end.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/slurm/serve.sh EVENHAND [--release RELEASE]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/common.sh
source "$root/tests/slurm/common.sh"

if [ "$(id -u)" = 0 ]; then ann=daemon bob=games; else ann=$(id -un) bob=$ann; fi
SLURM_NODES='n1 4 8000 0 none' SLURM_CONF_EXTRA='PrivateData=jobs' "$root/scripts/slurm-up.sh" "$work/slurm" >"$work/up" || exit 1
eval "$(cat "$work/up")"
cd "$work" || exit 1

# The others are submitted when the node is full: if this one's launch fails, Slurm runs it again after two minutes, and they in
# the meantime. Then another takes its place.
is_running() { [ "$(squeue -h -j "$first" -o %T)" = RUNNING ]; }
fill_node() {
    first=$(submit "$ann" -n1 -c4 -t 30 --wrap "sleep 1000" 2>/dev/null) || return 1
    until_true 20 is_running || { scancel "$first"; return 1; }
}
holds "the node is full" until_true 120 fill_node
waiting=$(submit "$ann" -n1 -c2 -t 10 --wrap true)
others=$(submit "$bob" -n1 -c2 -t 10 --wrap true)
held=$(submit "$ann" -H -n1 --wrap true)
array=$(submit "$ann" -n1 -c4 -a 1-100%5 --wrap true)

# Slurm's commands as they are, but each squeue leaves a line.
mkdir bin
real=$(type -P squeue)
printf '#!/bin/sh\necho >>"%s/asked"\nexec "%s" "$@"\n' "$work" "$real" >bin/squeue
chmod 755 bin/squeue

: >asked
PATH="$work/bin:$PATH" "$evenhand" serve --socket "$work/socket" --interval 2s --user-header X-User --trusted-proxy "user:$(id -un)" \
    >serve.log 2>&1 &
server=$!
until_true 60 test -S socket
# page USER PATH: the body; fails unless the status is 200.
page() { curl -sS --fail-with-body --unix-socket "$work/socket" -H "X-User: $1" "http://localhost$2"; }
status() { curl -sS -o /dev/null -w '%{http_code}' --unix-socket "$work/socket" -H "X-User: $2" "http://localhost$3" | grep -qx "$1"; }

holds "the overview is served" until_true 30 page "$ann" /
prints "with the cluster" "evenhand"
prints "and the reasons" "Slurm’s reason"
holds "a waiting job is explained" page "$ann" "/jobs/$waiting"
prints "by Slurm's reason" "Slurm’s reason is \(Resources\|Priority\|None\)"
holds "and for programs" page "$ann" "/api/v1/jobs/$waiting/why"
prints "with what would start it earlier" '"what_if"'
# This Slurm has no accounting.
no_past() {
    curl -sS --unix-socket "$work/socket" -H "X-User: $ann" "http://localhost/api/v1/jobs/$waiting/when" | grep 'no job that ended is known'
}
holds "without a past no start is forecast" until_true 60 no_past
prints "and the answer says so" 'cannot be forecast'
holds "a running job does not wait" status 409 "$ann" "/api/v1/jobs/$first/why"
holds "a held job has no start" status 409 "$ann" "/api/v1/jobs/$held/when"
holds "but a page" page "$ann" "/jobs/$held"
holds "an array is found by its range" page "$ann" "/jobs/${array}_%5B1-100%5D"
prints "as one record" "1-100%5"
holds "a job that never was" status 404 "$ann" /jobs/999999
holds "what is no number" status 400 "$ann" /jobs/x
if [ "$ann" != "$bob" ]; then
    holds "another's job is hidden (PrivateData)" status 404 "$ann" "/jobs/$others"
    holds "its user sees it" status 200 "$bob" "/jobs/$others"
    holds "and root sees all" status 200 root "/jobs/$others"
fi
holds "nobody sees no jobs" status 404 "" "/jobs/$waiting"
holds "the week is served" page root /week

# However many visitors there are, Slurm is asked once in an interval.
before=$(wc -l <asked) begun=$SECONDS
for _ in $(seq 60); do page "$ann" /queue >/dev/null; done
asked=$(($(wc -l <asked) - before)) most=$(((SECONDS - begun) / 2 + 2))
holds "60 visits are at most $most questions, not $asked" test "$asked" -le "$most"

# The pages in a browser, which comes by TCP: at the socket the system says who comes. In a copy of the folder, since the step
# of the reports may install there at this moment.
cp -r "$root/crates/report/tests/browser" pages
rm -rf pages/node_modules
if chromium=${CHROMIUM:-$(type -P chromium || type -P chromium-browser || type -P google-chrome)} &&
    (cd pages && npm ci --silent --no-audit --no-fund); then
    "$evenhand" serve --listen 127.0.0.1:0 --interval 2s --rate 1000 --user-header X-User --trusted-proxy 127.0.0.1 >browsed.log 2>&1 &
    browsed=$!
    address() { sed -n 's/^Serving at \(.*\), until stopped\.$/\1/p' browsed.log | grep .; }
    holds "a second server listens" until_true 30 address
    CHROMIUM=$chromium node pages/served_pages.mjs "$(address)" "$ann" "$waiting" >browser.log 2>&1
    browser=$?
    cat browser.log
    holds "its pages pass in a browser" test "$browser" = 0
    kill "$browsed"
else
    [ "${CI:-}" != true ] || holds "a browser and npm are here" false
    printf 'skipped: no browser, or npm cannot fetch playwright-core\n'
fi

kill "$(cat "$work/slurm/run/slurmctld.pid")"
away() { page root / | grep 'did not answer the last question' >/dev/null; }
holds "with the controller away the page says so" until_true 120 away
holds "and the last answer stays" page "$ann" "/jobs/$waiting"
prints "with its age" "old"
kill -TERM "$server"
ended() { ! kill -0 "$server" 2>/dev/null; }
holds "SIGTERM ends it" until_true 30 ended
wait "$server"
holds "with status 0, not $?" test $? = 0
holds "and its socket is gone" test ! -e socket
holds "an open address without identity" ends 2 "$evenhand" serve --listen 0.0.0.0:0
prints "is refused" "is open to other machines"
holds "no commands" ends 3 env PATH=/nonexistent "$evenhand" serve --listen 127.0.0.1:0
prints "are reported" "squeue is not installed here"
printf 'users = "everybody"\n' >policy.toml
holds "a wrong policy file" ends 2 "$evenhand" serve --policy-file policy.toml
prints "is reported with its place" "policy.toml:1:9"

summary
