# Fresh Debian systems, made and entered by scripts/fresh-machine.sh and by the tests of packages. Sourced.
# shellcheck shell=bash

skip() {
    printf 'skipped: %s\n' "$*"
    exit 77
}

# in_a_namespace ARGUMENT…: begins the calling script anew, as root of a mount and a process namespace: what it mounts and starts is
# gone when it ends. Returns inside.
in_a_namespace() {
    [ "$(id -u)" = 0 ] || skip "only root can make a Debian system"
    [ "${IN_A_NAMESPACE:-}" = "$0" ] ||
        exec env IN_A_NAMESPACE="$0" unshare --mount --pid --fork --kill-child --mount-proc "$0" "$@"
}

# This machine's release of Debian, and where it has its packages from.
own_release() { (. /etc/os-release && printf %s "$VERSION_CODENAME"); }
debian_mirror() {
    local release mirror
    release=$(own_release)
    mirror=$(apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' | awk -v r="$release" '$1 == r { print $2; exit }')
    [ -n "$mirror" ] || return 1
    printf '%s\n' "$mirror"
}

# Of a Debian system, which need not be that of this machine.
readonly DEBIAN_PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# make_debian RELEASE FOLDER MIRROR PACKAGES: a minimal Debian with these packages, which commas separate, in a new folder. Programs
# of the new system are started by name, so with a PATH that it has.
make_debian() { PATH=$DEBIAN_PATH debootstrap --variant=minbase --include="$4" "$1" "$2" "$3"; }

# in_debian FOLDER [NAME=VALUE…] COMMAND…: runs a command of that system, without this machine's environment.
in_debian() {
    local system=$1
    shift
    chroot "$system" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=$DEBIAN_PATH "$@"
}

# What of this machine's environment a new system needs to reach a mirror.
# shellcheck disable=SC2034
mapfile -t NETWORK_SETTINGS < <(env | grep -iE '^(https?_proxy|no_proxy|all_proxy|ssl_cert_.*)=' || true)

# open_debian RELEASE FOLDER MIRROR: makes a minimal Debian unless it is there, in which no service starts and which reaches the mirror as
# this machine does. Mounts what it needs of this machine: in a namespace, with which that goes away.
open_debian() {
    local system=$2 file
    mkdir -p "$(dirname "$system")"
    if [ ! -e "$system/etc/debian_version" ]; then
        rm -rf --one-file-system "$system.new"
        make_debian "$1" "$system.new" "$3" ca-certificates && mv "$system.new" "$system" || return 1
    fi
    printf '#!/bin/sh\nexit 101\n' >"$system/usr/sbin/policy-rc.d"
    chmod 755 "$system/usr/sbin/policy-rc.d"
    for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || cp -L "$file" "$system$file"
    done
    cp -rL /etc/apt/apt.conf.d /etc/apt/auth.conf.d "$system/etc/apt/" 2>/dev/null
    # Some mirrors are behind by more than the days for which sid's lists are valid.
    printf 'Acquire::Check-Valid-Until "false";\n' >"$system/etc/apt/apt.conf.d/99-old-mirror"
    mount -t proc proc "$system/proc"
    mount --rbind /dev "$system/dev"
    mount --make-rslave "$system/dev"
    mount --rbind /sys "$system/sys"
    mount --make-rslave "$system/sys"
}
