#!/usr/bin/env bash
# The agent's package under a real systemd, with a real kernel: a Debian that is installed into an image, booted under
# software emulation, cut off from power, and booted again.
#   tests/release/boot.sh EVENHAND [KERNEL]
# KERNEL (6.12) is one that need_guests of scripts/tools.sh fetched. Needs root, for debootstrap, and Debian's mirror; no KVM, no
# loop device, no mount. What the guest checks is in tests/release/boot-guest.sh. KEEP=FOLDER keeps the Debian that debootstrap makes
# there, to use it again, and what the guest printed.
set -uo pipefail

evenhand=$(realpath "${1:?usage: tests/release/boot.sh EVENHAND [KERNEL]}")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kernel=$root/.tools/guests/${2:-6.12}
export PATH="$PATH:/usr/sbin:/sbin"
# shellcheck source=scripts/debian-system.sh
source "$root/scripts/debian-system.sh"
in_a_namespace "$@"
cd "$root" || exit 1
release=$(own_release)
mirror=$(debian_mirror) || skip "no mirror of Debian $release in /etc/apt"
work=$(mktemp -d)
trap 'jobs -p | xargs -r kill 2>/dev/null; wait; rm -rf --one-file-system "$work"' EXIT
# shellcheck source=tests/sentences.sh
source tests/sentences.sh
system=$work/system

# The program is of this machine, and so the guest is the same Debian: its C library is there.
inside() { in_debian "$system" "$@"; }

# A minimal Debian with systemd.
make_system() {
    local kept=${KEEP:-$work}/$release
    if [ ! -d "$kept" ]; then
        make_debian "$release" "$kept.new" "$mirror" systemd,systemd-sysv,dbus || return 1
        mv "$kept.new" "$kept"
    fi
    if [ -n "${KEEP:-}" ]; then cp -a "$kept" "$system"; else mv "$kept" "$system"; fi
}

# The packages, two users whose slices have a weight of their own, and the script that checks.
install_into() {
    mkdir "$system/packages"
    cp "$work"/packages/evenhand_*.deb "$work"/packages/evenhand-agent_*.deb "$system/packages/"
    inside sh -c 'dpkg -i /packages/*.deb' || return 1
    rm -rf "$system"/{packages,usr/share/{doc,man,locale,zoneinfo},var/{cache/apt,lib/apt/lists}}/*
    printf 'EVENHAND_AGENT_OPTIONS=--apply\n' >"$system/etc/evenhand/agent.env"
    mkdir -p "$system/etc/evenhand/agent.toml.d"
    cat >"$system/etc/evenhand/agent.toml.d/10-guest.toml" <<'END'
[node]
cpu = 1
[heaviness]
resources = ["cpu"]
[control]
interval = "2s"
controls = ["cpu"]
END
    # Above the agent's own limit with that interval, and not the minute of the unit.
    mkdir -p "$system/etc/systemd/system/evenhand-agent.service.d"
    printf '[Service]\nWatchdogSec=25\n' >"$system/etc/systemd/system/evenhand-agent.service.d/watchdog.conf"
    local user
    for user in 1001 1002; do
        inside useradd --no-create-home --uid "$user" "user$user" || return 1
        mkdir -p "$system/etc/systemd/system/user-$user.slice.d"
        # Not what systemd gives, so that it shows who puts it back.
        printf '[Slice]\nCPUWeight=150\n' >"$system/etc/systemd/system/user-$user.slice.d/weight.conf"
    done
    # The second one wants four times as much as the first, and both leave time for the guest itself.
    load 1001 0.1
    load 1002 0.4
    install -m 755 tests/release/boot-guest.sh "$system/usr/local/sbin/boot-guest"
    cat >"$system/etc/systemd/system/boot-guest.service" <<'END'
[Unit]
Description=Checks of the boot test
After=evenhand-agent.service load-1001.service load-1002.service

[Service]
ExecStart=/usr/local/sbin/boot-guest
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0

[Install]
WantedBy=multi-user.target
END
    # Logs survive the power cut, too.
    mkdir -p "$system/var/log/journal"
    : >"$system/etc/fstab"
    inside systemctl --quiet enable evenhand-agent boot-guest load-1001 load-1002 || return 1
    # No log-in on the line that takes the results, and no jobs of the clock.
    inside systemctl --quiet mask serial-getty@ttyS0.service getty@tty1.service apt-daily.timer apt-daily-upgrade.timer \
        dpkg-db-backup.timer fstrim.timer e2scrub_all.timer e2scrub_reap.service systemd-networkd.service
}

# load USER SECONDS: of each second, which that user's process computes.
load() {
    cat >"$system/etc/systemd/system/load-$1.service" <<END
[Service]
User=$1
Slice=user-$1.slice
ExecStart=/bin/sh -c 'while :; do timeout $2 sh -c "while :; do :; done"; sleep 0.6; done'

[Install]
WantedBy=multi-user.target
END
}

# The first file system has only what it takes to mount the disk.
make_initrd() {
    local tree=$work/initrd.d version file name
    mkdir -p "$tree"/{bin,proc,sys,dev,modules,root}
    version=$(ls "$kernel/lib/modules")
    for name in virtio_pci virtio_blk virtio_rng ext4; do
        modprobe -d "$kernel" -S "$version" --show-depends "$name" 2>/dev/null | awk '/^insmod/ { print $2 }'
    done | awk '!seen[$0]++' | while read -r file; do
        name=$(basename "${file%.xz}")
        if [ "$file" = "${file%.xz}" ]; then cp "$file" "$tree/modules/$name"; else xz -dc "$file" >"$tree/modules/$name"; fi
        printf '%s\n' "$name" >>"$tree/modules/order"
    done
    cp "$(command -v busybox)" "$tree/bin/busybox"
    cat >"$tree/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for module in $(/bin/busybox cat /modules/order); do /bin/busybox insmod "/modules/$module"; done
until /bin/busybox mount -t ext4 /dev/vda /root; do /bin/busybox sleep 0.2; done
exec /bin/busybox switch_root /root /sbin/init
END
    chmod 755 "$tree/init"
    (cd "$tree" && find . | sort | cpio --quiet -o -H newc) >"$work/initrd"
}

# boot STAGE: in the background; its console is $work/STAGE. Nehalem: a processor that emulation does not spend its time on. What
# the guest has flushed is in the image, and nothing else need be: cache=writeback.
boot() {
    qemu-system-x86_64 -accel tcg,thread=multi -M q35 -cpu Nehalem -m 512 -smp 1 -nodefaults -no-user-config -display none -no-reboot \
        -serial "file:$work/$1" -device virtio-rng-pci \
        -drive "if=none,id=d0,file=$work/image,format=raw,cache=writeback" -device virtio-blk-pci,drive=d0 \
        -kernel "$kernel/vmlinuz" -initrd "$work/initrd" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check psi=1 systemd.show_status=0 boot_number=$1" \
        </dev/null >/dev/null &
    guest=$!
}
# Emulation boots in a minute, and in several where the machine is busy.
LIMIT=600
printed() { grep -q "^$2" "$work/$1"; }
printed_or_ended() { printed "$@" || ! kill -0 "$guest" 2>/dev/null; }

# results STAGE: each line that the guest printed as a sentence.
results() {
    tr -d '\r' <"$work/$1" >"$work/$1.text"
    sed -n 's/^\(holds\|does not hold\): /\1: '"$1"' boot: /p' "$work/$1.text"
    passed=$((passed + $(grep -c '^holds: ' "$work/$1.text")))
    failed=$((failed + $(grep -c '^does not hold: ' "$work/$1.text")))
}

holds "the packages are made" scripts/release --program "$evenhand" --version 0.0.1 --without tar,rpm,oci,wheel,source --out "$work/packages"
holds "a Debian is made" make_system
holds "the packages install" install_into
holds "its image is made" mke2fs -q -t ext4 -E root_owner=0:0,lazy_itable_init=1 -d "$system" "$work/image" 1G
rm -rf --one-file-system "$system" "$work/packages"
holds "the first file system is made" make_initrd
[ "$failed" = 0 ] || { summary; exit 1; }

boot first
holds "the first boot gets to its power cut" until_true $LIMIT printed_or_ended first 'cut the power'
# While the agent is started and stopped again and again, without a warning: what the guest holds in its memory is lost.
sleep 5
kill -KILL "$guest" 2>/dev/null
wait "$guest" 2>/dev/null
results first
holds "the first boot was cut off in the middle" printed first 'cut the power'

boot second
holds "the second boot gets to its end" until_true $LIMIT printed_or_ended second 'all checked'
results second
holds "the second boot checked all" printed second 'all checked'
ended() { ! kill -0 "$guest" 2>/dev/null; }
holds "the guest shuts down" until_true 120 ended
[ -z "${KEEP:-}" ] || cp "$work"/first.text "$work"/second.text "$KEEP"
[ "$failed" = 0 ] || tail -n 40 "$work"/{first,second}.text
summary
