# What tests on a real Slurm share: a folder that goes away with its cluster, and sentences that hold or not.
# Sourced with the test's arguments; $root is the checkout.
# shellcheck source=tests/slurm/release.sh
source "$root/tests/slurm/release.sh"
begin_in_release "$@"
export PATH="$PATH:/usr/sbin:/sbin"
work=$(mktemp -d)
chmod 755 "$work"
# What the controller wrote goes away with its folder; its last lines may say why a sentence does not hold.
ends_with() {
    local status=$?
    if [ "$status" != 0 ] && [ -e "$work/slurm/log/slurmctld.log" ]; then
        printf 'The last lines of slurmctld.log:\n'
        grep -vE 'debug|sched/backfill' "$work/slurm/log/slurmctld.log" | tail -n 60 | cut -c 1-200
    fi
    "$root/scripts/slurm-down.sh" "$work/slurm" --purge
    rm -rf "$work"
    exit "$status"
}
trap ends_with EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"

# submit USER OPTION…: a job of that user, if this is root; its number.
submit() {
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then set -- --uid="$user" "$@"; fi
    sbatch --parsable --chdir=/ --output=/dev/null "$@"
}
