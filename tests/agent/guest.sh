#!/usr/bin/env bash
# One guest under software emulation; the shell that starts this becomes QEMU, so its process id is the guest's.
#   NAME=VALUE… tests/agent/guest.sh FOLDER KERNEL IMAGE ROLE [FILE…]
# ROLE is the script that the guest runs, and each FILE a program or a configuration for /bin or, if it is not
# executable, for /. FOLDER gets:
#   console        what the guest prints
#   recording.csv  what the guest writes to /dev/ttyS1
#   monitor.in     takes QEMU's commands: echo 'set_link n0 off' cuts the guest off
#   commands.in    what is written there the guest reads from /dev/ttyS2
# NODE (1): its number and the end of its address 10.77.0.NODE; ROLE_ARGS: on the kernel's command line, for the role;
# PORT: guests of one port are on one network, which is a multicast group on 127.0.0.1; without it there is no network;
# MEMORY (384) MiB; CPUS (1); DISK (20971520) bytes a second of a disk of 1 GiB that reads zeroes and costs this machine nothing.
set -euo pipefail
folder=${1:?usage: tests/agent/guest.sh FOLDER KERNEL IMAGE ROLE [FILE…]} kernel=$2 image=$3 role=$4
shift 4
node=${NODE:-1}
mkdir -p "$folder/over/bin"
cp "$role" "$folder/over/role"
for file; do
    if [ -x "$file" ]; then cp "$file" "$folder/over/bin/"; else cp "$file" "$folder/over/"; fi
done
# A second archive after the first is unpacked over it.
{
    cat "$image"
    (cd "$folder/over" && find . | cpio --quiet -o -H newc)
} >"$folder/initrd"
rm -rf "$folder/over"
mkfifo "$folder"/{monitor,commands}.{in,out}

network=()
if [ -n "${PORT:-}" ]; then
    network=(-netdev "socket,id=n0,mcast=230.77.0.1:$PORT,localaddr=127.0.0.1"
        -device "virtio-net-pci,netdev=n0,mac=52:54:00:77:00:$(printf %02x "$node")")
fi
# Nehalem: a processor that emulation does not spend its time on. null-co: no file, no host's disk.
exec qemu-system-x86_64 -accel tcg,thread=multi -M q35 -cpu Nehalem -m "${MEMORY:-384}" -smp "${CPUS:-1}" \
    -nodefaults -no-user-config -display none -no-reboot -chardev "pipe,id=monitor,path=$folder/monitor" -mon chardev=monitor \
    -chardev "pipe,id=commands,path=$folder/commands" \
    -serial "file:$folder/console" -serial "file:$folder/recording.csv" -serial chardev:commands \
    -drive "if=none,id=d0,driver=null-co,size=1G,read-zeroes=on,throttling.bps-total=${DISK:-20971520}" \
    -device virtio-blk-pci,drive=d0 "${network[@]}" -kernel "$kernel/vmlinuz" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1 psi=1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on node=$node ${ROLE_ARGS:-}" \
    </dev/null >/dev/null
