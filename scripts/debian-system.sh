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
