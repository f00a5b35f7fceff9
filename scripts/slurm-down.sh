#!/usr/bin/env bash
# Stops the Slurm that scripts/slurm-up.sh started in DIR, and nothing else; --purge deletes DIR too.
#   scripts/slurm-down.sh DIR [--purge]
set -uo pipefail

DIR=${1:?usage: scripts/slurm-down.sh DIR [--purge]}
[ -d "$DIR/etc" ] || exit 0
DIR=$(cd "$DIR" && pwd)
PURGE=${2:-}

# Processes whose environment names this cluster's configuration, or whose arguments name a path below DIR.
ours() {
    local proc pid name
    for proc in /proc/[0-9]*; do
        pid=${proc#/proc/}
        read -r name 2>/dev/null <"$proc/comm" || continue
        case $name in
        slurm*) tr '\0' '\n' 2>/dev/null <"$proc/environ" | grep -qxF "SLURM_CONF=$DIR/etc/slurm.conf" && echo "$pid" ;;
        munged | mariadbd) tr '\0' '\n' 2>/dev/null <"$proc/cmdline" | grep -qF "=$DIR/" && echo "$pid" ;;
        esac
    done 2>/dev/null
    true
}

# What is deleted anyway need not be written down first.
signals="TERM KILL"
[ "$PURGE" != --purge ] || signals=KILL
if [ "$PURGE" != --purge ] || [ -n "$(SLURM_CONF="$DIR/etc/slurm.conf" timeout 5 squeue -h -o %A 2>/dev/null)" ]; then
    SLURM_CONF="$DIR/etc/slurm.conf" timeout 5 squeue -h -o %A 2>/dev/null | sort -u |
        SLURM_CONF="$DIR/etc/slurm.conf" xargs -r timeout 5 scancel -s KILL -f 2>/dev/null
fi
for signal in $signals; do
    pids=$(ours)
    [ -n "$pids" ] || break
    # shellcheck disable=SC2086
    kill "-$signal" $pids 2>/dev/null
    for _ in $(seq 100); do
        [ -n "$(ours)" ] || break
        sleep 0.05
    done
done
[ "$PURGE" != --purge ] || rm -rf "$DIR"
exit 0
