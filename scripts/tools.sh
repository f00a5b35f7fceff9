# What the checks need beyond Rust and how it is brought in; sourced by ./check.
# Everything lands in the checkout (.tools, .venv, node_modules) but Chromium, Slurm and QEMU, which are the system's.
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
    apt-get -o DPkg::Lock::Timeout=300 update -qq && apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "$@" >/dev/null
}

# The programs that Rust tests call. On a new machine there is no nft, without which tests of network traffic fail, and
# perhaps none of the others.
need_test_programs() {
    local PATH="$PATH:/usr/sbin:/sbin" pair packages=()
    for pair in nft:nftables tc:iproute2 ip:iproute2 nsenter:util-linux losetup:mount mount:mount renice:bsdutils \
        kill:procps dbus-daemon:dbus-daemon python3:python3-minimal xz:xz-utils zstd:zstd gzip:gzip; do
        has "${pair%:*}" || packages+=("${pair#*:}")
    done
    [ ${#packages[@]} = 0 ] || debian_packages "${packages[@]}"
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

# need_guests [KERNEL…]: QEMU, what makes a guest's first file system, and Debian's kernels (6.12 unless said). Kernels
# are unpacked into .tools/guests/KERNEL and not installed. Software emulation is enough; no KVM, no root in tests.
need_guests() {
    local PATH="$PATH:/usr/sbin:/sbin" kernel
    [ "$(uname -m)" = x86_64 ] || { say "guests run what is built here, and the kernels are for x86_64"; return 1; }
    [ $# != 0 ] || set -- 6.12
    guest_commands || guest_packages || return 1
    for kernel; do
        [ -e ".tools/guests/$kernel/vmlinuz" ] || guest_kernel "$kernel" || return 1
    done
    rm -rf .tools/guests/apt
    PRIVATE_APT=()
}

guest_commands() {
    has qemu-system-x86_64 && has cpio && has depmod && has xz && has tc && has nft && has busybox &&
        # The dynamic one would look for its libraries.
        ! ldd "$(command -v busybox)" >/dev/null 2>&1
}

guest_packages() {
    local others=(busybox-static cpio kmod xz-utils iproute2 nftables) qemu=(qemu-system-x86) part suite
    [ "$(id -u)" = 0 ] || { say "not root, so no package can be installed: apt-get install ${qemu[*]} ${others[*]}"; return 1; }
    guest_apt || return 1
    if ! private_apt install -s --no-install-recommends "${qemu[@]}" >/dev/null 2>&1; then
        # Another part of QEMU is there from backports, which /etc/apt may not know, and its parts must be of one version.
        suite=$(. /etc/os-release && printf %s "$VERSION_CODENAME-backports")
        qemu=()
        for part in qemu-system-x86 qemu-system-common qemu-system-data seabios; do qemu+=("$part/$suite"); done
    fi
    DEBIAN_FRONTEND=noninteractive private_apt install -qq -y --no-install-recommends "${qemu[@]}" "${others[@]}" \
        >/dev/null || { say "apt-get cannot install ${qemu[*]} ${others[*]}"; return 1; }
    guest_commands
}

# guest_kernel VERSION: the newest of that line.
guest_kernel() {
    local package kept="$PWD/.tools/guests/$1" work
    guest_apt || return 1
    package=$(apt-cache "${PRIVATE_APT[@]}" search --names-only "^linux-image-${1//./\\.}\\..*-cloud-amd64\$" |
        cut -d' ' -f1 | sort -V | tail -n 1)
    [ -n "$package" ] || { say "no kernel $1 among Debian's packages for this release"; return 1; }
    work=$(mktemp -d "$PWD/.tools/guests/new.XXXXXX")
    (
        cd "$work" && private_apt download -qq "$package" && dpkg-deb -x ./*.deb . || exit 1
        # Newer packages have /usr/lib only.
        mkdir -p "$kept" ready/lib/modules
        for modules in lib/modules/* usr/lib/modules/*; do [ ! -d "$modules" ] || mv "$modules" ready/lib/modules/; done
        depmod -b ready "$(ls ready/lib/modules)" || exit 1
        rm -rf "$kept" && mv ready "$kept" && mv boot/vmlinuz-* "$kept/vmlinuz"
    ) || { rm -rf "$work"; say "kernel $package cannot be fetched or unpacked"; return 1; }
    rm -rf "$work"
}

# apt with lists of its own, so that /etc/apt need not know backports: the mirrors that it has for this release of Debian.
PRIVATE_APT=()
private_apt() { apt-get "${PRIVATE_APT[@]}" "$@"; }

guest_apt() {
    [ ${#PRIVATE_APT[@]} = 0 ] || return 0
    local folder="$PWD/.tools/guests/apt" name main security
    { has apt-get && [ "$(. /etc/os-release && printf %s "$ID")" = debian ]; } || { say "no Debian, which has the kernels"; return 1; }
    name=$(. /etc/os-release && printf %s "$VERSION_CODENAME")
    mirror() {
        apt-get indextargets --format '$(RELEASE) $(SITE)' 'Created-By: Packages' | awk -v r="$1" '$1 == r { print $2; exit }'
    }
    main=$(mirror "$name") security=$(mirror "$name-security")
    [ -n "$main" ] || { say "no mirror of Debian $name in /etc/apt"; return 1; }
    mkdir -p "$folder/lists/partial"
    local signed='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]'
    {
        printf 'deb %s %s %s main\n' "$signed" "$main" "$name" "$signed" "$main" "$name-backports"
        [ -z "$security" ] || printf 'deb %s %s %s main\n' "$signed" "$security" "$name-security"
    } >"$folder/sources.list"
    PRIVATE_APT=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$folder/lists"
        -o "Dir::Cache::pkgcache=$folder/pkgcache.bin" -o "Dir::Cache::srcpkgcache=$folder/srcpkgcache.bin"
        -o APT::Sandbox::User=root -o DPkg::Lock::Timeout=300)
    private_apt update -qq && return 0
    PRIVATE_APT=()
    say "no package lists from $main"
    return 1
}
