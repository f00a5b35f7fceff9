# Installs what the checks need beyond Rust and what scripts/programs.txt cannot describe; sourced by ./check.
# All of it is kept in the checkout (.tools, .venv, node_modules) but Debian's packages, which are the system's.
# What installs things runs with the whole PATH ($PROGRAMS_SEARCH), since it calls programs of its own.
# shellcheck shell=bash

CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2
CARGO_SEMVER_CHECKS=0.51.0

has() { command -v "$1" >/dev/null 2>&1; }

# cargo_tool NAME VERSION: installs it into .tools unless it is there.
cargo_tool() {
    export PATH="$PWD/.tools/bin:$PATH"
    has "$1" && return 0
    say "installing $1 $2 into .tools"
    # Apart from the workspace, which has other profiles and features. The tools run for seconds and compile for minutes:
    # optimised code is not worth its time.
    CARGO_TARGET_DIR="$PWD/.tools/target/$1" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 PATH=$PROGRAMS_SEARCH \
        cargo install --quiet --root .tools --locked --version "$2" "$1" || return 1
    rm -rf ".tools/target/$1"
}

# debian_packages NAME…: installs them with one call of apt-get, on Debian and its children, as root.
debian_packages() {
    local part suite names=() DEBIAN_FRONTEND=noninteractive
    has apt-get || { say "no apt-get here; these packages are missing: $*"; return 1; }
    [ "$(id -u)" = 0 ] || { say "not root, so that no package can be installed: apt-get install $*"; return 1; }
    export DEBIAN_FRONTEND
    say "installing $*"
    apt-get -o DPkg::Lock::Timeout=300 update -qq
    if apt-get install -s --no-install-recommends "$@" >/dev/null 2>&1; then
        apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "$@" >/dev/null
        return
    fi
    case " $* " in *' qemu-system-x86 '*) ;; *) say "apt-get cannot install $*"; return 1 ;; esac
    # Another part of QEMU is there from backports, which /etc/apt may not know, and its parts must be of one version.
    private_apt_lists || return 1
    suite=$(. /etc/os-release && printf %s "$VERSION_CODENAME-backports")
    for part; do [ "$part" = qemu-system-x86 ] || names+=("$part"); done
    for part in qemu-system-x86 qemu-system-common qemu-system-data seabios; do names+=("$part/$suite"); done
    private_apt install -qq -y --no-install-recommends "${names[@]}" >/dev/null || { say "apt-get cannot install ${names[*]}"; return 1; }
}

# Prints the browser's path.
chromium_path() {
    local name
    for name in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome; do
        if has "$name"; then command -v "$name"; return 0; fi
    done
    return 1
}

# A virtual environment with evalys; made anew when the list of packages changes.
need_evalys() {
    local wanted=scripts/python-requirements.txt
    [ -x .venv/bin/python ] && cmp -s "$wanted" .venv/requirements.txt && return 0
    rm -rf .venv
    # By the whole PATH: the environment links to the interpreter that makes it, and a step's own PATH is gone after the run.
    PATH=$PROGRAMS_SEARCH python3 -m venv .venv || return 1
    PATH=$PROGRAMS_SEARCH .venv/bin/pip install --quiet --disable-pip-version-check -r "$wanted" || return 1
    cp "$wanted" .venv/requirements.txt
}

# need_guests [KERNEL…]: Debian's kernels (6.12 unless others are named), unpacked into .tools/guests/KERNEL and not
# installed. Software emulation is enough; no KVM, no root in tests.
need_guests() {
    local kernel
    [ "$(uname -m)" = x86_64 ] || { say "guest VMs run what is built here, and the kernels are for x86_64"; return 1; }
    [ $# != 0 ] || set -- 6.12
    for kernel; do
        [ -e ".tools/guests/$kernel/vmlinuz" ] || guest_kernel "$kernel" || return 1
    done
    rm -rf .tools/guests/apt
    PRIVATE_APT=()
}

# guest_kernel VERSION: the newest of that line.
guest_kernel() {
    local package kept="$PWD/.tools/guests/$1" work
    private_apt_lists || return 1
    package=$(PATH=$PROGRAMS_SEARCH apt-cache "${PRIVATE_APT[@]}" search --names-only "^linux-image-${1//./\\.}\\..*-cloud-amd64\$" |
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
private_apt() { PATH=$PROGRAMS_SEARCH apt-get "${PRIVATE_APT[@]}" "$@"; }

private_apt_lists() {
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
