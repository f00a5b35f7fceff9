# The archive for any Linux: unpack it anywhere, and add its bin to the PATH. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# pack_tarball STAGE DIR
pack_tarball() {
    local name="evenhand-$version-x86_64-linux" tree
    tree=$work/tarball/$name
    mkdir -p "$tree/share/doc"
    cp -a "$1/evenhand/usr/." "$tree/"
    mv "$tree/share/licenses/evenhand"/* "$tree/share/doc/evenhand/"
    rm -r "$tree/share/licenses"
    # For services: copied by hand, as docs/src/how-to/install.md describes.
    cp -a "$1/evenhand-agent/etc" "$tree/"
    cp -a "$1/evenhand-slurm/etc/." "$1/evenhand-serve/etc/." "$tree/etc/"
    cp -a "$1/evenhand-agent/usr/share/evenhand" "$tree/share/"
    mkdir "$tree/lib"
    cp -a "$1/evenhand-agent/usr/lib/." "$tree/lib/"
    cp -a "$1/evenhand-slurm/usr/lib/." "$1/evenhand-serve/usr/lib/." "$tree/lib/"
    dated "$work/tarball"
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=posix \
        --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime --directory "$work/tarball" "$name" |
        zstd --quiet -12 -T1 --force -o "$2/$name.tar.zst"
    package "$2/$name.tar.zst"
}
