# The wheel of the Python package, which carries the program. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

# pack_wheel PROGRAM DIR
pack_wheel() {
    local file flags
    # Without paths of this machine, as in build_program. But cargo hashes the path of a crate outside the workspace into its
    # symbols, and python/ is a workspace of its own: clones in two folders give two wheels.
    flags=$(printf '%s\x1f%s' "--remap-path-prefix=$root=/evenhand" "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo")
    CARGO_ENCODED_RUSTFLAGS=$flags scripts/wheel.sh "$1" "$work/wheels" || refuse 3 "the wheel cannot be built"
    for file in "$work"/wheels/*.whl; do
        wheel_without_paths "$file"
        mv "$file" "$2/"
        package "$2/${file##*/}"
    done
}

# wheel_without_paths FILE: refuses a wheel with paths of this machine, which another one would not give. Its program is looked at by
# inspect_program, and may be one that was built elsewhere.
wheel_without_paths() {
    local found
    found=$(python3 - "$1" "$root/" "${CARGO_HOME:-$HOME/.cargo}/" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        content = b"" if name.endswith("/scripts/evenhand") else wheel.read(name)
        for path in sys.argv[2:]:
            if path.encode() in content:
                print(f"{name} has {path}")
PY
    ) || refuse 3 "${1##*/} cannot be read"
    [ -z "$found" ] || refuse 1 "the wheel has paths of this machine: $found"
}
