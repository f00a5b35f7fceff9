#!/usr/bin/env bash
# Installs, upgrades, removes and purges Debian's packages in fresh Debian systems of several releases, as administrators do.
#   tests/release/install.sh EVENHAND [RELEASE…]       default: bookworm trixie sid
# Needs root and Debian's mirror. KEEP=FOLDER: keeps the systems there and uses them again.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/release/install.sh EVENHAND [RELEASE…]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/debian-system.sh
source "$root/scripts/debian-system.sh"
in_a_namespace "$@"
shift
[ $# != 0 ] || set -- bookworm trixie sid
cd "$root" || exit 1
work=$(mktemp -d)
systems=${KEEP:-$work/systems}
# All that is mounted first, so that nothing of this machine is deleted.
trap 'for system in "$systems"/*/; do umount -R -q "$system"proc "$system"sys "$system"dev; done; rm -rf --one-file-system "$work"' EXIT
# shellcheck source=tests/sentences.sh
source tests/sentences.sh
mirror=$(debian_mirror) || skip "no mirror of Debian $(own_release) in /etc/apt"

# Two versions, of which the second changes nothing else.
for version in 0.0.1 0.0.2; do
    scripts/release --program "$evenhand" --version "$version" --without tar,rpm,oci,wheel,source --out "$work/$version" >"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
done

# make_system RELEASE: a minimal Debian with the packages.
make_system() {
    open_debian "$1" "$systems/$1" "$mirror" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; return 1; }
    mkdir -p "$systems/$1/packages"
    cp -r "$work"/0.0.? "$systems/$1/packages/"
    inside apt-get -qq update
}

inside() { in_debian "$systems/$release" "${NETWORK_SETTINGS[@]}" "$@"; }
there() { inside test -e "$1"; }
gone() { ! there "$1"; }
install_version() { inside sh -c "apt-get -y -q install --no-install-recommends /packages/$1/*.deb"; }

# Of one release of Debian.
life_of_the_packages() {
    local agent=/etc/evenhand/agent.toml env=/etc/evenhand/slurm.env unit
    holds "$release: a system is made" make_system "$release"
    inside apt-get -qq purge -y 'evenhand*' >/dev/null 2>&1

    holds "$release: the packages install" install_version 0.0.1
    holds "$release: the program runs" inside evenhand policies
    prints "$release: and lists policies" drf
    holds "$release: the driver has its account" inside getent passwd evenhand
    holds "$release: the pages have one of their own" inside getent passwd evenhand-serve
    for unit in evenhand-agent.service evenhand-slurm.service evenhand-serve.service; do
        holds "$release: $unit is a valid unit" inside systemd-analyze verify --man=no "$unit"
        holds "$release: the installation enables no $unit" gone "/etc/systemd/system/multi-user.target.wants/$unit"
    done
    holds "$release: the agent's configuration is readable by the agent" inside evenhand agent run --config "$agent" --updates 1
    holds "$release: the folder of the driver's state is its own" inside sh -c '[ "$(stat -c %U:%a /var/lib/evenhand-slurm)" = evenhand:750 ]'
    holds "$release: the agent's is root's alone" inside sh -c '[ "$(stat -c %U:%a /var/lib/evenhand)" = root:700 ]'
    holds "$release: nothing is in the packages' way" inside dpkg --verify evenhand evenhand-agent evenhand-slurm evenhand-serve

    # An operator works with it.
    inside sh -c "printf '# of this site\n' >>$agent; printf 'EVENHAND_SLURM_OPTIONS=--apply\n' >$env"
    inside sh -c 'systemctl enable evenhand-agent.service; echo state >/var/lib/evenhand/benchmark; echo state >/var/lib/evenhand-slurm/slurm.redb' 2>/dev/null

    holds "$release: the packages are upgraded" install_version 0.0.2
    holds "$release: to the new version" inside sh -c '[ "$(dpkg-query -W -f "\${Version}" evenhand-agent)" = 0.0.2-1 ]'
    holds "$release: the agent's configuration stays as edited" inside grep -q '^# of this site$' "$agent"
    holds "$release: so do the driver's options" inside grep -q '^EVENHAND_SLURM_OPTIONS=--apply$' "$env"
    holds "$release: an enabled service stays enabled" inside test -L /etc/systemd/system/multi-user.target.wants/evenhand-agent.service
    holds "$release: state stays" inside grep -q state /var/lib/evenhand-slurm/slurm.redb /var/lib/evenhand/benchmark

    holds "$release: the packages are removed" inside apt-get -y -q remove evenhand evenhand-agent evenhand-slurm evenhand-serve
    holds "$release: with the program" gone /usr/bin/evenhand
    holds "$release: and the units" gone /usr/lib/systemd/system/evenhand-agent.service
    holds "$release: the configuration stays" inside grep -q '^# of this site$' "$agent"
    holds "$release: and state stays" there /var/lib/evenhand-slurm/slurm.redb

    holds "$release: the packages are purged" inside apt-get -y -q purge evenhand evenhand-agent evenhand-slurm evenhand-serve
    for path in /etc/evenhand /var/lib/evenhand /var/lib/evenhand-slurm /usr/share/doc/evenhand \
        /etc/systemd/system/multi-user.target.wants/evenhand-agent.service; do
        holds "$release: without $path" gone "$path"
    done
    left=$(inside find / -xdev -path /proc -prune -o -path /packages -prune -o -path /run -prune -o -name '*evenhand*' -print)
    holds "$release: nothing else is left: $left" test -z "$left"
}

for release; do life_of_the_packages; done
summary
