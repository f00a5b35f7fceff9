#!/usr/bin/env bash
# A guest's first file system: busybox, the kernel's modules, tc and nft, the programs given with their libraries, and
# an init that runs /role.
#   tests/agent/guest-image.sh KERNEL IMAGE PROGRAM…
# KERNEL is a folder that need_guests made. Not compressed: unpacking under emulation takes longer than reading.
set -euo pipefail
kernel=$(realpath "${1:?usage: tests/agent/guest-image.sh KERNEL IMAGE PROGRAM…}") image=$(realpath -m "$2")
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH="$PATH:/usr/sbin:/sbin"

# The disk, the network, a second serial line, BFQ, and what shapes and sorts traffic.
modules=(virtio_pci virtio_blk virtio_net virtio_rng bfq
    sch_htb sch_netem sch_fq_codel nf_tables nft_socket nft_meta_bridge act_gact bridge veth)

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bin,proc,sys,dev,tmp,run,etc,root,modules}
version=$(ls "$kernel/lib/modules")
for module in "${modules[@]}"; do
    # What is built in, or of another name there, is not shown.
    modprobe -d "$kernel" -S "$version" --show-depends "$module" 2>/dev/null | awk '/^insmod/ { print $2 }' || true
done | awk '!seen[$0]++' >"$tree/wanted"
while read -r file; do
    name=$(basename "${file%.xz}")
    if [ "$file" = "${file%.xz}" ]; then cp "$file" "$tree/modules/$name"; else xz -dc "$file" >"$tree/modules/$name"; fi
    printf '%s\n' "$name" >>"$tree/modules/order"
done <"$tree/wanted"
rm "$tree/wanted"

cp "$(command -v busybox)" "$tree/bin/busybox"
busybox --list | while read -r applet; do
    [ "$applet" = busybox ] || ln -s busybox "$tree/bin/$applet"
done
for program in "$(command -v tc)" "$(command -v nft)" "$@"; do
    rm -f "$tree/bin/$(basename "$program")"
    # What a debugger wants is most of a program's size.
    strip -o "$tree/bin/$(basename "$program")" "$program" 2>/dev/null || cp -L "$program" "$tree/bin/"
    # `name => path (address)`, and the loader's own line.
    ldd "$program" | awk '/=> \// { print $3 } $1 ~ /ld-linux/ { print $1 }' || true
done | sort -u | while read -r library; do
    mkdir -p "$tree$(dirname "$library")"
    cp -L "$library" "$tree$library"
done
install -m 755 "$here/roles/init" "$tree/init"
(cd "$tree" && find . | sort | cpio --quiet -o -H newc) >"$image"
