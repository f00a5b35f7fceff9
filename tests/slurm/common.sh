# What tests on a real Slurm share: a folder that goes away with its cluster, and sentences that hold or not.
# Sourced with the test's arguments; $root is the checkout.
# shellcheck source=tests/slurm/release.sh
source "$root/tests/slurm/release.sh"
begin_in_release "$@"
export PATH="$PATH:/usr/sbin:/sbin"
work=$(mktemp -d)
chmod 755 "$work"
trap '"$root/scripts/slurm-down.sh" "$work/slurm" --purge; rm -rf "$work"' EXIT
# shellcheck source=tests/sentences.sh
source "$root/tests/sentences.sh"

# submit USER OPTION…: a job of that user, if this is root; its number.
submit() {
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then set -- --uid="$user" "$@"; fi
    sbatch --parsable --chdir=/ --output=/dev/null "$@"
}
