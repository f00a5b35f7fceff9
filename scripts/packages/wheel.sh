# The wheel of the Python package, which carries the program. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# pack_wheel PROGRAM DIR
pack_wheel() {
    local file flags
    # Without paths of this machine, as in build_program.
    flags=$(printf '%s\x1f%s' "--remap-path-prefix=$root=/evenhand" "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo")
    CARGO_ENCODED_RUSTFLAGS=$flags scripts/wheel.sh "$1" "$work/wheels" || refuse 3 "the wheel cannot be built"
    for file in "$work"/wheels/*.whl; do
        mv "$file" "$2/"
        package "$2/${file##*/}"
    done
}
