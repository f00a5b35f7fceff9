# Sentences that hold or not, and how many did. Sourced; $work is a folder.
passed=0
failed=0

# holds SENTENCE COMMAND…: what the command prints is kept for `prints`.
holds() {
    local sentence=$1
    shift
    if "$@" >"$work/printed.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'does not hold: %s\n' "$sentence"
        sed 's/^/    /' "$work/printed.log" | tail -n 20
    fi
}

# Lines as they were before prose was folded at 100 columns: what follows is indented.
unfolded() { sed -e ':next' -e 'N' -e '$!b next' -e 's/\n  */ /g' "$1"; }

# prints SENTENCE PATTERN: the last command of `holds` printed it, in a line or in a folded one.
prints() { holds_in "$1" "$2" "$work/printed.log"; }

holds_in() {
    if grep -q -- "$2" "$3" || grep -q -- "$2" < <(unfolded "$3"); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'does not hold: %s: there is no %s in:\n' "$1" "$2"
        sed 's/^/    /' "$3" | tail -n 20
    fi
}

# ends STATUS COMMAND…
ends() {
    local status=$1 ended=0
    shift
    "$@" || ended=$?
    [ "$ended" = "$status" ]
}

# until_true SECONDS COMMAND…
until_true() {
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$until" ] || return 1
        sleep 0.2
    done
}

# The last line, and whether all held.
summary() {
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ]
}
