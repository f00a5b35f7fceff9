# What packages contain, as one tree a package below a folder: evenhand, evenhand-agent, evenhand-slurm,
# evenhand-serve. Sourced by scripts/release. Folders are those of RPM-based systems; scripts/packages/debian.sh moves the two that differ.
# shellcheck shell=bash disable=SC2154

# stage_trees PROGRAM FOLDER
stage_trees() {
    local tree=$2/evenhand shell documents=$2/evenhand/usr/share/doc/evenhand
    install -D -m 755 "$1" "$tree/usr/bin/evenhand"
    "$1" --quiet manual "$tree/usr/share/man/man1" --date "$(date -d "@$SOURCE_DATE_EPOCH" +%F)" >/dev/null || refuse 3 "the program writes no manual pages"
    gzip -9n "$tree"/usr/share/man/man1/*.1
    for shell in bash zsh fish; do completions "$1" "$shell" "$tree"; done
    mkdir -p "$documents" "$tree/usr/share/licenses/evenhand"
    cp README.md CHANGELOG.md "$documents/"
    python3 scripts/sbom.py --target "$TARGET" "$documents/evenhand.cdx.json"
    cp LICENSE-MIT LICENSE-APACHE "$tree/usr/share/licenses/evenhand/"
    python3 scripts/packages/licences.py --target "$TARGET" "$tree/usr/share/licenses/evenhand/third-party-licences.txt"

    service agent "$2/evenhand-agent"
    install -D -m 644 -t "$2/evenhand-agent/etc/evenhand" packaging/etc/agent.toml
    mkdir -p "$2/evenhand-agent/usr/share/evenhand"
    "$1" config schema >"$2/evenhand-agent/usr/share/evenhand/agent.schema.json"
    service slurm "$2/evenhand-slurm"
    install -D -m 644 -t "$2/evenhand-slurm/usr/lib/sysusers.d" packaging/sysusers.d/evenhand-slurm.conf
    service serve "$2/evenhand-serve"
    install -D -m 644 -t "$2/evenhand-serve/usr/lib/sysusers.d" packaging/sysusers.d/evenhand-serve.conf
    dated "$2"
}

# completions PROGRAM SHELL TREE
completions() {
    local file
    case $2 in
    bash) file=usr/share/bash-completion/completions/evenhand ;;
    zsh) file=usr/share/zsh/site-functions/_evenhand ;;
    fish) file=usr/share/fish/vendor_completions.d/evenhand.fish ;;
    esac
    mkdir -p "$3/${file%/*}"
    "$1" completions "$2" >"$3/$file"
}

# service NAME TREE: what services have.
service() {
    install -D -m 644 -t "$2/usr/lib/systemd/system" "packaging/systemd/evenhand-$1.service"
    # The pages have no state.
    [ "$1" = serve ] || install -D -m 644 -t "$2/usr/lib/tmpfiles.d" "packaging/tmpfiles.d/evenhand-$1.conf"
    install -D -m 644 -t "$2/etc/evenhand" "packaging/etc/$1.env"
}

# dated FOLDER: everything in it is as old as the commit, readable by all, and writable by its owner only.
dated() {
    chmod -R u=rwX,go=rX "$1"
    find "$1" -depth -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# What was made, as names in the folder of packages.
made=()
# package FILE: a package that is complete.
package() {
    made+=("${1##*/}")
    say "$(stat -c %s "$1") bytes: ${1##*/}"
}
