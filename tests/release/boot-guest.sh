#!/bin/sh
# What tests/release/boot.sh checks in its guest, as root, with the agent's package installed and enabled. A line of results
# begins with "holds" or "does not hold".
unit=evenhand-agent.service
boot=$(sed -n 's/.*boot_number=\([a-z]*\).*/\1/p' /proc/cmdline)

# check SENTENCE COMMAND…
check() {
    sentence=$1
    shift
    if "$@" >/run/printed 2>&1; then
        echo "holds: $sentence, after $(cut -d. -f1 /proc/uptime) s"
    else
        echo "does not hold: $sentence, after $(cut -d. -f1 /proc/uptime) s"
        {
            cat /run/printed
            echo "weights: $(weight 1001), $(weight 1002)"
            journalctl -b --no-pager -u $unit -n 12 -o cat
        } | sed 's/^/    /'
    fi
}
# soon COMMAND…: within two minutes of the guest's time.
soon() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 120 ] || return 1
        sleep 1
    done
}
fails() { ! "$@"; }
is_active() { systemctl is-active --quiet $unit; }
main() { systemctl show -P MainPID $unit; }
is_another() { is_active && [ "$(main)" != 0 ] && [ "$(main)" != "$1" ]; }
weight() { cat "/sys/fs/cgroup/user.slice/user-$1.slice/cpu.weight"; }
are_as_found() { [ "$(weight 1001)" = 150 ] && [ "$(weight 1002)" = 150 ]; }
are_set() { [ "$(weight 1001)" != 150 ] && [ "$(weight 1002)" != 150 ]; }
users() { evenhand agent status --format json | grep -o '"user100[12]"' | sort -u | wc -l; }
both_are_known() { [ "$(users)" = 2 ]; }
# Lines of this boot's log.
logged() { journalctl -b --no-pager -o cat -u $unit | grep -q -- "$1"; }

echo "up after $(cut -d' ' -f1 /proc/uptime) s: $(uname -r), $(systemctl --version | head -n 1)"
check "the unit is started at boot" soon is_active
check "the agent finds the users of the machine" soon both_are_known
check "it sets their weights" soon are_set
echo "weights: $(weight 1001), $(weight 1002)"

if [ "$boot" = first ]; then
    old=$(main)
    kill -KILL "$old"
    check "killed, the agent leaves weights as they were" are_set
    check "systemd starts it again" soon is_another "$old"
    check "the new one knows the users, too" soon both_are_known
    check "weights are still set" are_set
    # It has to know from its journal what weights were before the first one.
    systemctl stop $unit
    check "stopped, it puts all weights back" are_as_found
    check "and has ended without a failure" fails systemctl is-failed --quiet $unit

    systemctl start $unit
    check "started again, it sets weights" soon are_set
    old=$(main)
    check "a reload reads the configuration again" systemctl reload $unit
    check "and keeps the process" [ "$(main)" = "$old" ]
    check "which sets weights again" soon are_set
    check "and knows the users" soon both_are_known
    printf '[control]\ninterval = "never"\n' >/etc/evenhand/agent.toml.d/20-wrong.toml
    check "an invalid configuration is refused" fails systemctl reload $unit
    check "with the file and the line" logged 'agent.toml.d/20-wrong.toml:2'
    check "and the agent goes on as it was" both_are_known
    rm /etc/evenhand/agent.toml.d/20-wrong.toml

    # The loop hangs, but the process is there.
    kill -STOP "$old"
    check "an agent that hangs is restarted by the watchdog" soon is_another "$old"
    check "which says so" logged 'Watchdog timeout'
    check "and the new one works" soon both_are_known

    kill -KILL "$(main)"
    systemctl stop $unit
    check "killed, and stopped before it is started again, it leaves weights" are_set
    check "evenhand agent release puts them back from the journal" evenhand agent release
    check "all of them" are_as_found

    systemctl start $unit
    check "before the power cut weights are set" soon are_set
    echo "cut the power"
    # In the middle of its work: each start and each stop writes to the journal.
    while :; do
        systemctl restart $unit
        systemctl reset-failed $unit
    done
else
    # The kernel's groups, and what systemd holds of their weights, went with the power: what is left is the file system and the
    # journal on it.
    check "the file system is whole" fails grep -q ' / .*\bro\b' /proc/mounts
    check "the journal of the agent is not damaged" fails logged 'agent.redb'
    systemctl stop $unit
    check "stopped, the agent puts all weights back" are_as_found
    check "nothing is left in its journal" sh -c 'evenhand agent release | grep -q "^0 groups"'
    check "the log of the first boot is there" sh -c "journalctl -b -1 -o cat -u $unit | grep -q ."
    echo "all checked"
    systemctl poweroff
fi
