# The program of a release: built static, or taken as it is, and checked. Sourced by scripts/release.
# shellcheck shell=bash disable=SC2154

readonly TARGET=x86_64-unknown-linux-musl
# In bytes: what the packages' users are promised.
readonly LARGEST_PROGRAM=$((25 * 1000 * 1000))

built=

# build_program: sets `program` and `built`. Static, against musl: one program for every Linux, whatever its C library and its age.
build_program() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo} sysroot target=${CARGO_TARGET_DIR:-$root/target}
    rustc --print target-libdir --target "$TARGET" >/dev/null 2>&1 || refuse 3 "this Rust knows no target $TARGET"
    [ -d "$(rustc --print target-libdir --target "$TARGET")" ] || rustup target add "$TARGET" ||
        refuse 3 "Rust's library for $TARGET is missing: rustup target add $TARGET, or pack a built program with --program"
    type -P musl-gcc >/dev/null || refuse 3 "musl-gcc is missing, which compiles zstd: apt-get install musl-tools"
    sysroot=$(rustc --print sysroot)
    # Paths of this machine would differ on another one. And the table of addresses that the program corrects when it starts,
    # since it lies anywhere in memory (PIE): packed, which musl 1.2.4 and later read, it has some kilobytes; else 24 bytes for
    # each address, which are megabytes.
    CARGO_ENCODED_RUSTFLAGS=$(printf '%s\x1f%s\x1f%s\x1f%s' "--remap-path-prefix=$root=/evenhand" \
        "--remap-path-prefix=$cargo_home=/cargo" "--remap-path-prefix=$sysroot=/rust" -Clink-arg=-Wl,-z,pack-relative-relocs)
    export CARGO_ENCODED_RUSTFLAGS CC_x86_64_unknown_linux_musl=musl-gcc
    export CFLAGS_x86_64_unknown_linux_musl="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target=/target"
    unset RUSTFLAGS
    cargo build --profile dist --locked --package evenhand --target "$TARGET" || refuse 3 "the program does not build"
    unset CARGO_ENCODED_RUSTFLAGS
    program=$target/$TARGET/dist/evenhand built=1
}

# install_program FROM TO: without symbols, also of a program that was built elsewhere.
install_program() { strip -o "$2" "$1" && chmod 755 "$2" && touch -d "@$SOURCE_DATE_EPOCH" "$2"; }

# inspect_program FILE: prints what it is. What was built here has to be small, static, and free of this machine's paths; other
# programs are of whatever profile and system their user wants.
inspect_program() {
    local size kind=static needs found
    size=$(stat -c %s "$1")
    needs=$(objdump -T "$1" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 || true)
    [ -z "$needs" ] || kind="dynamic, needs ${needs/_/ }"
    say "program: $("$1" --version), $size bytes, $kind"
    [ -n "$built" ] || return 0
    [ "$size" -le "$LARGEST_PROGRAM" ] || refuse 1 "the program has $size bytes; at most $LARGEST_PROGRAM are promised"
    [ "$kind" = static ] || refuse 1 "the program is $kind; expected a static one"
    found=$(grep -aoF -e "$root/" -e "${CARGO_HOME:-$HOME/.cargo}/" "$1" | sort | uniq -c || true)
    [ -z "$found" ] || refuse 1 "the program has paths of this machine: $found"
}
