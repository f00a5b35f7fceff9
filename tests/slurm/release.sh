# A test on a real Slurm of another release: with `--release RELEASE` among its arguments a test begins anew in a Debian of that
# release (bookworm, trixie, sid), with the Slurm that Debian has there. Sourced before arguments are read; $0 is the test.
# Needs root, debootstrap and a mirror of Debian. SYSTEMS=FOLDER keeps the systems there and uses them again. The new system has its own
# processes and files; the checkout, the program and the caller's folder are at their own paths, the first two read-only.
# shellcheck shell=bash

# The programs that tests/slurm/*.sh call, by Debian's packages.
readonly SLURM_PACKAGES=(slurmctld slurmd slurm-client slurmdbd slurmrestd slurm-wlm-mysql-plugin mariadb-server mariadb-client munge
    curl hostname procps python3 socat)

# begin_in_release EVENHAND ARGUMENT…: returns if no release is named.
begin_in_release() {
    local release='' rest=() program root
    root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
    while [ $# != 0 ]; do
        if [ "$1" = --release ] && [ $# -gt 1 ]; then
            release=$2
            shift 2
        else
            rest+=("$1")
            shift
        fi
    done
    [ -n "$release" ] || return 0
    # shellcheck source=scripts/debian-system.sh
    source "$root/scripts/debian-system.sh"
    in_a_namespace "${rest[@]}" --release "$release"
    test_in_release "$release" "$root" "$(realpath "${rest[0]}")" "${rest[@]:1}"
    exit
}

# Into $system, once.
install_slurm() {
    [ ! -e "$system/slurm-is-installed" ] || return 0
    in_debian "$system" "${NETWORK_SETTINGS[@]}" apt-get -qq update &&
        in_debian "$system" "${NETWORK_SETTINGS[@]}" apt-get -y -q install --no-install-recommends "${SLURM_PACKAGES[@]}" &&
        touch "$system/slurm-is-installed"
}

# Not while something of this machine is mounted in one.
remove_systems() {
    awk -v within="$systems/" 'index($2, within) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r umount --lazy
    grep -qF " $systems/" /proc/mounts || rm -rf --one-file-system "$systems"
}

# test_in_release RELEASE ROOT PROGRAM ARGUMENT…: ends with the test's status.
test_in_release() {
    local release=$1 root=$2 program=$3 mirror system folder
    shift 3
    mirror=$(debian_mirror) || skip "no mirror of Debian $(own_release) in /etc/apt"
    systems=${SYSTEMS:-}
    if [ -z "$systems" ]; then
        systems=$(mktemp -d)
        trap remove_systems EXIT
    fi
    mkdir -p "$systems"
    system=$(realpath "$systems")/$release
    if [ ! -e "$system/slurm-is-installed" ]; then printf 'making Debian %s with Slurm\n' "$release"; fi
    { open_debian "$release" "$system" "$mirror" && install_slurm; } >"$system.log" 2>&1 || {
        tail -n 20 "$system.log"
        skip "no Debian $release with Slurm can be made"
    }
    for folder in "$PWD" "$root"; do
        [ "$folder" != / ] || continue
        mkdir -p "$system$folder"
        mount --bind "$folder" "$system$folder"
        [ "$folder" = "$PWD" ] || mount -o remount,bind,ro "$system$folder"
    done
    mkdir -p "$system$(dirname "$program")"
    [ -e "$system$program" ] || touch "$system$program"
    mount --bind "$program" "$system$program"
    printf 'Debian %s, %s\n' "$release" "$(in_debian "$system" slurmctld -V)"
    in_debian "$system" sh -c 'cd "$1" && shift && exec "$@"' sh "$PWD" "$root/tests/slurm/${0##*/}" "$program" "$@"
}
