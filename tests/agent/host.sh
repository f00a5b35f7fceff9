#!/usr/bin/env bash
# The agent on this machine's own control groups: groups that this test makes, weighed, put back, and what goes wrong.
#   tests/agent/host.sh EVENHAND
# Touches only groups below evenhand-host, which it makes and removes, and sends only to 127.0.0.1.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/agent/host.sh EVENHAND}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"

skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "not root: control groups cannot be made"
top=evenhand-host
if [ -d /sys/fs/cgroup/cpu/ ] && [ -f /sys/fs/cgroup/cpu/cpu.shares ] || mkdir /sys/fs/cgroup/cpu/$top 2>/dev/null; then
    roots="/sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct" file=cpu.shares neutral=1024
elif grep -qw cpu /sys/fs/cgroup/cgroup.controllers 2>/dev/null; then
    roots=/sys/fs/cgroup file=cpu.weight neutral=100
else
    skip "no controller for processors is mounted where it is looked for"
fi
main=${roots%% *}

remove_groups() {
    local folder
    for folder in $roots; do
        [ -d "$folder/$top" ] && find "$folder/$top" -depth -type d -exec rmdir {} \; 2>/dev/null
    done
}
spinning=()
finish() {
    kill -9 "${spinning[@]}" 2>/dev/null
    jobs -p | xargs -r kill -9 2>/dev/null
    wait 2>/dev/null
    # What was killed leaves its group a little later.
    sleep 0.2
    remove_groups
    rm -rf "$work"
}
trap finish EXIT

# group PATH: below $top.
group() {
    local folder
    for folder in $roots; do
        mkdir -p "$folder/$top/$1"
        [ "$file" = cpu.shares ] || for up in "$folder" "$folder/$top" "$folder/$top/${1%/*}"; do
            echo +cpu >"$up/cgroup.subtree_control" 2>/dev/null
        done
    done
}
# inside PATH COMMAND…: a process in that group.
inside() {
    local path=$1 folder
    shift
    (
        for folder in $roots; do echo "$BASHPID" >"$folder/$top/$path/cgroup.procs"; done
        exec "$@"
    ) &
}
weight() { cat "$main/$top/$1/$file"; }
used() {
    if [ "$file" = cpu.shares ]; then cat "/sys/fs/cgroup/cpuacct/$top/$1/cpuacct.usage"; else
        awk '/^usage_usec/ { print $2 }' "$main/$top/$1/cpu.stat"
    fi
}
spin() {
    inside "$1" taskset -c "$cpu" sh -c 'while :; do :; done'
    spinning+=($!)
    # The shell need not say that it was killed.
    disown
}
cpu=$(($(nproc) - 1))

# configuration NAME PARENT [LINES…]: of a node whose guests are below $top/PARENT.
configuration() {
    local name=$1 parent=$2
    shift 2
    cat >"$work/$name.toml" <<END
[node]
name = "$name"
cpu = 1
state = "$work/$name.state"
socket = "$work/$name.sock"
under = "$top/$parent"
[heaviness]
resources = ["cpu"]
[control]
interval = "0.5s"
controls = ["cpu"]
[[guests]]
from = "pattern"
pattern = '$top/$parent/(?<owner>[a-z])\.(?<name>.*)'
processors = 1
END
    printf '%s\n' "$@" >>"$work/$name.toml"
}
# start NAME [OPTION…]: the agent in the background; its number is $agent.
start() {
    local name=$1
    shift
    "$evenhand" agent run --config "$work/$name.toml" --format json "$@" >"$work/$name.out" 2>"$work/$name.err" &
    agent=$!
    until_true 20 answers "$name"
}
answers() { "$evenhand" agent status --socket "$work/$1.sock" >/dev/null 2>&1; }
status() { "$evenhand" agent status --socket "$work/$1.sock" --format json; }
updates() { [ "$(status "$1" | awk -F'[:,]' '/"updates"/ { print $2 }')" -ge "$2" ]; }
# stops SIGNAL: the agent, and waits for it.
stops() {
    kill "-$1" "$agent"
    wait "$agent" 2>/dev/null
}

# What works here.
holds "doctor ends with 0 where processors can be divided" "$evenhand" agent doctor
prints "doctor names the file" "$file"
holds "doctor speaks JSON" "$evenhand" agent doctor --format json
prints "with a row a resource" '"resource": "net"'

# Nobody is there yet.
for name in d.1 d.2 e.1; do group "a/$name"; done
echo $((neutral / 2)) >"$main/$top/a/d.2/$file"
configuration a a '[metrics]' 'listen = "127.0.0.1:9759"'
holds "status without an agent ends with 3" ends 3 "$evenhand" agent status --socket "$work/a.sock"
prints "and says so" "no agent answers at this socket"
holds "release without a journal ends with 2" ends 2 "$evenhand" agent release --config "$work/a.toml"
sed 's/^interval.*/intervall = 3/' "$work/a.toml" >"$work/wrong.toml"
holds "a wrong configuration ends with 2" ends 2 "$evenhand" agent run --config "$work/wrong.toml"
prints "with line and column" "wrong.toml:10:1: unknown field \"intervall\".*did you mean \"interval\""
sed '/guests/,$d' "$work/a.toml" >"$work/none.toml"
holds "a configuration without guests ends with 2" ends 2 "$evenhand" agent run --config "$work/none.toml"

for name in d.1 d.2 e.1; do spin "a/$name"; done

# A dry run.
holds "a dry run of a few updates" "$evenhand" agent run --config "$work/a.toml" --updates 6
prints "says what it would do" "would change .* of cpu"
# With all controls it lists exactly what the first update of --apply writes: on the scale of the files, and nothing of
# resources that cannot be divided here.
sed '/^controls/d' "$work/a.toml" >"$work/all.toml"
listed() { grep -o '"resource":"[a-z]*","value":[0-9]*' "$work/printed.log"; }
holds "a dry run as JSON" "$evenhand" agent run --config "$work/all.toml" --updates 1 --format json
dry=$(listed)
holds "and writes nothing" test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"
holds "the same with --apply" "$evenhand" agent run --config "$work/all.toml" --updates 1 --format json --apply
holds "writes what the dry run listed" test -n "$dry" -a "$(listed)" = "$dry"
holds "and restores it" test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"

# Applied.
start a --apply
holds "it runs" until_true 60 updates a 40
holds "a second agent is refused" ends 3 "$evenhand" agent run --config "$work/a.toml" --apply --updates 1
prints "with a sentence" "another agent"
# 28/66 at the fixed point. Machines on which tests run are noisy, so a miss is measured again.
share_is_near_fixed_point() {
    local attempt before mine all
    for attempt in 1 2 3; do
        before=$(used a/e.1) all=$(($(used a/d.1) + $(used a/d.2) + $(used a/e.1)))
        sleep 4
        mine=$(($(used a/e.1) - before)) all=$(($(used a/d.1) + $(used a/d.2) + $(used a/e.1) - all))
        printf "e's part, attempt %s: %s of %s\n" "$attempt" "$mine" "$all"
        [ $((mine * 100)) -lt $((all * 36)) ] || [ $((mine * 100)) -gt $((all * 50)) ] || return 0
    done
    return 1
}
holds "e has about what the fixed point gives, 42.4 %" share_is_near_fixed_point
holds "weights say so" test "$(weight a/e.1)" -gt $((2 * $(weight a/d.1) * 6 / 10))
holds "status shows everybody" "$evenhand" agent status --socket "$work/a.sock"
prints "with what divides processors" "$file"
prints "and users by heaviness" "^d .*+*[0-9.]* *2 "
holds "why" "$evenhand" agent why e --socket "$work/a.sock"
prints "with its numbers" "h_v .* + h_u .* = h_p"
holds "why nobody ends with 2" ends 2 "$evenhand" agent why f --socket "$work/a.sock"
holds "top as text" "$evenhand" top --once --socket "$work/a.sock"
prints "with the screen's parts" "users, the heaviest first"
exec 3<>/dev/tcp/127.0.0.1/9759
printf 'GET /metrics HTTP/1.1\r\n\r\n' >&3
cat <&3 >"$work/metrics" 2>/dev/null
exec 3>&-
holds_in "Prometheus is answered" 'evenhand_guest_weight{guest="1",user="e",path="evenhand-host/a/e.1"}' "$work/metrics"
holds_in "the log is JSON lines with reasons" '"resource":"cpu","value":[0-9]*,"precedence"' "$work/a.out"

# A guest comes, and ends.
group a/f.1
spin a/f.1
sees() { status a | grep -q "\"$1\""; }
holds "a guest that comes is weighed" until_true 10 sees "$top/a/f.1"
kill -9 "${spinning[-1]}"
ends_group() { for folder in $roots; do rmdir "$folder/$top/a/f.1" 2>/dev/null || [ ! -d "$folder/$top/a/f.1" ]; done; }
until_true 5 ends_group
misses() { ! sees "$1"; }
holds "one that ends is forgotten" until_true 10 misses "$top/a/f.1"
errors() { status a | grep -q '"errors": 0'; }
holds "which is no error" errors

# A crash.
holds "it is killed" ends 137 stops KILL
changed=$(weight a/d.2)
holds "and leaves what it wrote" test "$changed" != $((neutral / 2))
start a --apply
holds "started again" until_true 20 updates a 4
holds "it ends on SIGTERM" ends 0 stops TERM
holds "everything is as it was before the first life" \
    test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"
start a --apply
holds "once more" until_true 20 updates a 6
ends 137 stops KILL
holds "release after a crash" "$evenhand" agent release --config "$work/a.toml"
prints "says how many" "groups have their old values again"
holds "and all is as it was" test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"
start a --apply
until_true 20 updates a 6
holds "release of a running agent" "$evenhand" agent release --config "$work/a.toml"
prints "says how many, too" "groups have their old values again"
holds "the agent ends" ends 0 wait "$agent"
holds "and all is as it was again" test "$(weight a/d.1) $(weight a/d.2)" = "$neutral $((neutral / 2))"

# A damaged journal.
start a --apply
until_true 20 updates a 6
ends 137 stops KILL
journal=$work/a.state/agent.redb
dd if=/dev/zero of="$journal" bs=4096 count=1 conv=notrunc 2>/dev/null
holds "with a damaged journal the agent does not start" ends 3 "$evenhand" agent run --config "$work/a.toml" --apply --updates 1
prints "and says how to recover" "agent release --from-journal $journal"
holds "what is left of the journal is restored" "$evenhand" agent release --config "$work/a.toml" --from-journal "$journal"
prints "with what it is" "is damaged; found the values of"
holds "and all is as it was before" test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"
rm "$journal"

# A configuration that others may write.
chmod g+w "$work/a.toml"
holds "a configuration that others may write is refused" ends 2 "$evenhand" agent run --config "$work/a.toml" --apply --updates 1
prints "with the remedy" "chmod go-w"
chmod g-w "$work/a.toml"

# A journal or a state that others may write.
chmod g+w "$work/a.state"
holds "a state that others may write is refused" ends 2 "$evenhand" agent run --config "$work/a.toml" --apply --updates 1
prints "with the remedy" "chmod go-w $work/a.state"
chmod g-w "$work/a.state"
mkdir "$work/other.state"
ln -s "$work/a.toml" "$work/other.state/agent.redb"
sed "s|^state = .*|state = \"$work/other.state\"|" "$work/a.toml" >"$work/other.toml"
holds "a link in place of the journal is refused" ends 2 "$evenhand" agent run --config "$work/other.toml" --apply --updates 1
prints "and the reason given" "no symbolic link"

# A lock that any user may take, and signals without a meaning.
flock -n "$main/$top/a" sleep 60 &
locked=$!
start a --apply
holds "a lock on the folder of a group keeps no agent from starting" until_true 20 updates a 6
kill "$locked"
holds "the locks are for root alone" test "$(stat -c '%a %u' /run/evenhand/locks)" = "700 0"
kill -USR1 "$agent"
kill -USR2 "$agent"
kill -XFSZ "$agent"
holds "SIGUSR1, SIGUSR2 and SIGXFSZ have no effect" until_true 20 updates a 10
changed=$(weight a/d.2)
holds "it has changed weights" test "$changed" != $((neutral / 2))
holds "it ends on SIGHUP" ends 0 stops HUP
holds "and restores" test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"

# A file where the socket should be.
sed "s|^socket = .*|socket = \"$work/a.toml\"|" "$work/a.toml" >"$work/file.toml"
holds "a file in the place of the socket is kept" ends 3 "$evenhand" agent run --config "$work/file.toml" --updates 1
prints "and the reason given" "something other than a socket"
holds "as it was" grep -q pattern "$work/a.toml"

# A pause, as of a suspended machine.
start a --apply
until_true 20 updates a 4
kill -STOP "$agent"
sleep 5
kill -CONT "$agent"
holds "after a pause it goes on" until_true 20 updates a 12
holds "and ends well" ends 0 stops TERM
holds "with all as it was" test "$(weight a/d.1) $(weight a/d.2) $(weight a/e.1)" = "$neutral $((neutral / 2)) $neutral"

# Killed ten times at random moments, while other groups come and go by the hundred.
group k/w.0
churn() {
    local i
    for i in $(seq 1 5000); do
        mkdir "$main/$top/k/c.$i" 2>/dev/null
        [ "$i" -le 40 ] || rmdir "$main/$top/k/c.$((i - 40))" 2>/dev/null
        [ $((i % 8)) -ne 0 ] || sleep 0.05
    done
}
killed_groups=$(seq 1 12)
for i in $killed_groups; do
    group "k/d.$i"
    echo $((neutral / 2 + i)) >"$main/$top/k/d.$i/$file"
    spin "k/d.$i"
done
group k/e.1
spin k/e.1
before=$(for i in $killed_groups; do weight "k/d.$i"; done)
churn &
churning=$!
configuration k k
kills=0 changed=0
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    start k --apply
    sleep "0.$((RANDOM % 10))"
    ends 137 stops KILL && kills=$((kills + 1))
    [ "$(for i in $killed_groups; do weight "k/d.$i"; done)" = "$before" ] || changed=$((changed + 1))
done
kill "$churning" 2>/dev/null
wait "$churning" 2>/dev/null
holds "killed ten times while groups come and go" test "$kills" = 10
holds "after it had changed weights" test "$changed" -gt 0
holds "release after the last" "$evenhand" agent release --config "$work/k.toml"
after=$(for i in $killed_groups; do weight "k/d.$i"; done)
holds "and all twelve are as they were before the first" test "$after" = "$before"
for i in $(seq 1 13); do
    kill -9 "${spinning[-1]}" 2>/dev/null
    unset 'spinning[-1]'
done

# Three hundred groups: neither memory nor descriptors grow.
for i in $(seq 1 300); do mkdir -p "$main/$top/s/u.$i"; done
group s/u.1
configuration s s
sed -i 's/^interval = .*/interval = "0.1s"/' "$work/s.toml"
start s --apply
memory() { awk '/^VmRSS/ { print $2 }' "/proc/$agent/status"; }
descriptors() { find "/proc/$agent/fd" -mindepth 1 2>/dev/null | wc -l; }
until_true 60 updates s 50
memory_then=$(memory) descriptors_then=$(descriptors)
until_true 60 updates s 150
holds "with 300 groups memory does not grow" test "$(memory)" -le $((memory_then + 512))
holds "nor do descriptors" test "$(descriptors)" -le $((descriptors_then + 2))
holds "it ends, too" ends 0 stops TERM

# Itself.
group a/x.1
inside a/x.1 "$evenhand" agent run --config "$work/a.toml" --updates 2 >"$work/own" 2>&1
wait $!
holds_in "the agent does not weigh itself" "this process itself runs there" "$work/own"

# Two nodes that talk, with a key; then one is gone.
head -c 32 /dev/urandom | base64 >"$work/key"
chmod 600 "$work/key"
head -c 32 /dev/urandom | base64 >"$work/other-key"
chmod 600 "$work/other-key"
for name in d.1 e.1; do group "b/$name"; done
for name in e.2 f.1; do group "c/$name"; done
group g/z.1
peers() {
    printf '%s\n' '[peers]' "listen = \"127.0.0.1:$1\"" "seeds = [\"127.0.0.1:$2\"]" "key = \"$work/$3\"" 'fresh = 2' 'lost = 4' "exchange = \"$4\""
}
fresh() { [ "$(status "$1" | grep -c '"fresh": true')" = "$2" ]; }
for exchange in gossip ring; do
    configuration b b "$(peers 9761 9762 key $exchange)"
    configuration c c "$(peers 9762 9761 key $exchange)"
    configuration g g "$(peers 9763 9761 other-key $exchange)"
    start b --apply
    on_b=$agent
    start c --apply
    on_c=$agent
    start g
    on_g=$agent
    holds "$exchange: b hears c" until_true 30 fresh b 2
    holds "$exchange: c hears b" until_true 30 fresh c 2
    users() { status b | grep -q '"name": "f"'; }
    holds "$exchange: b knows c's users" until_true 20 users
    holds "$exchange: who has another key hears nobody" fresh g 1
    stranger() { status "$1" | grep -q '"name": "z"'; }
    holds "$exchange: and nobody hears of its users" ends 1 stranger b
    agent=$on_c
    ends 137 stops KILL
    holds "$exchange: b no longer counts c" until_true 20 fresh b 1
    alone() { status b | grep -q 'no other node is reachable: all groups have their earlier settings'; }
    holds "$exchange: and puts everything back" until_true 20 alone
    holds "$exchange: really" test "$(weight b/d.1) $(weight b/e.1)" = "$neutral $neutral"
    agent=$on_b
    holds "$exchange: b ends" ends 0 stops TERM
    agent=$on_g
    holds "$exchange: the stranger ends" ends 0 stops TERM
    "$evenhand" agent release --config "$work/c.toml" >/dev/null
done
summary
