# External programs: reads scripts/programs.txt, installs what is missing, and makes the PATH of a step. Sourced by ./check.
# shellcheck shell=bash

PROGRAMS_TABLE=${PROGRAMS_TABLE:-scripts/programs.txt}

# Where programs are looked for: the caller's PATH, what the checks installed themselves, and where Debian keeps daemons.
PROGRAMS_SEARCH="$PWD/.tools/bin:$PATH:/usr/local/sbin:/usr/sbin:/sbin"

# programs_of STEP: a line for each entry of the table that the step needs: its source and the entry.
programs_of() {
    awk -v step="$1" '
        !/^#/ && NF {
            wanted = $2 == "*"
            n = split($2, steps, ",")
            for (i = 1; i <= n; i++) if (steps[i] == step) wanted = 1
            if (wanted) for (i = 3; i <= NF; i++) print $1, $i
        }' "$PROGRAMS_TABLE"
}

# program_file NAME: prints the path of a program; status 1 if there is none.
program_file() {
    local PATH=$PROGRAMS_SEARCH file
    file=$(type -P "$1") || return 1
    case $file in
    */shims/*)
        # A version manager's script, which needs the whole of its owner's PATH.
        case $1 in
        python3) file=$("$file" -c 'import sys; print(sys.executable)' 2>/dev/null) || return 1 ;;
        esac
        ;;
    esac
    printf '%s\n' "$file"
}

# entry_is_there ENTRY: whether what an entry of the table names is on this machine.
entry_is_there() {
    local entry=${1%\?} name names
    case $entry in
    /*) compgen -G "$entry" >/dev/null ;;
    *:*)
        name=$(program_file "${entry%%:*}") && "$name" -c "import ${entry#*:}" 2>/dev/null
        ;;
    busybox)
        # One that is linked dynamically looks for libraries that a guest VM does not have.
        name=$(program_file busybox) && ! ldd "$name" >/dev/null 2>&1
        ;;
    *)
        IFS='|' read -ra names <<<"$entry"
        for name in "${names[@]}"; do program_file "$name" >/dev/null && return 0; done
        return 1
        ;;
    esac
}

# programs_missing STEP…: a line for each entry that the steps need and this machine lacks: its source and the entry.
# Programs of cargo, npm and PyPI are not among them: the steps install those themselves.
programs_missing() {
    local step source entry
    for step; do programs_of "$step"; done | sort -u | while read -r source entry; do
        case $source in cargo:* | npm:* | pypi:*) continue ;; esac
        entry_is_there "$entry" || printf '%s %s\n' "$source" "$entry"
    done
}

# programs_install STEP…: installs what is missing for these steps, with one call of apt-get. Returns an error, and prints
# the reason, if it cannot.
programs_install() {
    local packages
    mapfile -t packages < <(programs_missing "$@" | sed -n 's/^debian:\([^ ]*\) .*/\1/p' | sort -u)
    [ ${#packages[@]} = 0 ] || debian_packages "${packages[@]}"
}

# programs_lacking STEP: the entries without which the step cannot run, on one line; nothing if there are none. Optional
# ones count where everything must be there (CI=true).
programs_lacking() {
    programs_missing "$1" | while read -r source entry; do
        case $entry in
        *\?) [ "${CI:-}" = true ] || continue ;;
        esac
        printf '%s (%s)\n' "${entry%\?}" "$source"
    done | paste -sd, | sed 's/,/, /g'
}

# programs_path STEP FOLDER: fills a folder with links to the step's programs and to no others.
programs_path() {
    local source entry name names file
    mkdir -p "$2"
    chmod 755 "$2"
    while read -r source entry; do
        entry=${entry%\?}
        case $entry in /* | *:*) continue ;; esac
        IFS='|' read -ra names <<<"$entry"
        for name in "${names[@]}"; do
            file=$(program_file "$name") && ln -sf "$file" "$2/$name"
        done
    done < <(programs_of "$1")
    return 0
}
