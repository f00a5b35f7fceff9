# Which steps and which crates a run of ./check is about. Sourced by ./check.
# shellcheck shell=bash

# default_steps: prints the ids of all steps that run without being asked for.
default_steps() {
    local id
    for id in "${STEPS[@]}"; do [ -n "${ON_REQUEST[$id]:-}" ] || say "$id"; done
}

are_steps() {
    local step
    [ $# != 0 ] || { say "which step? ./check list shows them" >&2; exit 2; }
    for step; do
        [ -n "${TITLE[$step]:-}" ] || { say "there is no step $step; ./check list shows them" >&2; exit 2; }
    done
}

list_steps() {
    local id
    printf '%-14s %-32s %-10s %s\n' step '' 'at most' 'runs after'
    for id in "${STEPS[@]}"; do
        printf '%-14s %-32s %4s min   %s\n' "$id" "${TITLE[$id]}" $((LIMIT[$id] / 60)) "${AFTER[$id]// /, }" | sed 's/ *$//'
    done
    say "Only on request: ${!ON_REQUEST[*]}. All others run by default."
}

# package_of NAME: the package that a crate's name, its package's name or its folder stands for.
package_of() {
    local folder=${1%/}
    folder=crates/${folder##*/}
    [ -f "$folder/Cargo.toml" ] || folder=crates/${1#evenhand-}
    [ -f "$folder/Cargo.toml" ] || { [ "$1" = evenhand ] && folder=crates/cli; }
    [ -f "$folder/Cargo.toml" ] || { say "there is no crate $1; there are: $(cd crates && echo *)" >&2; return 1; }
    sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -n 1
}

# named_crates NAME…: the scope are these crates.
named_crates() {
    local name package
    [ $# != 0 ] || { say "which crate? ./check -p CRATE…; there are: $(cd crates && echo *)" >&2; exit 2; }
    scope=()
    for name; do
        package=$(package_of "$name") || exit 2
        scope+=(-p "$package")
    done
    linted=("${scope[@]}")
}

# changed_files: prints what differs from HEAD; if nothing does, what the last commit changed.
changed_files() {
    local files
    files=$(git diff --name-only HEAD && git ls-files --others --exclude-standard)
    [ -n "$files" ] || files=$(git diff --name-only HEAD~1 HEAD 2>/dev/null || true)
    say "$files"
}

# packages_of_files: reads paths; prints the packages that they belong to, or `all`. The examples of all pages are tests of
# the command line's package, and so are the comparisons with the independent programs.
packages_of_files() {
    local file folder
    while read -r file; do
        case $file in
        crates/*/*)
            folder=${file#crates/}
            folder=${folder%%/*}
            [ ! -f "crates/$folder/Cargo.toml" ] || package_of "$folder"
            ;;
        docs/* | README.md | tests/independent/*) say evenhand ;;
        Cargo.toml | Cargo.lock | rust-toolchain.toml | .config/* | clippy.toml) say all ;;
        esac
    done | sort -u
}

# quick_filter TIMES: reads packages; prints the tests to run as a filter of nextest: those of the packages and of what
# depends on them, but for those that took longer than a second in the last run of all tests, whose times are in TIMES.
quick_filter() {
    local package any='none()'
    while read -r package || [ -n "$package" ]; do
        [ "$package" != all ] || { any='all()'; break; }
        any="$any | rdeps(=$package)"
    done
    say "($any)$(slow_tests "$1" | awk '{ printf " - (binary_id(=%s) & test(=%s))", $1, $2 }')"
}

# slow_tests TIMES: prints the binary and the name of each test that took longer than a second, from a JUnit file.
slow_tests() {
    [ -f "$1" ] || return 0
    sed -n 's/.*<testcase name="\([^"]*\)" classname="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1 \3/p' "$1" | awk '$3 > 1 { print $1, $2 }'
}

# changed_crates: the scope are the tests of what changed.
changed_crates() {
    local package packages times="$target/nextest/full/junit.xml"
    packages=$(changed_files | packages_of_files)
    filter=$(printf '%s' "$packages" | quick_filter "$times")
    if [[ $'\n'$packages$'\n' != *$'\n'all$'\n'* ]]; then
        linted=()
        for package in $packages; do linted+=(-p "$package"); done
    fi
    say "crates that changed, which are tested with all that depend on them: ${packages//$'\n'/, }"
    say "slow tests left out: $(slow_tests "$times" | wc -l); ./check tests runs them"
}
