# What tests on a real Slurm share: a folder that goes away with its cluster, and sentences that hold or not.
# Sourced; $root is the checkout.
export PATH="$PATH:/usr/sbin:/sbin"
work=$(mktemp -d)
chmod 755 "$work"
trap '"$root/scripts/slurm-down.sh" "$work/slurm" --purge; rm -rf "$work"' EXIT
passed=0
failed=0

# holds SENTENCE COMMAND…: what the command says is kept for `says`.
holds() {
    local sentence=$1
    shift
    if "$@" >"$work/said.log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'does not hold: %s\n' "$sentence"
        sed 's/^/    /' "$work/said.log" | tail -n 20
    fi
}

# says SENTENCE PATTERN: the last command said so.
says() { holds_in "$1" "$2" "$work/said.log"; }

holds_in() {
    if grep -q -- "$2" "$3"; then
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

# submit USER OPTION…: a job of that user, if this is root; its number.
submit() {
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then set -- --uid="$user" "$@"; fi
    sbatch --parsable --chdir=/ --output=/dev/null "$@"
}

# The last line, and whether all held.
summary() {
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ]
}
