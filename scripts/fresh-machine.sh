#!/usr/bin/env bash
# Runs both commands of README.md on a machine that has nothing: a minimal Debian, made by debootstrap, with Rust and a C
# compiler, as the README asks for.
#   scripts/fresh-machine.sh [COMMAND…]     another command than ./check, such as ./check quick
# Checks what is committed (HEAD). Needs root. Debian's release and mirror are this machine's, and so are the settings with
# which cargo, pip and npm reach their registries; Rust is this machine's too, read-only. KEEP=FOLDER: keeps the system there
# and uses it again. Takes about as long as a first ./check.
set -euo pipefail
[ $# != 0 ] || set -- ./check
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/debian-system.sh
source "$root/scripts/debian-system.sh"
in_a_namespace "$@"

machine=${KEEP:-}
if [ -z "$machine" ]; then
    machine=$(mktemp -d)
    # All that is mounted first, so that nothing of this machine is deleted.
    trap 'umount -R -q "$machine"/{proc,sys,dev,rust} 2>/dev/null; rm -rf --one-file-system "$machine"' EXIT
fi
release=$(own_release)
mirror=$(debian_mirror) || skip "no mirror of Debian $release in /etc/apt"

if [ ! -e "$machine/etc/debian_version" ]; then
    printf 'making Debian %s\n' "$release"
    # A C compiler, and what TLS needs.
    make_debian "$release" "$machine" "$mirror" gcc,libc6-dev,ca-certificates >"$machine.log" 2>&1 || { tail -n 20 "$machine.log"; exit 1; }
    rm "$machine.log"
    # No service starts in it, as in a container.
    printf '#!/bin/sh\nexit 101\n' >"$machine/usr/sbin/policy-rc.d"
    chmod 755 "$machine/usr/sbin/policy-rc.d"
fi

# How this machine reaches the network and the registries.
copy() { [ ! -e "$1" ] || { mkdir -p "$machine$(dirname "$2")" && cp -rL "$1" "$machine$2"; }; }
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates; do
    copy "$file" "$file"
done
copy "$HOME/.npmrc" /root/.npmrc
copy "$HOME/.config/pip" /root/.config/pip
copy "${CARGO_HOME:-$HOME/.cargo}/config.toml" /root/.cargo/config.toml
rm -rf "$machine/etc/apt/sources.list" "$machine"/etc/apt/sources.list.d "$machine"/etc/apt/apt.conf.d
for part in "$release" "$release-updates" "$release-security"; do
    apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' |
        awk -v r="$part" '$1 == r { print "deb", $2, $1, "main"; exit }'
done >"$machine/etc/apt/sources.list"
copy /etc/apt/apt.conf.d /etc/apt/apt.conf.d
copy /etc/apt/auth.conf.d /etc/apt/auth.conf.d

# Rust as it is here.
sysroot=$(realpath "$(rustc --print sysroot)")
mkdir -p "$machine"/{proc,sys,dev,rust,root/.cargo}
mount -t proc proc "$machine/proc"
mount --rbind /sys "$machine/sys"
mount --rbind /dev "$machine/dev"
mount --make-rslave "$machine/dev"
mount --bind -o ro "$(dirname "$sysroot")" "$machine/rust"
toolchain=/rust/$(basename "$sysroot")

rm -rf "$machine/root/evenhand"
git clone --quiet --no-hardlinks "$root" "$machine/root/evenhand"
# What a session sets for the registries and proxies goes along; nothing else does.
mapfile -t settings < <(env | grep -iE '^(https?_proxy|no_proxy|all_proxy|cargo_(registries|http|net|source)_.*|pip_.*|npm_config_.*|ssl_cert_.*|FUZZ_SECONDS|JOBS|CI)=' || true)
inside() {
    chroot "$machine" /usr/bin/env -i HOME=/root LANG=C.UTF-8 "${settings[@]}" \
        PATH="$toolchain/bin:$DEBIAN_PATH" \
        sh -c 'cd /root/evenhand && exec "$@"' sh "$@"
}
printf '\n$ cargo run --release -- study\n'
inside cargo run --release -- study
test -s "$machine/root/evenhand/evenhand-study/index.html"
printf '\n$ %s\n' "$*"
inside "$@"
printf 'Both commands of the README work on a machine that had nothing.\n'
