# The container image, written as a file in the form of the Open Container Initiative: no daemon, no root, nothing downloaded.
# Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# pack_image PROGRAM DIR
pack_image() {
    local file="$2/evenhand-$version-x86_64.oci.tar"
    [ -z "$(objdump -T "$1" 2>/dev/null | grep GLIBC_ || true)" ] ||
        say "note: this program is not static and does not run in the image, which has nothing else"
    python3 scripts/packages/image.py --program "$1" --version "$version" --revision "$commit" "$file"
    package "$file"
}
