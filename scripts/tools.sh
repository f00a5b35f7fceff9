# What the checks need beyond Rust and how it is brought in; sourced by ./check.
# Everything lands in the checkout (.tools, .venv, node_modules) but Chromium and Slurm, which are the system's.
# shellcheck shell=bash

CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2
export PATH="$PWD/.tools/bin:$PATH"

has() { command -v "$1" >/dev/null 2>&1; }

# cargo_tool NAME VERSION: installs it unless it is there.
cargo_tool() {
    has "$1" && return 0
    say "installing $1 $2 into .tools"
    # Built apart from the workspace: other profiles, other features.
    CARGO_TARGET_DIR="$PWD/.tools/target" cargo install --quiet --root .tools --locked --version "$2" "$1" || return 1
    rm -rf .tools/target
}

# On Debian and its children, as root.
debian_packages() {
    has apt-get || { say "no apt-get here"; return 1; }
    [ "$(id -u)" = 0 ] || { say "not root, so no package can be installed: apt-get install $*"; return 1; }
    local DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# Prints the browser's path.
browser() {
    local name
    for name in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome; do
        if has "$name"; then command -v "$name"; return 0; fi
    done
    return 1
}

need_browser() { browser >/dev/null || debian_packages chromium; }

need_node() { has npm || debian_packages nodejs npm; }

# A virtual environment with evalys; made anew when the list of packages changes.
need_evalys() {
    local wanted=scripts/python-requirements.txt
    cmp -s "$wanted" .venv/requirements.txt && return 0
    has python3 || debian_packages python3 || return 1
    python3 -c 'import ensurepip' 2>/dev/null || debian_packages python3-venv || return 1
    rm -rf .venv
    python3 -m venv .venv || return 1
    .venv/bin/pip install --quiet --disable-pip-version-check -r "$wanted" || return 1
    cp "$wanted" .venv/requirements.txt
}

# Slurm's daemons and commands, and munge, which proves to them who asks.
need_slurm() {
    local PATH="$PATH:/usr/sbin:/sbin"
    { has slurmctld && has slurmd && has sbatch && has munged; } ||
        debian_packages slurmctld slurmd slurm-client munge
}

# The same with accounting.
need_slurm_accounting() {
    local PATH="$PATH:/usr/sbin:/sbin"
    need_slurm || return 1
    { has slurmdbd && has mariadbd && has mariadb-install-db; } ||
        debian_packages slurmdbd slurm-wlm-mysql-plugin mariadb-server || return 1
    # One part of a test asks it, and says if it is not there.
    has slurmrestd || debian_packages slurmrestd || true
}
